"""KubeRay's first RayService, restated: two CPU applications, no GPU, no EFA, no KV transfer.

Facts from ray-project/kuberay v1.6.0, ray-operator/config/samples/ray-service.sample.yaml.
"""

import pulumi_kubernetes as k8s
import yaml

IMAGE = "rayproject/ray:2.52.0"
CODE = {"working_dir": "https://github.com/ray-project/test_dag/archive/78b4a5da38796123d9f9ffff59bab2792a043e95.zip"}


def deployment(name: str, replicas: int = 1, **settings: object) -> dict:
    """A Serve deployment on a tenth of a CPU."""
    return {"name": name, "num_replicas": replicas, "ray_actor_options": {"num_cpus": 0.1}, **settings}


fruit = {
    "name": "fruit_app",
    "import_path": "fruit.deployment_graph",
    "route_prefix": "/fruit",
    "runtime_env": CODE,
    "deployments": [
        deployment("MangoStand", 2, max_replicas_per_node=1, user_config={"price": 3}),
        deployment("OrangeStand", user_config={"price": 2}),
        deployment("PearStand", user_config={"price": 1}),
        deployment("FruitMarket"),
    ],
}
calculator = {
    "name": "math_app",
    "import_path": "conditional_dag.serve_dag",
    "route_prefix": "/calc",
    "runtime_env": CODE,
    "deployments": [
        deployment("Adder", user_config={"increment": 3}),
        deployment("Multiplier", user_config={"factor": 5}),
        {"name": "Router", "num_replicas": 1},
    ],
}


def pod(name: str, limits: dict, requests: dict) -> dict:
    """A pod template of one Ray container."""
    return {
        "spec": {"containers": [{"name": name, "image": IMAGE, "resources": {"limits": limits, "requests": requests}}]}
    }


k8s.apiextensions.CustomResource(
    "rayservice-sample",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "rayservice-sample"},
    spec={
        "serveConfigV2": yaml.safe_dump({"applications": [fruit, calculator]}),
        "rayClusterConfig": {
            "rayVersion": "2.52.0",
            "headGroupSpec": {
                "rayStartParams": {},
                "template": pod("ray-head", {"cpu": "2", "memory": "5Gi"}, {"cpu": "2", "memory": "2Gi"}),
            },
            "workerGroupSpecs": [
                {
                    "groupName": "small-group",
                    "replicas": 1,
                    "minReplicas": 1,
                    "maxReplicas": 5,
                    "rayStartParams": {},
                    "template": pod("ray-worker", {"cpu": "1", "memory": "2Gi"}, {"cpu": "500m", "memory": "2Gi"}),
                }
            ],
        },
    },
)
