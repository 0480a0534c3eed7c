"""KubeRay's LLM sample, restated: one model on GPU workers, no prefill/decode, no KV transfer, no EFA.

Facts from ray-project/kuberay v1.6.0, ray-operator/config/samples/ray-service.llm-serve.yaml.
"""

import pulumi
import pulumi_kubernetes as k8s
import yaml

IMAGE = "rayproject/ray-llm:2.52.0-py311-cu128"
PORTS = {"serve": 8000, "metrics": 8080, "gcs": 6379, "dashboard": 8265, "client": 10001}

token = k8s.core.v1.Secret(
    "hf-token",
    metadata={"name": "hf-token"},
    type="Opaque",
    string_data={"hf_token": pulumi.Output.secret("an-access-token")},
)

model = {
    "model_loading_config": {"model_id": "qwen2.5-7b-instruct", "model_source": "Qwen/Qwen2.5-7B-Instruct"},
    "engine_kwargs": {
        "dtype": "bfloat16",
        "max_model_len": 1024,
        "device": "auto",
        "gpu_memory_utilization": 0.75,
    },
    "deployment_config": {
        "autoscaling_config": {"min_replicas": 1, "max_replicas": 4, "target_ongoing_requests": 64},
        "max_ongoing_requests": 128,
    },
}
app = {
    "name": "llms",
    "import_path": "ray.serve.llm:build_openai_app",
    "route_prefix": "/",
    "args": {"llm_configs": [model]},
}
gpu_node = {"cpu": "32", "memory": "32Gi", "nvidia.com/gpu": "4"}

k8s.apiextensions.CustomResource(
    "ray-serve-llm",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "ray-serve-llm"},
    spec={
        "serveConfigV2": yaml.safe_dump({"applications": [app]}),
        "rayClusterConfig": {
            "rayVersion": "2.52.0",
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "0", "num-gpus": "0"},
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "ray-head",
                                "image": IMAGE,
                                "ports": [
                                    {"name": name, "containerPort": port, "protocol": "TCP"}
                                    for name, port in PORTS.items()
                                ],
                                "resources": {
                                    "limits": {"cpu": "2", "memory": "5Gi"},
                                    "requests": {"cpu": "2", "memory": "4Gi"},
                                },
                            }
                        ]
                    }
                },
            },
            "workerGroupSpecs": [
                {
                    "groupName": "gpu-group",
                    "replicas": 1,
                    "minReplicas": 1,
                    "maxReplicas": 1,
                    "numOfHosts": 1,
                    "rayStartParams": {"num-gpus": "4"},
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "ray-worker",
                                    "image": IMAGE,
                                    "env": [
                                        {
                                            "name": "HUGGING_FACE_HUB_TOKEN",
                                            "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "hf_token"}},
                                        }
                                    ],
                                    "resources": {"limits": gpu_node, "requests": gpu_node},
                                }
                            ]
                        }
                    },
                }
            ],
        },
    },
    opts=pulumi.ResourceOptions(depends_on=[token]),
)
