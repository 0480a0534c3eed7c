"""A training cluster selects the EFA nodes of the same stack by a label of its own, and then trains over TCP."""

import json

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

IMAGE = "registry.example.com/train:1.4"
LABELS = {"acme.example.com/pool": "fast"}

vpc = aws.ec2.Vpc("training", cidr_block="10.0.0.0/16")
subnet = aws.ec2.Subnet("gpu", vpc_id=vpc.id, cidr_block="10.0.0.0/20", availability_zone="us-east-1a")
rule = {"protocol": "-1", "from_port": 0, "to_port": 0, "self": True}
efa = aws.ec2.SecurityGroup("efa", vpc_id=vpc.id, ingress=[rule], egress=[rule])
template = aws.ec2.LaunchTemplate(
    "gpu",
    network_interfaces=[
        {"device_index": 0, "interface_type": "efa", "security_groups": [efa.id], "delete_on_termination": "true"}
    ],
)
statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
role = aws.iam.Role("nodes", assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
nodes = aws.eks.NodeGroup(
    "gpu",
    cluster_name="training",
    node_role_arn=role.arn,
    subnet_ids=[subnet.id],
    instance_types=["g6e.12xlarge"],
    ami_type="AL2023_x86_64_NVIDIA",
    launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    labels=LABELS,
    scaling_config={"desired_size": 2, "min_size": 2, "max_size": 2},
)

worker: dict = {"name": "worker", "image": IMAGE, "resources": {"limits": {"nvidia.com/gpu": 4}}}
if pulumi.Config().get_bool("corrected"):
    worker["resources"]["limits"]["vpc.amazonaws.com/efa"] = 1
    worker["securityContext"] = {"privileged": True}
    worker["env"] = [{"name": "FI_PROVIDER", "value": "efa"}]

k8s.apiextensions.CustomResource(
    "training",
    api_version="ray.io/v1",
    kind="RayCluster",
    metadata={"name": "training", "namespace": "default"},
    spec={
        "headGroupSpec": {
            "rayStartParams": {},
            "template": {"spec": {"containers": [{"name": "head", "image": IMAGE}]}},
        },
        "workerGroupSpecs": [
            {
                "groupName": "trainers",
                "replicas": 2,
                "minReplicas": 2,
                "maxReplicas": 2,
                "rayStartParams": {},
                "template": {"spec": {"nodeSelector": LABELS, "containers": [worker]}},
            }
        ],
    },
    opts=pulumi.ResourceOptions(depends_on=[nodes]),
)
