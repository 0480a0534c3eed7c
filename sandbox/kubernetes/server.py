"""What an API server and its controllers do with an object, as far as a program notices: an echo that keeps order.

Objects are kept and given back; nothing runs. What is awaited on a real cluster is there at once: a RayService is Ready as
soon as there is an operator that could have made it so, and its status says that nothing was started. A Secret keeps the
``stringData`` it was given (the API server would turn it into ``data``), so that what was secret stays marked as such.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sandbox.kubernetes import schemas
from sandbox.kubernetes.kuberay import pods_of
from sandbox.kubernetes.objects import Identity
from sandbox.kubernetes.rules import entries, members
from sandbox.kubernetes.scheduling import homeless
from sandbox.kubernetes.store import Key, Store
from sandbox.nodes import Node
from sandbox.standin import InitFailed, StandInError

RELEASE_KIND: Final = "Release"
RELEASE_GROUP: Final = "helm.sh"
"""Helm keeps a release in a Secret of its namespace; here it is an object of a kind of its own."""

_OPERATOR_CHART: Final = "kuberay-operator"
# Without these a node has no such resource to give.
_PLUGINS: Final = {
    "nvidia.com/gpu": "nvidia-device-plugin",
    "vpc.amazonaws.com/efa": "aws-efa-k8s-device-plugin",
}
_GIVEN_NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
_TIMED_OUT: Final = "timed out waiting for the condition"
_WAIT_FOR: Final = "pulumi.com/waitFor"
_ECHO: Final = "The sandbox starts nothing: this object is kept and given back"
# ray-operator/controllers/ray/utils/constant.go of ray-project/kuberay v1.6.0. The operator alone takes them off again.
_REDIS_FINALIZER: Final = "ray.io/gcs-ft-redis-cleanup-finalizer"
_JOB_FINALIZER: Final = "ray.io/rayjob-finalizer"
_OF_THE_SERVER: Final = ("uid", "creationTimestamp", "generation")


class Server:
    """One cluster.

    Args:
        store: its objects.
        patience_seconds: how long a create waits for a namespace, a CRD or an operator that is not there yet.
            pulumi-kubernetes tries six times in a minute (provider/pkg/await/await.go, provider/pkg/retry).
        pause: waits so many seconds and lets other calls through meanwhile.
        nodes: asks for the cluster's nodes.
    """

    def __init__(
        self,
        store: Store,
        patience_seconds: float,
        pause: Callable[[float], object],
        nodes: Callable[[], Sequence[Node]],
    ) -> None:
        self.store = store
        self._patience = patience_seconds
        self._pause = pause
        self._nodes = nodes

    def create(
        self, urn: str, identity: Identity, inputs: dict[str, Any], *, upsert: bool
    ) -> tuple[str, dict[str, Any]]:
        """Keeps an object; returns Pulumi's id and the live object.

        Raises:
            StandInError: no such kind or namespace, or an object of this name is there already.
            InitFailed: it was made, and what the program waits for does not come.
        """
        key = Key.of(inputs)
        not_created = f'resource "{urn}" was not successfully created by the Kubernetes API server: '
        if not self._comes(lambda: self._knows(identity)):
            raise StandInError(
                f'creation of resource "{urn}" with kind {identity.api_version}/{identity.kind} failed because the Kubernetes'
                " API server reported that the apiVersion for this resource does not exist. Verify that any required CRDs"
                f' have been created: no matches for kind "{identity.kind}" in version "{identity.api_version}"'
            )
        if not self._comes(lambda: self.has_namespace(key.namespace)):
            raise StandInError(f'{not_created}namespaces "{key.namespace}" not found')
        found = self.store.get(key)
        if identity.patch:
            return key.id, self.store.put(_merged(found, inputs)) if found else dict(inputs)
        if found is not None and not upsert:
            raise StandInError(
                f"{not_created}{_qualified(key)} already exists. Import it (`pulumi import`), change it with a patch resource,"
                " or delete it"
            )
        live = self.store.put(_live(identity, inputs, found))
        if _awaits_ready(inputs) and _is_ray(identity) and not self._comes(lambda: not self._lacks(inputs)):
            reason = (
                f'resource "{urn}" was successfully created, but the Kubernetes API server reported that it failed to'
                f" fully initialize or become live: {_TIMED_OUT} ({self._lacks(inputs)})"
            )
            raise InitFailed(key.id, inputs, live, [reason])
        return key.id, self._settled(identity, live)

    def read(self, identity: Identity, id: str) -> dict[str, Any] | None:
        """The live object of a Pulumi id."""
        namespace, _, name = id.rpartition("/")
        return self.store.get(Key(_group(identity), identity.kind, namespace, name))

    def update(self, urn: str, identity: Identity, inputs: dict[str, Any]) -> dict[str, Any]:
        """Keeps new inputs in place of the old ones.

        Raises:
            StandInError: the object is gone.
        """
        key = Key.of(inputs)
        found = self.store.get(key)
        if identity.patch:
            return self.store.put(_merged(found, inputs)) if found else dict(inputs)
        if found is None:
            raise StandInError(f'update of resource "{urn}" failed: {_qualified(key)} not found')
        return self._settled(identity, self.store.put(_live(identity, inputs, found)))

    def delete(self, identity: Identity, id: str) -> None:
        """Removes an object and what goes with it. One that is gone already is no fault.

        Raises:
            StandInError: a finalizer holds it whose controller is gone.
        """
        live = self.read(identity, id)
        if live is None or identity.patch:
            return
        key = Key.of(live)
        going = [live, *self._goes_with(key, live)]
        held = sorted({finalizer for one in going for finalizer in self._held_by(one)})
        if held:
            self.store.put(
                {**live, "metadata": {**live["metadata"], "deletionTimestamp": live["metadata"]["creationTimestamp"]}}
            )
            raise StandInError(f"finalizers might be preventing deletion ({', '.join(held)}): {_TIMED_OUT}")
        for one in going:
            self.store.remove(Key.of(one))

    def _settled(self, identity: Identity, live: dict[str, Any]) -> dict[str, Any]:
        """The object once its controllers have seen it."""
        status: dict[str, Any] = {}
        if identity.kind == "Namespace":
            status = {"phase": "Active"}
        elif _is_ray(identity) and self._has_operator():
            ready = {
                "type": "Ready",
                "status": "True",
                "reason": "Sandbox",
                "message": _ECHO,
                "lastTransitionTime": live["metadata"]["creationTimestamp"],
            }
            status = {"conditions": [ready], "observedGeneration": live["metadata"]["generation"]}
        return live if live.get("status", {}) == status else self.store.put({**live, "status": status})

    def _goes_with(self, key: Key, live: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for one in self.store.all():
            other = Key.of(one)
            inside = key.kind == "Namespace" and not key.group and other.namespace == key.name
            names = members(live, "spec").get("names") or {} if key.kind == "CustomResourceDefinition" else {}
            of_the_kind = (other.group, other.kind) == (members(live, "spec").get("group"), names.get("kind"))
            if inside or of_the_kind:
                yield one

    def _held_by(self, live: Mapping[str, Any]) -> Iterator[str]:
        if not self._has_operator():
            yield from live["metadata"].get("finalizers") or ()

    def _knows(self, identity: Identity) -> bool:
        kind = schemas.find(identity.api_version, identity.kind)
        if kind is None or not kind.custom:
            return True
        group = _group(identity)
        for one in self.store.all():
            if one["kind"] == "CustomResourceDefinition":
                spec = one["spec"]
                if spec["group"] == group and spec["names"]["kind"] == identity.kind:
                    return True
            if one["kind"] == RELEASE_KIND and is_operator(one) and not one.get("skipCrds"):
                return True
        return False

    def _has_operator(self) -> bool:
        return self._has_release(_OPERATOR_CHART)

    def _has_release(self, chart: str) -> bool:
        return any(one["kind"] == RELEASE_KIND and _is_of(one, chart) for one in self.store.all())

    def _lacks(self, inputs: Mapping[str, Any]) -> str:
        """What keeps the pods of a Ray object from running; empty when nothing does."""
        if not self._has_operator():
            return "no KubeRay operator is installed"
        pods = pods_of(inputs)
        for resource, chart in _PLUGINS.items():
            if any(_asks_for(pod, resource) for pod in pods) and not self._has_release(chart):
                return f"Insufficient {resource}: {chart} is not installed"
        return "its pods are Pending: no node takes them" if homeless(pods, self._nodes()) else ""

    def finds_node(self, pod: Mapping[str, Any]) -> bool:
        """Whether a node that takes such a pod comes in time."""
        return self._comes(lambda: not homeless([pod], self._nodes()))

    def has_namespace(self, namespace: str) -> bool:
        """Whether objects can be made in a namespace; "" stands for none."""
        if not namespace or namespace in _GIVEN_NAMESPACES:
            return True
        return self.store.get(Key("", "Namespace", "", namespace)) is not None

    def _comes(self, condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + self._patience
        while not condition():
            if time.monotonic() >= end:
                return False
            self._pause(0.1)
        return True


def _live(identity: Identity, inputs: Mapping[str, Any], found: Mapping[str, Any] | None) -> dict[str, Any]:
    before = found["metadata"] if found else {}
    kept = {field: before[field] for field in _OF_THE_SERVER if field in before}
    changed = found is not None and any(inputs.get(field) != found.get(field) for field in ("spec", "data"))
    generation = kept.get("generation", 0) + 1 if found is None or changed else kept["generation"]
    metadata = {**inputs["metadata"], **kept, "generation": generation}
    if finalizers := _finalizers(identity, inputs):
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), *finalizers]
    status = {"status": found["status"]} if found and "status" in found else {}
    return {**inputs, "metadata": metadata, **status}


def _merged(found: Mapping[str, Any] | None, patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(found or {})
    for field, value in patch.items():
        before = merged.get(field)
        merged[field] = _merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return merged


def _finalizers(identity: Identity, inputs: Mapping[str, Any]) -> list[str]:
    if not _is_ray(identity):
        return []
    spec = members(inputs, "spec")
    cluster = (
        spec if identity.kind == "RayCluster" else members(spec, "rayClusterConfig") or members(spec, "rayClusterSpec")
    )
    tolerant = "gcsFaultToleranceOptions" in cluster
    annotated = members(members(inputs, "metadata"), "annotations").get("ray.io/ft-enabled") == "true"
    redis = [_REDIS_FINALIZER] if tolerant or annotated else []
    return [*redis, *([_JOB_FINALIZER] if identity.kind == "RayJob" else [])]


def _asks_for(pod: Mapping[str, Any], resource: str) -> bool:
    containers = [one for _, one in entries(pod, "containers")]
    return any(resource in members(members(one, "resources"), "limits") for one in containers)


def _awaits_ready(inputs: Mapping[str, Any]) -> bool:
    return _WAIT_FOR in members(members(inputs, "metadata"), "annotations")


def _is_ray(identity: Identity) -> bool:
    return identity.api_version.startswith("ray.io/")


def is_operator(release: Mapping[str, Any]) -> bool:
    """Whether a release is the KubeRay operator's."""
    return _is_of(release, _OPERATOR_CHART)


def _is_of(release: Mapping[str, Any], chart: str) -> bool:
    return str(release.get("chart", "")).rpartition("/")[2] == chart


def _group(identity: Identity) -> str:
    group, slash, _ = identity.api_version.rpartition("/")
    return group if slash else ""


def _qualified(key: Key) -> str:
    lower = key.kind.lower()
    if lower.endswith("s"):
        plural = f"{lower}es"
    elif lower.endswith("y"):
        plural = f"{lower[:-1]}ies"
    else:
        plural = f"{lower}s"
    return f'{plural}{f".{key.group}" if key.group else ""} "{key.name}"'
