"""The processes of a control plane: what each is started with, and how it is kept alive."""

import copy
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sandbox.cluster.layout import Folder
from sandbox.cluster.tools import KUBERNETES, Tools

HELD: Final = "sandbox/held"
"""Annotation of a pod that KWOK must not start."""
JUDGED: Final = "sandbox/judged"
"""Annotation of a pod that the daemon has looked at: KWOK starts no other, however slow the daemon is."""

# Never dialled: what the operator asks of pods goes to its HTTP proxy. Not 127/8, which EndpointSlices refuse.
_POD_RANGE: Final = "192.0.2.1/24"
_SERVICE_RANGE: Final = "172.20.0.0/16"
"""What EKS takes where the program says nothing (EKS API reference, KubernetesNetworkConfigRequest)."""

_START_MILLISECONDS: Final = 300
_END_SECONDS: Final = 5.0
# What fails at once is not started again at once.
_RESTART_SECONDS: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


class Process:
    """One process of a cluster. On Linux it dies with the process that started it.

    Args:
        name: What it is called in messages and logs.
        command: Program and arguments.
        log: Where its output goes, after what is there.
        environment: What it needs beside the environment of this process.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._environment = {**os.environ, **(environment or {})}
        self._running: subprocess.Popen[bytes] | None = None
        self._started = -_RESTART_SECONDS

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Starts it, if it does not run and was not started just now."""
        if self.alive or time.monotonic() - self._started < _RESTART_SECONDS:
            return
        self._started = time.monotonic()
        with self._log.open("ab") as log:
            self._running = _spawn(self._command, log, self._environment)

    def end(self) -> None:
        """Asks it to end."""
        if self._running is not None and self._running.poll() is None:
            self._running.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ends it, by force if need be; it may be started again at once."""
        if self._running is None:
            return
        self.end()
        try:
            self._running.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        self._running = None
        self._started = -_RESTART_SECONDS

    def last_words(self) -> str:
        """The last line of its log."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return lines[-1] if lines else "it said nothing"


def etcd(tools: Tools, folder: Folder) -> Process:
    """The cluster's store."""
    client, peer = (f"http://127.0.0.1:{folder.port(name)}" for name in ("etcd", "etcd-peer"))
    arguments = {
        "name": "sandbox",
        "data-dir": folder.path / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"sandbox={peer}",
        # A rehearsal survives the kill of a process, not the fall of a machine.
        "unsafe-no-fsync": "true",
    }
    return _of_kubestack("etcd", tools, folder, arguments)


def api_server(tools: Tools, folder: Folder) -> Process:
    """The API server. It makes its own certificate; the cluster's one token makes an administrator."""
    _make_signing_key(folder.path)
    arguments = {
        "etcd-servers": f"http://127.0.0.1:{folder.port('etcd')}",
        "cert-dir": folder.path / "certs",
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",
        "secure-port": folder.port("api"),
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": folder.path / "sa.pub",
        "service-account-signing-key-file": folder.path / "sa.key",
        "service-cluster-ip-range": _SERVICE_RANGE,
        "token-auth-file": folder.path / "tokens.csv",
        "authorization-mode": "RBAC",
        "allow-privileged": "true",
        "profiling": "false",
        **_emulation(folder),
    }
    return _of_kubestack("kube-apiserver", tools, folder, arguments)


def controllers(tools: Tools, folder: Folder) -> Process:
    """The controller manager: DaemonSets, Deployments, namespaces, endpoints, garbage."""
    arguments = {
        "kubeconfig": folder.path / "kubeconfig",
        "service-account-private-key-file": folder.path / "sa.key",
        "root-ca-file": folder.authority,
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": folder.port("controllers"),
        # Addresses come from KWOK; there is no cloud to ask about nodes.
        "controllers": "*,-node-ipam-controller,-cloud-node-lifecycle-controller",
        **_emulation(folder),
    }
    return _of_kubestack("kube-controller-manager", tools, folder, arguments)


