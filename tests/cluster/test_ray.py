"""Our service under the real operator, scheduler and API server: what reaches Ray, how it scales, and how it goes wrong."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from components.choices import Dtype
from components.ray_cluster import MAX_WORKERS_PER_ROLE
from components.serve_app import RoleArgs
from components.service import PrefillDecodeServiceArgs, ray_service_spec
from sandbox.cluster.clusters import Clusters
from sandbox.cluster.mishaps import FINALIZER
from sandbox.cluster.tools import Tools
from sandbox.faults import FaultPlan
from tests.cluster.planes import GPU, SYSTEM, TOLERATES_GPU, Plane, workload

pytestmark = pytest.mark.cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RAY = "/apis/ray.io/v1/namespaces/{}"
_NUMBERS = itertools.count()
OPERATOR = "quay.io/kuberay/operator:v1.6.0"
GPU_NODES = [
    replace(
        GPU, name=f"ip-10-20-1-{at}.ec2.internal", labels={**GPU.labels, "kubernetes.io/hostname": f"{at}.ec2.internal"}
    )
    for at in (10, 11, 12)
]


@pytest.fixture(scope="module")
def with_ray(programs: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A cluster with KubeRay, both device plugins, one system node and three GPU nodes."""
    clusters = Clusters(tmp_path_factory.mktemp("ray"), lambda: programs)
    clusters.makes = True
    clusters.start("ray", "1.35")
    try:
        plane = Plane(clusters, "ray", 0.0)
        assert clusters.settle("ray", [replace(SYSTEM, vcpus=8, memory_mib=32768), *GPU_NODES]) == ""
        for crd in sorted(programs.ray_crds.glob("*.yaml")):
            plane.api.create(CRDS, yaml.safe_load(crd.read_text()))
        plane.namespace("kuberay")
        plane.run("kuberay", workload("Deployment", "operator", OPERATOR))
        for name, image in (("nvidia", "k8s-device-plugin:v0.20.0"), ("efa", "aws-efa-k8s-device-plugin:v0.5.30")):
            plane.run("kuberay", workload("DaemonSet", name, image, tolerations=TOLERATES_GPU))
        for node in GPU_NODES:
            plane.until(lambda node=node: plane.allocatable(node).get("vpc.amazonaws.com/efa") == "1")
        yield plane
    finally:
        clusters.stop("ray")
        clusters.close()


class Service:
    """Our RayService in a namespace of its own."""

    def __init__(self, plane: Plane, namespace: str) -> None:
        self.plane = plane
        self.namespace = plane.namespace(namespace)
        self.ray = RAY.format(namespace)
        self._sent = len(self._lines())

    def make(self) -> None:
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        for name in ("llm-head", "llm-worker"):
            self.plane.api.create(accounts, {"metadata": {"name": name}})
        document = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "llm"}, "spec": spec(1)}
        self.plane.until(lambda: self.plane.api.create(f"{self.ray}/rayservices", document))

    def scale(self, decode: int) -> None:
        change = {"spec": {"serveConfigV2": spec(decode)["serveConfigV2"]}}
        self.plane.api.patch(f"{self.ray}/rayservices/llm", change)

    def condition(self) -> tuple[str, str]:
        found = self.plane.api.get(f"{self.ray}/rayservices/llm").get("status", {}).get("conditions", [])
        return next(((one["status"], one["reason"]) for one in found if one["type"] == "Ready"), ("", ""))

    def is_ready(self) -> bool:
        return self.condition()[0] == "True"

    def applications(self) -> dict[str, Any]:
        status = self.plane.api.get(f"{self.ray}/rayservices/llm").get("status", {})
        for part in ("activeServiceStatus", "pendingServiceStatus"):
            if found := status.get(part, {}).get("applicationStatuses"):
                return found
        return {}

    def replicas(self) -> dict[str, int]:
        [cluster] = self.plane.api.items(f"{self.ray}/rayclusters")
        return {one["groupName"]: one["replicas"] for one in cluster["spec"]["workerGroupSpecs"]}

    def sent(self) -> list[Any]:
        """What the operator has sent to Ray for this service."""
        return [json.loads(line)["config"] for line in self._lines()[self._sent :]]

    def _lines(self) -> list[str]:
        path = self.plane.folder.path / "ray.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def end(self) -> None:
        plan(self.plane)
        if self.plane.api.find(f"/api/v1/namespaces/{self.namespace}") is not None:
            self.plane.api.delete(f"{self.ray}/rayservices/llm")
            self.plane.until(lambda: not self.plane.pods(self.namespace))
            self.plane.api.delete(f"/api/v1/namespaces/{self.namespace}")


@pytest.fixture
def service(with_ray: Plane) -> Iterator[Service]:
    made = Service(with_ray, f"inference-{next(_NUMBERS)}")
    yield made
    made.end()


def spec(decode: int) -> dict[str, Any]:
    def role(replicas: int) -> RoleArgs:
        return {"replicas": replicas, "tensor_parallel_size": 1, "pipeline_parallel_size": 1}

    args: PrefillDecodeServiceArgs = {
        "name": "llm",
        "namespace": "inference",
        "operator_namespace": "kuberay",
        "image": "registry.example.com/ray-llm:2.58.0",
        "ray_version": "2.58.0",
        "model": {
            "id": "qwen3.5-9b",
            "source": "Qwen/Qwen3.5-9B",
            "max_model_len": 8192,
            "dtype": Dtype.BFLOAT16,
            "gpu_memory_utilization": 0.85,
            "enforce_eager": True,
        },
        "prefill": role(1),
        "decode": role(decode),
        "gpus": 1,
        "efa_interfaces": 1,
        "worker": {"cpu": 24, "memory": "96Gi", "shm_size": "16Gi"},
    }
    written = ray_service_spec(args)
    # Minutes in a true stack.
    written["rayClusterConfig"]["autoscalerOptions"]["idleTimeoutSeconds"] = 2
    return written


