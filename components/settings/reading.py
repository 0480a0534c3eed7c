"""One section of the configuration against its model: wrong types, unknown and missing settings, in words for people."""

import copy
import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from components.faults import Fault, Hidden, path, remove, set_to
from components.settings.fields import EXAMPLE_REGION
from components.settings.models import Settings

SECTIONS: Final = {
    (field.alias or name): name for name, field in Settings.model_fields.items() if name not in ("region", "stack")
}
"""Name of each section in the stack file -> attribute of Settings."""

TOKEN_FIELD: Final = "huggingFaceToken"

_JSON_TYPES: Final[dict[str, type]] = {"int_type": int, "float_type": float, "bool_type": bool}

NUM_GPUS: Final = "the GPUs of a replica are tensorParallelSize x pipelineParallelSize; num_gpus has no effect on them"

NO_SETTINGS: Final = {
    "proxydeploymentconfig": "Ray no longer uses it: decode hands requests on since build_pd_openai_app lost its proxy",
    "proxyclsconfig": "Ray no longer uses it: decode hands requests on since build_pd_openai_app lost its proxy",
    "numgpus": NUM_GPUS,
    "rayactoroptions": NUM_GPUS,
    "autoscalingconfig": "a fixed pool of GPU nodes holds a fixed number of replicas; set replicas",
    "hftoken": "a token never stands in plain text; the secret model.huggingFaceToken becomes a Kubernetes Secret",
    "hugepages2mi": "nodes hold no huge pages for pods, and FI_EFA_FORK_SAFE turns them off in libfabric anyway",
    "hugepages": "nodes hold no huge pages for pods, and FI_EFA_FORK_SAFE turns them off in libfabric anyway",
    "subnetids": "the subnet of the GPU nodes follows from gpuNodes.zone",
    "efainterfaces": "the EFA interfaces of a type come from the catalogue, or from the hardware block of a type outside it",
    "kvtransferconfig": "both roles get the NIXL connector with the LIBFABRIC backend, by construction",
    "proxylocation": "Serve needs a proxy on every node with a replica, or its worker is never Ready",
}
"""Settings people look for and that do not exist, without case, - and _: why not."""


@dataclass(frozen=True)
class Reading:
    """What could be read of a section.

    ``value`` is its model, with defaults or examples where something was wrong, or None where nothing helps. ``unsound``
    holds the paths, such as ``gpuNodes.count``, whose values are therefore not the stack's.
    """

    value: Any
    faults: tuple[Fault, ...] = ()
    unsound: frozenset[str] = frozenset()


