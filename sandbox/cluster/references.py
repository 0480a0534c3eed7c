"""What a kubelet finds missing before it starts a pod: Secrets and ConfigMaps that the pod refers to, and their keys.

KWOK looks at neither. The words are the kubelet's (k8s.io/kubernetes 1.35, pkg/kubelet/kubelet_pods.go and pkg/volume); staged is that
a missing volume shows in the containers' status, where the kubelet only has an event for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sandbox.cluster import pods
from sandbox.cluster.api import Api

_KINDS: Final = {"secret": "secrets", "configmap": "configmaps"}


@dataclass(frozen=True)
class _Reference:
    kind: str
    name: str
    key: str = ""
    volume: str = ""


def missing(api: Api, pod: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a pod cannot start: reason and message of its waiting containers; None when all is there.

    Raises:
        Refusal: The API server refuses, or does not answer.
    """
    namespace = pod["metadata"]["namespace"]
    for one in (*_of_volumes(pod), *_of_environment(pod)):
        found = api.find(f"/api/v1/namespaces/{namespace}/{_KINDS[one.kind]}/{one.name}")
        reason = "ContainerCreating" if one.volume else "CreateContainerConfigError"
        if found is None:
            message = f'{one.kind} "{one.name}" not found'
            return reason, f'MountVolume.SetUp failed for volume "{one.volume}" : {message}' if one.volume else message
        if one.key and one.key not in {**(found.get("data") or {}), **(found.get("binaryData") or {})}:
            kind = {"secret": "Secret", "configmap": "ConfigMap"}[one.kind]
            return reason, f"couldn't find key {one.key} in {kind} {namespace}/{one.name}"
    return None


def tell(api: Api, pod: Mapping[str, Any], reason: str, message: str) -> None:
    """Writes into a pod's status what it waits for, unless it is there.

    Raises:
        Refusal: The API server refuses, or does not answer.
    """
    waiting = {"waiting": {"reason": reason, "message": message}}
    if any(one.get("state") == waiting for one in pod["status"].get("containerStatuses") or ()):
        return
    statuses = [
        {
            "name": one["name"],
            "image": one["image"],
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": waiting,
        }
        for one in pod["spec"]["containers"]
    ]
    api.patch(pods.path(pod, "/status"), {"status": {"containerStatuses": statuses}})


def _of_volumes(pod: Mapping[str, Any]) -> Iterator[_Reference]:
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume, *(volume.get("projected") or {}).get("sources", ())):
            secret, config = source.get("secret"), source.get("configMap")
            if secret and not secret.get("optional"):
                yield _Reference("secret", secret.get("secretName") or secret["name"], volume=volume["name"])
            if config and not config.get("optional"):
                yield _Reference("configmap", config["name"], volume=volume["name"])


def _of_environment(pod: Mapping[str, Any]) -> Iterator[_Reference]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for all_of in container.get("envFrom") or ():
            for kind, field in (("secret", "secretRef"), ("configmap", "configMapRef")):
                if (one := all_of.get(field)) and not one.get("optional"):
                    yield _Reference(kind, one["name"])
        for variable in container.get("env") or ():
            source = variable.get("valueFrom") or {}
            for kind, field in (("secret", "secretKeyRef"), ("configmap", "configMapKeyRef")):
                if (one := source.get(field)) and not one.get("optional"):
                    yield _Reference(kind, one["name"], one["key"])
