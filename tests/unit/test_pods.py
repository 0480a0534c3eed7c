from typing import Any

import pytest

from components.node_labels import GPU_NODE_LABELS, GPU_TAINT, SYSTEM_NODE_LABELS
from components.pods import WorkerArgs, head_pod_template, worker_pod_template

IMAGE = "registry.example/ray:1.0"
WORKER: WorkerArgs = {"cpu": 24, "memory": "96Gi", "shm_size": "16Gi"}


@pytest.fixture
def worker() -> dict[str, Any]:
    return worker_pod_template(IMAGE, "ray-llm-worker", WORKER, gpus=1, efa_interfaces=1, token_secret=None)["spec"]


@pytest.fixture
def head() -> dict[str, Any]:
    return head_pod_template(IMAGE, "ray-llm-head", token_secret=None)["spec"]


def container(spec: dict[str, Any]) -> dict[str, Any]:
    [only] = spec["containers"]
    return only


def environment(spec: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(spec).get("env", [])}


def test_a_worker_requests_exactly_its_limits(worker: dict[str, Any]) -> None:
    expected = {"cpu": "24", "memory": "96Gi", "nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}
    assert container(worker)["resources"] == {"requests": expected, "limits": expected}


def test_a_worker_takes_every_gpu_and_efa_device_of_a_large_type() -> None:
    spec = worker_pod_template(IMAGE, "account", WORKER, gpus=8, efa_interfaces=32, token_secret=None)["spec"]
    limits = container(spec)["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["vpc.amazonaws.com/efa"]) == ("8", "32")


def test_a_worker_is_privileged_and_root(worker: dict[str, Any]) -> None:
    assert container(worker)["securityContext"] == {"privileged": True, "runAsUser": 0}
    assert "securityContext" not in worker


def test_a_worker_has_the_environment_that_makes_efa_fail_closed(worker: dict[str, Any]) -> None:
    assert environment(worker) == {
        "FI_PROVIDER": "efa",
        "FI_EFA_ENABLE_SHM_TRANSFER": "0",
        "FI_EFA_FORK_SAFE": "1",
        "FI_EFA_USE_HUGE_PAGE": "0",
        "NIXL_LOG_LEVEL": "INFO",
        "VLLM_SSM_CONV_STATE_LAYOUT": "DS",
        "VLLM_HOST_IP": {"fieldRef": {"fieldPath": "status.podIP"}},
        "HF_HOME": "/var/cache/huggingface",
    }


def test_a_token_reaches_head_and_worker_by_reference_only() -> None:
    reference = {"secretKeyRef": {"name": "ray-llm-hugging-face", "key": "token"}}
    head = head_pod_template(IMAGE, "account", "ray-llm-hugging-face")["spec"]
    worker = worker_pod_template(IMAGE, "account", WORKER, 1, 1, "ray-llm-hugging-face")["spec"]
    assert environment(head)["HF_TOKEN"] == reference
    assert environment(worker)["HF_TOKEN"] == reference


def test_without_a_token_no_pod_asks_for_one(head: dict[str, Any], worker: dict[str, Any]) -> None:
    assert "HF_TOKEN" not in environment(head)
    assert "HF_TOKEN" not in environment(worker)


def test_workers_never_share_a_node(worker: dict[str, Any]) -> None:
    [term] = worker["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"ray.io/node-type": "worker"}},
    }


def test_a_worker_goes_to_the_gpu_nodes_and_tolerates_their_taint(worker: dict[str, Any]) -> None:
    assert worker["nodeSelector"] == dict(GPU_NODE_LABELS)
    assert worker["tolerations"] == [GPU_TAINT.toleration()]


def test_shared_memory_has_a_bound(worker: dict[str, Any]) -> None:
    assert {"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}} in worker["volumes"]
    assert {"name": "shared-mem", "mountPath": "/dev/shm"} in container(worker)["volumeMounts"]


def test_weights_are_cached_on_the_nodes_own_storage_or_the_pod_does_not_start(worker: dict[str, Any]) -> None:
    [volume] = [volume for volume in worker["volumes"] if "hostPath" in volume]
    assert volume["hostPath"] == {"path": "/mnt/k8s-disks/0", "type": "Directory"}
    [mount] = [mount for mount in container(worker)["volumeMounts"] if mount["name"] == volume["name"]]
    assert mount["mountPath"] == environment(worker)["HF_HOME"]
    assert mount["subPath"] == "huggingface"


def test_kuberay_may_add_its_own_command_and_probes(worker: dict[str, Any]) -> None:
    assert not container(worker).keys() & {"command", "args", "livenessProbe", "readinessProbe", "startupProbe"}


def test_a_worker_is_not_on_the_hosts_network_and_has_no_api_token(worker: dict[str, Any]) -> None:
    assert "hostNetwork" not in worker
    assert worker["automountServiceAccountToken"] is False
    assert worker["serviceAccountName"] == "ray-llm-worker"


def test_the_reason_of_a_failed_container_outlives_its_log(head: dict[str, Any], worker: dict[str, Any]) -> None:
    assert container(head)["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert container(worker)["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_head_is_an_unprivileged_cpu_pod_on_the_system_node(head: dict[str, Any]) -> None:
    assert head["nodeSelector"] == dict(SYSTEM_NODE_LABELS)
    assert "tolerations" not in head
    assert container(head)["securityContext"] == {"privileged": False, "allowPrivilegeEscalation": False}
    resources = container(head)["resources"]
    assert set(resources["requests"]) | set(resources["limits"]) == {"cpu", "memory"}


def test_the_head_has_memory_for_the_builder_of_the_application(head: dict[str, Any]) -> None:
    resources = container(head)["resources"]
    assert (resources["requests"]["memory"], resources["limits"]["memory"]) == ("8Gi", "12Gi")


def test_the_autoscaler_in_the_head_can_talk_to_the_api_server(head: dict[str, Any]) -> None:
    assert head["automountServiceAccountToken"] is True
    assert head["serviceAccountName"] == "ray-llm-head"


def test_the_port_of_the_ray_client_is_not_offered(head: dict[str, Any]) -> None:
    assert {port["name"]: port["containerPort"] for port in container(head)["ports"]} == {
        "gcs-server": 6379,
        "dashboard": 8265,
        "serve": 8000,
        "metrics": 8080,
    }
