"""Where one cluster keeps what it needs, and the ports that it was given for life."""

import json
import os
import random
import secrets
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from sandbox.nodes import Node, Taint

# Below those that systems give to outgoing connections (32768 up on Linux, 49152 up on macOS): a port is a cluster's for life,
# and a connection must not sit on it while the cluster sleeps.
_PORT_RANGE: Final = range(20000, 32000)
_PORTS: Final = ("etcd", "etcd-peer", "api", "controllers", "scheduler", "operator-metrics", "operator-health", "ray")


@dataclass(frozen=True)
class Folder:
    """The folder of one cluster.

    Attributes:
        path: Where it is.
    """

    path: Path

    @property
    def exists(self) -> bool:
        """Whether there is such a cluster."""
        return (self.path / "cluster.json").exists()

    def make(self, name: str, version: str) -> None:
        """Starts a cluster's folder: its ports, its token, its kubeconfig."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "log").mkdir(exist_ok=True)
        ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
        token = secrets.token_urlsafe(24)
        self._write("token", token)
        self._write("tokens.csv", f'{token},admin,admin,"system:masters"\n')
        self._write("kubeconfig", yaml.safe_dump(self._kubeconfig(_url(ports["api"]), token)))
        # The last: with it the cluster exists.
        self._write("cluster.json", json.dumps({"name": name, "version": version, "ports": ports}))

    def upgrade(self, version: str) -> None:
        """Makes its programs those of another version when they start next."""
        self._write("cluster.json", json.dumps({**self.about, "version": version}))

    def port(self, name: str) -> int:
        """One of its ports: ``api``, ``etcd``, ..."""
        return int(self.about["ports"][name])

    @property
    def about(self) -> Mapping[str, Any]:
        """Its name, version and ports."""
        return json.loads((self.path / "cluster.json").read_text())

    def taken_ports(self) -> list[int]:
        """Those of its ports that somebody listens on."""
        taken: list[int] = []
        for port in self.about["ports"].values():
            if (listener := _listen(port)) is None:
                taken.append(port)
            else:
                listener.close()
        return taken

    @property
    def url(self) -> str:
        """Its API server."""
        return _url(self.port("api"))

    @property
    def token(self) -> str:
        """What its API server takes for an administrator."""
        return (self.path / "token").read_text()

    @property
    def authority(self) -> Path:
        """The certificate that the API server makes for itself when it first starts."""
        return self.path / "certs" / "apiserver.crt"

    @property
    def nodes(self) -> list[Node]:
        """The instances that have joined."""
        path = self.path / "nodes.json"
        return [_node(one) for one in json.loads(path.read_text())] if path.exists() else []

    def put_nodes(self, nodes: Sequence[Node]) -> None:
        """Writes them; the daemon makes Node objects of them."""
        self._write("nodes.json", json.dumps([asdict(one) for one in nodes]))

    @property
    def faults(self) -> Sequence[Mapping[str, Any]]:
        """What is to go wrong: ``kind``, ``resource`` and ``times`` of each."""
        path = self.path / "faults.json"
        return json.loads(path.read_text()) if path.exists() else []

    def put_faults(self, faults: Sequence[Mapping[str, Any]]) -> None:
        """Writes them; the daemon strikes."""
        self._write("faults.json", json.dumps(list(faults)))

    def log(self, name: str) -> Path:
        """The log of one of its processes."""
        return self.path / "log" / f"{name}.log"

    def _kubeconfig(self, url: str, token: str) -> dict[str, Any]:
        cluster = {"server": url, "certificate-authority": str(self.authority)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "sandbox", "user": {"token": token}}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
            "current-context": "sandbox",
        }

    def _write(self, name: str, text: str) -> None:
        # Whole or not at all: another process reads it.
        file, temporary = tempfile.mkstemp(dir=self.path)
        with os.fdopen(file, "w") as stream:
            stream.write(text)
        os.replace(temporary, self.path / name)


def _url(port: int) -> str:
    return f"https://127.0.0.1:{port}"


def _node(found: Mapping[str, Any]) -> Node:
    return Node(**{**found, "taints": tuple(Taint(**one) for one in found["taints"])})


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now. All are held until all are found, so that two clusters made at once differ."""
    held: dict[int, socket.socket] = {}
    try:
        for port in random.sample(_PORT_RANGE, len(_PORT_RANGE)):
            if len(held) == count:
                break
            if (listener := _listen(port)) is not None:
                held[port] = listener
        return list(held)
    finally:
        for one in held.values():
            one.close()


def _listen(port: int) -> socket.socket | None:
    """A socket on a port; None where somebody else has it."""
    found = socket.socket()
    # As servers do: what is left of closed connections is in nobody's way.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen()
    except OSError:
        found.close()
        return None
    return found
