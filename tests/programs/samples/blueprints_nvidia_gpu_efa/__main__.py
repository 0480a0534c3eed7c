"""EKS Blueprints' EFA pattern for p5, restated as the resources that its module makes: subnets of every zone with p5.

Facts from aws-ia/terraform-aws-eks-blueprints at 0426f2b9, patterns/nvidia-gpu-efa/eks.tf, and
terraform-aws-modules/terraform-aws-eks v20.34, node_groups.tf (the two self rules on the shared node group) and
modules/eks-managed-node-group/main.tf (it keeps the subnets of all zones that offer the type).
"""

import json

import pulumi_aws as aws

ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]
P5 = "p5.48xlarge"

vpc = aws.ec2.Vpc("efa", cidr_block="10.0.0.0/16")
private = {
    zone: aws.ec2.Subnet(f"private-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{16 * i}.0/20", availability_zone=zone)
    for i, zone in enumerate(ZONES)
}
offered = aws.ec2.get_instance_type_offerings(
    filters=[{"name": "instance-type", "values": [P5]}], location_type="availability-zone"
).locations

nodes = aws.ec2.SecurityGroup("node", vpc_id=vpc.id, description="EKS node shared security group")
for direction in ("ingress", "egress"):
    aws.ec2.SecurityGroupRule(
        f"node-{direction}-self-efa",
        type=direction,
        security_group_id=nodes.id,
        protocol="-1",
        from_port=0,
        to_port=0,
        self=True,
        description="Node to node EFA",
    )

placement = aws.ec2.PlacementGroup("efa", strategy="cluster")
template = aws.ec2.LaunchTemplate(
    "efa",
    placement={"group_name": placement.name},
    metadata_options={"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 2},
    network_interfaces=[
        {
            "delete_on_termination": "true",
            "device_index": 0 if card == 0 else 1,
            "network_card_index": card,
            "interface_type": "efa",
            "security_groups": [nodes.id],
        }
        for card in range(32)
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
    "nvidia-efa",
    cluster_name="efa",
    node_role_arn=role.arn,
    subnet_ids=[private[zone].id for zone in ZONES if zone in offered],
    ami_type="AL2023_x86_64_NVIDIA",
    instance_types=[P5],
    launch_template={"id": template.id, "version": template.default_version.apply(str)},
    scaling_config={"min_size": 2, "max_size": 2, "desired_size": 2},
    labels={"vpc.amazonaws.com/efa.present": "true", "nvidia.com/gpu.present": "true"},
    taints=[{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
)
