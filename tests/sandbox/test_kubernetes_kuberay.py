"""KubeRay's kinds: the recorded CRD schemas, and what the operator itself refuses."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from sandbox.kubernetes import Kubernetes, record_kuberay
from sandbox.standin import UNKNOWN, ResourceRef


def ray_service() -> dict[str, Any]:
    serve = "applications:\n- name: llm\n  import_path: ray.serve.llm:build_pd_openai_app\n"
    head = {
        "rayStartParams": {"num-cpus": "0"},
        "template": {"spec": {"containers": [{"name": "head", "image": "ray:1"}]}},
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": "ray-llm", "namespace": "inference"},
        "spec": {
            "serveConfigV2": serve,
            "upgradeStrategy": {"type": "None"},
            "excludeHeadPodFromServeSvc": True,
            "rayClusterConfig": {
                "rayVersion": "2.58.0",
                "authOptions": {"mode": "token"},
                "enableInTreeAutoscaling": True,
                "autoscalerOptions": {"version": "v2", "idleTimeoutSeconds": 60},
                "headGroupSpec": head,
                "workerGroupSpecs": [worker_group("prefill"), worker_group("decode")],
            },
        },
    }


def worker_group(role: str) -> dict[str, Any]:
    amounts = {"cpu": "24", "memory": "96Gi", "nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}
    container = {
        "name": "ray-worker",
        "image": "ray:1",
        "env": [{"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "securityContext": {"privileged": True, "runAsUser": 0},
    }
    return {
        "groupName": role,
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 2,
        "rayStartParams": {"num-gpus": "1", "resources": f"'{{\"{role}\": 1}}'"},
        "template": {"metadata": {"labels": {"role": role}}, "spec": {"containers": [container]}},
    }


def refusals(inputs: dict[str, Any]) -> list[str]:
    token = f"kubernetes:{inputs['apiVersion']}:{inputs['kind']}"
    checked = Kubernetes().check(ResourceRef(token, "urn", "llm"), inputs, None, b"seed")
    return [f"{one.property}: {one.reason}" for one in checked.failures]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The correct RayService with one value changed; a digit is a place in a list, "-" takes the value away."""
    inputs = ray_service()
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(" ")]
    place: Any = inputs
    for step in steps:
        place = place[step]
    if value == "-":
        del place[last]
    else:
        place[last] = value
    return inputs


CLUSTER = "spec rayClusterConfig"
SHOWN = "spec.rayClusterConfig"
HEAD_ENV = f"{CLUSTER} headGroupSpec template spec containers 0 env"
SHOWN_HEAD_ENV = f"{SHOWN}.headGroupSpec.template.spec.containers[0].env[0].name"


def test_a_correct_ray_service_is_accepted():
    assert refusals(ray_service()) == []