def plan(plane: Plane, *faults: str) -> None:
    plane.clusters.plan(FaultPlan.parse(faults).hand_over())


def struck(plane: Plane) -> Sequence[str]:
    return [one["kind"] for one in json.loads((plane.folder.path / "struck.json").read_text())]


def test_a_role_scales_by_its_replicas_and_each_change_reaches_ray_once(service: Service) -> None:
    service.make()
    service.plane.until(service.is_ready)
    assert service.sent() == [yaml.safe_load(spec(1)["serveConfigV2"])]
    assert service.applications()["llm"]["status"] == "RUNNING"
    nodes = {one["spec"]["nodeName"] for one in service.plane.ready(service.namespace)}
    assert len(nodes) == 3

    service.scale(2)
    service.plane.until(lambda: service.replicas() == {"prefill": 1, "decode": 2})
    service.plane.until(lambda: len(service.plane.ready(service.namespace)) == 4)
    assert service.sent()[1:] == [yaml.safe_load(spec(2)["serveConfigV2"])]

    service.scale(1)
    service.plane.until(lambda: service.replicas() == {"prefill": 1, "decode": 1})
    service.plane.until(lambda: len(service.plane.pods(service.namespace)) == 3)
    assert len(service.sent()) == 3


def test_a_replica_without_a_node_leaves_a_worker_pending(service: Service) -> None:
    service.make()
    service.plane.until(service.is_ready)

    service.scale(3)

    assert MAX_WORKERS_PER_ROLE > 3
    service.plane.until(lambda: service.replicas()["decode"] == 3)
    service.plane.until(
        lambda: [one["status"]["phase"] for one in service.plane.pods(service.namespace)].count("Pending") == 1
    )
    service.plane.until(lambda: service.applications()["llm"]["status"] == "DEPLOYING")


def test_a_worker_that_is_never_ready_keeps_the_service_from_being_ready(service: Service) -> None:
    plan(service.plane, "worker-never-ready@decode")
    service.make()
    service.plane.until(lambda: service.applications().get("llm", {}).get("status") == "DEPLOYING")

    [held] = [one for one in service.plane.pods(service.namespace) if one not in service.plane.ready(service.namespace)]
    assert (held["metadata"]["labels"]["ray.io/group"], held["status"]["phase"]) == ("decode", "Running")
    assert service.condition() == ("False", "Initializing")

    plan(service.plane)
    service.plane.until(service.is_ready)


def test_an_application_that_fails_says_why_in_the_service(service: Service) -> None:
    plan(service.plane, "application-fails@llm")
    service.make()
    service.plane.until(lambda: service.applications().get("llm", {}).get("status") == "DEPLOY_FAILED")

    failed = service.applications()["llm"]
    assert failed["message"] == "Failed to update the deployments ['Prefill:qwen3_5-9b']."
    assert "Engine core initialization failed" in failed["serveDeploymentStatuses"]["Prefill:qwen3_5-9b"]["message"]
    assert not service.is_ready()

    plan(service.plane)
    service.plane.until(service.is_ready)


def test_a_restart_of_the_api_server_in_between_is_survived(service: Service) -> None:
    plan(service.plane, "api-server-restart@llm")
    service.make()

    service.plane.until(lambda: "api-server-restart" in struck(service.plane))
    service.plane.until(service.is_ready)


def test_a_missing_operator_leaves_the_service_untouched(service: Service) -> None:
    plane = service.plane
    plan(plane, "operator-missing")
    [pod] = [one for one in plane.pods("kuberay") if one["spec"]["containers"][0]["image"] == OPERATOR]
    plane.api.delete(f"/api/v1/namespaces/kuberay/pods/{pod['metadata']['name']}")
    plane.until(lambda: "operator-missing" in struck(plane))

    def waiting() -> list[str]:
        states = [one["state"] for pod in plane.pods("kuberay") for one in pod["status"].get("containerStatuses", [])]
        return [state["waiting"]["reason"] for state in states if "waiting" in state]

    plane.until(lambda: waiting() == ["ImagePullBackOff"])
    service.make()
    assert plane.pods(service.namespace) == []
    assert "status" not in plane.api.get(f"{service.ray}/rayservices/llm")

    plan(plane)
    plane.until(service.is_ready)


def test_a_namespace_hangs_with_the_api_servers_own_words(service: Service) -> None:
    plane, path = service.plane, f"/api/v1/namespaces/{service.namespace}"
    plan(plane, f"namespace-terminating@{service.namespace}")
    plane.until(lambda: "namespace-terminating" in struck(plane))
    plane.api.delete(path)

    def says() -> str:
        found = plane.api.get(path)
        assert found["status"]["phase"] == "Terminating"
        return " ".join(one["message"] for one in found["status"].get("conditions", []))

    plane.until(lambda: f"finalizers remaining: {FINALIZER} in 1 resource instances" in says())

    plan(plane)
    plane.until(lambda: plane.api.find(path) is None)
