"""A small stack on a simulated account, made through the stand-in as the engine makes it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from sandbox.aws import Aws
from sandbox.faults import FaultPlan
from sandbox.standin import InitFailed, ResourceRef

REGION = "us-east-1"
VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
GATEWAY = "aws:ec2/internetGateway:InternetGateway"
EIP = "aws:ec2/eip:Eip"
NAT = "aws:ec2/natGateway:NatGateway"
TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"
ROLE = "aws:iam/role:Role"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
KEY = "aws:kms/key:Key"
LOGS = "aws:cloudwatch/logGroup:LogGroup"
CLUSTER = "aws:eks/cluster:Cluster"
NODES = "aws:eks/nodeGroup:NodeGroup"
ADDON = "aws:eks/addon:Addon"
ENTRY = "aws:eks/accessEntry:AccessEntry"

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")


class Stack:
    """What was made, by logical name: (token, id, inputs, outputs)."""

    def __init__(self, folder: Path | None = None, faults: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.made: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {}
        self.open(faults)

    def open(self, faults: tuple[str, ...] = ()) -> None:
        """Starts over in another process, as far as the account can tell."""
        self.aws = Aws(self.folder, FaultPlan.parse(faults))
        self.aws.configure({"region": REGION})

    def make(self, token: str, name: str, inputs: dict[str, Any]) -> str:
        """Check and create; returns the id."""
        checked = self.aws.check(ref(token, name), inputs, None, b"seed")
        assert not checked.failures, checked.failures
        try:
            id, outputs = self.aws.create(ref(token, name), checked.inputs, preview=False)
        except InitFailed as failed:
            self.made[name] = (token, failed.id, checked.inputs, dict(failed.outputs))
            raise
        self.made[name] = (token, id, checked.inputs, outputs)
        return id

    def read(self, name: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Inputs and outputs after a refresh; None when it is gone."""
        token, id, inputs, outputs = self.made[name]
        found = self.aws.read(ref(token, name), id, inputs, outputs)
        return None if found is None else found[1:]

    def update(self, name: str, **changes: Any) -> dict[str, Any]:
        """Check and update; returns the outputs."""
        token, id, old, outputs = self.made[name]
        given = {key: value for key, value in old.items() if key not in ("tagsAll", "region", "__defaults")}
        new = self.aws.check(ref(token, name), {**given, **changes}, old, b"seed").inputs
        after = self.aws.update(ref(token, name), id, old, outputs, new, preview=False)
        self.made[name] = (token, id, new, after)
        return after

    def delete(self, name: str) -> None:
        """Deletes one."""
        token, id, inputs, outputs = self.made[name]
        self.aws.delete(ref(token, name), id, inputs, outputs)
        del self.made[name]

    def outputs(self, name: str) -> dict[str, Any]:
        """Outputs of one."""
        return self.made[name][3]

    def id(self, name: str) -> str:
        """Id of one."""
        return self.made[name][1]

    def network(self) -> None:
        """A VPC with a public and two private subnets behind a NAT gateway."""
        vpc = self.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16", "enableDnsHostnames": True, "tags": TAGS})
        gateway = self.make(GATEWAY, "gateway", {"vpcId": vpc, "tags": TAGS})
        for name, cidr, zone in (
            ("public", "10.9.0.0/24", "us-east-1a"),
            ("a", "10.9.16.0/20", "us-east-1a"),
            ("b", "10.9.32.0/20", "us-east-1b"),
        ):
            self.make(SUBNET, name, {"vpcId": vpc, "cidrBlock": cidr, "availabilityZone": zone, "tags": TAGS})
        out = self.make(TABLE, "out", {"vpcId": vpc, "tags": TAGS})
        self.make(
            ROUTE, "to-internet", {"routeTableId": out, "destinationCidrBlock": "0.0.0.0/0", "gatewayId": gateway}
        )
        self.make(ASSOCIATION, "public-out", {"routeTableId": out, "subnetId": self.id("public")})
        address = self.make(EIP, "address", {"domain": "vpc", "tags": TAGS})
        nat = self.make(NAT, "nat", {"allocationId": address, "subnetId": self.id("public"), "tags": TAGS})
        inner = self.make(TABLE, "inner", {"vpcId": vpc, "tags": TAGS})
        self.make(ROUTE, "to-nat", {"routeTableId": inner, "destinationCidrBlock": "0.0.0.0/0", "natGatewayId": nat})
        for zone in ("a", "b"):
            self.make(ASSOCIATION, f"{zone}-inner", {"routeTableId": inner, "subnetId": self.id(zone)})

    def role(self, name: str, service: str, policies: tuple[str, ...]) -> None:
        """A role with managed policies, each attached by a resource ``<name>-<policy>``."""
        statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        role = self.make(ROLE, name, {"assumeRolePolicy": trust, "tags": TAGS})
        for policy in policies:
            arn = f"arn:aws:iam::aws:policy/{policy}"
            self.make(ATTACHMENT, f"{name}-{policy}", {"role": role, "policyArn": arn})

    def cluster(self) -> None:
        """A control plane with its role, on the two private subnets."""
        self.role("control", "eks.amazonaws.com", ("AmazonEKSClusterPolicy",))
        self.make(CLUSTER, "cluster", self.cluster_inputs())

    def cluster_inputs(self) -> dict[str, Any]:
        """Inputs of the control plane."""
        return {
            "name": "llm",
            "roleArn": self.outputs("control")["arn"],
            "version": "1.35",
            "accessConfig": {"authenticationMode": "API"},
            "vpcConfig": {"subnetIds": [self.id("a"), self.id("b")]},
            "tags": TAGS,
        }

    def nodes(self) -> None:
        """Two EFA nodes: template, security group, placement group, role, node group."""
        self.make(GROUP, "efa", {"vpcId": self.id("vpc"), "description": "EFA", "tags": TAGS})
        self.make(PLACEMENT, "placement", {"strategy": "cluster", "tags": TAGS})
        own = self.outputs("cluster")["vpcConfig"]["clusterSecurityGroupId"]
        interface = {"deviceIndex": 0, "interfaceType": "efa", "securityGroups": [own, self.id("efa")]}
        self.make(
            TEMPLATE,
            "template",
            {"networkInterfaces": [interface], "placement": {"groupName": self.id("placement")}, "tags": TAGS},
        )
        self.role("node", "ec2.amazonaws.com", NODE_POLICIES)
        self.make(NODES, "gpu", self.node_inputs())

    def node_inputs(self) -> dict[str, Any]:
        """Inputs of the node group."""
        return {
            "clusterName": "llm",
            "nodeRoleArn": self.outputs("node")["arn"],
            "subnetIds": [self.id("a")],
            "instanceTypes": ["g6.8xlarge"],
            "launchTemplate": {"id": self.id("template"), "version": "1"},
            "scalingConfig": {"minSize": 2, "desiredSize": 2, "maxSize": 2},
            "tags": TAGS,
        }


TAGS = {"Project": "p", "Stack": "dev"}


def ref(token: str, name: str) -> ResourceRef:
    """A resource as the engine names it."""
    return ResourceRef(token, f"urn:pulumi:dev::p::{token}::{name}", name)


def kinds(stack: Stack) -> Counter[str]:
    """How many of each kind the account holds."""
    return Counter(one.kind for one in stack.aws.inventory())
