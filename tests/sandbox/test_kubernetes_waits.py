"""What waits for nodes and devices in the echo: the operator's release, and a RayService that is to be Ready."""

from pathlib import Path
from typing import Any

import pytest

from sandbox.nodes import Node, Taint
from sandbox.standin import InitFailed
from tests.sandbox.test_kubernetes_life import Cluster, crd, namespace, node, operator, ray_service, refusal


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "kubernetes")


GPU_TAINT = Taint("nvidia.com/gpu", "true", "NoSchedule")


@pytest.mark.parametrize(
    ("nodes", "values", "comes"),
    [
        ([], {}, False),
        ([node({}, GPU_TAINT)], {}, False),
        ([node({}, GPU_TAINT)], {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}, True),
        ([node({}, GPU_TAINT)], {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, False),
        ([node({}, GPU_TAINT)], {"tolerations": [{"key": "nvidia.com/gpu", "value": "true"}]}, True),
        ([node({"role": "gpu"})], {"nodeSelector": {"role": "system"}}, False),
        ([node({"role": "system"})], {"nodeSelector": {"role": "system"}}, True),
        ([node({}, Taint("a", "", "PreferNoSchedule"))], {}, True),
    ],
)
def test_the_operators_release_waits_for_a_node_that_takes_it(
    nodes: list[Node], values: dict[str, Any], comes: bool, cluster: Cluster
) -> None:
    cluster.create(namespace())
    cluster.nodes = nodes
    if comes:
        assert cluster.create(operator(values=values, atomic=True))[0] == "inference/kuberay-operator"
        return
    assert refusal(cluster.create, operator(values=values, atomic=True)) == (
        "release kuberay-operator failed, and has been uninstalled due to atomic being set: context deadline exceeded"
    )
    assert cluster.ids() == ["Namespace inference"]
    with pytest.raises(InitFailed, match="context deadline exceeded"):
        cluster.create(operator(values=values))
    assert cluster.ids() == ["Namespace inference", "Release inference/kuberay-operator"]


def worker(**limits: str) -> dict[str, Any]:
    pod = {"nodeSelector": {"role": "gpu"}, "containers": [{"resources": {"limits": limits}}]}
    return ray_service(workerGroupSpecs=[{"template": {"spec": pod}}])


def test_a_service_waits_for_nodes_and_devices(cluster: Cluster) -> None:
    for document in (namespace(), crd(), operator()):
        cluster.create(document)

    def lacks() -> str:
        with pytest.raises(InitFailed) as failed:
            cluster.create(worker(**{"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}))
        cluster.delete("inference/llm", ray_service())
        return str(failed.value).rpartition("condition ")[2]

    assert lacks() == "(Insufficient nvidia.com/gpu: nvidia-device-plugin is not installed)"
    cluster.create(operator(chart="nvidia-device-plugin", name="gpu"))
    assert lacks() == "(Insufficient vpc.amazonaws.com/efa: aws-efa-k8s-device-plugin is not installed)"
    cluster.create(operator(chart="aws-efa-k8s-device-plugin", name="efa"))
    assert lacks() == "(its pods are Pending: no node takes them)"
    cluster.nodes.append(node({"role": "gpu"}))
    assert cluster.create(worker(**{"nvidia.com/gpu": "1"}))[0] == "inference/llm"