@pytest.mark.parametrize(
    ("path", "value", "refusal"),
    [
        (
            f"{CLUSTER} workerGroupSpec",
            [],
            f'{SHOWN}.workerGroupSpec: unknown field "workerGroupSpec": did you mean "workerGroupSpecs"?',
        ),
        ("spec serveConfigv2", "", 'spec.serveConfigv2: unknown field "serveConfigv2": did you mean "serveConfigV2"?'),
        ("spec rayClusterConfig", "-", 'spec.rayClusterConfig: required field "rayClusterConfig" is missing'),
        ("spec serveConfigV2", {"applications": []}, "spec.serveConfigV2: must be a string, not an object"),
        (
            "spec serveConfigV2",
            "applications: [",
            "spec.serveConfigV2: is not YAML at line 1, column 16: expected the node content, but found '<stream end>'",
        ),
        ("spec serveConfigV2", "- a", "spec.serveConfigV2: must be a YAML mapping"),
        (
            "spec upgradeStrategy type",
            "Recreate",
            'spec.upgradeStrategy.type: "Recreate" is none of NewClusterWithIncrementalUpgrade, NewCluster, None',
        ),
        (
            "spec upgradeStrategy type",
            "NewClusterWithIncrementalUpgrade",
            "spec.upgradeStrategy.clusterUpgradeOptions: is required for NewClusterWithIncrementalUpgrade",
        ),
        ("spec managedBy", "me", 'spec.managedBy: "me" is none of ray.io/kuberay-operator, kueue.x-k8s.io/multikueue'),
        (
            "metadata name",
            "a" * 48,
            f'metadata.name: "{"a" * 48}" has 48 characters, and KubeRay allows a RayService 47',
        ),
        (
            "metadata name",
            "1a",
            'metadata.name: "1a" must start with a lower-case letter and have only lower-case letters, digits and "-"',
        ),
        (
            f"{CLUSTER} upgradeStrategy",
            {"type": "None"},
            f"{SHOWN}.upgradeStrategy.type: cannot be set in a RayService: use spec.upgradeStrategy.type",
        ),
        (
            f"{CLUSTER} rayVersion",
            "-",
            f'{SHOWN}.rayVersion: is required with authOptions.mode "token": name the Ray version of the image, 2.52.0 or later',
        ),
        (
            f"{CLUSTER} rayVersion",
            "2.51.1",
            f'{SHOWN}.rayVersion: authOptions.mode "token" needs Ray 2.52.0 or later, not 2.51.1',
        ),
        (f"{CLUSTER} rayVersion", "latest", f'{SHOWN}.rayVersion: "latest" is no version such as 2.58.0'),
        (f"{CLUSTER} authOptions mode", "on", f'{SHOWN}.authOptions.mode: must be one of disabled, token, not "on"'),
        (
            f"{CLUSTER} authOptions enableK8sTokenAuth",
            True,
            f"{SHOWN}.authOptions.enableK8sTokenAuth: is not supported for a RayService",
        ),
        (
            f"{CLUSTER} autoscalerOptions idleTimeoutSeconds",
            -1,
            f"{SHOWN}.autoscalerOptions.idleTimeoutSeconds: must not be negative (-1)",
        ),
        (
            f"{CLUSTER} autoscalerOptions version",
            "v3",
            f'{SHOWN}.autoscalerOptions.version: must be one of v1, v2, not "v3"',
        ),
        (
            f"{CLUSTER} headGroupSpec template spec restartPolicy",
            "Always",
            f'{SHOWN}.headGroupSpec.template.spec.restartPolicy: must be Never or left out with the autoscaler v2, not "Always"',
        ),
        (
            f"{CLUSTER} headGroupSpec rayStartParams num-cpus",
            0,
            f"{SHOWN}.headGroupSpec.rayStartParams.num-cpus: must be a string, not an integer: put it in quotes",
        ),
        (
            f"{CLUSTER} headGroupSpec rayStartParams labels",
            "a=b",
            f"{SHOWN}.headGroupSpec.rayStartParams.labels: is not supported: use the group's own labels field",
        ),
        (
            f"{CLUSTER} headGroupSpec resources",
            {"CPU": "1"},
            f"{SHOWN}.headGroupSpec.resources: the head group sets resources here and in rayStartParams: keep one of the two",
        ),
        (
            HEAD_ENV,
            [{"name": "RAY_REDIS_ADDRESS", "value": "r:1"}],
            f"{SHOWN_HEAD_ENV}: RAY_REDIS_ADDRESS turns on GCS fault tolerance behind KubeRay's back: set gcsFaultToleranceOptions instead",
        ),
        (
            HEAD_ENV,
            [{"name": "RAY_enable_autoscaler_v2", "value": "1"}],
            f"{SHOWN_HEAD_ENV}: RAY_enable_autoscaler_v2 and autoscalerOptions.version are both set: keep the latter",
        ),
        (
            f"{CLUSTER} workerGroupSpecs 1 groupName",
            "prefill",
            f'{SHOWN}.workerGroupSpecs[1].groupName: "prefill" is already the name of workerGroupSpecs[0]',
        ),
        (
            f"{CLUSTER} workerGroupSpecs 0 groupName",
            "-",
            f'{SHOWN}.workerGroupSpecs[0].groupName: required field "groupName" is missing',
        ),
        (
            f"{CLUSTER} workerGroupSpecs 0 minReplicas",
            3,
            f"{SHOWN}.workerGroupSpecs[0].minReplicas: 3 is above maxReplicas (2)",
        ),
        (
            f"{CLUSTER} workerGroupSpecs 0 minReplicas",
            -1,
            f"{SHOWN}.workerGroupSpecs[0].minReplicas: must not be negative (-1)",
        ),
        (
            f"{CLUSTER} workerGroupSpecs 0 suspend",
            True,
            f"{SHOWN}.workerGroupSpecs[0].suspend: needs the operator's RayJobDeletionPolicy feature gate, which is off by default",
        ),
        (
            f"{CLUSTER} workerGroupSpecs 0 labels",
            {"a b": "c"},
            f'{SHOWN}.workerGroupSpecs[0].labels["a b"]: "a b" must be letters, digits, "-", "_" and ".", with a letter or digit at both ends',
        ),
        (
            f"{CLUSTER} workerGroupSpecs 0 template metadata generateName",
            "x",
            f'{SHOWN}.workerGroupSpecs[0].template.metadata.generateName: unknown field "generateName"',
        ),
        (
            f"{CLUSTER} workerGroupSpecs 0 template spec containers 0 securityContext privilegd",
            True,
            f'{SHOWN}.workerGroupSpecs[0].template.spec.containers[0].securityContext.privilegd: unknown field "privilegd": did you mean "privileged"?',
        ),
    ],
)
def test_each_fault_is_refused_with_its_path_and_remedy(path: str, value: Any, refusal: str):
    assert refusals(changed(path, value)) == [refusal]


