"""One Kubernetes object on its way to the cluster: its kind, its name and namespace, and what would be refused of it."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sandbox.kubernetes import fields, kuberay, schemas, syntax
from sandbox.kubernetes.rules import known, members
from sandbox.standin import UNKNOWN, CheckFailure

AUTONAMED: Final = "pulumi.com/autonamed"
"""The annotation by which pulumi-kubernetes remembers that it chose a name (provider/pkg/metadata/naming.go)."""

CLUSTER_SCOPED: Final = frozenset(
    {
        *("APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding"),
        *("ClusterTrustBundle", "CustomResourceDefinition", "DeviceClass", "FlowSchema", "IPAddress", "IngressClass"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace"),
        *("Node", "PersistentVolume", "PriorityClass", "PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass"),
        *("ServiceCIDR", "StorageClass", "StorageVersionMigration", "ValidatingAdmissionPolicy"),
        *(
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ),
        # Karpenter's.
        *("EC2NodeClass", "NodeClaim", "NodePool"),
    }
)
# Objects whose names are path segments, not DNS names.
_PATH_NAMED: Final = frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})
_NAME_RULES: Final = {"Namespace": syntax.label_fault, "Service": syntax.dns_1035_fault}


@dataclass(frozen=True)
class Identity:
    """What a type token says: ``kubernetes:apps/v1:DeploymentPatch`` is a patch of an apps/v1 Deployment."""

    api_version: str
    kind: str
    patch: bool

    @classmethod
    def of(cls, token: str, inputs: Mapping[str, Any]) -> "Identity":
        """Reads the token; a kind ending in Patch is a patch where the inputs name the kind without it."""
        _, group_version, kind = token.split(":", 2)
        patch = inputs.get("kind") == kind.removesuffix("Patch") != kind
        return cls(group_version.removeprefix("core/"), kind.removesuffix("Patch") if patch else kind, patch)


def named(
    identity: Identity, name: str, inputs: Mapping[str, Any], old: Mapping[str, Any] | None, seed: bytes
) -> dict[str, Any]:
    """The inputs with the name and namespace that pulumi-kubernetes fills in where the program gave none."""
    metadata = inputs.get("metadata") or {} if inputs.get("metadata") is not UNKNOWN else UNKNOWN
    if not isinstance(metadata, Mapping):
        return dict(inputs)
    metadata = dict(metadata)
    if metadata.get("name") is None and metadata.get("generateName") is None and not identity.patch:
        annotations = metadata.get("annotations") or {} if metadata.get("annotations") is not UNKNOWN else UNKNOWN
        metadata["name"] = _old_name(old) or f"{name}-{_hex(seed)}"
        if isinstance(annotations, Mapping):
            metadata["annotations"] = {**annotations, AUTONAMED: "true"}
    if identity.kind not in CLUSTER_SCOPED and metadata.get("namespace") is None and not identity.kind.endswith("List"):
        metadata["namespace"] = "default"
    return {**inputs, "metadata": metadata}


def autonamed(inputs: Mapping[str, Any]) -> bool:
    """Whether pulumi-kubernetes chose the object's name."""
    return members(members(inputs, "metadata"), "annotations").get(AUTONAMED) == "true"


def judge(identity: Identity, inputs: Mapping[str, Any]) -> Iterator[CheckFailure]:
    """Yields what the API server, and for its own kinds the KubeRay operator, refuses."""
    for field, wanted in (("apiVersion", identity.api_version), ("kind", identity.kind)):
        if inputs.get(field) not in (wanted, UNKNOWN):
            yield CheckFailure(field, f"must be {wanted}, as the resource's type says")
            return
    kind = schemas.find(identity.api_version, identity.kind)
    if kind is not None:
        yield from fields.judge(dict(inputs), kind.schema, partial=identity.patch)
    elif fault := _no_such_kind(identity):
        yield CheckFailure("kind", fault)
    else:
        metadata = {"$ref": f"#/$defs/{schemas.OBJECT_META}"}
        yield from fields.judge(inputs.get("metadata"), metadata, "metadata", partial=identity.patch)
    yield from _name(identity, inputs)
    if kind is not None and kind.custom and not identity.patch:
        yield from (
            CheckFailure(fields.join("", fault.path), fault.reason) for fault in kuberay.judge(identity.kind, inputs)
        )


def taken_on_trust(identity: Identity) -> bool:
    """Whether the kind comes from somebody's CustomResourceDefinition that the sandbox does not have."""
    return schemas.find(identity.api_version, identity.kind) is None and not _no_such_kind(identity)


def _name(identity: Identity, inputs: Mapping[str, Any]) -> Iterator[CheckFailure]:
    metadata = members(inputs, "metadata")
    name = known(metadata, "name")
    if identity.patch and metadata.get("name") is None and inputs.get("metadata") is not UNKNOWN:
        yield CheckFailure("metadata.name", f"a patch needs the name of the {identity.kind} that it changes")
    if isinstance(name, str) and (fault := _name_rule(identity)(name)):
        hint = "; the name was made from the resource's own, so give it a metadata.name" if autonamed(inputs) else ""
        yield CheckFailure("metadata.name", fault + hint)
    namespace = known(metadata, "namespace")
    if isinstance(namespace, str) and (fault := syntax.label_fault(namespace)):
        yield CheckFailure("metadata.namespace", fault)


def _name_rule(identity: Identity) -> Callable[[str], str]:
    # KubeRay's kinds have rules of their own, which are stricter.
    if identity.kind in _PATH_NAMED or identity.api_version.startswith("ray.io/"):
        return lambda name: ""
    return _NAME_RULES.get(identity.kind, syntax.subdomain_fault)


def _no_such_kind(identity: Identity) -> str:
    groups = schemas.built_in_groups()
    if identity.api_version in groups:
        return f"{identity.api_version} has no kind {identity.kind} in Kubernetes {schemas.KUBERNETES}{schemas.near(identity.api_version, identity.kind)}"
    if identity.api_version.startswith("ray.io/"):
        return f"KubeRay has no kind {identity.kind} in {identity.api_version}{schemas.near(identity.api_version, identity.kind)}"
    group, _, _ = identity.api_version.rpartition("/")
    versions = sorted(one for one in groups if one.rpartition("/")[0] == group)
    if versions:
        return f"Kubernetes {schemas.KUBERNETES} has no {identity.api_version}: it serves {', '.join(versions)}"
    return ""


def _old_name(old: Mapping[str, Any] | None) -> str | None:
    return known(members(old, "metadata"), "name") if old and autonamed(old) else None


def _hex(seed: bytes) -> str:
    return hashlib.sha256(seed or os.urandom(16)).hexdigest()[:8]
