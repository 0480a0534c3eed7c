"""The sandbox's real Kubernetes: control plane, nodes without machines, KubeRay's operator, and Pulumi's provider plugin."""
