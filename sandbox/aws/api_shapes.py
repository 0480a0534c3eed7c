"""Inputs against the API model that botocore carries: closed sets, lengths and ranges of the request they become."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sandbox.aws.inputs import DEFAULTS_KEY, join
from sandbox.aws.kinds import ApiShape
from sandbox.aws.paths import pattern_of
from sandbox.standin import UNKNOWN, CheckFailure

_LISTED_IN_FULL = 8


def faults(api: ApiShape, inputs: Mapping[str, Any]) -> Iterator[CheckFailure]:
    """What AWS would refuse of these values. A property without a counterpart in the request is not judged."""
    yield from _structure("", _shape(api.service, api.shape), inputs, api.aliases)


def load(api: ApiShape) -> None:
    """Reads the model, which the first question for it would wait for."""
    _shape(api.service, api.shape)


@cache
def _shape(service: str, name: str) -> Any:
    return _model(service).shape_for(name)


@cache
def _model(service: str) -> Any:
    # EC2's takes a tenth of a second to read.
    import botocore.session

    return botocore.session.get_session().get_service_model(service)


def _structure(path: str, shape: Any, values: Mapping[str, Any], aliases: Mapping[str, str]) -> Iterator[CheckFailure]:
    for key, value in values.items():
        if key == DEFAULTS_KEY:
            continue
        where = join(path, key)
        member = _member(shape, aliases.get(pattern_of(where), key))
        if member is not None:
            yield from _value(where, member, value, aliases)


def _value(path: str, shape: Any, value: Any, aliases: Mapping[str, str]) -> Iterator[CheckFailure]:
    if value is UNKNOWN or value is None:
        return
    if shape.type_name == "structure" and isinstance(value, Mapping):
        yield from _structure(path, shape, value, aliases)
    elif shape.type_name == "list" and isinstance(value, list):
        yield from _bounds(path, shape, len(value), "elements")
        for index, one in enumerate(value):
            yield from _value(f"{path}[{index}]", shape.member, one, aliases)
    elif shape.type_name == "map" and isinstance(value, Mapping):
        for key, one in value.items():
            yield from _value(join(path, key), shape.value, one, aliases)
            yield from _bounds(join(path, key), shape.key, len(key), "characters in its key")
    elif shape.type_name == "string" and isinstance(value, str):
        if shape.enum and value not in shape.enum:
            yield CheckFailure(path, f"is {value!r}; {_suggestion(value, shape.enum)}")
        yield from _bounds(path, shape, len(value), "characters")
    elif shape.type_name in ("integer", "long", "float", "double") and isinstance(value, (int, float)):
        yield from _bounds(path, shape, value, "")


def _suggestion(value: str, allowed: Sequence[str]) -> str:
    near = difflib.get_close_matches(value, allowed, n=3)
    if len(allowed) > _LISTED_IN_FULL and near:
        return f"did you mean {' or '.join(near)}?"
    return f"it may be {', '.join(allowed)}"


def _bounds(path: str, shape: Any, size: float, unit: str) -> Iterator[CheckFailure]:
    lowest, highest = shape.metadata.get("min"), shape.metadata.get("max")
    if (lowest is not None and size < lowest) or (highest is not None and size > highest):
        found = f"has {size} {unit}" if unit else f"is {size}"
        limits = [f"at least {lowest}"] if lowest is not None else []
        limits += [f"at most {highest}"] if highest is not None else []
        yield CheckFailure(path, f"{found}; AWS takes {' and '.join(limits)}")


def _member(shape: Any, name: str) -> Any:
    members = {key.lower(): one for key, one in shape.members.items()}
    lower = name.lower()
    # The API names a list in the singular where Pulumi has the plural, and the other way round.
    for candidate in (lower, lower.removesuffix("s"), f"{lower}s"):
        if candidate in members:
            return members[candidate]
    return None
