"""What each fault of Kubernetes strikes, what users then see of it, and that it goes away with the plan."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from sandbox.cluster.layout import Folder
from sandbox.cluster.mishaps import FINALIZER, Mishaps
from sandbox.cluster.processes import HELD
from sandbox.faults import FaultPlan
from tests.sandbox.cluster_api import MemoryApi

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
SCHEDULED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
CARRIER = "/api/v1/namespaces/{}/configmaps/kube-root-ca.crt"


class World:
    """A cluster in memory: one Ray service with its pods, the operator, and a pod of EKS's own."""

    def __init__(self, path: Path) -> None:
        self.folder = Folder(path)
        self.api = MemoryApi()
        self.restarts = 0
        self.mishaps = Mishaps(self.folder, self.restarted)
        for name in ("inference", "kuberay", "kube-system"):
            self.api.put(f"/api/v1/namespaces/{name}", status={"phase": "Active"})
            self.api.put(CARRIER.format(name))
        self.pod("inference", "head", "head", status=READY)
        self.pod("inference", "llm-abcde-prefill-worker-1", "worker", "prefill")
        self.pod("inference", "llm-abcde-decode-worker-1", "worker", "decode")
        self.pod("kuberay", "operator-1", image="quay.io/kuberay/operator:v1.6.0")
        self.pod("kube-system", "aws-node-1")

    def restarted(self) -> None:
        self.restarts += 1

    def pod(self, namespace: str, name: str, kind: str = "", group: str = "", **more: Any) -> None:
        labels = {"ray.io/node-type": kind, "ray.io/group": group, "ray.io/cluster": "llm-abcde"} if kind else {}
        image = more.get("image", "rayproject/ray-llm:2.58.0")
        container = {"name": "main", "image": image}
        self.api.put(
            f"/api/v1/namespaces/{namespace}/pods/{name}",
            metadata={"labels": labels},
            spec={"nodeName": "ip-10-20-1-5.ec2.internal", "containers": [container], "initContainers": [container]},
            status=more.get("status", SCHEDULED),
        )

    def plan(self, *faults: str) -> None:
        self.folder.put_faults(FaultPlan.parse(faults).hand_over())
        self.tick()

    def tick(self) -> None:
        self.mishaps.tick(self.api, self.api.items("/api/v1/pods"))

    def found(self, path: str) -> dict[str, Any]:
        return self.api.get(f"/api/v1/namespaces/{path}")

    def held(self) -> list[str]:
        pods = self.api.items("/api/v1/pods")
        return sorted(one["metadata"]["name"] for one in pods if HELD in one["metadata"].get("annotations", {}))

    def struck(self) -> list[str]:
        return [one["object"] for one in json.loads((self.folder.path / "struck.json").read_text())]

    def events(self) -> list[tuple[str, str]]:
        return [(one["reason"], one["message"]) for _, one in self.api.made]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_without_a_plan_nothing_happens(world: World) -> None:
    world.tick()

    assert (world.held(), world.struck(), world.restarts, world.api.made) == ([], [], 0, [])
    assert world.mishaps.behaviour().status == ""


def test_a_worker_that_is_never_ready_runs_and_fails_its_probe(world: World) -> None:
    world.plan("worker-never-ready@decode")

    assert world.held() == ["llm-abcde-decode-worker-1"]
    assert world.struck() == ["inference/llm-abcde-decode-worker-1"]
    pod = world.found("inference/pods/llm-abcde-decode-worker-1")
    assert pod["status"]["phase"] == "Running"
    conditions = {one["type"]: (one["status"], one.get("message")) for one in pod["status"]["conditions"]}
    assert conditions["PodScheduled"] == ("True", None)
    assert conditions["Ready"] == ("False", "containers with unready status: [main]")
    assert pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert world.events() == [("Unhealthy", "Readiness probe failed: ")]
    assert world.mishaps.forbids_ready(pod)
    assert not world.mishaps.forbids_ready(world.found("inference/pods/llm-abcde-prefill-worker-1"))


def test_a_number_says_how_many_workers(world: World) -> None:
    world.plan("worker-never-ready")
    world.tick()
    assert len(world.held()) == 1

    world.plan("worker-never-ready:2")
    assert world.held() == ["llm-abcde-decode-worker-1", "llm-abcde-prefill-worker-1"]


