"""IAM roles, policies, what ties them together, instance profiles and OIDC providers."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sandbox.aws.account import Record
from sandbox.aws.errors import AwsError
from sandbox.aws.life.base import At, Life, Outputs, changed, tag_list, tags_of, with_tags

ROLE = "aws:iam/role:Role"
POLICY = "aws:iam/policy:Policy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
INSTANCE_PROFILE = "aws:iam/instanceProfile:InstanceProfile"
OIDC_PROVIDER = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"


class Role(Life):
    """internal/service/iam/role.go."""

    service, kind, subject = "iam", "iam:role", "IAM Role"
    creating, deleting = "CreateRole", "DeleteRole"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        name = inputs["name"]
        made = at.call(
            "iam",
            "create_role",
            RoleName=name,
            AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
            Description=inputs.get("description"),
            MaxSessionDuration=inputs.get("maxSessionDuration"),
            Path=inputs.get("path"),
            PermissionsBoundary=inputs.get("permissionsBoundary"),
            Tags=tag_list(inputs.get("tagsAll")) or None,
        )["Role"]
        for arn in inputs.get("managedPolicyArns") or ():
            at.call("iam", "attach_role_policy", RoleName=name, PolicyArn=arn)
        for one in inputs.get("inlinePolicies") or ():
            at.call("iam", "put_role_policy", RoleName=name, PolicyName=one["name"], PolicyDocument=one["policy"])
        return Record(ROLE, name, at.region, inputs, {"createDate": _date(made["CreateDate"])})

    def look(self, at: At, record: Record) -> Outputs | None:
        found = at.found("iam", "get_role", RoleName=record.id)
        if found is None:
            return None
        role = found["Role"]
        outputs = {
            "arn": role["Arn"],
            "assumeRolePolicy": _same_document(record.inputs["assumeRolePolicy"], role["AssumeRolePolicyDocument"]),
            "createDate": record.facts["createDate"],
            "description": role.get("Description", ""),
            "maxSessionDuration": role["MaxSessionDuration"],
            "name": role["RoleName"],
            "path": role["Path"],
            "uniqueId": role["RoleId"],
        }
        return with_tags(outputs, tags_of(role))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if changed(record, inputs, "assumeRolePolicy"):
            at.call("iam", "update_assume_role_policy", RoleName=record.id, PolicyDocument=inputs["assumeRolePolicy"])
        if changed(record, inputs, "description", "maxSessionDuration"):
            at.call(
                "iam",
                "update_role",
                RoleName=record.id,
                Description=inputs.get("description", ""),
                MaxSessionDuration=inputs.get("maxSessionDuration"),
            )
        before, after = (set(one.get("managedPolicyArns") or ()) for one in (record.inputs, inputs))
        for arn in sorted(before - after):
            at.call("iam", "detach_role_policy", RoleName=record.id, PolicyArn=arn)
        for arn in sorted(after - before):
            at.call("iam", "attach_role_policy", RoleName=record.id, PolicyArn=arn)
        return record

    def delete(self, at: At, record: Record) -> None:
        if any(one.inputs.get("role") == record.id for one in at.account.records(INSTANCE_PROFILE)):
            reason = "Cannot delete entity, must remove roles from instance profile first."
            raise AwsError("iam", "DeleteRole", "DeleteConflict", reason, 409)
        for arn in record.inputs.get("managedPolicyArns") or ():
            at.call("iam", "detach_role_policy", RoleName=record.id, PolicyArn=arn)
        for one in record.inputs.get("inlinePolicies") or ():
            at.call("iam", "delete_role_policy", RoleName=record.id, PolicyName=one["name"])
        at.call("iam", "delete_role", RoleName=record.id)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        if gone:
            at.call("iam", "untag_role", RoleName=record.id, TagKeys=gone)
        if tags:
            at.call("iam", "tag_role", RoleName=record.id, Tags=tag_list(tags))


class Policy(Life):
    """internal/service/iam/policy.go."""

    service, kind, subject = "iam", "iam:policy", "IAM Policy"
    creating, deleting = "CreatePolicy", "DeletePolicy"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.call(
            "iam",
            "create_policy",
            PolicyName=inputs["name"],
            PolicyDocument=inputs["policy"],
            Description=inputs.get("description"),
            Path=inputs.get("path"),
            Tags=tag_list(inputs.get("tagsAll")) or None,
        )["Policy"]
        return Record(POLICY, made["Arn"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = at.found("iam", "get_policy", PolicyArn=record.id)
        if found is None:
            return None
        policy = found["Policy"]
        outputs = {
            "arn": policy["Arn"],
            "attachmentCount": policy["AttachmentCount"],
            "name": policy["PolicyName"],
            "path": policy["Path"],
            "policyId": policy["PolicyId"],
        }
        return with_tags(outputs, tags_of(policy))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if changed(record, inputs, "policy"):
            at.call(
                "iam", "create_policy_version", PolicyArn=record.id, PolicyDocument=inputs["policy"], SetAsDefault=True
            )
        return record

    def delete(self, at: At, record: Record) -> None:
        versions = at.call("iam", "list_policy_versions", PolicyArn=record.id)["Versions"]
        for one in versions:
            if not one["IsDefaultVersion"]:
                at.call("iam", "delete_policy_version", PolicyArn=record.id, VersionId=one["VersionId"])
        if at.call("iam", "get_policy", PolicyArn=record.id)["Policy"]["AttachmentCount"]:
            reason = "Cannot delete a policy attached to entities."
            raise AwsError("iam", "DeletePolicy", "DeleteConflict", reason, 409)
        at.call("iam", "delete_policy", PolicyArn=record.id)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        if gone:
            at.call("iam", "untag_policy", PolicyArn=record.id, TagKeys=gone)
        if tags:
            at.call("iam", "tag_policy", PolicyArn=record.id, Tags=tag_list(tags))


class RolePolicy(Life):
    """internal/service/iam/role_policy.go."""

    service, kind, subject = "iam", "iam:role-policy", "IAM Role Policy"
    creating, deleting = "PutRolePolicy", "DeleteRolePolicy"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        self._put(at, inputs)
        return Record(ROLE_POLICY, f"{inputs['role']}:{inputs['name']}", at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        role, name = record.inputs["role"], record.inputs["name"]
        found = at.found("iam", "get_role_policy", RoleName=role, PolicyName=name)
        if found is None:
            return None
        document = _same_document(record.inputs["policy"], found["PolicyDocument"])
        return {"name": name, "policy": document, "role": role}

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        self._put(at, inputs)
        return record

    def delete(self, at: At, record: Record) -> None:
        at.call("iam", "delete_role_policy", RoleName=record.inputs["role"], PolicyName=record.inputs["name"])

    def parent(self, record: Record) -> str | None:
        return record.inputs["role"]

    def _put(self, at: At, inputs: Mapping[str, Any]) -> None:
        at.call(
            "iam",
            "put_role_policy",
            RoleName=inputs["role"],
            PolicyName=inputs["name"],
            PolicyDocument=inputs["policy"],
        )


class RolePolicyAttachment(Life):
    """internal/service/iam/role_policy_attachment.go."""

    service, kind, subject = "iam", "iam:role-policy-attachment", "IAM Policy"
    creating, deleting = "AttachRolePolicy", "DetachRolePolicy"

    def making(self, inputs: Mapping[str, Any]) -> str:
        return f"attaching IAM Policy ({inputs['policyArn']}) to IAM Role ({inputs['role']})"

    def called(self, record: Record) -> str:
        return f"IAM Policy ({record.inputs['policyArn']}) from IAM Role ({record.inputs['role']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        at.call("iam", "attach_role_policy", RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
        return Record(ATTACHMENT, f"{inputs['role']}/{inputs['policyArn']}", at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        arns = attached_policies(at, record.inputs["role"])
        return {"policyArn": record.inputs["policyArn"]} if record.inputs["policyArn"] in arns else None

    def delete(self, at: At, record: Record) -> None:
        at.call("iam", "detach_role_policy", RoleName=record.inputs["role"], PolicyArn=record.inputs["policyArn"])

    def parent(self, record: Record) -> str | None:
        return record.inputs["role"]


class InstanceProfile(Life):
    """internal/service/iam/instance_profile.go."""

    service, kind, subject = "iam", "iam:instance-profile", "IAM Instance Profile"
    creating, deleting = "CreateInstanceProfile", "DeleteInstanceProfile"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        name = inputs["name"]
        tags = tag_list(inputs.get("tagsAll"))
        made = at.call(
            "iam", "create_instance_profile", InstanceProfileName=name, Path=inputs.get("path"), Tags=tags or None
        )["InstanceProfile"]
        if inputs.get("role"):
            at.call("iam", "add_role_to_instance_profile", InstanceProfileName=name, RoleName=inputs["role"])
        return Record(INSTANCE_PROFILE, name, at.region, inputs, {"createDate": _date(made["CreateDate"])})

    def look(self, at: At, record: Record) -> Outputs | None:
        found = at.found("iam", "get_instance_profile", InstanceProfileName=record.id)
        if found is None:
            return None
        profile = found["InstanceProfile"]
        outputs = {
            "arn": profile["Arn"],
            "createDate": record.facts["createDate"],
            "name": profile["InstanceProfileName"],
            "path": profile["Path"],
            "role": profile["Roles"][0]["RoleName"] if profile["Roles"] else "",
            "uniqueId": profile["InstanceProfileId"],
        }
        return with_tags(outputs, tags_of(profile))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if changed(record, inputs, "role"):
            for verb, role in (("remove_role_from", record.inputs.get("role")), ("add_role_to", inputs.get("role"))):
                if role:
                    at.call("iam", f"{verb}_instance_profile", InstanceProfileName=record.id, RoleName=role)
        return record

    def delete(self, at: At, record: Record) -> None:
        if record.inputs.get("role"):
            at.call(
                "iam",
                "remove_role_from_instance_profile",
                InstanceProfileName=record.id,
                RoleName=record.inputs["role"],
            )
        at.call("iam", "delete_instance_profile", InstanceProfileName=record.id)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        if gone:
            at.call("iam", "untag_instance_profile", InstanceProfileName=record.id, TagKeys=gone)
        if tags:
            at.call("iam", "tag_instance_profile", InstanceProfileName=record.id, Tags=tag_list(tags))


class OpenIdConnectProvider(Life):
    """internal/service/iam/openid_connect_provider.go."""

    service, kind, subject = "iam", "iam:oidc-provider", "IAM OIDC Provider"
    creating, deleting = "CreateOpenIDConnectProvider", "DeleteOpenIDConnectProvider"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        made = at.call(
            "iam",
            "create_open_id_connect_provider",
            Url=inputs["url"],
            ClientIDList=inputs["clientIdLists"],
            ThumbprintList=inputs.get("thumbprintLists"),
            Tags=tag_list(inputs.get("tagsAll")) or None,
        )
        return Record(OIDC_PROVIDER, made["OpenIDConnectProviderArn"], at.region, inputs)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = at.found("iam", "get_open_id_connect_provider", OpenIDConnectProviderArn=record.id)
        if found is None:
            return None
        outputs = {
            "arn": record.id,
            "clientIdLists": found["ClientIDList"],
            "thumbprintLists": found["ThumbprintList"],
            "url": found["Url"].removeprefix("https://"),
        }
        return with_tags(outputs, tags_of(found))

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        if changed(record, inputs, "thumbprintLists"):
            at.call(
                "iam",
                "update_open_id_connect_provider_thumbprint",
                OpenIDConnectProviderArn=record.id,
                ThumbprintList=inputs["thumbprintLists"],
            )
        return record

    def delete(self, at: At, record: Record) -> None:
        at.call("iam", "delete_open_id_connect_provider", OpenIDConnectProviderArn=record.id)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        if gone:
            at.call("iam", "untag_open_id_connect_provider", OpenIDConnectProviderArn=record.id, TagKeys=gone)
        if tags:
            at.call("iam", "tag_open_id_connect_provider", OpenIDConnectProviderArn=record.id, Tags=tag_list(tags))


def attached_policies(at: At, role: str) -> set[str]:
    """ARNs of the managed policies of a role; empty when there is no such role."""
    found = at.found("iam", "list_attached_role_policies", RoleName=role)
    return {one["PolicyArn"] for one in found["AttachedPolicies"]} if found else set()


def _date(found: datetime) -> str:
    return found.strftime("%Y-%m-%dT%H:%M:%SZ")


def _same_document(given: str, found: Any) -> str:
    """The document as it was written where it means the same."""
    document = json.loads(found) if isinstance(found, str) else found
    try:
        if json.loads(given) == document:
            return given
    except ValueError:
        pass
    return json.dumps(document, separators=(",", ":"))


LIVES: Mapping[str, Life] = {
    ROLE: Role(),
    POLICY: Policy(),
    ROLE_POLICY: RolePolicy(),
    ATTACHMENT: RolePolicyAttachment(),
    INSTANCE_PROFILE: InstanceProfile(),
    OIDC_PROVIDER: OpenIdConnectProvider(),
}
