"""The contract between node groups, device plugins and pods: a node's labels, its taint, and where its own disks are.

Everything that makes nodes, selects nodes or tolerates a taint reads it from here, so that the sides cannot drift apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

NODE_GROUP_LABEL: Final = "ray-llm-eks/node-group"
"""The label that tells the two node groups apart; a pod selects its group with it."""

SYSTEM_NODE_LABELS: Final[Mapping[str, str]] = MappingProxyType({NODE_GROUP_LABEL: "system"})
"""Labels of the CPU nodes: the KubeRay operator, the Ray head and cluster add-ons select these."""

GPU_NODE_LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NODE_GROUP_LABEL: "gpu",
        # The NVIDIA device plugin selects this one; without it the DaemonSet wants no node and says nothing.
        "nvidia.com/gpu.present": "true",
    }
)
"""Labels of the GPU nodes: Ray workers and the device plugins select these."""


@dataclass(frozen=True)
class Taint:
    """A node taint, in the spelling of both APIs that need it."""

    key: str
    value: str
    effect: str
    """As Kubernetes spells it: ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``."""

    @property
    def eks_effect(self) -> str:
        """The effect as the EKS API spells it, such as ``NO_SCHEDULE``."""
        return {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}[
            self.effect
        ]

    def toleration(self) -> dict[str, str]:
        """The pod toleration that matches exactly this taint."""
        return {"key": self.key, "operator": "Equal", "value": self.value, "effect": self.effect}


NODE_STORAGE: Final = "/mnt/k8s-disks/0"
"""Where nodeadm mounts the RAID0 over an instance's NVMe disks (awslabs/amazon-eks-ami, ``localStorage.strategy: RAID0``). The
images of containerd, the kubelet's directories and the logs move there too, so pods share it with them."""

GPU_TAINT: Final = Taint(key="nvidia.com/gpu", value="true", effect="NoSchedule")
"""Keeps pods without a GPU off the GPU nodes."""
