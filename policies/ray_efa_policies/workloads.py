"""Ray workloads as Kubernetes objects: their worker groups, the pods of those, and the container that runs Ray."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from . import serve_config
from .serve_config import Application, LlmConfig, ServeConfig
from .tokens import RAY_KINDS, kubernetes_type, ray_kind
from .values import UNKNOWN, at, sequence, strings

SERVE_PATH = "spec.serveConfigV2"
EFA_RESOURCE = "vpc.amazonaws.com/efa"
"""The extended resource of AWS's EFA device plugin."""

# The word, not the letters: a claim template called "gpu-default" is about something else, and "no-efa" says the contrary.
_EFA_WORD = re.compile(
    r"(?<![a-z])(?<!\bno[-_. ])(?<!\bnon[-_. ])(?<!\bnot[-_. ])(?<!\bwithout[-_. ])efas?(?![a-z])", re.IGNORECASE
)


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
    def applications(self) -> list[Application]:
        """The applications of the Serve configuration, as far as they can be seen."""
        return [] if self.serve_text is UNKNOWN else serve_config.applications(self.serve.tree)

    @cached_property
    def llm_configs(self) -> list[tuple[LlmConfig, Application]]:
        """The LLMConfigs of all applications, each with its application."""
        return [(config, app) for app in self.applications for config in serve_config.llm_configs(app)]

    @property
    def job_path(self) -> tuple[str, ...]:
        """Where its job is described: the fields ``entrypoint``, ``runtimeEnvYAML``; empty for a kind without one."""
        return RAY_KINDS[self.kind].job

    def job(self, name: str) -> object:
        """A field of its job; None for a kind without one."""
        return at(self.body, *self.job_path, name) if self.job_path else None

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
