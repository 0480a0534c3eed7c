"""The stand-in for Ray as KubeRay's operator meets it: by HTTP through a proxy."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.cluster.api import Api
from sandbox.cluster.ray_autoscaler import Autoscaler
from sandbox.cluster.ray_dashboard import RayBehaviour, RayDashboard, serve
from sandbox.cluster.serve_config import Deployment, deployments, group_resources, place
from tests.sandbox.cluster_api import MemoryApi

CLUSTER = "/apis/ray.io/v1/namespaces/inference/rayclusters/llm-abcde"
PODS = "/api/v1/namespaces/inference/pods"
URL = "http://llm-abcde-head-svc.inference.svc.cluster.local:8265/api/serve/applications/"
TOKEN = {"x-ray-authorization": "Bearer open-sesame"}
HEAD_IP = "192.0.2.7"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def engine(role: str, replicas: int) -> dict[str, Any]:
    return {
        "model_loading_config": {"model_id": "acme/tiny.v1"},
        "placement_group_config": {"bundle_per_worker": {"GPU": 1, role: 0.001}},
        "deployment_config": {"num_replicas": replicas},
    }


def config(decode: int = 1) -> dict[str, Any]:
    arguments = {"prefill_config": engine("prefill", 1), "decode_config": engine("decode", decode)}
    application = {"name": "llm", "import_path": "ray.serve.llm:build_pd_openai_app", "args": arguments}
    return {"applications": [application]}


def group(role: str) -> dict[str, Any]:
    limits = {"cpu": "24", "nvidia.com/gpu": "1"}
    return {
        "groupName": role,
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 3,
        "rayStartParams": {"num-gpus": "1", "resources": f"'{{\"{role}\": 1}}'"},
        "template": {"spec": {"containers": [{"resources": {"limits": limits}}]}},
    }


class World:
    """One Ray cluster in memory, and the stand-in before it."""

    def __init__(self, folder: Path) -> None:
        self.record = folder / "ray.jsonl"
        self.behaviour = RayBehaviour()
        self.api = MemoryApi()
        self.cluster = self.api.put(
            CLUSTER,
            spec={
                "enableInTreeAutoscaling": True,
                "autoscalerOptions": {"idleTimeoutSeconds": 300},
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0"},
                    "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}},
                },
                "workerGroupSpecs": [group("prefill"), group("decode")],
            },
        )
        self.api.put(
            "/api/v1/namespaces/inference/services/llm-abcde-head-svc",
            spec={"selector": {"ray.io/cluster": "llm-abcde"}},
        )
        self.api.put(
            "/api/v1/namespaces/inference/secrets/llm-abcde",
            data={"auth_token": base64.b64encode(b"open-sesame").decode()},
        )
        self.head()
        self.worker("prefill", "p1")
        self.worker("decode", "d1")
        api: Api = self.api
        self.dashboard: RayDashboard = serve(0, api, lambda: self.behaviour, self.record)

    def head(self, uid: str = "first", ready: bool = True) -> None:
        reference = {"secretKeyRef": {"name": "llm-abcde", "key": "auth_token"}}
        environment = [
            {"name": "RAY_AUTH_MODE", "value": "token"},
            {"name": "RAY_AUTH_TOKEN", "valueFrom": reference},
        ]
        self.api.put(
            f"{PODS}/head",
            metadata={"labels": {"ray.io/cluster": "llm-abcde", "ray.io/node-type": "head"}, "uid": uid},
            spec={"containers": [{"env": environment}]},
            status={"podIP": HEAD_IP, **(READY if ready else {})},
        )

    def worker(self, role: str, name: str, ready: bool = True) -> None:
        labels = {"ray.io/cluster": "llm-abcde", "ray.io/node-type": "worker", "ray.io/group": role}
        self.api.put(f"{PODS}/{name}", metadata={"labels": labels}, status=READY if ready else {})

    def call(self, method: str, url: str = URL, headers: dict[str, str] = TOKEN, **more: Any) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            proxies = {"http": f"http://127.0.0.1:{self.dashboard.port}"}
            return session.request(method, url, headers=headers, proxies=proxies, timeout=5, **more)

    def put(self, decode: int = 1) -> None:
        assert self.call("PUT", json=config(decode)).status_code == 200

    def llm(self) -> dict[str, Any]:
        return self.call("GET", f"{URL}?api_type=declarative").json()["applications"]["llm"]

    def replicas(self) -> dict[str, int]:
        return {one["groupName"]: one["replicas"] for one in self.cluster["spec"]["workerGroupSpecs"]}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.dashboard.stop()


def test_a_configuration_runs_and_is_kept_as_it_came(world: World) -> None:
    before = time.time()
    assert world.call("GET").json() == {"applications": {}}

    world.put(decode=1)

    [line] = map(json.loads, world.record.read_text().splitlines())
    assert (line["cluster"], line["config"]) == ("inference/llm-abcde", config(1))
    assert before <= line["at"] <= time.time()
    assert world.llm()["status"] == "RUNNING"
    assert {
        name: (one["status"], one["target_num_replicas"], len(one["replicas"]))
        for name, one in world.llm()["deployments"].items()
    } == {
        "Prefill:acme--tiny_v1": ("HEALTHY", 1, 1),
        "Decode:acme--tiny_v1": ("HEALTHY", 1, 1),
        "OpenAiIngress": ("HEALTHY", 1, 1),
    }


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({}, 401, "Unauthorized: Missing authentication token"),
        ({"x-ray-authorization": "Bearer guess"}, 403, "Forbidden: Invalid authentication token"),
        ({"Authorization": "Bearer open-sesame"}, 200, "{"),
    ],
)
def test_ray_asks_for_the_token_of_the_head_pods_secret(
    world: World, headers: dict[str, str], status: int, says: str
) -> None:
    answer = world.call("GET", headers=headers)

    assert answer.status_code == status
    assert answer.text.startswith(says)


def test_an_application_deploys_until_every_worker_is_ready(world: World) -> None:
    world.worker("decode", "d1", ready=False)
    world.put()
    assert world.llm()["status"] == "DEPLOYING"

    world.worker("decode", "d1")
    assert world.llm()["status"] == "RUNNING"


def test_a_replica_without_room_says_so_after_serves_thirty_seconds(world: World) -> None:
    world.put(decode=2)
    waiting = world.llm()
    assert waiting["status"] == "DEPLOYING"
    assert waiting["deployments"]["Decode:acme--tiny_v1"]["message"] == ""

    known = world.dashboard.known["inference", "llm-abcde"]
    known.sent["llm"] -= 31
    decode = world.llm()["deployments"]["Decode:acme--tiny_v1"]
    assert "has 1 replicas that have taken more than 30s to be scheduled" in decode["message"]
    assert decode["status"] == "UPDATING"


def test_a_failing_application_is_told_in_serves_words(world: World) -> None:
    world.put()
    told = RayBehaviour("DEPLOY_FAILED", "RuntimeError: no KV cache", {("inference", "llm-abcde")})
    world.behaviour = told

    failed = world.llm()
    assert (failed["status"], failed["message"]) == (
        "DEPLOY_FAILED",
        "Failed to update the deployments ['Prefill:acme--tiny_v1'].",
    )
    prefill = failed["deployments"]["Prefill:acme--tiny_v1"]
    assert prefill["status"] == "DEPLOY_FAILED"
    assert prefill["message"].startswith("The deployment failed to start 3 times in a row.")
    assert prefill["message"].endswith("RuntimeError: no KV cache")
    assert failed["deployments"]["OpenAiIngress"]["status"] == "HEALTHY"

    world.behaviour = RayBehaviour("DEPLOY_FAILED", clusters={("inference", "another")})
    assert world.llm()["status"] == "RUNNING"


def test_what_was_sent_before_the_trouble_goes_on(world: World) -> None:
    world.put(decode=1)
    world.behaviour = RayBehaviour("DEPLOY_FAILED", since=time.time())
    assert world.llm()["status"] == "RUNNING"

    world.put(decode=1)
    assert world.llm()["status"] == "RUNNING"

    world.put(decode=2)
    assert world.llm()["status"] == "DEPLOY_FAILED"


def test_ray_is_as_slow_and_as_broken_as_told(world: World) -> None:
    world.put()
    world.behaviour = RayBehaviour(seconds=60)
    assert world.llm()["status"] == "DEPLOYING"

    world.behaviour = RayBehaviour(http_status=503)
    answer = world.call("GET")
    assert (answer.status_code, answer.text) == (503, "The GCS may be down, please retry later")

    world.behaviour = RayBehaviour(delay=0.3)
    began = time.monotonic()
    assert world.call("GET").status_code == 200
    assert time.monotonic() - began >= 0.3


def test_a_head_that_is_not_ready_answers_nothing_and_a_new_one_knows_nothing(world: World) -> None:
    world.put()
    world.head(ready=False)
    assert world.call("GET").status_code == 502

    world.head(uid="second")
    assert world.call("GET").json() == {"applications": {}}


def test_the_heads_proxy_is_healthy_once_it_has_routes(world: World) -> None:
    health = f"http://{HEAD_IP}:8000//-/healthz"
    before = world.call("GET", health, {})
    assert (before.status_code, before.text) == (503, "Route table is not populated yet.")

    world.put()
    after = world.call("GET", health, {})
    assert (after.status_code, after.text) == (200, "success")


@pytest.mark.parametrize("body", [{}, {"applications": [{"name": "llm"}]}, {"applications": "llm"}])
def test_serve_refuses_a_configuration_without_applications(world: World, body: dict[str, Any]) -> None:
    assert world.call("PUT", json=body).status_code == 400
    assert world.call("GET").json() == {"applications": {}}


def test_what_the_stand_in_does_not_play_is_said(world: World) -> None:
    answer = world.call("GET", URL.replace("serve/applications", "jobs"))

    assert (answer.status_code, answer.text) == (501, "the sandbox's stand-in for Ray has no /api/jobs/")


def test_more_replicas_make_more_workers_of_their_role_up_to_the_bound(world: World) -> None:
    world.put(decode=9)

    world.dashboard.scale()

    assert world.replicas() == {"prefill": 1, "decode": 3}


def test_a_worker_that_is_asked_for_is_not_asked_for_again(world: World) -> None:
    world.put(decode=2)
    for _ in range(2):
        world.dashboard.scale(at_once=True)

    assert world.replicas() == {"prefill": 1, "decode": 2}


def look(world: World, autoscaler: Autoscaler, decode: int) -> None:
    wanted = [one for application in config(decode)["applications"] for one in deployments(application)]
    workers = [one for one in world.api.items(PODS) if one["metadata"]["name"] != "head"]
    autoscaler.step(world.api, world.api.get(CLUSTER), workers, wanted)


def test_an_idle_worker_goes_after_its_time_and_by_its_name(world: World) -> None:
    world.worker("decode", "d2")
    decode = world.cluster["spec"]["workerGroupSpecs"][1]
    decode["replicas"] = 2
    clock = [0.0]
    autoscaler = Autoscaler(lambda: clock[0])
    look(world, autoscaler, decode=1)
    clock[0] = 299
    look(world, autoscaler, decode=1)
    assert decode["replicas"] == 2

    clock[0] = 301
    look(world, autoscaler, decode=1)
    assert (decode["replicas"], decode["scaleStrategy"]) == (1, {"workersToDelete": ["d2"]})

    # While it is on its way out nothing else happens, even when it is wanted again.
    look(world, autoscaler, decode=2)
    assert decode["replicas"] == 1

    world.api.delete(f"{PODS}/d2")
    look(world, autoscaler, decode=1)
    assert decode["scaleStrategy"] == {"workersToDelete": []}


def test_the_last_worker_of_a_role_stays(world: World) -> None:
    clock = [0.0]
    autoscaler = Autoscaler(lambda: clock[0])
    look(world, autoscaler, decode=0)
    clock[0] = 1000
    look(world, autoscaler, decode=0)

    assert world.replicas() == {"prefill": 1, "decode": 1}


def test_without_an_autoscaler_nothing_scales(world: World) -> None:
    world.cluster["spec"]["enableInTreeAutoscaling"] = False
    world.put(decode=2)

    world.dashboard.scale()

    assert world.replicas() == {"prefill": 1, "decode": 1}


@pytest.mark.parametrize("text", ["'{\"decode\": 1}'", '"{\\"decode\\": 1}"'])
def test_resources_are_read_with_the_quotes_of_a_shell(text: str) -> None:
    spec = {**group("decode"), "rayStartParams": {"resources": text}}

    assert group_resources(spec) == {"CPU": 24, "GPU": 1, "decode": 1}


def test_plain_deployments_count_by_their_actors() -> None:
    market = {
        "import_path": "fruit.deployment_graph",
        "deployments": [
            {"name": "Mango", "num_replicas": 2, "ray_actor_options": {"num_cpus": 0.5}},
            {"name": "Router"},
        ],
    }

    found = deployments(market)
    assert found == [Deployment("Mango", 2, [{"CPU": 0.5}]), Deployment("Router", 1, [{"CPU": 1}])]
    assert place(found, [{"CPU": 1}, {"CPU": 0.5}]) == ([{"Mango"}, set()], {"Router": [{"CPU": 1}]})


def test_each_stage_of_a_pipeline_has_a_bundle_and_the_actor_sits_in_the_first() -> None:
    llm = {"model_loading_config": {"model_id": "m"}, "engine_kwargs": {"tensor_parallel_size": 2}}
    application = {"import_path": "ray.serve.llm:build_openai_app", "args": {"llm_configs": [llm]}}

    assert deployments(application)[0] == Deployment("LLMServer:m", 1, [{"GPU": 1, "CPU": 1}, {"GPU": 1}])
