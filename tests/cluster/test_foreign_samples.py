"""KubeRay's own samples through the real API server and operator: the pack leaves them alone, and knows what they lack for EFA."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import cli
from sandbox.cluster.clusters import Clusters
from sandbox.cluster.tools import Tools
from sandbox.engine import Run, Sandbox
from tests.cluster.planes import GPU, SYSTEM, Plane, workload
from tests.engine.previews import EFA, NIXL, PRIVILEGED, Preview

pytestmark = pytest.mark.cluster

SAMPLES = Path(__file__).parent / "samples"
PROJECT = "kuberay-samples"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RAY = "/apis/ray.io/v1/namespaces/default"

# What the samples need, as nodes without EFA.
CPU_NODE = replace(SYSTEM, vcpus=16, memory_mib=65536)
GPU_NODE = replace(GPU, vcpus=48, memory_mib=196608, gpus=4, efa_interfaces=0, taints=())


@dataclass(frozen=True)
class Foreign:
    """A cluster of somebody else's, with KubeRay, and the engine before it."""

    plane: Plane
    engine: Sandbox

    def up(self, sample: str, without: str | None = None) -> Preview:
        return self._checked(self.engine.up(SAMPLES, "dev", self._config(sample, without)))

    def destroy(self, sample: str) -> Preview:
        return self._checked(self.engine.destroy(SAMPLES, "dev", self._config(sample)))

    def _config(self, sample: str, without: str | None = None) -> dict[str, str]:
        kubeconfig = self.plane.folder.path / "kubeconfig"
        chosen = {"sample": sample, "kubeconfig": str(kubeconfig)} | ({} if without is None else {"without": without})
        return {f"{PROJECT}:{key}": value for key, value in chosen.items()}

    def objects(self) -> list[str]:
        kinds = ("rayservices", "rayclusters")
        return sorted(one["metadata"]["name"] for kind in kinds for one in self.plane.api.items(f"{RAY}/{kind}"))

    @staticmethod
    def _checked(run: Run) -> Preview:
        for word in ("can't run policy", "Traceback", "the sandbox itself failed"):
            assert word not in run.output, run.output
        return Preview(run)


@pytest.fixture(scope="module")
def foreign(programs: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    clusters = Clusters(tmp_path_factory.mktemp("elsewhere"), lambda: programs)
    clusters.makes = True
    clusters.start("foreign", "1.35")
    try:
        plane = Plane(clusters, "foreign", 0.0)
        assert clusters.settle("foreign", [CPU_NODE, GPU_NODE]) == ""
        for crd in sorted(programs.ray_crds.glob("*.yaml")):
            plane.api.create(CRDS, yaml.safe_load(crd.read_text()))
        plane.namespace("kuberay")
        plane.run("kuberay", workload("Deployment", "operator", "quay.io/kuberay/operator:v1.6.0"))
        plane.run("kuberay", workload("DaemonSet", "gpus", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"))
        plane.until(lambda: "nvidia.com/gpu" in plane.allocatable(GPU_NODE))
        home = tmp_path_factory.mktemp("engine")
        with Sandbox(cli.find(print), home, real=lambda: programs) as engine:
            yield Foreign(plane, engine)
    finally:
        clusters.stop("foreign")
        clusters.close()


def sent(plane: Plane) -> list[dict[str, Any]]:
    """The Serve configurations that reached Ray."""
    record = plane.folder.path / "ray.jsonl"
    return [json.loads(line)["config"] for line in record.read_text().splitlines()] if record.exists() else []


@pytest.mark.parametrize(
    ("sample", "ray_object", "condition", "pods"),
    [
        ("ray_service", "rayservices/rayservice-sample", "Ready", 2),
        ("ray_service_llm", "rayservices/ray-serve-llm", "Ready", 2),
        ("ray_cluster", "rayclusters/raycluster-kuberay", "RayClusterProvisioned", 2),
        ("ray_cluster_autoscaler", "rayclusters/raycluster-autoscaler", "RayClusterProvisioned", 1),
    ],
)
def test_a_sample_comes_up_without_a_word_of_the_pack_and_goes(
    foreign: Foreign, sample: str, ray_object: str, condition: str, pods: int
) -> None:
    plane, before = foreign.plane, len(sent(foreign.plane))
    done = foreign.up(sample)

    assert done.exit_code == 0, done.output
    assert (done.violations, done.advice) == ([], [])

    def holds() -> bool:
        found = (plane.api.find(f"{RAY}/{ray_object}") or {}).get("status", {}).get("conditions", [])
        return any(one["type"] == condition and one["status"] == "True" for one in found)

    plane.until(holds)
    assert len(plane.ready("default")) == pods
    # Exactly what the sample says reached Ray, once.
    written = [one["spec"]["serveConfigV2"] for one in documents(sample) if one["kind"] == "RayService"]
    assert sent(plane)[before:] == [yaml.safe_load(text) for text in written]

    gone = foreign.destroy(sample)
    assert gone.exit_code == 0, gone.output
    plane.until(lambda: not foreign.objects() and not plane.pods("default"))


def documents(sample: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((SAMPLES / f"{sample}.yaml").read_text()))


@pytest.mark.parametrize("sample", ["ray_service", "ray_service_llm", "ray_cluster"])
@pytest.mark.parametrize(
    ("without", "policy", "reason"),
    [
        ("efa", EFA, 'limits["vpc.amazonaws.com/efa"] is missing'),
        ("privileged", PRIVILEGED, "securityContext.privileged is missing"),
        ("libfabric", NIXL, "backends is missing"),
    ],
)
def test_the_same_sample_as_prefill_and_decode_is_stopped_for_what_it_lacks(
    foreign: Foreign, sample: str, without: str, policy: str, reason: str
) -> None:
    done = foreign.up(sample, without)

    assert done.exit_code != 0, done.output
    assert done.blocking == {policy}
    assert all(reason in one.message for one in done.violations), done.violations
    assert foreign.objects() == []


@pytest.mark.parametrize("sample", ["ray_service", "ray_service_llm", "ray_cluster"])
def test_the_same_sample_with_all_of_it_is_let_through(foreign: Foreign, sample: str) -> None:
    done = foreign.up(sample, without="nothing")

    assert (done.exit_code, done.violations, done.advice) == (0, [], []), done.output
    assert len(foreign.objects()) >= 1

    assert foreign.destroy(sample).exit_code == 0
    foreign.plane.until(lambda: not foreign.objects() and not foreign.plane.pods("default"))
