"""The sandbox's stand-in for pulumi-eks, as a process of its own: ``python -m sandbox.eks`` prints its port and serves."""
