"""One running sandbox for each test process; every preview goes through the real engine with the pack switched on."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
import yaml

from sandbox import cli
from sandbox.engine import Sandbox
from tests.engine.previews import Preview


class PreviewOf(Protocol):
    """Previews a program's stack; ``corrected`` sets the switch that every program of ours has."""

    def __call__(
        self,
        program: Path,
        corrected: bool = False,
        stack: str = "dev",
        config: Mapping[str, str] | None = None,
        policy_config: Path | None = None,
    ) -> Preview: ...


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The engine with its stand-ins, in a home of its own."""
    with Sandbox(cli.find(_say), tmp_path_factory.mktemp("sandbox")) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def preview(running: Sandbox) -> PreviewOf:
    """Previews a program. Fails at once when a policy could not run, which the engine takes for advice, or on a traceback."""

    def run(
        program: Path,
        corrected: bool = False,
        stack: str = "dev",
        config: Mapping[str, str] | None = None,
        policy_config: Path | None = None,
    ) -> Preview:
        project = yaml.safe_load((program / "Pulumi.yaml").read_text())["name"]
        settings = {**(config or {}), **({f"{project}:corrected": "true"} if corrected else {})}
        done = Preview(running.preview(program, stack, settings, policy_config))
        for word in ("can't run policy", "Traceback", "the sandbox itself failed"):
            assert word not in done.output, done.output
        return done

    return run


def _say(text: str) -> None:
    print(text, flush=True)