def read_section(section: str, value: Any, *, region: str, secret: bool = False) -> Reading:
    """Holds a section against its model.

    Args:
        section: Its name in the stack file.
        value: Its plain JSON value.
        region: The stack's region, for the examples.
        secret: Whether the section holds a secret somewhere; then no value of it is printed.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, Settings.model_fields[SECTIONS[section]].annotation))
    try:
        return Reading(adapter.validate_json(json.dumps(value), strict=True))
    except ValidationError as invalid:
        errors = invalid.errors()
    faults = tuple(_fault(section, error, region, secret) for error in errors)
    repaired = copy.deepcopy(value)
    unsound = {_repair(repaired, section, error, region) for error in errors} - {None}
    try:
        sound_rest = adapter.validate_json(json.dumps(repaired), strict=True)
    except ValidationError:
        return Reading(None, faults, frozenset({section}))
    return Reading(sound_rest, faults, frozenset(cast("set[str]", unsound)))


def _repair(value: Any, section: str, error: ErrorDetails, region: str) -> str | None:
    """Takes what is wrong out of a section, so that the rest can be judged; the path whose value that changes."""
    loc = list(error["loc"])
    # An element of a list cannot go alone: the others would move.
    names = [str(part) for part in loc[: next((i for i, part in enumerate(loc) if isinstance(part, int)), len(loc))]]
    if not names:
        return None
    node = value
    for name in names[:-1]:
        node = node[name]
    if error["type"] == "extra_forbidden":
        node.pop(names[-1], None)
        return None
    place = _place_of((section, *names))
    if place.field is not None and place.field.is_required():
        node[names[-1]] = place.example(region)
    else:
        # Gone already where another element of the same list was wrong.
        node.pop(names[-1], None)
    return ".".join((section, *names))


def unknown_sections(names: Sequence[str]) -> Iterator[Fault]:
    """A fault for each top name that is no section, with the name that was probably meant."""
    for name in names:
        if name not in SECTIONS:
            yield _unknown(path(name), name, list(SECTIONS), "the configuration")


def _fault(section: str, error: ErrorDetails, region: str, secret: bool) -> Fault:
    loc = (section, *error["loc"])
    where = path(*loc)
    place, kind = _place_of(loc), error["type"]
    if kind == "extra_forbidden":
        return _unknown(where, str(loc[-1]), place.siblings, path(*loc[:-1]))
    field, example = place.field, place.example(region)
    if kind == "missing":
        return Fault(where, "it must be set", set_to(where, example))
    found = error["input"]
    must = _must(error, field)
    if loc[-1] == TOKEN_FIELD:
        return Fault(where, must, f"Type: pulumi config set --secret --path '{where}'", Hidden())
    if secret:
        return Fault(where, must, remove(where) if example is None else set_to(where, example), Hidden())
    return Fault(where, must, _fix(where, kind, found, example, _note(field, "pattern")), found)


def _fix(where: str, kind: str, found: Any, example: Any, pattern: str | None) -> str:
    wanted = _JSON_TYPES.get(kind)
    if wanted is not None and isinstance(found, str):
        try:
            meant = json.loads(found.lower())
        except ValueError:
            meant = None
        if type(meant) is wanted:
            return set_to(where, meant)
    if kind == "string_type" and type(found) in (int, float) and (pattern is None or re.match(pattern, str(found))):
        return set_to(where, str(found))
    return remove(where) if example is None else set_to(where, example)


def _note(field: FieldInfo | None, key: str) -> str | None:
    """What the model says about a field under this key of ``json_schema_extra``."""
    extra: Any = field.json_schema_extra if field is not None else None
    return cast("dict[str, str | None]", extra).get(key) if isinstance(extra, dict) else None


def _must(error: ErrorDetails, field: FieldInfo | None) -> str:
    limits = error.get("ctx", {})
    own = _note(field, "must")
    match error["type"]:
        case "int_type" | "int_from_float":
            return "it must be a whole number, without quotes"
        case "bool_type":
            return "it must be true or false, without quotes"
        case "float_type":
            return "it must be a number, without quotes"
        case "string_type":
            return f"it must {own}" if own else "it must be text"
        case "enum":
            return f"it must be {limits['expected'].replace(chr(39), '')}"
        case "dict_type" | "model_type" | "model_attributes_type":
            return "it must be a block of settings"
        case "list_type":
            return "it must be a list"
        case "greater_than_equal":
            return f"it must be at least {limits['ge']}"
        case "less_than_equal":
            return f"it must be at most {limits['le']}"
        case "greater_than":
            return f"it must be more than {limits['gt']:g}"
        case "less_than":
            return f"it must be less than {limits['lt']:g}"
        case "string_too_short":
            return "it must not be empty"
        case _ if own:
            return f"it must {own}"
        case _:
            return f"it must be valid ({error['msg']})"


def _unknown(where: str, name: str, siblings: Sequence[str], parent: str) -> Fault:
    plain = name.replace("-", "").replace("_", "").lower()
    if plain in NO_SETTINGS:
        return Fault(where, f"there is no such setting: {NO_SETTINGS[plain]}", remove(where))
    by_lower = {sibling.lower(): sibling for sibling in siblings}
    close = difflib.get_close_matches(plain, by_lower, n=1, cutoff=0.7)
    if close:
        return Fault(
            where, f"there is no such setting; {by_lower[close[0]]} is meant, perhaps", f"Rename it. {remove(where)}"
        )
    known = f"{parent} has {', '.join(siblings)}" if siblings else f"{parent} has none"
    return Fault(where, f"there is no such setting; {known}", remove(where))


@dataclass(frozen=True)
class _Place:
    """Where a location leads: ``field`` if it names one, the names it could have had, and the way on into a list or map."""

    field: FieldInfo | None
    siblings: Sequence[str]
    inside: Sequence[str | int]

    def example(self, region: str) -> Any:
        """A value to type there, in the stack's region, or None."""
        value: Any = _example_of(self.field) if self.field is not None else None
        for _ in self.inside:
            content: list[Any] = []
            if isinstance(value, list | dict):
                content = list(
                    cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
                )
            value = next(iter(content), None)
        return json.loads(json.dumps(value).replace(EXAMPLE_REGION, region))


def _place_of(loc: Sequence[str | int]) -> _Place:
    model: type[BaseModel] | None = Settings
    field: FieldInfo | None = None
    names: list[str] = []
    for depth, part in enumerate(loc):
        if model is None:
            return _Place(field, [], loc[depth:])
        fields = _fields_of(model)
        names = list(fields)
        field = fields.get(str(part))
        model = _model_of(field)
    return _Place(field, names, ())


def _fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {(info.alias or name): info for name, info in model.model_fields.items()}


def _model_of(field: FieldInfo | None) -> type[BaseModel] | None:
    if field is None:
        return None
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _example_of(field: FieldInfo) -> Any:
    """The field's own example; of a block without one what it requires, or its first setting where it requires nothing."""
    if field.examples:
        return field.examples[0]
    model = _model_of(field)
    if model is None:
        return None
    fields = _fields_of(model)
    required = [name for name, inner in fields.items() if inner.is_required()]
    return {name: _example_of(fields[name]) for name in required or list(fields)[:1]}
