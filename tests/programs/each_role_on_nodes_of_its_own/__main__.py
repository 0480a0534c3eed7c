"""Two teams, one service: prefill and decode have each a node group, a zone and a security group of their own."""

import json

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
import yaml

IMAGE = "registry.example.com/ray-llm:2.58.0"
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}
together = pulumi.Config().get_bool("corrected")
zones = dict.fromkeys(ROLES, "us-east-1a") if together else {"prefill": "us-east-1a", "decode": "us-east-1b"}

vpc = aws.ec2.Vpc("serving", cidr_block="10.0.0.0/16")
statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
nodes = aws.iam.Role("nodes", assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
groups = {}
for index, role in enumerate(ROLES):
    groups[role] = aws.ec2.SecurityGroup(role, vpc_id=vpc.id)
    for name, kind in (("in", aws.vpc.SecurityGroupIngressRule), ("out", aws.vpc.SecurityGroupEgressRule)):
        kind(
            f"{role}-{name}",
            security_group_id=groups[role].id,
            referenced_security_group_id=groups[role].id,
            ip_protocol="-1",
        )
    subnet = aws.ec2.Subnet(role, vpc_id=vpc.id, cidr_block=f"10.0.{16 * index}.0/20", availability_zone=zones[role])
    template = aws.ec2.LaunchTemplate(
        role,
        network_interfaces=[
            {
                "device_index": 0,
                "interface_type": "efa",
                "security_groups": [groups["prefill" if together else role].id],
                "delete_on_termination": "true",
            }
        ],
    )
    aws.eks.NodeGroup(
        role,
        cluster_name="serving",
        node_role_arn=nodes.arn,
        subnet_ids=[subnet.id],
        instance_types=["g6.8xlarge"],
        ami_type="AL2023_x86_64_NVIDIA",
        launch_template={"id": template.id, "version": template.latest_version.apply(str)},
        labels={"acme.example.com/role": role},
        scaling_config={"desired_size": 1, "min_size": 1, "max_size": 1},
    )


def llm(kv_role: str) -> dict:
    """The LLMConfig of one role."""
    transfer = {
        "kv_connector": "NixlConnector",
        "kv_role": kv_role,
        "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
    }
    return {
        "model_loading_config": {"model_id": "tiny", "model_source": "acme/tiny"},
        "engine_kwargs": {"kv_transfer_config": transfer},
    }


app = {
    "name": "llm",
    "import_path": "ray.serve.llm:build_pd_openai_app",
    "args": {f"{role}_config": llm(kv_role) for role, kv_role in ROLES.items()},
}
devices = {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}
worker = {
    "name": "worker",
    "image": IMAGE,
    "env": [{"name": "FI_PROVIDER", "value": "efa"}],
    "securityContext": {"privileged": True},
    "resources": {"limits": devices, "requests": devices},
}
k8s.apiextensions.CustomResource(
    "llm",
    api_version="ray.io/v1",
    kind="RayService",
    metadata={"name": "llm", "namespace": "default"},
    spec={
        "serveConfigV2": yaml.safe_dump({"applications": [app]}),
        "rayClusterConfig": {
            "headGroupSpec": {
                "rayStartParams": {},
                "template": {"spec": {"containers": [{"name": "head", "image": IMAGE}]}},
            },
            "workerGroupSpecs": [
                {
                    "groupName": role,
                    "replicas": 1,
                    "minReplicas": 1,
                    "maxReplicas": 1,
                    "rayStartParams": {},
                    "template": {"spec": {"nodeSelector": {"acme.example.com/role": role}, "containers": [worker]}},
                }
                for role in ROLES
            ],
        },
    },
)
