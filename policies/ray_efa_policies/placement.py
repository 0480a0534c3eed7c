"""Where a worker's pods may run: the node labels they demand, the taints they tolerate, the zones they keep to."""

from typing import Final

from .values import UNKNOWN, Unknown, at, mapping, sequence
from .workloads import WorkerGroup

INSTANCE_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.k8s.aws/zone-id",
)
EFA_LABEL_PREFIX: Final = "vpc.amazonaws.com/efa"
_TERMS: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_STRICT_EFFECTS: Final = ("NoSchedule", "NoExecute", "NO_SCHEDULE", "NO_EXECUTE")


def required_labels(pod: object) -> list[tuple[str, list[object]]]:
    """The node labels a pod demands, with the values it accepts (none listed means any): selector and affinity."""
    found = [(key, [value]) for key, value in mapping(at(pod, "nodeSelector")).items()]
    for term in sequence(at(pod, *_TERMS)):
        found += _expressions(term)
    return found


def _expressions(term: object) -> list[tuple[str, list[object]]]:
    found: list[tuple[str, list[object]]] = []
    for expression in sequence(at(term, "matchExpressions")):
        key, operator = at(expression, "key"), at(expression, "operator")
        if isinstance(key, str) and operator in ("In", "Exists"):
            found.append((key, list(sequence(at(expression, "values")))))
    return found


def pinned_zones(pod: object) -> set[str] | None:
    """The zones, by name or by id, that a pod keeps to by its own demands; None where it demands none that is known."""
    allowed: list[set[object]] = [
        {value if isinstance(value, str) else UNKNOWN}
        for key, value in mapping(at(pod, "nodeSelector")).items()
        if key in ZONE_LABELS
    ]
    # Terms are alternatives: they keep a pod to some zones only if each of them does.
    alternatives = [_zones_of(term) for term in sequence(at(pod, *_TERMS))]
    if alternatives and None not in alternatives:
        allowed.append({zone for zones in alternatives for zone in zones or ()})
    known = [zones for zones in allowed if UNKNOWN not in zones]
    if not known:
        return None
    return {zone for zone in known[0] if isinstance(zone, str) and all(zone in zones for zones in known)}


def _zones_of(term: object) -> set[object] | None:
    demands = [
        {value for value in values if isinstance(value, str | Unknown)}
        for key, values in _expressions(term)
        if key in ZONE_LABELS and values
    ]
    return {zone for zone in demands[0] if all(zone in zones for zones in demands)} if demands else None


def tolerates(worker: WorkerGroup, taint: object) -> bool:
    """Whether a taint, in EKS's or Kubernetes' spelling, certainly does not keep the worker's pods away."""
    key, effect = at(taint, "key"), at(taint, "effect")
    if isinstance(effect, str) and effect not in _STRICT_EFFECTS:
        return True
    for toleration in sequence(at(worker.pod, "tolerations")):
        wanted, value = at(toleration, "key"), at(toleration, "value")
        if wanted not in (None, key) or not isinstance(key, str):
            continue
        of_effect = at(toleration, "effect")
        if of_effect is not None and str(of_effect).lower() != str(effect).replace("_", "").lower():
            continue
        if at(toleration, "operator") == "Exists" or (value or "") == (at(taint, "value") or ""):
            return True
    return False


def tolerated_keys(worker: WorkerGroup) -> set[str]:
    """The keys of the taints that the worker's pods name as tolerable."""
    return {
        key for toleration in sequence(at(worker.pod, "tolerations")) if isinstance(key := at(toleration, "key"), str)
    }
