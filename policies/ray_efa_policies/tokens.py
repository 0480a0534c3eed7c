"""Which Pulumi types are which thing, in all their spellings: a new kind or provider version is one line here.

AWS types are matched by package, service and type name, whatever stands between service and type
(``aws:eks/nodeGroup:NodeGroup`` and ``aws:eks:NodeGroup`` are one). Kubernetes types are matched by API group and kind, in
every version, as custom resources, as typed classes and as patches (``RayServicePatch``).
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple


class KubernetesType(NamedTuple):
    """A Kubernetes type token taken apart."""

    group: str
    version: str
    kind: str
    patch: bool


@dataclass(frozen=True)
class RayKind:
    """Where a Ray kind keeps its cluster and its applications, as paths in the object."""

    cluster: tuple[str, ...]
    serves: bool = False
    job: tuple[str, ...] = ()


RAY_KINDS: Final = {
    "RayService": RayKind(cluster=("spec", "rayClusterConfig"), serves=True),
    "RayCluster": RayKind(cluster=("spec",)),
    "RayJob": RayKind(cluster=("spec", "rayClusterSpec"), job=("spec",)),
    "RayCronJob": RayKind(cluster=("spec", "jobTemplate", "rayClusterSpec"), job=("spec", "jobTemplate")),
}


@dataclass(frozen=True)
class NodeGroupFields:
    """Where a kind of node group keeps what decides; empty where the kind has no such field."""

    subnets: str
    zones: str = ""
    instance_types: str = ""
    ami_type: str = ""
    # EKS fills in a CPU type where neither the group nor its template names one; plain Auto Scaling does not.
    default_is_cpu: bool = False


NODE_GROUPS: Final = {
    ("aws", "eks", "NodeGroup"): NodeGroupFields("subnetIds", "", "instanceTypes", "amiType", True),
    ("aws", "autoscaling", "Group"): NodeGroupFields("vpcZoneIdentifiers", "availabilityZones"),
    ("aws-native", "eks", "Nodegroup"): NodeGroupFields("subnets", "", "instanceTypes", "amiType", True),
    ("aws-native", "autoscaling", "AutoScalingGroup"): NodeGroupFields("vpcZoneIdentifier", "availabilityZones"),
}

LAUNCH_TEMPLATES: Final = {
    ("aws", "ec2", "LaunchTemplate"): (),
    ("aws", "ec2", "LaunchConfiguration"): (),
    ("aws-native", "ec2", "LaunchTemplate"): ("launchTemplateData",),
}
"""Types of template, and where in them the instance data stands."""

SUBNETS: Final = {("aws", "ec2", "Subnet"), ("aws", "ec2", "DefaultSubnet"), ("aws-native", "ec2", "Subnet")}
CLUSTERS: Final = {("aws", "eks", "Cluster"), ("aws-native", "eks", "Cluster")}
NETWORK_INTERFACES: Final = {("aws", "ec2", "NetworkInterface")}


@dataclass(frozen=True)
class SecurityGroupFields:
    """Where a kind of security group keeps its inline rules."""

    ingress: str = "ingress"
    egress: str = "egress"


SECURITY_GROUPS: Final = {
    ("aws", "ec2", "SecurityGroup"): SecurityGroupFields(),
    ("aws", "ec2", "DefaultSecurityGroup"): SecurityGroupFields(),
    ("aws-native", "ec2", "SecurityGroup"): SecurityGroupFields("securityGroupIngress", "securityGroupEgress"),
}


@dataclass(frozen=True)
class RuleFields:
    """How a kind of security group rule says whose it is, which way it goes and whom it names.

    ``direction`` is the direction itself, or empty where the field ``type`` says it.
    """

    group: str
    direction: str
    peer: str
    protocol: str = "ipProtocol"


RULES: Final = {
    ("aws", "ec2", "SecurityGroupRule"): RuleFields("securityGroupId", "", "sourceSecurityGroupId", "protocol"),
    ("aws", "vpc", "SecurityGroupIngressRule"): RuleFields("securityGroupId", "ingress", "referencedSecurityGroupId"),
    ("aws", "vpc", "SecurityGroupEgressRule"): RuleFields("securityGroupId", "egress", "referencedSecurityGroupId"),
    ("aws-native", "ec2", "SecurityGroupIngress"): RuleFields("groupId", "ingress", "sourceSecurityGroupId"),
    ("aws-native", "ec2", "SecurityGroupEgress"): RuleFields("groupId", "egress", "destinationSecurityGroupId"),
}

NODE_POOLS: Final = {
    ("karpenter.sh", "NodePool"): ("spec", "template", "spec"),
    ("karpenter.sh", "Provisioner"): ("spec",),
}
"""Karpenter kinds that make nodes, by API group and kind, and where their requirements stand."""

NODE_CLASSES: Final = {("karpenter.k8s.aws", "EC2NodeClass"), ("eks.amazonaws.com", "NodeClass")}

_KUBERNETES = re.compile(r"kubernetes:(?P<group>[^/:]+)/(?P<version>[^:]+):(?P<kind>\w+?)(?P<patch>Patch)?")


def aws_type(token: str) -> tuple[str, str, str]:
    """Package, service and type name of a token: ``aws:eks/nodeGroup:NodeGroup`` is ``(aws, eks, NodeGroup)``."""
    package, _, rest = token.partition(":")
    module, _, name = rest.partition(":")
    return package, module.partition("/")[0], name


def kubernetes_type(token: str) -> KubernetesType | None:
    """The API group, version and kind of a Kubernetes token, or None."""
    found = _KUBERNETES.fullmatch(token)
    return KubernetesType(found["group"], found["version"], found["kind"], bool(found["patch"])) if found else None


def ray_kind(token: str) -> str | None:
    """The Ray kind of a token in any version, as object or patch, or None."""
    found = kubernetes_type(token)
    return found.kind if found and found.group == "ray.io" and found.kind in RAY_KINDS else None


def is_judged_in_stacks(token: str) -> bool:
    """Whether a token is one of the Kubernetes kinds that policies on whole stacks look at."""
    found = kubernetes_type(token)
    if found is None:
        return False
    key = (found.group, found.kind)
    return key in NODE_POOLS or key in NODE_CLASSES or ray_kind(token) is not None
