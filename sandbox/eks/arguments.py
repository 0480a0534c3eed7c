"""A component's arguments: as plain values for decisions, and judged by what the SDK declares for them."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from sandbox.aws.inputs import checked
from sandbox.aws.schema import ValueType
from sandbox.standin import UNKNOWN, StandInError

GIVEN: Final[ContextVar[Mapping[str, Any]]] = ContextVar("given")
"""The arguments of the component under construction as plain values. Each call runs in a task of its own."""

# What a secret, an output value and a resource look like on the wire (pulumi/pulumi sdk/go/common/resource/sig).
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


def plain(value: Any) -> Any:
    """A decoded value without the engine's envelopes: an output or secret is its value, an unknown one is UNKNOWN."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    kind = value.get(_SIGNATURE)
    if kind == _OUTPUT:
        return plain(value["value"]) if "value" in value else UNKNOWN
    if kind == _SECRET:
        return plain(value.get("value"))
    if kind is not None:
        return value
    return {key: plain(one) for key, one in value.items()}


def judge(args: type, values: Mapping[str, Any], subject: str) -> None:
    """Refuses what the SDK's ``args`` class does not take.

    Raises:
        StandInError: unknown, missing or ill-typed arguments, all of them in one line.
    """
    _, failures = checked(ValueType("object", sdk_class=args).fields, values, subject)
    if failures:
        raise StandInError("; ".join(f"{one.property} {one.reason}" for one in failures))
