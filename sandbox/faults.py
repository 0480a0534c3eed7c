"""Faults that a run is asked to meet: ``KIND[@resource][:times]``.

A plan only says which call is struck; what the service then says and leaves behind is the service's own matter
(:mod:`sandbox.aws.mishaps`, and :mod:`sandbox.cluster.mishaps` for the kinds in ``IN_CLUSTERS``).
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, Self


class FaultKind(StrEnum):
    """What can go wrong."""

    THROTTLING = "throttling"
    INSUFFICIENT_CAPACITY = "insufficient-capacity"
    QUOTA_EXCEEDED = "quota-exceeded"
    ACCESS_DENIED = "access-denied"
    RESERVATION_EXPIRED = "reservation-expired"
    NODE_CREATION_FAILURE = "node-creation-failure"
    DEPENDENCY_VIOLATION = "dependency-violation"
    TIME_OUT = "time-out"
    API_SERVER_RESTART = "api-server-restart"
    WORKER_NEVER_READY = "worker-never-ready"
    OPERATOR_MISSING = "operator-missing"
    NAMESPACE_TERMINATING = "namespace-terminating"
    APPLICATION_FAILS = "application-fails"


IN_CLUSTERS: Final = frozenset(
    {
        FaultKind.API_SERVER_RESTART,
        FaultKind.WORKER_NEVER_READY,
        FaultKind.OPERATOR_MISSING,
        FaultKind.NAMESPACE_TERMINATING,
        FaultKind.APPLICATION_FAILS,
    }
)
"""Kinds that only a real Kubernetes can meet; their resource is a Kubernetes name or label value, not Pulumi's name."""


@dataclass
class _Strike:
    kind: FaultKind
    resource: str | None
    left: int
    given: int = 0


class FaultPlan:
    """The strikes that are still to come. Safe to share between the threads of a server."""

    def __init__(self, strikes: Sequence[_Strike] = ()) -> None:
        self._strikes = list(strikes)
        self._lock = threading.Lock()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Self:
        """Reads ``KIND[@resource][:times]``; ``resource`` is a logical name and may hold ``*``, ``times`` defaults to 1.

        Raises:
            ValueError: A text is of another form; the message names the kinds.
        """
        return cls([_parsed(text) for text in texts])

    def take(
        self, possible: Collection[FaultKind], resource: str, *, by_default: Collection[FaultKind]
    ) -> FaultKind | None:
        """The fault that strikes this call, if any, and one strike less in the plan.

        Args:
            possible: Kinds that this call can meet at all.
            resource: Logical name of the resource.
            by_default: Kinds that strike it without having been aimed at it by name.
        """
        with self._lock:
            for strike in self._strikes:
                if strike.left < 1 or strike.kind not in possible:
                    continue
                aimed = fnmatchcase(resource, strike.resource) if strike.resource else strike.kind in by_default
                if aimed:
                    strike.left -= 1
                    return strike.kind
        return None

    @property
    def in_clusters(self) -> list[str]:
        """The kinds of this plan that only a real cluster can meet."""
        with self._lock:
            return sorted({str(one.kind) for one in self._strikes if one.kind in IN_CLUSTERS and one.left})

    def hand_over(self) -> list[dict[str, object]]:
        """The strikes that a real cluster sees to; they count as met until :meth:`take_back`."""
        with self._lock:
            given = [one for one in self._strikes if one.kind in IN_CLUSTERS and one.left]
            found = [{"kind": str(one.kind), "resource": one.resource or "", "times": one.left} for one in given]
            for one in given:
                one.given, one.left = one.left, 0
        return found

    def take_back(self, met: Sequence[Mapping[str, Any]]) -> None:
        """Puts back what was handed over and not met; ``met`` has ``kind`` and ``resource`` of each strike that was."""
        with self._lock:
            for strike in self._strikes:
                name = {"kind": strike.kind, "resource": strike.resource or ""}
                hits = sum(all(one[key] == value for key, value in name.items()) for one in met)
                strike.left, strike.given = strike.left + max(strike.given - hits, 0), 0

    @property
    def unmet(self) -> list[str]:
        """The strikes that met no call, as they were written: a misspelt resource shows here."""
        with self._lock:
            return [
                f"{one.kind}@{one.resource}" if one.resource else str(one.kind) for one in self._strikes if one.left
            ]


def _parsed(text: str) -> _Strike:
    rest, colon, times = text.partition(":")
    kind, at, resource = rest.partition("@")
    try:
        found = FaultKind(kind)
    except ValueError:
        raise ValueError(f"--fault {text}: {kind!r} is no fault; the kinds are {', '.join(FaultKind)}") from None
    if at and not resource:
        raise ValueError(f"--fault {text}: name a resource after @, for instance {kind}@ray-llm-gpu-nodes")
    if colon and not (times.isdecimal() and int(times) > 0):
        raise ValueError(f"--fault {text}: write how many times after the colon, for instance {rest}:2")
    return _Strike(found, resource or None, int(times) if colon else 1)
