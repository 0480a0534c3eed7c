"""Ray workers on nodes with EFA interfaces, found by the labels of a node group of the same stack.

A resource policy sees one object and cannot know what a label such as ``pool: gpu`` selects. This is the part of the scope
that needs the whole stack, so it is a stack policy of its own: one name stays one policy of one kind.
"""

from collections.abc import Iterator

from . import efa_requests, privileges
from .node_groups import NodeGroup, judge, labels, node_groups
from .options import Options
from .report import Finding, subject
from .scope import INSTANCE_TYPE_LABELS, judged_groups, of_workload, required_labels
from .stack import Resource, Stack, known_strings
from .tokens import RAY_KINDS
from .values import UNKNOWN
from .workloads import WorkerGroup, workload_of


def check(stack: Stack, options: Options) -> Iterator[tuple[Resource, str, Finding]]:
    """Faults of workers that no resource policy judges and that select an EFA node group by its labels."""
    groups = [group for group in node_groups(stack) if judge(group).efa]
    for resource in stack.kubernetes([("ray.io", kind) for kind in RAY_KINDS]) if groups else ():
        workload = workload_of(resource.token, resource.props)
        scope = of_workload(workload, options, resource.name) if workload else None
        if workload is None or scope is None or scope.excluded or scope.reason:
            continue
        for worker in judged_groups(workload):
            node_group = next((group for group in groups if selects(worker, group)), None)
            if node_group is None:
                continue
            part = f"worker group '{worker.name}', which selects the EFA node group '{node_group.resource.name}'"
            for finding in (*efa_requests.check(worker), *privileges.check(worker)):
                yield resource, subject(workload.kind, resource.name, part), finding


def selects(worker: WorkerGroup, group: NodeGroup) -> bool:
    """Whether everything the worker demands of a node's labels is known, and the group's nodes carry all of it."""
    carried = dict(labels(group.resource))
    name = group.resource.props.get("nodeGroupName")
    if isinstance(name, str):
        carried["eks.amazonaws.com/nodegroup"] = name
    types = known_strings(group.resource.given(group.fields.instance_types)) if group.fields.instance_types else []
    types += [kind for template in group.templates if isinstance(kind := template.given("instanceType"), str)]
    demanded = [item for item in required_labels(worker.pod) if not item[0].startswith(("kubernetes.io/", "topology."))]
    return bool(demanded) and all(
        any(kind in values for kind in types)
        if key in INSTANCE_TYPE_LABELS
        else carried.get(key, UNKNOWN) is not UNKNOWN and (not values or carried[key] in values)
        for key, values in demanded
    )
