"""Helm releases: names kept and counted, no chart rendered.

Only the KubeRay operator's waits, for a node that takes its pod: a DaemonSet that finds no node is ready with no pod.
"""

from collections.abc import Mapping
from typing import Any, Final

from sandbox.kubernetes.rules import members
from sandbox.kubernetes.server import RELEASE_GROUP, RELEASE_KIND, Server, is_operator
from sandbox.kubernetes.store import Key
from sandbox.standin import InitFailed, StandInError

_API_VERSION: Final = f"{RELEASE_GROUP}/v3"
_OF_THE_STORE: Final = ("apiVersion", "kind", "metadata")


def create(server: Server, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Installs a release; returns Pulumi's id and the outputs.

    Raises:
        StandInError: its namespace is not there, or a release of its name is; or no node takes its pods in time, and it is
            atomic.
        InitFailed: no node takes its pods in time.
    """
    key = _key(inputs["namespace"], inputs["name"])
    if not server.has_namespace(key.namespace):
        if not inputs.get("createNamespace"):
            raise StandInError(f'create: failed to create: namespaces "{key.namespace}" not found')
        server.store.put(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace, "generation": 1}}
        )
    if server.store.get(key) is not None and not inputs.get("replace"):
        raise StandInError("cannot re-use a name that is still in use")
    if is_operator(inputs) and not inputs.get("skipAwait") and not server.finds_node(members(inputs, "values")):
        # helm v3.18.6, pkg/action/install.go and pkg/kube/wait.go.
        if inputs.get("atomic"):
            raise StandInError(
                f"release {key.name} failed, and has been uninstalled due to atomic being set: context deadline exceeded"
            )
        kept = _kept(server, key, inputs, revision=1)
        raise InitFailed(key.id, inputs, kept, [f'Helm release "{key.id}" failed: context deadline exceeded'])
    return key.id, _kept(server, key, inputs, revision=1)


def read(server: Server, id: str) -> dict[str, Any] | None:
    """The outputs of a release, or None when Helm does not know it."""
    namespace, _, name = id.rpartition("/")
    found = server.store.get(_key(namespace, name))
    return {field: value for field, value in found.items() if field not in _OF_THE_STORE} if found else None


def update(server: Server, inputs: dict[str, Any]) -> dict[str, Any]:
    """Upgrades a release.

    Raises:
        StandInError: Helm does not know it.
    """
    key = _key(inputs["namespace"], inputs["name"])
    found = server.store.get(key)
    if found is None:
        raise StandInError(f'"{key.name}" has no deployed releases')
    return _kept(server, key, inputs, revision=found["status"]["revision"] + 1)


def delete(server: Server, id: str) -> None:
    """Uninstalls a release.

    Raises:
        StandInError: Helm does not know it; `pulumi refresh` takes it out of the state (pulumi-kubernetes does not pass
            Helm's IgnoreNotFound; provider/pkg/provider/helm_release.go).
    """
    namespace, _, name = id.rpartition("/")
    key = _key(namespace, name)
    if server.store.get(key) is None:
        raise StandInError(f"uninstall: Release not loaded: {name}: release: not found")
    server.store.remove(key)


def _kept(server: Server, key: Key, inputs: Mapping[str, Any], revision: int) -> dict[str, Any]:
    status = {
        "name": key.name,
        "namespace": key.namespace,
        "revision": revision,
        "status": "deployed",
        "chart": str(inputs["chart"]).rpartition("/")[2],
        "version": inputs.get("version") or "",
        "appVersion": "",
    }
    outputs = {**inputs, "status": status, "resourceNames": {}}
    metadata = {"name": key.name, "namespace": key.namespace}
    server.store.put({**outputs, "apiVersion": _API_VERSION, "kind": RELEASE_KIND, "metadata": metadata})
    return outputs


def _key(namespace: str, name: str) -> Key:
    return Key(RELEASE_GROUP, RELEASE_KIND, namespace, name)
