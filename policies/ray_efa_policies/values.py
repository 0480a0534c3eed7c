"""Plain values with one extra: UNKNOWN, for what Pulumi cannot tell yet.

Every rule of the pack works on these: mappings, lists, strings, numbers, booleans, None and UNKNOWN. Rules never see the
proxies of the policy SDK, so that the same rule serves a policy, a component and a file on disk.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast


class Unknown:
    """The type of UNKNOWN. It is never true and equal only to itself, so that no rule can take it for a value."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
"""A value that is not known before the deployment, such as the id of a resource that does not exist yet."""

_EMPTY: Final[Mapping[str, object]] = {}
# What may be echoed in a message: identifiers, versions, paths. Anything else could be a secret in the wrong place.
_LONGEST: Final = 48
_PRINTABLE = re.compile(rf"[\w.:/@+-]{{1,{_LONGEST}}}")


def mapping(value: object) -> Mapping[str, object]:
    """The value as a mapping; an empty one when it is anything else."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else _EMPTY


def sequence(value: object) -> Sequence[object]:
    """The value as a list; an empty one when it is anything else (a string is not a list)."""
    return cast("Sequence[object]", value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def at(value: object, *path: str | int) -> object:
    """What stands at a path: UNKNOWN if any step is unknown, None if any step is missing or of the wrong kind."""
    for step in path:
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(step, str):
            value = mapping(value).get(step)
        else:
            items = sequence(value)
            value = items[step] if step < len(items) else None
    return value


def strings(value: object) -> Iterator[str]:
    """Every string in a tree, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, child in mapping(cast("object", value)).items():
            yield str(key)
            yield from strings(child)
    else:
        for child in sequence(value):
            yield from strings(child)


def is_true(value: object) -> bool:
    """Whether a value is the boolean true, also as the text that some SDKs send."""
    return value is True or value == "true"


def shown(value: object) -> str:
    """A value as a message may show it: short scalars as they are, everything else only by its kind."""
    if value is None:
        return "missing"
    if value is UNKNOWN:
        return "not known yet"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**_LONGEST:
        return "a number that is not shown here"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, str):
        if not value:
            return "an empty string"
        return f"'{value}'" if _PRINTABLE.fullmatch(value) else "a string that is not shown here"
    items = sequence(value)
    if items and len(items) <= 8 and all(isinstance(item, str | int | float | Unknown) for item in items):
        return "[" + ", ".join(shown(item) for item in items) + "]"
    if isinstance(value, Mapping):
        return "a mapping"
    return "an empty list" if not items else "a list"


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name matches any of the shell patterns (``*``, ``?``), case counting."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
