"""The versions a stack gets unless it says otherwise, each with where it was read. Never ``latest``."""

from dataclasses import dataclass
from typing import Final

KUBERNETES: Final = "1.35"
"""AWS's ``ray-serve-multi-node`` sample (env.sh); KubeRay 1.6.0 builds against it and was run on it."""

KUBERNETES_SUPPORTED: Final = ("1.32", "1.33", "1.34", "1.35", "1.36")
"""The versions EKS creates clusters with: 1.32 is in extended support until March 2027 (EKS version calendar)."""

RAY: Final = "2.58.0"
"""What the image of the reference deployment holds by AWS's ``ray-serve-multi-node`` sample (env.sh)."""

RAY_MINIMUM: Final = "2.52.0"
"""Token authentication needs it (ray-project/kuberay, ray-operator/controllers/ray/utils/validation.go)."""

KUBERAY_MINIMUM: Final = "1.5.1"
"""``authOptions`` of a RayCluster came with it; an older operator does not know the field."""

NVIDIA_PLUGIN_BROKEN: Final = ("0.19.0", "0.19.1", "0.19.2")
"""These switch on MOFED by default; NVIDIA took that back in 0.19.3 (NVIDIA/k8s-device-plugin releases)."""


@dataclass(frozen=True)
class ChartPin:
    """A Helm chart at one version."""

    repository: str
    chart: str
    version: str


KUBERAY_OPERATOR: Final = ChartPin("https://ray-project.github.io/kuberay-helm/", "kuberay-operator", "1.6.0")
"""Chart and operator carry one version (ray-project/kuberay v1.6.0, helm-chart/kuberay-operator/Chart.yaml)."""

NVIDIA_DEVICE_PLUGIN: Final = ChartPin("https://nvidia.github.io/k8s-device-plugin", "nvidia-device-plugin", "0.20.0")
"""NVIDIA/k8s-device-plugin, deployments/helm/nvidia-device-plugin/Chart.yaml; AWS's newest EFA sample pins it too."""

EFA_DEVICE_PLUGIN: Final = ChartPin("https://aws.github.io/eks-charts", "aws-efa-k8s-device-plugin", "v0.5.30")
"""aws/eks-charts, stable/aws-efa-k8s-device-plugin/Chart.yaml, which spells versions with a ``v``; knows g6.8xlarge."""
