"""From the policy SDK's proxies to plain values, once, at the door.

The SDK hands out proxies that raise as soon as an unknown value is touched, and then drops the rest of that policy's run
with a mere advice; numbers come as floats. Here each key and each element is touched on its own, so that one unknown value
hides nothing but itself (pulumi/pulumi-policy#181, #445).
"""

from collections.abc import Mapping, Sequence
from typing import cast

from pulumi_policy.proxy import UnknownValueError

from .values import UNKNOWN


def plain(value: object) -> object:
    """The value as dicts, lists and scalars, UNKNOWN where the SDK would raise; whole floats become integers."""
    if isinstance(value, Mapping):
        source = cast("Mapping[str, object]", value)
        return {str(key): _item(source, key) for key in source}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        elements = cast("Sequence[object]", value)
        return [_element(elements, index) for index in range(len(elements))]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, bool | int | str):
        return value
    return UNKNOWN  # assets and archives: their content is not in the properties


def _item(source: Mapping[str, object], key: str) -> object:
    try:
        value = source[key]
    except UnknownValueError:
        return UNKNOWN
    return plain(value)


def _element(elements: Sequence[object], index: int) -> object:
    try:
        value = elements[index]
    except UnknownValueError:
        return UNKNOWN
    return plain(value)
