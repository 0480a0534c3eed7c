"""What the nodes of a real cluster have to give, against nodes that were seen and against what the program counts on."""

import re
from dataclasses import replace
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES as EC2_TYPES

from components.node_budget import kubelet_millicpus
from policies.ray_efa_policies.instances import INSTANCE_TYPES
from sandbox.aws.life.node_groups import pods_of
from sandbox.cluster import nodes
from sandbox.cluster.api import Api
from sandbox.nodes import Node, Taint

NODE = Node(
    name="ip-10-20-1-5.ec2.internal",
    instance_id="i-0123456789abcdef0",
    instance_type="m7i.xlarge",
    zone="us-east-1a",
    group="system",
    labels={"role": "system"},
    taints=(),
    efa_interfaces=0,
    vcpus=4,
    memory_mib=16384,
    pods=58,
)


def mebibytes(text: str) -> int:
    return int(text.removesuffix("Mi"))


def test_a_system_node_keeps_what_nodeadm_keeps() -> None:
    capacity, allocatable = nodes.resources(NODE)
    assert (capacity["cpu"], allocatable["cpu"]) == ("4", "3920m")
    # 255 MiB, 11 MiB for each of 58 pods, 100 MiB of eviction.
    assert mebibytes(capacity["memory"]) - mebibytes(allocatable["memory"]) == 255 + 11 * 58 + 100
    assert allocatable["hugepages-2Mi"] == "0Mi"
    assert allocatable["pods"] == "58"


@pytest.mark.parametrize(
    ("memory_gib", "memory_kib"),
    # `kubectl get nodes -o json` of a p3dn.24xlarge and a p4d.24xlarge, as their owners published it, with the AL2 AMI of the time.
    [(768, 753772012), (1152, 1146004920)],
)
def test_a_gpu_node_offers_a_little_less_than_seen_ones(memory_gib: int, memory_kib: int) -> None:
    node = replace(NODE, vcpus=96, memory_mib=memory_gib * 1024, pods=737, gpus=8)
    _, allocatable = nodes.resources(node)
    assert allocatable["cpu"] == "95690m"
    # Those huge pages were 21,122 MiB.
    free = mebibytes(allocatable["memory"]) + mebibytes(allocatable["hugepages-2Mi"])
    assert 0.99 < free / (memory_kib / 1024 + 21122) <= 1


@pytest.mark.parametrize("type", sorted(INSTANCE_TYPES.keys() & EC2_TYPES.keys()))
def test_a_gpu_node_offers_what_the_program_counts_on(type: str) -> None:
    known, pods = INSTANCE_TYPES[type], pods_of(EC2_TYPES[type])
    node = replace(NODE, vcpus=known.vcpus, memory_mib=known.memory_mib, gpus=known.gpus, pods=pods)
    _, allocatable = nodes.resources(node)
    assert int(allocatable["cpu"].removesuffix("m")) >= known.vcpus * 1000 - kubelet_millicpus(known.vcpus)
    assert mebibytes(allocatable["memory"]) >= known.allocatable_memory_mib


def test_only_the_default_network_card_has_addresses_for_pods() -> None:
    # awslabs/amazon-eks-ami, nodeadm/internal/kubelet/instance-info.jsonl: 4 x 14 + 2, 8 x 29 + 2, 15 x 49 + 2, 2 x 49 + 2.
    assert {type: pods_of(EC2_TYPES[type]) for type in ("m7i.xlarge", "g6.8xlarge", "p4d.24xlarge", "p5.48xlarge")} == {
        "m7i.xlarge": 58,
        "g6.8xlarge": 234,
        "p4d.24xlarge": 737,
        "p5.48xlarge": 100,
    }


def test_devices_are_not_there_before_their_plugins() -> None:
    found = nodes.document(replace(NODE, gpus=1, efa_interfaces=1))
    assert not found["status"]["allocatable"].keys() & {"nvidia.com/gpu", "vpc.amazonaws.com/efa"}


class Recorder(Api):
    """An API server with one node, which keeps what is asked of it."""

    def __init__(self, node: dict[str, Any]) -> None:
        self.node = node
        self.asked: list[tuple[str, str, Any]] = []

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        return [self.node]

    def create(self, path: str, document: Any) -> dict[str, Any]:
        self.asked.append(("create", path, document))
        return {}

    def patch(self, path: str, change: Any) -> dict[str, Any]:
        self.asked.append(("patch", path, change))
        return {}

    def delete(self, path: str, **options: Any) -> None:
        self.asked.append(("delete", path, options))


def plugin(image: str, node: str, ready: bool = True) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": {"namespace": "kube-system", "name": "plugin"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": image}]},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("image", "resource"),
    [
        ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "nvidia.com/gpu"),
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com/mirror/k8s-device-plugin@sha256:ab", "nvidia.com/gpu"),
        ("602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.30", "vpc.amazonaws.com/efa"),
    ],
)
def test_a_ready_plugin_advertises_the_devices_of_its_node_only(image: str, resource: str) -> None:
    node = replace(NODE, gpus=8, efa_interfaces=32)
    count = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}[resource]
    api = Recorder(nodes.document(node))
    nodes.match(api, [node], [plugin(image, "another"), plugin(image, node.name, ready=False)])
    assert api.asked == []
    nodes.match(api, [node], [plugin(image, node.name)])
    ((_, path, change),) = api.asked
    assert path == f"/api/v1/nodes/{node.name}/status"
    assert change == {"status": {"capacity": {resource: count}, "allocatable": {resource: count}}}


def test_devices_are_withdrawn_when_their_plugin_goes() -> None:
    node = replace(NODE, gpus=1)
    found = nodes.document(node)
    found["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    api = Recorder(found)
    nodes.match(api, [node], [])
    assert [change for *_, change in api.asked] == [
        {"status": {"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {"nvidia.com/gpu": "0"}}}
    ]


def test_a_groups_new_taint_leaves_the_servers_own_in_place() -> None:
    found = nodes.document(replace(NODE, taints=(Taint("old", "", "NoSchedule"),)))
    found["spec"]["taints"].append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
    api = Recorder(found)
    nodes.match(api, [replace(NODE, labels={"role": "other"}, taints=(Taint("new", "x", "NoExecute"),))], [])
    ((_, _, change),) = api.asked
    assert [one["key"] for one in change["spec"]["taints"]] == ["node.kubernetes.io/not-ready", "new"]
    assert change["metadata"]["labels"] == {"role": "other"}


def test_a_node_that_left_is_cordoned_emptied_and_deleted() -> None:
    api = Recorder(nodes.document(NODE))
    nodes.match(api, [], [plugin("any", NODE.name), plugin("any", "another")])
    assert [(verb, re.sub(r".*/", "", path)) for verb, path, _ in api.asked] == [
        ("patch", NODE.name),
        ("delete", "plugin"),
        ("delete", NODE.name),
    ]
