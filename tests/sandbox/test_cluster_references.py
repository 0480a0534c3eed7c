"""Secrets and ConfigMaps that a pod refers to, and the kubelet's words when one is missing."""

from typing import Any

import pytest

from sandbox.cluster.api import Api
from sandbox.cluster.references import missing


class Store(Api):
    """An API server that has one Secret and one ConfigMap, each named ``there`` with a key ``key``."""

    def __init__(self) -> None:
        """Needs no server."""

    def find(self, path: str) -> dict[str, Any] | None:
        there = path in (f"/api/v1/namespaces/space/{kind}/there" for kind in ("secrets", "configmaps"))
        return {"data": {"key": "x"}} if there else None


def pod(container: dict[str, Any] | None = None, **volume: Any) -> dict[str, Any]:
    volumes = [{"name": "volume", **volume}] if volume else []
    containers = [{"name": "main", "image": "nothing", **(container or {})}]
    return {"metadata": {"namespace": "space"}, "spec": {"containers": containers, "volumes": volumes}}


def variable(kind: str, **reference: Any) -> dict[str, Any]:
    return {"env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {kind: reference}}]}


@pytest.mark.parametrize(
    "found",
    [
        pod(),
        pod(emptyDir={}),
        pod(secret={"secretName": "there"}),
        pod(configMap={"name": "gone", "optional": True}),
        pod(projected={"sources": [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "there"}}]}),
        pod(variable("secretKeyRef", name="there", key="key")),
        pod(variable("secretKeyRef", name="gone", key="key", optional=True)),
        pod(variable("fieldRef", fieldPath="status.podIP")),
        pod({"envFrom": [{"configMapRef": {"name": "there"}}]}),
    ],
)
def test_a_pod_that_has_all_starts(found: dict[str, Any]) -> None:
    assert missing(Store(), found) is None


@pytest.mark.parametrize(
    ("found", "reason", "message"),
    [
        (
            pod(secret={"secretName": "gone"}),
            "ContainerCreating",
            'MountVolume.SetUp failed for volume "volume" : secret "gone" not found',
        ),
        (
            pod(projected={"sources": [{"secret": {"name": "gone"}}]}),
            "ContainerCreating",
            'MountVolume.SetUp failed for volume "volume" : secret "gone" not found',
        ),
        (
            pod(variable("configMapKeyRef", name="gone", key="key")),
            "CreateContainerConfigError",
            'configmap "gone" not found',
        ),
        (
            pod(variable("secretKeyRef", name="there", key="other")),
            "CreateContainerConfigError",
            "couldn't find key other in Secret space/there",
        ),
        (pod({"envFrom": [{"secretRef": {"name": "gone"}}]}), "CreateContainerConfigError", 'secret "gone" not found'),
    ],
)
def test_what_is_missing_is_said_as_the_kubelet_says_it(found: dict[str, Any], reason: str, message: str) -> None:
    assert missing(Store(), found) == (reason, message)
