"""Inputs against their schema: what the provider refuses, and the values it keeps (coerced, documents as text)."""

import difflib
import json
from collections.abc import Mapping
from typing import Any

from sandbox.aws.schema import Field, ValueType
from sandbox.standin import UNKNOWN, CheckFailure, contains_unknown

DEFAULTS_KEY = "__defaults"
"""Where the bridge notes which properties it filled in itself (pulumi/pulumi-terraform-bridge pkg/tfbridge/schema.go)."""


def checked(
    fields: Mapping[str, Field], values: Mapping[str, Any], subject: str
) -> tuple[dict[str, Any], list[CheckFailure]]:
    """Returns the values as the provider keeps them and everything that is wrong with them.

    A value of the wrong type comes back as UNKNOWN, so that later rules skip it instead of failing on it.

    Args:
        fields: What may be given.
        values: What was given, camelCase.
        subject: What the values are of, for messages: ``LaunchTemplate``.
    """
    reader = _Reader(subject)
    return reader.object("", fields, values), reader.failures


def without_defaults(value: Any) -> Any:
    """The value without the bridge's notes."""
    if isinstance(value, Mapping):
        return {key: without_defaults(one) for key, one in value.items() if key != DEFAULTS_KEY}
    if isinstance(value, list):
        return [without_defaults(one) for one in value]
    return value


class _Reader:
    def __init__(self, subject: str) -> None:
        self._subject = subject
        self.failures: list[CheckFailure] = []

    def object(self, path: str, fields: Mapping[str, Field], values: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, value in values.items():
            if key == DEFAULTS_KEY or value is None:
                continue
            if key not in fields:
                self._refuse(join(path, key), self._unknown_key(key, fields))
                continue
            kept[key] = self._value(join(path, key), fields[key].type, value)
        for field in fields.values():
            if field.required and field.name not in kept:
                self._refuse(join(path, field.name), f"is required and not set: give it {field.type}")
        return kept

    def _value(self, path: str, expected: ValueType, value: Any) -> Any:
        if value is UNKNOWN or expected.kind == "any":
            return value
        if expected.kind == "object" and isinstance(value, Mapping):
            return {DEFAULTS_KEY: [], **self.object(path, expected.fields, value)}
        if expected.kind == "map" and isinstance(value, Mapping):
            assert expected.element is not None
            return {
                key: self._value(join(path, key), expected.element, one)
                for key, one in value.items()
                if one is not None and key != DEFAULTS_KEY
            }
        if expected.kind == "list" and isinstance(value, list):
            return self._list(path, expected, value)
        if expected.kind == "document":
            return _document(value)
        scalar = None if isinstance(value, (Mapping, list)) else _scalar(expected.kind, value)
        if scalar is None:
            self._refuse(path, _wrong_type(expected, value))
            return UNKNOWN
        return scalar

    def _list(self, path: str, expected: ValueType, values: list[Any]) -> list[Any]:
        assert expected.element is not None
        kept: list[Any] = []
        for index, value in enumerate(values):
            if value is None:
                self._refuse(f"{path}[{index}]", f"is null: give it {expected.element}")
                value = UNKNOWN
            kept.append(self._value(f"{path}[{index}]", expected.element, value))
        return kept

    def _unknown_key(self, key: str, fields: Mapping[str, Field]) -> str:
        near = difflib.get_close_matches(key, fields, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(fields)) or 'nothing'}"
        return f"is no property that {self._subject} has there; {known}"

    def _refuse(self, path: str, reason: str) -> None:
        self.failures.append(CheckFailure(path, reason))


def join(path: str, key: str) -> str:
    """The path of a member: ``a.b``, or ``a["b/c"]`` where the key is no plain name."""
    if not key.replace("_", "").isalnum():
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _scalar(kind: str, value: Any) -> Any:
    """The value as this kind, converted as the bridge converts scalars; None when it cannot be."""
    if kind == "string":
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, (int, float, str)) else None
    if kind == "boolean":
        return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else _only(bool, value)
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = _number(value)
    if kind == "integer":
        return _only(int, value)
    return value if isinstance(value, (int, float)) else None


def _only(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else None


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _document(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if contains_unknown(value):
        return UNKNOWN
    return json.dumps(without_defaults(value), sort_keys=True, separators=(",", ":"))


def _wrong_type(expected: ValueType, value: Any) -> str:
    # The kind of the value, never the value: it may be a secret.
    found = f"must be {expected}, but {_kind(value)} was given"
    if expected.kind == "list":
        return f"{found}: put it in a list"
    if isinstance(value, list) and len(value) == 1:
        return f"{found}: give the one element without the list"
    return found


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    for kind, name in ((str, "a string"), (int, "an integer"), (float, "a number"), (list, "a list")):
        if isinstance(value, kind):
            return name
    return "an object"
