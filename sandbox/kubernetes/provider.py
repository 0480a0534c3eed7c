"""The stand-in for pulumi-kubernetes: objects judged as a strict API server judges them, in the preview already."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pulumi.runtime.proto import provider_pb2
from typing_extensions import override

from sandbox.kubernetes import arguments, documents, objects
from sandbox.kubernetes.objects import Identity
from sandbox.kubernetes.replacements import changes, difference
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

_NOT_YET = "`up` is not simulated yet: the sandbox has no cluster to apply this to"
_NO_CLUSTER_YET = "the sandbox's: no cluster yet"
# A release of another name or namespace is another release (provider/pkg/provider/helm_release.go).
_RELEASE_REPLACES = ("name", "namespace")


class Kubernetes(StandIn):
    """Kubernetes without a cluster: schemas of its own kinds and of KubeRay's, names filled in, nothing applied."""

    package = "kubernetes"

    def __init__(self) -> None:
        self._mutable: frozenset[str] = frozenset()
        self._has_cluster = True
        self._remarks: set[str] = set()
        self._lock = threading.Lock()

    @property
    def remarks(self) -> Sequence[str]:
        """What the sandbox could not judge so far, sorted: kinds it has no schema for, manifests it does not fetch."""
        with self._lock:
            return sorted(self._remarks)

    @override
    def configure(self, config: Mapping[str, Any]) -> None:
        self._has_cluster = _NO_CLUSTER_YET not in config.values()
        switches = {"ConfigMap": "enableConfigMapMutable", "Secret": "enableSecretMutable"}
        self._mutable = frozenset(kind for kind, key in switches.items() if config.get(key) in (True, "true"))

    @override
    def check_config(self, inputs: Mapping[str, Any]) -> Sequence[CheckFailure]:
        return arguments.provider(inputs)

    @override
    def settle_config(self, inputs: dict[str, Any]) -> dict[str, Any]:
        # Schemas need no cluster: judged with this in its place, a first preview finds faults that a real one leaves to `up`.
        # Outputs and a component's children it has none, as for real.
        return {key: _NO_CLUSTER_YET if contains_unknown(value) else value for key, value in inputs.items()}

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
        return difference(Identity.of(ref.token, new_inputs), old_inputs, new_inputs, self._mutable)

    @override
    def create(self, ref: ResourceRef, inputs: dict[str, Any], preview: bool) -> tuple[str, dict[str, Any]]:
        if not preview:
            raise StandInError(_NOT_YET)
        return "", self._outputs(ref, inputs)

    @override
    def read(
        self, ref: ResourceRef, id: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
        raise StandInError(f"{ref.name}: the sandbox has no cluster to read {id} from")

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
        if not preview:
            raise StandInError(_NOT_YET)
        return self._outputs(ref, new_inputs)

    @override
    def delete(self, ref: ResourceRef, id: str, old_inputs: dict[str, Any], old_outputs: dict[str, Any]) -> None:
        raise StandInError("`destroy` is not simulated yet: the sandbox has no cluster to delete this from")

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
            request, has_cluster=self._has_cluster, missing=lambda url: self._remark(f"not fetched: {url}")
        )

    def _outputs(self, ref: ResourceRef, inputs: dict[str, Any]) -> dict[str, Any]:
        if not self._has_cluster:
            return {}
        if ref.token == arguments.RELEASE:
            return {**inputs, "status": UNKNOWN, "resourceNames": UNKNOWN, "manifest": UNKNOWN}
        return {**inputs, "status": UNKNOWN}

    def _remark(self, text: str) -> None:
        with self._lock:
            self._remarks.add(text)
