"""The dev stack on a real Kubernetes: made, looked at, changed, taken away. One life; each test goes on where the last one stopped."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from sandbox import cli
from sandbox.cluster.objects import path_of
from sandbox.cluster.tools import Tools
from sandbox.engine import Sandbox
from sandbox.standin import ResourceRef
from tests.cluster.stacks import CLUSTER, Cluster, uids
from tests.lifecycle.runs import CHECKOUT, SERVICE, Steps

pytestmark = pytest.mark.cluster

CRDS = {"rayclusters.ray.io", "raycronjobs.ray.io", "rayjobs.ray.io", "rayservices.ray.io"}
MORE_DECODE = {"ray-llm-eks:decode.replicas": "2", "ray-llm-eks:gpuNodes.count": "3"}
OTHER_LENGTH = {**MORE_DECODE, "ray-llm-eks:model.maxModelLen": "2048"}
OTHER_IMAGE = {**OTHER_LENGTH, "ray-llm-eks:service.image": "registry.example/ray-llm:v2"}


class AtTheEnd:
    """Keeps what is in the API server at the moment in which AWS is asked to delete the cluster."""

    def __init__(self) -> None:
        self.sandbox: Sandbox | None = None
        self.left: set[str] = set()
        self.ray: list[str] = []

    def __call__(self, operation: str, ref: ResourceRef) -> None:
        if operation == "delete" and ref.token == "aws:eks/cluster:Cluster":
            assert self.sandbox is not None
            self.left = {one.name for one in self.sandbox.inventory() if one.made_by.startswith("kubernetes:")}
            every_pod = Cluster(self.sandbox).sandbox.clusters.api(CLUSTER).items("/api/v1/pods")
            self.ray = [one["metadata"]["name"] for one in every_pod if "ray.io/cluster" in one["metadata"]["labels"]]


@pytest.fixture(scope="module")
def at_the_end() -> AtTheEnd:
    return AtTheEnd()


@pytest.fixture(scope="module")
def sandbox(programs: Tools, at_the_end: AtTheEnd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    home = tmp_path_factory.mktemp("life")
    with Sandbox(cli.find(print), home, on_call=at_the_end, say=print, real=lambda: programs) as sandbox:
        at_the_end.sandbox = sandbox
        yield sandbox
        # Only after a failure is there anything left.
        for name in sandbox.clusters.names():
            sandbox.clusters.stop(name)


@pytest.fixture(scope="module")
def made(sandbox: Sandbox) -> Cluster:
    done = Steps(sandbox.up(CHECKOUT, "dev"))
    assert done.exit_code == 0, done.output
    return Cluster(sandbox)


def changed(cluster: Cluster, config: Mapping[str, str]) -> Steps:
    done = Steps(cluster.sandbox.up(CHECKOUT, "dev", config, preview_first=False))
    assert done.exit_code == 0, done.output
    return done


def test_the_head_is_on_the_system_node_and_the_roles_on_gpu_nodes_of_their_own(made: Cluster) -> None:
    (head,), (prefill,), (decode,) = made.ray_pods.values()
    where = {name: one["spec"]["nodeName"] for name, one in (("prefill", prefill), ("decode", decode))}

    assert made.node_groups[head["spec"]["nodeName"]] == "system"
    assert [made.node_groups[node] for node in where.values()] == ["gpu", "gpu"]
    assert where["prefill"] != where["decode"]


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_kuberay_makes_the_worker_that_efa_needs(role: str, made: Cluster) -> None:
    (worker,) = made.ray_pods[role]
    container: dict[str, Any] = worker["spec"]["containers"][0]
    devices = {"cpu": "24", "memory": "96Gi", "nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}
    environment = {one["name"]: one.get("value") or one["valueFrom"] for one in container["env"]}
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in worker["spec"]["volumes"]}

    assert container["resources"] == {"limits": devices, "requests": devices}
    assert container["securityContext"]["privileged"] is True
    assert container["securityContext"]["runAsUser"] == 0
    expected = {
        "FI_PROVIDER": "efa",
        "FI_EFA_ENABLE_SHM_TRANSFER": "0",
        "FI_EFA_FORK_SAFE": "1",
        "NIXL_LOG_LEVEL": "INFO",
        "VLLM_SSM_CONV_STATE_LAYOUT": "DS",
        "HF_HOME": mounts_path(mounts, "node-storage"),
        "RAY_AUTH_MODE": "token",
    }
    assert {name: environment[name] for name in expected} == expected
    assert environment["VLLM_HOST_IP"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert environment["RAY_AUTH_TOKEN"]["secretKeyRef"]["key"] == "auth_token"
    assert "VLLM_NIXL_SIDE_CHANNEL_PORT" not in environment
    assert volumes[mounts["/dev/shm"]]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    assert volumes["node-storage"]["hostPath"]["type"] == "Directory"
    # Ray is started with the role's own resource, and with as many GPUs as the pod has.
    started = " ".join(container["args"])
    assert f"--resources='{{\"{role}\": 1}}'" in started
    assert "--num-gpus=1" in started


def mounts_path(mounts: Mapping[str, str], volume: str) -> str:
    return next(path for path, name in mounts.items() if name == volume)


def test_the_head_gets_no_device_and_no_privilege(made: Cluster) -> None:
    (head,) = made.ray_pods["head"]

    for container in head["spec"]["containers"]:
        assert not {"nvidia.com/gpu", "vpc.amazonaws.com/efa"} & container["resources"]["limits"].keys()
        assert not (container.get("securityContext") or {}).get("privileged")


def test_serve_gets_the_rendered_configuration_once(made: Cluster) -> None:
    rendered = yaml.safe_load(made.ray_service["spec"]["serveConfigV2"])

    assert [json.loads(json.dumps(one)) for one in made.configs] == [rendered]
    backends = [
        rendered["applications"][0]["args"][role]["engine_kwargs"]["kv_transfer_config"]["kv_connector_extra_config"]
        for role in ("prefill_config", "decode_config")
    ]
    assert backends == [{"backends": ["LIBFABRIC"]}] * 2


# What a hand may misspell, by kind: where, and which field.
TYPOS = {
    "Namespace": [("metadata", "labels")],
    "ServiceAccount": [("", "automountServiceAccountToken")],
    "NetworkPolicy": [("spec", "podSelector"), ("spec.ingress.0", "from")],
    "RayService": [
        ("spec", "serveConfigV2"),
        ("spec.rayClusterConfig", "workerGroupSpecs"),
        ("spec.rayClusterConfig.workerGroupSpecs.0.template.spec.containers.0", "securityContext"),
        ("spec.rayClusterConfig.workerGroupSpecs.0.template.spec.containers.0.resources", "limits"),
    ],
}


def test_the_api_server_accepts_every_object_strictly_and_no_misspelt_field(made: Cluster) -> None:
    resources = made.sandbox.export(CHECKOUT, "dev")["deployment"]["resources"]
    objects = [one["inputs"] for one in resources if one["type"].startswith("kubernetes:") and "inputs" in one]
    # A release is Helm's, and KubeRay's CRDs are not of our making.
    ours = [one for one in objects if one.get("kind") not in (None, "CustomResourceDefinition")]

    assert {one["kind"] for one in ours} == TYPOS.keys()
    for one in ours:
        assert strictly(made, one) == 200
        for place, field in TYPOS[one["kind"]]:
            assert strictly(made, misspelt(one, place, field)) >= 400, (one["kind"], place, field)


def strictly(cluster: Cluster, document: Mapping[str, Any]) -> int:
    """The HTTP status of a dry server-side apply that knows no unknown field."""
    folder = cluster.sandbox.clusters.folder(CLUSTER)
    metadata = document["metadata"]
    id = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
    path = path_of(cluster.sandbox.clusters.api(CLUSTER), document["apiVersion"], document["kind"], id)
    answer = requests.patch(
        f"{folder.url}{path}",
        params={"dryRun": "All", "fieldManager": "test", "fieldValidation": "Strict", "force": "true"},
        data=json.dumps(document),
        headers={"Authorization": f"Bearer {folder.token}", "Content-Type": "application/apply-patch+yaml"},
        verify=str(folder.authority),
        timeout=20,
    )
    return answer.status_code


def misspelt(document: Mapping[str, Any], place: str, field: str) -> dict[str, Any]:
    found = copy.deepcopy(dict(document))
    at: Any = found
    for step in place.split(".") if place else ():
        at = at[int(step)] if step.isdecimal() else at[step]
    at[f"{field}s"] = at.pop(field)
    return found


def test_a_second_up_and_a_refresh_change_nothing(made: Cluster) -> None:
    assert Steps(made.sandbox.up(CHECKOUT, "dev", preview_first=False)).changes == {}
    refreshed = Steps(made.sandbox.refresh(CHECKOUT, "dev"))

    assert refreshed.exit_code == 0, refreshed.output
    assert refreshed.changes == {}


def test_more_decode_replicas_reach_the_running_service_and_leave_prefill_alone(made: Cluster) -> None:
    before = made.ray_pods
    changed(made, MORE_DECODE)
    after = made.ray_pods

    assert len(after["decode"]) == 2
    assert uids(before["decode"]) < uids(after["decode"])
    assert uids(after["prefill"]) == uids(before["prefill"])
    assert uids(after["head"]) == uids(before["head"])
    assert len({one["spec"]["nodeName"] for role in ("prefill", "decode") for one in after[role]}) == 3


def test_an_engine_setting_reaches_serve_and_leaves_all_pods(made: Cluster) -> None:
    before, sent = made.ray_pods, len(made.configs)
    changed(made, OTHER_LENGTH)

    assert {role: uids(found) for role, found in made.ray_pods.items()} == {
        role: uids(found) for role, found in before.items()
    }
    (config,) = made.configs[sent:]
    lengths = {one["engine_kwargs"]["max_model_len"] for one in config["applications"][0]["args"].values()}
    assert lengths == {2048}


def test_another_image_replaces_the_service_and_all_its_pods(made: Cluster) -> None:
    before = made.ray_pods
    done = changed(made, OTHER_IMAGE)
    after = made.ray_pods

    assert done.changes == {SERVICE: "replace"}
    for role, found in after.items():
        assert uids(found).isdisjoint(uids(before[role]))
        assert {one["spec"]["containers"][0]["image"] for one in found} == {"registry.example/ray-llm:v2"}


def test_destroy_leaves_nothing(made: Cluster, at_the_end: AtTheEnd) -> None:
    folder = made.sandbox.clusters.folder(CLUSTER).path
    done = Steps(made.sandbox.destroy(CHECKOUT, "dev"))

    assert done.exit_code == 0, done.output
    # KubeRay's CRDs go with the cluster (docs/adr/0002); no finalizer holds anything of ours.
    assert at_the_end.left == CRDS
    assert at_the_end.ray == []
    assert made.sandbox.inventory() == []
    assert not folder.exists()
    assert [one for one in Path("/proc").glob("[0-9]*/cmdline") if _is_about(one, folder)] == []


def _is_about(command: Path, folder: Path) -> bool:
    try:
        return str(folder).encode() in command.read_bytes()
    except OSError:
        return False
