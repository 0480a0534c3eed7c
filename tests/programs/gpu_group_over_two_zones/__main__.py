"""A training team's stack: one GPU node group, its subnets made in a loop over two zones."""

import json

import pulumi
import pulumi_aws as aws

zones = ["us-east-1a", "us-east-1b"]
gpu_zones = zones[:1] if pulumi.Config().get_bool("corrected") else zones

vpc = aws.ec2.Vpc("training", cidr_block="10.0.0.0/16")
subnets = {
    zone: aws.ec2.Subnet(f"nodes-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{16 * index}.0/20", availability_zone=zone)
    for index, zone in enumerate(zones)
}

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
    cluster_name="training",
    node_role_arn=role.arn,
    subnet_ids=[subnets[zone].id for zone in gpu_zones],
    instance_types=["g6.12xlarge"],
    ami_type="AL2023_x86_64_NVIDIA",
    scaling_config={"desired_size": 2, "min_size": 2, "max_size": 2},
)

# The web front end may spread: no GPU, no EFA.
aws.eks.NodeGroup(
    "web",
    cluster_name="training",
    node_role_arn=role.arn,
    subnet_ids=[subnet.id for subnet in subnets.values()],
    instance_types=["m7i.xlarge"],
    scaling_config={"desired_size": 2, "min_size": 2, "max_size": 4},
)
