"""What an applied Serve configuration asks of a Ray cluster: deployments, their replicas, and where those find room.

Names and sizes are those of Ray 2.58: ray, ``llm/_internal/serve/serving_patterns/prefill_decode/builder.py``,
``core/server/builder.py`` and ``core/ingress/builder.py`` beside it; bundles as ``core/configs/llm_config.py`` makes them.
Left out: ``accelerator_type``, which every GPU worker of a stack has alike, and ``max_replicas_per_node``.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sandbox.kubernetes import syntax

Resources = Mapping[str, float]
"""Ray's resources: ``CPU``, ``GPU`` and custom ones."""

_BUILDERS: Final = {
    "ray.serve.llm:build_pd_openai_app": (("prefill_config", "Prefill:"), ("decode_config", "Decode:")),
    "ray.serve.llm:build_openai_app": (("llm_configs", "LLMServer:"),),
}
_INGRESS: Final = "OpenAiIngress"
_GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True)
class Deployment:
    """One deployment of an application.

    Attributes:
        name: As Serve names it.
        replicas: How many it starts with.
        bundles: What one replica needs; each bundle has to fit on one node.
    """

    name: str
    replicas: int
    bundles: Sequence[Resources]


def deployments(application: Mapping[str, Any]) -> list[Deployment]:
    """The deployments of an application as far as its configuration shows them: code may make more."""
    arguments = application.get("args") or {}
    roles = _BUILDERS.get(application.get("import_path", ""))
    if roles is None:
        return [_plain(one) for one in application.get("deployments") or ()]
    found: list[Deployment] = []
    for key, prefix in roles:
        configs = arguments.get(key) or []
        found += [_engine(prefix, one) for one in (configs if isinstance(configs, list) else [configs])]
    return [*found, Deployment(_INGRESS, 1, [{"CPU": 1}])]


def group_resources(group: Mapping[str, Any]) -> dict[str, float]:
    """What Ray reads as the resources of one node of a head or worker group.

    ray, ``autoscaler/_private/kuberay/autoscaling_config.py``: the group's own ``resources`` or else ``rayStartParams``, and
    the first container's limits for what neither says.
    """
    stated, parameters = group.get("resources") or {}, group.get("rayStartParams") or {}
    container = group["template"]["spec"]["containers"][0].get("resources") or {}
    limits, requests = container.get("limits") or {}, container.get("requests") or {}
    found: dict[str, float] = {}
    for name, parameter, amount in (
        ("CPU", "num-cpus", limits.get("cpu") or requests.get("cpu")),
        ("GPU", "num-gpus", limits.get(_GPU)),
    ):
        # Ray rounds up: half a CPU counts as one.
        if (written := stated.get(name) or parameters.get(parameter) or amount) is not None:
            found[name] = float(math.ceil(syntax.quantity(str(written)) or 0))
    custom = stated or _custom(parameters.get("resources"))
    return found | {key: float(value) for key, value in custom.items() if key not in ("CPU", "GPU", "memory")}


def place(
    wanted: Sequence[Deployment], nodes: Sequence[Resources]
) -> tuple[list[set[str]], dict[str, list[Resources]]]:
    """Puts every replica on the first nodes with room, as the strategy PACK does.

    Returns:
        For each node the deployments that have a part there, and the bundles without a place by deployment.
    """
    room = [dict(node) for node in nodes]
    taken: list[set[str]] = [set() for _ in nodes]
    homeless: dict[str, list[Resources]] = {}
    for deployment in wanted:
        for bundle in _bundles(deployment):
            for index, node in enumerate(room):
                if take(node, bundle):
                    taken[index].add(deployment.name)
                    break
            else:
                homeless.setdefault(deployment.name, []).append(bundle)
    return taken, homeless


def take(node: dict[str, float], bundle: Resources) -> bool:
    """Takes a bundle out of a node's room, if all of it fits."""
    if any(node.get(name, 0.0) < amount for name, amount in bundle.items()):
        return False
    for name, amount in bundle.items():
        node[name] -= amount
    return True


def _bundles(deployment: Deployment) -> Iterator[Resources]:
    for _ in range(deployment.replicas):
        yield from deployment.bundles


def _engine(prefix: str, config: Mapping[str, Any]) -> Deployment:
    model = config["model_loading_config"]["model_id"]
    options, engine = config.get("deployment_config") or {}, config.get("engine_kwargs") or {}
    placement = config.get("placement_group_config") or {}
    workers = int(engine.get("tensor_parallel_size", 1)) * int(engine.get("pipeline_parallel_size", 1))
    bundles = placement.get("bundles") or [placement.get("bundle_per_worker") or {"GPU": 1}] * workers
    # The replica's own actor is in the first bundle.
    first = {**bundles[0], "CPU": bundles[0].get("CPU", 0) + 1}
    name = f"{prefix}{model.replace('/', '--').replace('.', '_')}"
    return Deployment(name, _replicas(options), [first, *bundles[1:]])


def _plain(deployment: Mapping[str, Any]) -> Deployment:
    options = deployment.get("ray_actor_options") or {}
    needs = {
        "CPU": options.get("num_cpus", 1),
        "GPU": options.get("num_gpus", 0),
        **(options.get("resources") or {}),
    }
    bundles = deployment.get("placement_group_bundles") or [{key: value for key, value in needs.items() if value}]
    return Deployment(deployment["name"], _replicas(deployment), bundles)


def _replicas(options: Mapping[str, Any]) -> int:
    written = options.get("num_replicas")
    scaling = options.get("autoscaling_config") or {}
    if isinstance(written, int):
        return written
    return int(scaling.get("initial_replicas") or scaling.get("min_replicas", 1))


def _custom(text: Any) -> Mapping[str, Any]:
    # A JSON object inside the quotes that a shell takes off.
    return json.loads(str(text).strip("'\"").replace("\\", "")) if text else {}
