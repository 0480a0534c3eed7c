"""What the installed pulumi_aws SDK says of each resource type and function: inputs, their types, what is required.

Nothing here is kept by hand: every token that the SDK registers is answered, the moment it is first asked for.
"""

import collections.abc
import importlib
import inspect
import re
import sys
import threading
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, wraps
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, ParamSpec, TypeVar

from pulumi import _types as sdk_types

PACKAGE = "aws"

_P = ParamSpec("_P")
_T = TypeVar("_T")
_READING = threading.RLock()

Kind = Literal["string", "integer", "number", "boolean", "list", "map", "object", "document", "any"]


@dataclass(frozen=True)
class ValueType:
    """The type of a value. ``element`` is a list's or map's, ``fields`` an object's.

    ``document`` is a JSON text that may also be written as an object (IAM policies); the provider turns it into text.
    """

    kind: Kind
    element: "ValueType | None" = None
    sdk_class: type | None = None

    @property
    def fields(self) -> "dict[str, Field]":
        """The properties of an object; empty for every other kind."""
        return _fields_of(self.sdk_class) if self.sdk_class is not None else {}

    def __str__(self) -> str:
        plural = {"list": "a list", "map": "a map", "object": "an object", "integer": "an integer"}
        noun = plural.get(self.kind, f"a {self.kind}")
        if self.kind == "document":
            return "a JSON document"
        if self.element is None or self.element.kind == "any":
            return noun
        article, _, name = str(self.element).partition(" ")
        return f"{noun} of {name}s" if article in ("a", "an") and self.element.kind not in ("list", "map") else noun


@dataclass(frozen=True)
class Field:
    """One property of a resource's, object's or function's input."""

    name: str
    type: ValueType
    required: bool


@dataclass(frozen=True)
class ResourceSchema:
    """Inputs and outputs of a resource type, by their names on the wire (camelCase)."""

    token: str
    inputs: dict[str, Field]
    outputs: dict[str, ValueType]
    computed: frozenset[str]
    """Outputs the provider always gives a value: unset ones are known only after the resource exists."""


@dataclass(frozen=True)
class FunctionSchema:
    """Arguments of a function (data source) and the properties of its answer."""

    token: str
    arguments: dict[str, Field]
    result: frozenset[str]


def _alone(read: Callable[_P, _T]) -> Callable[_P, _T]:
    """Lets one thread at a time read the SDK, which imports its modules on first use and shows them half-made to the next."""

    @wraps(read)
    def locked(*arguments: _P.args, **named: _P.kwargs) -> _T:
        with _READING:
            return read(*arguments, **named)

    return locked


@_alone
@cache
def resource(token: str) -> ResourceSchema | None:
    """The schema of a resource type such as ``aws:eks/nodeGroup:NodeGroup``; None when the SDK registers no such type."""
    cls = _resource_class(token)
    if cls is None:
        return None
    args = getattr(sys.modules[cls.__module__], f"{cls.__name__}Args")
    outputs: dict[str, ValueType] = {}
    computed: set[str] = set()
    for _, name, prop in sdk_types._py_properties(cls):
        (annotation,) = typing.get_args(typing.get_type_hints(prop.fget)["return"])
        outputs[name] = _value_type(annotation)
        if type(None) not in typing.get_args(annotation):
            computed.add(name)
    return ResourceSchema(token, _fields_of(args), outputs, frozenset(computed))


@_alone
@cache
def function(token: str) -> FunctionSchema | None:
    """The schema of a function such as ``aws:ec2/getVpc:getVpc``; None when the SDK has no such function."""
    found = re.fullmatch(r"aws:([\w]+)/(\w+):(\w+)", token)
    if found is None:
        return None
    module_name, _, name = found.groups()
    package = "pulumi_aws" if module_name == "index" else f"pulumi_aws.{module_name}"
    python_name = _snake_case(name)
    try:
        module = importlib.import_module(f"{package}.{python_name}")
    except ModuleNotFoundError:
        return None
    call = getattr(module, python_name, None)
    if not isinstance(call, FunctionType) or token not in _constants(call.__code__):
        return None
    result = next(
        value
        for key, value in vars(module).items()
        if key.startswith("Get") and key.endswith("Result") and sdk_types.is_output_type(value)
    )
    return FunctionSchema(
        token, _function_arguments(module, call), frozenset(name for _, name, _ in sdk_types._py_properties(result))
    )


