"""Karpenter's node pools: whether they make GPU nodes, which zones they allow, and which node class they use."""

from dataclasses import dataclass
from typing import Final

from .node_groups import GPU_MARKS, is_gpu_type
from .stack import Resource, Stack
from .tokens import NODE_CLASSES, NODE_POOLS
from .values import UNKNOWN, at, mapping, sequence

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
ZONE_EXAMPLE: Final = '{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}'
_ZONE_LABELS: Final = (ZONE_LABEL, "failure-domain.beta.kubernetes.io/zone", "topology.k8s.aws/zone-id")
_PREFIXES: Final = ("karpenter.k8s.aws/", "eks.amazonaws.com/")
"""Karpenter's own labels, and those of EKS Auto Mode."""


@dataclass(frozen=True)
class NodePool:
    """One NodePool (or Provisioner, its forerunner)."""

    resource: Resource
    spec_path: tuple[str, ...]
    node_class: Resource | None
    """Its node class, where that is in the stack."""

    @property
    def name(self) -> str:
        """Its Kubernetes name, or its Pulumi name while that is unknown."""
        name = at(self.resource.props, "metadata", "name")
        return name if isinstance(name, str) else self.resource.name

    @property
    def spec(self) -> object:
        """Where its requirements stand."""
        return at(self.resource.props, *self.spec_path)

    def _requirements(self) -> list[tuple[str, object, object]]:
        return [
            (str(at(item, "key")), at(item, "operator"), at(item, "values"))
            for item in sequence(at(self.spec, "requirements"))
        ]

    @property
    def requirements_unknown(self) -> bool:
        """Whether it cannot be seen what it requires."""
        return at(self.spec, "requirements") is UNKNOWN or any(
            values is UNKNOWN or UNKNOWN in sequence(values) for _, _, values in self._requirements()
        )

    def gpu_reason(self) -> str:
        """Why it is a GPU pool; empty when nothing says so."""
        for key, operator, values in self._requirements():
            if operator in ("In", "Exists", "Gt", "Gte") and _names_gpu(key, operator, sequence(values)):
                return f"it requires {key}"
        for taint in sequence(at(self.spec, "taints")):
            if at(taint, "key") in GPU_MARKS:
                return f"its nodes carry the taint {at(taint, 'key')}"
        for key in _labels(self):
            if key in GPU_MARKS:
                return f"its nodes carry the label {key}"
        return ""

    def zones(self) -> tuple[list[object] | None, str]:
        """The zones it allows (None when it does not limit them) and where that stands."""
        path = ".".join((*self.spec_path, "requirements"))
        found: list[list[object]] = []
        for key, operator, values in self._requirements():
            if key in _ZONE_LABELS and operator == "In":
                found.append([UNKNOWN, UNKNOWN] if values is UNKNOWN else _each_once(values))
        found += [[value] for key, value in _labels(self).items() if key in _ZONE_LABELS]
        narrowest = min(found, key=len, default=None)
        return narrowest, f"{path}[{ZONE_LABEL}]"


def _each_once(values: object) -> list[object]:
    unique: list[object] = []
    for value in sequence(values):
        if value not in unique or value is UNKNOWN:
            unique.append(value)
    return unique


def _labels(pool: NodePool) -> dict[str, object]:
    metadata = (*pool.spec_path[:-1], "metadata", "labels") if len(pool.spec_path) > 1 else ("spec", "labels")
    return dict(mapping(at(pool.resource.props, *metadata)))


def _names_gpu(key: str, operator: object, values: object) -> bool:
    for prefix in _PREFIXES:
        name = key.removeprefix(prefix)
        if name == key:
            continue
        if name.startswith("instance-gpu-"):
            return operator != "In" or any(value != "0" for value in sequence(values))
        if name == "instance-family":
            return any(is_gpu_type(f"{value}.any") for value in sequence(values))
        if name == "instance-category":
            return any(value in ("g", "p", "gr") for value in sequence(values))
    return key == "node.kubernetes.io/instance-type" and any(is_gpu_type(value) for value in sequence(values))


def node_pools(stack: Stack) -> list[NodePool]:
    """All pools of a stack."""
    classes = stack.kubernetes(NODE_CLASSES)
    found: list[NodePool] = []
    for resource in stack.kubernetes(NODE_POOLS):
        kind = resource.kubernetes
        if kind is None:
            continue
        spec_path = NODE_POOLS[kind.group, kind.kind]
        name = at(resource.props, *spec_path, "nodeClassRef", "name")
        sources = stack.sources(resource, "spec")
        named = (item for item in classes if isinstance(name, str) and at(item.props, "metadata", "name") == name)
        linked = (item for item in classes if item in sources)
        found.append(NodePool(resource, spec_path, next(named, None) or next(linked, None)))
    return found
