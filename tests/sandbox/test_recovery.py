"""What the next command does about what a killed one left: processes, locks, and who may use the home."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox import recovery
from sandbox.recovery import HOME_VARIABLE
from sandbox.stacks import UsageError

# A process that has been told to wait, and says when it has started; it ends on SIGTERM unless it is stubborn.
_WAITS = "import time; print('started', flush=True); time.sleep(60)"
_STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {_WAITS}"

Start = Callable[..., "subprocess.Popen[str]"]

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are looked for in /proc")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process that carries a home in its environment, or none."""
    started: list[subprocess.Popen[str]] = []

    def run(home: Path | None, code: str = _WAITS) -> "subprocess.Popen[str]":
        mark = {HOME_VARIABLE: str(home)} if home else {}
        process = subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, **mark}, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def lock(state: Path, pid: int, *, host: str = "", since: float | None = None, stack: str = "dev") -> Path:
    """A lock as Pulumi's file backend writes it."""
    folder = state / ".pulumi" / "locks" / "organization" / "shop" / stack
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{pid}.json"
    moment = datetime.fromtimestamp(time.time() if since is None else since, UTC)
    stamp = f"{moment:%Y-%m-%dT%H:%M:%S}.123456789Z"
    path.write_text(
        json.dumps({"pid": pid, "username": "me", "hostname": host or socket.gethostname(), "timestamp": stamp})
    )
    return path


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def recovered(home: Path) -> list[str]:
    said: list[str] = []
    recovery.recover(home, home / "state", said.append)
    return said


@needs_proc
def test_what_a_killed_command_left_running_is_ended(tmp_path: Path, start: Start):
    left = start(tmp_path)
    assert recovered(tmp_path) == [f"Ended what an interrupted run had left running: process {left.pid}."]
    assert left.wait(timeout=5) == -signal.SIGTERM


@needs_proc
def test_whoever_does_not_end_is_killed(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recovery, "_PATIENCE_SECONDS", 0.2)
    left = start(tmp_path, _STUBBORN)
    recovered(tmp_path)
    assert left.wait(timeout=5) == -signal.SIGKILL


@needs_proc
def test_processes_of_another_home_or_of_none_are_left_alone(tmp_path: Path, start: Start):
    others = [start(tmp_path / "other"), start(None)]
    assert recovered(tmp_path) == []
    assert [one.poll() for one in others] == [None, None]


@needs_proc
def test_a_command_does_not_end_itself_or_who_started_it(tmp_path: Path):
    code = (
        "import pathlib, sys; from sandbox.recovery import recover\n"
        "recover(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1]), print); print('lives')"
    )
    environment = {**os.environ, HOME_VARIABLE: str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "lives\n", done.stderr


def test_the_lock_of_a_process_that_is_gone_is_taken_off(tmp_path: Path):
    pid = ended_pid()
    path = lock(tmp_path / "state", pid)
    assert recovered(tmp_path) == [f"Took off the lock of stack dev: process {pid}, which had made it, is gone."]
    assert not path.exists()


@needs_proc
def test_the_lock_of_a_process_whose_number_has_gone_to_a_younger_one_is_taken_off(tmp_path: Path):
    path = lock(tmp_path / "state", os.getpid(), since=time.time() - 10**8)
    recovered(tmp_path)
    assert not path.exists()


def test_the_lock_of_a_process_that_lives_stays_and_is_one_clean_error(tmp_path: Path):
    state = tmp_path / "state"
    path = lock(state, os.getpid())
    assert recovered(tmp_path) == []
    with pytest.raises(UsageError) as refusal:
        recovery.refuse_if_locked(state, "shop", "dev")
    since = json.loads(path.read_text())["timestamp"]
    assert str(refusal.value) == (
        f"stack dev is locked by process {os.getpid()} on {socket.gethostname()} since {since}: wait until it has ended;"
        f" if there is no such process, remove {path}"
    )


def test_another_stack_is_not_locked_by_it(tmp_path: Path):
    lock(tmp_path / "state", os.getpid(), stack="staging")
    recovery.refuse_if_locked(tmp_path / "state", "shop", "dev")
    with pytest.raises(UsageError, match="stack staging is locked"):
        recovery.refuse_if_locked(tmp_path / "state", "shop", "staging")


def test_the_lock_of_another_machine_is_not_ours_to_take_off(tmp_path: Path):
    path = lock(tmp_path / "state", ended_pid(), host="elsewhere")
    assert recovered(tmp_path) == []
    assert path.exists()


def test_half_a_lock_is_taken_off(tmp_path: Path):
    path = lock(tmp_path / "state", 1)
    path.write_text('{"pid": 12')
    assert recovered(tmp_path) == []
    assert not path.exists()


def claim_elsewhere(home: Path, shared: bool) -> str:
    """What another process hears when it claims the home: "alone", "not alone", or the refusal."""
    code = (
        "import pathlib, sys; from sandbox.recovery import claim\n"
        "try: print('alone' if claim(pathlib.Path(sys.argv[1]), shared=sys.argv[2] == 'True')[1] else 'not alone')\n"
        "except Exception as refusal: print(refusal)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home), str(shared)], capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip()


def test_one_process_at_a_time_changes_a_home(tmp_path: Path):
    refusal = (
        f"the sandbox in {tmp_path} is in use by process {os.getpid()}: wait until its command has ended, or end it"
    )
    file, alone = recovery.claim(tmp_path)
    assert alone
    assert [claim_elsewhere(tmp_path, shared) for shared in (False, True)] == [refusal, refusal]
    file.close()
    assert claim_elsewhere(tmp_path, False) == "alone"


def test_those_who_change_nothing_share_it(tmp_path: Path):
    file, _ = recovery.claim(tmp_path, shared=True)
    recovery.share(file)
    assert claim_elsewhere(tmp_path, True) == "not alone"
    assert "is in use by process" in claim_elsewhere(tmp_path, False)
    file.close()
