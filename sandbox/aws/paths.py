"""Property paths: ``a.b[0].c`` in messages, ``a.b[].c`` in rules, where ``[]`` stands for every element."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.standin import UNKNOWN


def values_at(inputs: Mapping[str, Any], pattern: str) -> Iterator[tuple[str, Any]]:
    """Every value that stands at a pattern, with its own path. What is unset or unknown on the way is left out."""
    yield from _descend(inputs, pattern.split("."), "")


def _descend(value: Any, steps: list[str], path: str) -> Iterator[tuple[str, Any]]:
    if value is None or value is UNKNOWN:
        return
    if not steps:
        yield path, value
        return
    key, each = steps[0].removesuffix("[]"), steps[0].endswith("[]")
    member = value.get(key) if isinstance(value, Mapping) else None
    where = f"{path}.{key}" if path else key
    if not each:
        yield from _descend(member, steps[1:], where)
    elif isinstance(member, list):
        for index, one in enumerate(member):
            yield from _descend(one, steps[1:], f"{where}[{index}]")


def is_given(inputs: Mapping[str, Any], key: str) -> bool:
    """Whether a property is set at all, be it to an unknown value. An empty list or text counts as unset."""
    value = inputs.get(key)
    return value is UNKNOWN or value not in (None, "", [], {})


def pattern_of(path: str) -> str:
    """The pattern that a path belongs to: ``a[0].b`` -> ``a[].b``."""
    return re.sub(r"\[\d+\]", "[]", path)
