"""A typed class as a CRD generator writes it. Somebody fixed prefill; decode still takes NIXL's default, which is UCX."""

import pulumi
import pulumi_kubernetes as k8s
import yaml

IMAGE = "registry.example.com/ray-llm:2.58.0"


class RayService(pulumi.CustomResource):
    """A RayService with its own Python type."""

    def __init__(self, name: str, metadata: dict, spec: dict, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(
            "kubernetes:ray.io/v1:RayService",
            name,
            {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": metadata, "spec": spec},
            pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(aliases=[pulumi.Alias(type_="kubernetes:ray.io/v1alpha1:RayService")]), opts
            ),
        )


def llm(kv_role: str, **transfer: object) -> dict:
    """The LLMConfig of one role."""
    return {
        "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
        "engine_kwargs": {"kv_transfer_config": {"kv_connector": "NixlConnector", "kv_role": kv_role, **transfer}},
    }


libfabric = {"kv_connector_extra_config": {"backends": ["LIBFABRIC"]}}
decode = libfabric if pulumi.Config().get_bool("corrected") else {}
serve = {
    "applications": [
        {
            "name": "llm",
            "import_path": "ray.serve.llm:build_pd_openai_app",
            "args": {"prefill_config": llm("kv_producer", **libfabric), "decode_config": llm("kv_consumer", **decode)},
        }
    ]
}
devices = {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}
worker = {
    "name": "worker",
    "image": IMAGE,
    "env": [{"name": "FI_PROVIDER", "value": "efa"}],
    "securityContext": {"privileged": True},
    "resources": {"limits": devices, "requests": devices},
}
namespace = k8s.core.v1.Namespace("inference", metadata={"name": "inference"})
RayService(
    "llm",
    {"name": "llm", "namespace": namespace.metadata.name},
    {
        "serveConfigV2": yaml.safe_dump(serve),
        "rayClusterConfig": {
            "headGroupSpec": {
                "rayStartParams": {},
                "template": {"spec": {"containers": [{"name": "h", "image": IMAGE}]}},
            },
            "workerGroupSpecs": [
                {
                    "groupName": role,
                    "replicas": 1,
                    "minReplicas": 1,
                    "maxReplicas": 1,
                    "rayStartParams": {},
                    "template": {"spec": {"containers": [worker]}},
                }
                for role in ("prefill", "decode")
            ],
        },
    },
)
