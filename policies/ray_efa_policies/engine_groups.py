"""Which worker groups of a workload can run an engine: all but those that certainly have no GPU, or no pod.

A group that forgot its resources looks like a CPU group by its container alone, so every other sign of a GPU counts too.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from .node_groups import GPU_MARKS, is_gpu_type
from .placement import EFA_LABEL_PREFIX, INSTANCE_TYPE_LABELS, required_labels, tolerated_keys
from .serve_config import LlmConfig, asked_resources
from .values import UNKNOWN, at, mapping
from .workloads import EFA_RESOURCE, WorkerGroup, Workload

GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore")
_GPU_PREFIX: Final = "nvidia.com/"  # MIG slices: nvidia.com/mig-1g.10gb
_RAY_GPU: Final = "GPU"
_ZERO: Final = re.compile(r"0*\.?0*")


def running_groups(workload: Workload) -> list[WorkerGroup]:
    """The worker groups that may have a pod: not those whose maxReplicas is 0, with no minReplicas above it."""
    return [
        group
        for group in workload.groups
        if at(group.value, "maxReplicas") != 0 or at(group.value, "minReplicas") not in (0, None)
    ]


def judged_groups(workload: Workload) -> list[WorkerGroup]:
    """The worker groups that count: all but CPU groups beside groups with GPUs. The head is never among them."""
    groups = running_groups(workload)
    if not any(shows_gpu(workload, group) for group in groups):
        return groups
    return [group for group in groups if not is_cpu_group(workload, group)]


def is_cpu_group(workload: Workload, group: WorkerGroup) -> bool:
    """Whether a group certainly runs no engine: nothing about it shows a GPU, and it says itself what it has.

    A container that states no resources, or is privileged, may still see every GPU of its node.
    """
    resources = at(group.container, "resources")
    stated = [mapping(at(resources, kind)) for kind in ("limits", "requests")]
    unseen = any(at(resources, kind) is UNKNOWN for kind in ("limits", "requests"))
    privileged = at(group.container, "securityContext", "privileged")
    if unseen or privileged is True or privileged is UNKNOWN or at(resources, "claims"):
        return False
    none_promised = _is_zero(at(group.value, "rayStartParams", "num-gpus"))
    return (any(stated) or none_promised) and not shows_gpu(workload, group)


def shows_gpu(workload: Workload, group: WorkerGroup) -> bool:
    """Whether anything about a group says that it has GPUs: what it asks for, offers, selects or tolerates, or its role."""
    return _asks(group) or _offers_gpu(group) or _seeks_gpu_nodes(group) or _has_a_role(workload, group)


def offered(group: WorkerGroup) -> Mapping[str, object]:
    """The resources that the group's Ray nodes are said to have: ``resources``, else those of ``rayStartParams``.

    One UNKNOWN under an empty name stands for a text that cannot be read.
    """
    own = at(group.value, "resources")
    text = at(group.value, "rayStartParams", "resources")
    if own is UNKNOWN or text is UNKNOWN:
        return {"": UNKNOWN}
    promised: Mapping[str, object] = {}
    if isinstance(text, str) and "{" in text:
        # The shell takes the quotes round it away, and the backslashes: '"{\"decode\": 1}"'.
        plain = text.replace("\\", "")
        try:
            promised = mapping(json.loads(plain[plain.find("{") : plain.rfind("}") + 1]))
        except (ValueError, RecursionError):
            return {"": UNKNOWN}
    return {name: amount for name, amount in {**promised, **mapping(own)}.items() if not _is_zero(amount)}


def may_run_on(config: LlmConfig, group: WorkerGroup, groups: list[WorkerGroup]) -> bool:
    """Whether Ray may place an engine of an LLMConfig on a group: always, unless it asks for what only others offer."""
    asked = asked_resources(config)
    return not any(
        name not in offered(group) and "" not in offered(group) and any(name in offered(other) for other in groups)
        for name in asked
    )


def _is_zero(amount: object) -> bool:
    return not isinstance(amount, bool) and amount is not None and bool(str(amount) and _ZERO.fullmatch(str(amount)))


def _asks(group: WorkerGroup) -> bool:
    for kind in ("limits", "requests"):
        for resource, amount in mapping(at(group.container, "resources", kind)).items():
            is_gpu = resource in GPU_RESOURCES or resource.startswith(_GPU_PREFIX) or resource == EFA_RESOURCE
            if is_gpu and not _is_zero(amount):
                return True
    return False


def _offers_gpu(group: WorkerGroup) -> bool:
    promised = at(group.value, "rayStartParams", "num-gpus")
    return (promised is not None and not _is_zero(promised)) or not offered(group).keys().isdisjoint((_RAY_GPU, ""))


def _seeks_gpu_nodes(group: WorkerGroup) -> bool:
    if not tolerated_keys(group).isdisjoint((*GPU_MARKS, EFA_RESOURCE)):
        return True
    for key, values in required_labels(group.pod):
        if key in INSTANCE_TYPE_LABELS and any(is_gpu_type(value) for value in values):
            return True
        if (key in GPU_MARKS or key.startswith((EFA_LABEL_PREFIX, _GPU_PREFIX))) and "false" not in values:
            return True
    return False


def _has_a_role(workload: Workload, group: WorkerGroup) -> bool:
    """Whether a role's placement asks for what the group offers, or the group bears the name of a role."""
    configs = [config for config, _ in workload.llm_configs]
    asked = {name for config in configs for name in asked_resources(config)}
    words = re.split(r"[^a-z]+", group.name.lower())
    return bool(asked & offered(group).keys()) or any(config.required and config.label in words for config in configs)
