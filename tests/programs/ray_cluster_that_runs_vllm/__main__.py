"""No Ray Serve here: a RayCluster whose workers start vLLM themselves, with the KV transfer as JSON on the command line."""

import json

import pulumi
import pulumi_kubernetes as k8s

IMAGE = "registry.example.com/ray-llm:2.58.0"

transfer: dict = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
if pulumi.Config().get_bool("corrected"):
    transfer["kv_connector_extra_config"] = {"backends": ["LIBFABRIC"]}

devices = {"nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": 1}

k8s.apiextensions.CustomResource(
    "bench",
    api_version="ray.io/v1",
    kind="RayCluster",
    metadata={"name": "bench", "namespace": "default"},
    spec={
        "rayVersion": "2.58.0",
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0"},
            "template": {"spec": {"containers": [{"name": "head", "image": IMAGE}]}},
        },
        "workerGroupSpecs": [
            {
                "groupName": "engines",
                "replicas": 2,
                "minReplicas": 2,
                "maxReplicas": 2,
                "rayStartParams": {},
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "engine",
                                "image": IMAGE,
                                "command": ["/bin/bash", "-c"],
                                "args": [f"vllm serve acme/tiny --kv-transfer-config '{json.dumps(transfer)}' &"],
                                "env": [{"name": "FI_PROVIDER", "value": "efa"}],
                                "securityContext": {"privileged": True},
                                "resources": {"limits": devices, "requests": devices},
                            }
                        ]
                    }
                },
            }
        ],
    },
)
