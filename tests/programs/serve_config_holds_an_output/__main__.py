"""The weights come from a bucket of this stack: one Output inside makes the whole Serve configuration unknown before `up`."""

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

IMAGE = "registry.example.com/ray-llm:2.58.0"
NAME = "acme-weights-eu7w"

bucket = aws.s3.Bucket("weights", bucket=NAME)
name = NAME if pulumi.Config().get_bool("corrected") else bucket.id


def role(kv_role: str) -> dict:
    """The LLMConfig of one role."""
    return {
        "model_loading_config": {
            "model_id": "tiny",
            "model_source": {"bucket_uri": pulumi.Output.concat("s3://", name, "/tiny")},
        },
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

k8s.apiextensions.CustomResource(
    "llm",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "llm", "namespace": "default"},
    spec={
        "serveConfigV2": pulumi.Output.json_dumps(serve),
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
                                    "env": [{"name": "FI_PROVIDER", "value": "efa"}],
                                    "securityContext": {"privileged": True},
                                    "resources": {"limits": {"nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": 1}},
                                }
                            ]
                        }
                    },
                }
            ],
        },
    },
)