def test_a_worker_waits_for_its_node_before_its_kubelet_speaks(world: World) -> None:
    path = "/api/v1/namespaces/inference/pods/llm-abcde-decode-worker-1"
    del world.api.objects[path]["spec"]["nodeName"]
    world.plan("worker-never-ready@decode")
    assert world.held() == ["llm-abcde-decode-worker-1"]
    assert world.found("inference/pods/llm-abcde-decode-worker-1")["status"] == SCHEDULED

    world.api.objects[path]["spec"]["nodeName"] = "ip-10-20-1-5.ec2.internal"
    world.tick()
    assert world.found("inference/pods/llm-abcde-decode-worker-1")["status"]["phase"] == "Running"


def test_what_is_ready_already_stays_ready(world: World) -> None:
    world.pod("inference", "llm-abcde-decode-worker-1", "worker", "decode", status=READY)

    world.plan("worker-never-ready@decode")

    assert world.held() == []


def test_the_operators_image_is_not_found(world: World) -> None:
    world.plan("operator-missing")

    assert world.held() == ["operator-1"]
    status = world.found("kuberay/pods/operator-1")["status"]
    [container] = status["containerStatuses"]
    assert status["phase"] == "Pending"
    assert container["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert container["state"]["waiting"]["message"].startswith(
        'Back-off pulling image "quay.io/kuberay/operator:v1.6.0": ErrImagePull: '
    )
    assert [reason for reason, _ in world.events()] == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]


@pytest.mark.parametrize("fault", ["worker-never-ready:2", "operator-missing"])
def test_the_next_run_lets_pods_start_as_if_nothing_had_been(world: World, fault: str) -> None:
    world.plan(fault)
    held = world.held()
    assert held

    world.plan()

    assert world.held() == []
    assert world.struck() == []
    for pod in world.api.items("/api/v1/pods"):
        if pod["metadata"]["name"] in held:
            assert pod["status"] == SCHEDULED


def test_a_pod_that_is_held_goes_when_it_is_deleted(world: World) -> None:
    world.plan("worker-never-ready@decode")
    path = "/api/v1/namespaces/inference/pods/llm-abcde-decode-worker-1"
    world.api.patch(path, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})

    world.plan()

    # Nobody starts it any more.
    assert world.held() == ["llm-abcde-decode-worker-1"]


def test_a_namespace_of_ray_gets_a_finalizer_that_the_next_run_takes_off(world: World) -> None:
    world.plan("namespace-terminating")
    assert world.struck() == ["inference"]
    assert world.api.get(CARRIER.format("inference"))["metadata"]["finalizers"] == [FINALIZER]
    assert "finalizers" not in world.api.get(CARRIER.format("kuberay"))["metadata"]

    # Another daemon: what it has to clean up is in the cluster.
    world.mishaps = Mishaps(world.folder, world.restarted)
    world.plan()
    assert "finalizers" not in world.api.get(CARRIER.format("inference"))["metadata"]


def test_a_namespace_can_be_named_and_must_not_be_on_its_way_out(world: World) -> None:
    world.api.patch("/api/v1/namespaces/inference", {"status": {"phase": "Terminating"}})
    world.plan("namespace-terminating@inference", "namespace-terminating@kuberay")

    assert world.struck() == ["kuberay"]


def test_the_api_server_restarts_once_while_something_is_on_its_way(world: World) -> None:
    world.plan("api-server-restart")
    world.tick()

    assert world.restarts == 1
    assert world.struck() != ["kube-system/aws-node-1"]


def test_a_restart_can_wait_for_one_service(world: World) -> None:
    world.plan("api-server-restart@llm:2")
    assert (world.restarts, {one.partition("/")[0] for one in world.struck()}) == (2, {"inference"})


def test_no_restart_while_all_is_ready(world: World) -> None:
    for pod in world.api.items("/api/v1/pods"):
        world.api.patch(
            f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}", {"status": READY}
        )

    world.plan("api-server-restart")

    assert (world.restarts, world.struck()) == (0, [])


def test_an_application_fails_that_is_sent_under_the_plan(world: World) -> None:
    before = time.time() - 0.1
    world.plan("application-fails@llm")

    told = world.mishaps.behaviour()
    assert (told.status, told.clusters) == ("DEPLOY_FAILED", {("inference", "llm-abcde")})
    assert before < told.since < time.time() + 0.1
    assert "Engine core initialization failed" in told.message

    world.plan()
    assert world.mishaps.behaviour().status == ""


def test_a_misspelt_resource_strikes_nothing(world: World) -> None:
    plan = FaultPlan.parse(["worker-never-ready@decoder"])
    world.folder.put_faults(plan.hand_over())
    world.tick()
    plan.take_back(json.loads((world.folder.path / "struck.json").read_text()))

    assert world.held() == []
    assert plan.unmet == ["worker-never-ready@decoder"]
