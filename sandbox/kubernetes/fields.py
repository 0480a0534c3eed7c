"""Judges an object against its schema, as the API server does with strict field validation.

Unlike a JSON-schema validator it stops at nothing: an unknown value (one that a first preview cannot know) is passed
over wherever it stands and its siblings are judged all the same; every fault is reported, with its path.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sandbox.kubernetes import schemas, syntax
from sandbox.kubernetes.rules import RULES
from sandbox.standin import UNKNOWN, CheckFailure

_PRIMITIVES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": Sequence,
    "object": Mapping,
}
_ARTICLES: Final = {"string": "a", "boolean": "a", "integer": "an", "number": "a", "array": "a", "object": "an"}
_SPOKEN: Final = {"array": "list"}
_INTEGER_BITS: Final = {"int32": 31, "int64": 63}


def judge(value: Any, schema: schemas.Schema, path: str = "", *, partial: bool = False) -> Iterator[CheckFailure]:
    """Yields what the API server would refuse of ``value``; a ``partial`` object (a patch) may leave fields out."""
    if value is UNKNOWN or value is None:
        return
    name, schema = schemas.resolve(schema)
    fault = _type_fault(value, schema) or _value_fault(value, schema)
    if fault:
        yield CheckFailure(path, fault)
        return
    if isinstance(value, Mapping):
        yield from _object(value, schema, path, partial)
    elif isinstance(value, (list, tuple)):
        yield from _list(value, schema, path, partial)
    # A patch leaves out what its rules would miss.
    if not partial and (rule := RULES.get(name)):
        yield from (CheckFailure(join(path, fault.path), fault.reason) for fault in rule(value))


def join(path: str, member: str) -> str:
    """``a.b`` and ``c`` make ``a.b.c``; ``a.b`` and ``[0]`` make ``a.b[0]``."""
    if not member:
        return path
    return f"{path}.{member}".removeprefix(".").replace(".[", "[")


def _object(value: Mapping[str, Any], schema: schemas.Schema, path: str, partial: bool) -> Iterator[CheckFailure]:
    fields: Mapping[str, Any] = schema.get("properties", {})
    for key, member in value.items():
        place = join(path, syntax.key(key))
        if key in fields:
            yield from judge(member, fields[key], place, partial=partial)
        elif (free := schema.get("additionalProperties")) is not None:
            yield from judge(member, free, place, partial=partial)
        elif fields and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield CheckFailure(place, f'unknown field "{key}"{_suggestion(key, fields)}')
    if not partial:
        for key in schema.get("required", ()):
            if value.get(key) is None and "default" not in fields.get(key, {}):
                yield CheckFailure(join(path, key), f'required field "{key}" is missing')


def _list(value: Sequence[Any], schema: schemas.Schema, path: str, partial: bool) -> Iterator[CheckFailure]:
    for index, member in enumerate(value):
        yield from judge(member, schema.get("items", {}), f"{path}[{index}]", partial=partial)
    if schema.get("x-kubernetes-list-type") != "map":
        return
    keys: Sequence[str] = schema["x-kubernetes-list-map-keys"]
    seen: dict[tuple[Any, ...], int] = {}
    for index, member in enumerate(value):
        if not isinstance(member, Mapping):
            continue
        identity = tuple(member.get(key, "TCP" if key == "protocol" else None) for key in keys)
        if any(part is UNKNOWN or isinstance(part, (Mapping, list)) for part in identity):
            continue
        if identity in seen:
            shown = ", ".join(f'{key} "{part}"' for key, part in zip(keys, identity, strict=True) if part is not None)
            yield CheckFailure(f"{path}[{index}]", f"{shown} is already taken by entry {seen[identity]} of this list")
        seen.setdefault(identity, index)


def _type_fault(value: Any, schema: schemas.Schema) -> str:
    allowed = _types(schema)
    if not allowed or any(_is(value, one) for one in allowed):
        return ""
    wanted = " or ".join(f"{_ARTICLES[one]} {_SPOKEN.get(one, one)}" for one in allowed)
    found = next((one for one in _PRIMITIVES if _is(value, one)), "object")
    hint = ""
    if allowed == ["string"] and found in ("integer", "number", "boolean"):
        hint = ": put it in quotes"
    return f"must be {wanted}, not {_ARTICLES[found]} {_SPOKEN.get(found, found)}{hint}"


def _types(schema: schemas.Schema) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    if "oneOf" in schema:
        return [one for choice in schema["oneOf"] for one in _types(choice)]
    named = schema.get("type", [])
    return [one for one in ([named] if isinstance(named, str) else named) if one != "null"]


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, str):
        return name == "string"
    return isinstance(value, _PRIMITIVES[name])


def _value_fault(value: Any, schema: schemas.Schema) -> str:
    choices = [one for one in schema.get("enum", ()) if one is not None]
    if choices and value not in choices:
        return f"must be one of {', '.join(map(str, choices))}, not {syntax.shown(value)}"
    if isinstance(value, str):
        return _text_fault(value, schema)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number_fault(value, schema)
    if isinstance(value, (list, tuple)) and len(value) < schema.get("minItems", 0):
        return f"must have at least {schema['minItems']} entries"
    return ""


def _text_fault(text: str, schema: schemas.Schema) -> str:
    if "pattern" in schema and not re.search(schema["pattern"], text):
        return f"must match {schema['pattern']}"
    if len(text) > schema.get("maxLength", len(text)):
        return f"must have at most {schema['maxLength']} characters, not {len(text)}"
    if len(text) < schema.get("minLength", 0):
        return f"must have at least {schema['minLength']} characters"
    return ""


def _number_fault(number: int | float, schema: schemas.Schema) -> str:
    if number < schema.get("minimum", number):
        return f"must be at least {schema['minimum']}, not {number}"
    if number > schema.get("maximum", number):
        return f"must be at most {schema['maximum']}, not {number}"
    bits = _INTEGER_BITS.get(schema.get("format", ""))
    if bits and not -(2**bits) <= number < 2**bits:
        return f"must fit a {bits + 1}-bit integer, and {number} does not"
    return ""


def _suggestion(key: str, fields: Mapping[str, Any]) -> str:
    alike = {field.lower(): field for field in fields}
    near = difflib.get_close_matches(key.lower(), alike, n=1, cutoff=0.75)
    return f': did you mean "{alike[near[0]]}"?' if near else ""
