"""SIGKILL of the Pulumi CLI in the middle of `up` and of `destroy`: what is left can be named and removed.

Three kills of each; ten with ``FULL=1``.
"""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.calls import OnCall
from sandbox.engine import Sandbox
from sandbox.standin import ResourceRef
from tests.lifecycle.conftest import HomeOf, SandboxIn
from tests.lifecycle.runs import CHECKOUT, Steps, shape

KILLS = 10 if os.environ.get("FULL") else 3
CREATES = 60
"""A little fewer than `up` makes and `destroy` deletes, so that the last kill still hits something."""
POINTS = [round(CREATES * (place + 0.5) / KILLS) for place in range(KILLS)]


class Killer:
    """Kills the CLI at the n-th call of one kind."""

    def __init__(self, operation: str, nth: int) -> None:
        self._operation, self._nth = operation, nth
        self._seen = 0
        self._lock = threading.Lock()
        self.sandbox: Sandbox | None = None
        self.hit: ResourceRef | None = None

    def __call__(self, operation: str, ref: ResourceRef) -> None:
        """Counts, and kills."""
        if operation != self._operation:
            return
        with self._lock:
            self._seen += 1
            if self._seen != self._nth:
                return
            self.hit = ref
        assert self.sandbox is not None
        self.sandbox.kill()


def killed(sandbox_in: SandboxIn, home: Path, operation: str, nth: int, run: Callable[[Sandbox], Steps]) -> ResourceRef:
    killer = Killer(operation, nth)
    on_call: OnCall = killer
    with sandbox_in(home, on_call=on_call) as sandbox:
        killer.sandbox = sandbox
        done = run(sandbox)
    assert done.exit_code == -signal.SIGKILL, done.output
    assert killer.hit is not None
    # A half written one makes the state unreadable.
    assert list((home / "state").rglob("*.attrs")) == []
    return killer.hit


@pytest.mark.parametrize("nth", POINTS)
def test_after_a_killed_up_orphans_and_destroy_leave_nothing(nth: int, sandbox_in: SandboxIn, tmp_path: Path) -> None:
    hit = killed(
        sandbox_in, tmp_path, "create", nth, lambda sandbox: Steps(sandbox.up(CHECKOUT, "dev", preview_first=False))
    )

    with sandbox_in(tmp_path) as sandbox:
        orphans = sandbox.orphans(CHECKOUT, "dev")
        # The creation that was in flight is in no state file.
        assert any(item.made_by == hit.token for item in orphans), (hit, orphans)
        sandbox.delete_orphans(CHECKOUT, "dev")
        assert sandbox.orphans(CHECKOUT, "dev") == []
        destroyed = Steps(sandbox.destroy(CHECKOUT, "dev"))
        assert destroyed.exit_code == 0, destroyed.output
        assert sandbox.inventory() == []


def test_after_a_killed_up_orphans_and_up_make_what_a_run_without_a_kill_makes(
    sandbox_in: SandboxIn, made: HomeOf, home_of: HomeOf, tmp_path: Path
) -> None:
    home = tmp_path / "killed"
    killed(
        sandbox_in,
        home,
        "create",
        CREATES // 2,
        lambda sandbox: Steps(sandbox.up(CHECKOUT, "dev", preview_first=False)),
    )
    with sandbox_in(home_of("dev")) as sandbox:
        clean = shape(sandbox.inventory())

    with sandbox_in(home) as sandbox:
        sandbox.delete_orphans(CHECKOUT, "dev")
        again = Steps(sandbox.up(CHECKOUT, "dev", preview_first=False))
        assert again.exit_code == 0, again.output
        assert shape(sandbox.inventory()) == clean


@pytest.mark.parametrize("nth", POINTS)
def test_after_a_killed_destroy_another_one_leaves_nothing(nth: int, sandbox_in: SandboxIn, home_of: HomeOf) -> None:
    home = home_of("dev")
    killed(sandbox_in, home, "delete", nth, lambda sandbox: Steps(sandbox.destroy(CHECKOUT, "dev")))

    with sandbox_in(home) as sandbox:
        assert sandbox.inventory() != []
        sandbox.delete_orphans(CHECKOUT, "dev")
        destroyed = Steps(sandbox.destroy(CHECKOUT, "dev"))
        assert destroyed.exit_code == 0, destroyed.output
        assert sandbox.inventory() == []
