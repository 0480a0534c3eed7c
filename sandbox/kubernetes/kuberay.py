"""What the KubeRay operator itself refuses of a RayService, RayCluster, RayJob or RayCronJob that its CRD accepts.

Restated from ray-project/kuberay v1.6.0, ray-operator/controllers/ray/utils/validation.go, and from the CRDs' CEL rules.
On a real cluster such an object is stored and then sits with the reason ValidationFailed (from 1.6.0) or is retried for
ever; the sandbox says it in the preview.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from sandbox.kubernetes import syntax
from sandbox.kubernetes.rules import Fault, entries, known, members
from sandbox.standin import UNKNOWN

# utils.MaxRayServiceNameLength and its like: room for the suffixes that the operator appends.
_NAME_LIMITS: Final = {"RayService": 47, "RayCluster": 53, "RayJob": 47}
_FAULT_TOLERANCE_ANNOTATION: Final = "ray.io/ft-enabled"
_MANAGERS: Final = ("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue")
_SERVICE_UPGRADES: Final = ("NewClusterWithIncrementalUpgrade", "NewCluster", "None")
_RESOURCE_PARAMETERS: Final = ("num-cpus", "num-gpus", "memory", "resources")
_TOKEN_AUTH_SINCE: Final = (2, 52, 0)
_AUTOSCALER_V2: Final = "RAY_enable_autoscaler_v2"


def judge(kind: str, value: Mapping[str, Any]) -> Iterator[Fault]:
    """Yields what the operator refuses of an object of ``kind`` (``RayService``, ...)."""
    yield from _named(kind, value)
    spec, annotations = members(value, "spec"), members(members(value, "metadata"), "annotations")
    if kind == "RayService":
        yield from _service(spec, annotations)
    elif kind == "RayCluster":
        yield from _under("spec", _cluster(spec, annotations))
    elif kind == "RayJob":
        yield from _under("spec", _job(spec, annotations))
    elif kind == "RayCronJob":
        yield from _under("spec.jobTemplate", _job(members(spec, "jobTemplate"), {}))


def pods_of(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The pod specs of a Ray object's head and worker groups."""
    spec = members(value, "spec")
    cluster = members(spec, "rayClusterConfig") or members(spec, "rayClusterSpec") or spec
    groups = [members(cluster, "headGroupSpec"), *(one for _, one in entries(cluster, "workerGroupSpecs"))]
    return [members(members(group, "template"), "spec") for group in groups]


def _named(kind: str, value: Mapping[str, Any]) -> Iterator[Fault]:
    name, limit = known(members(value, "metadata"), "name"), _NAME_LIMITS.get(kind)
    if limit is None or not isinstance(name, str):
        return
    if len(name) > limit:
        yield Fault("metadata.name", f'"{name}" has {len(name)} characters, and KubeRay allows a {kind} {limit}')
    elif fault := syntax.dns_1035_fault(name):
        yield Fault("metadata.name", fault)


