"""The RayService belongs to another team; this stack patches its Serve configuration, and loses the backend on the way."""

import pulumi
import pulumi_kubernetes as k8s
import yaml

extra = {"backends": ["LIBFABRIC"]} if pulumi.Config().get_bool("corrected") else {"num_threads": 4}


def role(kv_role: str) -> dict:
    """The LLMConfig of one role."""
    return {
        "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
        "engine_kwargs": {
            "max_model_len": 8192,
            "kv_transfer_config": {
                "kv_connector": "NixlConnector",
                "kv_role": kv_role,
                "kv_connector_extra_config": extra,
            },
        },
    }


k8s.apiextensions.CustomResourcePatch(
    "longer-prompts",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "llm", "namespace": "default"},
    spec={
        "serveConfigV2": yaml.safe_dump(
            {
                "applications": [
                    {
                        "name": "llm",
                        "import_path": "ray.serve.llm:build_pd_openai_app",
                        "args": {"prefill_config": role("kv_producer"), "decode_config": role("kv_consumer")},
                    }
                ]
            }
        )
    },
)
