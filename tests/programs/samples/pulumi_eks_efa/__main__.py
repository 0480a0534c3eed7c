"""pulumi-eks's EFA example, restated in Python: its managed node group picks its subnets by a data source.

Facts from pulumi/pulumi-eks at 7bf0c1b1, examples/efa/index.ts; the network, there an awsx component, is spelled out,
the instance type is the one its own tests use, and the node configuration for the instance store is left out.
"""

import json

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pulumi_kubernetes as k8s

ZONES = ["us-east-1a", "us-east-1b"]

vpc = aws.ec2.Vpc("efa", cidr_block="10.0.0.0/16", enable_dns_hostnames=True)
public, private = (
    [
        aws.ec2.Subnet(
            f"efa-{kind}-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{offset + 32 * i}.0/20", availability_zone=zone
        )
        for i, zone in enumerate(ZONES)
    ]
    for kind, offset in (("public", 0), ("private", 16))
)

role = aws.iam.Role(
    "efa",
    assume_role_policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
            ],
        }
    ),
)

cluster = eks.Cluster(
    "efa",
    authentication_mode=eks.AuthenticationMode.API,
    vpc_id=vpc.id,
    public_subnet_ids=[subnet.id for subnet in public],
    private_subnet_ids=[subnet.id for subnet in private],
    skip_default_node_group=True,
)

eks.ManagedNodeGroup("system-mng", cluster=cluster, subnet_ids=[subnet.id for subnet in private], node_role=role)

plugin = k8s.helm.v3.Release(
    "efa-device-plugin",
    version="0.5.7",
    chart="aws-efa-k8s-device-plugin",
    repository_opts={"repo": "https://aws.github.io/eks-charts"},
    namespace="kube-system",
    atomic=True,
    values={"tolerations": [{"key": "efa-enabled", "operator": "Exists", "effect": "NoExecute"}]},
    opts=pulumi.ResourceOptions(provider=k8s.Provider("efa", kubeconfig=cluster.kubeconfig_json)),
)

eks.ManagedNodeGroup(
    "efa-mng",
    cluster=cluster,
    instance_types=["g6.8xlarge"],
    scaling_config={"min_size": 2, "max_size": 2, "desired_size": 2},
    gpu=True,
    node_role=role,
    enable_efa_support=True,
    placement_group_availability_zone=ZONES[0],
    taints=[{"key": "efa-enabled", "value": "true", "effect": "NO_EXECUTE"}],
    opts=pulumi.ResourceOptions(depends_on=[plugin]),
)