def _service(spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _yaml("spec.serveConfigV2", known(spec, "serveConfigV2"))
    yield from _managed_by("spec", spec)
    cluster = members(spec, "rayClusterConfig")
    yield from _under("spec.rayClusterConfig", _cluster(cluster, annotations))
    if known(members(members(members(cluster, "headGroupSpec"), "headService"), "metadata"), "name"):
        yield Fault(
            "spec.rayClusterConfig.headGroupSpec.headService.metadata.name",
            "must be left out: KubeRay names the head's Service",
        )
    if known(members(cluster, "authOptions"), "enableK8sTokenAuth") is True:
        yield Fault("spec.rayClusterConfig.authOptions.enableK8sTokenAuth", "is not supported for a RayService")
    upgrade = members(spec, "upgradeStrategy")
    kind = known(upgrade, "type")
    if isinstance(kind, str) and kind not in _SERVICE_UPGRADES:
        yield Fault("spec.upgradeStrategy.type", f'"{kind}" is none of {", ".join(_SERVICE_UPGRADES)}')
    if known(members(cluster, "upgradeStrategy"), "type"):
        yield Fault(
            "spec.rayClusterConfig.upgradeStrategy.type", "cannot be set in a RayService: use spec.upgradeStrategy.type"
        )
    if kind == "NewClusterWithIncrementalUpgrade":
        yield from _incremental(cluster, upgrade)


def _incremental(cluster: Mapping[str, Any], upgrade: Mapping[str, Any]) -> Iterator[Fault]:
    if cluster.get("enableInTreeAutoscaling") in (None, False):
        yield Fault(
            "spec.rayClusterConfig.enableInTreeAutoscaling", "must be true for NewClusterWithIncrementalUpgrade"
        )
    if upgrade.get("clusterUpgradeOptions") is None:
        yield Fault("spec.upgradeStrategy.clusterUpgradeOptions", "is required for NewClusterWithIncrementalUpgrade")
    options = members(upgrade, "clusterUpgradeOptions")
    for field in ("maxSurgePercent", "stepSizePercent"):
        percent = known(options, field)
        if isinstance(percent, int) and not 0 <= percent <= 100:
            yield Fault(
                f"spec.upgradeStrategy.clusterUpgradeOptions.{field}", f"must be between 0 and 100, not {percent}"
            )


def _cluster(spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> Iterator[Fault]:
    head = members(spec, "headGroupSpec")
    autoscaling = spec.get("enableInTreeAutoscaling")
    yield from _managed_by("", spec)
    yield from _group("headGroupSpec", "the head group", head)
    taken: dict[str, int] = {}
    for index, group in entries(spec, "workerGroupSpecs"):
        place, name = f"workerGroupSpecs[{index}]", known(group, "groupName")
        yield from _group(place, f'worker group "{name}"', group)
        yield from _replicas(place, group)
        if isinstance(name, str):
            if name in taken:
                # The operator tells groups apart by this name alone; two of one name fight over each other's pods.
                yield Fault(f"{place}.groupName", f'"{name}" is already the name of workerGroupSpecs[{taken[name]}]')
            taken.setdefault(name, index)
        if known(group, "suspend") is True:
            yield Fault(
                f"{place}.suspend", "needs the operator's RayJobDeletionPolicy feature gate, which is off by default"
            )
        if group.get("idleTimeoutSeconds") is not None and not _may_be_autoscaler_v2(spec, head):
            yield Fault(f"{place}.idleTimeoutSeconds", 'needs autoscalerOptions.version "v2"')
    yield from _autoscaler(spec, head, autoscaling)
    yield from _fault_tolerance(spec, head, annotations)
    yield from _authentication(spec)


def _group(place: str, spoken: str, group: Mapping[str, Any]) -> Iterator[Fault]:
    parameters = members(group, "rayStartParams")
    if known(group, "resources") and any(parameters.get(key) is not None for key in _RESOURCE_PARAMETERS):
        yield Fault(f"{place}.resources", f"{spoken} sets resources here and in rayStartParams: keep one of the two")
    if "labels" in parameters:
        yield Fault(f"{place}.rayStartParams.labels", "is not supported: use the group's own labels field")
    for key, text in members(group, "labels").items():
        fault = syntax.qualified_name_fault(key) or (syntax.label_value_fault(text) if isinstance(text, str) else "")
        if fault:
            yield Fault(f"{place}.labels.{syntax.key(key)}", fault)


def _replicas(place: str, group: Mapping[str, Any]) -> Iterator[Fault]:
    least, most = known(group, "minReplicas"), known(group, "maxReplicas")
    for field, number in (("minReplicas", least), ("maxReplicas", most)):
        if isinstance(number, int) and number < 0:
            yield Fault(f"{place}.{field}", f"must not be negative ({number})")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield Fault(f"{place}.minReplicas", f"{least} is above maxReplicas ({most})")


def _may_be_autoscaler_v2(spec: Mapping[str, Any], head: Mapping[str, Any]) -> bool:
    if members(spec, "autoscalerOptions").get("version") in ("v2", UNKNOWN) or spec.get("autoscalerOptions") is UNKNOWN:
        return True
    return any(known(variable, "name") == _AUTOSCALER_V2 for _, variable in _head_environment(head))


def _autoscaler(spec: Mapping[str, Any], head: Mapping[str, Any], autoscaling: Any) -> Iterator[Fault]:
    options = members(spec, "autoscalerOptions")
    idle = known(options, "idleTimeoutSeconds")
    if isinstance(idle, int) and idle < 0:
        yield Fault("autoscalerOptions.idleTimeoutSeconds", f"must not be negative ({idle})")
    for at, variable in _head_environment(head):
        if (
            known(variable, "name") == _AUTOSCALER_V2
            and autoscaling in (None, False)
            and known(variable, "value") in ("1", "true")
        ):
            yield Fault(f"headGroupSpec.{at}", f"{_AUTOSCALER_V2} needs enableInTreeAutoscaling: true")
        elif known(variable, "name") == _AUTOSCALER_V2 and options.get("version") is not None:
            yield Fault(
                f"headGroupSpec.{at}", f"{_AUTOSCALER_V2} and autoscalerOptions.version are both set: keep the latter"
            )
    if autoscaling is not True or known(options, "version") != "v2":
        return
    groups = [
        ("headGroupSpec", head),
        *((f"workerGroupSpecs[{at}]", group) for at, group in entries(spec, "workerGroupSpecs")),
    ]
    for place, group in groups:
        policy = known(members(members(group, "template"), "spec"), "restartPolicy")
        if policy not in (None, "", "Never"):
            yield Fault(
                f"{place}.template.spec.restartPolicy",
                f'must be Never or left out with the autoscaler v2, not "{policy}"',
            )


def _fault_tolerance(
    spec: Mapping[str, Any], head: Mapping[str, Any], annotations: Mapping[str, Any]
) -> Iterator[Fault]:
    chosen = spec.get("gcsFaultToleranceOptions") is not None
    by_annotation = annotations.get(_FAULT_TOLERANCE_ANNOTATION) in ("true", UNKNOWN)
    parameters = members(head, "rayStartParams")
    for at, variable in _head_environment(head):
        name = known(variable, "name")
        if name == "RAY_REDIS_ADDRESS" and not by_annotation:
            wish = (
                "gcsFaultToleranceOptions.redisAddress is the place for it"
                if chosen
                else "set gcsFaultToleranceOptions instead"
            )
            yield Fault(
                f"headGroupSpec.{at}", f"RAY_REDIS_ADDRESS turns on GCS fault tolerance behind KubeRay's back: {wish}"
            )
        elif name == "REDIS_PASSWORD" and chosen:
            yield Fault(f"headGroupSpec.{at}", "use gcsFaultToleranceOptions.redisPassword instead of REDIS_PASSWORD")
        elif name == "REDIS_USERNAME":
            yield Fault(f"headGroupSpec.{at}", "use gcsFaultToleranceOptions.redisUsername instead of REDIS_USERNAME")
    if chosen and parameters.get("redis-password") is not None:
        yield Fault(
            'headGroupSpec.rayStartParams["redis-password"]', "use gcsFaultToleranceOptions.redisPassword instead"
        )
    if parameters.get("redis-username") is not None:
        yield Fault(
            'headGroupSpec.rayStartParams["redis-username"]', "use gcsFaultToleranceOptions.redisUsername instead"
        )


def _authentication(spec: Mapping[str, Any]) -> Iterator[Fault]:
    if known(members(spec, "authOptions"), "mode") != "token" or spec.get("rayVersion") is UNKNOWN:
        return
    found = spec.get("rayVersion")
    if not isinstance(found, str) or not found:
        yield Fault(
            "rayVersion",
            'is required with authOptions.mode "token": name the Ray version of the image, 2.52.0 or later',
        )
        return
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", found)
    if match is None:
        yield Fault("rayVersion", f'"{found}" is no version such as 2.58.0')
    elif tuple(int(part or 0) for part in match.groups()) < _TOKEN_AUTH_SINCE:
        yield Fault("rayVersion", f'authOptions.mode "token" needs Ray 2.52.0 or later, not {found}')


def _job(spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _yaml("runtimeEnvYAML", known(spec, "runtimeEnvYAML"))
    yield from _managed_by("", spec)
    selected = spec.get("clusterSelector") not in (None, {})
    if spec.get("rayClusterSpec") is None and not selected:
        yield Fault("rayClusterSpec", "is required unless clusterSelector names a cluster")
    shut_down = spec.get("shutdownAfterJobFinishes") in (None, False)
    if known(spec, "suspend") is True and shut_down:
        yield Fault("suspend", "needs shutdownAfterJobFinishes: true")
    seconds = known(spec, "ttlSecondsAfterFinished")
    if isinstance(seconds, int) and (seconds < 0 or (seconds and shut_down)):
        yield Fault(
            "ttlSecondsAfterFinished", "must not be negative" if seconds < 0 else "needs shutdownAfterJobFinishes: true"
        )
    for field in ("activeDeadlineSeconds", "preRunningDeadlineSeconds"):
        deadline = known(spec, field)
        if isinstance(deadline, int) and deadline <= 0:
            yield Fault(field, f"must be above 0, not {deadline}")
    if known(spec, "backoffLimit") and (selected or known(spec, "submissionMode") == "InteractiveMode"):
        yield Fault("backoffLimit", "must be 0 with clusterSelector or InteractiveMode")
    if known(spec, "submissionMode") == "SidecarMode":
        for field in ("clusterSelector", "submitterPodTemplate", "submitterConfig"):
            if spec.get(field) is not None:
                yield Fault(field, "is not supported in SidecarMode")
    yield from _under("rayClusterSpec", _cluster(members(spec, "rayClusterSpec"), annotations))


def _head_environment(head: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    # KubeRay reads the first container only.
    for _, container in entries(members(members(head, "template"), "spec"), "containers")[:1]:
        for index, variable in entries(container, "env"):
            yield f"template.spec.containers[0].env[{index}].name", variable


def _managed_by(place: str, spec: Mapping[str, Any]) -> Iterator[Fault]:
    manager = known(spec, "managedBy")
    if isinstance(manager, str) and manager not in _MANAGERS:
        yield Fault(f"{place}.managedBy".removeprefix("."), f'"{manager}" is none of {", ".join(_MANAGERS)}')


def _yaml(place: str, text: Any) -> Iterator[Fault]:
    if not isinstance(text, str):
        return
    try:
        document = _first_document(text)
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        yield Fault(place, f"is not YAML{where}: {getattr(fault, 'problem', None) or 'it cannot be read'}")
        return
    if document is not None and not isinstance(document, Mapping):
        yield Fault(place, "must be a YAML mapping")


def _first_document(text: str) -> Any:
    # sigs.k8s.io/yaml: JSON is YAML even with tabs, which PyYAML refuses, and nothing after the first document is read.
    try:
        return json.loads(text)
    except ValueError:
        return next(iter(yaml.safe_load_all(text)), None)


def _under(place: str, faults: Iterator[Fault]) -> Iterator[Fault]:
    for fault in faults:
        yield Fault(f"{place}.{fault.path}", fault.reason)
