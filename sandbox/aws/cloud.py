"""AWS behind the stand-in: moto, in this process, started when something is first asked of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sandbox.aws import seeds
from sandbox.aws.account import Account
from sandbox.aws.control_planes import ControlPlanes, NoControlPlanes
from sandbox.aws.limits import Limits
from sandbox.standin import StandInError

# One read of each service that a cluster takes.
_FIRST_READS: Final = {
    "ec2": "describe_vpcs",
    "iam": "list_roles",
    "kms": "list_keys",
    "logs": "describe_log_groups",
    "eks": "list_clusters",
}


class Cloud:
    """A simulated account as rules and data sources see it. Calls are serialised.

    ``cloud.call`` is also how a test changes something behind a program's back: it is kept like everything else. A test may set
    ``cloud.limits``, which are not.
    """

    def __init__(self, folder: Path | None = None, control_planes: ControlPlanes | None = None) -> None:
        self.account = Account(folder)
        self.control_planes = control_planes or NoControlPlanes()
        self.limits = Limits()
        self._offerings: dict[tuple[str, str], frozenset[str]] = {}
        self._instance_types: dict[tuple[str, str], Mapping[str, Any] | None] = {}

    def call(self, service: str, operation: str, region: str, /, **parameters: Any) -> dict[str, Any]:
        """Makes an API call, named as in boto3 (``describe_vpcs``).

        Raises:
            StandInError: AWS refuses it; an AwsError carries AWS's code and words.
        """
        return self.account.call(service, operation, region, parameters)

    def warm_up(self) -> None:
        """Asks each service something: its first call takes up to two seconds."""
        for service, operation in _FIRST_READS.items():
            self.call(service, operation, seeds.EXISTING_NETWORK.region)

    def regions(self) -> frozenset[str]:
        """The regions of the partition ``aws``."""
        found = self.call("ec2", "describe_regions", seeds.EXISTING_NETWORK.region, AllRegions=True)["Regions"]
        return frozenset(one["RegionName"] for one in found)

    def zones(self, region: str) -> dict[str, str]:
        """Zone name -> zone id (``us-east-1a`` -> ``use1-az6``) of a region's Availability Zones."""
        found = self.call("ec2", "describe_availability_zones", region)["AvailabilityZones"]
        return {one["ZoneName"]: one["ZoneId"] for one in found}

    def instance_type(self, name: str, region: str) -> Mapping[str, Any] | None:
        """EC2's DescribeInstanceTypes row; None when there is no such type."""
        key = (name, region)
        if key not in self._instance_types:
            try:
                rows = self.call("ec2", "describe_instance_types", region, InstanceTypes=[name])["InstanceTypes"]
            except StandInError:
                rows = []
            self._instance_types[key] = rows[0] if rows else None
        return self._instance_types[key]

    def zones_offering(self, instance_type: str, region: str) -> frozenset[str]:
        """The zones of a region in which EC2 offers an instance type; empty when the region does not have it."""
        key = (instance_type, region)
        if key not in self._offerings:
            found = self.call(
                "ec2",
                "describe_instance_type_offerings",
                region,
                LocationType="availability-zone",
                Filters=[{"Name": "instance-type", "Values": [instance_type]}],
            )
            self._offerings[key] = frozenset(one["Location"] for one in found["InstanceTypeOfferings"])
        return self._offerings[key]

    def zone_of_subnet(self, subnet_id: str, region: str) -> str | None:
        """The zone of a subnet that exists already; None when no such subnet is known."""
        try:
            (found,) = self.call("ec2", "describe_subnets", region, SubnetIds=[subnet_id])["Subnets"]
        except StandInError:
            return None
        return found["AvailabilityZone"]

    def cidr_of_vpc(self, vpc_id: str, region: str) -> str | None:
        """The IPv4 network of a VPC that exists already; None when no such VPC is known."""
        try:
            (found,) = self.call("ec2", "describe_vpcs", region, VpcIds=[vpc_id])["Vpcs"]
        except StandInError:
            return None
        return found["CidrBlock"]
