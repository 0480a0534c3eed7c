"""The Ray cluster of the service as a plain document, and which change of it reaches a running one.

KubeRay 1.6.0 decides by a hash of ``spec.rayClusterConfig`` whether a running cluster differs from what is asked for. The
hash leaves out replicas, minReplicas, maxReplicas, tolerations and schedulingGates, and an equal hash means that nothing is
done (ray-operator/controllers/ray/utils/util.go, GenerateHashWithoutReplicasAndWorkersToDelete). With the upgrade strategy
``None`` a different hash does nothing either. What KubeRay would ignore, Pulumi has to replace.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from components.choices import UpgradeStrategy
from components.serve_app import Role

MIN_WORKERS_PER_ROLE: Final = 1
"""Floor of each role: the autoscaler never takes the last worker of a role."""

MAX_WORKERS_PER_ROLE: Final = 64
"""Bound of each role. Far above any pool on purpose: a later change of it would not reach a running cluster."""

IDLE_TIMEOUT_SECONDS: Final = 300
"""How long a worker may be without a replica before the autoscaler removes it.

Longer than Ray's 60 s: between the start of a worker and its replica lies the builder of the application, which imports vLLM.
"""

_WORKER_GROUPS: Final = "spec.rayClusterConfig.workerGroupSpecs[*]"


def ray_cluster_config(
    ray_version: str,
    head_template: Mapping[str, Any],
    worker_template: Mapping[str, Any],
    gpus: int,
    replicas: Mapping[Role, int],
) -> dict[str, Any]:
    """The document of ``spec.rayClusterConfig``: a head without work and one worker group per role.

    Args:
        ray_version: Ray's version in the image, at least 2.52 for the token.
        head_template: Pod template of the head.
        worker_template: Pod template of a worker of either role.
        gpus: GPUs of one worker.
        replicas: Workers of each role at the start; later Serve's ``num_replicas`` drives them.
    """
    return {
        "rayVersion": ray_version,
        # The dashboard runs whatever code it is sent (CVE-2023-48022).
        "authOptions": {"mode": "token"},
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            "version": "v2",
            "idleTimeoutSeconds": IDLE_TIMEOUT_SECONDS,
            # Version 2 runs the head with restartPolicy Never, so a killed autoscaler stays away: room above KubeRay's 512Mi.
            "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "500m", "memory": "1Gi"}},
        },
        "headGroupSpec": {
            "serviceType": "ClusterIP",
            "enableIngress": False,
            # No work on the head: it has no GPU, and a full CPU there would stall the cluster's own bookkeeping.
            "rayStartParams": {"num-cpus": "0", "num-gpus": "0"},
            "template": copy.deepcopy(dict(head_template)),
        },
        "workerGroupSpecs": [
            {
                "groupName": role.value,
                "replicas": replicas[role],
                "minReplicas": MIN_WORKERS_PER_ROLE,
                "maxReplicas": MAX_WORKERS_PER_ROLE,
                "rayStartParams": {
                    "num-gpus": str(gpus),
                    # The inner single quotes are for the shell that runs `ray start`. The group's own `resources` field would
                    # need none, but autoscalers of older Ray versions do not read it.
                    "resources": f"'{{\"{role}\": 1}}'",
                },
                "template": copy.deepcopy(dict(worker_template)),
            }
            for role in Role
        ],
    }


def replace_paths(strategy: UpgradeStrategy) -> list[str]:
    """Property paths of the RayService whose change must replace it, because KubeRay would ignore it.

    The workers' ``replicas`` are in no list: what they are for reaches the cluster by Serve's ``num_replicas``. Neither is
    a whole worker group, since KubeRay adds one at the end in place.
    """
    if strategy is UpgradeStrategy.NEW_CLUSTER:
        return [
            "spec.rayClusterConfig.headGroupSpec.template.spec.tolerations",
            f"{_WORKER_GROUPS}.minReplicas",
            f"{_WORKER_GROUPS}.maxReplicas",
            f"{_WORKER_GROUPS}.template.spec.tolerations",
        ]
    return [
        "spec.rayClusterConfig.rayVersion",
        "spec.rayClusterConfig.authOptions",
        "spec.rayClusterConfig.enableInTreeAutoscaling",
        "spec.rayClusterConfig.autoscalerOptions",
        "spec.rayClusterConfig.headGroupSpec",
        f"{_WORKER_GROUPS}.groupName",
        f"{_WORKER_GROUPS}.minReplicas",
        f"{_WORKER_GROUPS}.maxReplicas",
        f"{_WORKER_GROUPS}.rayStartParams",
        f"{_WORKER_GROUPS}.template",
    ]
