"""One cluster's supervisor: it outlives the command that started it, and ends by itself when nobody uses the cluster."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sandbox.cluster import nodes, pods, processes, ray_dashboard, references, system_pods
from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.layout import Folder
from sandbox.cluster.mishaps import Mishaps
from sandbox.cluster.operator import Operator
from sandbox.cluster.processes import JUDGED, wait_for
from sandbox.cluster.tools import Tools

IDLE_VARIABLE: Final = "RAY_LLM_EKS_IDLE_SECONDS"
_IDLE_SECONDS: Final = 600.0
_START_SECONDS: Final = 60.0
# What another daemon's processes, or a look at its lock, may take to be over.
_CLEAR_SECONDS: Final = 5.0
_END_SECONDS: Final = 30.0
_TICK_SECONDS: Final = 0.25
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class DaemonError(Exception):
    """A cluster cannot run; the text says why in one line."""


class Daemon:
    """Keeps the processes of one cluster running, and plays what is not there: machines, devices, Ray.

    Args:
        folder: The cluster's.
        tools: The programs.
    """

    def __init__(self, folder: Folder, tools: Tools) -> None:
        self._folder = folder
        self._etcd = processes.etcd(tools, folder)
        self._api_server = processes.api_server(tools, folder)
        self._others = [processes.controllers(tools, folder), processes.scheduler(tools, folder)]
        self._kubelets = processes.kubelets(tools, folder)
        self._operator = Operator(tools, folder)
        self._mishaps = Mishaps(folder, self._restart_api_server)
        self._api = Api(folder.url, folder.token, folder.authority)
        self._ray: ray_dashboard.RayDashboard | None = None
        self._equipped = False
        self._last_use = time.monotonic()
        self._ended = False

    def run(self) -> None:
        """Starts everything, says so in ``daemon.json``, and stays until it is told to end or nobody uses the cluster.

        Raises:
            DaemonError: The cluster has a daemon, one of its ports is taken, or its API server does not become ready.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._end())
        # Never closed: who waits for one of these locks goes on when this process is no more.
        _claim(os.open(_lock(self._folder), os.O_RDWR | os.O_CREAT, 0o600))
        usage = os.open(_usage(self._folder), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._start()
            _ready(self._folder).write_text(json.dumps({"pid": os.getpid(), "started": time.time()}))
            while not self._ended and self._folder.exists and not self._is_idle(usage):
                self._tick()
                time.sleep(_TICK_SECONDS)
        finally:
            self._stop()

    def _start(self) -> None:
        if not wait_for(lambda: not self._folder.taken_ports(), _CLEAR_SECONDS):
            ports = ", ".join(map(str, self._folder.taken_ports()))
            raise DaemonError(
                f"port {ports} of 127.0.0.1 belongs to this cluster for life and another program listens on it: end that program"
            )
        if not wait_for(self._control_plane_is_ready, _START_SECONDS):
            raise DaemonError(f"the API server does not become ready: {self._api_server.last_words()}")
        for one in self._others:
            one.start()
        # A client of its own: it is asked from other threads.
        api = Api(self._folder.url, self._folder.token, self._folder.authority)
        self._ray = ray_dashboard.serve(
            self._folder.port("ray"), api, self._mishaps.behaviour, self._folder.path / "ray.jsonl"
        )

    def _control_plane_is_ready(self) -> bool:
        self._etcd.start()
        self._api_server.start()
        return self._ended or self._api.ready()

    def _stop(self) -> None:
        _ready(self._folder).unlink(missing_ok=True)
        if self._ray is not None:
            self._ray.stop()
        for one in (self._kubelets, *self._others, self._api_server):
            one.end()
        self._operator.stop()
        for one in (self._kubelets, *self._others, self._api_server, self._etcd):
            one.stop()

    def _tick(self) -> None:
        for one in (self._etcd, self._api_server, *self._others):
            one.start()
        try:
            self._start_kubelets()
            if not self._equipped:
                system_pods.install(self._api)
                self._equipped = True
            running = self._api.items("/api/v1/pods")
            self._mishaps.tick(self._api, running)
            self._let_start(running)
            nodes.match(self._api, self._folder.nodes, running)
            assert self._ray is not None
            self._ray.scale()
        except Refusal:
            # It restarts, or something changed between a look and an act: the next round sees what is true then.
            return
        self._operator.follow(running)

    def _let_start(self, running: Sequence[Mapping[str, Any]]) -> None:
        for pod in running:
            metadata = pod["metadata"]
            judged = JUDGED in (metadata.get("annotations") or {})
            placed = "nodeName" in pod["spec"] and "deletionTimestamp" not in metadata
            if judged or not placed or self._mishaps.forbids_ready(pod):
                continue
            try:
                if lack := references.missing(self._api, pod):
                    references.tell(self._api, pod, *lack)
                else:
                    self._api.patch(pods.path(pod), {"metadata": {"annotations": {JUDGED: "true"}}})
            except Refusal as refusal:
                # It went away meanwhile.
                if refusal.status != 404:
                    raise

    def _start_kubelets(self) -> None:
        if not self._kubelets.alive:
            # KWOK has another name each time, and keeps off nodes whose lease has another holder until that has run out.
            self._api.delete(_LEASES)
            self._kubelets.start()

    def _restart_api_server(self) -> None:
        self._api_server.stop()
        wait_for(self._control_plane_is_ready, _START_SECONDS)

    def _is_idle(self, usage: int) -> bool:
        """Whether nobody has used the cluster for long; then nobody can begin to until this process has ended."""
        try:
            fcntl.flock(usage, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._last_use = time.monotonic()
            return False
        if time.monotonic() - self._last_use > float(os.environ.get(IDLE_VARIABLE) or _IDLE_SECONDS):
            return True
        fcntl.flock(usage, fcntl.LOCK_UN)
        return False

    def _end(self) -> None:
        self._ended = True


def is_running(folder: Folder) -> bool:
    """Whether a cluster's daemon lives and has become ready."""
    try:
        ready = json.loads(_ready(folder).read_text())
    except FileNotFoundError:
        return False
    return ready["pid"] == _holder(folder)


def stop(folder: Folder) -> None:
    """Ends a cluster's daemon, if it lives, and waits until all that it started has ended."""
    pid = _holder(folder)
    if pid is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            break
        if wait_for(lambda: _holder(folder) is None, _END_SECONDS, 0.05):
            break


@contextmanager
def using(folder: Folder) -> Iterator[None]:
    """Keeps a cluster's daemon from ending by itself."""
    with _usage(folder).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def _claim(lock: int) -> None:
    def is_taken() -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    if not wait_for(is_taken, _CLEAR_SECONDS):
        raise DaemonError("the cluster has a daemon already")
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())


def _holder(folder: Folder) -> int | None:
    """The process that is a cluster's daemon. The lock goes with the process, however that ends."""
    try:
        with _lock(folder).open() as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    file.seek(0)
                    # Empty for a moment after it was claimed.
                    if pid := file.read():
                        return int(pid)
                else:
                    return None
    except FileNotFoundError:
        return None


def _lock(folder: Folder) -> Path:
    return folder.path / "daemon.lock"


def _ready(folder: Folder) -> Path:
    return folder.path / "daemon.json"


def _usage(folder: Folder) -> Path:
    return folder.path / "in-use"
