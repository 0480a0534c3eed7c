"""The node group names neither a type nor an image: that it has GPUs stands in its launch template, which it knows by id."""

import json

import pulumi
import pulumi_aws as aws


class Nodes(pulumi.ComponentResource):
    """A node group of one instance type, with its template."""

    def __init__(self, name: str, instance_type: str, subnet_ids: list, opts: pulumi.ResourceOptions | None = None):
        super().__init__("acme:platform:Nodes", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = aws.iam.Role(
            f"{name}-role",
            assume_role_policy=json.dumps(
                {
                    "Version": "2012-10-17",
                    "Statement": [
                        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
                    ],
                }
            ),
            opts=child,
        )
        template = aws.ec2.LaunchTemplate(f"{name}-template", instance_type=instance_type, opts=child)
        self.group = aws.eks.NodeGroup(
            f"{name}-group",
            cluster_name="platform",
            node_role_arn=role.arn,
            subnet_ids=subnet_ids,
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            scaling_config={"desired_size": 2, "min_size": 2, "max_size": 2},
            opts=child,
        )
        self.register_outputs({})


vpc = aws.ec2.Vpc("platform", cidr_block="10.0.0.0/16")
subnet_ids = [
    aws.ec2.Subnet(f"nodes-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=zone).id
    for index, zone in enumerate(["us-east-1a", "us-east-1b"])
]

Nodes("web", "m7i.xlarge", subnet_ids)
Nodes("gpu", "g6.8xlarge", subnet_ids[:1] if pulumi.Config().get_bool("corrected") else subnet_ids)
