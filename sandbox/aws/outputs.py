"""Outputs in a preview: what was given, and UNKNOWN for whatever only AWS can fill in."""

from collections.abc import Mapping
from typing import Any

from sandbox.aws.inputs import without_defaults
from sandbox.aws.kinds import ResourceKind
from sandbox.aws.schema import ResourceSchema
from sandbox.standin import UNKNOWN


def of_new(schema: ResourceSchema, kind: ResourceKind, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of a resource that is still to be created."""
    outputs = {key: value for key, value in without_defaults(inputs).items() if key in schema.outputs}
    for name in schema.computed - outputs.keys():
        outputs[name] = UNKNOWN
    for pattern in kind.nested_computed:
        _fill(outputs, pattern.split("."))
    return outputs


def of_update(
    schema: ResourceSchema, kind: ResourceKind, old_outputs: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Outputs of a resource that is still to be updated: what AWS filled in before stays, but for what moves."""
    outputs = of_new(schema, kind, inputs)
    kept = {key: _kept(value, old_outputs.get(key)) for key, value in outputs.items()}
    return {**kept, **dict.fromkeys(kind.changes_with_update - inputs.keys(), UNKNOWN)}


def _fill(value: Any, steps: list[str]) -> None:
    key, each = steps[0].removesuffix("[]"), steps[0].endswith("[]")
    if not isinstance(value, dict):
        return
    if len(steps) == 1:
        value.setdefault(key, UNKNOWN)
        return
    member = value.get(key)
    for one in (member if isinstance(member, list) else []) if each else [member]:
        _fill(one, steps[1:])


def _kept(new: Any, old: Any) -> Any:
    if new is UNKNOWN:
        return UNKNOWN if old is None else old
    if isinstance(new, dict) and isinstance(old, Mapping):
        return {key: _kept(value, old.get(key)) for key, value in new.items()}
    return new
