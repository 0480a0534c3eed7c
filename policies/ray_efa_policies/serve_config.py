"""Reads a Ray Serve configuration: the YAML text of ``serveConfigV2``, its applications, roles and environments."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import yaml

from .values import UNKNOWN, at, mapping, sequence

PD_BUILDER: Final = "build_pd_openai_app"
"""Ray's builder of a prefill/decode application; it demands a kv_transfer_config on both roles (Ray 2.58 sources)."""

ROLES: Final = ("prefill", "decode")
_MERGE: Final = "tag:yaml.org,2002:merge"
_RAYS_OWN: Final = ("CPU", "GPU", "memory", "object_store_memory")
_RAYS_OWN_PREFIXES: Final = ("node:", "accelerator_type:")
_MAX_NODES: Final = 100_000
_MAX_DEPTH: Final = 64


@dataclass(frozen=True)
class ServeConfig:
    """A parsed ``serveConfigV2``: its tree, or the reason why there is none."""

    tree: object = None
    reason: str = ""


@dataclass(frozen=True)
class Application:
    """One Serve application and where it stands, such as ``applications[0]``."""

    path: str
    value: Mapping[str, object]

    @property
    def import_path(self) -> object:
        """What Serve imports: ``module:attribute``."""
        return self.value.get("import_path")

    @property
    def is_prefill_decode(self) -> bool:
        """Whether Ray's own prefill/decode builder makes it."""
        return re.split(r"[:.]", str(self.import_path))[-1] == PD_BUILDER

    @property
    def is_ray_llm(self) -> bool:
        """Whether one of Ray's own LLM builders makes it, so that its arguments tell all."""
        return str(self.import_path).startswith(("ray.serve.llm", "ray.llm."))


@dataclass(frozen=True)
class LlmConfig:
    """One LLMConfig of an application: of a role, or an element of ``llm_configs``."""

    label: str
    path: str
    value: object
    required: bool
    """Whether the application cannot move a KV cache without it."""


def parse(text: object) -> ServeConfig:
    """Parses ``serveConfigV2``. Never raises, and never quotes the text: it may hold a token.

    Args:
        text: the property as the program gives it; UNKNOWN is the caller's matter.
    """
    found = parse_mapping(text)
    root = mapping(found.tree)
    if not found.reason and not sequence(root.get("applications")) and "import_path" not in root:
        return ServeConfig(tree=root, reason="a mapping without a list 'applications'")
    return found


