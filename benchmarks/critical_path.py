"""The longest chain of waits through a run: what it would take if everything started the moment it could."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Span:
    """When the engine began and ended the creation of one resource, in seconds of one clock."""

    urn: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


@dataclass(frozen=True)
class Path:
    """A chain of resources, first to last, and the sum of their durations in seconds."""

    seconds: float
    urns: Sequence[str]


def spans(events: Iterable[tuple[float, Mapping[str, Any]]]) -> Mapping[str, Span]:
    """The creations in an engine's event stream, URN -> span.

    Args:
        events: Arrival time and event, in order. Components have no duration of their own and are left out.
    """
    started: dict[str, float] = {}
    found: dict[str, Span] = {}
    for at, event in events:
        for kind in ("resourcePreEvent", "resOutputsEvent"):
            told = event.get(kind) or {}
            metadata = told.get("metadata")
            # `up` previews first, and tells that in the same stream.
            if metadata is None or told.get("planning"):
                continue
            if metadata["op"] not in ("create", "create-replacement") or not _is_custom(metadata):
                continue
            urn = metadata["urn"]
            if kind == "resourcePreEvent":
                started[urn] = at
            else:
                found[urn] = Span(urn, started[urn], at)
    return found


def waits(state: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    """URN -> URNs that must be there first, from a ``pulumi stack export``.

    Explicit and property dependencies, and the provider; a component stands for all that is below it.
    """
    resources = state["deployment"]["resources"]
    custom = {one["urn"] for one in resources if one.get("custom")}
    below: dict[str, set[str]] = {}
    parents = {one["urn"]: one.get("parent", "") for one in resources}
    for urn in custom:
        above = parents[urn]
        while above:
            below.setdefault(above, set()).add(urn)
            above = parents.get(above, "")

    def of(one: Mapping[str, Any]) -> frozenset[str]:
        direct = set(one.get("dependencies") or ())
        for names in (one.get("propertyDependencies") or {}).values():
            direct.update(names or ())
        if one.get("provider"):
            direct.add(one["provider"].rpartition("::")[0])
        found: set[str] = set()
        for urn in direct:
            found |= {urn} if urn in custom else below.get(urn, set())
        return frozenset(found - {one["urn"]})

    return {one["urn"]: of(one) for one in resources if one.get("custom")}


def longest(durations: Mapping[str, float], needs: Mapping[str, frozenset[str]]) -> Path:
    """The critical path over the resources in ``durations``; others in ``needs`` cost nothing but are passed through.

    Raises:
        ValueError: The resources wait for each other in a circle.
    """
    finished: dict[str, tuple[float, str | None]] = {}
    open_: set[str] = set()

    def finish(urn: str) -> float:
        if urn not in finished:
            if urn in open_:
                raise ValueError(f"{urn} waits for itself")
            open_.add(urn)
            last = max(needs.get(urn, frozenset()), key=finish, default=None)
            finished[urn] = ((finish(last) if last else 0.0) + durations.get(urn, 0.0), last)
            open_.discard(urn)
        return finished[urn][0]

    end: str | None = max(durations, key=finish, default=None)
    total = finish(end) if end else 0.0
    chain: list[str] = []
    while end is not None:
        if end in durations:
            chain.append(end)
        end = finished[end][1]
    return Path(total, chain[::-1])


def one_after_another(
    durations: Mapping[str, float], needs: Mapping[str, frozenset[str]], stage_of: Callable[[str], str]
) -> Mapping[str, float]:
    """Stage -> seconds, where a stage starts when the one before has ended and is as parallel inside as it can be."""
    stages: dict[str, dict[str, float]] = {}
    for urn, seconds in durations.items():
        stages.setdefault(stage_of(urn), {})[urn] = seconds
    return {
        stage: longest(members, {urn: needs.get(urn, frozenset()) & members.keys() for urn in members}).seconds
        for stage, members in stages.items()
    }


def _is_custom(metadata: Mapping[str, Any]) -> bool:
    # A provider is the engine's own: nothing is made on AWS.
    return bool((metadata.get("new") or {}).get("custom")) and not metadata["urn"].startswith(
        "pulumi:providers:", _kind_at(metadata["urn"])
    )


def _kind_at(urn: str) -> int:
    head = urn.rpartition("::")[0]
    return max(head.rfind("::") + 2, head.rfind("$") + 1)
