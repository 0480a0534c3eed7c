"""Stands in for the Ray processes of every Ray cluster: no container runs, so there is no Ray.

KubeRay's operator reaches Ray by three calls (KubeRay 1.6.0, ray-operator, ``controllers/ray/utils``:
``dashboardclient/dashboard_httpclient.go`` and ``httpproxy_httpclient.go``): it reads and writes ``/api/serve/applications/`` of
the head's dashboard and asks the Serve proxy of the head for ``/-/healthz``. Its client honours ``HTTP_PROXY``, and that proxy
is here. It has calls for Ray jobs too, which are answered by 501.

Real: the configuration that arrives (``ray.jsonl`` keeps each one), the token that is asked for, the pods that must be Ready.
Staged: that an application runs as soon as all workers are Ready and its replicas have room, and what it says when it was told
to fail; the words are Serve's (ray 2.58.0, ``dashboard/modules/serve/serve_head.py``, ``serve/_private/application_state.py`` and
``deployment_state.py``).
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sandbox.cluster import pods
from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.ray_autoscaler import Autoscaler
from sandbox.cluster.serve_config import Deployment, deployments, group_resources, place

_APPLICATIONS: Final = "/api/serve/applications/"
_HEALTH: Final = "/-/healthz"
_TOKEN_HEADERS: Final = ("authorization", "x-ray-authorization")
_AUTOSCALER_SECONDS: Final = 1.0
# serve/_private/constants.py: SLOW_STARTUP_WARNING_S.
_SLOW_SECONDS: Final = 30
_OF_DEPLOYMENTS: Final = {
    "DEPLOY_FAILED": "Failed to update the deployments {}.",
    "UNHEALTHY": "The deployments {} are UNHEALTHY.",
}


@dataclass(frozen=True)
class RayBehaviour:
    """How Ray is to behave.

    Attributes:
        status: What Serve says of applications (``DEPLOY_FAILED``, ``UNHEALTHY``, ``DEPLOYING``); empty for the truth.
        message: What it says of the first deployment then.
        clusters: Namespace and name of the Ray clusters that behave so; None for all.
        since: Only applications that were sent after this (seconds of ``time.time``) behave so.
        seconds: How long an application deploys at least.
        http_status: What the dashboard answers to everything when it is not 200.
        delay: Seconds that each answer takes; KubeRay waits for 2.
    """

    status: str = ""
    message: str = ""
    clusters: Collection[tuple[str, str]] | None = None
    since: float = 0.0
    seconds: float = 0.0
    http_status: int = 200
    delay: float = 0.0


@dataclass
class Serve:
    """What one Ray cluster's Serve was told, by application; lost when its head pod is another one."""

    head: str
    applications: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)