def parse_mapping(text: object) -> ServeConfig:
    """Parses a YAML text that KubeRay takes for a mapping, as KubeRay does: JSON, or the first YAML document.

    KubeRay reads with ``sigs.k8s.io/yaml``. Where that one sees other values than PyYAML, there is a tree and a reason.
    """
    if text is None:
        return ServeConfig(reason="missing")
    if not isinstance(text, str):
        return ServeConfig(reason="not a string")
    try:
        value, reason = _loaded(text)
        tree = _unfolded(value, [0], 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return ServeConfig(reason="not YAML" + (f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""))
    except Exception:  # PyYAML lets several kinds of error escape on hostile text; none may stop the other policies
        return ServeConfig(reason="not YAML that can be read")
    if tree is None:
        return ServeConfig(reason="empty")
    if not isinstance(tree, Mapping):
        return ServeConfig(reason="YAML, but not a mapping")
    return ServeConfig(tree=mapping(cast("object", tree)), reason=reason)


def _loaded(text: str) -> tuple[object, str]:
    try:
        return json.loads(text), ""  # JSON may be indented with tabs, which PyYAML refuses
    except ValueError:
        pass
    loader = yaml.SafeLoader(text)
    try:
        if not loader.check_node():
            return None, ""
        node = cast("yaml.Node", loader.get_node())
        reason = _read_differently(node, set())
        return cast("object", loader.construct_document(node)), reason  # pyright: ignore[reportUnknownMemberType]
    finally:
        loader.dispose()


def _read_differently(node: yaml.Node, seen: set[int]) -> str:
    """Where a ``<<`` follows a key that it brings, too: Go's parser takes the later one, PyYAML the explicit one."""
    if id(node) in seen:
        return ""
    seen.add(id(node))
    children: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        before: set[str] = set()
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if key.tag == _MERGE and not before.isdisjoint(_merged_keys(value, set())):
                return f"YAML that parsers read differently (line {key.start_mark.line + 1}: '<<' after a key that it also sets)"
            if key.tag != _MERGE:
                before.add(str(key.value))
            children += [key, value]
    elif isinstance(node, yaml.SequenceNode):
        children = cast("list[yaml.Node]", node.value)
    return next((reason for child in children if (reason := _read_differently(child, seen))), "")


def _merged_keys(node: yaml.Node, seen: set[int]) -> set[str]:
    """The keys that a ``<<`` brings: of a mapping, of each mapping in a list, and of what these merge in their turn."""
    if id(node) in seen:
        return set()
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return {key for item in cast("list[yaml.Node]", node.value) for key in _merged_keys(item, seen)}
    if not isinstance(node, yaml.MappingNode):
        return set()
    found: set[str] = set()
    for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
        found |= _merged_keys(value, seen) if key.tag == _MERGE else {str(key.value)}
    return found


def _unfolded(node: object, count: list[int], depth: int) -> object:
    """A copy without shared nodes and with text keys; refuses trees that aliases blow up or make endless."""
    count[0] += 1
    if count[0] > _MAX_NODES or depth > _MAX_DEPTH:
        raise ValueError("too large")
    if isinstance(node, Mapping):
        items = cast("Mapping[object, object]", node).items()
        return {str(key): _unfolded(value, count, depth + 1) for key, value in items}
    if isinstance(node, Sequence) and not isinstance(node, str | bytes):
        return [_unfolded(value, count, depth + 1) for value in cast("Sequence[object]", node)]
    return node if node is None or isinstance(node, bool | int | float | str) else str(node)


def applications(tree: object) -> list[Application]:
    """The applications of a parsed configuration; one that stands at the root counts too."""
    found = [
        Application(f"applications[{index}]", mapping(value))
        for index, value in enumerate(sequence(at(tree, "applications")))
    ]
    if "import_path" in mapping(tree):
        found.append(Application("(root)", mapping(tree)))
    return found


def llm_configs(application: Application) -> list[LlmConfig]:
    """The LLMConfigs of an application: both roles of a prefill/decode one, whether given or not, or what is listed."""
    args = application.value.get("args")
    path = f"{application.path}.args"
    if application.is_prefill_decode:
        return [LlmConfig(role, f"{path}.{role}_config", at(args, f"{role}_config"), required=True) for role in ROLES]
    listed = [
        LlmConfig(f"llm_configs[{index}]", f"{path}.llm_configs[{index}]", value, required=False)
        for index, value in enumerate(sequence(at(args, "llm_configs")))
    ]
    for key in ("llm_config", *(f"{role}_config" for role in ROLES)):
        value = at(args, key)
        if value is not None:
            listed.append(LlmConfig(key.removesuffix("_config"), f"{path}.{key}", value, required=False))
    return listed


def asked_resources(config: LlmConfig) -> set[str]:
    """The names of the custom resources that an LLMConfig's engines ask of the Ray nodes they run on."""
    placement = at(config.value, "placement_group_config")
    bundles = [
        at(placement, "bundle_per_worker"),
        *sequence(at(placement, "bundles")),
        at(config.value, "resources_per_bundle"),
        at(config.value, "deployment_config", "ray_actor_options", "resources"),
    ]
    named = {(name, str(amount)) for bundle in bundles for name, amount in mapping(bundle).items()}
    return {
        name
        for name, amount in named
        if name not in _RAYS_OWN and not name.startswith(_RAYS_OWN_PREFIXES) and amount not in ("0", "0.0")
    }


def environment(config: LlmConfig, application: Application) -> Mapping[str, object]:
    """The variables that ``runtime_env`` gives to one LLMConfig's replicas; the nearer setting wins."""
    merged: dict[str, object] = {}
    for runtime_env in (
        at(application.value, "runtime_env"),
        at(config.value, "deployment_config", "ray_actor_options", "runtime_env"),
        at(config.value, "runtime_env"),
    ):
        merged.update(mapping(at(runtime_env, "env_vars")))
    return merged


def walk(node: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every node of a tree with its path, parents first; the root's own path is the one given."""
    yield path, node
    if isinstance(node, Mapping):
        for key, child in mapping(cast("object", node)).items():
            yield from walk(child, f"{path}.{key}" if path else key)
    elif node is not UNKNOWN:
        for index, child in enumerate(sequence(node)):
            yield from walk(child, f"{path}[{index}]")
