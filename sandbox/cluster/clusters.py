"""The real clusters of one sandbox: what AWS's side and the engine ask of them."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from sandbox import recovery
from sandbox.aws.control_planes import Endpoint
from sandbox.cluster import daemon
from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.layout import Folder
from sandbox.cluster.processes import wait_for
from sandbox.nodes import Node
from sandbox.standin import StandInError

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_START_SECONDS: Final = 90.0
_JOIN_SECONDS: Final = 60.0


class Clusters:
    """Control planes in ``home/clusters``, one folder and one daemon each.

    Args:
        home: The sandbox's home.

    Attributes:
        makes: Whether a new cluster gets a control plane; otherwise it is a name only.
    """

    def __init__(self, home: Path) -> None:
        self.makes = False
        self._home = home / "clusters"
        self._faults: Sequence[Mapping[str, Any]] = ()
        self._used = ExitStack()
        self._held: set[str] = set()

    def folder(self, name: str) -> Folder:
        """A cluster's folder, whether it exists or not."""
        return Folder(self._home / name)

    def names(self) -> list[str]:
        """The clusters that exist."""
        found = sorted(self._home.iterdir()) if self._home.exists() else []
        return [one.name for one in found if Folder(one).exists]

    def start(self, name: str, version: str) -> None:
        """Makes a control plane, if new clusters get one, and waits until it is ready; one that stopped is started again.

        Raises:
            StandInError: It does not become ready.
        """
        folder = self.folder(name)
        if not folder.exists:
            if not self.makes:
                return
            folder.make(name, version)
        folder.put_faults(self._faults)
        self._hold(name)
        if not daemon.is_running(folder):
            self._spawn(folder)

    def plan(self, faults: Sequence[Mapping[str, Any]]) -> None:
        """What is to go wrong in these clusters, and in those that are made from now on."""
        self._faults = faults
        for name in self.names():
            self.folder(name).put_faults(faults)

    def endpoint(self, name: str) -> Endpoint | None:
        """Where a cluster's API server is; None for a cluster that is a name only."""
        folder = self.folder(name)
        if not folder.exists or not folder.authority.exists():
            return None
        return Endpoint(folder.url, base64.b64encode(folder.authority.read_bytes()).decode())

    def stop(self, name: str) -> None:
        """Takes a control plane away, with all that was in it."""
        folder = self.folder(name)
        if not folder.exists:
            return
        daemon.stop(folder)
        shutil.rmtree(folder.path, ignore_errors=True)

    def pause(self) -> None:
        """Stops all control planes; :meth:`resume` goes on where they were."""
        for name in self.names():
            daemon.stop(self.folder(name))

    def resume(self, name: str) -> None:
        """Starts a control plane that has stopped, and keeps it until :meth:`close`."""
        self.start(name, "")

    def close(self) -> None:
        """Lets control planes stop by themselves."""
        self._used.close()
        self._held.clear()

    def settle(self, name: str, nodes: Sequence[Node]) -> str:
        """Makes a cluster's nodes these, and waits for it; returns what is still missing when the time is over."""
        folder = self.folder(name)
        if not folder.exists:
            return ""
        folder.put_nodes(nodes)
        wanted = {one.name for one in nodes}
        api = self.api(name)

        def missing() -> set[str]:
            try:
                found = {one["metadata"]["name"]: one for one in api.items("/api/v1/nodes")}
            except Refusal:
                return wanted or {"the API server"}
            return (found.keys() ^ wanted) | {one for one in wanted & found.keys() if not _is_ready(found[one])}

        wait_for(lambda: not missing(), _JOIN_SECONDS)
        return ", ".join(sorted(missing()))

    def api(self, name: str) -> Api:
        """A client of a cluster."""
        folder = self.folder(name)
        return Api(folder.url, folder.token, folder.authority)

    def _hold(self, name: str) -> None:
        if name not in self._held:
            self._used.enter_context(daemon.using(self.folder(name)))
            self._held.add(name)

    def _spawn(self, folder: Folder) -> None:
        # Whatever carries the home's variable is ended by the next command; this one is to outlive it.
        environment = {key: value for key, value in os.environ.items() if key != recovery.HOME_VARIABLE}
        with folder.log("daemon").open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "sandbox.cluster", str(folder.path)],
                cwd=_CHECKOUT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if not wait_for(lambda: daemon.is_running(folder) or started.poll() is not None, _START_SECONDS) or (
            started.poll() is not None
        ):
            lines = folder.log("daemon").read_text(errors="replace").strip().splitlines()
            raise StandInError(f"the control plane did not start: {lines[-1] if lines else 'it said nothing'}")


def _is_ready(node: dict[str, object]) -> bool:
    status = node["status"]
    assert isinstance(status, dict)
    conditions = status.get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
