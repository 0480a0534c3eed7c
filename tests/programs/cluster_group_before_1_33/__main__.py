"""EFA nodes with EKS's own security group alone, which lets them reach each other only from Kubernetes 1.33 on."""

import json

import pulumi
import pulumi_aws as aws


def role(name: str, service: str) -> aws.iam.Role:
    """A role for one AWS service."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return aws.iam.Role(name, assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


vpc = aws.ec2.Vpc("serving", cidr_block="10.0.0.0/16")
subnets = [
    aws.ec2.Subnet(f"nodes-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=zone)
    for index, zone in enumerate(["us-east-1a", "us-east-1b"])
]
cluster = aws.eks.Cluster(
    "serving",
    role_arn=role("cluster", "eks.amazonaws.com").arn,
    version="1.33" if pulumi.Config().get_bool("corrected") else "1.32",
    vpc_config={"subnet_ids": [subnet.id for subnet in subnets]},
)
template = aws.ec2.LaunchTemplate(
    "gpu",
    network_interfaces=[
        {
            "device_index": 0,
            "interface_type": "efa",
            "security_groups": [cluster.vpc_config.cluster_security_group_id],
            "delete_on_termination": "true",
        }
    ],
)
aws.eks.NodeGroup(
    "gpu",
    cluster_name=cluster.name,
    node_role_arn=role("nodes", "ec2.amazonaws.com").arn,
    subnet_ids=[subnets[0].id],
    instance_types=["g6.8xlarge"],
    ami_type="AL2023_x86_64_NVIDIA",
    launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    scaling_config={"desired_size": 2, "min_size": 2, "max_size": 2},
)