class _Answer(Exception):
    """What is answered instead of what was asked for."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class RayDashboard:
    """The dashboards and Serve proxies of all Ray clusters. Calls may come concurrently.

    Args:
        api: A client of the API server that nobody else uses.
        behaviour: Asked at each call.
        record: A file that gets a line for each configuration: ``at`` (seconds), ``cluster`` (``namespace/name``), ``config``.

    Attributes:
        known: What each cluster's Serve was told, by namespace and name of the Ray cluster.
    """

    def __init__(self, api: Api, behaviour: Callable[[], RayBehaviour], record: Path) -> None:
        self._api = api
        self._behaviour = behaviour
        self._record = record
        self.known: dict[tuple[str, str], Serve] = {}
        self._autoscaler = Autoscaler()
        self._scaled = 0.0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    def start(self, port: int) -> None:
        """Listens on a port of 127.0.0.1; 0 takes a free one."""
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return self._server.server_port

    def stop(self) -> None:
        """Ends it."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        """What Ray answers: HTTP status and text. ``headers`` has lower-case names."""
        behaviour = self._behaviour()
        time.sleep(behaviour.delay)
        parts = urlsplit(url)
        try:
            with self._lock:
                if parts.path.endswith(_HEALTH):
                    return self._health(parts.hostname or "")
                return 200, self._dashboard(method, parts.hostname or "", parts.path, headers, body, behaviour)
        except _Answer as answer:
            return answer.status, str(answer)
        except Refusal as refusal:
            # Words for the operator's log, where a dead connection would only be an EOF.
            return 503, f"the sandbox's stand-in for Ray cannot see the cluster: {refusal}"

    def scale(self, *, at_once: bool = False) -> None:
        """Lets every autoscaler look once; not more often than each second unless ``at_once``.

        Raises:
            Refusal: The API server refuses, or does not answer.
        """
        with self._lock:
            if not at_once and time.monotonic() - self._scaled < _AUTOSCALER_SECONDS:
                return
            self._scaled = time.monotonic()
            for namespace, name in list(self.known):
                cluster = self._cluster(namespace, name)
                if cluster is None:
                    del self.known[namespace, name]
                    continue
                head, workers = self._pods(namespace, name)
                # It sits in the head pod.
                if cluster["spec"].get("enableInTreeAutoscaling") and head is not None and pods.is_ready(head):
                    serve = self._serve(namespace, name, head)
                    self._autoscaler.step(self._api, cluster, workers, _wanted(serve))

    def _health(self, address: str) -> tuple[int, str]:
        found = self._api.items("/api/v1/pods", fieldSelector=f"status.podIP={address}")
        key = (found[0]["metadata"]["namespace"], pods.label(found[0], "ray.io/cluster")) if found else ("", "")
        serve = self.known.get(key)
        # serve/_private/proxy.py and constants.py.
        return (200, "success") if serve and serve.applications else (503, "Route table is not populated yet.")

    def _dashboard(
        self, method: str, host: str, path: str, headers: Mapping[str, str], body: bytes, behaviour: RayBehaviour
    ) -> str:
        service, namespace = (*host.split("."), "", "")[:2]
        name = self._cluster_of(namespace, service)
        cluster = self._cluster(namespace, name)
        head, workers = self._pods(namespace, name)
        if cluster is None or head is None or not pods.is_ready(head):
            raise _Answer(502, f"no Ray head is Ready behind {host}")
        self._admit(head, headers)
        if behaviour.http_status != 200:
            raise _Answer(behaviour.http_status, behaviour.message or "The GCS may be down, please retry later")
        if path != _APPLICATIONS:
            raise _Answer(501, f"the sandbox's stand-in for Ray has no {path}")
        serve = self._serve(namespace, name, head)
        if method == "PUT":
            self._put(namespace, name, serve, body)
            return ""
        if method != "GET":
            raise _Answer(405, "405: Method Not Allowed")
        return json.dumps(self._details(cluster, head, workers, serve, behaviour))

    def _put(self, namespace: str, name: str, serve: Serve, body: bytes) -> None:
        config = json.loads(body)
        now = time.time()
        line = json.dumps({"at": now, "cluster": f"{namespace}/{name}", "config": config})
        with self._record.open("a") as file:
            file.write(f"{line}\n")
        sent = config.get("applications")
        if not isinstance(sent, list) or not all(isinstance(one, dict) and one.get("import_path") for one in sent):
            # ServeDeploySchema's refusal, shortened to what it is about.
            raise _Answer(400, "ServeDeploySchema: applications must be a list of mappings with an import_path")
        fresh = {one.get("name", "default"): one for one in sent}
        serve.sent = {key: serve.sent[key] if serve.applications.get(key) == one else now for key, one in fresh.items()}
        serve.applications = fresh

    def _details(
        self,
        cluster: Mapping[str, Any],
        head: Mapping[str, Any],
        workers: Sequence[Mapping[str, Any]],
        serve: Serve,
        behaviour: RayBehaviour,
    ) -> dict[str, Any]:
        groups = {one["groupName"]: one for one in cluster["spec"].get("workerGroupSpecs") or ()}
        ready = [one for one in workers if pods.is_ready(one)]
        rooms = [groups[group] for one in ready if (group := pods.label(one, "ray.io/group")) in groups]
        nodes = [group_resources(cluster["spec"]["headGroupSpec"]), *map(group_resources, rooms)]
        _, homeless = place(_wanted(serve), nodes)
        key = (cluster["metadata"]["namespace"], cluster["metadata"]["name"])
        aimed = behaviour.clusters is None or key in behaviour.clusters
        found: dict[str, Any] = {}
        for name, application in serve.applications.items():
            own = deployments(application)
            age = time.time() - serve.sent[name]
            waits = len(ready) < len(workers) or age < behaviour.seconds
            states = [_state(name, one, waits, len(homeless.get(one.name, ())), age) for one in own]
            status, message = _summary(states, waits), ""
            if behaviour.status and aimed and serve.sent[name] >= behaviour.since:
                status, message = behaviour.status, _strike(states, behaviour)
            found[name] = {
                "name": name,
                "route_prefix": application.get("route_prefix", "/"),
                "docs_path": None,
                "status": status,
                "message": message,
                "last_deployed_time_s": serve.sent[name],
                "deployed_app_config": application,
                "deployments": {one["name"]: one for one in states},
            }
        return {"applications": found}

    def _admit(self, head: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        environment = {one["name"]: one for one in head["spec"]["containers"][0].get("env") or ()}
        if (environment.get("RAY_AUTH_MODE") or {}).get("value") != "token":
            return
        given = next((headers[name] for name in _TOKEN_HEADERS if headers.get(name)), "")
        if not given:
            raise _Answer(401, "Unauthorized: Missing authentication token")
        place_of = environment["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]
        secret = self._api.find(f"/api/v1/namespaces/{head['metadata']['namespace']}/secrets/{place_of['name']}") or {}
        token = base64.b64decode((secret.get("data") or {}).get(place_of["key"], "")).decode()
        if not token or given != f"Bearer {token}":
            raise _Answer(403, "Forbidden: Invalid authentication token")

    def _serve(self, namespace: str, name: str, head: Mapping[str, Any]) -> Serve:
        uid = head["metadata"]["uid"]
        known = self.known.get((namespace, name))
        if known is None or known.head != uid:
            known = self.known[namespace, name] = Serve(uid)
        return known

    def _cluster_of(self, namespace: str, service: str) -> str:
        # A cluster may name its head's Service as it likes: the Service's selector tells whose it is.
        found = self._api.find(f"/api/v1/namespaces/{namespace}/services/{service}") or {}
        return ((found.get("spec") or {}).get("selector") or {}).get("ray.io/cluster", "")

    def _cluster(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self._api.find(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{name}") if name else None

    def _pods(self, namespace: str, name: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        found = self._api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"ray.io/cluster={name}")
        here = [one for one in found if "deletionTimestamp" not in one["metadata"]]
        here.sort(key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))
        heads = [one for one in here if pods.label(one, "ray.io/node-type") == "head"]
        return (heads[0] if heads else None), [one for one in here if one not in heads]


def serve(port: int, api: Api, behaviour: Callable[[], RayBehaviour], record: Path) -> RayDashboard:
    """Starts the stand-in on a port; see :class:`RayDashboard`."""
    dashboard = RayDashboard(api, behaviour, record)
    dashboard.start(port)
    return dashboard


def _handler(dashboard: RayDashboard) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _go(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, text = dashboard.answer(self.command, self.path, headers, body)
            data = text.encode()
            self.send_response(status)
            self.send_header("content-type", "application/json" if text.startswith("{") else "text/plain")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = _go

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: what matters is recorded."""

    return Handler


