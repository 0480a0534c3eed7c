"""What the API server refuses although the schema allows it, by the definition that each rule belongs to.

Restated from k8s.io/kubernetes pkg/apis/core/validation/validation.go, as far as users of Ray and EFA meet it. A rule
looks at one value, known to have the right types where it is known at all, and passes over what is unknown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sandbox.kubernetes import syntax
from sandbox.standin import UNKNOWN


class Fault(NamedTuple):
    """A refusal; ``path`` is relative to the value that the rule looked at."""

    path: str
    reason: str


Rule = Callable[[Any], Iterator[Fault]]

_NATIVE_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
_HUGE_PAGES: Final = "hugepages-"
_HOST_PATH_TYPES: Final = (
    "",
    "DirectoryOrCreate",
    "Directory",
    "FileOrCreate",
    "File",
    "Socket",
    "CharDevice",
    "BlockDevice",
)
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")


def known(mapping: Any, key: str) -> Any:
    """``mapping[key]`` if it is there and known, else None."""
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    return None if value is UNKNOWN else value


def members(mapping: Any, key: str) -> Mapping[str, Any]:
    """The object under ``key`` if it is there and known, else an empty one."""
    value = known(mapping, key)
    return value if isinstance(value, Mapping) else {}


def entries(mapping: Any, key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The known objects of the list under ``key``, each with its index."""
    found = known(mapping, key)
    if not isinstance(found, (list, tuple)):
        return []
    return [(index, member) for index, member in enumerate(found) if isinstance(member, Mapping)]


def _metadata(value: Mapping[str, Any]) -> Iterator[Fault]:
    for kind, fault_of_value in (("labels", syntax.label_value_fault), ("annotations", None)):
        for key, text in members(value, kind).items():
            if fault := syntax.qualified_name_fault(key.lower() if kind == "annotations" else key):
                yield Fault(f"{kind}.{syntax.key(key)}", f"the key {fault}")
            if fault_of_value and isinstance(text, str) and (fault := fault_of_value(text)):
                yield Fault(f"{kind}.{syntax.key(key)}", fault)


def _quantity(value: Any) -> Iterator[Fault]:
    if syntax.quantity(value) is None:
        yield Fault(
            "", f'{syntax.shown(value)} is no quantity: write a number with a unit such as "500m", "96Gi" or "1"'
        )


def _resources(value: Mapping[str, Any]) -> Iterator[Fault]:
    limits, requests = members(value, "limits"), members(value, "requests")
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _resource(side, name, amount)
    if value.get("limits") is UNKNOWN:
        return
    for name, requested in requests.items():
        request, limited = syntax.quantity(requested), limits.get(name)
        if request is None or limited is UNKNOWN:
            continue
        place, limit, whole = (
            f"requests.{syntax.key(name)}",
            syntax.quantity(limited),
            "/" in name or name.startswith(_HUGE_PAGES),
        )
        if limit is None:
            if whole and limited is None:
                yield Fault(place, f"{name} needs a limit too, equal to the request ({requested})")
        elif whole and request != limit:
            yield Fault(
                place, f"{name} cannot be overcommitted: the request ({requested}) must equal the limit ({limited})"
            )
        elif request > limit:
            yield Fault(place, f"the request ({requested}) is above the limit ({limited})")


def _resource(side: str, name: str, amount: Any) -> Iterator[Fault]:
    place = f"{side}.{syntax.key(name)}"
    if fault := syntax.qualified_name_fault(name):
        yield Fault(place, f"the resource name {fault}")
    elif "/" not in name and name not in _NATIVE_RESOURCES and not name.startswith(_HUGE_PAGES):
        yield Fault(
            place,
            f'"{name}" is no resource: the plain ones are {", ".join(sorted(_NATIVE_RESOURCES))}; a device is named like nvidia.com/gpu',
        )
    elif name.startswith(_HUGE_PAGES) and not _page_size(name):
        yield Fault(place, f'"{name}" names no page size: write hugepages-2Mi or hugepages-1Gi')
    quantity = None if amount is UNKNOWN else syntax.quantity(amount)
    if quantity is None:
        return
    if quantity < 0:
        yield Fault(place, f"must not be negative ({amount})")
    elif (page := _page_size(name)) and quantity % page:
        yield Fault(
            place,
            f'{amount} is no multiple of the page size: write bytes with a unit, such as "{name.removeprefix(_HUGE_PAGES)}"',
        )
    elif "/" in name and quantity != quantity.to_integral_value():
        yield Fault(place, f"{name} is counted in whole devices, not {amount}")


