"""Node objects for the instances that have joined, with what a kubelet would say they have to give."""

import json
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

_OF_ITS_GROUP: Final = "sandbox/of-its-group"
"""Annotation of a node: the labels and taints that it has from its group, so that a group's old ones can go."""

# Of the memory that EC2 states, firmware and kernel leave 97.2 of 100 on a g5.8xlarge (aws/aws-k8s-tester#471) and 97.4 on a
# p3dn.24xlarge.
_VISIBLE: Final = 0.97
# The EFA installer of the accelerated AMIs sets huge pages aside for each vCPU: 3.4 GiB were seen on the 32 of a g6.8xlarge.
# Nodes with the AL2 AMIs of 2023 had twice as much (hugepages-2Mi 21122Mi on 96, 42242Mi on 192).
_HUGE_PAGES_MIB: Final = 110
_EVICTION_MIB: Final = 100


def match(api: Api, wanted: Sequence[Node], running: Sequence[Mapping[str, Any]]) -> None:
    """Makes the cluster's nodes those that have joined.

    New ones come. Others go with their pods, as where EKS drains a node and terminates its instance; unlike EKS, which waits
    for a pod's disruption budget, nothing is waited for.

    Args:
        api: The cluster's API server.
        wanted: The nodes that have joined.
        running: All pods.

    Raises:
        Refusal: The API server refuses, or does not answer.
    """
    found = {one["metadata"]["name"]: one for one in api.items(_NODES)}
    for node in wanted:
        there = found.pop(node.name, None)
        if there is None:
            api.create(_NODES, document(node))
        else:
            _regroup(api, node, there)
            _advertise(api, node, there, running)
    for name in found:
        api.patch(f"{_NODES}/{name}", {"spec": {"unschedulable": True}})
        for pod in running:
            if pod["spec"].get("nodeName") == name:
                api.delete(pods.path(pod), gracePeriodSeconds=0)
        api.delete(f"{_NODES}/{name}")


def document(node: Node) -> dict[str, Any]:
    """The Node object that its kubelet registers, devices left out: these come with their plugins."""
    capacity, allocatable = resources(node)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": dict(node.labels),
            "annotations": {_OF_ITS_GROUP: json.dumps(_of_its_group(node))},
        },
        "spec": {"providerID": f"aws:///{node.zone}/{node.instance_id}", "taints": _taints(node)},
        "status": {"capacity": capacity, "allocatable": allocatable},
    }


def resources(node: Node) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable of an EKS node without devices.

    What the kubelet keeps: awslabs/amazon-eks-ami, nodeadm/internal/kubelet/config.go (CPU by share; 255 MiB and 11 MiB for
    each pod that finds an address; below 100 MiB it evicts). What is set aside as huge pages counts as memory of the node and
    is not for pods that ask for memory.
    """
    visible = int(node.memory_mib * _VISIBLE)
    huge_pages = node.vcpus * _HUGE_PAGES_MIB if node.gpus else 0
    left = visible - huge_pages - 255 - 11 * node.pods - _EVICTION_MIB
    shared = {"pods": str(node.pods), "hugepages-2Mi": f"{huge_pages}Mi"}
    return (
        {"cpu": str(node.vcpus), "memory": f"{visible}Mi", **shared},
        {"cpu": f"{node.vcpus * 1000 - _kept_millicpus(node.vcpus)}m", "memory": f"{left}Mi", **shared},
    )


def _kept_millicpus(vcpus: int) -> int:
    # 6% of the first CPU, 1% of the second, 0.5% of the next two, 0.25% of the others, each rounded down.
    shares = ((0, 1, 600), (1, 2, 100), (2, 4, 50), (4, vcpus, 25))
    return sum(max(min(vcpus, end) - start, 0) * 1000 * share // 10000 for start, end, share in shares)


def _taints(node: Node) -> list[dict[str, str]]:
    return [{"key": one.key, "value": one.value, "effect": one.effect} for one in node.taints]


def _of_its_group(node: Node) -> dict[str, Any]:
    return {"labels": dict(node.labels), "taints": _taints(node)}


def _regroup(api: Api, node: Node, found: Mapping[str, Any]) -> None:
    """Gives a node the labels and taints that its group has now (EKS API reference, UpdateNodegroupConfig)."""
    now = _of_its_group(node)
    before = json.loads((found["metadata"].get("annotations") or {}).get(_OF_ITS_GROUP, "{}"))
    if before == now:
        return
    gone = {key: None for key in before.get("labels", {}).keys() - now["labels"].keys()}
    # The server's own taints, such as that of a node which is not ready, stay.
    others = [one for one in found["spec"].get("taints") or () if _plain(one) not in before.get("taints", ())]
    change = {
        "metadata": {"labels": {**gone, **now["labels"]}, "annotations": {_OF_ITS_GROUP: json.dumps(now)}},
        "spec": {"taints": [*others, *(one for one in now["taints"] if one not in map(_plain, others))]},
    }
    api.patch(f"{_NODES}/{node.name}", change)


def _plain(taint: Mapping[str, Any]) -> dict[str, str]:
    return {"key": taint["key"], "value": taint.get("value", ""), "effect": taint["effect"]}


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
