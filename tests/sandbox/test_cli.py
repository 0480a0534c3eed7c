"""Which Pulumi CLI the sandbox takes, with the machine's own kept out of the way."""

import os
import subprocess
from pathlib import Path

import pytest

from sandbox import cli


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH and an empty cache, which reaches no download."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def unreachable(**_: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr(cli.PulumiCommand, "install", unreachable)
    return tmp_path


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _pulumi_on_path(machine: Path, version: str) -> Path:
    executable = machine / "path" / "pulumi"
    _program(executable, f"#!/bin/sh\necho v{version}\n")
    _program(machine / "path" / "pulumi-language-python", "#!/bin/sh\n")
    return executable


def _go_on_path(machine: Path, build: str) -> None:
    """A Go that says it is new enough, has one module, and builds by the shell line ``build`` with $program to write."""
    sdk = machine / "sdk" / "python" / "cmd"
    sdk.mkdir(parents=True)
    (sdk / "pulumi-language-python-exec").write_text("executor")
    script = f"""#!/bin/sh
case "$1" in
env) echo go1.26.6 ;;
mod) echo '{{"Dir": "{machine / "sdk"}"}}' ;;
build) for argument; do case "$argument" in -o=*) program="${{argument#-o=}}" ;; esac; done; {build} ;;
esac
"""
    _program(machine / "path" / "go", script)


def test_a_cli_on_path_is_taken_as_it_is(machine: Path) -> None:
    executable = _pulumi_on_path(machine, "3.280.0")
    found = cli.find(pytest.fail)
    assert (found.executable, found.origin) == (executable, "pulumi 3.280.0 from PATH")


def test_an_old_cli_on_path_is_named_and_passed_over(machine: Path) -> None:
    _pulumi_on_path(machine, "3.100.0")
    said: list[str] = []
    with pytest.raises(cli.CliError):
        cli.find(said.append)
    assert said[0] == "pulumi 3.100.0 on PATH is older than 3.230.0; using 3.274.1 instead"


def test_without_cli_download_and_go_the_error_says_what_to_install(machine: Path) -> None:
    with pytest.raises(cli.CliError) as refusal:
        cli.find(lambda _: None)
    assert str(refusal.value) == (
        "no Pulumi CLI: none on PATH, the official download does not answer, and it cannot be built: there is no Go on PATH."
        " Install Go 1.26.6 or newer (https://go.dev/doc/install), then run this again."
        " Or install the CLI itself (https://www.pulumi.com/docs/install/)."
    )


def test_with_go_it_is_built_once_into_the_cache(machine: Path) -> None:
    _go_on_path(machine, 'echo built > "$program"')
    said: list[str] = []
    found = cli.find(said.append)
    assert found.executable.read_text() == "built\n"
    assert found.executable.parent == machine / "cache" / "ray-llm-eks" / f"pulumi-{cli.VERSION}-go"
    assert [line.split(" (")[0] for line in said] == [
        "Installing pulumi 3.274.1 from its official download ...",
        "  not reachable",
        "Building pulumi 3.274.1 from its Go module",
        "  done in 0 s",
    ]
    assert cli.find(pytest.fail) == found


def test_a_build_that_fails_leaves_nothing_and_says_why(machine: Path) -> None:
    _go_on_path(machine, "echo 'no space left on device' >&2; exit 1")
    with pytest.raises(cli.CliError, match=r"cannot be built: `go build` failed: no space left on device \("):
        cli.find(lambda _: None)
    assert not (machine / "cache" / "ray-llm-eks" / f"pulumi-{cli.VERSION}-go" / "pulumi").exists()


def test_the_language_host_beside_a_built_cli_runs_this_checkout(machine: Path) -> None:
    _go_on_path(machine, 'echo built > "$program"')
    found = cli.find(lambda _: None)
    host = found.executable.with_name("pulumi-language-python")
    environment = {**os.environ, **found.environment, "RAY_LLM_EKS_PYTHON": "/bin/echo"}
    answer = subprocess.run([host, "127.0.0.1:1"], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == f"-P {Path(cli.__file__).with_name('language_host.py')} 127.0.0.1:1"