def _page_size(name: str) -> Decimal:
    # IsHugePageResourceValueDivisible: a container's huge pages are whole pages.
    size = syntax.quantity(name.removeprefix(_HUGE_PAGES)) if name.startswith(_HUGE_PAGES) else None
    return max(size or Decimal(0), Decimal(0))


def _pod(value: Mapping[str, Any]) -> Iterator[Fault]:
    volumes = value.get("volumes")
    names = [member.get("name") for _, member in entries(value, "volumes")]
    complete = volumes is not UNKNOWN and UNKNOWN not in (
        *(volumes if isinstance(volumes, (list, tuple)) else ()),
        *names,
    )
    seen: dict[str, str] = {}
    for field in ("initContainers", "containers"):
        for index, container in entries(value, field):
            place = f"{field}[{index}]"
            if isinstance(name := container.get("name"), str):
                if name in seen and not seen[name].startswith(f"{field}["):
                    yield Fault(f"{place}.name", f'"{name}" is already the name of {seen[name]}')
                seen.setdefault(name, place)
            for at, mount in entries(container, "volumeMounts"):
                volume = mount.get("name")
                if complete and isinstance(volume, str) and volume not in names:
                    yield Fault(f"{place}.volumeMounts[{at}].name", f'the pod has no volume "{volume}"{_offer(names)}')
    if isinstance(containers := known(value, "containers"), (list, tuple)) and not containers:
        yield Fault("containers", "a pod needs at least one container")
    yield from _one_of(value, "restartPolicy", _RESTART_POLICIES)
    for key, text in members(value, "nodeSelector").items():
        if fault := syntax.qualified_name_fault(key) or (
            syntax.label_value_fault(text) if isinstance(text, str) else ""
        ):
            yield Fault(f"nodeSelector.{syntax.key(key)}", fault)


def _offer(names: Sequence[Any]) -> str:
    texts = sorted(name for name in names if isinstance(name, str))
    return f" (it has {', '.join(texts)})" if texts else ""


