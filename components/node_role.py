"""The IAM role a node group's instances run with."""

import json
from collections.abc import Mapping
from typing import Final

import pulumi
import pulumi_aws as aws

from components.tags import resource_tags

NODE_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
)
"""AWS managed policies of an EKS node (EKS user guide, "Amazon EKS node IAM role")."""


class NodeRole:
    """A role with everything a node needs, made as children of the component that owns the node group.

    EKS makes the access entry of a managed node group's role itself; none is made here.
    """

    def __init__(self, name: str, tags: Mapping[str, str] | None, parent: pulumi.Resource) -> None:
        child = pulumi.ResourceOptions(parent=parent)
        partition = aws.get_partition_output(opts=pulumi.InvokeOutputOptions(parent=parent)).partition
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
            ],
        }
        self.role = aws.iam.Role(
            f"{name}-role",
            assume_role_policy=json.dumps(trust),
            description=f"EKS nodes of {name}",
            tags=resource_tags(tags, name=f"{name}-role"),
            opts=child,
        )
        self.attachments: list[pulumi.Resource] = [
            aws.iam.RolePolicyAttachment(
                f"{name}-role-{policy}",
                role=self.role.name,
                policy_arn=pulumi.Output.concat("arn:", partition, ":iam::aws:policy/", policy),
                opts=child,
            )
            for policy in NODE_POLICIES
        ]
        """What must be attached before a node starts and stay until it is gone; the role's ARN says nothing of it."""
