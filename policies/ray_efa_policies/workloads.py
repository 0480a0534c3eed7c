"""Ray workloads as Kubernetes objects: their worker groups, the pods of those, and the container that runs Ray."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from . import serve_config
from .serve_config import ServeConfig
from .tokens import RAY_KINDS, kubernetes_type, ray_kind
from .values import UNKNOWN, at, mapping, sequence, strings

EFA_RESOURCE = "vpc.amazonaws.com/efa"
"""The extended resource of AWS's EFA device plugin."""

# The word, not the letters: a claim template called "gpu-default" is about something else.
_EFA_WORD = re.compile(r"(?<![a-z])efas?(?![a-z])", re.IGNORECASE)

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore")
_GPU_PREFIX = "nvidia.com/"  # MIG slices: nvidia.com/mig-1g.10gb


@dataclass(frozen=True)
class WorkerGroup:
    """One element of ``workerGroupSpecs``."""

    path: str
    """From the object's root, such as ``spec.rayClusterConfig.workerGroupSpecs[0]``."""
    index: int
    value: object

    @property
    def name(self) -> str:
        """Its groupName, or its index where it has none."""
        name = at(self.value, "groupName")
        return name if isinstance(name, str) and name else str(self.index)

    @property
    def pod(self) -> object:
        """The pod spec of its template."""
        return at(self.value, "template", "spec")

    @property
    def pod_path(self) -> str:
        """Where the pod spec stands."""
        return f"{self.path}.template.spec"

    @property
    def container(self) -> object:
        """The Ray container: KubeRay takes index 0, whatever its name (KubeRay, RayContainerIndex)."""
        return at(self.pod, "containers", 0)

    @property
    def container_path(self) -> str:
        """Where the Ray container stands."""
        return f"{self.pod_path}.containers[0]"


@dataclass(frozen=True)
class Workload:
    """A RayService, RayCluster, RayJob or RayCronJob, whole or as a patch."""

    kind: str
    body: Mapping[str, object]
    patch: bool = False

    @property
    def namespace(self) -> object:
        """Its namespace, None for the default one."""
        return at(self.body, "metadata", "namespace")

    @property
    def cluster_path(self) -> str:
        """Where its Ray cluster is described."""
        return ".".join(RAY_KINDS[self.kind].cluster)

    @property
    def cluster(self) -> object:
        """The description of its Ray cluster."""
        return at(self.body, *RAY_KINDS[self.kind].cluster)

    @property
    def serves(self) -> bool:
        """Whether its kind carries a Serve configuration."""
        return RAY_KINDS[self.kind].serves

    @property
    def serve_text(self) -> object:
        """The ``serveConfigV2`` as given."""
        return at(self.body, "spec", "serveConfigV2") if self.serves else None

    @cached_property
    def serve(self) -> ServeConfig:
        """The parsed ``serveConfigV2``; not to be asked for while the text is UNKNOWN."""
        return serve_config.parse(self.serve_text)

    @cached_property
    def groups(self) -> list[WorkerGroup]:
        """Its worker groups, without those that are unknown as a whole."""
        path = f"{self.cluster_path}.workerGroupSpecs"
        return [
            WorkerGroup(f"{path}[{index}]", index, value)
            for index, value in enumerate(sequence(at(self.cluster, "workerGroupSpecs")))
            if value is not UNKNOWN
        ]

    @cached_property
    def unknown_paths(self) -> list[str]:
        """Where worker groups should stand and nothing can be seen."""
        path = f"{self.cluster_path}.workerGroupSpecs"
        specs = at(self.cluster, "workerGroupSpecs")
        if specs is UNKNOWN:
            return [_first_unknown(self.body, (*RAY_KINDS[self.kind].cluster, "workerGroupSpecs"))]
        return [f"{path}[{index}]" for index, value in enumerate(sequence(specs)) if value is UNKNOWN]


def _first_unknown(body: object, path: tuple[str, ...]) -> str:
    for length in range(1, len(path)):
        if at(body, *path[:length]) is UNKNOWN:
            return ".".join(path[:length])
    return ".".join(path)


def workload_of(token: str, body: Mapping[str, object]) -> Workload | None:
    """The Ray workload that a resource of some Pulumi type is, or None.

    Args:
        token: the resource's type, in any version, whole or as a patch.
        body: its properties as plain values: the Kubernetes object.
    """
    kind, parts = ray_kind(token), kubernetes_type(token)
    return Workload(kind, body, patch=parts.patch) if kind and parts else None


def quantities(container: object, resource: str) -> list[object]:
    """What a container's limits and requests say of a resource, as far as they say anything (UNKNOWN included)."""
    return [
        value for kind in ("limits", "requests") if (value := at(container, "resources", kind, resource)) is not None
    ]


def says_efa(tree: object) -> bool:
    """Whether any text in a resource claim, or in what it refers to by name, says EFA."""
    return any(_EFA_WORD.search(text) for text in strings(tree))


def takes_accelerators(group: WorkerGroup) -> bool:
    """Whether the group's Ray container asks for GPUs or their like, or its Ray start parameters promise some."""
    for kind in ("limits", "requests"):
        for resource, amount in mapping(at(group.container, "resources", kind)).items():
            is_gpu = resource in GPU_RESOURCES or resource.startswith(_GPU_PREFIX) or resource == EFA_RESOURCE
            if is_gpu and str(amount) != "0":
                return True
    promised = at(group.value, "rayStartParams", "num-gpus")
    return promised is not None and str(promised) != "0"


def is_cpu_group(group: WorkerGroup) -> bool:
    """Whether the group certainly runs no engine: its container states its resources, and no GPU is among them.

    A container that states none, or is privileged, may still see every GPU of its node.
    """
    resources = at(group.container, "resources")
    stated = [mapping(at(resources, kind)) for kind in ("limits", "requests")]
    unseen = any(at(resources, kind) is UNKNOWN for kind in ("limits", "requests"))
    privileged = at(group.container, "securityContext", "privileged")
    if unseen or not any(stated) or privileged is True or privileged is UNKNOWN or at(resources, "claims"):
        return False
    return not takes_accelerators(group)
