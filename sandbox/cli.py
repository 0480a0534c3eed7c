"""Where the Pulumi CLI comes from: PATH, else the official install, else its Go module, built once into a cache."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pulumi.automation import PulumiCommand
from semver import VersionInfo

from sandbox.language_host import EXECUTOR_VARIABLE, VERSION_VARIABLE

VERSION = "3.274.1"
"""The CLI that is installed or built, and the oldest one that is taken from PATH without a word."""

# The fork that pulumi's own go.mod replaces this module by; a replace line does not reach dependents.
_GO_MOD = f"""module ray-llm-eks/pulumi-cli

go 1.26

require github.com/pulumi/pulumi/pkg/v3 v{VERSION}

replace github.com/atotto/clipboard => github.com/tgummerer/clipboard v0.0.0-20241001131231-d02d263e614e
"""
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
    _build(_from_module(), say)
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


def _build(root: Path, say: Callable[[str], None]) -> None:
    go = shutil.which("go")
    if go is None:
        raise CliError(
            "no Pulumi CLI: none on PATH, the official download does not answer, and there is no Go to build it with."
            " Install the Pulumi CLI (https://www.pulumi.com/docs/install/) or Go 1.26 or newer, then run this again."
        )
    root.mkdir(parents=True, exist_ok=True)
    say(f"Building pulumi {VERSION} from its Go module (about 5 minutes on 2 cores, once) ...")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=root.parent) as work:
        Path(work, "go.mod").write_text(_GO_MOD)
        stamp = f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{VERSION}"
        package = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
        _run([go, "build", "-mod=mod", "-ldflags", stamp, "-o", f"{work}/pulumi", package], work)
        sdk = _run([go, "list", "-mod=mod", "-m", "-f", "{{.Dir}}", "github.com/pulumi/pulumi/sdk/v3"], work).strip()
        executor = Path(sdk, "python", "cmd", "pulumi-language-python-exec")
        shutil.copyfile(executor, root / "pulumi-language-python-exec")
        host = root / "pulumi-language-python"
        host.write_text(_HOST_SCRIPT)
        host.chmod(0o755)
        # Last and atomic: an interrupted build leaves no executable behind.
        os.replace(f"{work}/pulumi", root / "pulumi")
    say(f"  built in {time.monotonic() - started:.0f} s")


def _run(command: list[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise CliError(f"`{' '.join(command[:2])}` failed while building the Pulumi CLI:\n{last}")
    return done.stdout


if __name__ == "__main__":
    try:
        print(find(lambda text: print(text, flush=True)).origin)
    except CliError as refusal:
        sys.exit(f"error: {refusal}")
