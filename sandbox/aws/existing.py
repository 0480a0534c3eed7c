"""Reading what existed before the stack: ``Resource.get(...)``, imports, and the data sources that look things up."""

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.aws import seeds
from sandbox.aws.cloud import Cloud
from sandbox.standin import StandInError


def read(token: str, id: str, cloud: Cloud, region: str) -> dict[str, Any] | None:
    """The outputs of an existing resource; None when there is none of this id.

    Raises:
        StandInError: The sandbox cannot look up resources of this type.
    """
    reader = _READERS.get(token)
    if reader is None:
        raise StandInError(f"the sandbox cannot look up an existing {token}: it knows {', '.join(sorted(_READERS))}")
    return reader(id, cloud, region)


def can_read(token: str) -> bool:
    """Whether resources of this type are among what existed before any stack."""
    return token in _READERS


def vpc(row: Mapping[str, Any], cloud: Cloud, region: str) -> dict[str, Any]:
    """A VPC as the provider shows it, from DescribeVpcs and the attributes that need calls of their own."""
    found = row["VpcId"]
    tables = cloud.call(
        "ec2",
        "describe_route_tables",
        region,
        Filters=[{"Name": "vpc-id", "Values": [found]}, {"Name": "association.main", "Values": ["true"]}],
    )["RouteTables"]
    return {
        "id": found,
        "arn": arn("ec2", region, f"vpc/{found}"),
        "cidrBlock": row["CidrBlock"],
        "dhcpOptionsId": row.get("DhcpOptionsId", ""),
        "enableDnsHostnames": _attribute(cloud, region, found, "enableDnsHostnames"),
        "enableDnsSupport": _attribute(cloud, region, found, "enableDnsSupport"),
        "enableNetworkAddressUsageMetrics": False,
        "instanceTenancy": row["InstanceTenancy"],
        "ipv6AssociationId": "",
        "ipv6CidrBlock": "",
        "mainRouteTableId": tables[0]["RouteTableId"] if tables else "",
        "ownerId": row["OwnerId"],
        "region": region,
        "tags": tags_of(row),
    }


def subnet(row: Mapping[str, Any], region: str) -> dict[str, Any]:
    """A subnet as the provider shows it, from DescribeSubnets."""
    names = row["PrivateDnsNameOptionsOnLaunch"]
    return {
        "id": row["SubnetId"],
        "arn": row["SubnetArn"],
        "assignIpv6AddressOnCreation": row["AssignIpv6AddressOnCreation"],
        "availabilityZone": row["AvailabilityZone"],
        "availabilityZoneId": row["AvailabilityZoneId"],
        "cidrBlock": row["CidrBlock"],
        "customerOwnedIpv4Pool": "",
        "enableDns64": False,
        "enableLniAtDeviceIndex": 0,
        "enableResourceNameDnsARecordOnLaunch": names["EnableResourceNameDnsARecord"],
        "enableResourceNameDnsAaaaRecordOnLaunch": names["EnableResourceNameDnsAAAARecord"],
        "ipv6CidrBlock": "",
        "ipv6CidrBlockAssociationId": "",
        "ipv6Native": row["Ipv6Native"],
        "mapCustomerOwnedIpOnLaunch": False,
        "mapPublicIpOnLaunch": row["MapPublicIpOnLaunch"],
        "outpostArn": "",
        "ownerId": row["OwnerId"],
        "privateDnsHostnameTypeOnLaunch": names["HostnameType"],
        "region": region,
        "tags": tags_of(row),
        "vpcId": row["VpcId"],
    }


def arn(service: str, region: str, resource: str) -> str:
    """The ARN of something in the sandbox's account."""
    return f"arn:{partition_of(region)['partition']}:{service}:{region}:{seeds.ACCOUNT_ID}:{resource}"


def partition_of(region: str) -> dict[str, str]:
    """Partition, DNS suffix and reversed DNS prefix of a region (botocore's endpoints data)."""
    if region.startswith("cn-"):
        return {"partition": "aws-cn", "dnsSuffix": "amazonaws.com.cn", "reverseDnsPrefix": "cn.com.amazonaws"}
    name = "aws-us-gov" if region.startswith("us-gov-") else "aws"
    return {"partition": name, "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def tags_of(row: Mapping[str, Any]) -> dict[str, str]:
    """AWS's list of tags as a mapping."""
    return {one["Key"]: one["Value"] for one in row.get("Tags", [])}


def _attribute(cloud: Cloud, region: str, vpc_id: str, name: str) -> bool:
    answer = cloud.call("ec2", "describe_vpc_attribute", region, VpcId=vpc_id, Attribute=name)
    return answer[name[0].upper() + name[1:]]["Value"]


def _one(cloud: Cloud, operation: str, region: str, answer: str, **wanted: Any) -> Mapping[str, Any] | None:
    try:
        rows = cloud.call("ec2", operation, region, **wanted)[answer]
    except StandInError:
        return None
    return rows[0] if rows else None


def _read_vpc(id: str, cloud: Cloud, region: str) -> dict[str, Any] | None:
    row = _one(cloud, "describe_vpcs", region, "Vpcs", VpcIds=[id])
    return {**vpc(row, cloud, region), "tagsAll": tags_of(row)} if row else None


def _read_subnet(id: str, cloud: Cloud, region: str) -> dict[str, Any] | None:
    row = _one(cloud, "describe_subnets", region, "Subnets", SubnetIds=[id])
    return {**subnet(row, region), "tagsAll": tags_of(row)} if row else None


def _read_reservation(id: str, cloud: Cloud, region: str) -> dict[str, Any] | None:
    found = seeds.RESERVATIONS.get(id)
    if found is None or found.region != region:
        return None
    return {
        "id": found.id,
        "arn": arn("ec2", region, f"capacity-reservation/{found.id}"),
        "availabilityZone": found.zone,
        "ebsOptimized": True,
        "endDateType": "unlimited",
        "instanceCount": found.instance_count,
        "instanceMatchCriteria": "targeted",
        "instancePlatform": "Linux/UNIX",
        "instanceType": found.instance_type,
        "ownerId": seeds.ACCOUNT_ID,
        "region": region,
        "tags": {},
        "tagsAll": {},
        "tenancy": "default",
    }


_READERS: Mapping[str, Callable[[str, Cloud, str], dict[str, Any] | None]] = {
    "aws:ec2/capacityReservation:CapacityReservation": _read_reservation,
    "aws:ec2/subnet:Subnet": _read_subnet,
    "aws:ec2/vpc:Vpc": _read_vpc,
}
