from ipaddress import IPv4Network
from typing import Any

import pytest

from components.choices import NatGateways
from components.faults import StackFaults
from components.network import Network, NetworkArgs
from components.subnets import plan_subnets

GET_SUBNET = "aws:ec2/getSubnet:getSubnet"
SUBNETS = {
    "subnet-a": {"id": "subnet-a", "availabilityZone": "us-east-1a", "vpcId": "vpc-1"},
    "subnet-b": {"id": "subnet-b", "availabilityZone": "us-east-1b", "vpcId": "vpc-1"},
    "subnet-far": {"id": "subnet-far", "availabilityZone": "us-east-1b", "vpcId": "vpc-2"},
}


def new_vpc(**changes: Any) -> NetworkArgs:
    args: Any = {"region": "us-east-1", "cidr": "10.20.0.0/16", "zones": ["us-east-1a", "us-east-1b"], **changes}
    return args


def existing_vpc(**changes: Any) -> NetworkArgs:
    subnets = {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"}
    args: Any = {"region": "us-east-1", "vpc_id": "vpc-1", "private_subnets": subnets, **changes}
    return args


def answer_subnet(args: dict[str, Any]) -> dict[str, Any]:
    if args["id"] not in SUBNETS:
        raise LookupError(f"no matching EC2 Subnet found: {args['id']}")
    return SUBNETS[args["id"]]


@pytest.mark.parametrize("preview", [True, False])
def test_a_new_vpc_has_exactly_these_resources(deploy, preview):
    recording = deploy(lambda: Network("net", new_vpc()), preview=preview)
    zones = ("us-east-1a", "us-east-1b")
    assert recording.listed() == sorted(
        [
            ("ray-llm-eks:index:Network", "net"),
            ("aws:ec2/vpc:Vpc", "net-vpc"),
            ("aws:ec2/internetGateway:InternetGateway", "net-internet"),
            ("aws:ec2/routeTable:RouteTable", "net-public-routes"),
            ("aws:ec2/route:Route", "net-public-to-internet"),
            ("aws:ec2/eip:Eip", "net-nat-us-east-1a"),
            ("aws:ec2/natGateway:NatGateway", "net-nat-us-east-1a"),
            ("aws:ec2/securityGroup:SecurityGroup", "net-endpoints"),
            ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "net-endpoints-https"),
            *(
                ("aws:ec2/vpcEndpoint:VpcEndpoint", f"net-{it}")
                for it in ("s3", "ecr-api", "ecr-dkr", "sts", "ec2", "logs")
            ),
            *(("aws:ec2/subnet:Subnet", f"net-{kind}-{zone}") for zone in zones for kind in ("public", "private")),
            *(("aws:ec2/routeTable:RouteTable", f"net-private-{zone}-routes") for zone in zones),
            *(("aws:ec2/route:Route", f"net-private-{zone}-to-nat") for zone in zones),
            *(
                ("aws:ec2/routeTableAssociation:RouteTableAssociation", f"net-{kind}-{zone}")
                for zone in zones
                for kind in ("public", "private")
            ),
        ]
    )
    assert {resource.parent for resource in recording.resources if resource.name != "net"} == {"net"}


@pytest.mark.parametrize("preview", [True, False])
def test_the_zones_of_the_private_subnets_are_known_even_where_ids_are_not(deploy, preview):
    recording = deploy(lambda: Network("net", new_vpc()), preview=preview)
    assert list(recording.result.private_subnet_ids) == ["us-east-1a", "us-east-1b"]
    subnets = {
        it.inputs["availabilityZone"]: it for it in recording.of_type("aws:ec2/subnet:Subnet") if "private" in it.name
    }
    assert {zone: it.inputs["cidrBlock"] for zone, it in subnets.items()} == {
        "us-east-1a": "10.20.0.0/20",
        "us-east-1b": "10.20.16.0/20",
    }


def test_egress_holds_every_way_out_of_a_private_subnet(deploy):
    recording = deploy(lambda: Network("net", new_vpc()))
    egress = {resource._name for resource in recording.result.egress}
    for needed in (
        "net-internet",
        "net-public-to-internet",
        "net-nat-us-east-1a",
        "net-private-us-east-1a-to-nat",
        "net-private-us-east-1b-to-nat",
        "net-private-us-east-1a",
        "net-public-us-east-1a",
        "net-s3",
        "net-ecr-api",
        "net-ecr-dkr",
        "net-sts",
        "net-ec2",
        "net-logs",
        "net-endpoints-https",
    ):
        assert needed in egress


def test_one_nat_gateway_serves_both_zones_by_default(deploy):
    recording = deploy(lambda: Network("net", new_vpc()))
    for zone in ("us-east-1a", "us-east-1b"):
        route = recording.one("aws:ec2/route:Route", f"net-private-{zone}-to-nat")
        assert route.inputs["natGatewayId"] == "net-nat-us-east-1a-id"


def test_each_zone_has_its_own_nat_gateway_when_asked(deploy):
    recording = deploy(lambda: Network("net", new_vpc(nat_gateways=NatGateways.PER_ZONE)))
    for zone in ("us-east-1a", "us-east-1b"):
        route = recording.one("aws:ec2/route:Route", f"net-private-{zone}-to-nat")
        assert route.inputs["natGatewayId"] == f"net-nat-{zone}-id"


