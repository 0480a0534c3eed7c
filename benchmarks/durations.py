"""How long AWS takes to make each kind of resource, in seconds, and where each figure was read.

They serve to compare orders, not to predict a deployment: most come from single logs of other people's stacks. A source
that starts with ``assumed`` is a guess of the size that public logs show.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_SAMPLE: Final = "AWS's sample ray-serve-multi-node, README"


@dataclass(frozen=True)
class Duration:
    """Seconds from the request until the resource is ready, and the source of the figure."""

    seconds: float
    source: str


_AT_ONCE: Final = Duration(1, "assumed: one API call, ready at once")

CREATE: Mapping[str, Duration] = MappingProxyType(
    {
        "aws:ec2/vpc:Vpc": Duration(22, "DevopsArtFactory/terraform-provisioning#7: 22 s"),
        "aws:ec2/internetGateway:InternetGateway": Duration(1, "DevopsArtFactory/terraform-provisioning#7: 1 s"),
        "aws:ec2/eip:Eip": Duration(1, "DevopsArtFactory/terraform-provisioning#7: 1 s"),
        "aws:ec2/routeTable:RouteTable": Duration(1, "DevopsArtFactory/terraform-provisioning#7: 1 s"),
        "aws:ec2/routeTableAssociation:RouteTableAssociation": Duration(
            1, "terraform-aws-modules/terraform-aws-eks#2203: 1 s"
        ),
        "aws:ec2/natGateway:NatGateway": Duration(105, "assumed: public Terraform logs show 85 to 125 s"),
        "aws:ec2/vpcEndpoint:VpcEndpoint": Duration(
            90, "assumed: 1 to 2 minutes for an interface endpoint; the gateway endpoint is counted as slow"
        ),
        "aws:ec2/securityGroup:SecurityGroup": Duration(2, "DevopsArtFactory/terraform-provisioning#45: 2 s"),
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Duration(
            3, "terraform-aws-modules/terraform-aws-eks#2203: 3 s"
        ),
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Duration(
            3, "terraform-aws-modules/terraform-aws-eks#2203: 3 s"
        ),
        "aws:ec2/launchTemplate:LaunchTemplate": Duration(6, "assumed: one public Terraform log shows 6 s"),
        "aws:kms/key:Key": Duration(28, "assumed: public Terraform logs show 12 to 29 s"),
        "aws:iam/role:Role": Duration(2, "pulumi/pulumi-eks#1819: 1 to 2 s"),
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Duration(1, "pulumi/pulumi-eks#1819: 1 s"),
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider": Duration(
            1, "DevopsArtFactory/terraform-provisioning#46: 1 s"
        ),
        "aws:eks/cluster:Cluster": Duration(
            513, "DevopsArtFactory/terraform-provisioning#46: 8 min 33 s; terraform-aws-eks#2203: 9 min 43 s"
        ),
        "aws:eks/addon:Addon": Duration(30, "assumed: public Terraform logs show 14 to 56 s"),
        "kubernetes:helm.sh/v3:Release": Duration(30, "assumed: a DaemonSet whose image has to be pulled"),
    }
)
"""By type token. Everything else takes :data:`OTHER`."""

NAMED: Mapping[str, Duration] = MappingProxyType(
    {
        "ray-llm-cluster-system": Duration(
            108, "DevopsArtFactory/terraform-provisioning#46: 1 min 48 s, one CPU group"
        ),
        "ray-llm-gpu-nodes": Duration(240, f"{_SAMPLE}: node group 3 to 5 minutes"),
        "ray-llm-addons-kuberay-operator": Duration(90, f"{_SAMPLE}: KubeRay 1 to 2 minutes"),
        "ray-llm-service-ray-service": Duration(
            325, f"{_SAMPLE}: 145 s for the weights; assumed: 180 s for image, pods and engine start"
        ),
    }
)
"""By logical name, before the type: resources of one kind that differ by what runs on them."""

OTHER: Final = _AT_ONCE


def creation(token: str, name: str) -> Duration:
    """The figure for one resource. A launch template and a node group may share a name: only long-lived kinds are named."""
    if token == "aws:ec2/launchTemplate:LaunchTemplate":
        return CREATE[token]
    return NAMED.get(name) or CREATE.get(token) or OTHER
