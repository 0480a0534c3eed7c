"""What a change of a stack's configuration does: the rows of docs/lifecycle.md, each held against the real engine.

Every row starts from the dev stack as it stands in the repository, or from that stack with ``before`` set.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.lifecycle.runs import CLUSTER, EFA_PLUGIN, GPU_NODES, SERVICE, SYSTEM_NODES, Key

TEMPLATE: Final = "aws:ec2/launchTemplate:LaunchTemplate"
GPU_TEMPLATE: Final = (TEMPLATE, "ray-llm-gpu-nodes")
SYSTEM_TEMPLATE: Final = (TEMPLATE, "ray-llm-cluster-system")
PLACEMENT: Final = "aws:ec2/placementGroup:PlacementGroup"


@dataclass(frozen=True)
class Change:
    """One row.

    Attributes:
        key: What is typed, as a path below ``ray-llm-eks:``.
        name: What people call it.
        does: Resource -> what happens to it. Nothing else may change.
        effect: The same in words.
        outage: What users of the endpoint notice.
        before: Configuration of the stack before the change.
        after: Configuration after it.
    """

    key: str
    name: str
    after: Mapping[str, str]
    does: Mapping[Key, str]
    effect: str
    outage: str
    before: Mapping[str, str] = field(default_factory=dict)


_CONTROL_PLANE: Final = (CLUSTER, "ray-llm-cluster-control-plane-eksCluster")
_KUBE_PROXY: Final = ("aws:eks/addon:Addon", "ray-llm-cluster-control-plane-kube-proxy")
_INTERNET: Final = ("aws:ec2/internetGateway:InternetGateway", "ray-llm-network-internet")
_EIP: Final = ("aws:ec2/eip:Eip", "ray-llm-network-nat-us-east-1a")
_ZONES: Final = ("us-east-1a", "us-east-1b")


def _under(token: str, prefix: str, suffixes: Iterable[str]) -> list[Key]:
    return [(token, f"{prefix}{suffix}") for suffix in suffixes]


# What lies in the VPC and has tags of its own.
_TAGGED_IN_VPC: Final[Sequence[Key]] = (
    ("aws:ec2/vpc:Vpc", "ray-llm-network-vpc"),
    *_under(
        "aws:ec2/subnet:Subnet",
        "ray-llm-network-",
        [f"{kind}-{zone}" for kind in ("private", "public") for zone in _ZONES],
    ),
    *_under(
        "aws:ec2/routeTable:RouteTable",
        "ray-llm-network-",
        ["public-routes", *(f"private-{zone}-routes" for zone in _ZONES)],
    ),
    ("aws:ec2/natGateway:NatGateway", "ray-llm-network-nat-us-east-1a"),
    *_under("aws:ec2/vpcEndpoint:VpcEndpoint", "ray-llm-network-", ["ec2", "ecr-api", "ecr-dkr", "logs", "s3", "sts"]),
    *_under("aws:ec2/securityGroup:SecurityGroup", "ray-llm-", ["gpu-efa", "network-endpoints"]),
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ray-llm-network-endpoints-https"),
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ray-llm-gpu-efa-from-itself"),
    ("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "ray-llm-gpu-efa-to-itself"),
)
_UNTAGGED_IN_VPC: Final[Sequence[Key]] = (
    *_under(
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        "ray-llm-network-",
        [f"{kind}-{zone}" for kind in ("private", "public") for zone in _ZONES],
    ),
    *_under(
        "aws:ec2/route:Route",
        "ray-llm-network-",
        ["public-to-internet", *(f"private-{zone}-to-nat" for zone in _ZONES)],
    ),
)
_TAGGED_OUTSIDE: Final[Sequence[Key]] = (
    _INTERNET,
    _EIP,
    ("aws:ec2/placementGroup:PlacementGroup", "ray-llm-gpu-placement-us-east-1a"),
    GPU_TEMPLATE,
    SYSTEM_TEMPLATE,
    GPU_NODES,
    SYSTEM_NODES,
    _CONTROL_PLANE,
    _KUBE_PROXY,
    ("aws:eks/addon:Addon", "ray-llm-cluster-control-plane-vpc-cni"),
    ("aws:eks/addon:Addon", "ray-llm-cluster-coredns"),
    ("aws:cloudwatch/logGroup:LogGroup", "ray-llm-cluster-logs"),
    ("aws:kms/key:Key", "ray-llm-cluster-secrets"),
    ("aws:iam/openIdConnectProvider:OpenIdConnectProvider", "ray-llm-cluster-oidc"),
    *_under("aws:iam/role:Role", "ray-llm-", ["cluster-control-plane-eksRole-role", "cluster-system-role", "gpu-role"]),
)


def _all(op: str, keys: Iterable[Key]) -> dict[Key, str]:
    return dict.fromkeys(keys, op)


CHANGES: Final[Sequence[Change]] = (
    Change(
        key="gpuNodes.createTimeoutMinutes",
        name="how long `up` waits for GPU nodes",
        after={"ray-llm-eks:gpuNodes.createTimeoutMinutes": "60"},
        does={},
        effect="nothing: it counts the next time the group is made",
        outage="none",
    ),
    Change(
        key="gpuNodes.zone",
        name="the zone of the GPU nodes",
        after={"ray-llm-eks:gpuNodes.zone": "us-east-1b"},
        does={
            GPU_NODES: "replace",
            GPU_TEMPLATE: "update",
            (PLACEMENT, "ray-llm-gpu-placement-us-east-1a"): "delete",
            (PLACEMENT, "ray-llm-gpu-placement-us-east-1b"): "create",
        },
        effect="replaces the node group, old one first; another placement group, a new version of the launch template",
        outage="from the end of the old nodes until the model is loaded on the new ones",
    ),
    Change(
        key="gpuNodes.instanceType",
        name="the instance type",
        after={"ray-llm-eks:gpuNodes.instanceType": "g6e.8xlarge"},
        does={GPU_NODES: "replace", EFA_PLUGIN: "update"},
        effect="replaces the node group, old one first; tells the EFA plugin about the type",
        outage="the same",
    ),
    Change(
        key="gpuNodes.count",
        name="more GPU nodes",
        after={"ray-llm-eks:gpuNodes.count": "3"},
        does={GPU_NODES: "update"},
        effect="updates the node group's size",
        outage="none; going down EKS chooses the node that goes",
    ),
    Change(
        key="decode.replicas",
        name="more replicas, with their nodes",
        after={"ray-llm-eks:gpuNodes.count": "3", "ray-llm-eks:decode.replicas": "2"},
        does={GPU_NODES: "update", SERVICE: "update"},
        effect="updates the node group's size, then `serveConfigV2`",
        outage="none",
    ),
    Change(
        key="service.image",
        name="the image",
        after={"ray-llm-eks:service.image": "public.ecr.aws/deep-learning-containers/ray:serve-llm-cuda-v1.1"},
        does={SERVICE: "replace"},
        effect="replaces the RayService, old one first: with one set of GPUs KubeRay would do nothing",
        outage="until the new pods have loaded the model",
    ),
    Change(
        key="model.maxModelLen",
        name="an engine setting",
        after={"ray-llm-eks:model.maxModelLen": "8192"},
        does={SERVICE: "update"},
        effect="updates `serveConfigV2`; Serve restarts the replicas, the pods stay",
        outage="with one replica of a role: until it has loaded the model again",
    ),
    Change(
        key="addons.efaDevicePlugin.version",
        name="a device plugin",
        after={"ray-llm-eks:addons.efaDevicePlugin.version": "v0.5.31"},
        does={EFA_PLUGIN: "update"},
        effect="updates the Helm release",
        outage="none for pods that run",
    ),
    Change(
        key="cluster.systemNodes.instanceType",
        name="the type of the CPU nodes",
        after={"ray-llm-eks:cluster.systemNodes.instanceType": "m7i.2xlarge"},
        does={SYSTEM_NODES: "replace"},
        effect="replaces the CPU node group, new one first",
        outage="the Ray head moves, and without it the whole Ray cluster starts over: until the model is loaded again",
    ),
    Change(
        key="cluster.kubernetesVersion",
        name="the Kubernetes version",
        after={"ray-llm-eks:cluster.kubernetesVersion": "1.36"},
        does={_CONTROL_PLANE: "update", SYSTEM_NODES: "update", GPU_NODES: "update", _KUBE_PROXY: "update"},
        effect="updates control plane, kube-proxy and both node groups, one minor version at a time",
        outage="nodes are replaced one by one, the old one first: until the model is loaded again, once for each node",
    ),
    Change(
        key="tags.team",
        name="a tag",
        after={"ray-llm-eks:tags.team": "ml"},
        does=_all("update", [*_TAGGED_IN_VPC, *_TAGGED_OUTSIDE]),
        effect="updates everything that has tags, the launch templates too, so that new nodes come",
        outage="nodes are replaced one by one, as for a Kubernetes version",
    ),
    Change(
        key="network.cidr",
        name="the address range",
        after={"ray-llm-eks:network.cidr": "10.30.0.0/16"},
        does={
            **_all("replace", [*_TAGGED_IN_VPC, *_UNTAGGED_IN_VPC, GPU_NODES, SYSTEM_NODES]),
            **_all("update", [_INTERNET, GPU_TEMPLATE, _CONTROL_PLANE]),
        },
        effect="would replace the VPC, all in it and all nodes, but AWS refuses to move internet gateway and cluster: `make destroy` first, then change it",
        outage="the whole stack, some 40 minutes",
    ),
)
