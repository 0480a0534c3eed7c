"""What the EKS types share."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sandbox.aws.account import Record
from sandbox.aws.errors import AwsError
from sandbox.aws.life.base import At

CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ADDON = "aws:eks/addon:Addon"
ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"
ACCESS_POLICY = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
POD_IDENTITY = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


def refused(action: str, code: str, reason: str) -> AwsError:
    """EKS's refusal."""
    status = {"ResourceNotFoundException": 404, "ResourceInUseException": 409}.get(code, 400)
    return AwsError("eks", action, code, reason, status)


def cluster_of(at: At, action: str, name: str) -> Record:
    """The record of a cluster.

    Raises:
        AwsError: There is no such cluster.
    """
    found = at.account.record(CLUSTER, name, at.region)
    if found is None:
        raise refused(action, "ResourceNotFoundException", f"No cluster found for name: {name}.")
    return found


def of_cluster(at: At, name: str, *tokens: str) -> list[Record]:
    """What stands in a cluster."""
    return [
        one for one in at.account.records(*tokens) if one.inputs.get("clusterName") == name and one.region == at.region
    ]


def now() -> str:
    """The time as the provider shows it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def retagged(record: Record, tags: Mapping[str, str], gone: list[str]) -> dict[str, str]:
    """The tags of a record after a change."""
    return {key: value for key, value in {**record.facts["tags"], **tags}.items() if key not in gone}


def role_name(arn: str) -> str:
    """The name in a role's ARN."""
    return arn.rpartition("/")[2]


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not None."""
    return {key: value for key, value in values.items() if value is not None}
