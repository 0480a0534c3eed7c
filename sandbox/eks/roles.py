"""``eks:index:ServiceRole``: an IAM role for one AWS service with its managed policies (nodejs/eks/servicerole.ts)."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws


class ServiceRole(pulumi.ComponentResource):
    """A role; ``attachments`` are complete once every policy is on it."""

    role: aws.iam.Role
    attachments: Sequence[aws.iam.RolePolicyAttachment]

    def __init__(
        self,
        name: str,
        service: str,
        policies: Sequence[str],
        opts: pulumi.ResourceOptions,
        *,
        description: str | None = None,
        actions: Sequence[str] = ("sts:AssumeRole",),
        tags: Any = None,
    ) -> None:
        super().__init__("eks:index:ServiceRole", name, {}, opts)
        below = pulumi.ResourceOptions(parent=self)
        statement = {"Action": list(actions), "Effect": "Allow", "Principal": {"Service": [service]}}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, separators=(",", ":"))
        self.role = aws.iam.Role(
            f"{name}-role", description=description, assume_role_policy=trust, tags=tags, opts=below
        )
        partition = aws.get_partition_output(opts=pulumi.InvokeOutputOptions(parent=self)).partition
        self.attachments = [
            aws.iam.RolePolicyAttachment(
                f"{name}-{hashlib.sha1(f'arn:aws:iam::aws:policy/{policy}'.encode()).hexdigest()[:8]}",
                policy_arn=pulumi.Output.concat("arn:", partition, ":iam::aws:policy/", policy),
                role=self.role.name,
                opts=below,
            )
            for policy in policies
        ]
        self.register_outputs({"directRole": self.role, "resolvedRole": self.role})
