"""The nodes of a cluster, as AWS hands them to Kubernetes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Taint:
    """A taint in Kubernetes' words: ``effect`` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class Node:
    """An instance that has joined its cluster.

    Attributes:
        name: Its private DNS name, which the kubelet registers.
        instance_id: EC2's id.
        instance_type: EC2's type.
        zone: Its Availability Zone.
        group: Name of its node group.
        labels: Those of its group and those that EKS and the kubelet set.
        taints: Those of its group.
        efa_interfaces: How many EFA devices it was launched with.
        vcpus: vCPU of its type.
        memory_mib: Memory of its type, as EC2 gives it.
        gpus: GPUs of its type.
        pods: How many pods the VPC CNI finds addresses for.
    """

    name: str
    instance_id: str
    instance_type: str
    zone: str
    group: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    efa_interfaces: int
    vcpus: int = 0
    memory_mib: int = 0
    gpus: int = 0
    pods: int = 110


Nodes = Callable[[str], Sequence[Node]]
"""Asks AWS for the nodes of a cluster, by its name."""
