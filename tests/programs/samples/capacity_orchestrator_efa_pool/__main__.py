"""The EFA pool of AWS's Global Capacity Orchestrator, restated: EKS Auto Mode may make its nodes in any zone.

Facts from awslabs/global-capacity-orchestrator-on-aws at 493e3a12, lambda/kubectl-applier-simple/manifests/43-nodepool-efa.yaml.
"""

import pulumi_kubernetes as k8s


def allowed(key: str, *values: str) -> dict:
    """A requirement: the label has one of these values."""
    return {"key": key, "operator": "In", "values": list(values)}


k8s.apiextensions.CustomResource(
    "gpu-efa-pool",
    api_version="karpenter.sh/v1",
    kind="NodePool",
    metadata={"name": "gpu-efa-pool"},
    spec={
        "template": {
            "metadata": {"labels": {"workload-type": "gpu-efa", "arch": "x86_64", "project": "gco", "efa": "true"}},
            "spec": {
                "nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"},
                "requirements": [
                    allowed("eks.amazonaws.com/instance-family", "p4d", "p5", "p6"),
                    allowed("kubernetes.io/arch", "amd64"),
                    allowed("karpenter.sh/capacity-type", "on-demand", "spot"),
                    allowed("eks.amazonaws.com/instance-gpu-manufacturer", "nvidia"),
                ],
                "taints": [
                    {"key": key, "value": "true", "effect": "NoSchedule"}
                    for key in ("nvidia.com/gpu", "vpc.amazonaws.com/efa")
                ],
            },
        },
        "limits": {"cpu": "2000", "memory": "8000Gi"},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "300s",
            "budgets": [{"nodes": "10%"}],
        },
    },
)
