"""AWS's prefill/decode sample for Ray on EKS, restated: two g5 workers, the KV cache over TCP by UCX.

Facts from AWS's sample as its fork lopezfelipe/sample-aws-deep-learning-containers holds it (commit 545c3838),
inference/ray-serve/ray-serve-multi-node/manifest/rayservice.yaml, its variables filled in from scripts/env.sh. With `onEfa`
only what moving to EFA nodes visibly asks for is added: the device, the privileges and the provider.
"""

import pulumi
import pulumi_kubernetes as k8s
import yaml

on_efa = pulumi.Config().get_bool("onEfa")

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/ray:serve-llm-cuda-v1.0"
CACHE = {"name": "HF_HOME", "value": "/home/ray/hf-cache"}
STOP = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}


def role(engine_id: str) -> dict:
    """The LLMConfig of one role: the same but for the id of its engine."""
    return {
        "model_loading_config": {"model_id": "qwen3.5-9b", "model_source": "Qwen/Qwen3.5-9B"},
        "engine_kwargs": {
            "max_model_len": 1024,
            "dtype": "bfloat16",
            "gpu_memory_utilization": 0.9,
            "enforce_eager": True,
            "kv_transfer_config": {"kv_connector": "NixlConnector", "kv_role": "kv_both", "engine_id": engine_id},
        },
        "deployment_config": {"num_replicas": 1},
    }


app = {
    "name": "qwen",
    "import_path": "ray.serve.llm:build_pd_openai_app",
    "route_prefix": "/",
    "args": {"prefill_config": role("prefill"), "decode_config": role("decode")},
}
head = {
    "name": "ray-head",
    "image": IMAGE,
    "imagePullPolicy": "Always",
    "env": [CACHE],
    "ports": [
        {"containerPort": 6379, "name": "gcs"},
        {"containerPort": 8265, "name": "dashboard"},
        {"containerPort": 8000, "name": "serve"},
    ],
    "resources": {"limits": {"cpu": "3", "memory": "12Gi"}, "requests": {"cpu": "2", "memory": "8Gi"}},
    "lifecycle": STOP,
}
devices = {"nvidia.com/gpu": "1"}
worker = {
    "name": "ray-worker",
    "image": IMAGE,
    "imagePullPolicy": "Always",
    "env": [
        CACHE,
        {"name": "NCCL_DEBUG", "value": "INFO"},
        {"name": "NCCL_SOCKET_IFNAME", "value": "eth0"},
        {"name": "UCX_TLS", "value": "tcp,cuda_copy"},
        {"name": "VLLM_SSM_CONV_STATE_LAYOUT", "value": "DS"},
        {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ],
    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    "lifecycle": STOP,
}
if on_efa:
    devices["vpc.amazonaws.com/efa"] = "1"
    worker["securityContext"] = {"privileged": True}
    worker["env"].append({"name": "FI_PROVIDER", "value": "efa"})
worker["resources"] = {
    "limits": {"cpu": "3", "memory": "12Gi", **devices},
    "requests": {"cpu": "2", "memory": "8Gi", **devices},
}

k8s.apiextensions.CustomResource(
    "ray-llm",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "ray-llm", "namespace": "inference"},
    spec={
        "serviceUnhealthySecondThreshold": 1200,
        "deploymentUnhealthySecondThreshold": 1200,
        "serveConfigV2": yaml.safe_dump({"applications": [app]}),
        "rayClusterConfig": {
            "rayVersion": "2.58.0",
            "headGroupSpec": {
                "rayStartParams": {"dashboard-host": "0.0.0.0", "num-gpus": "0"},
                "template": {"spec": {"nodeSelector": {"role": "system"}, "containers": [head]}},
            },
            "workerGroupSpecs": [
                {
                    "groupName": "gpu-workers",
                    "replicas": 2,
                    "minReplicas": 2,
                    "maxReplicas": 2,
                    "rayStartParams": {"num-gpus": "1"},
                    "template": {
                        "spec": {
                            "nodeSelector": {"role": "gpu-worker"},
                            "containers": [worker],
                            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}}],
                        }
                    },
                }
            ],
        },
    },
)
