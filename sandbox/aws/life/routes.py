"""Route tables, their routes and the subnets that use them."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandbox.aws.account import Record
from sandbox.aws.errors import AwsError
from sandbox.aws.life.base import At, Life, Outputs, tags_of, with_tags
from sandbox.aws.life.ec2_calls import Ec2Life, must_exist, refused, row

TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"

_DESTINATIONS = {
    "destinationCidrBlock": "DestinationCidrBlock",
    "destinationIpv6CidrBlock": "DestinationIpv6CidrBlock",
    "destinationPrefixListId": "DestinationPrefixListId",
}
_TARGETS = {"gatewayId": "GatewayId", "natGatewayId": "NatGatewayId"}


class RouteTable(Ec2Life):
    """internal/service/ec2/vpc_route_table.go."""

    kind, subject, tagged_as = "ec2:route-table", "EC2 Route Table", "route-table"
    creating, deleting = "CreateRouteTable", "DeleteRouteTable"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.ec2("create_route_table", VpcId=inputs["vpcId"], TagSpecifications=self.specification(inputs))[
            "RouteTable"
        ]
        for route in inputs.get("routes") or ():
            at.ec2("create_route", RouteTableId=made["RouteTableId"], **_inline(route))
        return Record(TABLE, made["RouteTableId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_route_tables", "RouteTables", RouteTableIds=[record.id])
        if found is None:
            return None
        outputs = {
            "arn": at.arn("ec2", f"route-table/{record.id}"),
            "ownerId": found["OwnerId"],
            "propagatingVgws": [],
            "routes": [_shown(one) for one in found["Routes"] if _is_the_users(one)],
            "vpcId": found["VpcId"],
        }
        return with_tags(outputs, tags_of(found))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        before, after = record.inputs.get("routes") or [], inputs.get("routes") or []
        for route in before:
            if route not in after:
                at.ec2("delete_route", RouteTableId=record.id, DestinationCidrBlock=route["cidrBlock"])
        for route in after:
            if route not in before:
                at.ec2("create_route", RouteTableId=record.id, **_inline(route))
        return record

    def delete(self, at: At, record: Record) -> None:
        at.ec2("delete_route_table", RouteTableId=record.id)


class Route(Life):
    """internal/service/ec2/vpc_route.go. The id is the provider's own: ``r-<table><hash of the destination>``."""

    service, kind, subject = "ec2", "ec2:route", "Route"
    creating, deleting = "CreateRoute", "DeleteRoute"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" in Route Table ({inputs['routeTableId']}) with destination ({_destination(inputs)[1]})"

    def called(self, record: Record) -> str:
        return f"{self.subject}{self.label(record.inputs)}"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        name, value = _destination(inputs)
        self._target_exists(at, inputs)
        at.ec2("create_route", RouteTableId=inputs["routeTableId"], **{_DESTINATIONS[name]: value}, **_target(inputs))
        return Record(ROUTE, f"r-{inputs['routeTableId']}{_hash(value)}", at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        name, value = _destination(record.inputs)
        table = row(at, "describe_route_tables", "RouteTables", RouteTableIds=[record.inputs["routeTableId"]])
        for one in table["Routes"] if table else ():
            if one.get(_DESTINATIONS[name]) == value:
                return {
                    "gatewayId": one.get("GatewayId", ""),
                    "instanceId": "",
                    "instanceOwnerId": "",
                    "natGatewayId": one.get("NatGatewayId", ""),
                    "networkInterfaceId": "",
                    "origin": "CreateRoute",
                    "state": one.get("State", "active"),
                }
        return None

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        name, value = _destination(inputs)
        self._target_exists(at, inputs)
        at.ec2("replace_route", RouteTableId=inputs["routeTableId"], **{_DESTINATIONS[name]: value}, **_target(inputs))
        return record

    def delete(self, at: At, record: Record) -> None:
        name, value = _destination(record.inputs)
        at.ec2("delete_route", RouteTableId=record.inputs["routeTableId"], **{_DESTINATIONS[name]: value})

    def parent(self, record: Record) -> str | None:
        return record.inputs["routeTableId"]

    def _target_exists(self, at: At, inputs: Mapping[str, Any]) -> None:
        # moto takes any NAT gateway's id.
        nat = inputs.get("natGatewayId")
        if nat:
            found = row(at, "describe_nat_gateways", "NatGateways", NatGatewayIds=[nat])
            if found is None or found["State"] != "available":
                raise refused(
                    "CreateRoute", "InvalidNatGatewayID.NotFound", f"The natGateway ID '{nat}' does not exist"
                )


class RouteTableAssociation(Life):
    """internal/service/ec2/vpc_route_table_association.go."""

    service, kind, subject = "ec2", "ec2:route-table-association", "Route Table Association"
    creating, deleting = "AssociateRouteTable", "DisassociateRouteTable"

    def making(self, inputs: Mapping[str, Any]) -> str:
        return f"creating Route Table ({inputs['routeTableId']}) Association"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        must_exist(at, self.creating, inputs["routeTableId"], inputs.get("subnetId"))
        if inputs.get("subnetId"):
            inside = [{"Name": "association.subnet-id", "Values": [inputs["subnetId"]]}]
            if row(at, "describe_route_tables", "RouteTables", Filters=inside):
                reason = f"the specified association for route table {inputs['routeTableId']} conflicts with an existing association"
                raise refused("AssociateRouteTable", "Resource.AlreadyAssociated", reason)
        made = at.ec2(
            "associate_route_table",
            RouteTableId=inputs["routeTableId"],
            SubnetId=inputs.get("subnetId"),
            GatewayId=inputs.get("gatewayId"),
        )
        return Record(ASSOCIATION, made["AssociationId"], at.region, inputs, {"association": made["AssociationId"]})

    def look(self, at: At, record: Record) -> Outputs | None:
        inside = [{"Name": "association.route-table-association-id", "Values": [record.facts["association"]]}]
        table = row(at, "describe_route_tables", "RouteTables", Filters=inside)
        return {"routeTableId": table["RouteTableId"]} if table else None

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        old = record.facts["association"]
        made = at.ec2("replace_route_table_association", AssociationId=old, RouteTableId=inputs["routeTableId"])
        # EC2 gives it a new id; to the engine a resource's id is fixed.
        return replace(record, facts={"association": made["NewAssociationId"]})

    def delete(self, at: At, record: Record) -> None:
        at.ec2("disassociate_route_table", AssociationId=record.facts["association"])

    def parent(self, record: Record) -> str | None:
        return record.inputs["routeTableId"]


def way_out(at: At, subnet_id: str) -> str:
    """Why a node in a subnet reaches nothing outside; empty when its routes lead to the internet.

    EKS user guide, "Troubleshoot problems with clusters and nodes": nodes without a route to a NAT or internet gateway, or the
    endpoints of a private cluster, fail to join.
    """
    subnet = at.ec2("describe_subnets", SubnetIds=[subnet_id])["Subnets"][0]
    target = _default_route(at, subnet)
    if target is None:
        return "its route table has no route to 0.0.0.0/0"
    if target.get("GatewayId"):
        return "" if _attached(at, target["GatewayId"]) else "its internet gateway is not attached"
    nat = row(at, "describe_nat_gateways", "NatGateways", NatGatewayIds=[target["NatGatewayId"]])
    if nat is None or nat["State"] != "available":
        return "its NAT gateway is gone"
    beyond = _default_route(at, at.ec2("describe_subnets", SubnetIds=[nat["SubnetId"]])["Subnets"][0])
    if beyond is None or not beyond.get("GatewayId") or not _attached(at, beyond["GatewayId"]):
        return "its NAT gateway stands in a subnet without a route to an internet gateway"
    return ""


def _default_route(at: At, subnet: Mapping[str, Any]) -> Mapping[str, Any] | None:
    table = row(
        at,
        "describe_route_tables",
        "RouteTables",
        Filters=[{"Name": "association.subnet-id", "Values": [subnet["SubnetId"]]}],
    ) or row(
        at,
        "describe_route_tables",
        "RouteTables",
        Filters=[{"Name": "vpc-id", "Values": [subnet["VpcId"]]}, {"Name": "association.main", "Values": ["true"]}],
    )
    routes = table["Routes"] if table else []
    return next((one for one in routes if one.get("DestinationCidrBlock") == "0.0.0.0/0"), None)


def _attached(at: At, gateway: str) -> bool:
    found = row(at, "describe_internet_gateways", "InternetGateways", InternetGatewayIds=[gateway])
    return bool(found and found["Attachments"])


def _destination(inputs: Mapping[str, Any]) -> tuple[str, str]:
    return next((name, inputs[name]) for name in _DESTINATIONS if inputs.get(name))


def _target(inputs: Mapping[str, Any]) -> dict[str, str]:
    found = {key: inputs[name] for name, key in _TARGETS.items() if inputs.get(name)}
    if not found:
        raise AwsError(
            "ec2", "CreateRoute", "InvalidParameterCombination", "the sandbox knows gatewayId and natGatewayId only"
        )
    return found


def _inline(route: Mapping[str, Any]) -> dict[str, str]:
    return {"DestinationCidrBlock": route["cidrBlock"], **_target(route)}


def _shown(route: Mapping[str, Any]) -> dict[str, Any]:
    names = {"cidrBlock": "DestinationCidrBlock", **_TARGETS}
    return {name: route[key] for name, key in names.items() if route.get(key)}


def _is_the_users(route: Mapping[str, Any]) -> bool:
    # The local route and what endpoints add are not shown (vpc_route_table.go, flattenRoutes).
    return route.get("GatewayId") != "local" and "DestinationPrefixListId" not in route


def _hash(text: str) -> int:
    # create.StringHashcode of the provider: CRC-32.
    return zlib.crc32(text.encode())


LIVES: Mapping[str, Life] = {TABLE: RouteTable(), ROUTE: Route(), ASSOCIATION: RouteTableAssociation()}
