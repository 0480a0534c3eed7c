"""Builds the sandbox's Go programs from one go.mod, the Pulumi CLI among them, so that what they share is compiled once.

Every module is pinned with its hash (``go/go.mod``, ``go/go.sum``), and nothing but Go itself is needed.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from semver import VersionInfo

Say = Callable[[str], None]

OLDEST_GO = VersionInfo(1, 26, 6)
"""What pulumi/pulumi's pkg/v3 asks for in its go.mod, the most of all modules."""

_SOURCE = Path(__file__).with_name("go")
_INSTALL = f"Install Go {OLDEST_GO} or newer (https://go.dev/doc/install), then run this again."
# No C compiler is asked for; a go.work or a repository around the cache does not matter.
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off"}


class BuildError(Exception):
    """A Go program cannot be built; one line says why and, where that helps, what to install."""


@dataclass(frozen=True)
class Module:
    """A Go module at one version, with the hash (``h1:``) that go.sum would have for it."""

    path: str
    version: str
    hash: str


@dataclass(frozen=True)
class Go:
    """A Go that is new enough, and a work folder with the go.mod in it.

    Attributes:
        folder: where ``build`` runs; packages beside the go.mod go by ``./name``.
    """

    executable: str
    folder: Path
    _log: Path

    def build(self, package: str, program: Path, stamps: Mapping[str, str] | None = None) -> None:
        """Builds ``package`` as the executable ``program``, which appears at once and whole.

        Args:
            package: import path.
            program: the file to make; its folder exists.
            stamps: string variables to set in it, ``import/path.Name`` to value.

        Raises:
            BuildError: Go refuses; its whole output is in the log that the text names.
        """
        # Apart from the sources: Go puts an executable *into* an output that is a folder, as ./kubestack is.
        made = self.folder / "made" / program.name
        made.parent.mkdir(exist_ok=True)
        flags = ["-s", "-w", *(f"-X {name}={value}" for name, value in (stamps or {}).items())]
        # -trimpath: to Go's build cache, the same package in another work folder is the same.
        common = ("build", "-mod=readonly", "-trimpath", "-buildvcs=false")
        done = _go(self.executable, (*common, f"-ldflags={' '.join(flags)}", f"-o={made}", package), self.folder)
        if done.returncode != 0:
            raise self._refusal("build", done.stderr)
        os.replace(made, program)

    def module_folder(self, module: str) -> Path:
        """Where the sources of ``module`` lie, at the version of the go.mod; fetched if no build has done that.

        Raises:
            BuildError: it cannot be fetched, or what was fetched has another hash than go.sum says.
        """
        return Path(self._fetched(module, self.folder)["Dir"])

    def unpack(self, module: Module, folder: Path) -> None:
        """Puts a copy of ``module`` that may be changed at ``folder``.

        Go neither builds with an overlay over its module cache nor checks the hash of a module that go.mod replaces by a
        folder, so both are done here.

        Raises:
            BuildError: it cannot be fetched, or what was fetched has another hash.
        """
        named = f"{module.path}@{module.version}"
        # Beside the go.mod, whose replace line would hide the module.
        with _empty(self.folder.with_name("unpacked")) as outside:
            fetched = self._fetched(named, outside)
            if fetched["Sum"] != module.hash:
                raise BuildError(
                    f"{named} was fetched with the hash {fetched['Sum']}, but {module.hash} is pinned; nothing was built from it."
                )
            with zipfile.ZipFile(fetched["Zip"]) as archive:
                archive.extractall(outside)
            folder.parent.mkdir(parents=True, exist_ok=True)
            os.replace(outside / named, folder)

    def _fetched(self, module: str, folder: Path) -> dict[str, str]:
        done = _go(self.executable, ("mod", "download", "-json", module), folder)
        answer: dict[str, str] = json.loads(done.stdout or "{}")
        if done.returncode != 0:
            # A fault of one module is told in its JSON, not in stderr.
            raise self._refusal("mod download", answer.get("Error", done.stderr))
        return answer

    def _refusal(self, subcommand: str, output: str) -> BuildError:
        self._log.write_text(output)
        return BuildError(f"`go {subcommand}` failed: {_first_fault(output)} (all of its output: {self._log}).")


def fingerprint() -> str:
    """A short hash of what is built from here: another one means other programs."""
    content = hashlib.sha256()
    for file in sorted(file for file in _SOURCE.rglob("*") if file.is_file()):
        content.update(file.read_bytes())
    return content.hexdigest()[:8]


@contextmanager
def step(text: str, say: Say) -> Iterator[None]:
    """Says that something slow begins, and when it has ended well, how many seconds it took."""
    say(f"{text} ...")
    started = time.monotonic()
    yield
    say(f"  done in {time.monotonic() - started:.0f} s")


@contextmanager
def workshop(folder: Path, say: Say) -> Iterator[Go]:
    """Go with a work folder under ``folder``, for one process at a time; ``folder`` is made where it is missing.

    Who waited for another process should look again at what is still missing.

    Raises:
        BuildError: Go is missing or too old.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another process is building the same; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        # A killed build may have left its own, which is why it has a fixed name.
        with _empty(folder / "work") as work:
            shutil.copytree(_SOURCE, work, dirs_exist_ok=True)
            yield Go(_new_enough(work, say), work, folder / "build.log")


@contextmanager
def _empty(folder: Path) -> Iterator[Path]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _new_enough(work: Path, say: Say) -> str:
    executable = shutil.which("go")
    if executable is None:
        raise BuildError(f"there is no Go on PATH. {_INSTALL}")
    installed = _version(executable, work, {"GOTOOLCHAIN": "local"})
    if installed is not None and installed >= OLDEST_GO:
        return executable
    # From 1.21 on, Go fetches the version that a go.mod asks for, unless GOTOOLCHAIN forbids it.
    say(f"Go {installed or 'of an unknown version'} is older than {OLDEST_GO}; asking it to fetch that ...")
    fetched = _version(executable, work, {})
    if fetched is None or fetched < OLDEST_GO:
        raise BuildError(
            f"Go {installed or 'of an unknown version'} on PATH is too old, and it could not fetch {OLDEST_GO} by itself. {_INSTALL}"
        )
    return executable


def _version(executable: str, work: Path, environment: Mapping[str, str]) -> VersionInfo | None:
    answer = _go(executable, ("env", "GOVERSION"), work, environment)
    numbers = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", answer.stdout)
    if answer.returncode != 0 or numbers is None:
        return None
    return VersionInfo(*(int(number or 0) for number in numbers.groups()))


def _go(
    executable: str, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    seen = {**os.environ, **_ENVIRONMENT, **(environment or {})}
    return subprocess.run([executable, *arguments], cwd=folder, env=seen, capture_output=True, text=True)


def _first_fault(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    # Headings of packages and what is merely being fetched say nothing about the fault.
    faults = [line for line in lines if line and not line.startswith(("#", "go: downloading", "go: finding"))]
    return faults[0] if faults else "it said nothing"
