"""A benchmark as a RayJob: its workers are privileged, but the pod runs as uid 1000, for whom that means nothing."""

import json
import shlex

import pulumi
import pulumi_kubernetes as k8s

IMAGE = "registry.example.com/ray-llm:2.58.0"

transfer = {
    "kv_connector": "NixlConnector",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
}
worker = {
    "name": "worker",
    "image": IMAGE,
    "env": [{"name": "FI_PROVIDER", "value": "efa"}],
    "securityContext": {"privileged": True},
    "resources": {"limits": {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}},
}
user = 0 if pulumi.Config().get_bool("corrected") else 1000

k8s.apiextensions.CustomResource(
    "bench",
    api_version="ray.io/v1",
    kind="RayJob",
    metadata={"name": "bench", "namespace": "default"},
    spec={
        "entrypoint": f"python bench.py --kv-transfer-config {shlex.quote(json.dumps(transfer))}",
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": {
            "headGroupSpec": {
                "rayStartParams": {},
                "template": {
                    "spec": {"securityContext": {"runAsUser": 1000}, "containers": [{"name": "head", "image": IMAGE}]}
                },
            },
            "workerGroupSpecs": [
                {
                    "groupName": "workers",
                    "replicas": 2,
                    "minReplicas": 2,
                    "maxReplicas": 2,
                    "rayStartParams": {},
                    "template": {"spec": {"securityContext": {"runAsUser": user}, "containers": [worker]}},
                }
            ],
        },
    },
)
