"""Where the Pulumi CLI comes from: PATH, else the official install, else its Go module, built once into a cache."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pulumi.automation import PulumiCommand
from semver import VersionInfo

from sandbox.cluster.go_build import BuildError, Go, step, workshop
from sandbox.language_host import EXECUTOR_VARIABLE, VERSION_VARIABLE

VERSION = "3.274.1"
"""The CLI that is installed or built, and the oldest one that is taken from PATH without a word."""

# The engine looks for the host beside its own executable, in a cache that checkouts share: what differs comes by environment.
_PYTHON_VARIABLE = "RAY_LLM_EKS_PYTHON"
_HOST_VARIABLE = "RAY_LLM_EKS_LANGUAGE_HOST"
_HOST_SCRIPT = f'#!/bin/sh\nexec "${_PYTHON_VARIABLE}" -P "${_HOST_VARIABLE}" "$@"\n'
_OLDEST_ON_PATH = VersionInfo(3, 230, 0)


class CliError(Exception):
    """No Pulumi CLI can be had; the text says what to install."""


@dataclass(frozen=True)
class Cli:
    """A Pulumi CLI: its executable, where it came from, and what its children need in PATH and environment."""

    executable: Path
    origin: str
    path_entries: tuple[Path, ...]
    environment: dict[str, str]


def cache_directory() -> Path:
    """The folder outside the checkout that keeps what was built: ``$XDG_CACHE_HOME/ray-llm-eks``."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ray-llm-eks"


def find(say: Callable[[str], None]) -> Cli:
    """Returns a CLI, installing or building it when there is none; ``say`` gets a line for each slow step.

    Raises:
        CliError: nothing is on PATH, the official download does not answer, and Go is not installed.
    """
    return _on_path(say) or _cached() or _installed(say) or _built(say)


def _on_path(say: Callable[[str], None]) -> Cli | None:
    found = shutil.which("pulumi")
    if found is None or shutil.which("pulumi-language-python") is None:
        return None
    answer = subprocess.run([found, "version"], capture_output=True, text=True, timeout=60)
    try:
        version = VersionInfo.parse(answer.stdout.strip().removeprefix("v"))
    except ValueError:
        return None
    if version < _OLDEST_ON_PATH:
        say(f"pulumi {version} on PATH is older than {_OLDEST_ON_PATH}; using {VERSION} instead")
        return None
    return Cli(Path(found), f"pulumi {version} from PATH", (), {})


def _cached() -> Cli | None:
    if (_official() / "bin" / "pulumi").exists():
        return _official_cli()
    if (_from_module() / "pulumi").exists():
        return _module_cli()
    return None


def _installed(say: Callable[[str], None]) -> Cli | None:
    say(f"Installing pulumi {VERSION} from its official download ...")
    try:
        PulumiCommand.install(root=str(_official()), version=VersionInfo.parse(VERSION))
    except Exception as refusal:
        # urllib, the shell script it runs and the version check each raise their own kind.
        shutil.rmtree(_official(), ignore_errors=True)
        say(f"  not reachable ({type(refusal).__name__}); building it from its Go module instead")
        return None
    return _official_cli()


def _built(say: Callable[[str], None]) -> Cli:
    root = _from_module()
    try:
        with workshop(root, say) as go:
            # Who waited for another process finds it made.
            if not (root / "pulumi").exists():
                _build(root, go, say)
    except BuildError as fault:
        reason = "none on PATH, the official download does not answer, and it cannot be built"
        raise CliError(
            f"no Pulumi CLI: {reason}: {fault} Or install the CLI itself (https://www.pulumi.com/docs/install/)."
        ) from None
    return _module_cli()


def _official() -> Path:
    return cache_directory() / f"pulumi-{VERSION}-official"


def _from_module() -> Path:
    return cache_directory() / f"pulumi-{VERSION}-go"


def _official_cli() -> Cli:
    folder = _official() / "bin"
    return Cli(folder / "pulumi", f"pulumi {VERSION}, official install", (folder,), {})


def _module_cli() -> Cli:
    root = _from_module()
    return Cli(
        root / "pulumi",
        f"pulumi {VERSION}, built from its Go module",
        (root,),
        {
            EXECUTOR_VARIABLE: str(root / "pulumi-language-python-exec"),
            VERSION_VARIABLE: VERSION,
            _PYTHON_VARIABLE: sys.executable,
            _HOST_VARIABLE: str(Path(__file__).with_name("language_host.py").resolve()),
        },
    )


def _build(root: Path, go: Go, say: Callable[[str], None]) -> None:
    with step(f"Building pulumi {VERSION} from its Go module (about 5 minutes on 2 cores, once)", say):
        sdk = go.module_folder("github.com/pulumi/pulumi/sdk/v3")
        executor = sdk / "python" / "cmd" / "pulumi-language-python-exec"
        (root / executor.name).write_bytes(executor.read_bytes())
        host = root / "pulumi-language-python"
        host.write_text(_HOST_SCRIPT)
        host.chmod(0o755)
        # Last: an interrupted build leaves no executable behind.
        stamps = {"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{VERSION}"}
        go.build("github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", root / "pulumi", stamps)


if __name__ == "__main__":
    try:
        print(find(lambda text: print(text, flush=True)).origin)
    except CliError as refusal:
        sys.exit(f"error: {refusal}")
