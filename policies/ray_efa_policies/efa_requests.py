"""Does each Ray worker ask for its node's EFA devices?

The device plugin hands out ``vpc.amazonaws.com/efa``. It is an extended resource: it counts in limits, whole numbers only,
and requests must equal the limits (Kubernetes documentation, "Extended resources"). NIXL's LIBFABRIC plugin falls back to
tcp and sockets when it sees no EFA device (ai-dynamo/nixl PR 833).
"""

import re
from decimal import Decimal
from typing import Final

from .report import Finding, unknown
from .values import UNKNOWN, at, sequence, shown
from .workloads import EFA_RESOURCE, WorkerGroup, says_efa

_WHY: Final = "Without an EFA device libfabric falls back to TCP, with no error."
_FIX: Final = f'Write "{EFA_RESOURCE}": "1" (or as many as the node has) under resources.limits.'
_NUMBER: Final = re.compile(r"\+?(\d+(?:\.\d*)?|\.\d+)(?:[eE](\d{1,2}))?([kMGTPE]|[KMGTPE]i|m)?")
_LARGEST: Final = Decimal(2**63 - 1)
"""Kubernetes caps every quantity there."""
_SUFFIXES: Final = {"": Decimal(1), "m": Decimal("0.001")} | {
    suffix: Decimal(base) ** power
    for power, letter in enumerate("KMGTPE", start=1)
    for base, suffix in ((1024, f"{letter}i"), (1000, letter.replace("K", "k")))
}


def quantity(value: object) -> Decimal | None:
    """A Kubernetes quantity as a number, or None when it is none: 1, 1.0 and "1" are equal."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, int) and value > _LARGEST:
        return _LARGEST
    found = _NUMBER.fullmatch(str(value))
    if not found:
        return None
    number, exponent, suffix = found.groups()
    return min(Decimal(number) * Decimal(10) ** int(exponent or 0) * _SUFFIXES[suffix or ""], _LARGEST)


def check(group: WorkerGroup) -> list[Finding]:
    """Faults of one worker group that is in scope."""
    container, path = group.container, group.container_path
    for value, where in (
        (container, path),
        (at(container, "resources"), f"{path}.resources"),
        (at(container, "resources", "limits"), f"{path}.resources.limits"),
    ):
        if value is UNKNOWN:
            return [unknown(where, "Whether the worker asks for EFA")]
    limit = at(container, "resources", "limits", EFA_RESOURCE)
    request = at(container, "resources", "requests", EFA_RESOURCE)
    limit_path = f'{path}.resources.limits["{EFA_RESOURCE}"]'
    request_path = f'{path}.resources.requests["{EFA_RESOURCE}"]'
    if limit is UNKNOWN:
        return [unknown(limit_path, "Whether the worker asks for EFA")]
    if limit is None:
        return _without_limit(group, request, limit_path, request_path)
    amount = quantity(limit)
    if amount is None or amount < 1 or amount != amount.to_integral_value():
        return [Finding(limit_path, shown(limit), f"It must be a whole number of at least 1. {_WHY}", _FIX)]
    if request is UNKNOWN:
        return [unknown(request_path, "Whether the request equals the limit")]
    if request is not None and quantity(request) != amount:
        return [
            Finding(
                request_path,
                f"{shown(request)} while the limit is {shown(limit)}",
                "Kubernetes refuses a pod whose request of an extended resource differs from its limit.",
                f"Write {amount.normalize():f} in both, or leave the request out.",
            )
        ]
    return []


def _without_limit(group: WorkerGroup, request: object, limit_path: str, request_path: str) -> list[Finding]:
    claims = at(group.container, "resources", "claims")
    claims_path = f"{group.container_path}.resources.claims"
    if claims is UNKNOWN:
        return [unknown(claims_path, "Whether the worker claims EFA")]
    if request is not None:
        return [
            Finding(
                request_path,
                f"{shown(request)} with no limit",
                "An extended resource counts by its limit: Kubernetes refuses a request alone.",
                _FIX,
            )
        ]
    if sequence(claims):
        return _claimed(group, claims, claims_path)
    return [Finding(limit_path, "missing", _WHY, _FIX)]


def _claimed(group: WorkerGroup, claims: object, path: str) -> list[Finding]:
    """A claim through dynamic resource allocation counts when the pod declares it, and its name or its template says EFA."""
    of_pod = at(group.pod, "resourceClaims")
    if of_pod is UNKNOWN or any(at(claim, "name") is UNKNOWN for claim in (*sequence(claims), *sequence(of_pod))):
        return [unknown(path, "Whether the worker claims EFA")]
    declared = {at(claim, "name"): claim for claim in sequence(of_pod)}
    used = [(claim, at(claim, "name")) for claim in sequence(claims)]
    undeclared = [name for _, name in used if name not in declared]
    if undeclared:
        return [
            Finding(
                path,
                f"{shown(undeclared)}, which the pod does not declare",
                f"Kubernetes refuses a pod whose container uses such a claim. {_WHY}",
                f"Declare it under {group.pod_path}.resourceClaims, or request the device plugin's resource.",
            )
        ]
    if any(says_efa([claim, declared[name]]) for claim, name in used):
        return []
    return [
        Finding(
            path,
            "without a claim that names EFA",
            f"What the claims give cannot be seen in this resource. {_WHY}",
            "Name the claim or its template for what it claims, such as 'efa', or request the device plugin's resource.",
            unverified=True,
        )
    ]
