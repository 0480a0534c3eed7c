"""Which faults a call can meet, and what AWS says to those that it refuses at once."""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from sandbox.aws import seeds
from sandbox.aws.cloud import Cloud
from sandbox.aws.errors import AwsError
from sandbox.aws.life.base import At, Life
from sandbox.aws.life.eks_calls import NODE_GROUP
from sandbox.aws.life.instances import RESERVATION, template_data
from sandbox.aws.life.security_groups import GROUP
from sandbox.faults import FaultKind, FaultPlan

_OF_NODES: Final = frozenset(
    {
        FaultKind.INSUFFICIENT_CAPACITY,
        FaultKind.NODE_CREATION_FAILURE,
        FaultKind.QUOTA_EXCEEDED,
        FaultKind.RESERVATION_EXPIRED,
        FaultKind.TIME_OUT,
    }
)

# Quotas other than vCPU that a stack of ours can hit: token -> EC2's code and message (EC2 API reference, error codes;
# VPC user guide, "Amazon VPC quotas").
_QUOTAS: Final[Mapping[str, tuple[str, str]]] = {
    "aws:ec2/vpc:Vpc": ("VpcLimitExceeded", "The maximum number of VPCs has been reached."),
    "aws:ec2/eip:Eip": ("AddressLimitExceeded", "The maximum number of addresses has been reached."),
    "aws:ec2/natGateway:NatGateway": (
        "NatGatewayLimitExceeded",
        "Performing this operation would exceed the limit of 5 NAT gateways",
    ),
}

_USER: Final = f"arn:aws:iam::{seeds.ACCOUNT_ID}:user/sandbox"
_THROTTLING: Final = {
    # EC2 API reference, "Request throttling"; the other services' common errors.
    "ec2": ("RequestLimitExceeded", "Request limit exceeded.", 503),
    "iam": ("Throttling", "Rate exceeded", 400),
}


def of_create(
    plan: FaultPlan, token: str, name: str, inputs: Mapping[str, Any], life: Life, at: At
) -> FaultKind | None:
    """The fault that a create meets. The kinds of nodes strike the first group with accelerators unless aimed elsewhere."""
    possible = {FaultKind.THROTTLING, FaultKind.ACCESS_DENIED}
    by_default = set(possible)
    if life.waits:
        possible.add(FaultKind.TIME_OUT)
    if token in _QUOTAS:
        possible.add(FaultKind.QUOTA_EXCEEDED)
    if token == NODE_GROUP:
        possible |= _OF_NODES
        data = (template_data(at, inputs["launchTemplate"]) if inputs.get("launchTemplate") else None) or {}
        if _is_accelerated(at.cloud, inputs, data, at.region):
            by_default |= _OF_NODES
    return plan.take(possible, name, by_default=by_default)


def of_read(plan: FaultPlan, token: str, name: str) -> FaultKind | None:
    """The fault that a look-up of something that existed before meets: a reservation that has expired is not found."""
    possible = {FaultKind.RESERVATION_EXPIRED} if token == RESERVATION else set()
    return plan.take(possible, name, by_default=())


def of_delete(plan: FaultPlan, token: str, name: str) -> FaultKind | None:
    """The fault that a delete meets. What hangs in practice is a security group with a leftover interface."""
    possible = {FaultKind.THROTTLING, FaultKind.ACCESS_DENIED, FaultKind.DEPENDENCY_VIOLATION}
    return plan.take(possible, name, by_default={FaultKind.DEPENDENCY_VIOLATION} if token == GROUP else ())


def refusal(kind: FaultKind | None, life: Life, action: str, token: str, id: str) -> AwsError | None:
    """What AWS says to the call itself; None where it accepts it and the trouble comes later, or never.

    Args:
        kind: The fault, if there is one.
        life: The type that is called for.
        action: The API action, such as ``CreateVpc``.
        token: Its resource type.
        id: The id of what exists already, or an empty text.
    """
    match kind:
        case FaultKind.THROTTLING:
            code, message, status = _THROTTLING.get(life.service, ("ThrottlingException", "Rate exceeded", 429))
            return AwsError(life.service, f"{action}, exceeded maximum number of attempts, 25", code, message, status)
        case FaultKind.ACCESS_DENIED:
            return _denied(life.service, action)
        case FaultKind.DEPENDENCY_VIOLATION:
            return AwsError(life.service, action, "DependencyViolation", f"resource {id} has a dependent object")
        case FaultKind.QUOTA_EXCEEDED if token in _QUOTAS:
            return AwsError(life.service, action, *_QUOTAS[token])
        case _:
            return None


def _denied(service: str, action: str) -> AwsError:
    # EC2 and IAM user guides, "Troubleshoot access denied error messages".
    why = (
        f"User: {_USER} is not authorized to perform: {service}:{action} "
        f"because no identity-based policy allows the {service}:{action} action"
    )
    if service == "ec2":
        text = f"You are not authorized to perform this operation. {why}. Encoded authorization failure message: {uuid.uuid4().hex}"
        return AwsError(service, action, "UnauthorizedOperation", text, 403)
    return AwsError(service, action, "AccessDenied" if service == "iam" else "AccessDeniedException", why, 403)


def _is_accelerated(cloud: Cloud, inputs: Mapping[str, Any], data: Mapping[str, Any], region: str) -> bool:
    types = inputs.get("instanceTypes") or [data.get("InstanceType")]
    rows = [cloud.instance_type(one, region) for one in types if one]
    return any(row and row.get("GpuInfo") for row in rows)