def _container(value: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _name(value)
    image = value.get("image")
    if image in (None, ""):
        yield Fault("image", "is required")
    elif isinstance(image, str) and image != image.strip():
        yield Fault("image", "must not start or end with white space")
    yield from _one_of(value, "imagePullPolicy", _PULL_POLICIES)
    yield from _one_of(value, "terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    seen: set[str] = set()
    for index, mount in entries(value, "volumeMounts"):
        path = known(mount, "mountPath")
        if isinstance(path, str):
            if path in seen:
                yield Fault(f"volumeMounts[{index}].mountPath", f'"{path}" is mounted twice')
            seen.add(path)


def _name(value: Mapping[str, Any]) -> Iterator[Fault]:
    name = known(value, "name")
    if isinstance(name, str) and (fault := syntax.label_fault(name)):
        yield Fault("name", fault)


def _security_context(value: Mapping[str, Any]) -> Iterator[Fault]:
    if known(value, "allowPrivilegeEscalation") is False:
        if known(value, "privileged") is True:
            yield Fault("allowPrivilegeEscalation", "cannot be false in a privileged container: leave it out")
        elif "SYS_ADMIN" in (known(members(value, "capabilities"), "add") or ()):
            yield Fault("allowPrivilegeEscalation", "cannot be false in a container that adds SYS_ADMIN: leave it out")


def _environment_variable(value: Mapping[str, Any]) -> Iterator[Fault]:
    name = known(value, "name")
    if isinstance(name, str):
        if not name:
            yield Fault("name", "must not be empty")
        elif "=" in name or not all(" " <= letter <= "~" for letter in name):
            yield Fault("name", f'"{name}" must be printable ASCII without "="')
    if known(value, "value") and value.get("valueFrom") is not None:
        yield Fault("valueFrom", "cannot stand beside a value: keep one of the two")


def _environment_source(value: Mapping[str, Any]) -> Iterator[Fault]:
    sources = [name for name, source in value.items() if source is not None]
    if len(sources) != 1:
        yield Fault(
            "", f"must have exactly one source, not {len(sources)}{': ' if sources else ''}{', '.join(sources)}"
        )


def _volume(value: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _name(value)
    sources = [name for name, source in value.items() if name != "name" and source is not None]
    if len(sources) > 1:
        yield Fault("", f"must have one kind of volume, not {len(sources)}: {', '.join(sources)}")


def _volume_mount(value: Mapping[str, Any]) -> Iterator[Fault]:
    for field in ("subPath", "subPathExpr"):
        path = known(value, field)
        if isinstance(path, str) and (path.startswith("/") or ".." in path.split("/")):
            yield Fault(field, f'"{path}" must be relative and stay inside the volume')
    if known(value, "subPath") and known(value, "subPathExpr"):
        yield Fault("subPathExpr", "cannot stand beside subPath: keep one of the two")


def _host_path(value: Mapping[str, Any]) -> Iterator[Fault]:
    path, kind = known(value, "path"), known(value, "type")
    if isinstance(path, str) and ".." in path.split("/"):
        yield Fault("path", f'"{path}" must not contain ".."')
    if kind is not None and kind not in _HOST_PATH_TYPES:
        yield Fault("type", f'"{kind}" is none of {", ".join(_HOST_PATH_TYPES[1:])}')


def _empty_dir(value: Mapping[str, Any]) -> Iterator[Fault]:
    medium = known(value, "medium")
    if isinstance(medium, str) and medium not in ("", "Memory", "HugePages") and not medium.startswith("HugePages-"):
        yield Fault("medium", f'"{medium}" is none of Memory, HugePages, HugePages-<size>')


def _toleration(value: Mapping[str, Any]) -> Iterator[Fault]:
    operator, key = known(value, "operator"), known(value, "key")
    if operator is not None and operator not in ("", "Exists", "Equal"):
        yield Fault("operator", f'"{operator}" is none of Exists, Equal')
    if value.get("key") in (None, "") and value.get("operator") in (None, "", "Equal"):
        yield Fault("operator", "must be Exists when there is no key, which then tolerates every taint")
    if operator == "Exists" and known(value, "value"):
        yield Fault("value", "must be empty when the operator is Exists")
    if isinstance(key, str) and key and (fault := syntax.qualified_name_fault(key)):
        yield Fault("key", fault)
    yield from _one_of(value, "effect", ("", *_EFFECTS))
    if value.get("tolerationSeconds") is not None and known(value, "effect") not in (None, "NoExecute"):
        yield Fault("effect", "must be NoExecute when tolerationSeconds is set")


def _affinity_term(value: Mapping[str, Any]) -> Iterator[Fault]:
    key = value.get("topologyKey")
    if key == "":
        yield Fault("topologyKey", "must not be empty: kubernetes.io/hostname keeps pods on different nodes")
    elif isinstance(key, str) and (fault := syntax.qualified_name_fault(key)):
        yield Fault("topologyKey", fault)


def _selector(value: Mapping[str, Any]) -> Iterator[Fault]:
    for key, text in members(value, "matchLabels").items():
        if fault := syntax.qualified_name_fault(key) or (
            syntax.label_value_fault(text) if isinstance(text, str) else ""
        ):
            yield Fault(f"matchLabels.{syntax.key(key)}", fault)
    for index, requirement in entries(value, "matchExpressions"):
        for fault in _requirement(requirement, ("In", "NotIn", "Exists", "DoesNotExist")):
            yield Fault(f"matchExpressions[{index}].{fault.path}", fault.reason)


def _node_requirement(value: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _requirement(value, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))


def _requirement(value: Mapping[str, Any], operators: Sequence[str]) -> Iterator[Fault]:
    operator = known(value, "operator")
    yield from _one_of(value, "operator", operators)
    values = value.get("values")
    if values is UNKNOWN:
        return
    if operator in ("In", "NotIn") and not values:
        yield Fault("values", f"must not be empty with the operator {operator}")
    if operator in ("Exists", "DoesNotExist") and values:
        yield Fault("values", f"must be left out with the operator {operator}")


def _one_of(value: Mapping[str, Any], field: str, choices: Sequence[str]) -> Iterator[Fault]:
    found = known(value, field)
    if isinstance(found, str) and found not in choices:
        yield Fault(field, f'"{found}" is none of {", ".join(choice for choice in choices if choice)}')


def _service(value: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _one_of(value, "type", ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"))
    ports = entries(value, "ports")
    for index, port in ports:
        number = known(port, "port")
        if isinstance(number, int) and not 1 <= number <= 65535:
            yield Fault(f"ports[{index}].port", f"must be between 1 and 65535, not {number}")
        if len(ports) > 1 and port.get("name") is None:
            yield Fault(f"ports[{index}].name", "each port needs a name when there are several")


def _container_port(value: Mapping[str, Any]) -> Iterator[Fault]:
    number = known(value, "containerPort")
    if isinstance(number, int) and not 1 <= number <= 65535:
        yield Fault("containerPort", f"must be between 1 and 65535, not {number}")
    name = known(value, "name")
    if isinstance(name, str) and (len(name) > 15 or syntax.label_fault(name)):
        yield Fault("name", f'"{name}" must be at most 15 lower-case letters, digits and "-"')


def _probe(value: Mapping[str, Any]) -> Iterator[Fault]:
    handlers = [name for name in ("exec", "httpGet", "tcpSocket", "grpc") if value.get(name) is not None]
    if len(handlers) != 1:
        yield Fault("", f"must have exactly one of exec, httpGet, tcpSocket and grpc, not {len(handlers)}")


def _controller(value: Mapping[str, Any]) -> Iterator[Fault]:
    metadata = members(value, "template").get("metadata")
    if UNKNOWN in (value.get("template"), metadata) or (
        isinstance(metadata, Mapping) and metadata.get("labels") is UNKNOWN
    ):
        return
    labels = members(metadata, "labels")
    for key, text in members(members(value, "selector"), "matchLabels").items():
        if UNKNOWN not in (text, labels.get(key)) and labels.get(key) != text:
            yield Fault("template.metadata.labels", f'must carry {key}: "{text}", which the selector asks for')


_CORE: Final = "io.k8s.api.core.v1."
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."

RULES: Final[Mapping[str, Rule]] = {
    "ObjectMeta": _metadata,
    _META + "ObjectMeta": _metadata,
    _META + "LabelSelector": _selector,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    _CORE + "ResourceRequirements": _resources,
    _CORE + "PodSpec": _pod,
    _CORE + "Container": _container,
    _CORE + "SecurityContext": _security_context,
    _CORE + "EnvVar": _environment_variable,
    _CORE + "EnvVarSource": _environment_source,
    _CORE + "Volume": _volume,
    _CORE + "VolumeMount": _volume_mount,
    _CORE + "HostPathVolumeSource": _host_path,
    _CORE + "EmptyDirVolumeSource": _empty_dir,
    _CORE + "Toleration": _toleration,
    _CORE + "PodAffinityTerm": _affinity_term,
    _CORE + "NodeSelectorRequirement": _node_requirement,
    _CORE + "ServiceSpec": _service,
    _CORE + "ContainerPort": _container_port,
    _CORE + "Probe": _probe,
    "io.k8s.api.apps.v1.DeploymentSpec": _controller,
    "io.k8s.api.apps.v1.StatefulSetSpec": _controller,
    "io.k8s.api.apps.v1.DaemonSetSpec": _controller,
}
"""One rule per definition; a kind that embeds the definition anywhere is judged by it."""
