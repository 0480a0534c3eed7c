"""Homes of sandboxes: each test that needs a stack gets a copy of one in which `up` has run, since an `up` costs half a minute."""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from sandbox import cli
from sandbox.calls import OnCall
from sandbox.engine import Sandbox
from sandbox.faults import FaultPlan
from tests.lifecycle.runs import CHECKOUT, Steps


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs an engine here, so that `make test` leaves it to `make test-faults`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and "sandbox_in" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.lifecycle)


class SandboxIn(Protocol):
    """Starts a sandbox in a home."""

    def __call__(
        self, home: Path, faults: Sequence[str] = (), on_call: OnCall | None = None
    ) -> AbstractContextManager[Sandbox]: ...


HomeOf = Callable[..., Path]


@pytest.fixture(scope="session")
def sandbox_in() -> SandboxIn:
    """Starts sandboxes; each is one process that uses the AWS account of its home."""
    found = cli.find(_say)

    @contextmanager
    def start(home: Path, faults: Sequence[str] = (), on_call: OnCall | None = None) -> Iterator[Sandbox]:
        with Sandbox(found, home, faults=FaultPlan.parse(faults), on_call=on_call, say=_say) as sandbox:
            yield sandbox

    return start


@pytest.fixture(scope="session")
def made(sandbox_in: SandboxIn, tmp_path_factory: pytest.TempPathFactory) -> HomeOf:
    """A home in which `up` has made a stack, shared by all test processes: look, do not touch."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if base.name.startswith("popen-") else base) / "made"
    shared.mkdir(exist_ok=True)

    def make(stack: str = "dev", config: Mapping[str, str] | None = None) -> Path:
        name = f"{stack}-{hashlib.sha1(json.dumps(config or {}, sort_keys=True).encode()).hexdigest()[:8]}"
        home = shared / name
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (home / "ready").exists():
                shutil.rmtree(home, ignore_errors=True)
                with sandbox_in(home) as sandbox:
                    done = Steps(sandbox.up(CHECKOUT, stack, config))
                assert done.exit_code == 0, done.output
                (home / "ready").write_text(done.output)
        return home

    return make


@pytest.fixture
def home_of(made: HomeOf, tmp_path: Path) -> HomeOf:
    """A copy of :func:`made`'s home for this test alone."""

    def copy(stack: str = "dev", config: Mapping[str, str] | None = None, name: str = "home") -> Path:
        return Path(shutil.copytree(made(stack, config), tmp_path / name))

    return copy


def _say(text: str) -> Any:
    print(text, flush=True)


def pytest_configure(config: pytest.Config) -> None:
    """Names the mark."""
    config.addinivalue_line("markers", "lifecycle: runs whole lives of stacks through the engine (make test-faults)")