def test_replica_bounds_have_defaults_and_may_be_left_out():
    inputs = ray_service()
    for field in ("replicas", "minReplicas", "maxReplicas"):
        del inputs["spec"]["rayClusterConfig"]["workerGroupSpecs"][0][field]
    assert refusals(inputs) == []


@pytest.mark.parametrize(
    "path",
    [
        "spec",
        "spec serveConfigV2",
        CLUSTER,
        f"{CLUSTER} rayVersion",
        f"{CLUSTER} workerGroupSpecs",
        f"{CLUSTER} workerGroupSpecs 0",
        f"{CLUSTER} workerGroupSpecs 1 groupName",
        "metadata name",
    ],
)
def test_what_is_not_known_yet_is_no_fault(path: str):
    assert refusals(changed(path, UNKNOWN)) == []


def ray_job(**spec: Any) -> dict[str, Any]:
    cluster = {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "head", "image": "ray:1"}]}}}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "job", "namespace": "x"},
        "spec": {"rayClusterSpec": cluster, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"rayClusterSpec": None}, ["spec.rayClusterSpec: is required unless clusterSelector names a cluster"]),
        (
            {"runtimeEnvYAML": "a: ["},
            [
                "spec.runtimeEnvYAML: is not YAML at line 1, column 5: expected the node content, but found '<stream end>'"
            ],
        ),
        ({"suspend": True}, ["spec.suspend: needs shutdownAfterJobFinishes: true"]),
        ({"ttlSecondsAfterFinished": 5}, ["spec.ttlSecondsAfterFinished: needs shutdownAfterJobFinishes: true"]),
        ({"activeDeadlineSeconds": 0}, ["spec.activeDeadlineSeconds: must be above 0, not 0"]),
        (
            {"submissionMode": "InteractiveMode", "backoffLimit": 1},
            ["spec.backoffLimit: must be 0 with clusterSelector or InteractiveMode"],
        ),
    ],
)
def test_a_ray_job_is_judged_as_the_operator_judges_it(spec: dict[str, Any], expected: list[str]):
    assert refusals(ray_job(**spec)) == expected


def test_the_older_version_that_the_operator_serves_has_its_own_schema():
    inputs = ray_service()
    inputs["apiVersion"] = "ray.io/v1alpha1"
    found = refusals(inputs)
    assert 'spec.upgradeStrategy: unknown field "upgradeStrategy"' in found
    assert 'spec.rayClusterConfig.authOptions: unknown field "authOptions"' in found


def test_the_fixture_says_where_it_comes_from():
    assert json.loads(record_kuberay.FIXTURE.read_text())["source"] == {
        "repository": "https://github.com/ray-project/kuberay",
        "module": "github.com/ray-project/kuberay/ray-operator",
        "tag": "v1.6.0",
        "files": [
            f"config/crd/bases/ray.io_{kind}.yaml" for kind in ("rayclusters", "raycronjobs", "rayjobs", "rayservices")
        ],
    }


@pytest.mark.skipif(shutil.which("go") is None, reason="Go fetches the module that the fixture was recorded from")
def test_the_fixture_is_what_the_module_holds():
    try:
        source = record_kuberay.download()
    except subprocess.CalledProcessError as fault:
        pytest.skip(f"the module cannot be downloaded here: {fault.stderr.strip()}")
    assert record_kuberay.text(record_kuberay.record(source)) == record_kuberay.FIXTURE.read_text()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"applications": [{"name": "llm"}]}, indent="\t"),
        "applications: []\n---\n",
        "applications: []\n---\n- a: [",
    ],
)
def test_a_serve_config_is_read_as_gos_yaml_reads_it(text: str):
    assert refusals(changed("spec serveConfigV2", text)) == []