def _wanted(serve: Serve) -> list[Deployment]:
    return [one for application in serve.applications.values() for one in deployments(application)]


def _state(application: str, deployment: Deployment, waits: bool, homeless: int, age: float) -> dict[str, Any]:
    """One deployment as Serve describes it."""
    missing = min(deployment.replicas, -(-homeless // max(len(deployment.bundles), 1)))
    message = ""
    if missing and age > _SLOW_SECONDS:
        message = (
            f"Deployment '{deployment.name}' in application '{application}' has {missing} replicas that have taken more than "
            f"{_SLOW_SECONDS}s to be scheduled. This may be due to waiting for the cluster to auto-scale or for a runtime "
            f"environment to be installed. Resources required for each replica: {list(deployment.bundles)}. "
            "Use `ray status` for more details."
        )
    running = 0 if waits else deployment.replicas - missing
    return {
        "name": deployment.name,
        "status": "HEALTHY" if running == deployment.replicas else "UPDATING",
        "message": message,
        "target_num_replicas": deployment.replicas,
        "replicas": [{"state": "RUNNING" if at < running else "STARTING"} for at in range(deployment.replicas)],
    }


def _summary(states: Sequence[Mapping[str, Any]], waits: bool) -> str:
    return "DEPLOYING" if waits or any(one["status"] != "HEALTHY" for one in states) else "RUNNING"


def _strike(states: Sequence[dict[str, Any]], behaviour: RayBehaviour) -> str:
    """Makes the first deployment say what was told; returns what the application says."""
    said = _OF_DEPLOYMENTS.get(behaviour.status)
    if said is None or not states:
        return behaviour.message
    first = states[0]
    first["status"], first["message"] = behaviour.status, behaviour.message
    if behaviour.status == "DEPLOY_FAILED":
        tries = min(3 * first["target_num_replicas"], 20)
        first["message"] = (
            f"The deployment failed to start {tries} times in a row. This may be due to a problem with its constructor or "
            f"initial health check failing. See controller logs for details. Error:\n{behaviour.message}"
        )
    return said.format([first["name"]])
