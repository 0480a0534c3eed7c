"""Karpenter makes the GPU nodes; the pool lets it choose between two zones, so prefill and decode may end up apart."""

import pulumi
import pulumi_kubernetes as k8s

zones = ["us-east-1a"] if pulumi.Config().get_bool("corrected") else ["us-east-1a", "us-east-1b"]

node_class = k8s.apiextensions.CustomResource(
    "gpu-class",
    api_version="karpenter.k8s.aws/v1",
    kind="EC2NodeClass",
    metadata={"name": "gpu"},
    spec={
        "amiSelectorTerms": [{"alias": "al2023@v20260101"}],
        "role": "karpenter-node",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "serving"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "serving"}}],
    },
)
k8s.apiextensions.CustomResource(
    "gpu-pool",
    api_version="karpenter.sh/v1",
    kind="NodePool",
    metadata={"name": "gpu"},
    spec={
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.8xlarge"]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones},
                ],
                "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
            }
        },
        "limits": {"nvidia.com/gpu": 8},
    },
    opts=pulumi.ResourceOptions(depends_on=[node_class]),
)
k8s.apiextensions.CustomResource(
    "web-pool",
    api_version="karpenter.sh/v1",
    kind="NodePool",
    metadata={"name": "web"},
    spec={
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "web"},
                "requirements": [
                    {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a", "us-east-1b"]},
                ],
            }
        }
    },
)
