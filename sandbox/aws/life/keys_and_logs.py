"""KMS keys with their aliases, and log groups."""

import json
from collections.abc import Mapping
from typing import Any

from sandbox.aws.account import Record
from sandbox.aws.life.base import At, Life, Outputs, changed, tag_list, with_tags

KEY = "aws:kms/key:Key"
ALIAS = "aws:kms/alias:Alias"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"


class Key(Life):
    """internal/service/kms/key.go. A key is not deleted but scheduled for it; from then on it is gone to its user."""

    service, kind, subject = "kms", "kms:key", "KMS Key"
    creating, deleting = "CreateKey", "ScheduleKeyDeletion"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.call(
            "kms",
            "create_key",
            Description=inputs.get("description"),
            KeyUsage=inputs.get("keyUsage"),
            KeySpec=inputs.get("customerMasterKeySpec"),
            MultiRegion=inputs.get("multiRegion"),
            Policy=inputs.get("policy"),
            Tags=tag_list(inputs.get("tagsAll"), "TagKey", "TagValue") or None,
        )["KeyMetadata"]
        record = Record(KEY, made["KeyId"], at.region, inputs)
        if inputs.get("enableKeyRotation"):
            at.call("kms", "enable_key_rotation", KeyId=record.id)
        return record

    def look(self, at: At, record: Record) -> Outputs | None:
        found = at.found("kms", "describe_key", KeyId=record.id)
        if found is None or found["KeyMetadata"]["KeyState"] == "PendingDeletion":
            return None
        key = found["KeyMetadata"]
        policy = at.call("kms", "get_key_policy", KeyId=record.id, PolicyName="default")["Policy"]
        tags = at.call("kms", "list_resource_tags", KeyId=record.id)["Tags"]
        outputs = {
            "arn": key["Arn"],
            "customerMasterKeySpec": key["KeySpec"],
            "description": key.get("Description", ""),
            "enableKeyRotation": at.call("kms", "get_key_rotation_status", KeyId=record.id)["KeyRotationEnabled"],
            "isEnabled": key["Enabled"],
            "keyId": record.id,
            "keyUsage": key.get("KeyUsage", "ENCRYPT_DECRYPT"),
            "multiRegion": key.get("MultiRegion", False),
            "policy": record.inputs.get("policy") or json.dumps(json.loads(policy), separators=(",", ":")),
            "rotationPeriodInDays": 365 if record.inputs.get("enableKeyRotation") else 0,
        }
        return with_tags(outputs, {one["TagKey"]: one["TagValue"] for one in tags})

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if changed(record, inputs, "description"):
            at.call("kms", "update_key_description", KeyId=record.id, Description=inputs.get("description", ""))
        if changed(record, inputs, "enableKeyRotation"):
            verb = "enable" if inputs["enableKeyRotation"] else "disable"
            at.call("kms", f"{verb}_key_rotation", KeyId=record.id)
        if changed(record, inputs, "policy") and inputs.get("policy"):
            at.call("kms", "put_key_policy", KeyId=record.id, PolicyName="default", Policy=inputs["policy"])
        return record

    def delete(self, at: At, record: Record) -> None:
        days = record.inputs.get("deletionWindowInDays", 30)
        at.call("kms", "schedule_key_deletion", KeyId=record.id, PendingWindowInDays=days)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        if gone:
            at.call("kms", "untag_resource", KeyId=record.id, TagKeys=gone)
        if tags:
            at.call("kms", "tag_resource", KeyId=record.id, Tags=tag_list(tags, "TagKey", "TagValue"))


class Alias(Life):
    """internal/service/kms/alias.go."""

    service, kind, subject = "kms", "kms:alias", "KMS Alias"
    creating, deleting = "CreateAlias", "DeleteAlias"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        at.call("kms", "create_alias", AliasName=inputs["name"], TargetKeyId=_key_id(inputs["targetKeyId"]))
        return Record(ALIAS, inputs["name"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        aliases = at.call("kms", "list_aliases")["Aliases"]
        found = next((one for one in aliases if one["AliasName"] == record.id), None)
        if found is None:
            return None
        key = at.arn("kms", f"key/{found['TargetKeyId']}")
        return {"arn": at.arn("kms", record.id), "name": record.id, "targetKeyArn": key}

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        at.call("kms", "update_alias", AliasName=record.id, TargetKeyId=_key_id(inputs["targetKeyId"]))
        return record

    def delete(self, at: At, record: Record) -> None:
        at.call("kms", "delete_alias", AliasName=record.id)

    def parent(self, record: Record) -> str | None:
        return _key_id(record.inputs["targetKeyId"])


class LogGroup(Life):
    """internal/service/logs/group.go."""

    service, kind, subject = "logs", "logs:log-group", "CloudWatch Logs Log Group"
    creating, deleting = "CreateLogGroup", "DeleteLogGroup"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        name = inputs["name"]
        at.call(
            "logs",
            "create_log_group",
            logGroupName=name,
            kmsKeyId=inputs.get("kmsKeyId"),
            tags=inputs.get("tagsAll") or None,
        )
        self._retain(at, name, inputs)
        return Record(LOG_GROUP, name, at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        groups = at.call("logs", "describe_log_groups", logGroupNamePrefix=record.id)["logGroups"]
        found = next((one for one in groups if one["logGroupName"] == record.id), None)
        if found is None:
            return None
        arn = at.arn("logs", f"log-group:{record.id}")
        outputs = {
            "arn": arn,
            "kmsKeyId": found.get("kmsKeyId", ""),
            "logGroupClass": found.get("logGroupClass", "STANDARD"),
            "name": record.id,
            "retentionInDays": found.get("retentionInDays", 0),
        }
        return with_tags(outputs, at.call("logs", "list_tags_for_resource", resourceArn=arn)["tags"])

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if changed(record, inputs, "retentionInDays"):
            self._retain(at, record.id, inputs)
        return record

    def delete(self, at: At, record: Record) -> None:
        at.call("logs", "delete_log_group", logGroupName=record.id)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        arn = at.arn("logs", f"log-group:{record.id}")
        if gone:
            at.call("logs", "untag_resource", resourceArn=arn, tagKeys=gone)
        if tags:
            at.call("logs", "tag_resource", resourceArn=arn, tags=dict(tags))

    def _retain(self, at: At, name: str, inputs: Mapping[str, Any]) -> None:
        if inputs.get("retentionInDays"):
            at.call("logs", "put_retention_policy", logGroupName=name, retentionInDays=inputs["retentionInDays"])
        else:
            at.call("logs", "delete_retention_policy", logGroupName=name)


def _key_id(key: str) -> str:
    return key.rpartition("/")[2]


LIVES: Mapping[str, Life] = {KEY: Key(), ALIAS: Alias(), LOG_GROUP: LogGroup()}