def scheduler(tools: Tools, folder: Folder) -> Process:
    """The scheduler."""
    arguments = {
        "kubeconfig": folder.path / "kubeconfig",
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": folder.port("scheduler"),
        **_emulation(folder),
    }
    return _of_kubestack("kube-scheduler", tools, folder, arguments)


def kubelets(tools: Tools, folder: Folder) -> Process:
    """KWOK, which plays the kubelet of every node."""
    stages = folder.path / "stages.yaml"
    stages.write_text(_stages(tools.stages.read_text()))
    arguments = {
        "kubeconfig": folder.path / "kubeconfig",
        "config": stages,
        "manage-all-nodes": "true",
        "node-lease-duration-seconds": 40,
        "cidr": _POD_RANGE,
        "node-ip": "127.0.0.1",
    }
    return Process("kwok", [str(tools.kwok), *_flags(arguments)], folder.log("kwok"))


def operator(tools: Tools, folder: Folder, environment: Mapping[str, str]) -> Process:
    """KubeRay's operator with its container's environment; what it asks of Ray goes to the stand-in for Ray's dashboard."""
    arguments = {
        "kubeconfig": folder.path / "kubeconfig",
        "metrics-addr": f"127.0.0.1:{folder.port('operator-metrics')}",
        "health-probe-bind-address": f"127.0.0.1:{folder.port('operator-health')}",
        "enable-leader-election": "false",
        "log-stdout-encoder": "console",
    }
    proxy = {"HTTP_PROXY": f"http://127.0.0.1:{folder.port('ray')}", "NO_PROXY": "127.0.0.1"}
    command = [str(tools.operator), *_flags(arguments)]
    return Process("kuberay-operator", command, folder.log("kuberay-operator"), {**environment, **proxy})


def wait_for(condition: Callable[[], bool], seconds: float, pause: float = 0.1) -> bool:
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
    return True


def _of_kubestack(name: str, tools: Tools, folder: Folder, arguments: Mapping[str, Any]) -> Process:
    return Process(name, [str(tools.kubestack), name, *_flags(arguments)], folder.log(name))


def _emulation(folder: Folder) -> dict[str, str]:
    """Makes the programs behave as an older version, down to three before their own; as a newer one they cannot."""
    wanted, own = folder.about["version"], KUBERNETES.rpartition(".")[0]
    older = wanted and [int(part) for part in wanted.split(".")] < [int(part) for part in own.split(".")]
    return {"emulated-version": wanted} if older else {}


def _flags(arguments: Mapping[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in arguments.items()]


def _make_signing_key(folder: Path) -> None:
    if (folder / "sa.pub").exists():
        return
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "sa.key").touch(mode=0o600)
    (folder / "sa.key").write_bytes(private)
    (folder / "sa.pub").write_bytes(public)


def _stages(text: str) -> str:
    """KWOK's own stages; that which starts pods takes a moment, waits for the daemon, and passes over those that are held."""
    stages: list[Any] = [one for one in yaml.safe_load_all(text) if one]
    ready = next(one for one in stages if one["metadata"]["name"] == "pod-ready")
    annotation = f'.metadata.annotations["{HELD}"]'
    # KWOK drops a start that it has put off only when another stage takes the pod (addStageJob in its
    # pkg/kwok/controllers/pod_controller.go): so a stage that does nothing takes those that are held.
    held = copy.deepcopy(ready)
    held["metadata"]["name"] = "pod-held"
    held["spec"]["selector"]["matchExpressions"].append({"key": annotation, "operator": "Exists"})
    held["spec"]["next"] = {}
    ready["spec"]["selector"]["matchExpressions"] += [
        {"key": annotation, "operator": "DoesNotExist"},
        {"key": f'.metadata.annotations["{JUDGED}"]', "operator": "Exists"},
    ]
    ready["spec"]["delay"] = {"durationMilliseconds": _START_MILLISECONDS}
    return yaml.safe_dump_all([*stages, held])


def _spawn(command: Sequence[str], log: IO[bytes], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    parent = os.getpid()

    def die_with_parent() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, preexec_fn=die_with_parent
    )
