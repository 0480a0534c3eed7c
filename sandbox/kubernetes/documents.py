"""Manifests: YAML text decoded into objects, and the components of ``kubernetes:yaml/v2`` that register what they hold."""

import glob
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import grpc
import yaml
from pulumi.runtime.proto import provider_pb2, resource_pb2, resource_pb2_grpc

from sandbox.kubernetes import downloads
from sandbox.kubernetes.objects import CLUSTER_SCOPED
from sandbox.kubernetes.rules import members
from sandbox.standin import UNKNOWN, StandInError, contains_unknown
from sandbox.wire import MAX_MESSAGE_BYTES, encode
from sandbox.wire import decode as plain

_COMPONENTS: Final = ("kubernetes:yaml/v2:ConfigGroup", "kubernetes:yaml/v2:ConfigFile")
# Python's `yaml` reads `=` as a type of its own; a manifest means the character.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def decode(text: Any, default_namespace: str | None = None) -> list[dict[str, Any]]:
    """The objects of a manifest of any number of YAML documents; lists are taken apart, empty documents dropped.

    Raises:
        StandInError: it is not YAML, or a document is no Kubernetes object.
    """
    if not isinstance(text, str):
        raise StandInError("kubernetes:yaml:decode: `text` must be a string")
    try:
        found = [one for one in yaml.load_all(text, Loader=_LOADER) if one]
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise StandInError(
            f"the manifest is not YAML: {getattr(fault, 'problem', 'it cannot be read')}{where}"
        ) from None
    objects = [one for document in found for one in _flattened(document)]
    for one in objects:
        if default_namespace and one["kind"] not in CLUSTER_SCOPED:
            one.setdefault("metadata", {}).setdefault("namespace", default_namespace)
    return objects


def construct(
    request: provider_pb2.ConstructRequest, has_cluster: bool, missing: Callable[[str], None]
) -> provider_pb2.ConstructResponse:
    """Registers a ConfigGroup or ConfigFile and, as its children, the objects it holds.

    Args:
        request: The call as it came.
        has_cluster: Whether the cluster exists; without it the component stands alone.
        missing: Told each URL whose objects the sandbox does not have; they are left out.

    Raises:
        StandInError: another component, or a manifest that cannot be read.
    """
    if request.type not in _COMPONENTS:
        raise StandInError(
            f"{request.type}: the sandbox has no charts to render; install a chart as a Release (kubernetes:helm.sh/v3:Release)"
        )
    inputs = plain(request.inputs)
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ]
    with grpc.insecure_channel(request.monitorEndpoint, options=options) as channel:
        monitor = resource_pb2_grpc.ResourceMonitorStub(channel)
        component = _register_component(monitor, request)
        # Where the objects are not known yet, or the cluster is not, the real provider registers none either.
        hidden = contains_unknown([inputs.get("files"), inputs.get("yaml"), inputs.get("file")])
        children = _manifests(inputs, missing) if has_cluster and not hidden else ()
        registered = [_register(monitor, request, component, one, inputs) for one in children]
        outputs = {"resources": registered}
        monitor.RegisterResourceOutputs(
            resource_pb2.RegisterResourceOutputsRequest(urn=component, outputs=encode(outputs))
        )
    return provider_pb2.ConstructResponse(urn=component, state=encode(outputs))


def _manifests(inputs: Mapping[str, Any], missing: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    patterns = [*(inputs.get("files") or ()), *([inputs["file"]] if inputs.get("file") else ())]
    for pattern in patterns:
        if "://" in pattern:
            recorded = downloads.objects(pattern)
            if recorded is None:
                missing(pattern)
            yield from recorded or ()
            continue
        paths = sorted(glob.glob(pattern)) if any(letter in pattern for letter in "*?[") else [pattern]
        for path in paths:
            if not os.path.isfile(path):
                raise StandInError(f"{path}: there is no such manifest")
            yield from decode(Path(path).read_text())
    yield from decode(inputs.get("yaml") or "")
    for one in inputs.get("objs") or ():
        if isinstance(one, Mapping):
            yield from _flattened(dict(one))


def _flattened(document: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise StandInError(
            "a Kubernetes object needs an apiVersion and a kind, and a document of the manifest has not both"
        )
    if str(document["kind"]).endswith("List") and isinstance(document.get("items"), list):
        for one in document["items"]:
            yield from _flattened(one)
    else:
        yield document


def _register_component(monitor: Any, request: provider_pb2.ConstructRequest) -> str:
    answer = monitor.RegisterResource(
        resource_pb2.RegisterResourceRequest(
            type=request.type,
            name=request.name,
            parent=request.parent,
            custom=False,
            object=encode({}),
            protect=request.protect,
            dependencies=request.dependencies,
            providers=request.providers,
            acceptSecrets=True,
            acceptResources=True,
        )
    )
    return answer.urn


def _register(monitor: Any, request: Any, component: str, document: dict[str, Any], inputs: Mapping[str, Any]) -> str:
    metadata = members(document, "metadata")
    name = metadata.get("name")
    if not isinstance(name, str):
        unknown = UNKNOWN in (name, document.get("metadata"))
        raise StandInError(
            f"a {document['kind']} of the manifest has {'a metadata.name that is not known yet' if unknown else 'no metadata.name'}"
        )
    if inputs.get("skipAwait") is True:
        document = {
            **document,
            "metadata": {
                **metadata,
                "annotations": {**members(metadata, "annotations"), "pulumi.com/skipAwait": "true"},
            },
        }
    namespace = metadata.get("namespace")
    version = str(document["apiVersion"])
    answer = monitor.RegisterResource(
        resource_pb2.RegisterResourceRequest(
            type=f"kubernetes:{version if '/' in version else f'core/{version}'}:{document['kind']}",
            name=f"{inputs.get('resourcePrefix') or request.name}:{f'{namespace}/' if isinstance(namespace, str) else ''}{name}",
            parent=component,
            custom=True,
            object=encode(document),
            provider=request.providers.get("kubernetes", ""),
            acceptSecrets=True,
            acceptResources=True,
            supportsPartialValues=True,
        )
    )
    return answer.urn
