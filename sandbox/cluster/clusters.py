"""The real clusters of one sandbox: what AWS's side and the engine ask of them."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from sandbox.aws.control_planes import Endpoint
from sandbox.cluster import daemon, tools
from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.layout import Folder
from sandbox.cluster.processes import wait_for
from sandbox.cluster.tools import Tools, ToolsError
from sandbox.nodes import Node
from sandbox.standin import StandInError

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_START_SECONDS: Final = 90.0
_JOIN_SECONDS: Final = 60.0
# A daemon lives long: no credential of the user's stays in its environment, nor the home's variable, whose bearers the next
# command ends.
_KEPT: Final = ("HOME", "LANG", "PATH", "TMPDIR", "TZ", daemon.IDLE_VARIABLE)


class Clusters:
    """Control planes in ``home/clusters``, one folder and one daemon each.

    Args:
        home: The sandbox's home.
        find: Finds the programs, when one of them is to be started.

    Attributes:
        makes: Whether a new cluster gets a control plane; otherwise it is a name only.
    """

    def __init__(self, home: Path, find: Callable[[], Tools] | None = None) -> None:
        self.makes = False
        self._home = home / "clusters"
        self._find = find or _find
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
        """Makes a control plane, if new clusters get one, and waits until it is ready.

        One that has stopped is started again, and one of another version becomes one of this; "" leaves its version alone.

        Raises:
            StandInError: It does not become ready.
        """
        folder = self.folder(name)
        made = not folder.exists
        if made:
            if not self.makes:
                return
            folder.make(name, version)
            folder.put_faults(self._faults)
        elif version not in ("", folder.about["version"]):
            daemon.stop(folder)
            folder.upgrade(version)
        self._hold(name)
        try:
            self._run(folder)
        except StandInError:
            # A cluster whose create failed does not exist.
            if made:
                self.stop(name)
            raise

    def plan(self, faults: Sequence[Mapping[str, Any]]) -> None:
        """What is to go wrong in these clusters, and in those that are made from now on."""
        self._faults = faults
        for name in self.names():
            self.folder(name).put_faults(faults)

    def met(self) -> list[Mapping[str, Any]] | None:
        """The faults of the plan that were met, ``kind`` and ``resource`` of each; None where no cluster is left to tell."""
        told = [self.folder(name).path / "struck.json" for name in self.names()]
        found = [json.loads(path.read_text()) for path in told if path.exists()]
        return [one for strikes in found for one in strikes] if told else None

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

    def _run(self, folder: Folder) -> None:
        with (folder.path / "starting").open("w") as lock:
            # Commands that only look may come two at a time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not daemon.is_running(folder):
                self._spawn(folder)

    def _spawn(self, folder: Folder) -> None:
        try:
            programs = json.dumps(asdict(self._find()), default=str)
        except ToolsError as fault:
            raise StandInError(str(fault)) from None
        with folder.log("daemon").open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "sandbox.cluster", str(folder.path)],
                cwd=_CHECKOUT,
                env={key: os.environ[key] for key in _KEPT if key in os.environ},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert started.stdin is not None
        with started.stdin:
            started.stdin.write(programs)
        wait_for(lambda: daemon.is_running(folder) or started.poll() is not None, _START_SECONDS)
        if not daemon.is_running(folder):
            lines = folder.log("daemon").read_text(errors="replace").strip().splitlines()
            started.kill()
            raise StandInError(f"the control plane did not start: {lines[-1] if lines else 'it said nothing'}")


def _find() -> Tools:
    return tools.find(lambda text: print(text, file=sys.stderr))


def _is_ready(node: dict[str, object]) -> bool:
    status = node["status"]
    assert isinstance(status, dict)
    conditions = status.get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
