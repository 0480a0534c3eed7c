"""Who may use a cluster: access entries and their policies, pod identities. moto has none of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sandbox.aws import seeds
from sandbox.aws.account import Record
from sandbox.aws.life.base import At, Life, Outputs, with_tags
from sandbox.aws.life.eks_calls import (
    ACCESS_ENTRY,
    ACCESS_POLICY,
    POD_IDENTITY,
    cluster_of,
    now,
    of_cluster,
    refused,
    retagged,
    role_name,
)


class AccessEntry(Life):
    """internal/service/eks/access_entry.go."""

    service, kind, subject = "eks", "eks:access-entry", "EKS Access Entry"
    creating, deleting = "CreateAccessEntry", "DeleteAccessEntry"

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['clusterName']}:{inputs['principalArn']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        cluster = cluster_of(at, "CreateAccessEntry", inputs["clusterName"])
        mode = (cluster.inputs.get("accessConfig") or {}).get("authenticationMode", "CONFIG_MAP")
        if mode == "CONFIG_MAP":
            reason = "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation."
            raise refused("CreateAccessEntry", "InvalidRequestException", reason)
        id = f"{inputs['clusterName']}:{inputs['principalArn']}"
        if at.account.record(ACCESS_ENTRY, id, at.region):
            reason = "The specified access entry resource is already in use on this cluster."
            raise refused("CreateAccessEntry", "ResourceInUseException", reason)
        facts = {"createdAt": now(), "number": at.account.unique("", 32), "tags": dict(inputs.get("tagsAll") or {})}
        return Record(ACCESS_ENTRY, id, at.region, inputs, facts)

    def look(self, at: At, record: Record) -> Outputs | None:
        principal = record.inputs["principalArn"]
        arn = f"access-entry/{record.inputs['clusterName']}/role/{seeds.ACCOUNT_ID}/{role_name(principal)}/{record.facts['number']}"
        outputs = {
            "accessEntryArn": at.arn("eks", arn),
            "createdAt": record.facts["createdAt"],
            "kubernetesGroups": record.inputs.get("kubernetesGroups", []),
            "modifiedAt": record.facts.get("modifiedAt", record.facts["createdAt"]),
            "type": record.inputs.get("type", "STANDARD"),
            "userName": record.inputs.get("userName") or _user_name(record.inputs),
        }
        return with_tags(outputs, record.facts["tags"])

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        return replace(record, facts={**record.facts, "modifiedAt": now()})

    def delete(self, at: At, record: Record) -> None:
        for one in of_cluster(at, record.inputs["clusterName"], ACCESS_POLICY):
            if one.inputs["principalArn"] == record.inputs["principalArn"]:
                at.account.drop(one)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        at.account.note(record, tags=retagged(record, tags, gone))


class _OnRecord(Life):
    """A type of EKS's that moto lacks and that has little to it."""

    service = "eks"
    token: ClassVar[str]

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        return record

    def delete(self, at: At, record: Record) -> None:
        return None


class AccessPolicyAssociation(_OnRecord):
    """internal/service/eks/access_policy_association.go."""

    token, kind, subject = ACCESS_POLICY, "eks:access-policy-association", "EKS Access Policy Association"
    creating, deleting = "AssociateAccessPolicy", "DisassociateAccessPolicy"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        cluster, principal = inputs["clusterName"], inputs["principalArn"]
        cluster_of(at, "AssociateAccessPolicy", cluster)
        if at.account.record(ACCESS_ENTRY, f"{cluster}:{principal}", at.region) is None:
            reason = f"The specified principalArn could not be found. You can view your access entries with ListAccessEntries: {principal}"
            raise refused("AssociateAccessPolicy", "ResourceNotFoundException", reason)
        return Record(ACCESS_POLICY, f"{cluster}#{principal}#{inputs['policyArn']}", at.region, inputs, {"at": now()})

    def look(self, at: At, record: Record) -> Outputs | None:
        return {"associatedAt": record.facts["at"], "modifiedAt": record.facts["at"]}

    def parent(self, record: Record) -> str | None:
        return f"{record.inputs['clusterName']}:{record.inputs['principalArn']}"


class PodIdentityAssociation(_OnRecord):
    """internal/service/eks/pod_identity_association.go."""

    token, kind, subject = POD_IDENTITY, "eks:pod-identity-association", "EKS Pod Identity Association"
    creating, deleting = "CreatePodIdentityAssociation", "DeletePodIdentityAssociation"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        cluster_of(at, self.creating, inputs["clusterName"])
        if at.found("iam", "get_role", RoleName=role_name(inputs["roleArn"])) is None:
            raise refused(self.creating, "InvalidParameterException", "Role provided in the request does not exist.")
        for one in of_cluster(at, inputs["clusterName"], POD_IDENTITY):
            if all(one.inputs[name] == inputs[name] for name in ("namespace", "serviceAccount")):
                raise refused(self.creating, "ResourceInUseException", f"Association already exists: {one.id}")
        facts = {"tags": dict(inputs.get("tagsAll") or {})}
        return Record(POD_IDENTITY, at.account.unique("a-"), at.region, inputs, facts)

    def look(self, at: At, record: Record) -> Outputs | None:
        outputs = {
            "associationArn": at.arn("eks", f"podidentityassociation/{record.inputs['clusterName']}/{record.id}"),
            "associationId": record.id,
            "disableSessionTags": record.inputs.get("disableSessionTags", False),
            "externalId": "",
        }
        return with_tags(outputs, record.facts["tags"])

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        at.account.note(record, tags=retagged(record, tags, gone))


def _user_name(inputs: Mapping[str, Any]) -> str:
    if inputs.get("type") in ("EC2_LINUX", "EC2", "HYBRID_LINUX"):
        return "system:node:{{EC2PrivateDNSName}}"
    assumed = inputs["principalArn"].replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")
    return f"{assumed}/{{{{SessionName}}}}"


LIVES: Mapping[str, Life] = {
    ACCESS_ENTRY: AccessEntry(),
    ACCESS_POLICY: AccessPolicyAssociation(),
    POD_IDENTITY: PodIdentityAssociation(),
}
