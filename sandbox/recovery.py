"""What a killed run leaves in the sandbox's home, and how the next command gets past it.

A SIGKILL of the CLI leaves its language host, the program and the policy pack running, and the stack locked. Whatever a
sandbox starts carries its home in the environment, and so do the children of that, so that these are found without a
list of their own. They are looked for in ``/proc``; where there is none (macOS), only locks are taken off.
"""

import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from sandbox.stacks import UsageError

HOME_VARIABLE: Final = "RAY_LLM_EKS_SANDBOX_HOME"

_PROC: Final = Path("/proc")
_PATIENCE_SECONDS: Final = 5.0
# A process's start is known to the second, and the clock may have been set meanwhile.
_CLOCK_SECONDS: Final = 2.0

Say = Callable[[str], None]


def claim(home: Path, *, shared: bool = False) -> tuple[IO[str], bool]:
    """Takes ``home`` into use until the returned file is closed; a kill closes it too.

    Args:
        home: the sandbox's home.
        shared: whether others may use it at the same time, who then must be sharing it as well.

    Returns:
        The file, and whether nobody else uses the home at this moment.

    Raises:
        UsageError: another process uses it, and does not share it or is not to share it.
    """
    file = (home / "in-use-by").open("a+")
    alone = _locked(file, fcntl.LOCK_EX)
    if not alone and not (shared and _locked(file, fcntl.LOCK_SH)):
        file.seek(0)
        owner = file.read().strip() or "another one"
        file.close()
        raise UsageError(
            f"the sandbox in {home} is in use by process {owner}: wait until its command has ended, or end it"
        )
    if alone:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    return file, alone


def share(file: IO[str]) -> None:
    """Lets others who share use a home that was claimed alone."""
    fcntl.flock(file, fcntl.LOCK_SH)


def _locked(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def recover(home: Path, state: Path, say: Say) -> None:
    """Ends what an interrupted run left running and takes off its locks; call it only while nobody else uses the home.

    Args:
        home: the home of the sandbox, as :data:`HOME_VARIABLE` names it.
        state: the folder of its file backend.
        say: gets a line for each thing done.
    """
    if left := sorted(_left_behind(home)):
        _end(left)
        say(f"Ended what an interrupted run had left running: {_processes(left)}.")
    for lock in _locks(state):
        if not lock.held:
            lock.take_off()
            say(f"Took off the lock of stack {lock.stack}: process {lock.pid}, which had made it, is gone.")


def refuse_if_locked(state: Path, project: str, stack: str) -> None:
    """Says who works on a stack, before the engine says it in three lines.

    Raises:
        UsageError: a living process holds the stack's lock.
    """
    for lock in _locks(state):
        if (lock.project, lock.stack) == (project, stack):
            raise UsageError(
                f"stack {stack} is locked by process {lock.pid} on {lock.host} since {lock.since}: wait until it has ended;"
                f" if there is no such process, remove {lock.path}"
            )


class _Lock:
    """A lock of Pulumi's file backend (pkg/backend/diy/lock.go): ``locks/organization/PROJECT/STACK/UUID.json``."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text())
        self.path = path
        self.pid = int(content["pid"])
        self.host = str(content["hostname"])
        self.since = str(content["timestamp"])
        self.stack = path.parent.name
        self.project = path.parent.parent.name

    def take_off(self) -> None:
        """Removes it, and what the backend notes beside each of its files."""
        self.path.unlink(missing_ok=True)

    @property
    def held(self) -> bool:
        """Whether its process lives. A younger one of that number is another; one on another host is out of sight."""
        if self.host != socket.gethostname():
            return True
        if not _lives(self.pid):
            return False
        started = _started(self.pid)
        return started is None or started <= datetime.fromisoformat(self.since).timestamp() + _CLOCK_SECONDS


def _locks(state: Path) -> Iterator[_Lock]:
    for path in sorted((state / ".pulumi" / "locks").rglob("*.json")):
        try:
            yield _Lock(path)
        except FileNotFoundError:
            continue
        except (KeyError, TypeError, ValueError):
            # Cut off while it was written: nobody holds what nobody can read.
            path.unlink(missing_ok=True)


def _left_behind(home: Path) -> Iterator[int]:
    mark = f"{HOME_VARIABLE}={home}".encode()
    spared = set(_ancestry())
    for folder in _PROC.glob("[0-9]*"):
        pid = int(folder.name)
        try:
            if pid not in spared and mark in (folder / "environ").read_bytes().split(b"\0"):
                yield pid
        except OSError:
            # Gone meanwhile, or somebody else's.
            continue


def _ancestry() -> Iterator[int]:
    pid = os.getpid()
    while pid > 0:
        yield pid
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0


def _end(pids: list[int]) -> None:
    _signal(pids, signal.SIGTERM)
    waited_until = time.monotonic() + _PATIENCE_SECONDS
    while any(map(_lives, pids)) and time.monotonic() < waited_until:
        time.sleep(0.05)
    _signal([pid for pid in pids if _lives(pid)], signal.SIGKILL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _lives(pid: int) -> bool:
    fields = _stat(pid)
    if fields is not None:
        return fields[0] != "Z"
    if _PROC.joinpath("self").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _started(pid: int) -> float | None:
    """When a process started, in seconds since 1970; None where that cannot be told."""
    fields = _stat(pid)
    if fields is None:
        return None
    booted = next(
        float(line.split()[1]) for line in (_PROC / "stat").read_text().splitlines() if line.startswith("btime ")
    )
    return booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on: state, parent ...; proc(5)."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _processes(pids: list[int]) -> str:
    return f"process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}"
