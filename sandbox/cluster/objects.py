"""What Pulumi and Helm have made in a real cluster, in the terms of an inventory, and how it is taken away."""

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.processes import wait_for
from sandbox.inventory import Item
from sandbox.standin import StandInError

# The plugin's field manager begins so (pulumi/pulumi-kubernetes, provider/pkg/provider/provider.go); Helm inside it is another.
_MANAGER: Final = "pulumi-kubernetes"
_RELEASE: Final = "kubernetes:helm.sh/v3:Release"
_RELEASE_NOTE: Final = "helm.sh/release.v1"
_GONE_SECONDS: Final = 30.0


def inventory(api: Api, cluster: str) -> list[Item]:
    """Everything that Pulumi's plugin has made in a cluster, releases included."""
    found = [
        _item(one, version, kind, cluster)
        for version, kind, path in _collections(api)
        for one in api.items(path)
        if _is_pulumis(one)
    ]
    return sorted([*found, *_releases(api, cluster)], key=lambda one: (one.kind, one.id))


def remove(api: Api, item: Item) -> None:
    """Deletes an object, or a release with all that it had made, and waits until it is gone.

    Raises:
        StandInError: It does not go, or the API server refuses.
    """
    try:
        if item.made_by == _RELEASE:
            _uninstall(api, item.id)
            return
        path = path_of(api, _version_of(item.made_by), item.kind, item.id)
        api.delete(path, propagationPolicy="Foreground")
        if not wait_for(lambda: api.find(path) is None, _GONE_SECONDS, 0.3):
            raise StandInError(f"{item.kind} {item.id} does not go: {_held_by(api.find(path))}")
    except Refusal as refusal:
        raise StandInError(str(refusal)) from refusal


def _uninstall(api: Api, id: str) -> None:
    namespace, _, name = id.rpartition("/")
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for secret in api.items(path, labelSelector=f"owner=helm,name={name}"):
        release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
        for document in yaml.safe_load_all(release.get("manifest") or ""):
            if document:
                metadata = document["metadata"]
                id = f"{metadata.get('namespace', namespace)}/{metadata['name']}"
                api.delete(path_of(api, document["apiVersion"], document["kind"], id))
        api.delete(f"{path}/{secret['metadata']['name']}")


def _releases(api: Api, cluster: str) -> Iterator[Item]:
    # Helm keeps each revision in a Secret of its own.
    ids = {
        f"{secret['metadata']['namespace']}/{secret['metadata']['labels']['name']}"
        for secret in api.items("/api/v1/secrets", labelSelector="owner=helm")
    }
    for id in sorted(ids):
        yield Item(kind="Release", id=id, name=id, tags={}, parent_id=cluster, made_by=_RELEASE)


def _collections(api: Api) -> Iterator[tuple[str, str, str]]:
    """(apiVersion, kind, path) of everything that can be listed and deleted, each in its preferred version."""
    versions = ["v1", *(one["preferredVersion"]["groupVersion"] for one in api.get("/apis")["groups"])]
    for version in versions:
        for one in api.get(_root(version))["resources"]:
            if "/" not in one["name"] and {"list", "delete"} <= set(one["verbs"]):
                yield version, one["kind"], f"{_root(version)}/{one['name']}"


def path_of(api: Api, version: str, kind: str, id: str) -> str:
    """The path of an object by Pulumi's id of it.

    Raises:
        Refusal: There is no such kind.
    """
    namespace, _, name = id.rpartition("/")
    for one in api.get(_root(version))["resources"]:
        if one["kind"] == kind and "/" not in one["name"]:
            inside = f"/namespaces/{namespace}" if one["namespaced"] else ""
            return f"{_root(version)}{inside}/{one['name']}/{name}"
    raise Refusal(404, f"the API server has no {version} {kind}")


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _version_of(token: str) -> str:
    """``v1`` of ``kubernetes:core/v1:Namespace``, ``ray.io/v1`` of ``kubernetes:ray.io/v1:RayService``."""
    version = token.split(":")[1]
    return version.removeprefix("core/")


def _is_pulumis(one: Mapping[str, Any]) -> bool:
    # Helm runs inside the plugin and goes by its name; its notes are not objects of the program.
    if one.get("type") == _RELEASE_NOTE:
        return False
    managers = one["metadata"].get("managedFields") or ()
    return any(entry.get("manager", "").startswith(_MANAGER) for entry in managers)


def _item(one: Mapping[str, Any], version: str, kind: str, cluster: str) -> Item:
    metadata = one["metadata"]
    namespace = metadata.get("namespace")
    return Item(
        kind=kind,
        id=f"{namespace}/{metadata['name']}" if namespace else metadata["name"],
        name=metadata["name"],
        tags=metadata.get("labels") or {},
        parent_id=cluster,
        made_by=f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}",
    )


def _held_by(one: Mapping[str, Any] | None) -> str:
    finalizers = one["metadata"].get("finalizers") if one else None
    return f"held by {', '.join(finalizers)}" if finalizers else "it is still there"
