"""What goes wrong in a cluster on demand.

The plan lies in the cluster's folder (``faults.json``: ``kind``, ``resource``, ``times``); the file ``struck.json`` tells what
it met. A new plan takes away the trouble of the one before; that of a run without faults is empty. ``resource`` is a shell
pattern for the name of an object or one of its labels' values, so ``decode`` names the pods of a worker group too.

What is real and what is staged:

- ``api-server-restart``: the process ends and starts again while a pod that was asked for is not Ready. All real.
- ``worker-never-ready``: a worker's pod whose readiness probe never succeeds. The kubelet's words are staged, as the kubelet
  is; what the operator, the API server and Pulumi make of it is real. Such a pod has no address.
- ``operator-missing``: the image of the operator's pod is not in its registry. Staged is the kubelet again; that the Deployment
  does not progress, the Helm release fails and no operator acts on Ray objects is real.
- ``namespace-terminating``: a ConfigMap in the namespace carries a finalizer whose controller does not exist. That is staged;
  that the namespace hangs, and what its conditions say, is real.
- ``application-fails``: Serve says that an application that was sent under this plan failed to deploy. Staged, with Serve's words;
  what the operator makes of it is real.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from sandbox.cluster import pods
from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.layout import Folder
from sandbox.cluster.processes import HELD
from sandbox.cluster.ray_dashboard import RayBehaviour
from sandbox.faults import FaultKind

FINALIZER: Final = "ray-llm.sandbox/controller-that-is-gone"
_CARRIER: Final = "kube-root-ca.crt"
"""A ConfigMap that the controller manager makes in every namespace."""

_OPERATOR_IMAGE: Final = "kuberay/operator"
_ENGINE_FAULT: Final = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
"""What vLLM raises when its engine process ends early (vllm-project/vllm, ``vllm/v1/engine/utils.py``; #21882)."""

_HOLDS: Final = (FaultKind.WORKER_NEVER_READY, FaultKind.OPERATOR_MISSING)

Pod = Mapping[str, Any]


class Mishaps:
    """The faults that a cluster meets now.

    Args:
        folder: The cluster's.
        restart: Restarts its API server, and returns when it is ready.
    """

    def __init__(self, folder: Folder, restart: Callable[[], None]) -> None:
        self._folder = folder
        self._restart = restart
        self._plan: list[dict[str, Any]] = []
        self._read: tuple[int, int] | None = None
        self._since = 0.0
        self._struck: dict[tuple[FaultKind, str], dict[str, Any]] = {}
        self._cleared = False

    def behaviour(self) -> RayBehaviour:
        """How Ray behaves now."""
        failing = [met["cluster"] for (kind, _), met in self._struck.items() if kind is FaultKind.APPLICATION_FAILS]
        if not failing:
            return RayBehaviour()
        return RayBehaviour("DEPLOY_FAILED", _ENGINE_FAULT, frozenset(map(tuple, failing)), self._since)

    def forbids_ready(self, pod: Pod) -> bool:
        """Whether a pod must not become Ready."""
        return any((kind, pod["metadata"]["uid"]) in self._struck for kind in _HOLDS)

    def tick(self, api: Api, running: Sequence[Pod]) -> None:
        """Strikes what is planned, and takes away what is not planned any more.

        Args:
            api: The cluster's API server.
            running: All its pods.

        Raises:
            Refusal: The API server refuses, or does not answer.
        """
        self._look_at_plan()
        if not self._cleared:
            _free_namespaces(api)
            self._cleared = True
        for pod in running:
            self._hold_or_release(api, pod)
        self._fail_applications(running)
        self._hang_namespaces(api, running)
        self._restart_in_between(running)

    def _look_at_plan(self) -> None:
        path = self._folder.path / "faults.json"
        found = path.stat() if path.exists() else None
        # Each run writes a new file, even with the same faults.
        read = (found.st_ino, found.st_mtime_ns) if found else (0, 0)
        if read == self._read:
            return
        self._read, self._cleared = read, False
        self._plan = [{**one, "left": one["times"]} for one in self._folder.faults]
        self._since = found.st_mtime if found else 0.0
        self._struck = {}
        self._tell()

    def _strike(
        self, kind: FaultKind, key: str, names: Iterable[str], told: str, by_default: bool = True, **more: Any
    ) -> bool:
        """Whether a fault meets an object, now or before; ``names`` are those that the plan may call it by."""
        if (kind, key) in self._struck:
            return True
        for one in self._plan:
            aimed = any(fnmatchcase(name, one["resource"]) for name in names) if one["resource"] else by_default
            if one["kind"] == kind and one["left"] and aimed:
                one["left"] -= 1
                self._struck[kind, key] = {
                    "kind": kind,
                    "resource": one["resource"],
                    "object": told,
                    "at": time.time(),
                    **more,
                }
                self._tell()
                return True
        return False

    def _tell(self) -> None:
        path = self._folder.path / "struck.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(list(self._struck.values())))
        os.replace(fresh, path)

    def _hold_or_release(self, api: Api, pod: Pod) -> None:
        metadata = pod["metadata"]
        held = HELD in (metadata.get("annotations") or {})
        wanted = None
        if "deletionTimestamp" not in metadata and (held or not pods.is_ready(pod)):
            wanted = next((kind for kind in _HOLDS if _may_hold(kind, pod) and self._strikes(kind, pod)), None)
        try:
            if wanted and not held:
                _hold(api, pod, wanted)
            elif wanted and _is_placed(pod) and "containerStatuses" not in (pod.get("status") or {}):
                _show(api, pod, wanted)
            elif held and not wanted and "deletionTimestamp" not in metadata:
                _release(api, pod)
        except Refusal as refusal:
            # It went away meanwhile.
            if refusal.status != 404:
                raise

    def _strikes(self, kind: FaultKind, pod: Pod) -> bool:
        return self._strike(kind, pod["metadata"]["uid"], _names(pod), _told(pod))

    def _fail_applications(self, running: Sequence[Pod]) -> None:
        for pod in running:
            if pods.label(pod, "ray.io/node-type") == "head":
                key = (pod["metadata"]["namespace"], pods.label(pod, "ray.io/cluster"))
                self._strike(FaultKind.APPLICATION_FAILS, "/".join(key), _names(pod), "/".join(key), cluster=key)

    def _hang_namespaces(self, api: Api, running: Sequence[Pod]) -> None:
        if not any(one["kind"] == FaultKind.NAMESPACE_TERMINATING and one["left"] for one in self._plan):
            return
        of_ray = {pod["metadata"]["namespace"] for pod in running if pods.label(pod, "ray.io/cluster")}
        for namespace in api.items("/api/v1/namespaces"):
            name = namespace["metadata"]["name"]
            path = _carrier(name)
            # What is on its way out takes no more finalizers.
            if namespace["status"]["phase"] == "Active" and api.find(path) is not None:
                kind = FaultKind.NAMESPACE_TERMINATING
                if self._strike(kind, name, [name], name, by_default=name in of_ray):
                    api.patch(path, {"metadata": {"finalizers": [FINALIZER]}})

    def _restart_in_between(self, running: Sequence[Pod]) -> None:
        for pod in running:
            key = (FaultKind.API_SERVER_RESTART, pod["metadata"]["uid"])
            if key in self._struck or pods.is_ready(pod) or "deletionTimestamp" in pod["metadata"]:
                continue
            # EKS's own pods start with every node.
            own = pod["metadata"]["namespace"] != "kube-system"
            if self._strike(key[0], key[1], _names(pod), _told(pod), by_default=own):
                self._restart()


def _may_hold(kind: FaultKind, pod: Pod) -> bool:
    if kind is FaultKind.OPERATOR_MISSING:
        return any(_OPERATOR_IMAGE in image for image in pods.images(pod))
    return pods.label(pod, "ray.io/node-type") == "worker"


def _hold(api: Api, pod: Pod, kind: FaultKind) -> None:
    api.patch(pods.path(pod), {"metadata": {"annotations": {HELD: str(kind)}}})
    if _is_placed(pod):
        _show(api, pod, kind)


def _show(api: Api, pod: Pod, kind: FaultKind) -> None:
    """Says of a held pod what its kubelet would, in its status and by events."""
    spec, image = pod["spec"], pods.images(pod)[0]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pulls = kind is FaultKind.OPERATOR_MISSING
    if pulls:
        state: dict[str, Any] = {"waiting": {"reason": "ImagePullBackOff", "message": _back_off(image)}}
        events = [
            ("Normal", "Pulling", f'Pulling image "{image}"'),
            ("Warning", "Failed", f'Failed to pull image "{image}": {_not_found(image)}'),
            ("Warning", "Failed", "Error: ErrImagePull"),
            ("Normal", "BackOff", f'Back-off pulling image "{image}"'),
            ("Warning", "Failed", "Error: ImagePullBackOff"),
        ]
    else:
        state = {"running": {"startedAt": now}}
        # KubeRay's probe prints nothing when it fails: `wget -q ... | grep success`.
        events = [("Warning", "Unhealthy", "Readiness probe failed: ")]
    names = " ".join(one["name"] for one in spec["containers"])
    unready = {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{names}]",
        "lastTransitionTime": now,
    }
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
    status = {
        "phase": "Pending" if pulls else "Running",
        "startTime": now,
        "conditions": [
            *_scheduled(pod),
            {"type": "Initialized", "status": "True", "lastTransitionTime": now},
            {"type": "Ready", **unready},
            {"type": "ContainersReady", **unready},
        ],
        "containerStatuses": [_container(one, state, ready=False) for one in spec["containers"]],
        "initContainerStatuses": [_container(one, done, ready=True) for one in spec.get("initContainers") or ()],
    }
    api.patch(pods.path(pod, "/status"), {"status": status})
    for severity, reason, message in events:
        api.create(
            f"/api/v1/namespaces/{pod['metadata']['namespace']}/events", _event(pod, severity, reason, message, now)
        )


