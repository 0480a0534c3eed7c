"""Launch templates, placement groups, capacity reservations. moto has the first only."""

from collections.abc import Mapping
from typing import Any

from sandbox.aws import seeds
from sandbox.aws.account import Record
from sandbox.aws.inputs import DEFAULTS_KEY
from sandbox.aws.life.base import At, Life, Outputs, changed, tag_list, tags_of, with_tags
from sandbox.aws.life.ec2_calls import Ec2Life, refused, row

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"

_NOT_TEMPLATE_DATA = frozenset(
    {
        *("defaultVersion", "description", "name", "namePrefix", "region", "tags", "tagsAll", "updateDefaultVersion"),
        *("securityGroupNames", "vpcSecurityGroupIds", DEFAULTS_KEY),
    }
)


class LaunchTemplate(Ec2Life):
    """internal/service/ec2/ec2_launch_template.go."""

    kind, subject, tagged_as = "ec2:launch-template", "EC2 Launch Template", "launch-template"
    creating, deleting = "CreateLaunchTemplate", "DeleteLaunchTemplate"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.ec2(
            "create_launch_template",
            LaunchTemplateName=inputs["name"],
            VersionDescription=inputs.get("description"),
            LaunchTemplateData=_data(inputs),
            TagSpecifications=self.specification(inputs),
        )["LaunchTemplate"]
        return Record(TEMPLATE, made["LaunchTemplateId"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_launch_templates", "LaunchTemplates", LaunchTemplateIds=[record.id])
        if found is None:
            return None
        metadata = {
            "httpEndpoint": "enabled",
            "httpProtocolIpv6": "",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "optional",
            "instanceMetadataTags": "",
            **(record.inputs.get("metadataOptions") or {}),
        }
        outputs = {
            "arn": at.arn("ec2", f"launch-template/{record.id}"),
            "defaultVersion": found["DefaultVersionNumber"],
            "latestVersion": found["LatestVersionNumber"],
            "metadataOptions": metadata,
            "name": found["LaunchTemplateName"],
        }
        return with_tags(outputs, tags_of(found))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if _data(record.inputs) != _data(inputs) or changed(record, inputs, "description"):
            made = at.ec2(
                "create_launch_template_version",
                LaunchTemplateId=record.id,
                VersionDescription=inputs.get("description"),
                LaunchTemplateData=_data(inputs),
            )["LaunchTemplateVersion"]
            if inputs.get("updateDefaultVersion"):
                at.ec2("modify_launch_template", LaunchTemplateId=record.id, DefaultVersion=str(made["VersionNumber"]))
        return record

    def delete(self, at: At, record: Record) -> None:
        at.ec2("delete_launch_template", LaunchTemplateId=record.id)


class PlacementGroup(Ec2Life):
    """internal/service/ec2/ec2_placement_group.go."""

    kind, subject, tagged_as = "ec2:placement-group", "EC2 Placement Group", "placement-group"
    creating, deleting = "CreatePlacementGroup", "DeletePlacementGroup"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        name = inputs["name"]
        if at.account.record(PLACEMENT_GROUP, name, at.region):
            reason = f"The placement group '{name}' already exists."
            raise refused("CreatePlacementGroup", "InvalidPlacementGroup.Duplicate", reason)
        facts = {"id": at.account.unique("pg-"), "tags": dict(inputs.get("tagsAll") or {})}
        return Record(PLACEMENT_GROUP, name, at.region, inputs, facts)

    def look(self, at: At, record: Record) -> Outputs | None:
        outputs = {
            "arn": at.arn("ec2", f"placement-group/{record.id}"),
            "name": record.id,
            "partitionCount": record.inputs.get("partitionCount", 0),
            "placementGroupId": record.facts["id"],
            "spreadLevel": record.inputs.get("spreadLevel", ""),
            "strategy": record.inputs["strategy"],
        }
        return with_tags(outputs, record.facts["tags"])

    def delete(self, at: At, record: Record) -> None:
        nodes = at.account.records("aws:ec2/instance:Instance")
        if any(one.facts.get("placementGroup") == record.id and one.region == at.region for one in nodes):
            reason = f"The placement group '{record.id}' is in use and may not be deleted."
            raise refused("DeletePlacementGroup", "InvalidPlacementGroup.InUse", reason)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        at.account.note(record, tags=_retagged(record, tags, gone))


class CapacityReservation(Ec2Life):
    """internal/service/ec2/ec2_capacity_reservation.go."""

    kind, subject, tagged_as = "ec2:capacity-reservation", "EC2 Capacity Reservation", "capacity-reservation"
    creating, deleting = "CreateCapacityReservation", "CancelCapacityReservation"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        facts = {"tags": dict(inputs.get("tagsAll") or {}), "state": "active"}
        return Record(RESERVATION, at.account.unique("cr-"), at.region, inputs, facts)

    def look(self, at: At, record: Record) -> Outputs | None:
        # find.go of the provider: an expired or cancelled reservation is not found.
        if record.facts["state"] != "active":
            return None
        outputs = {"arn": at.arn("ec2", f"capacity-reservation/{record.id}"), "ownerId": seeds.ACCOUNT_ID}
        return with_tags({**record.inputs, **outputs}, record.facts["tags"])

    def delete(self, at: At, record: Record) -> None:
        return None

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        at.account.note(record, tags=_retagged(record, tags, gone))


def template_data(at: At, template: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a version of a launch template says, in EC2's words; None when there is no such template or version.

    Args:
        at: Where to look.
        template: ``id`` or ``name``, and ``version``: a node group's ``launchTemplate``.
    """
    by = {"LaunchTemplateId": template["id"]} if template.get("id") else {"LaunchTemplateName": template["name"]}
    found = row(
        at, "describe_launch_template_versions", "LaunchTemplateVersions", **by, Versions=[str(template["version"])]
    )
    return found["LaunchTemplateData"] if found else None


def _retagged(record: Record, tags: Mapping[str, str], gone: list[str]) -> dict[str, str]:
    return {key: value for key, value in {**record.facts["tags"], **tags}.items() if key not in gone}


def _data(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as RequestLaunchTemplateData: the same names, capitalised, but for a few."""
    data = {_capital(key): _request(key, value) for key, value in inputs.items() if key not in _NOT_TEMPLATE_DATA}
    if inputs.get("vpcSecurityGroupIds"):
        data["SecurityGroupIds"] = inputs["vpcSecurityGroupIds"]
    return data


def _request(key: str, value: Any) -> Any:
    if key == "tagSpecifications":
        return [{"ResourceType": one["resourceType"], "Tags": tag_list(one.get("tags"))} for one in value]
    if isinstance(value, Mapping):
        return {_renamed(one): _request(one, member) for one, member in value.items() if one != DEFAULTS_KEY}
    if isinstance(value, list):
        return [_request(key, one) for one in value]
    # The provider's schema has these as text, the API as a boolean.
    if key in ("deleteOnTermination", "encrypted", "associatePublicIpAddress", "ebsOptimized") and isinstance(
        value, str
    ):
        return value == "true"
    return value


def _renamed(key: str) -> str:
    return {"securityGroups": "Groups", "ipv6Addresses": "Ipv6Addresses"}.get(key, _capital(key))


def _capital(key: str) -> str:
    return key[0].upper() + key[1:]


LIVES: Mapping[str, Life] = {
    TEMPLATE: LaunchTemplate(),
    PLACEMENT_GROUP: PlacementGroup(),
    RESERVATION: CapacityReservation(),
}
