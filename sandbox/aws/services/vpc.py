"""Networks: VPCs, subnets, gateways, routes, endpoints, security groups and their rules."""

import ipaddress
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from sandbox.aws.kinds import ApiShape, ResourceKind, RuleContext
from sandbox.aws.paths import values_at
from sandbox.aws.rules import cidr, conflicts, exactly_one_of, length, matches, one_of, zone_exists
from sandbox.standin import CheckFailure

_SOURCE = "internal/service/ec2/"

_PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_OLD_PEERS = ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds", "self", "sourceSecurityGroupId")
_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
_TARGETS = (
    "carrierGatewayId",
    "coreNetworkArn",
    "egressOnlyGatewayId",
    "gatewayId",
    "localGatewayId",
    "natGatewayId",
    "networkInterfaceId",
    "transitGatewayId",
    "vpcEndpointId",
    "vpcPeeringConnectionId",
)


def _public_nat_needs_address(context: RuleContext) -> Iterable[CheckFailure]:
    # EC2 CreateNatGateway: MissingParameter; a regional gateway brings its own addresses.
    inputs = context.inputs
    if inputs.get("availabilityMode") == "regional" or inputs.get("connectivityType") != "public":
        return
    if "allocationId" not in inputs:
        yield CheckFailure("allocationId", "is needed for a public NAT gateway: give it an Eip's id")


def _rule_has_peer(context: RuleContext) -> Iterable[CheckFailure]:
    if all(context.inputs.get(name) is None for name in _OLD_PEERS):
        yield CheckFailure("self", f"give one of {', '.join(_OLD_PEERS)}: none is set")


def _ports_of_all_protocols(context: RuleContext) -> Iterable[CheckFailure]:
    # vpc_security_group.go, expandIPPerms: protocol -1 goes with ports 0 and 0.
    for kind in ("ingress", "egress"):
        for path, rule in values_at(context.inputs, f"{kind}[]"):
            ports = (rule.get("fromPort"), rule.get("toPort"))
            if rule.get("protocol") == "-1" and all(isinstance(one, int) for one in ports) and ports != (0, 0):
                reason = f"has protocol -1 (all) with ports {ports[0]} to {ports[1]}: both must be 0"
                yield CheckFailure(path, reason)


def _no_ports_of_all_protocols(context: RuleContext) -> Iterable[CheckFailure]:
    # EC2 AuthorizeSecurityGroupIngress forgets the ports, and the next update fails with InvalidParameterValue, "You may
    # not specify all protocols and specific ports" (hashicorp/terraform-provider-aws#30035). -1 is what EC2 itself shows.
    if context.inputs.get("ipProtocol") not in ("-1", "all"):
        return
    for name in ("fromPort", "toPort"):
        port = context.inputs.get(name)
        if isinstance(port, int) and port != -1:
            yield CheckFailure(name, f"is {port}, but ipProtocol -1 (all) takes no ports: leave it out")


def _cidr_inside_vpc(context: RuleContext) -> Iterable[CheckFailure]:
    for _, vpc in values_at(context.inputs, "vpcId"):
        outer = context.cloud.cidr_of_vpc(vpc, context.region)
        for path, value in values_at(context.inputs, "cidrBlock"):
            if outer and not _lies_within(value, outer):
                yield CheckFailure(path, f"is {value!r}, which lies outside {outer} of {vpc}")


def _lies_within(inner: str, outer: str) -> bool:
    try:
        return ipaddress.IPv4Network(inner, strict=False).subnet_of(ipaddress.IPv4Network(outer))
    except ValueError:
        return True  # no network at all: another rule says so


def _another_kind_of_peer(old: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str]:
    # ModifyPlan: EC2 cannot change what kind of source a rule has.
    peers = [{name for name in _PEERS if inputs.get(name) is not None} for inputs in (old, new)]
    return frozenset(peers[0] | peers[1]) if peers[0] != peers[1] else frozenset()


def _private_dns_of_gateway(old: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str]:
    # CustomizeDiff: only an interface endpoint changes it in place.
    return frozenset() if new.get("vpcEndpointType") == "Interface" else frozenset({"privateDnsEnabled"})


_SINGLE_RULE = ResourceKind(
    source=_SOURCE + "vpc_security_group_ingress_rule.go",
    replaces=frozenset({"securityGroupId"}),
    replaces_when=_another_kind_of_peer,
    rules=(exactly_one_of(*_PEERS), cidr("cidrIpv4"), _no_ports_of_all_protocols),
)

