"""What the provider adds to inputs before anybody else sees them: region, ``tagsAll``, fixed defaults."""

from collections.abc import Mapping
from typing import Any

from sandbox.aws.inputs import DEFAULTS_KEY
from sandbox.aws.kinds import ResourceKind
from sandbox.aws.paths import is_given
from sandbox.aws.schema import ResourceSchema
from sandbox.standin import UNKNOWN, contains_unknown

# Types of the provider's newer half, which leave tagsAll to the plan (pulumi/pulumi-aws provider/tags.go).
_WITHOUT_TAGS_ALL = frozenset(
    {
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    }
)


def add_region(schema: ResourceSchema, inputs: dict[str, Any], region: str) -> None:
    """Sets the provider's region where the type has one and none was given (pulumi/pulumi-aws provider/region.go)."""
    if "region" in schema.inputs:
        inputs.setdefault("region", region)


def add_tags_all(schema: ResourceSchema, inputs: dict[str, Any], default_tags: Mapping[str, Any]) -> None:
    """Sets ``tagsAll``: the provider's default tags under the resource's own (pulumi/pulumi-aws provider/tags.go)."""
    if not {"tags", "tagsAll"} <= schema.outputs.keys() or schema.token in _WITHOUT_TAGS_ALL:
        return
    inputs["tagsAll"] = _merged(inputs.get("tags"), default_tags)


def planned_tags_all(schema: ResourceSchema, inputs: Mapping[str, Any], default_tags: Mapping[str, Any]) -> Any:
    """``tagsAll`` of a type that leaves it to the plan; None for every other type."""
    if "tagsAll" not in schema.outputs or "tagsAll" in inputs:
        return None
    return _merged(inputs.get("tags"), default_tags)


def _merged(tags: Any, default_tags: Mapping[str, Any]) -> Any:
    # One unknown value makes all of them unknown: the provider cannot say yet which tag wins.
    return UNKNOWN if contains_unknown(tags) else {**default_tags, **(tags or {})}


def add_fixed(kind: ResourceKind, inputs: dict[str, Any]) -> None:
    """Fills in the type's defaults, noting each in ``__defaults`` as the bridge does."""
    for pattern, value in kind.defaults.items():
        _add(inputs, pattern.split("."), value)


def _add(values: Any, steps: list[str], default: Any) -> None:
    key, each = steps[0].removesuffix("[]"), steps[0].endswith("[]")
    if not isinstance(values, dict):
        return
    if len(steps) == 1:
        if not is_given(values, key):
            values[key] = default
            values.setdefault(DEFAULTS_KEY, []).append(key)
        return
    member = values.get(key)
    for one in (member if isinstance(member, list) else []) if each else [member]:
        _add(one, steps[1:], default)
