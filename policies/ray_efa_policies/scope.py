"""Who is judged: workers that move a KV cache or use EFA. Every other Ray workload is none of this pack's business."""

from dataclasses import dataclass
from typing import Final

from . import serve_config
from .engine_groups import is_cpu_group, running_groups
from .instances import INSTANCE_TYPES
from .kv_transfer import NIXL
from .options import Options
from .placement import EFA_LABEL_PREFIX, INSTANCE_TYPE_LABELS, required_labels
from .serve_config import PD_BUILDER
from .values import UNKNOWN, at, mapping, sequence, strings
from .workloads import EFA_RESOURCE, WorkerGroup, Workload, quantities, says_efa

_KV_TRANSFER_WORDS: Final = (NIXL, PD_BUILDER)


@dataclass(frozen=True)
class Scope:
    """Whether a workload is judged: a reason if it is, else where the answer would stand if it could be seen."""

    reason: str = ""
    unknown: tuple[str, ...] = ()
    excluded: bool = False
    """Whether the policy's configuration leaves the workload out."""

    @property
    def why_not(self) -> str:
        """Why a workload is left alone."""
        if self.excluded:
            return "the policy's configuration leaves it out"
        return "no KV transfer through NIXL and no EFA in this workload"


def of_workload(workload: Workload, options: Options, name: str) -> Scope:
    """Whether the policies on workers judge this workload.

    Args:
        workload: the object.
        options: the policy's configuration.
        name: the Pulumi name of the resource, for include and exclude.
    """
    if options.excludes(name) or (options.namespaces and workload.namespace not in (UNKNOWN, *options.namespaces)):
        return Scope(excluded=True)
    if options.includes(name):
        return Scope("the policy's configuration includes it")
    if names_kv_transfer(workload):
        return Scope("it names NixlConnector or build_pd_openai_app")
    if requests_efa(workload):
        return Scope("a pod of it requests EFA")
    if any(selects_efa(group, options) for group in workload.groups):
        return Scope("a worker of it selects nodes with EFA")
    return Scope(unknown=_hidden(workload))


def names_kv_transfer(workload: Workload) -> bool:
    """Whether the workload names the connector or the builder in its applications, commands or environment."""
    spec = mapping(at(workload.body, "spec"))
    rest = {key: value for key, value in spec.items() if key != "serveConfigV2"}
    return _names_it(rest) or (workload.serve_text is not UNKNOWN and _names_it(_served(workload)))


def _served(workload: Workload) -> object:
    # The tree, so that a word in a comment does not count; the bare text where there is no tree to be had.
    return workload.serve.tree if workload.serve.tree is not None else workload.serve_text


def _names_it(tree: object) -> bool:
    return any(word in text for text in strings(tree) for word in _KV_TRANSFER_WORDS)


def requests_efa(workload: Workload) -> bool:
    """Whether any pod of the workload, the head's too, asks for the EFA device plugin's resource or claims EFA."""
    head = at(workload.cluster, "headGroupSpec", "template", "spec")
    return any(_pod_requests_efa(pod) for pod in (head, *(group.pod for group in workload.groups)))


def _pod_requests_efa(pod: object) -> bool:
    containers = (*sequence(at(pod, "containers")), *sequence(at(pod, "initContainers")))
    plugin = any(value is not UNKNOWN for container in containers for value in quantities(container, EFA_RESOURCE))
    return plugin or says_efa(at(pod, "resourceClaims"))


def selects_efa(group: WorkerGroup, options: Options) -> bool:
    """Whether the group's node selector or required affinity names EFA, or a type that can have EFA interfaces."""
    return any(_names_efa_nodes(key, values, options) for key, values in required_labels(group.pod))


def _names_efa_nodes(key: str, values: list[object], options: Options) -> bool:
    if key in INSTANCE_TYPE_LABELS:
        return options.judge_efa_capable_types and any(
            isinstance(value, str) and value in INSTANCE_TYPES for value in values
        )
    return key.startswith(EFA_LABEL_PREFIX) and "false" not in values


def _hidden(workload: Workload) -> tuple[str, ...]:
    """Unknown values that would decide whether the workload is judged."""
    paths = list(workload.unknown_paths)
    for group in workload.groups:
        container = group.container
        steps = (
            (group.pod, group.pod_path),
            (container, group.container_path),
            (at(container, "resources"), f"{group.container_path}.resources"),
            (at(container, "resources", "limits"), f"{group.container_path}.resources.limits"),
            (
                at(container, "resources", "limits", EFA_RESOURCE),
                f'{group.container_path}.resources.limits["{EFA_RESOURCE}"]',
            ),
        )
        paths += [path for value, path in steps if value is UNKNOWN][:1]
    return tuple(paths)


def may_serve_kv_transfer(workload: Workload) -> bool:
    """Whether a service whose applications are unknown could move a KV cache: something in it may have GPUs."""
    groups = running_groups(workload)
    return workload.patch or bool(workload.unknown_paths) or any(not is_cpu_group(workload, group) for group in groups)


def transfer_texts(workload: Workload) -> list[tuple[str, str]]:
    """Texts outside serveConfigV2 that name the connector, with their paths: entry points, commands, environment."""
    spec = mapping(at(workload.body, "spec"))
    rest = {key: value for key, value in spec.items() if key != "serveConfigV2"}
    return [(path, node) for path, node in serve_config.walk(rest, "spec") if isinstance(node, str) and NIXL in node]
