"""Node objects for the instances that have joined, with what a kubelet would say they have to give."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sandbox.cluster import pods
from sandbox.cluster.api import Api
from sandbox.nodes import Node

_NODES: Final = "/api/v1/nodes"
_PLUGINS: Final[Mapping[str, str]] = {
    "k8s-device-plugin": "nvidia.com/gpu",
    "aws-efa-k8s-device-plugin": "vpc.amazonaws.com/efa",
}
"""Last part of a device plugin's image -> the resource that it advertises."""

# What the kernel leaves of the memory that EC2 states, about 97 of 100: 15,9xx MiB of an m7i.xlarge's 16,384.
_VISIBLE: Final = 0.97
# The EFA installer on the accelerated AMIs sets so many MiB aside for each vCPU (seen on g6: 3.4 GiB for 32).
_HUGE_PAGES_MIB: Final = 110
_EVICTION_MIB: Final = 100


def match(api: Api, wanted: Sequence[Node], running: Sequence[Mapping[str, Any]]) -> None:
    """Makes the cluster's nodes those that have joined: new ones come, others go with their pods, as EKS drains them."""
    names = {one.name for one in wanted}
    found = {one["metadata"]["name"]: one for one in api.items(_NODES)}
    for node in wanted:
        if node.name not in found:
            api.create(_NODES, document(node))
    for name in found.keys() - names:
        api.patch(f"{_NODES}/{name}", {"spec": {"unschedulable": True}})
        for pod in running:
            if pod["spec"].get("nodeName") == name:
                api.delete(pods.path(pod), gracePeriodSeconds=0)
        api.delete(f"{_NODES}/{name}")
    for node in wanted:
        if node.name in found:
            _advertise(api, node, found[node.name], running)


def document(node: Node) -> dict[str, Any]:
    """The Node object that its kubelet registers, devices left out: these come with their plugins."""
    capacity, allocatable = resources(node)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "spec": {
            "providerID": f"aws:///{node.zone}/{node.instance_id}",
            "taints": [{"key": one.key, "value": one.value, "effect": one.effect} for one in node.taints],
        },
        "status": {"capacity": capacity, "allocatable": allocatable},
    }


def resources(node: Node) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable of an EKS node without devices.

    What the kubelet keeps: awslabs/amazon-eks-ami, nodeadm/internal/kubelet/config.go (CPU by share, 255 MiB and 11 MiB for
    each pod that finds an address, 100 MiB below which it evicts).
    """
    visible = int(node.memory_mib * _VISIBLE)
    huge_pages = node.vcpus * _HUGE_PAGES_MIB if node.gpus else 0
    kept = 255 + 11 * node.pods + _EVICTION_MIB
    cpu = {"cpu": str(node.vcpus)}, {"cpu": f"{node.vcpus * 1000 - _kept_millicpus(node.vcpus)}m"}
    shared = {"pods": str(node.pods), "hugepages-2Mi": f"{huge_pages}Mi"}
    memory = {"memory": f"{visible}Mi"}, {"memory": f"{visible - huge_pages - kept}Mi"}
    return {**cpu[0], **memory[0], **shared}, {**cpu[1], **memory[1], **shared}


def _kept_millicpus(vcpus: int) -> int:
    # 6% of the first, 1% of the second, 0.5% of the next two, 0.25% of each further one.
    shares = [60.0, 10.0, 5.0, 5.0][:vcpus] + [2.5] * max(vcpus - 4, 0)
    return round(sum(shares))


def _advertise(api: Api, node: Node, found: Mapping[str, Any], running: Sequence[Mapping[str, Any]]) -> None:
    plugins = {
        _repository(image)
        for pod in running
        if pod["spec"].get("nodeName") == node.name and pods.is_ready(pod)
        for image in pods.images(pod)
    }
    counts = {"nvidia.com/gpu": node.gpus, "vpc.amazonaws.com/efa": node.efa_interfaces}
    allocatable = found["status"].get("allocatable", {})
    change: dict[str, str] = {}
    for plugin, resource in _PLUGINS.items():
        count = counts[resource] if plugin in plugins else 0
        # A kubelet whose plugin is gone says 0; one that never had any says nothing.
        if allocatable.get(resource, "0") != str(count):
            change[resource] = str(count)
    if change:
        api.patch(f"{_NODES}/{node.name}/status", {"status": {"capacity": change, "allocatable": change}})


def _repository(image: str) -> str:
    """``k8s-device-plugin`` of ``nvcr.io/nvidia/k8s-device-plugin:v0.20.0``."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]
