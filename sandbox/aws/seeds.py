"""What exists in the sandbox's account before any stack: the one place to look when a stack must name such a thing.

``Pulumi.prod.yaml`` names :data:`RESERVATIONS`; a stack that brings its own network may name :data:`EXISTING_NETWORK`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

ACCOUNT_ID: Final = "123456789012"
"""The account of AWS's own documentation, which moto uses as well."""

SEED: Final = 20_260
"""Seeds moto's random numbers, so that the ids below come out the same in each process (moto 5.2.5)."""


@dataclass(frozen=True)
class Reservation:
    """An on-demand capacity reservation of EC2."""

    id: str
    instance_type: str
    zone: str
    instance_count: int

    @property
    def region(self) -> str:
        """The zone without its letter."""
        return self.zone[:-1]


RESERVATIONS: Final = MappingProxyType(
    {one.id: one for one in (Reservation("cr-0123456789abcdef0", "g6e.12xlarge", "us-east-1a", 3),)}
)


@dataclass(frozen=True)
class ExistingNetwork:
    """A VPC with one private subnet a zone, all tagged ``Name``, and a NAT gateway in a public one."""

    region: str
    vpc_id: str
    cidr: str
    public_cidr: str
    subnet_cidrs: MappingProxyType[str, str]
    subnet_ids: MappingProxyType[str, str]


EXISTING_NETWORK: Final = ExistingNetwork(
    region="us-east-1",
    vpc_id="vpc-e9aca3b59c9ed242b",
    cidr="10.60.0.0/16",
    public_cidr="10.60.128.0/24",
    subnet_cidrs=MappingProxyType({"us-east-1a": "10.60.0.0/18", "us-east-1b": "10.60.64.0/18"}),
    subnet_ids=MappingProxyType({"us-east-1a": "subnet-609be1b542c40c27b", "us-east-1b": "subnet-1437659132158fab2"}),
)

QUOTAS: Final = MappingProxyType(
    {
        ("ec2", "L-DB2E81BA"): ("Running On-Demand G and VT instances", 256.0),
        ("ec2", "L-417A185B"): ("Running On-Demand P instances", 192.0),
        ("ec2", "L-3819A6DF"): ("All G and VT Spot Instance Requests", 256.0),
        ("ec2", "L-1216C47A"): ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152.0),
    }
)
"""(service, quota code) -> name and vCPU. Names: Service Quotas; values: made up, a real new account has 0 for G and P."""

ADDON_VERSIONS: Final = MappingProxyType(
    {
        "vpc-cni": "v1.20.0-eksbuild.1",
        "coredns": "v1.12.1-eksbuild.2",
        "kube-proxy": "v{kubernetes}.0-eksbuild.1",
        "aws-ebs-csi-driver": "v1.48.0-eksbuild.1",
        "eks-pod-identity-agent": "v1.3.8-eksbuild.2",
    }
)
"""Answers of ``eks.getAddonVersion``, of the right form only: moto knows no add-ons and AWS's newest change weekly."""


def make_existing_network(client: Callable[[str, str], Any]) -> None:
    """Makes :data:`EXISTING_NETWORK` in an empty account: private subnets with a way out through a NAT gateway."""
    from moto.moto_api._internal import mock_random

    network = EXISTING_NETWORK
    ec2 = client("ec2", network.region)
    mock_random.seed(str(SEED))
    vpc = ec2.create_vpc(CidrBlock=network.cidr, TagSpecifications=_named("vpc", "existing"))["Vpc"]["VpcId"]
    for zone, cidr in network.subnet_cidrs.items():
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=cidr,
            AvailabilityZone=zone,
            TagSpecifications=_named("subnet", f"existing-private-{zone}"),
        )
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    public = ec2.create_subnet(
        VpcId=vpc,
        CidrBlock=network.public_cidr,
        AvailabilityZone=next(iter(network.subnet_cidrs)),
        TagSpecifications=_named("subnet", "existing-public"),
    )["Subnet"]["SubnetId"]
    routes = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=routes, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    ec2.associate_route_table(RouteTableId=routes, SubnetId=public)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=public, AllocationId=address)["NatGateway"]["NatGatewayId"]
    main = ec2.describe_route_tables(
        Filters=[{"Name": "vpc-id", "Values": [vpc]}, {"Name": "association.main", "Values": ["true"]}]
    )["RouteTables"][0]["RouteTableId"]
    ec2.create_route(RouteTableId=main, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)


def _named(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": "Name", "Value": name}]}]
