"""The components of kubernetes:yaml/v2 against a resource monitor that records what is registered."""

from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, resource_pb2, resource_pb2_grpc

from sandbox.kubernetes import Kubernetes
from sandbox.standin import UNKNOWN, ResourceRef, StandInError
from sandbox.wire import decode, encode

RELEASE = "https://raw.githubusercontent.com/ray-project/kuberay/{}/helm-chart/kuberay-operator/crds/ray.io_{}.yaml"
MANIFEST = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}"


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    def __init__(self) -> None:
        self.requests: list[Any] = []

    def RegisterResource(self, request: Any, context: Any) -> resource_pb2.RegisterResourceResponse:
        self.requests.append(request)
        return resource_pb2.RegisterResourceResponse(urn=f"urn:{request.name}", object=request.object)

    def RegisterResourceOutputs(self, request: Any, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()


@pytest.fixture
def monitor() -> Iterator[tuple[Monitor, str]]:
    recorder = Monitor()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(recorder, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield recorder, f"127.0.0.1:{port}"
    server.stop(None)


def construct(endpoint: str, inputs: dict[str, Any], kind: str = "yaml/v2:ConfigGroup") -> Kubernetes:
    stand_in = Kubernetes()
    stand_in.construct(
        provider_pb2.ConstructRequest(
            type=f"kubernetes:{kind}",
            name="group",
            monitorEndpoint=endpoint,
            inputs=encode(inputs),
            providers={"kubernetes": "urn:provider::id"},
        )
    )
    return stand_in


def test_the_objects_of_a_group_become_its_children(monitor: tuple[Monitor, str]):
    construct(monitor[1], {"yaml": MANIFEST})
    parent, child = monitor[0].requests
    assert (parent.type, parent.custom) == ("kubernetes:yaml/v2:ConfigGroup", False)
    assert (child.type, child.name, child.parent) == ("kubernetes:core/v1:ConfigMap", "group:b/a", "urn:group")
    assert child.provider == "urn:provider::id"


def test_a_group_reads_files_by_pattern(monitor: tuple[Monitor, str], tmp_path: Path):
    (tmp_path / "one.yaml").write_text(MANIFEST)
    construct(monitor[1], {"files": [f"{tmp_path}/*.yaml"], "resourcePrefix": "p", "skipAwait": True})
    child = monitor[0].requests[1]
    assert child.name == "p:b/a"
    assert decode(child.object)["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


def test_what_is_in_an_unknown_manifest_is_not_guessed(monitor: tuple[Monitor, str]):
    construct(monitor[1], {"yaml": UNKNOWN})
    assert [one.name for one in monitor[0].requests] == ["group"]


@pytest.mark.parametrize("plural", ["rayclusters", "rayjobs", "rayservices", "raycronjobs"])
def test_the_crds_of_the_recorded_kuberay_release_are_answered(monitor: tuple[Monitor, str], plural: str):
    stand_in = construct(monitor[1], {"files": [RELEASE.format("v1.6.0", plural)]})
    child = monitor[0].requests[1]
    assert child.name == f"group:{plural}.ray.io"
    ref = ResourceRef("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "urn", plural)
    assert stand_in.check(ref, decode(child.object), None, b"").failures == []
    assert stand_in.remarks == []


def test_another_url_is_left_out_and_said(monitor: tuple[Monitor, str]):
    stand_in = construct(monitor[1], {"files": [RELEASE.format("v1.4.0", "rayjobs")]})
    assert [one.name for one in monitor[0].requests] == ["group"]
    assert stand_in.remarks == [f"not fetched: {RELEASE.format('v1.4.0', 'rayjobs')}"]


@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        ({"files": ["/nowhere/a.yaml"]}, "yaml/v2:ConfigGroup", "/nowhere/a.yaml: there is no such manifest"),
        (
            {"yaml": "{apiVersion: v1, kind: ConfigMap}"},
            "yaml/v2:ConfigGroup",
            "a ConfigMap of the manifest has no metadata.name",
        ),
        (
            {"chart": "x"},
            "helm.sh/v4:Chart",
            "kubernetes:helm.sh/v4:Chart: the sandbox has no charts to render; install a chart as a Release (kubernetes:helm.sh/v3:Release)",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    monitor: tuple[Monitor, str], inputs: dict[str, Any], kind: str, message: str
):
    with pytest.raises(StandInError) as refusal:
        construct(monitor[1], inputs, kind)
    assert str(refusal.value) == message
