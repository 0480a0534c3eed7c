"""Ray workers on nodes with EFA interfaces, found by the labels of a node group of the same stack.

A resource policy sees one object and cannot know what a label such as ``pool: gpu`` selects. This is the part of the scope
that needs the whole stack, so it is a stack policy of its own: one name stays one policy of one kind.
"""

from collections.abc import Iterator

from . import efa_requests, privileges
from .engine_groups import judged_groups, running_groups
from .linked_groups import selects
from .node_groups import judge, node_groups
from .options import Options
from .report import Finding, subject
from .scope import Scope, of_workload
from .stack import Resource, Stack
from .tokens import RAY_KINDS
from .workloads import WorkerGroup, Workload, workload_of


def check(stack: Stack, options: Options) -> Iterator[tuple[Resource, str, Finding]]:
    """Faults of workers that no resource policy judges and that select an EFA node group by its labels."""
    groups = [group for group in node_groups(stack) if judge(group).efa]
    for resource in stack.kubernetes([("ray.io", kind) for kind in RAY_KINDS]) if groups else ():
        workload = workload_of(resource.token, resource.props)
        scope = of_workload(workload, options, resource.name) if workload else None
        if workload is None or scope is None or scope.excluded:
            continue
        for worker in _left_alone(workload, scope):
            node_group = next((group for group in groups if selects(worker, group)), None)
            if node_group is None:
                continue
            part = f"worker group '{worker.name}', which selects the EFA node group '{node_group.resource.name}'"
            for finding in (*efa_requests.check(worker), *privileges.check(worker)):
                yield resource, subject(workload.kind, resource.name, part), finding


def _left_alone(workload: Workload, scope: Scope) -> list[WorkerGroup]:
    """Groups that the resource policies do not judge: in a workload of theirs, those that look like CPU groups."""
    judged = judged_groups(workload)
    return [group for group in running_groups(workload) if group not in judged] if scope.reason else judged
