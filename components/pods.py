"""The pods of the Ray cluster as plain documents: the head without work, and the workers that own a GPU node each.

KubeRay takes the first container of a template as the Ray container and adds to it: ports for metrics, probes, the
token, the ``ray start`` command. What it adds is not repeated here.
"""

from typing import Any, Final, TypedDict

from components.node_labels import GPU_NODE_LABELS, GPU_TAINT, NODE_STORAGE, SYSTEM_NODE_LABELS

HUGGING_FACE_TOKEN_KEY: Final = "token"
"""Key of the Hugging Face token in its Secret."""

WEIGHTS_CACHE: Final = "/var/cache/huggingface"
"""Where a worker sees the node's cache of weights; ``HF_HOME`` points at it."""

SERVE_PORT: Final = 8000
METRICS_PORT: Final = 8080
_DASHBOARD_PORT: Final = 8265
_GCS_PORT: Final = 6379

EFA_ENVIRONMENT: Final = {
    # Without it the LIBFABRIC backend takes tcp where it sees no EFA device and says nothing (ai-dynamo/nixl#833).
    "FI_PROVIDER": "efa",
    # Shared-memory transfer corrupts GPU memory under load (NVIDIA Dynamo's EFA guide).
    "FI_EFA_ENABLE_SHM_TRANSFER": "0",
    "FI_EFA_FORK_SAFE": "1",
    # The pod requests no huge pages.
    "FI_EFA_USE_HUGE_PAGE": "0",
    # The level at which NIXL names the provider of its rails, the one line that tells efa from tcp.
    "NIXL_LOG_LEVEL": "INFO",
    # Read by hybrid models (Mamba, Gated DeltaNet) alone, which refuse to start with the NIXL connector otherwise (vLLM 0.26).
    "VLLM_SSM_CONV_STATE_LAYOUT": "DS",
}
"""Environment of every worker that does not depend on the stack. ``FI_EFA_USE_DEVICE_RDMA`` is absent on purpose: libfabric
turns RDMA on wherever the type has it, and forcing it aborts where it has not."""

_HEAD_RESOURCES: Final = {
    # The builder of the application imports vLLM and may run here; more CPU than this only shortens that import.
    "requests": {"cpu": "2", "memory": "8Gi"},
    "limits": {"memory": "12Gi"},
}


class WorkerArgs(TypedDict):
    """What a worker takes of its node, besides all its GPUs and EFA devices."""

    cpu: int
    """CPUs of the pod, which are the CPUs Ray may hand out."""
    memory: str
    """Memory as a Kubernetes quantity, for example ``96Gi``; it includes what lies in /dev/shm."""
    shm_size: str
    """Upper bound of /dev/shm as a Kubernetes quantity, for example ``16Gi``."""


def head_pod_template(image: str, service_account: str, token_secret: str | None) -> dict[str, Any]:
    """The pod template of the head: on the system node, no GPU, no EFA, no privileges.

    The autoscaler, which KubeRay adds as a second container, talks to the API server: this pod keeps its account's token.

    Args:
        image: Image of the Ray container, the same as the workers'.
        service_account: Name of the head's service account.
        token_secret: Name of the Secret with the Hugging Face token, or ``None`` for open models.
    """
    container: dict[str, Any] = {
        "name": "ray-head",
        "image": image,
        "ports": [
            # KubeRay makes the ports of the head and serve services from these names. The port of the Ray client is left
            # out: nobody needs it here, and it runs whatever it is sent.
            {"name": "gcs-server", "containerPort": _GCS_PORT},
            {"name": "dashboard", "containerPort": _DASHBOARD_PORT},
            {"name": "serve", "containerPort": SERVE_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "resources": _HEAD_RESOURCES,
        "securityContext": {"privileged": False, "allowPrivilegeEscalation": False},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if token_secret is not None:
        container["env"] = [_token_variable(token_secret)]
    return {
        "spec": {
            "serviceAccountName": service_account,
            "automountServiceAccountToken": True,
            "nodeSelector": dict(SYSTEM_NODE_LABELS),
            "containers": [container],
        }
    }


def worker_pod_template(
    image: str,
    service_account: str,
    worker: WorkerArgs,
    gpus: int,
    efa_interfaces: int,
    token_secret: str | None,
) -> dict[str, Any]:
    """The pod template of a worker, equal for both roles.

    A privileged container sees all devices of its node whatever it requested (kubernetes/kubernetes#81256), so a worker
    takes every GPU and EFA device there is and never shares a node with another one.

    Args:
        image: Image of the Ray container.
        service_account: Name of the workers' service account; its token is not mounted.
        worker: CPU, memory and shared memory of the pod.
        gpus: GPUs of the instance type.
        efa_interfaces: EFA devices of the instance type.
        token_secret: Name of the Secret with the Hugging Face token, or ``None`` for open models.
    """
    resources = {
        "cpu": str(worker["cpu"]),
        "memory": worker["memory"],
        "nvidia.com/gpu": str(gpus),
        "vpc.amazonaws.com/efa": str(efa_interfaces),
    }
    environment: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in EFA_ENVIRONMENT.items()]
    environment.append({"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    environment.append({"name": "HF_HOME", "value": WEIGHTS_CACHE})
    if token_secret is not None:
        environment.append(_token_variable(token_secret))
    return {
        "spec": {
            "serviceAccountName": service_account,
            "automountServiceAccountToken": False,
            "nodeSelector": dict(GPU_NODE_LABELS),
            "tolerations": [GPU_TAINT.toleration()],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"ray.io/node-type": "worker"}},
                        }
                    ]
                }
            },
            "containers": [
                {
                    "name": "ray-worker",
                    "image": image,
                    "env": environment,
                    "resources": {"requests": dict(resources), "limits": dict(resources)},
                    # IPC_LOCK alone fails as soon as NIXL registers GPU memory with the adapter, and counts for root only.
                    "securityContext": {"privileged": True, "runAsUser": 0},
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": [
                        {"name": "shared-mem", "mountPath": "/dev/shm"},
                        {"name": "node-storage", "mountPath": WEIGHTS_CACHE, "subPath": "huggingface"},
                    ],
                }
            ],
            "volumes": [
                {"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": worker["shm_size"]}},
                # Directory, not DirectoryOrCreate: where the RAID0 is missing the latter fills the root disk instead.
                {"name": "node-storage", "hostPath": {"path": NODE_STORAGE, "type": "Directory"}},
            ],
        }
    }


def _token_variable(secret: str) -> dict[str, Any]:
    """``HF_TOKEN`` by reference, so that the token stands in no manifest."""
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": secret, "key": HUGGING_FACE_TOKEN_KEY}}}
