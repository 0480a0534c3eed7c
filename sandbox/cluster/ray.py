"""Stands in for the Ray processes of every Ray cluster, as far as KubeRay and Ray's autoscaler notice them.

No container runs, so there is no Ray. KubeRay's operator asks the head's dashboard through an HTTP proxy (its client honours
``HTTP_PROXY``), and that proxy is here. What an application needs to be RUNNING is looked up in the cluster: as many Ready
workers as its replicas ask for. What the operator sent is kept in ``ray.jsonl``, one line a request.
"""

import base64
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from sandbox.cluster import pods
from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.layout import Folder
from sandbox.cluster.mishaps import Mishaps

_APPLICATIONS: Final = "/api/serve/applications/"
# ray-operator/controllers/ray/utils/dashboardclient/dashboard_httpclient.go of KubeRay 1.6.0.
_TOKEN_HEADER: Final = "x-ray-authorization"
_ROLES: Final = {"prefill_config": "Prefill", "decode_config": "Decode"}


@dataclass
class _Cluster:
    """One Ray cluster: what Serve was told, and since when."""

    config: dict[str, Any] = field(default_factory=dict)
    since: float = 0.0


class Ray:
    """The dashboards of all Ray clusters.

    Args:
        folder: The cluster's.
        mishaps: What Serve is to do wrong.
    """

    def __init__(self, folder: Folder, mishaps: Mishaps) -> None:
        self._folder = folder
        self._mishaps = mishaps
        self._clusters: dict[tuple[str, str], _Cluster] = {}
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Listens on the cluster's port for Ray."""
        ray = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer()

            def do_PUT(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def log_message(self, format: str, *args: Any) -> None:
                return None

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                url = urlsplit(self.path)
                host = url.hostname or (self.headers.get("host") or "").partition(":")[0]
                try:
                    status, found = ray.answer(
                        self.command, host, url.path, body, self.headers.get(_TOKEN_HEADER) or ""
                    )
                except (Refusal, OSError, ValueError, KeyError, TypeError) as fault:
                    # The operator shows this; a dead connection would only be an EOF in its log.
                    status, found = 500, f"the sandbox's stand-in for Ray: {type(fault).__name__}: {fault}"
                text = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self._server = ThreadingHTTPServer(("127.0.0.1", self._folder.port("ray")), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Ends it."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, method: str, host: str, path: str, body: bytes, token: str) -> tuple[int, Any]:
        """What Ray answers: HTTP status and JSON."""
        if path == "/-/healthz":
            return 200, "success"
        service, namespace = host.split(".")[:2]
        name = service.removesuffix("-head-svc")
        api = self._api()
        cluster = api.find(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{name}")
        if cluster is None:
            return 404, f"no RayCluster {namespace}/{name}"
        if not self._is_admitted(api, cluster, token):
            return 401, "Unauthorized: Missing or invalid authentication token"
        with self._lock:
            known = self._clusters.setdefault((namespace, name), _Cluster())
            if path == _APPLICATIONS and method == "PUT":
                self._record(namespace, name, json.loads(body))
                known.config, known.since = json.loads(body), time.monotonic()
                return 200, {}
            if path == _APPLICATIONS:
                return 200, {"applications": self._applications(api, cluster, known)}
        return 404, f"the sandbox's stand-in for Ray has no {path}"

    def scale(self, api: Api) -> None:
        """What Ray's autoscaler does upwards: as many workers of a group as Serve has replicas that ask for its resource.

        Read in ray, python/ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py: it patches
        ``replicas`` of the group, between its bounds. Idle workers are not taken away here: that takes minutes on a real one.
        """
        with self._lock:
            told = {key: known.config for key, known in self._clusters.items()}
        for (namespace, name), config in told.items():
            path = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{name}"
            cluster = api.find(path)
            if cluster is None or not cluster["spec"].get("enableInTreeAutoscaling"):
                continue
            demand = _demand(config)
            for index, group in enumerate(cluster["spec"].get("workerGroupSpecs") or ()):
                wanted = min(sum(demand.get(one, 0) for one in _resources(group)), group.get("maxReplicas", 0))
                if wanted > group.get("replicas", 0):
                    place = f"/spec/workerGroupSpecs/{index}/replicas"
                    api.change(path, [{"op": "replace", "path": place, "value": wanted}])

    def _applications(self, api: Api, cluster: Mapping[str, Any], known: _Cluster) -> dict[str, Any]:
        behaviour = self._mishaps.behaviour()
        metadata = cluster["metadata"]
        chosen = f"ray.io/cluster={metadata['name']},ray.io/node-type=worker"
        workers = api.items(f"/api/v1/namespaces/{metadata['namespace']}/pods", labelSelector=chosen)
        ready = {group: 0 for group in (one["groupName"] for one in cluster["spec"].get("workerGroupSpecs") or ())}
        for worker in workers:
            if pods.is_ready(worker):
                ready[pods.label(worker, "ray.io/group")] = ready.get(pods.label(worker, "ray.io/group"), 0) + 1
        held = _held(cluster, ready)
        late = time.monotonic() - known.since < behaviour.seconds
        placed = all(held.get(resource, 0) >= count for resource, count in _demand(known.config).items())
        all_ready = bool(workers) and all(map(pods.is_ready, workers))
        running = placed and all_ready and not late
        status = behaviour.status or ("RUNNING" if running else "DEPLOYING")
        healthy = "HEALTHY" if status == "RUNNING" else "UNHEALTHY" if behaviour.status else "UPDATING"
        return {
            one["name"]: {
                "name": one["name"],
                "route_prefix": one.get("route_prefix", "/"),
                "status": status,
                "message": behaviour.message,
                "deployments": {
                    name: {"name": name, "status": healthy, "message": behaviour.message} for name in _deployments(one)
                },
            }
            for one in known.config.get("applications") or ()
        }

    def _is_admitted(self, api: Api, cluster: Mapping[str, Any], token: str) -> bool:
        if (cluster["spec"].get("authOptions") or {}).get("mode") != "token":
            return True
        metadata = cluster["metadata"]
        secret = api.find(f"/api/v1/namespaces/{metadata['namespace']}/secrets/{metadata['name']}")
        if secret is None:
            return False
        return token == f"Bearer {_decoded(secret['data']['auth_token'])}"

    def _record(self, namespace: str, name: str, config: Any) -> None:
        line = json.dumps({"at": time.time(), "cluster": f"{namespace}/{name}", "config": config})
        with (self._folder.path / "ray.jsonl").open("a") as file:
            file.write(f"{line}\n")

    def _api(self) -> Api:
        # One for each thread: a session is not made for two.
        return Api(self._folder.url, self._folder.token, self._folder.authority)


def _deployments(application: Mapping[str, Any]) -> list[str]:
    """Names of the deployments of an application, as ``ray.serve.llm`` builds a prefill/decode one."""
    arguments = application.get("args") or {}
    named = [
        f"{prefix}:{arguments[key]['model_loading_config']['model_id'].replace('.', '_')}"
        for key, prefix in _ROLES.items()
        if key in arguments
    ]
    return [*named, "OpenAiIngress"] if named else [one["name"] for one in application.get("deployments") or ()]


def _demand(config: Mapping[str, Any]) -> dict[str, int]:
    """Custom resource -> workers that replicas of a configuration ask for; one replica is taken to fill a worker."""
    wanted: dict[str, int] = {}
    for application in config.get("applications") or ():
        arguments = application.get("args") or {}
        for key in _ROLES:
            role = arguments.get(key) or {}
            bundle = (role.get("placement_group_config") or {}).get("bundle_per_worker") or {}
            replicas = (role.get("deployment_config") or {}).get("num_replicas", 1)
            for resource in bundle.keys() - {"CPU", "GPU"}:
                wanted[resource] = wanted.get(resource, 0) + replicas
    return wanted


def _resources(group: Mapping[str, Any]) -> list[str]:
    """Custom resources of a worker group, from its ``rayStartParams``."""
    text = (group.get("rayStartParams") or {}).get("resources", "{}")
    return list(json.loads(text.strip("'")))


def _held(cluster: Mapping[str, Any], ready: Mapping[str, int]) -> dict[str, int]:
    held: dict[str, int] = {}
    for group in cluster["spec"].get("workerGroupSpecs") or ():
        for resource in _resources(group):
            held[resource] = held.get(resource, 0) + ready.get(group["groupName"], 0)
    return held


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