def _resource_class(token: str) -> type | None:
    import pulumi_aws  # noqa: F401  (registers the types)
    from pulumi.runtime.rpc import _RESOURCE_MODULES

    for module in _RESOURCE_MODULES.get(token.rpartition(":")[0], ()):
        about: Mapping[str, Any] = vars(module)["mod_info"]
        class_name = about["classes"].get(token)
        if class_name:
            return getattr(importlib.import_module(about["fqn"]), class_name)
    return None


@_alone
@cache
def _fields_of(args: type) -> dict[str, Field]:
    names = sdk_types.input_type_py_to_pulumi_names(args)
    parameters = inspect.signature(args.__init__).parameters
    required = {names.get(key, key) for key, one in parameters.items() if one.default is one.empty}
    return {
        name: Field(name, _value_type(annotation), name in required)
        for name, annotation in sdk_types.input_type_types(args).items()
    }


def _function_arguments(module: ModuleType, call: FunctionType) -> dict[str, Field]:
    wire_names = {one.lower(): one for one in _constants(call.__code__) if one.isidentifier()}
    hints = typing.get_type_hints(call, vars(module))
    arguments: dict[str, Field] = {}
    for key in inspect.signature(call).parameters:
        if key == "opts":
            continue
        name = wire_names[key.replace("_", "")]
        # Functions declare every argument Optional; which ones are needed shows when they are answered.
        arguments[name] = Field(name, _value_type(hints[key]), required=False)
    return arguments


def _constants(code: CodeType) -> list[str]:
    return [one for one in code.co_consts if isinstance(one, str)]


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


_SCALARS: dict[Any, Kind] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _value_type(annotation: Any) -> ValueType:
    """Reads an SDK annotation; Input, Output, Awaitable and Optional wrappers fall away."""
    members = [one for one in _union_members(annotation) if not _is_wrapper(one)]
    if len(members) > 1:
        return _of_several(members)
    (one,) = members or [Any]
    if one in _SCALARS:
        return ValueType(_SCALARS[one])
    origin, arguments = typing.get_origin(one), typing.get_args(one)
    if origin is collections.abc.Sequence:
        return ValueType("list", element=_value_type(arguments[0]))
    if origin is collections.abc.Mapping:
        return ValueType("map", element=_value_type(arguments[1]))
    if inspect.isclass(one) and (sdk_types.is_input_type(one) or sdk_types.is_output_type(one)):
        return ValueType("object", sdk_class=one)
    return ValueType("any")


def _of_several(members: list[Any]) -> ValueType:
    # `str | SomeEnum` takes any text; `str | PolicyDocumentArgs` takes text or the document itself.
    if str in members:
        others = [one for one in members if one is not str and not (inspect.isclass(one) and issubclass(one, Enum))]
        return ValueType("document" if others else "string")
    args = [one for one in members if inspect.isclass(one) and sdk_types.is_input_type(one)]
    return ValueType("object", sdk_class=args[0]) if args else ValueType("any")


def _union_members(annotation: Any) -> tuple[Any, ...]:
    return typing.get_args(annotation) if typing.get_origin(annotation) is typing.Union else (annotation,)


def _is_wrapper(annotation: Any) -> bool:
    if annotation is type(None):
        return True
    if typing.get_origin(annotation) is collections.abc.Awaitable:
        return True
    origin = typing.get_origin(annotation) or annotation
    name = getattr(origin, "__forward_arg__", None) or getattr(origin, "__name__", "")
    return name.startswith("Output") or name.endswith("ArgsDict")
