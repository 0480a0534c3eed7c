"""Follows Ray's guide, which names NixlConnector and no backend, and trusts environment variables that nobody reads."""

import pulumi
import pulumi_kubernetes as k8s
import yaml

corrected = pulumi.Config().get_bool("corrected")
IMAGE = "registry.example.com/ray-llm:2.58.0"


def transfer() -> dict:
    """The KV transfer of one role."""
    config: dict = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
    if corrected:
        config["kv_connector_extra_config"] = {"backends": ["LIBFABRIC"]}
    return config


llm = {
    "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
    "engine_kwargs": {"max_model_len": 4096, "kv_transfer_config": transfer()},
}
# safe_dump writes the second role as a YAML alias of the first: a real parser is needed to see it.
serve = yaml.safe_dump(
    {
        "applications": [
            {
                "name": "llm",
                "import_path": "ray.serve.llm:build_pd_openai_app",
                "args": {"prefill_config": llm, "decode_config": llm},
            }
        ]
    }
)

devices = {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}
environment = {"NIXL_BACKEND": "LIBFABRIC", "VLLM_NIXL_BACKEND": "LIBFABRIC"}
if corrected:
    environment = {"FI_PROVIDER": "efa"}

worker = {
    "name": "worker",
    "image": IMAGE,
    "env": [{"name": name, "value": value} for name, value in environment.items()],
    "securityContext": {"privileged": True},
    "resources": {"limits": devices, "requests": devices},
}
head = {"name": "head", "image": IMAGE, "env": [{"name": "FI_PROVIDER", "value": "efa"}]}

k8s.apiextensions.CustomResource(
    "llm",
    # What older operators and samples still use.
    api_version="ray.io/v1alpha1",
    kind="RayService",
    metadata={"name": "llm", "namespace": "default"},
    spec={
        "serveConfigV2": serve,
        "rayClusterConfig": {
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [head]}}},
            "workerGroupSpecs": [
                {
                    "groupName": "workers",
                    "replicas": 2,
                    "minReplicas": 2,
                    "maxReplicas": 2,
                    "rayStartParams": {},
                    "template": {"spec": {"containers": [worker]}},
                }
            ],
        },
    },
)
