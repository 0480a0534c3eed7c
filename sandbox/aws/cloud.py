"""AWS behind the stand-in: moto, in this process, started when something is first asked of it."""

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from sandbox.aws import seeds
from sandbox.standin import StandInError

# moto's backends belong to the process and are not made for concurrent use.
_LOCK = threading.RLock()


class Cloud:
    """The simulated account, of which there is one a process. Calls are serialised."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Any] = {}
        self._offerings: dict[tuple[str, str], frozenset[str]] = {}
        self._instance_types: dict[tuple[str, str], Mapping[str, Any] | None] = {}

    def call(self, service: str, operation: str, region: str, **parameters: Any) -> dict[str, Any]:
        """Makes an API call, named as in boto3 (``describe_vpcs``).

        Raises:
            StandInError: AWS refuses it; the text is AWS's own.
        """
        from botocore.exceptions import ClientError, ParamValidationError

        with _LOCK:
            try:
                return getattr(self._client(service, region), operation)(**parameters)
            except (ClientError, ParamValidationError) as refusal:
                raise StandInError(str(refusal)) from refusal

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

    def _client(self, service: str, region: str) -> Any:
        key = (service, region)
        if key not in self._clients:
            self._clients[key] = _session().client(service, region_name=region)
        return self._clients[key]


@cache
def _session() -> Any:
    import boto3
    from moto import mock_aws
    from moto.moto_api._internal import mock_random

    # The process's own credentials stay as they are: the engine's children inherit the environment.
    mock_aws(config={"core": {"mock_credentials": False}, "iam": {"load_aws_managed_policies": True}}).start()
    mock_random.seed(seeds.SEED)
    session = boto3.Session(aws_access_key_id="sandbox", aws_secret_access_key="sandbox")
    _make_existing_network(session)
    return session


def _make_existing_network(session: Any) -> None:
    network = seeds.EXISTING_NETWORK
    ec2 = session.client("ec2", region_name=network.region)
    vpc = ec2.create_vpc(CidrBlock=network.cidr, TagSpecifications=_named("vpc", "existing"))["Vpc"]["VpcId"]
    for zone, cidr in network.subnet_cidrs.items():
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=cidr,
            AvailabilityZone=zone,
            TagSpecifications=_named("subnet", f"existing-private-{zone}"),
        )


def _named(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": "Name", "Value": name}]}]
