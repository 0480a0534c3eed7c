"""The image is built into a repository of this stack and unknown before `up`, which must hide nothing else of the container."""

import json

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

repository = aws.ecr.Repository("ray-llm", image_tag_mutability="IMMUTABLE")
image = pulumi.Output.concat(repository.repository_url, ":2.58.0")

transfer = {
    "kv_connector": "NixlConnector",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
}
llm = {
    "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
    "engine_kwargs": {"kv_transfer_config": transfer},
}
app = {
    "name": "llm",
    "import_path": "ray.serve.llm:build_pd_openai_app",
    "args": {"prefill_config": llm, "decode_config": llm},
}
worker: dict = {
    "image": image,
    "name": "worker",
    "env": [
        {"name": "CONTAINER_IMAGE", "value": image},
        {"name": "FI_PROVIDER", "value": "efa"},
        {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ],
    "resources": {"limits": {"nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": 1}},
}
if pulumi.Config().get_bool("corrected"):
    worker["securityContext"] = {"privileged": True}

k8s.apiextensions.CustomResource(
    "llm",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "llm", "namespace": "default", "labels": {"acme.example.com/registry": repository.registry_id}},
    spec={
        "serveConfigV2": json.dumps({"applications": [app]}),
        "rayClusterConfig": {
            "headGroupSpec": {
                "rayStartParams": {},
                "template": {"spec": {"containers": [{"name": "head", "image": image}]}},
            },
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
