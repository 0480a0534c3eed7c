"""Instances: launch templates, placement groups, capacity reservations."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sandbox.aws.kinds import ApiShape, ResourceKind, RuleContext
from sandbox.aws.paths import is_given, values_at
from sandbox.aws.rules import (
    at_most_one_of,
    base64_text,
    between,
    conflicts,
    instance_type_offered,
    length,
    matches,
    one_of,
    zone_exists,
)
from sandbox.aws.templates import interface_faults
from sandbox.standin import CheckFailure

_SOURCE = "internal/service/ec2/"


def _groups_stand_on_interfaces(context: RuleContext) -> Iterable[CheckFailure]:
    # EC2: InvalidParameterCombination, network interfaces and instance-level security groups on the same request.
    if is_given(context.inputs, "networkInterfaces"):
        for name in ("vpcSecurityGroupIds", "securityGroupNames"):
            if is_given(context.inputs, name):
                reason = "cannot stand beside networkInterfaces: move the groups to networkInterfaces[].securityGroups"
                yield CheckFailure(name, reason)


def _device_indexes_are_unique(context: RuleContext) -> Iterable[CheckFailure]:
    # EC2: InvalidParameterValue, each network interface requires a unique device index (per card).
    seen: dict[tuple[int, int], str] = {}
    for path, interface in values_at(context.inputs, "networkInterfaces[]"):
        place = (interface.get("networkCardIndex", 0), interface.get("deviceIndex", 0))
        if not all(isinstance(one, int) for one in place):
            continue
        if place in seen:
            reason = f"has device index {place[1]} on network card {place[0]}, as {seen[place]} has: make it unique"
            yield CheckFailure(f"{path}.deviceIndex", reason)
        seen.setdefault(place, path)


def _interfaces_fit_type(context: RuleContext) -> Iterable[CheckFailure]:
    name = next((value for _, value in values_at(context.inputs, "instanceType")), None)
    if name is None:
        return
    row = context.cloud.instance_type(name, context.region)
    for path, reason in interface_faults(context.inputs, name, row) if row else ():
        yield CheckFailure(path, reason)


def _strategy_takes(context: RuleContext) -> Iterable[CheckFailure]:
    # ec2_placement_group.go, resourcePlacementGroupCustomizeDiff.
    strategy = context.inputs.get("strategy")
    for name, owner in (("partitionCount", "partition"), ("spreadLevel", "spread")):
        if is_given(context.inputs, name) and isinstance(strategy, str) and strategy != owner:
            yield CheckFailure(name, f"must not be set with strategy {strategy}: it belongs to {owner}")


KINDS: Mapping[str, ResourceKind] = {
    "aws:ec2/launchTemplate:LaunchTemplate": ResourceKind(
        source=_SOURCE + "ec2_launch_template.go",
        replaces=frozenset({"name", "namePrefix"}),
        sets=frozenset({"networkInterfaces[].securityGroups", "securityGroupNames", "vpcSecurityGroupIds"}),
        nested_computed=frozenset(
            {
                "metadataOptions.httpEndpoint",
                "metadataOptions.httpProtocolIpv6",
                "metadataOptions.httpPutResponseHopLimit",
                "metadataOptions.httpTokens",
                "metadataOptions.instanceMetadataTags",
                "blockDeviceMappings[].ebs.iops",
                "blockDeviceMappings[].ebs.throughput",
                "blockDeviceMappings[].ebs.volumeSize",
                "blockDeviceMappings[].ebs.volumeType",
            }
        ),
        changes_with_update=frozenset({"defaultVersion", "latestVersion"}),
        api=ApiShape(
            "ec2",
            "RequestLaunchTemplateData",
            MappingProxyType(
                {
                    # The model's list of types is as old as the installed botocore; a rule asks EC2's data instead.
                    "instanceType": "",
                    "securityGroupNames": "SecurityGroups",
                    "vpcSecurityGroupIds": "SecurityGroupIds",
                }
            ),
        ),
        rules=(
            conflicts("name", "namePrefix"),
            conflicts("defaultVersion", "updateDefaultVersion"),
            conflicts("instanceType", "instanceRequirements"),
            conflicts("securityGroupNames", "vpcSecurityGroupIds"),
            at_most_one_of(
                "capacityReservationSpecification.capacityReservationTarget",
                "capacityReservationId",
                "capacityReservationResourceGroupArn",
            ),
            length("name", 3, 128),
            matches("name", r"[a-zA-Z0-9().\-/_]+", "letters, digits and ().-/_"),
            length("description", 0, 255),
            one_of("networkInterfaces[].interfaceType", "efa", "efa-only", "interface"),
            between("metadataOptions.httpPutResponseHopLimit", 1, 64),
            base64_text("userData"),
            zone_exists("placement.availabilityZone"),
            instance_type_offered("instanceType", zone="placement.availabilityZone"),
            _groups_stand_on_interfaces,
            _device_indexes_are_unique,
            _interfaces_fit_type,
        ),
    ),
    "aws:ec2/placementGroup:PlacementGroup": ResourceKind(
        source=_SOURCE + "ec2_placement_group.go",
        replaces=frozenset({"name", "partitionCount", "spreadLevel", "strategy"}),
        api=ApiShape("ec2", "CreatePlacementGroupRequest"),
        rules=(_strategy_takes, between("partitionCount", 0, 7)),
    ),
    "aws:ec2/capacityReservation:CapacityReservation": ResourceKind(
        source=_SOURCE + "ec2_capacity_reservation.go",
        replaces=frozenset(
            {
                "availabilityZone",
                "ebsOptimized",
                "ephemeralStorage",
                "instanceMatchCriteria",
                "instancePlatform",
                "instanceType",
                "outpostArn",
                "placementGroupArn",
                "tenancy",
            }
        ),
        api=ApiShape("ec2", "CreateCapacityReservationRequest"),
        rules=(zone_exists("availabilityZone"), instance_type_offered("instanceType", zone="availabilityZone")),
    ),
}
