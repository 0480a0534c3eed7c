"""Helm values of the cluster's add-ons, their namespaces, and where images and CRDs come from: plain, no resource.

The defaults they correct were read in the charts: NVIDIA/k8s-device-plugin v0.20.0, aws/eks-charts
aws-efa-k8s-device-plugin v0.5.30, ray-project/kuberay v1.6.0.
"""

from typing import Any

from components.faults import Fault, StackFaults, path, set_to
from components.node_labels import GPU_NODE_LABELS, GPU_TAINT, NODE_GROUP_LABEL, SYSTEM_NODE_LABELS
from components.versions import KUBERAY_OPERATOR

PLUGIN_NAMESPACE = "device-plugins"
OPERATOR_NAMESPACE = "kuberay-system"

_KUBERAY_CRD_ROOT = "https://raw.githubusercontent.com/ray-project/kuberay"
_CRON_JOBS_SINCE = (1, 6)

# EKS user guide, "View Amazon container image registries for Amazon EKS add-ons". Regions not named here use the first.
_EKS_REGISTRY_ACCOUNT = "602401143452"
_EKS_REGISTRY_ACCOUNTS = {
    "af-south-1": "877085696533",
    "ap-east-1": "800184023465",
    "ap-east-2": "533267051163",
    "ap-south-2": "900889452093",
    "ap-southeast-3": "296578399912",
    "ap-southeast-4": "491585149902",
    "ap-southeast-5": "151610086707",
    "ap-southeast-6": "333609536671",
    "ap-southeast-7": "121268973566",
    "ca-west-1": "761377655185",
    "cn-north-1": "918309763551",
    "cn-northwest-1": "961992271922",
    "eu-central-2": "900612956339",
    "eu-south-1": "590381155156",
    "eu-south-2": "455263428931",
    "il-central-1": "066635153087",
    "me-central-1": "759879836304",
    "me-south-1": "558608220178",
    "mx-central-1": "730335286997",
    "us-gov-east-1": "151742754352",
    "us-gov-west-1": "013241004608",
}


def eks_image_registry(region: str) -> str:
    """The registry from which EKS serves its own images in ``region``."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{_EKS_REGISTRY_ACCOUNTS.get(region, _EKS_REGISTRY_ACCOUNT)}.dkr.ecr.{region}.{suffix}"


def nvidia_device_plugin_values() -> dict[str, Any]:
    """Values that put the NVIDIA plugin on the GPU nodes and nowhere else.

    Its own affinity accepts any node with ``nvidia.com/gpu.present``; without that label it wants no node and says so
    nowhere (NVIDIA/k8s-device-plugin#315).
    """
    present = "nvidia.com/gpu.present"
    return {"nodeSelector": {present: GPU_NODE_LABELS[present]}, "tolerations": [GPU_TAINT.toleration()]}


def efa_device_plugin_values(instance_type: str, region: str) -> dict[str, Any]:
    """Values that put the EFA plugin on the GPU nodes of ``instance_type``, with its image from ``region``.

    The chart tolerates no taint, knows only the types of its day, and names the registry of us-west-2.
    """
    return {
        "image": {"repository": f"{eks_image_registry(region)}/eks/aws-efa-k8s-device-plugin"},
        "supportedInstanceLabels": {"keys": ["node.kubernetes.io/instance-type"], "values": [instance_type]},
        "nodeSelector": {NODE_GROUP_LABEL: GPU_NODE_LABELS[NODE_GROUP_LABEL]},
        "tolerations": [GPU_TAINT.toleration()],
    }


def kuberay_operator_values() -> dict[str, Any]:
    """Values that keep the KubeRay operator on the system nodes."""
    return {"nodeSelector": dict(SYSTEM_NODE_LABELS)}


def kuberay_crd_urls(version: str) -> list[str]:
    """The CRD files of one KubeRay release, as its repository holds them.

    Args:
        version: Chart version, with or without a leading v, such as 1.6.0.

    Raises:
        StackFaults: Not a version, so that no release can be derived from it.
    """
    number = version.removeprefix("v")
    major, dot, rest = number.partition(".")
    minor = rest.partition(".")[0]
    if not (dot and major.isdigit() and minor.isdigit()):
        at = path("addons", "kuberayOperator", "version")
        fix = (
            f"{set_to(at, KUBERAY_OPERATOR.version)} (or name the files in {path('addons', 'kuberayOperator', 'crds')})"
        )
        raise StackFaults([Fault(at, "it is not a release, so its CRD files cannot be told", fix, version)])
    kinds = ["rayclusters", "rayjobs", "rayservices"]
    if (int(major), int(minor)) >= _CRON_JOBS_SINCE:
        kinds.append("raycronjobs")
    return [f"{_KUBERAY_CRD_ROOT}/v{number}/helm-chart/kuberay-operator/crds/ray.io_{kind}.yaml" for kind in kinds]
