"""EKS Blueprints' multi-node vLLM pattern, restated as the resources that its modules make: EFA nodes in one subnet.

Facts from aws-ia/terraform-aws-eks-blueprints, patterns/multi-node-vllm/eks.tf, and terraform-aws-modules/terraform-aws-eks
v21, modules/eks-managed-node-group/main.tf (interfaces, placement group, the rules `all_self_efa`).
"""

import base64
import json

import pulumi_aws as aws

ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]
USER_DATA = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  instance:
    localStorage:
      strategy: RAID0

--//--
"""

vpc = aws.ec2.Vpc("vllm", cidr_block="10.0.0.0/16")
private = [
    aws.ec2.Subnet(f"private-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{16 * index}.0/20", availability_zone=zone)
    for index, zone in enumerate(ZONES)
]


def role(name: str, service: str) -> aws.iam.Role:
    """A role for one AWS service."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return aws.iam.Role(name, assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


cluster = aws.eks.Cluster(
    "vllm",
    role_arn=role("cluster", "eks.amazonaws.com").arn,
    version="1.33",
    access_config={"authentication_mode": "API_AND_CONFIG_MAP", "bootstrap_cluster_creator_admin_permissions": True},
    vpc_config={"subnet_ids": [subnet.id for subnet in private], "endpoint_public_access": True},
)

nodes = aws.ec2.SecurityGroup("node", vpc_id=vpc.id, description="EKS node shared security group")
group = aws.ec2.SecurityGroup("g6e", vpc_id=vpc.id, description="EKS managed node group security group")
for name, kind in (("in", aws.vpc.SecurityGroupIngressRule), ("out", aws.vpc.SecurityGroupEgressRule)):
    kind(
        f"g6e-self-{name}",
        security_group_id=group.id,
        referenced_security_group_id=group.id,
        ip_protocol="-1",
        description="Node to node EFA",
    )

placement = aws.ec2.PlacementGroup("g6e", strategy="cluster")
template = aws.ec2.LaunchTemplate(
    "g6e",
    user_data=base64.b64encode(USER_DATA.encode()).decode(),
    placement={"group_name": placement.name},
    metadata_options={"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1},
    network_interfaces=[
        {
            "associate_public_ip_address": "false",
            "delete_on_termination": "true",
            "device_index": 0,
            "network_card_index": 0,
            "interface_type": "efa",
            "security_groups": [nodes.id, group.id],
        }
    ],
)
node_role = role("nodes", "ec2.amazonaws.com")
aws.eks.NodeGroup(
    "g6e",
    cluster_name=cluster.name,
    node_role_arn=node_role.arn,
    subnet_ids=[private[2].id],
    ami_type="AL2023_x86_64_NVIDIA",
    instance_types=["g6e.8xlarge"],
    launch_template={"id": template.id, "version": template.default_version.apply(str)},
    scaling_config={"min_size": 2, "max_size": 5, "desired_size": 2},
    labels={"vpc.amazonaws.com/efa.present": "true", "nvidia.com/gpu.present": "true"},
    taints=[{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
    node_repair_config={"enabled": True},
)
aws.eks.NodeGroup(
    "default",
    cluster_name=cluster.name,
    node_role_arn=node_role.arn,
    subnet_ids=[subnet.id for subnet in private],
    instance_types=["m5.large"],
    scaling_config={"min_size": 2, "max_size": 2, "desired_size": 2},
)
