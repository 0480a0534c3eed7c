"""The sandbox's stand-in for the Kubernetes provider."""

from sandbox.kubernetes.provider import Kubernetes

__all__ = ["Kubernetes"]
