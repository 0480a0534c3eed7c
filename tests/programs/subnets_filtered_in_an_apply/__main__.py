"""The subnets of the GPU group are picked inside an apply: one Output of a list, of which nobody knows the length before `up`."""

import json

import pulumi
import pulumi_aws as aws

GPU_ZONE = "us-east-1a"

vpc = aws.ec2.Vpc("serving", cidr_block="10.0.0.0/16")
subnets = [
    aws.ec2.Subnet(f"nodes-{zone[-1]}", vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=zone)
    for index, zone in enumerate([GPU_ZONE, "us-east-1b"])
]


def in_gpu_zone(pairs: list) -> list[str]:
    """The ids of those subnets that lie in the zone of the GPUs."""
    return [subnet_id for subnet_id, zone in pairs if zone == GPU_ZONE]


picked = pulumi.Output.all(*[[subnet.id, subnet.availability_zone] for subnet in subnets]).apply(in_gpu_zone)

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
    subnet_ids=[subnets[0].id] if pulumi.Config().get_bool("corrected") else picked,
    instance_types=["g6.8xlarge"],
    ami_type="AL2023_x86_64_NVIDIA",
    scaling_config={"desired_size": 2, "min_size": 2, "max_size": 2},
)
