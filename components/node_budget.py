"""What a node offers to pods and what is on it before any pod of ours, and what the system nodes have to hold.

CPU and memory that the kubelet keeps: awslabs/amazon-eks-ami, nodeadm. Requests of the head, the autoscaler and the
operator are read from the documents that are deployed, or from the chart at its pinned version.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from components.pods import head_pod_template
from components.quantities import mebibytes, millicpus
from components.ray_cluster import ray_cluster_config
from components.serve_app import Role


@dataclass(frozen=True)
class Budget:
    """CPU in thousandths and memory in MiB."""

    millicpus: int
    memory_mib: int

    def __add__(self, other: "Budget") -> "Budget":
        return Budget(self.millicpus + other.millicpus, self.memory_mib + other.memory_mib)

    def __sub__(self, other: "Budget") -> "Budget":
        return Budget(self.millicpus - other.millicpus, self.memory_mib - other.memory_mib)

    def times(self, other: "Budget") -> int:
        """How often ``other`` goes into this budget, in both resources."""
        return max(min(self.millicpus // other.millicpus, self.memory_mib // other.memory_mib), 0)

    def __str__(self) -> str:
        return f"{self.millicpus / 1000:g} CPU and {self.memory_mib / 1024:.1f} GiB"


DAEMON_SETS: Final = Budget(300, 512)
"""A generous share for the CNI (50m), kube-proxy (100m) and the device plugins of a node."""

OPERATOR: Final = Budget(100, 512)
"""KubeRay operator: limits without requests, so its requests are these (chart 1.6.0, values.yaml)."""

COREDNS: Final = Budget(200, 140)
"""Two replicas of CoreDNS, 100m and 70Mi each (EKS add-on)."""

IMAGE_RESERVE_GB: Final = 100
"""Room on a GPU node's disks for the worker's image, packed and unpacked, the plugins' images and the logs: an estimate, since the
registry tells the packed size only."""

DISK_KEPT_FREE: Final = 0.10
"""Below it the kubelet evicts pods (nodefs.available: awslabs/amazon-eks-ami, nodeadm)."""

# The size decides the vCPUs and the letter the GiB for each, from the fifth generation on. The image is x86_64: no Graviton (g).
_SYSTEM_TYPE: Final = re.compile(
    r"(?P<letter>[cmr])[5-9](?P<options>[a-z]*)(?:-flex)?\.(?:(?P<large>large)|(?P<factor>\d*)xlarge)"
)
_GIB_PER_VCPU: Final = {"c": 2, "m": 4, "r": 8}
_VISIBLE_SHARE: Final = 0.97
_PODS_LIMIT: Final = 110


def kubelet_millicpus(vcpus: int) -> int:
    """What the kubelet keeps: 6% of the first CPU, 1% of the second, 0.5% of the next two, 0.25% of the rest, rounded up."""
    quarter_permille = 240 + (40 if vcpus > 1 else 0) + 20 * min(max(vcpus - 2, 0), 2) + 10 * max(vcpus - 4, 0)
    return -(-quarter_permille // 4)


def worker_budget(vcpus: int, allocatable_memory_mib: int) -> Budget:
    """What one worker pod may request on a GPU node."""
    return Budget(
        vcpus * 1000 - kubelet_millicpus(vcpus) - DAEMON_SETS.millicpus, allocatable_memory_mib - DAEMON_SETS.memory_mib
    )


def weights_room_gb(nvme_gb: int) -> float:
    """What is left for weights on a GPU node with ``nvme_gb`` GB (10^9 bytes) of instance storage."""
    return max(nvme_gb * (1 - DISK_KEPT_FREE) - IMAGE_RESERVE_GB, 0.0)


def system_node(instance_type: str) -> Budget | None:
    """A floor of what one CPU node offers to pods, or None for a type whose size cannot be read from its name.

    EC2 gives C, M and R types 2, 4 and 8 GiB for each vCPU; some variants (c5n) have more.
    """
    match = _SYSTEM_TYPE.fullmatch(instance_type)
    if match is None or "g" in match["options"]:
        return None
    vcpus = 2 if match["large"] else 4 * int(match["factor"] or 1)
    memory_mib = int(vcpus * _GIB_PER_VCPU[match["letter"]] * 1024 * _VISIBLE_SHARE) - 255 - 11 * _PODS_LIMIT - 100
    return Budget(vcpus * 1000 - kubelet_millicpus(vcpus), memory_mib)


def head_budget() -> Budget:
    """What the Ray head pod requests, its autoscaler included."""
    containers: list[dict[str, Any]] = head_pod_template("image", "account", None)["spec"]["containers"]
    cluster = ray_cluster_config("0.0.0", {}, {}, 1, dict.fromkeys(Role, 1))
    autoscaler = cluster["autoscalerOptions"]["resources"] if cluster.get("enableInTreeAutoscaling") else None
    resources = [container["resources"] for container in containers] + ([autoscaler] if autoscaler else [])
    requests: list[dict[str, str]] = [entry["requests"] for entry in resources]
    return Budget(
        sum(millicpus(request["cpu"]) for request in requests),
        sum(mebibytes(request["memory"]) for request in requests),
    )


def system_demand(nodes: int) -> Budget:
    """What the node of the head has to hold: with a single node the operator and CoreDNS as well."""
    demand = head_budget() + DAEMON_SETS
    return demand + OPERATOR + COREDNS if nodes == 1 else demand


def heads_held(room: Budget, nodes: int) -> int:
    """How many Ray heads ``nodes`` CPU nodes that offer ``room`` each hold, with operator and CoreDNS on one of them."""
    head = head_budget()
    with_operator = (room - DAEMON_SETS - OPERATOR - COREDNS).times(head)
    return with_operator + (nodes - 1) * (room - DAEMON_SETS).times(head)
