"""The stand-in for pulumi-kubernetes: objects judged as a strict API server judges them, in the preview already, and echoed."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pulumi.runtime.proto import provider_pb2
from typing_extensions import override

from sandbox.calls import CURRENT
from sandbox.inventory import Item
from sandbox.kubernetes import arguments, clusters, documents, objects, releases
from sandbox.kubernetes.objects import Identity
from sandbox.kubernetes.replacements import changes, difference
from sandbox.kubernetes.server import Server
from sandbox.kubernetes.store import Key, Store
from sandbox.nodes import Node, Nodes
from sandbox.standin import (
    UNKNOWN,
    Checked,
    CheckFailure,
    Difference,
    ResourceRef,
    StandIn,
    StandInError,
    contains_unknown,
)

# A release of another name or namespace is another release (provider/pkg/provider/helm_release.go).
_RELEASE_REPLACES = ("name", "namespace")


_OUTPUTS_ONLY: Final = ("status", "resourceNames")
_METADATA_OF_THE_SERVER: Final = ("creationTimestamp", "generation", "resourceVersion", "uid")
_PATIENCE_SECONDS: Final = 3.0


class Kubernetes(StandIn):
    """Kubernetes without a node: schemas of its own kinds and of KubeRay's, names filled in, objects kept and given back.

    Args:
        folder: where the objects of all clusters are kept; needed for more than previews.
        existing: asks AWS which clusters there are.
        nodes: asks AWS for the nodes of one.
        patience_seconds: stands for the minute in which pulumi-kubernetes tries a create again.
    """

    package = "kubernetes"

    def __init__(
        self,
        folder: Path | None = None,
        existing: clusters.Clusters = lambda: {},
        nodes: Nodes = lambda _: (),
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._folder = folder
        self._existing = existing
        self._nodes = nodes
        self._patience = patience_seconds
        self._connections: dict[str, clusters.Connection] = {}
        self._remarks: set[str] = set()
        self._lock = threading.Lock()
        self._turn = threading.Condition()

    @property
    def remarks(self) -> Sequence[str]:
        """What the sandbox could not judge so far, sorted: kinds it has no schema for, manifests it does not fetch."""
        with self._lock:
            return sorted(self._remarks)

    @override
    def configure(self, config: Mapping[str, Any]) -> None:
        self._connections[CURRENT.get().connection] = clusters.connection(config)

    @override
    def check_config(self, inputs: Mapping[str, Any]) -> Sequence[CheckFailure]:
        return arguments.provider(inputs)

    @override
    def settle_config(self, inputs: dict[str, Any]) -> dict[str, Any]:
        # Schemas need no cluster: judged with this in its place, a first preview finds faults that a real one leaves to `up`.
        # Outputs and a component's children it has none, as for real.
        return {key: clusters.NOT_YET if contains_unknown(value) else value for key, value in inputs.items()}

    @override
    def check(
        self, ref: ResourceRef, inputs: dict[str, Any], old_inputs: dict[str, Any] | None, random_seed: bytes
    ) -> Checked:
        if ref.token == arguments.RELEASE:
            return Checked(*arguments.release(ref.name, inputs, old_inputs, random_seed))
        identity = Identity.of(ref.token, inputs)
        inputs = objects.named(identity, ref.name, inputs, old_inputs, random_seed)
        if objects.taken_on_trust(identity):
            self._remark(f"not validated: {identity.api_version}/{identity.kind}")
        return Checked(inputs, list(objects.judge(identity, inputs)))

    @override
    def diff(
        self,
        ref: ResourceRef,
        id: str,
        old_inputs: dict[str, Any],
        old_outputs: dict[str, Any],
        new_inputs: dict[str, Any],
    ) -> Difference:
        if ref.token == arguments.RELEASE:
            changed = sorted(changes(old_inputs, new_inputs))
            return Difference(changed, [path for path in changed if path in _RELEASE_REPLACES])
        return difference(Identity.of(ref.token, new_inputs), old_inputs, new_inputs, self._connection.mutable)

    @override
    def create(self, ref: ResourceRef, inputs: dict[str, Any], preview: bool) -> tuple[str, dict[str, Any]]:
        if preview:
            return "", self._outputs(ref, inputs)
        with self._server("create", ref) as server:
            if ref.token == arguments.RELEASE:
                return releases.create(server, inputs)
            identity = Identity.of(ref.token, inputs)
            return server.create(ref.urn, identity, inputs, upsert=self._connection.upserts)

    @override
    def read(
        self, ref: ResourceRef, id: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
        if self._connection.forgets and self._unreachable():
            return None
        with self._server("read", ref) as server:
            if ref.token == arguments.RELEASE:
                found = releases.read(server, id)
                known = inputs or {key: value for key, value in (found or {}).items() if key not in _OUTPUTS_ONLY}
            else:
                found = server.read(Identity.of(ref.token, inputs), id)
                known = inputs or _importable(found or {})
        return None if found is None else (id, _pruned(found, known), found)

    @override
    def update(
        self,
        ref: ResourceRef,
        id: str,
        old_inputs: dict[str, Any],
        old_outputs: dict[str, Any],
        new_inputs: dict[str, Any],
        preview: bool,
    ) -> dict[str, Any]:
        if preview:
            return self._outputs(ref, new_inputs)
        with self._server("update", ref) as server:
            if ref.token == arguments.RELEASE:
                return releases.update(server, new_inputs)
            return server.update(ref.urn, Identity.of(ref.token, new_inputs), new_inputs)

    @override
    def delete(self, ref: ResourceRef, id: str, old_inputs: dict[str, Any], old_outputs: dict[str, Any]) -> None:
        is_release = ref.token == arguments.RELEASE
        if not is_release and self._connection.forgets and self._unreachable():
            return
        with self._server("delete", ref) as server:
            if is_release:
                releases.delete(server, id)
            else:
                server.delete(Identity.of(ref.token, old_inputs), id)

    @override
    def invoke(self, token: str, args: dict[str, Any]) -> dict[str, Any]:
        if token == "kubernetes:yaml:decode":
            return {"result": documents.decode(args.get("text"), args.get("defaultNamespace"))}
        if token in ("kubernetes:helm:template", "kubernetes:kustomize:directory"):
            raise StandInError(
                f"{token}: the sandbox has no charts to render; install a chart as a Release (kubernetes:helm.sh/v3:Release)"
            )
        raise StandInError(f"{token}: pulumi-kubernetes has no such function")

    @override
    def construct(self, request: provider_pb2.ConstructRequest) -> provider_pb2.ConstructResponse:
        return documents.construct(
            request, has_cluster=self._connection.has_cluster, missing=lambda url: self._remark(f"not fetched: {url}")
        )

    def _outputs(self, ref: ResourceRef, inputs: dict[str, Any]) -> dict[str, Any]:
        if not self._connection.has_cluster:
            return {}
        if ref.token == arguments.RELEASE:
            return {**inputs, "status": UNKNOWN, "resourceNames": UNKNOWN, "manifest": UNKNOWN}
        return {**inputs, "status": UNKNOWN}

    def inventory(self) -> list[Item]:
        """Every object of every cluster that exists, sorted."""
        found: list[Item] = []
        with self._turn:
            for endpoint, name in self._existing().items():
                for one in self._store(endpoint).all():
                    found.append(_item(one, name))
        return sorted(found, key=lambda one: (one.parent_id or "", one.kind, one.id))

    def remove(self, item: Item) -> None:
        """Deletes an object as its provider would.

        Raises:
            StandInError: the cluster is gone, or the object cannot be deleted.
        """
        endpoint = next(endpoint for endpoint, name in self._existing().items() if name == item.parent_id)
        with self._turn:
            server = self._server_of(endpoint)
            if item.made_by == arguments.RELEASE:
                releases.delete(server, item.id)
            else:
                server.delete(Identity.of(item.made_by, {}), item.id)

    @property
    def _connection(self) -> clusters.Connection:
        return self._connections.get(CURRENT.get().connection, clusters.Connection())

    def _unreachable(self) -> str:
        return clusters.unreachable(self._connection.endpoint, self._existing())

    @contextmanager
    def _server(self, operation: str, ref: ResourceRef) -> Iterator[Server]:
        clusters.refuse(self._unreachable(), operation, release=ref.token == arguments.RELEASE)
        with self._turn:
            yield self._server_of(self._connection.endpoint)

    def _server_of(self, endpoint: str) -> Server:
        def nodes() -> list[Node]:
            host = clusters.host_of(endpoint)
            names = [name for one, name in self._existing().items() if clusters.host_of(one) == host]
            return [node for name in names for node in self._nodes(name)]

        return Server(self._store(endpoint), self._patience, self._turn.wait, nodes)

    def _store(self, endpoint: str) -> Store:
        assert self._folder is not None, "a stand-in that only previews has no clusters"
        return Store(self._folder / clusters.host_of(endpoint))

    def _remark(self, text: str) -> None:
        with self._lock:
            self._remarks.add(text)


def _item(live: Mapping[str, Any], cluster: str) -> Item:
    key = Key.of(live)
    version = str(live["apiVersion"])
    return Item(
        kind=key.kind,
        id=key.id,
        name=key.name,
        tags=live["metadata"].get("labels") or {},
        parent_id=cluster,
        made_by=f"kubernetes:{version if '/' in version else f'core/{version}'}:{key.kind}",
    )


def _pruned(live: Any, wanted: Any) -> Any:
    """Of a live object what the program has an opinion on (provider/pkg/provider/util.go, pruneMap)."""
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        return {key: _pruned(live[key], value) for key, value in wanted.items() if key in live}
    if isinstance(live, list) and isinstance(wanted, list) and len(live) == len(wanted):
        return [_pruned(one, other) for one, other in zip(live, wanted, strict=True)]
    return live


def _importable(live: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in live.get("metadata", {}).items() if key not in _METADATA_OF_THE_SERVER}
    return {key: value for key, value in {**live, "metadata": metadata}.items() if key != "status"}
