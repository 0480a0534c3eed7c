"""A plain CPU RayService in which one field has lost its last letter: an API server refuses it, so must a preview."""

import pulumi
import pulumi_kubernetes as k8s

IMAGE = "rayproject/ray:2.52.0"
pod = {"spec": {"containers": [{"name": "ray", "image": IMAGE}]}}
field = "workerGroupSpecs" if pulumi.Config().get_bool("corrected") else "workerGroupSpec"

k8s.apiextensions.CustomResource(
    "fruit",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "fruit", "namespace": "default"},
    spec={
        "serveConfigV2": "applications: [{name: fruit, import_path: 'fruit:app'}]",
        "rayClusterConfig": {
            "headGroupSpec": {"rayStartParams": {}, "template": pod},
            field: [
                {
                    "groupName": "small",
                    "replicas": 1,
                    "minReplicas": 1,
                    "maxReplicas": 1,
                    "rayStartParams": {},
                    "template": pod,
                }
            ],
        },
    },
)
