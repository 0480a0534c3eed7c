"""Which changes of an object make Pulumi replace it instead of updating it.

The table restates ``forceNew`` of pulumi/pulumi-kubernetes, provider/pkg/provider/diff.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sandbox.kubernetes.fields import join
from sandbox.kubernetes.objects import Identity, autonamed
from sandbox.kubernetes.rules import known, members
from sandbox.standin import Difference

_EVERY_KIND: Final = ("metadata.name", "metadata.namespace")
_SELECTOR: Final = ("spec.selector",)
_IN_PLACE_OF_A_POD: Final = ("spec.activeDeadlineSeconds", "spec.tolerations", "spec.topologySpreadConstraints")
_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "ClusterRoleBinding": ("roleRef",),
    "ConfigMap": ("binaryData", "data"),
    "DaemonSet": _SELECTOR,
    "Deployment": _SELECTOR,
    "Job": ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    "PersistentVolumeClaim": ("spec",),
    "Pod": ("spec",),
    "ResourceQuota": ("spec.scopes",),
    "RoleBinding": ("roleRef",),
    "Secret": ("type", "stringData", "data"),
    "Service": ("spec.clusterIP",),
    "StatefulSet": (
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    "StorageClass": ("parameters", "provisioner"),
}


def difference(
    identity: Identity, old: Mapping[str, Any], new: Mapping[str, Any], mutable: frozenset[str] = frozenset()
) -> Difference:
    """What changed between two inputs of an object; ``mutable`` kinds (ConfigMap, Secret) are updated in place.

    An object whose name the program chose is deleted before its replacement, since both cannot bear the name.
    """
    changed = sorted(changes(old, new))
    fixed = (*_EVERY_KIND, *(() if identity.kind in mutable else _KINDS.get(identity.kind, ())))
    replaces = [
        path
        for path in changed
        if any(_within(path, one) for one in fixed)
        and not (identity.kind == "Pod" and any(_within(path, one) for one in _IN_PLACE_OF_A_POD))
    ]
    same_place = all(
        known(members(old, "metadata"), field) == known(members(new, "metadata"), field)
        for field in ("name", "namespace")
    )
    return Difference(changed, replaces, delete_before_replace=bool(replaces) and same_place and not autonamed(new))


def changes(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The paths of the leaves that differ; an unknown value differs from every other."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in {*old, *new}:
            yield from changes(
                old.get(key), new.get(key), join(path, key if "." not in key and "/" not in key else f'["{key}"]')
            )
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from changes(before, after, f"{path}[{index}]")
    elif type(old) is not type(new) or old != new:
        yield path


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith((f"{root}.", f"{root}["))
