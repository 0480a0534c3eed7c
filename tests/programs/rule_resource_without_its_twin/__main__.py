"""The newer rule resources: the group lets itself in, and out it lets only CIDR ranges, which EFA traffic never matches."""

import json

import pulumi
import pulumi_aws as aws

vpc = aws.ec2.Vpc("serving", cidr_block="10.0.0.0/16")
subnet = aws.ec2.Subnet("gpu", vpc_id=vpc.id, cidr_block="10.0.0.0/20", availability_zone="us-east-1a")

efa = aws.ec2.SecurityGroup("efa", vpc_id=vpc.id)
aws.vpc.SecurityGroupIngressRule(
    "efa-in", security_group_id=efa.id, referenced_security_group_id=efa.id, ip_protocol="-1"
)
aws.vpc.SecurityGroupEgressRule("efa-internet", security_group_id=efa.id, cidr_ipv4="0.0.0.0/0", ip_protocol="-1")
if pulumi.Config().get_bool("corrected"):
    aws.vpc.SecurityGroupEgressRule(
        "efa-out", security_group_id=efa.id, referenced_security_group_id=efa.id, ip_protocol="-1"
    )

template = aws.ec2.LaunchTemplate(
    "gpu",
    network_interfaces=[
        {
            "device_index": 0,
            "network_card_index": 0,
            "interface_type": "efa",
            "security_groups": [efa.id],
            "delete_on_termination": "true",
        }
    ],
)
role = aws.iam.Role(
    "nodes",
    assume_role_policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
            ],
        }
    ),
)
aws.eks.NodeGroup(
    "gpu",
    cluster_name="serving",
    node_role_arn=role.arn,
    subnet_ids=[subnet.id],
    instance_types=["g6.8xlarge"],
    ami_type="AL2023_x86_64_NVIDIA",
    launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    scaling_config={"desired_size": 2, "min_size": 2, "max_size": 2},
)
