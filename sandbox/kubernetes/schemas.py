"""The schemas that objects are judged by: Kubernetes' own kinds, and KubeRay's custom resources.

The kinds of Kubernetes come from the PyPI package kubernetes-validate (generated from the API server's OpenAPI document),
those of KubeRay from ``kuberay_crds.json`` beside this module, which says where it was recorded.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

KUBERNETES: Final = "1.35"

Schema = Mapping[str, Any]

_REFERENCE: Final = "#/$defs/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META: Final = _META + "ObjectMeta"
EMBEDDED_META: Final = "ObjectMeta"
"""The metadata of an object embedded in a custom resource: names, labels, annotations and finalizers only."""

_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_EMBEDDED_META_SCHEMA: Final[Schema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}


@dataclass(frozen=True)
class Kind:
    """A kind the sandbox has a schema for. ``custom`` tells a CustomResourceDefinition's from a built-in one."""

    api_version: str
    name: str
    schema: Schema
    custom: bool


def find(api_version: str, kind: str) -> Kind | None:
    """The schema of a kind, or None for a kind that neither Kubernetes nor KubeRay defines."""
    return _kinds().get((api_version, kind))


def resolve(schema: Schema) -> tuple[str, Schema]:
    """Follows a ``$ref``; returns the definition's name ("" for an anonymous schema) and the schema itself."""
    reference = schema.get("$ref")
    if reference is None:
        return "", schema
    name = reference.removeprefix(_REFERENCE)
    if name == EMBEDDED_META:
        return name, _EMBEDDED_META_SCHEMA
    # A definition may be an alias of another one.
    inner_name, inner = resolve(_definitions()[name])
    return inner_name or name, inner


def built_in_groups() -> set[str]:
    """The API groups of Kubernetes itself; a kind in one of them that :func:`find` does not know does not exist."""
    return {api_version for (api_version, _), kind in _kinds().items() if not kind.custom}


def custom_kinds() -> list[Kind]:
    """KubeRay's kinds, one for each version that its operator serves."""
    return [kind for kind in _kinds().values() if kind.custom]


def kuberay_tag() -> str:
    """The KubeRay release that the schemas were recorded from, such as v1.6.0."""
    return _recorded()["source"]["tag"]


def near(api_version: str, kind: str) -> str:
    """A hint for a misspelt kind, such as ': did you mean "RayService"?', or ""."""
    known = [name for version, name in _kinds() if version == api_version]
    found = difflib.get_close_matches(kind, known, n=1, cutoff=0.75)
    return f': did you mean "{found[0]}"?' if found else ""


@cache
def _definitions() -> Mapping[str, Any]:
    path = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{KUBERNETES}.0-local" / "_definitions.json"
    return json.loads(path.read_text())["$defs"]


@cache
def _recorded() -> Mapping[str, Any]:
    return json.loads((files("sandbox.kubernetes") / "kuberay_crds.json").read_text())


@cache
def _kinds() -> Mapping[tuple[str, str], Kind]:
    found: dict[tuple[str, str], Kind] = {}
    for schema in _definitions().values():
        # DeleteOptions and WatchEvent claim every group; they are no objects.
        names = schema.get("x-kubernetes-group-version-kind", ())
        if len(names) == 1 and "metadata" in schema.get("properties", {}):
            group, version, kind = names[0]["group"], names[0]["version"], names[0]["kind"]
            api_version = f"{group}/{version}" if group else version
            found[api_version, kind] = Kind(api_version, kind, schema, custom=False)
    for name, schema in _recorded()["kinds"].items():
        api_version, _, kind = name.rpartition("/")
        # The API server judges the metadata of every object alike.
        metadata = {"metadata": {"$ref": _REFERENCE + OBJECT_META}}
        whole = {**schema, "properties": {**schema["properties"], **metadata}}
        found[api_version, kind] = Kind(api_version, kind, whole, custom=True)
    return found
