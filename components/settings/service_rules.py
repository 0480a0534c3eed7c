"""Rules of the service: its names, its image, and versions that know what the stack uses."""

import re
from collections.abc import Iterator
from typing import Final

from components import versions
from components.addon_values import OPERATOR_NAMESPACE, PLUGIN_NAMESPACE
from components.defaults import READY_TIMEOUT_MINUTES
from components.faults import Fault, path, set_to
from components.images import REGISTRY_ACCOUNTS, default_image, unpinned, wrong_registry
from components.quantities import release
from components.settings.models import Settings
from components.settings.rules import Rule

LONGEST_NAME: Final = 47
"""KubeRay appends to the name of a RayService (ray-project/kuberay v1.6.0, MaxRayServiceNameLength)."""

SHORTEST_READY_TIMEOUT: Final = 10
"""Minutes. Pulling the image and loading weights takes several; AWS's sample waits up to 30."""

_LONGEST_NAMESPACE = 63
_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
TAKEN_NAMESPACES: Final = ("default", PLUGIN_NAMESPACE, OPERATOR_NAMESPACE)
"""Namespaces that are there already: Kubernetes' own, besides all kube-*, and those of the add-ons."""


def names(s: Settings) -> Iterator[Fault]:
    """Names that Kubernetes and KubeRay take."""
    name, namespace = s.service.name, s.service.namespace
    at = path("service", "name")
    if not _NAME.fullmatch(name):
        why = "it must be a DNS-1035 label: small letters, digits and -, a letter first, a letter or digit last"
        yield Fault(at, why, set_to(at, "ray-llm"), name)
    elif len(name) > LONGEST_NAME:
        why = f"it has {len(name)} characters, and KubeRay allows {LONGEST_NAME} for a RayService"
        yield Fault(at, why, set_to(at, name[:LONGEST_NAME].rstrip("-")), name)
    at = path("service", "namespace")
    if len(namespace) > _LONGEST_NAMESPACE:
        why = f"it has {len(namespace)} characters, and a namespace has {_LONGEST_NAMESPACE} at most"
        yield Fault(at, why, set_to(at, namespace[:_LONGEST_NAMESPACE].rstrip("-")), namespace)
    elif namespace in TAKEN_NAMESPACES or namespace.startswith("kube-"):
        why = "the stack makes a namespace that permits privileged pods, and this one belongs to others"
        yield Fault(at, why, set_to(at, "inference"), namespace)


def image(s: Settings) -> Iterator[Fault]:
    """One image for both roles, pinned, from a registry the nodes of this region may read."""
    at, chosen, default = path("service", "image"), s.service.image, default_image(s.region)
    if chosen is None:
        if default is None:
            why = f"AWS names no registry of its containers for {s.region} (known: {', '.join(sorted(REGISTRY_ACCOUNTS))})"
            yield Fault(at, why, "Mirror the image into a registry of your own and write it here, with tag or digest.")
        return
    fix = set_to(at, default or "<registry>/<repository>:<tag>")
    if (reason := unpinned(chosen)) or (reason := wrong_registry(chosen, s.region)):
        yield Fault(at, reason, fix, chosen)


def ray_version(s: Settings) -> Iterator[Fault]:
    """A Ray that knows token authentication."""
    version, at = s.service.ray_version, path("service", "rayVersion")
    if release(version) < release(versions.RAY_MINIMUM):
        why = f"token authentication, which is always on, needs Ray {versions.RAY_MINIMUM}: without it port 8265 runs anybody's code"
        yield Fault(at, why, set_to(at, versions.RAY), version)


def chart_versions(s: Settings) -> Iterator[Fault]:
    """Charts that know the fields the stack uses, and none that is known to be broken."""
    operator, at = s.addons.kuberay_operator.version, path("addons", "kuberayOperator", "version")
    if release(operator) < release(versions.KUBERAY_MINIMUM):
        why = f"the RayService uses authOptions, which KubeRay knows from {versions.KUBERAY_MINIMUM}"
        yield Fault(at, why, set_to(at, versions.KUBERAY_OPERATOR.version), operator)
    plugin, at = s.addons.nvidia_device_plugin.version, path("addons", "nvidiaDevicePlugin", "version")
    if plugin.removeprefix("v") in versions.NVIDIA_PLUGIN_BROKEN:
        why = "0.19.0 to 0.19.2 switch on MOFED, which nodes with EFA have not; NVIDIA took it back in 0.19.3"
        yield Fault(at, why, set_to(at, versions.NVIDIA_DEVICE_PLUGIN.version), plugin)


def ready_timeout(s: Settings) -> Iterator[Fault]:
    """Long enough to load a model, or no wait at all."""
    minutes, at = s.service.ready_timeout_minutes, path("service", "readyTimeoutMinutes")
    if 0 < minutes < SHORTEST_READY_TIMEOUT:
        why = (
            f"pulling the image and loading the model takes longer; {SHORTEST_READY_TIMEOUT} at least, or 0 to not wait"
        )
        yield Fault(at, why, set_to(at, READY_TIMEOUT_MINUTES), minutes)


RULES: Final = (
    Rule(("service.name", "service.namespace"), names),
    Rule(("service.image", "region"), image),
    Rule(("service.rayVersion",), ray_version),
    Rule(("addons",), chart_versions),
    Rule(("service.readyTimeoutMinutes",), ready_timeout),
)
