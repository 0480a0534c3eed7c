"""NIXL beside a local cache, through MultiConnector; `backends` stands next to the connector's name, where nobody reads it."""

import json

import pulumi
import pulumi_kubernetes as k8s

IMAGE = "registry.example.com/ray-llm:2.58.0"

nixl: dict = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
if pulumi.Config().get_bool("corrected"):
    nixl["kv_connector_extra_config"] = {"backends": ["LIBFABRIC"]}
else:
    nixl["backends"] = ["LIBFABRIC"]

llm = {
    "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
    "runtime_env": {"env_vars": {"FI_PROVIDER": "efa"}},
    "engine_kwargs": {
        "kv_transfer_config": {
            "kv_connector": "MultiConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": {
                "connectors": [{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}, nixl]
            },
        }
    },
}
app = {
    "name": "llm",
    "import_path": "ray.serve.llm:build_pd_openai_app",
    "args": {"prefill_config": llm, "decode_config": llm},
}

k8s.apiextensions.CustomResource(
    "llm",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "llm", "namespace": "default"},
    spec={
        "serveConfigV2": json.dumps({"applications": [app]}),
        "rayClusterConfig": {
            "headGroupSpec": {
                "rayStartParams": {},
                "template": {"spec": {"containers": [{"name": "head", "image": IMAGE}]}},
            },
            "workerGroupSpecs": [
                {
                    "groupName": "workers",
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
                                    "securityContext": {"privileged": True},
                                    "resources": {"limits": {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}},
                                }
                            ]
                        }
                    },
                }
            ],
        },
    },
)
