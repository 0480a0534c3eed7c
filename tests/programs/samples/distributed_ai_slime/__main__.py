"""The RayCluster of a GRPO training on p5, restated: all EFA devices of the node, FI_PROVIDER=efa, no privileges.

Facts from awslabs/awsome-distributed-ai at 0b55936a, 3.test_cases/pytorch/slime/kubernetes/raycluster.yaml, with two nodes
of eight GPUs for its variables.
"""

import pulumi_kubernetes as k8s

IMAGE = "registry.example.com/slime:1.0"
TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "HF_TOKEN"}}}
SHARED = [{"name": "RAY_memory_monitor_refresh_ms", "value": "0"}, {"name": "PYTHONPATH", "value": "/opt/Megatron-LM"}]
MOUNTS = [{"name": "fsx", "mountPath": "/fsx"}, {"name": "dshm", "mountPath": "/dev/shm"}]


def volumes(shared_memory: str) -> list:
    """The file system and the shared memory of a pod."""
    return [
        {"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx-claim"}},
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory}},
    ]


head = {
    "name": "ray-head",
    "image": IMAGE,
    "imagePullPolicy": "Always",
    "ports": [{"containerPort": port} for port in (6379, 8265, 10001)],
    "env": [
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
        *SHARED,
        TOKEN,
        {"name": "NCCL_DEBUG", "value": "WARN"},
    ],
    "resources": {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
    "volumeMounts": MOUNTS,
}
devices = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
fabric = {
    "FI_PROVIDER": "efa",
    "FI_EFA_USE_DEVICE_RDMA": "1",
    "FI_EFA_FORK_SAFE": "1",
    "NCCL_PROTO": "Simple",
    "NCCL_DEBUG": "WARN",
    "RDMAV_FORK_SAFE": "1",
    "NCCL_SOCKET_IFNAME": "eth0",
    "TOKENIZERS_PARALLELISM": "false",
}
worker = {
    "name": "ray-worker",
    "image": IMAGE,
    "imagePullPolicy": "Always",
    "env": [*SHARED, TOKEN, *({"name": name, "value": value} for name, value in fabric.items())],
    "resources": {
        "requests": {"cpu": "90", "memory": "1800Gi", **devices},
        "limits": {"cpu": "96", "memory": "1900Gi", **devices},
    },
    "volumeMounts": MOUNTS,
}

k8s.apiextensions.CustomResource(
    "slime-ray",
    api_version="ray.io/v1",
    kind="RayCluster",
    metadata={"name": "slime-ray", "namespace": "default", "labels": {"app": "slime-grpo"}},
    spec={
        "rayVersion": "2.55.1",
        "enableInTreeAutoscaling": False,
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "0.0.0.0", "num-gpus": "0"},
            "template": {
                "metadata": {"labels": {"ray.io/node-type": "head"}},
                "spec": {
                    "containers": [head],
                    "volumes": volumes("64Gi"),
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 120,
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {"key": "nvidia.com/gpu.present", "operator": "NotIn", "values": ["true"]}
                                        ]
                                    }
                                ]
                            }
                        }
                    },
                },
            },
        },
        "workerGroupSpecs": [
            {
                "groupName": "gpu-workers",
                "replicas": 2,
                "minReplicas": 2,
                "maxReplicas": 2,
                "rayStartParams": {"num-gpus": "8"},
                "template": {
                    "metadata": {"labels": {"ray.io/node-type": "worker"}},
                    "spec": {
                        "containers": [worker],
                        "volumes": volumes("256Gi"),
                        "restartPolicy": "Never",
                        "terminationGracePeriodSeconds": 300,
                        "affinity": {
                            "podAntiAffinity": {
                                "requiredDuringSchedulingIgnoredDuringExecution": [
                                    {
                                        "labelSelector": {
                                            "matchExpressions": [
                                                {"key": "ray.io/node-type", "operator": "In", "values": ["worker"]}
                                            ]
                                        },
                                        "topologyKey": "kubernetes.io/hostname",
                                    }
                                ]
                            }
                        },
                    },
                },
            }
        ],
    },
)
