"""The sandbox: this project through the real Pulumi engine and the policy pack, with stand-ins for AWS and Kubernetes."""
