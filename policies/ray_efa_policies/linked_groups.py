"""Node groups that one workload runs on: what its workers select, by the labels, types and taints that the stack shows.

Only workloads that move a KV cache link node groups: their workers must all reach each other. A training cluster may keep
groups of several zones for jobs that never meet. Groups that no worker can be seen to select stay unlinked: several GPU
groups in one stack may well serve several things.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .engine_groups import judged_groups
from .karpenter import NodePool, node_pools
from .node_groups import GPU_MARKS, NodeGroup, judge, labels, node_groups
from .placement import EFA_LABEL_PREFIX, INSTANCE_TYPE_LABELS, ZONE_LABELS, required_labels, tolerates
from .report import subject
from .scope import names_kv_transfer
from .stack import Resource, Stack, known_strings
from .tokens import RAY_KINDS
from .values import UNKNOWN, at, sequence
from .workloads import EFA_RESOURCE, WorkerGroup, Workload, quantities, workload_of

_NODEGROUP_LABEL: Final = "eks.amazonaws.com/nodegroup"
_EVERY_NODE: Final = ("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch")
_GPU_LABELS: Final = (*GPU_MARKS, EFA_LABEL_PREFIX)

Nodes = NodeGroup | NodePool


@dataclass(frozen=True)
class Place:
    """A worker group, and nodes of the stack that its pods may run on; None where the stack shows none."""

    worker: WorkerGroup
    nodes: Nodes | None


@dataclass(frozen=True)
class Linked:
    """A workload whose workers must reach each other, and where they may run."""

    resource: Resource
    workload: Workload
    places: list[Place]

    @property
    def subject(self) -> str:
        """How a message names the workload."""
        return subject(self.workload.kind, self.resource.name)

    @property
    def node_groups(self) -> list[NodeGroup]:
        """The node groups among its places, each once."""
        found = {place.nodes.resource.urn: place.nodes for place in self.places if isinstance(place.nodes, NodeGroup)}
        return list(found.values())


def linked(stack: Stack) -> Iterator[Linked]:
    """All workloads of a stack that move a KV cache, with the places of their workers."""
    groups = [group for group in node_groups(stack) if judge(group).reason]
    pools = [pool for pool in node_pools(stack) if pool.gpu_reason()]
    for resource in stack.kubernetes([("ray.io", kind) for kind in RAY_KINDS]):
        workload = workload_of(resource.token, resource.props)
        if workload is None or not names_kv_transfer(workload):
            continue
        places: list[Place] = []
        for worker in judged_groups(workload):
            nodes = _nodes_of(worker, groups, pools)
            places += [Place(worker, item) for item in nodes] or [Place(worker, None)]
        for cluster in _clusters(places):
            own = [place for place in places if place.nodes is None or _cluster(place.nodes) in (cluster, _ANY)]
            yield Linked(resource, workload, own)


_ANY: Final = ""


def _cluster(nodes: Nodes) -> str:
    """Something that is equal for groups of one cluster; empty where it cannot be told."""
    if isinstance(nodes, NodePool):
        return _ANY
    name = nodes.resource.props.get("clusterName")
    return name if isinstance(name, str) else " ".join(sorted(nodes.resource.came_from("clusterName")))


def _clusters(places: list[Place]) -> list[str]:
    found = {_cluster(place.nodes) for place in places if place.nodes}
    return sorted(found - {_ANY}) or [_ANY]


def _nodes_of(worker: WorkerGroup, groups: list[NodeGroup], pools: list[NodePool]) -> list[Nodes]:
    if _demands(worker):
        chosen: list[Nodes] = [group for group in groups if selects(worker, group)]
        chosen += [pool for pool in pools if all(pool.carries(key, values) for key, values in _demands(worker))]
    elif any(amount is not UNKNOWN for amount in quantities(worker.container, EFA_RESOURCE)):
        # It demands no label, only a device: any node with EFA will do.
        chosen = [*(group for group in groups if judge(group).efa), *pools]
        if len({_cluster(nodes) for nodes in chosen} - {_ANY}) > 1:
            return []  # and which of the clusters it runs in, the stack does not show
    else:
        return []
    return [nodes for nodes in chosen if all(tolerates(worker, taint) for taint in _taints(nodes))]


def _taints(nodes: Nodes) -> list[object]:
    taints = at(nodes.spec, "taints") if isinstance(nodes, NodePool) else nodes.resource.given("taints")
    return [UNKNOWN] if taints is UNKNOWN else list(sequence(taints))


def _demands(worker: WorkerGroup) -> list[tuple[str, list[object]]]:
    """The labels that tell one node group from another: not those of every node or every GPU node, nor the zone."""
    return [
        (key, values)
        for key, values in required_labels(worker.pod)
        if key not in (*_EVERY_NODE, *ZONE_LABELS) and not key.startswith(_GPU_LABELS)
    ]


def selects(worker: WorkerGroup, group: NodeGroup) -> bool:
    """Whether everything the worker demands of a node's labels is known, and the group's nodes carry all of it."""
    carried = dict(labels(group.resource))
    name = group.resource.props.get("nodeGroupName")
    if isinstance(name, str):
        carried[_NODEGROUP_LABEL] = name
    types = known_strings(group.resource.given(group.fields.instance_types)) if group.fields.instance_types else []
    types += [kind for template in group.templates if isinstance(kind := template.given("instanceType"), str)]
    demanded = _demands(worker)
    return bool(demanded) and all(
        any(kind in values for kind in types)
        if key in INSTANCE_TYPE_LABELS
        else carried.get(key, UNKNOWN) is not UNKNOWN and (not values or carried[key] in values)
        for key, values in demanded
    )
