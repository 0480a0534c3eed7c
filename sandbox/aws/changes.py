"""What a change of inputs means: which paths differ, and which of them make a new resource."""

from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.aws.inputs import DEFAULTS_KEY, join
from sandbox.aws.kinds import ResourceKind
from sandbox.aws.paths import pattern_of


def changed_paths(old: Any, new: Any, sets: frozenset[str], path: str = "") -> Iterator[str]:
    """The paths at which two inputs differ. Lists named in ``sets`` are compared without their order."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new} - {DEFAULTS_KEY}):
            yield from changed_paths(old.get(key), new.get(key), sets, join(path, key))
    elif isinstance(old, list) and isinstance(new, list):
        if pattern_of(path) in sets:
            old, new = sorted(old, key=repr), sorted(new, key=repr)
        for index in range(max(len(old), len(new))):
            before, after = (one[index] if index < len(one) else None for one in (old, new))
            yield from changed_paths(before, after, sets, f"{path}[{index}]")
    elif old != new:
        yield path


def replacing(
    paths: list[str], kind: ResourceKind, old: Mapping[str, Any] | None = None, new: Mapping[str, Any] | None = None
) -> list[str]:
    """Those of the changed paths that make a new resource."""
    now = kind.replaces_when(old or {}, new or {}) if kind.replaces_when else frozenset()
    return [one for one in paths if _replaces(pattern_of(one), kind) or _covers(now, pattern_of(one))]


def _replaces(pattern: str, kind: ResourceKind) -> bool:
    if pattern == "region":
        # Every resource of the provider since its version 6 (internal/provider/sdkv2, region interceptor).
        return True
    if _covers(kind.keeps, pattern):
        return False
    return ("*" in kind.replaces and pattern not in ("tags", "tagsAll")) or _covers(kind.replaces, pattern)


def _covers(patterns: frozenset[str], pattern: str) -> bool:
    # `subnetIds` covers `subnetIds[]`, and a whole object that comes or goes covers what stands in it.
    return any(
        pattern == one or pattern.startswith((f"{one}.", f"{one}[")) or one.startswith(f"{pattern}.")
        for one in patterns
    )