def _release(api: Api, pod: Pod) -> None:
    """Lets a pod start as if nothing had been: KWOK takes up one without a status."""
    left_over = ("containerStatuses", "initContainerStatuses", "podIP", "podIPs", "startTime")
    nothing = {"phase": "Pending", "conditions": _scheduled(pod), **dict.fromkeys(left_over)}
    api.patch(pods.path(pod, "/status"), {"status": nothing})
    api.patch(pods.path(pod), {"metadata": {"annotations": {HELD: None}}})


def _free_namespaces(api: Api) -> None:
    for one in api.items("/api/v1/configmaps", fieldSelector=f"metadata.name={_CARRIER}"):
        if FINALIZER in (one["metadata"].get("finalizers") or ()):
            api.patch(_carrier(one["metadata"]["namespace"]), {"metadata": {"finalizers": None}})


def _container(container: Mapping[str, Any], state: Mapping[str, Any], *, ready: bool) -> dict[str, Any]:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }


def _event(pod: Pod, severity: str, reason: str, message: str, now: str) -> dict[str, Any]:
    metadata = pod["metadata"]
    about = {"kind": "Pod", "apiVersion": "v1", **{key: metadata[key] for key in ("name", "namespace", "uid")}}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
        "involvedObject": {**about, "fieldPath": f"spec.containers{{{pod['spec']['containers'][0]['name']}}}"},
        "type": severity,
        "reason": reason,
        "message": message,
        "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
        "reportingComponent": "kubelet",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _not_found(image: str) -> str:
    # containerd's words as the kubelet passes them on.
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": '
        f'failed to resolve reference "{image}": {image}: not found'
    )


def _back_off(image: str) -> str:
    # k8s.io/kubernetes 1.35, pkg/kubelet/images/image_manager.go.
    return f'Back-off pulling image "{image}": ErrImagePull: {_not_found(image)}'


def _scheduled(pod: Pod) -> list[Any]:
    return [one for one in (pod.get("status") or {}).get("conditions") or () if one["type"] == "PodScheduled"]


def _is_placed(pod: Pod) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _names(pod: Pod) -> list[str]:
    # KubeRay puts five letters after the RayService's name and does not give that to the pods.
    service = pods.label(pod, "ray.io/cluster").rpartition("-")[0]
    return [pod["metadata"]["name"], service, *(pod["metadata"].get("labels") or {}).values()]


def _told(pod: Pod) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _carrier(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{_CARRIER}"
