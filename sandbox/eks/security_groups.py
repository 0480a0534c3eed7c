"""The security groups that pulumi-eks makes unless told to leave EKS's own alone (skipDefaultSecurityGroups)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws


def tagged(name: str, own: Any, common: Any) -> pulumi.Output[dict[str, str]]:
    """Tags with a Name; the common ones win."""
    return pulumi.Output.all(own=own or {}, common=common or {}).apply(
        lambda known: {"Name": name, **known["own"], **known["common"]}
    )


@dataclass(frozen=True)
class ClusterGroup:
    """The cluster's network: its VPC, its subnets, and Pulumi's own security group (None when skipped)."""

    vpc_id: Any
    subnet_ids: Any
    group: Any
    made: bool

    @classmethod
    def of(
        cls, name: str, inputs: Mapping[str, Any], values: Mapping[str, Any], below: pulumi.ResourceOptions
    ) -> "ClusterGroup":
        """Finds the network and makes the group where it is not skipped."""
        vpc_id, subnet_ids = _network(inputs, below)
        if inputs.get("clusterSecurityGroup") is not None:
            return cls(
                vpc_id,
                subnet_ids,
                inputs["clusterSecurityGroup"],
                made=values.get("skipDefaultSecurityGroups") is not True,
            )
        if values.get("skipDefaultSecurityGroups") is True:
            return cls(vpc_id, subnet_ids, None, made=False)
        full_name = f"{name}-eksClusterSecurityGroup"
        tags = tagged(full_name, inputs.get("clusterSecurityGroupTags"), inputs.get("tags"))
        group = aws.ec2.SecurityGroup(full_name, vpc_id=vpc_id, revoke_rules_on_delete=True, tags=tags, opts=below)
        _rule(
            f"{name}-eksClusterInternetEgressRule",
            group.id,
            "Allow internet access.",
            "egress",
            below,
            cidr_blocks=["0.0.0.0/0"],
        )
        return cls(vpc_id, subnet_ids, group, made=True)


@dataclass(frozen=True)
class NodeGroup:
    """The nodes' security group and the rule that lets them reach the API server; both None when skipped."""

    group: aws.ec2.SecurityGroup | None
    cluster_ingress: aws.ec2.SecurityGroupRule | None

    @classmethod
    def of(
        cls,
        name: str,
        network: ClusterGroup,
        cluster: aws.eks.Cluster,
        inputs: Mapping[str, Any],
        below: pulumi.ResourceOptions,
    ) -> "NodeGroup":
        """Makes both unless the default groups are skipped."""
        if not network.made:
            return cls(None, None)
        full_name, control_plane = f"{name}-nodeSecurityGroup", network.group.id
        tags = pulumi.Output.all(
            cluster=cluster.name, own=inputs.get("nodeSecurityGroupTags") or {}, common=inputs.get("tags") or {}
        ).apply(
            lambda known: {
                "Name": full_name,
                f"kubernetes.io/cluster/{known['cluster']}": "owned",
                **known["own"],
                **known["common"],
            }
        )
        group = aws.ec2.SecurityGroup(
            full_name, vpc_id=network.vpc_id, revoke_rules_on_delete=True, tags=tags, opts=below
        )
        each_other = "Allow nodes to communicate with each other"
        _rule(f"{name}-eksNodeIngressRule", group.id, each_other, "ingress", below, self=True)
        kubelets = "Allow worker Kubelets and pods to receive communication from the cluster control plane"
        _rule(
            f"{name}-eksNodeClusterIngressRule",
            group.id,
            kubelets,
            "ingress",
            below,
            (1025, 65535),
            source_security_group_id=control_plane,
        )
        extensions = (
            "Allow pods running extension API servers on port 443 to receive communication from cluster control plane"
        )
        _rule(
            f"{name}-eksExtApiServerClusterIngressRule",
            group.id,
            extensions,
            "ingress",
            below,
            (443, 443),
            source_security_group_id=control_plane,
        )
        _rule(
            f"{name}-eksNodeInternetEgressRule",
            group.id,
            "Allow internet access.",
            "egress",
            below,
            cidr_blocks=["0.0.0.0/0"],
        )
        server = "Allow pods to communicate with the cluster API Server"
        ingress = _rule(
            f"{name}-eksClusterIngressRule",
            control_plane,
            server,
            "ingress",
            below,
            (443, 443),
            source_security_group_id=group.id,
        )
        return cls(group, ingress)


def _network(inputs: Mapping[str, Any], below: pulumi.ResourceOptions) -> tuple[Any, Any]:
    vpc_id, subnet_ids = inputs.get("vpcId"), []
    if vpc_id is None:
        ask = pulumi.InvokeOutputOptions(parent=below.parent)
        vpc_id = aws.ec2.get_vpc_output(default=True, opts=ask).id
        of_the_vpc: Any = {"name": "vpc-id", "values": [vpc_id]}
        subnet_ids = aws.ec2.get_subnets_output(filters=[of_the_vpc], opts=ask).ids
    if inputs.get("subnetIds") is not None:
        subnet_ids = inputs["subnetIds"]
    elif inputs.get("publicSubnetIds") is not None or inputs.get("privateSubnetIds") is not None:
        public, private = inputs.get("publicSubnetIds") or [], inputs.get("privateSubnetIds") or []
        lists = isinstance(public, list) and isinstance(private, list)
        subnet_ids = (
            [*public, *private]
            if lists
            else pulumi.Output.all(public, private).apply(lambda both: [*both[0], *both[1]])
        )
    return vpc_id, subnet_ids


def _rule(
    name: str,
    group_id: Any,
    description: str,
    kind: str,
    below: pulumi.ResourceOptions,
    ports: tuple[int, int] | None = None,
    **peer: Any,
) -> aws.ec2.SecurityGroupRule:
    first, last = ports or (0, 0)
    return aws.ec2.SecurityGroupRule(
        name,
        description=description,
        type=kind,
        from_port=first,
        to_port=last,
        protocol="tcp" if ports else "-1",
        security_group_id=group_id,
        opts=below,
        **peer,
    )