def test_a_nat_gateway_waits_for_the_way_out_of_its_own_subnet(deploy):
    recording = deploy(lambda: Network("net", new_vpc()))
    nat = recording.one("aws:ec2/natGateway:NatGateway")
    assert {"net-internet", "net-public-to-internet"} <= nat.depends_on


def test_interface_endpoints_take_https_from_the_vpc_only(deploy):
    recording = deploy(lambda: Network("net", new_vpc()))
    rule = recording.one("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule").inputs
    assert (rule["cidrIpv4"], rule["ipProtocol"], rule["fromPort"], rule["toPort"]) == ("10.20.0.0/16", "tcp", 443, 443)
    endpoints = {it.name: it.inputs for it in recording.of_type("aws:ec2/vpcEndpoint:VpcEndpoint")}
    assert endpoints["net-s3"]["vpcEndpointType"] == "Gateway"
    assert endpoints["net-s3"]["routeTableIds"] == [
        "net-private-us-east-1a-routes-id",
        "net-private-us-east-1b-routes-id",
    ]
    assert endpoints["net-ecr-dkr"]["serviceName"] == "com.amazonaws.us-east-1.ecr.dkr"
    assert endpoints["net-ecr-dkr"]["privateDnsEnabled"] is True
    assert endpoints["net-ecr-dkr"]["securityGroupIds"] == ["net-endpoints-id"]


def test_subnets_carry_the_tags_load_balancers_look_for(deploy):
    recording = deploy(lambda: Network("net", new_vpc()))
    for subnet in recording.of_type("aws:ec2/subnet:Subnet"):
        key = "kubernetes.io/role/elb" if "public" in subnet.name else "kubernetes.io/role/internal-elb"
        assert subnet.inputs["tags"][key] == "1"


def test_an_appended_zone_moves_no_subnet():
    two = plan_subnets("10.20.0.0/16", ["us-east-1a", "us-east-1b"])
    three = plan_subnets("10.20.0.0/16", ["us-east-1a", "us-east-1b", "us-east-1c"])
    assert {zone: three[zone] for zone in two} == two


@pytest.mark.parametrize("cidr", ["10.20.0.0/16", "10.0.16.0/20"])
def test_subnets_lie_in_the_vpc_and_never_overlap(cidr):
    plan = plan_subnets(cidr, [f"zone-{number}" for number in range(15)])
    blocks = [IPv4Network(block) for zone in plan.values() for block in (zone.private, zone.public)]
    assert all(block.subnet_of(IPv4Network(cidr)) for block in blocks)
    assert not any(one.overlaps(other) for index, one in enumerate(blocks) for other in blocks[index + 1 :])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"zones": ["us-east-1a"]}, "network.zones: 1 zone(s) given; the EKS control plane needs at least 2"),
        (
            {"zones": ["us-east-1a", "us-east-1a"]},
            "network.zones: us-east-1a appears more than once; list each zone once.",
        ),
        ({"cidr": "10.20.0.0/24"}, "network.cidr: '10.20.0.0/24' is a /24; a VPC holds at most a /16"),
        (
            {"cidr": "10.20.0.1/16"},
            "network.cidr: '10.20.0.1/16' is not an IPv4 network (10.20.0.1/16 has host bits set)",
        ),
        (
            {"private_subnets": {"a": "b"}},
            "network.privateSubnets: subnets are given without their VPC; write network.vpcId too.",
        ),
    ],
)
def test_a_network_that_cannot_be_is_refused_before_any_resource(deploy, changes, text):
    with pytest.raises(StackFaults, match=r"(?s).*") as caught:
        deploy(lambda: Network("net", new_vpc(**changes)))
    assert text in str(caught.value)


@pytest.mark.parametrize("preview", [True, False])
def test_an_existing_vpc_is_checked_and_nothing_is_made_in_it(deploy, preview):
    recording = deploy(lambda: Network("net", existing_vpc()), preview=preview, invokes={GET_SUBNET: answer_subnet})
    assert recording.listed() == [("ray-llm-eks:index:Network", "net")]
    assert recording.result.egress == []
    assert recording.outputs["net"] == {
        "vpc_id": "vpc-1",
        "private_subnet_ids": {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"},
    }


def test_a_subnet_named_for_another_zone_or_vpc_is_refused_with_all_faults_at_once(deploy):
    subnets = {"us-east-1a": "subnet-far", "us-east-1b": "subnet-none"}
    with pytest.raises(StackFaults) as caught:
        deploy(
            lambda: Network("net", existing_vpc(private_subnets=subnets)),
            preview=True,
            invokes={GET_SUBNET: answer_subnet},
        )
    first, second, third = caught.value.faults
    assert first == (
        "network.privateSubnets.us-east-1a: subnet 'subnet-far' lies in us-east-1b, not in us-east-1a; EFA does not cross "
        "zones, so name it under us-east-1b or write a subnet of us-east-1a."
    )
    assert second == (
        "network.privateSubnets.us-east-1a: subnet 'subnet-far' belongs to vpc-2, not to vpc-1; write a subnet of vpc-1."
    )
    assert third.startswith("network.privateSubnets.us-east-1b: subnet 'subnet-none' cannot be read (")


def test_an_existing_vpc_needs_subnets_in_two_zones_and_no_cidr(deploy):
    with pytest.raises(StackFaults) as caught:
        deploy(lambda: Network("net", existing_vpc(private_subnets={"us-east-1a": "subnet-a"}, cidr="10.0.0.0/16")))
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["network.vpcId", "network.privateSubnets"]
