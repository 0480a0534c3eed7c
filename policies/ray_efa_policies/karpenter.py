"""Karpenter's node pools: whether they make GPU nodes, which zones they allow, and which node class they use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .node_groups import GPU_MARKS, is_gpu_type
from .placement import ZONE_LABELS
from .stack import Resource, Stack, known_strings
from .tokens import NODE_CLASSES, NODE_POOLS
from .values import UNKNOWN, at, mapping, sequence

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
ZONE_EXAMPLE: Final = '{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}'
_GENERAL: Final = frozenset({"c", "m", "r"})
_GPU_CATEGORIES: Final = frozenset({"g", "p"})
_GPU_MAKERS: Final = ("nvidia", "amd")
_NO_GPUS: Final = ("inferentia", "trainium", "neuron", "gaudi", "hl-", "xilinx", "u250", "qualcomm")
"""What the names of accelerators that are no GPUs begin with."""
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
            if _names_gpu(key, operator, sequence(values)):
                return f"it requires {key}"
        for taint in sequence(at(self.spec, "taints")):
            if at(taint, "key") in GPU_MARKS:
                return f"its nodes carry the taint {at(taint, 'key')}"
        for key in _labels(self):
            if key in GPU_MARKS:
                return f"its nodes carry the label {key}"
        return ""

    def carries(self, key: str, accepted: Sequence[object]) -> bool:
        """Whether its nodes certainly carry a label with one of some values (none listed means any)."""
        own = _labels(self).get(key)
        if own is not None:
            return own is not UNKNOWN and (not accepted or own in accepted)
        for required, operator, values in self._requirements():
            if required == key and operator == "In" and values is not UNKNOWN:
                return not accepted or not set(known_strings(values)).isdisjoint(known_strings(accepted))
        return False

    def zones(self) -> tuple[list[object] | None, str]:
        """The zones it allows (None when it does not limit them) and where that stands."""
        path = ".".join((*self.spec_path, "requirements"))
        found: list[list[object]] = []
        for key, operator, values in self._requirements():
            if key in ZONE_LABELS and operator == "In":
                found.append([UNKNOWN, UNKNOWN] if values is UNKNOWN else _each_once(values))
        found += [[value] for key, value in _labels(self).items() if key in ZONE_LABELS]
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


def _names_gpu(key: str, operator: object, values: Sequence[object]) -> bool:
    """Whether a requirement leaves GPU nodes only, or leaves out what is not a GPU node."""
    if key == "node.kubernetes.io/instance-type":
        return operator == "In" and any(is_gpu_type(value) for value in values)
    name = next((key.removeprefix(prefix) for prefix in _PREFIXES if key.startswith(prefix)), "")
    if name.startswith("instance-gpu-"):
        return _is_there(operator, values)
    if name == "instance-family":
        return operator == "In" and any(is_gpu_type(f"{value}.any") for value in values)
    if name == "instance-category":
        if operator == "NotIn":
            return _GENERAL.issubset(values) and not _GPU_CATEGORIES.issubset(values)
        return operator == "In" and not _GPU_CATEGORIES.isdisjoint(values)
    words = [str(value).lower() for value in values]
    if name == "instance-accelerator-manufacturer":
        return operator == "In" and any(word in _GPU_MAKERS for word in words)
    if name == "instance-accelerator-name":
        return operator == "In" and any(not word.startswith(_NO_GPUS) for word in words)
    return False


def _is_there(operator: object, values: Sequence[object]) -> bool:
    """Whether a requirement on a label that only GPU nodes carry keeps to them. Karpenter counts an absent label as no match."""
    if operator in ("Exists", "Gt", "Gte"):
        return True
    if operator == "In":
        return any(value != "0" for value in values)
    if operator == "NotIn":
        return "0" in values
    least = {"Lt": "1", "Lte": "0"}.get(str(operator))
    return least is not None and any(str(value) != least for value in values)


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