KINDS: Mapping[str, ResourceKind] = {
    "aws:ec2/vpc:Vpc": ResourceKind(
        source=_SOURCE + "vpc_.go",
        replaces=frozenset({"cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"}),
        defaults=MappingProxyType({"enableDnsSupport": True, "instanceTenancy": "default"}),
        api=ApiShape("ec2", "CreateVpcRequest"),
        rules=(cidr("cidrBlock", 16, 28), conflicts("cidrBlock", "ipv4NetmaskLength")),
    ),
    "aws:ec2/subnet:Subnet": ResourceKind(
        source=_SOURCE + "vpc_subnet.go",
        replaces=frozenset(
            {
                *("availabilityZone", "availabilityZoneId", "cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"),
                *("ipv6IpamPoolId", "ipv6Native", "ipv6NetmaskLength", "outpostArn", "vpcId"),
            }
        ),
        defaults=MappingProxyType({"assignIpv6AddressOnCreation": False, "mapPublicIpOnLaunch": False}),
        rules=(
            cidr("cidrBlock", 16, 28),
            conflicts("availabilityZone", "availabilityZoneId"),
            zone_exists("availabilityZone"),
            _cidr_inside_vpc,
        ),
    ),
    "aws:ec2/internetGateway:InternetGateway": ResourceKind(source=_SOURCE + "vpc_internet_gateway.go"),
    "aws:ec2/eip:Eip": ResourceKind(
        source=_SOURCE + "ec2_eip.go",
        replaces=frozenset({"address", "domain", "ipamPoolId", "networkBorderGroup", "publicIpv4Pool"}),
        rules=(one_of("domain", "vpc", "standard"), conflicts("instance", "networkInterface")),
    ),
    "aws:ec2/natGateway:NatGateway": ResourceKind(
        source=_SOURCE + "vpc_nat_gateway.go",
        replaces=frozenset(
            {
                *("allocationId", "availabilityMode", "connectivityType", "privateIp"),
                *("secondaryPrivateIpAddressCount", "subnetId", "vpcId"),
            }
        ),
        defaults=MappingProxyType({"connectivityType": "public"}),
        api=ApiShape("ec2", "CreateNatGatewayRequest"),
        rules=(_public_nat_needs_address,),
    ),
    "aws:ec2/routeTable:RouteTable": ResourceKind(
        source=_SOURCE + "vpc_route_table.go",
        replaces=frozenset({"vpcId"}),
        sets=frozenset({"routes"}),
        rules=(cidr("routes[].cidrBlock"),),
    ),
    "aws:ec2/route:Route": ResourceKind(
        source=_SOURCE + "vpc_route.go",
        replaces=frozenset({"routeTableId", *_DESTINATIONS}),
        rules=(exactly_one_of(*_DESTINATIONS), exactly_one_of(*_TARGETS), cidr("destinationCidrBlock")),
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": ResourceKind(
        source=_SOURCE + "vpc_route_table_association.go",
        replaces=frozenset({"gatewayId", "subnetId"}),
        rules=(exactly_one_of("subnetId", "gatewayId"),),
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ResourceKind(
        source=_SOURCE + "vpc_endpoint.go",
        replaces=frozenset(
            {
                *("dnsOptions.privateDnsPreference", "dnsOptions.privateDnsSpecifiedDomains"),
                *("resourceConfigurationArn", "serviceName", "serviceNetworkArn", "serviceRegion"),
                *("vpcEndpointType", "vpcId"),
            }
        ),
        replaces_when=_private_dns_of_gateway,
        sets=frozenset({"routeTableIds", "securityGroupIds", "subnetIds"}),
        defaults=MappingProxyType({"vpcEndpointType": "Gateway"}),
        api=ApiShape("ec2", "CreateVpcEndpointRequest"),
        rules=(
            exactly_one_of("serviceName", "resourceConfigurationArn", "serviceNetworkArn"),
            matches("serviceName", r"(com|cn|aws|eu)\.[\w.-]+", "com.amazonaws.us-east-1.s3"),
        ),
    ),
    "aws:ec2/securityGroup:SecurityGroup": ResourceKind(
        source=_SOURCE + "vpc_security_group.go",
        replaces=frozenset({"description", "name", "namePrefix", "vpcId"}),
        sets=frozenset({"egress", "ingress"}),
        defaults=MappingProxyType(
            {
                "description": "Managed by Pulumi",
                "revokeRulesOnDelete": False,
                "egress[].self": False,
                "ingress[].self": False,
            }
        ),
        rules=(
            conflicts("name", "namePrefix"),
            length("description", 0, 255),
            length("name", 0, 255),
            matches("name", r"(?!sg-).*", "a name that does not start with sg-"),
            cidr("ingress[].cidrBlocks[]"),
            cidr("egress[].cidrBlocks[]"),
            _ports_of_all_protocols,
        ),
    ),
    "aws:ec2/securityGroupRule:SecurityGroupRule": ResourceKind(
        source=_SOURCE + "vpc_security_group_rule.go",
        replaces=frozenset({"*"}),
        keeps=frozenset({"description"}),
        delete_before_replace=True,
        rules=(
            one_of("type", "ingress", "egress"),
            conflicts("self", "cidrBlocks", "ipv6CidrBlocks", "sourceSecurityGroupId"),
            conflicts("sourceSecurityGroupId", "cidrBlocks", "ipv6CidrBlocks"),
            _rule_has_peer,
            cidr("cidrBlocks[]"),
        ),
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _SINGLE_RULE,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _SINGLE_RULE,
}
