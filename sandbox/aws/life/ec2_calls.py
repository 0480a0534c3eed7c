"""What the EC2 types share: tags at creation and after, one row of a Describe call, refusals."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from sandbox.aws.account import Record
from sandbox.aws.errors import AwsError
from sandbox.aws.life.base import At, Life, tag_list

INTERFACE: Final = "aws:ec2/networkInterface:NetworkInterface"


class Ec2Life(Life):
    """A type of EC2's whose tags are EC2's."""

    service = "ec2"
    tagged_as: ClassVar[str]
    """Its name in a TagSpecification."""

    def specification(self, inputs: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Tags for the call that makes it."""
        tags = tag_list(inputs.get("tagsAll"))
        return [{"ResourceType": self.tagged_as, "Tags": tags}] if tags else None

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        """CreateTags, DeleteTags."""
        id = self.tagged_id(record)
        if gone:
            at.ec2("delete_tags", Resources=[id], Tags=[{"Key": key} for key in gone])
        if tags:
            at.ec2("create_tags", Resources=[id], Tags=tag_list(tags))

    def tagged_id(self, record: Record) -> str:
        """The id that EC2 tags."""
        return record.id


def row(at: At, operation: str, answer: str, **wanted: Any) -> Mapping[str, Any] | None:
    """The only row of a Describe call; None when there is none."""
    found = at.found("ec2", operation, **wanted)
    rows = found[answer] if found else []
    return rows[0] if rows else None


# What others name by id: prefix -> Describe call, its answer and parameter, EC2's code and message.
_NAMED: Final = {
    "eipalloc-": (
        *("describe_addresses", "Addresses", "AllocationIds"),
        *("InvalidAllocationID.NotFound", "The allocation ID '{}' does not exist"),
    ),
    "rtb-": (
        *("describe_route_tables", "RouteTables", "RouteTableIds"),
        *("InvalidRouteTableID.NotFound", "The routeTable ID '{}' does not exist"),
    ),
    "sg-": (
        *("describe_security_groups", "SecurityGroups", "GroupIds"),
        *("InvalidGroup.NotFound", "The security group '{}' does not exist"),
    ),
    "subnet-": (
        *("describe_subnets", "Subnets", "SubnetIds"),
        *("InvalidSubnetID.NotFound", "The subnet ID '{}' does not exist"),
    ),
}


def must_exist(at: At, action: str, *ids: str | None) -> None:
    """Refuses a call that names something there is not; moto lets several pass, or words it in its own way.

    Raises:
        AwsError: EC2's refusal of ``action``.
    """
    for id in ids:
        if id:
            operation, answer, parameter, code, reason = _NAMED[f"{id.partition('-')[0]}-"]
            if row(at, operation, answer, **{parameter: [id]}) is None:
                raise refused(action, code, reason.format(id))


def refused(action: str, code: str, reason: str) -> AwsError:
    """EC2's refusal."""
    return AwsError("ec2", action, code, reason)


def has_interfaces(at: At, name: str, value: str) -> bool:
    """Whether a network interface of an instance, or one left by an instance, stands in a subnet (``subnet-id``) or group (``group-id``)."""
    rows = at.ec2("describe_network_interfaces", Filters=[{"Name": name, "Values": [value]}])["NetworkInterfaces"]
    left = {one.id for one in at.account.records(INTERFACE)}
    return any(one["NetworkInterfaceId"] in left or one.get("Attachment", {}).get("InstanceId") for one in rows)


def plain(inputs: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Those of the inputs that are given."""
    return {name: inputs[name] for name in names if inputs.get(name) is not None}
