"""Whether pods find a node, as far as an echo can tell: selectors and taints, not sizes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sandbox.kubernetes.rules import entries, members
from sandbox.nodes import Node, Taint

_KEEPS_OUT: Final = ("NoSchedule", "NoExecute")


def takes(node: Node, pod: Mapping[str, Any]) -> bool:
    """Whether a node takes a pod with such ``nodeSelector`` and ``tolerations``."""
    chosen = all(node.labels.get(key) == value for key, value in members(pod, "nodeSelector").items())
    tolerations = [one for _, one in entries(pod, "tolerations")]
    kept_out = any(
        taint.effect in _KEEPS_OUT and not any(_tolerates(one, taint) for one in tolerations) for taint in node.taints
    )
    return chosen and not kept_out


def homeless(pods: Sequence[Mapping[str, Any]], nodes: Sequence[Node]) -> bool:
    """Whether one of these pods finds no node that takes it."""
    return not all(any(takes(node, pod) for node in nodes) for pod in pods)


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.key)
    return toleration.get("key") == taint.key and (toleration.get("value") or "") == taint.value
