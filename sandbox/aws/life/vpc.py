"""VPCs, subnets, gateways, addresses, NAT gateways and endpoints."""

from collections.abc import Mapping
from typing import Any

from sandbox.aws import existing
from sandbox.aws.account import Record
from sandbox.aws.errors import AwsError
from sandbox.aws.life.base import At, Life, Outputs, changed, holders, tags_of, with_tags
from sandbox.aws.life.ec2_calls import Ec2Life, has_interfaces, must_exist, refused, row

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
INTERNET_GATEWAY = "aws:ec2/internetGateway:InternetGateway"
EIP = "aws:ec2/eip:Eip"
NAT_GATEWAY = "aws:ec2/natGateway:NatGateway"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"


class Vpc(Ec2Life):
    """internal/service/ec2/vpc_.go."""

    kind, subject, tagged_as = "ec2:vpc", "EC2 VPC", "vpc"
    creating, deleting = "CreateVpc", "DeleteVpc"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.ec2(
            "create_vpc",
            CidrBlock=inputs["cidrBlock"],
            InstanceTenancy=inputs.get("instanceTenancy"),
            TagSpecifications=self.specification(inputs),
        )["Vpc"]
        self._attributes(at, made["VpcId"], inputs)
        return Record(VPC, made["VpcId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_vpcs", "Vpcs", VpcIds=[record.id])
        if found is None:
            return None
        outputs = existing.vpc(found, at.cloud, at.region)
        inside = [{"Name": "vpc-id", "Values": [record.id]}]
        default = [*inside, {"Name": "group-name", "Values": ["default"]}]
        acls = at.ec2("describe_network_acls", Filters=[*inside, {"Name": "default", "Values": ["true"]}])[
            "NetworkAcls"
        ]
        outputs["defaultSecurityGroupId"] = at.ec2("describe_security_groups", Filters=default)["SecurityGroups"][0][
            "GroupId"
        ]
        outputs["defaultNetworkAclId"] = acls[0]["NetworkAclId"] if acls else ""
        outputs["defaultRouteTableId"] = outputs["mainRouteTableId"]
        return with_tags(outputs, outputs["tags"])

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        self._attributes(at, record.id, inputs)
        return record

    def delete(self, at: At, record: Record) -> None:
        at.ec2("delete_vpc", VpcId=record.id)

    def _attributes(self, at: At, id: str, inputs: Mapping[str, Any]) -> None:
        for name, attribute in (("enableDnsSupport", "EnableDnsSupport"), ("enableDnsHostnames", "EnableDnsHostnames")):
            if name in inputs:
                at.ec2("modify_vpc_attribute", VpcId=id, **{attribute: {"Value": inputs[name]}})


class Subnet(Ec2Life):
    """internal/service/ec2/vpc_subnet.go."""

    kind, subject, tagged_as = "ec2:subnet", "EC2 Subnet", "subnet"
    creating, deleting = "CreateSubnet", "DeleteSubnet"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.ec2(
            "create_subnet",
            VpcId=inputs["vpcId"],
            CidrBlock=inputs.get("cidrBlock"),
            AvailabilityZone=inputs.get("availabilityZone"),
            AvailabilityZoneId=inputs.get("availabilityZoneId"),
            TagSpecifications=self.specification(inputs),
        )["Subnet"]
        self._public(at, made["SubnetId"], inputs)
        return Record(SUBNET, made["SubnetId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_subnets", "Subnets", SubnetIds=[record.id])
        return with_tags(existing.subnet(found, at.region), tags_of(found)) if found else None

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        self._public(at, record.id, inputs)
        return record

    def delete(self, at: At, record: Record) -> None:
        in_use = (
            (NAT_GATEWAY, "subnetId"),
            (ENDPOINT, "subnetIds"),
            # The control plane keeps interfaces in each of them (EKS user guide, "VPC and subnet requirements").
            ("aws:eks/cluster:Cluster", "vpcConfig.subnetIds"),
        )
        if any(holders(at.account, at.region, record.id, *in_use)) or has_interfaces(at, "subnet-id", record.id):
            reason = f"The subnet '{record.id}' has dependencies and cannot be deleted."
            raise refused("DeleteSubnet", "DependencyViolation", reason)
        at.ec2("delete_subnet", SubnetId=record.id)

    def _public(self, at: At, id: str, inputs: Mapping[str, Any]) -> None:
        if "mapPublicIpOnLaunch" in inputs:
            at.ec2("modify_subnet_attribute", SubnetId=id, MapPublicIpOnLaunch={"Value": inputs["mapPublicIpOnLaunch"]})


class InternetGateway(Ec2Life):
    """internal/service/ec2/vpc_internet_gateway.go."""

    kind, subject, tagged_as = "ec2:internet-gateway", "EC2 Internet Gateway", "internet-gateway"
    creating, deleting = "CreateInternetGateway", "DetachInternetGateway"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.ec2("create_internet_gateway", TagSpecifications=self.specification(inputs))["InternetGateway"]
        self._attach(at, made["InternetGatewayId"], inputs)
        return Record(INTERNET_GATEWAY, made["InternetGatewayId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_internet_gateways", "InternetGateways", InternetGatewayIds=[record.id])
        if found is None:
            return None
        attached = [one["VpcId"] for one in found["Attachments"]]
        outputs = {
            "arn": at.arn("ec2", f"internet-gateway/{record.id}"),
            "ownerId": found["OwnerId"],
            "vpcId": attached[0] if attached else "",
        }
        return with_tags(outputs, tags_of(found))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if changed(record, inputs, "vpcId"):
            self._detach(at, record)
            self._attach(at, record.id, inputs)
        return record

    def delete(self, at: At, record: Record) -> None:
        self._detach(at, record)
        at.ec2("delete_internet_gateway", InternetGatewayId=record.id)

    def _attach(self, at: At, id: str, inputs: Mapping[str, Any]) -> None:
        if inputs.get("vpcId"):
            at.ec2("attach_internet_gateway", InternetGatewayId=id, VpcId=inputs["vpcId"])

    def _detach(self, at: At, record: Record) -> None:
        found = row(at, "describe_internet_gateways", "InternetGateways", InternetGatewayIds=[record.id])
        for attachment in found["Attachments"] if found else ():
            vpc = attachment["VpcId"]
            inside = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "state", "Values": ["available"]}]
            if any(
                one["NatGatewayAddresses"] for one in at.ec2("describe_nat_gateways", Filters=inside)["NatGateways"]
            ):
                reason = (
                    f"Network {vpc} has some mapped public address(es). "
                    "Please unmap those public address(es) before detaching the gateway."
                )
                raise refused("DetachInternetGateway", "DependencyViolation", reason)
            at.ec2("detach_internet_gateway", InternetGatewayId=record.id, VpcId=vpc)


class Eip(Ec2Life):
    """internal/service/ec2/ec2_eip.go."""

    kind, subject, tagged_as = "ec2:elastic-ip", "EC2 EIP", "elastic-ip"
    creating, deleting = "AllocateAddress", "ReleaseAddress"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.ec2("allocate_address", Domain="vpc", TagSpecifications=self.specification(inputs))
        return Record(EIP, made["AllocationId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_addresses", "Addresses", AllocationIds=[record.id])
        if found is None:
            return None
        public, private = found["PublicIp"], found.get("PrivateIpAddress", "")
        outputs = {
            "allocationId": record.id,
            "arn": at.arn("ec2", f"elastic-ip/{record.id}"),
            "associationId": found.get("AssociationId", ""),
            "domain": found["Domain"],
            "instance": found.get("InstanceId", ""),
            "networkBorderGroup": at.region,
            "networkInterface": found.get("NetworkInterfaceId", ""),
            "privateIp": private,
            "publicDns": f"ec2-{public.replace('.', '-')}.compute-1.amazonaws.com",
            "publicIp": public,
            "publicIpv4Pool": "amazon",
        }
        return with_tags(outputs, tags_of(found))

    def delete(self, at: At, record: Record) -> None:
        if any(holders(at.account, at.region, record.id, (NAT_GATEWAY, "allocationId"))):
            raise refused(
                "ReleaseAddress", "InvalidIPAddress.InUse", f"The address with allocation id {record.id} is in use."
            )
        at.ec2("release_address", AllocationId=record.id)


class NatGateway(Ec2Life):
    """internal/service/ec2/vpc_nat_gateway.go."""

    kind, subject, tagged_as = "ec2:natgateway", "EC2 NAT Gateway", "natgateway"
    creating, deleting = "CreateNatGateway", "DeleteNatGateway"
    waits = ("available", "pending", 10)

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        must_exist(at, self.creating, inputs["subnetId"], inputs.get("allocationId"))
        subnet = at.ec2("describe_subnets", SubnetIds=[inputs["subnetId"]])["Subnets"][0]
        if inputs.get("allocationId"):
            taken = [
                one.id for one in holders(at.account, at.region, inputs["allocationId"], (NAT_GATEWAY, "allocationId"))
            ]
            if taken:
                reason = f"Elastic IP address [{inputs['allocationId']}] is already associated"
                raise refused("CreateNatGateway", "Resource.AlreadyAssociated", reason)
        made = at.ec2(
            "create_nat_gateway",
            SubnetId=inputs["subnetId"],
            AllocationId=inputs.get("allocationId"),
            ConnectivityType=inputs.get("connectivityType"),
            TagSpecifications=self.specification(inputs),
        )["NatGateway"]
        attached = [{"Name": "attachment.vpc-id", "Values": [subnet["VpcId"]]}]
        lost = not at.ec2("describe_internet_gateways", Filters=attached)["InternetGateways"]
        return Record(NAT_GATEWAY, made["NatGatewayId"], at.region, inputs, {"vpc": subnet["VpcId"], "lost": lost})

    def started(self, at: At, record: Record) -> str:
        # EC2 user guide, "Troubleshoot NAT gateways": the request is accepted, the gateway then fails.
        if not record.facts["lost"] or record.inputs.get("connectivityType") == "private":
            return super().started(at, record)
        return (
            f"waiting for EC2 NAT Gateway ({record.id}) create: unexpected state 'failed', wanted target 'available'. "
            f"last error: Gateway.NotAttached: Network {record.facts['vpc']} has no Internet gateway attached"
        )

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_nat_gateways", "NatGateways", NatGatewayIds=[record.id])
        if found is None or found["State"] == "deleted":
            return None
        address = found["NatGatewayAddresses"][0]
        outputs = {
            "associationId": address.get("AssociationId", ""),
            "availabilityMode": "zonal",
            "networkInterfaceId": address["NetworkInterfaceId"],
            "privateIp": address["PrivateIp"],
            "publicIp": address.get("PublicIp", ""),
            "subnetId": found["SubnetId"],
            "vpcId": found["VpcId"],
        }
        return with_tags(outputs, tags_of(found))

    def delete(self, at: At, record: Record) -> None:
        found = row(at, "describe_nat_gateways", "NatGateways", NatGatewayIds=[record.id])
        at.ec2("delete_nat_gateway", NatGatewayId=record.id)
        # moto leaves the gateway's interface and its hold on the address behind.
        for address in found["NatGatewayAddresses"] if found else ():
            if address.get("AssociationId"):
                at.ec2("disassociate_address", AssociationId=address["AssociationId"])
            at.ec2("delete_network_interface", NetworkInterfaceId=address["NetworkInterfaceId"])


class VpcEndpoint(Ec2Life):
    """internal/service/ec2/vpc_endpoint.go."""

    kind, subject, tagged_as = "ec2:vpc-endpoint", "EC2 VPC Endpoint", "vpc-endpoint"
    creating, deleting = "CreateVpcEndpoint", "DeleteVpcEndpoints"
    waits = ("available", "pending", 10)

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['serviceName']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        must_exist(at, self.creating, *(inputs.get("subnetIds") or ()), *(inputs.get("securityGroupIds") or ()))
        must_exist(at, self.creating, *(inputs.get("routeTableIds") or ()))
        made = at.ec2(
            "create_vpc_endpoint",
            VpcId=inputs["vpcId"],
            ServiceName=inputs["serviceName"],
            VpcEndpointType=inputs.get("vpcEndpointType"),
            SubnetIds=inputs.get("subnetIds"),
            SecurityGroupIds=inputs.get("securityGroupIds"),
            RouteTableIds=inputs.get("routeTableIds"),
            PrivateDnsEnabled=inputs.get("privateDnsEnabled"),
            PolicyDocument=inputs.get("policy"),
            TagSpecifications=self.specification(inputs),
        )["VpcEndpoint"]
        return Record(ENDPOINT, made["VpcEndpointId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_vpc_endpoints", "VpcEndpoints", VpcEndpointIds=[record.id])
        if found is None or found["State"] == "deleted":
            return None
        outputs = {
            "arn": at.arn("ec2", f"vpc-endpoint/{record.id}"),
            "dnsEntries": [
                {"dnsName": one["DnsName"], "hostedZoneId": one["HostedZoneId"]} for one in found.get("DnsEntries", [])
            ],
            "ipAddressType": "ipv4",
            "networkInterfaceIds": found.get("NetworkInterfaceIds", []),
            "ownerId": found["OwnerId"],
            "policy": found.get("PolicyDocument", ""),
            "requesterManaged": False,
            "routeTableIds": found.get("RouteTableIds", []),
            "securityGroupIds": [one["GroupId"] for one in found.get("Groups", [])],
            "serviceName": found["ServiceName"],
            "serviceRegion": at.region,
            "state": found["State"],
            "subnetIds": found.get("SubnetIds", []),
            "vpcEndpointType": found["VpcEndpointType"],
            "vpcId": found["VpcId"],
        }
        return with_tags(outputs, tags_of(found))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        changes: dict[str, Any] = {}
        for name, key in (
            ("subnetIds", "Subnet"),
            ("routeTableIds", "RouteTable"),
            ("securityGroupIds", "SecurityGroup"),
        ):
            before, after = set(record.inputs.get(name) or ()), set(inputs.get(name) or ())
            changes[f"Add{key}Ids"] = sorted(after - before) or None
            changes[f"Remove{key}Ids"] = sorted(before - after) or None
        if changed(record, inputs, "policy"):
            changes["PolicyDocument"] = inputs.get("policy")
        if any(changes.values()):
            at.ec2("modify_vpc_endpoint", VpcEndpointId=record.id, **changes)
        return record

    def delete(self, at: At, record: Record) -> None:
        found = row(at, "describe_vpc_endpoints", "VpcEndpoints", VpcEndpointIds=[record.id])
        at.ec2("delete_vpc_endpoints", VpcEndpointIds=[record.id])
        for interface in found.get("NetworkInterfaceIds", []) if found else ():
            try:
                at.ec2("delete_network_interface", NetworkInterfaceId=interface)
            except AwsError:
                continue  # moto took it away itself


LIVES: Mapping[str, Life] = {
    VPC: Vpc(),
    SUBNET: Subnet(),
    INTERNET_GATEWAY: InternetGateway(),
    EIP: Eip(),
    NAT_GATEWAY: NatGateway(),
    ENDPOINT: VpcEndpoint(),
}
