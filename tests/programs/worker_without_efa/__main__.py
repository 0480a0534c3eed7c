"""A RayService written as one nested document; the workers ask for a GPU and forget the EFA device."""

import json

import pulumi
import pulumi_kubernetes as k8s

resources = {"cpu": "24", "memory": "96Gi", "nvidia.com/gpu": "1"}
if pulumi.Config().get_bool("corrected"):
    resources["vpc.amazonaws.com/efa"] = "1"

IMAGE = "registry.example.com/ray-llm:2.58.0"


def role(kv_role: str) -> dict:
    """One role's LLMConfig."""
    return {
        "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
        "engine_kwargs": {
            "kv_transfer_config": {
                "kv_connector": "NixlConnector",
                "kv_role": kv_role,
                "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
            }
        },
    }


serve = {
    "applications": [
        {
            "name": "llm",
            "import_path": "ray.serve.llm:build_pd_openai_app",
            "args": {"prefill_config": role("kv_producer"), "decode_config": role("kv_consumer")},
        }
    ]
}


def group(name: str) -> dict:
    """One worker group of two pods."""
    return {
        "groupName": name,
        "replicas": 2,
        "minReplicas": 2,
        "maxReplicas": 2,
        "rayStartParams": {},
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "worker",
                        "image": IMAGE,
                        "env": [{"name": "FI_PROVIDER", "value": "efa"}],
                        "securityContext": {"privileged": True, "runAsUser": 0},
                        "resources": {"limits": resources, "requests": resources},
                    }
                ]
            }
        },
    }


k8s.apiextensions.CustomResource(
    "llm",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "llm", "namespace": "default"},
    spec={
        "serveConfigV2": json.dumps(serve),
        "rayClusterConfig": {
            "rayVersion": "2.58.0",
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "0"},
                "template": {"spec": {"containers": [{"name": "head", "image": IMAGE}]}},
            },
            "workerGroupSpecs": [group("workers")],
        },
    },
)
