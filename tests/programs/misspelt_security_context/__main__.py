"""The privileges are there, under a name that Kubernetes does not know: without a check the worker runs without them."""

import pulumi
import pulumi_kubernetes as k8s

IMAGE = "rayproject/ray:2.52.0"
field = "securityContext" if pulumi.Config().get_bool("corrected") else "securityContex"

k8s.apiextensions.CustomResource(
    "training",
    api_version="ray.io/v1",
    kind="RayCluster",
    metadata={"name": "training", "namespace": "default"},
    spec={
        "headGroupSpec": {
            "rayStartParams": {},
            "template": {"spec": {"containers": [{"name": "head", "image": IMAGE}]}},
        },
        "workerGroupSpecs": [
            {
                "groupName": "gpu",
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
                                field: {"privileged": True},
                                "env": [{"name": "FI_PROVIDER", "value": "efa"}],
                                "resources": {"limits": {"nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": 1}},
                            }
                        ]
                    }
                },
            }
        ],
    },
)
