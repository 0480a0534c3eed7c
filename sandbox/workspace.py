"""The Pulumi CLI in a folder of the sandbox's own: its processes, what they see of the environment, and a stack's settings.

The engine's home, its file backend and a copy of the stack's configuration lie there, so that neither the user's Pulumi
login nor the project's stack files are touched.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import yaml

from sandbox import recovery
from sandbox.cli import Cli
from sandbox.cluster import plugin
from sandbox.cluster.tools import Tools
from sandbox.stacks import UsageError, project_name, stack_config

_PASSPHRASE = "sandbox"
# A stack file's secrets are sealed with a key that a rehearsal must not have; this takes their place.
_SECRET = "sandbox-placeholder"


class Standing(StrEnum):
    """What a stack's Kubernetes is."""

    REAL = "real"
    ECHO = "echo"


class Workspace:
    """Where the CLI runs.

    Args:
        cli: the Pulumi CLI.
        home: the folder that everything lies in.

    Attributes:
        state: the file backend.
        providers: ``PULUMI_DEBUG_PROVIDERS``: the stand-ins, once they run.
    """

    def __init__(self, cli: Cli, home: Path) -> None:
        self._cli = cli
        self._home = home
        self._pulumi_home = home / "pulumi"
        self.state = home / "state"
        self.providers = ""

    def start(self, arguments: Sequence[str], folder: Path, *, reads_input: bool = False) -> "subprocess.Popen[str]":
        """Starts the CLI in a folder; both its outputs come as one."""
        return subprocess.Popen(
            [str(self._cli.executable), *arguments],
            cwd=folder,
            env=self._environment(),
            stdin=subprocess.PIPE if reads_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ask(self, arguments: Sequence[str], folder: Path, *, typed: str | None = None) -> str:
        """Runs a small command to its end and returns what it printed; ``typed`` goes to its input.

        Raises:
            UsageError: the engine refuses it.
        """
        with self.start([*arguments, "--non-interactive"], folder, reads_input=typed is not None) as process:
            output, _ = process.communicate(typed)
        if process.returncode != 0:
            raise UsageError(f"pulumi {arguments[0]} {arguments[1]}: {output.strip()}")
        return output

    def settle(self, program: Path, stack: str) -> Path:
        """The folder that stands for a program; its stack is made where there is none yet.

        Raises:
            UsageError: there is no such program.
        """
        project = self._home / "stacks" / project_name(program)
        self._salt(project, stack)
        return project

    def note(self, program: Path, stack: str, standing: Standing | None) -> None:
        """Keeps what a stack's Kubernetes is, None for a stack that has none any more."""
        path = self._noted_in(program, stack)
        if standing is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(standing)

    def noted(self, program: Path, stack: str) -> Standing | None:
        """What was kept; None for a stack that is not up."""
        path = self._noted_in(program, stack)
        return Standing(path.read_text()) if path.exists() else None

    def install_plugin(self, tools: Tools, environment: Mapping[str, str]) -> None:
        """Has the engine find Pulumi's own Kubernetes plugin, which gets these variables."""
        plugin.install(self._home, self._pulumi_home, tools, environment)

    def _noted_in(self, program: Path, stack: str) -> Path:
        return self._home / "stacks" / project_name(program) / f"kubernetes-{stack}"

    def write_settings(
        self,
        settings: Path,
        program: Path,
        stack: str,
        config: Mapping[str, str],
        secrets: Mapping[str, str],
    ) -> None:
        """Writes the stack's configuration to ``settings``, overridden by ``config`` and ``secrets`` (path -> value).

        Raises:
            UsageError: there is no such program, or its stack file or a path cannot be read.
        """
        project = self.settle(program, stack)
        plain, sealed = stack_config(program, stack)
        settings.write_text(yaml.safe_dump({"encryptionsalt": self._salt(project, stack), "config": plain}))
        target = ("--stack", stack, "--config-file", str(settings), "--path")
        for path in sealed:
            self.ask(["config", "set", "--secret", path, _SECRET, *target], project)
        for path, value in config.items():
            self.ask(["config", "set", path, value, *target], project)
        for path, value in secrets.items():
            # Typed, because others can read a command line.
            self.ask(["config", "set", "--secret", path, *target], project, typed=value)

    def _salt(self, project: Path, stack: str) -> str:
        """The salt of the stack's secrets; makes the stack where there is none yet.

        `stack init` writes it beside a Pulumi.yaml. Done in a folder of our own, the project's files stay as they are.
        """
        project.mkdir(parents=True, exist_ok=True)
        salted = project / f"Pulumi.{stack}.yaml"
        with (project / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not salted.exists():
                (project / "Pulumi.yaml").write_text(yaml.safe_dump({"name": project.name, "runtime": "python"}))
                self.ask(["stack", "init", stack, "--no-select"], project)
            return yaml.safe_load(salted.read_text())["encryptionsalt"]

    def _environment(self) -> dict[str, str]:
        self.state.mkdir(parents=True, exist_ok=True)
        python = Path(sys.prefix)
        # No credential and no kubeconfig of the user's gets near a rehearsal.
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_", "KUBE"))}
        return {
            **kept,
            **self._cli.environment,
            recovery.HOME_VARIABLE: str(self._home),
            "PATH": os.pathsep.join(
                [*map(str, self._cli.path_entries), str(python / "bin"), os.environ.get("PATH", "")]
            ),
            "VIRTUAL_ENV": str(python),
            "PULUMI_HOME": str(self._pulumi_home),
            # Without it each file has another beside it for its attributes, which is not written whole or not at all: a kill
            # in the middle leaves a state that nobody can read (gocloud.dev, blob/fileblob/attrs.go: setAttrs).
            "PULUMI_BACKEND_URL": f"file://{self.state}?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE": _PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # Makes --event-log a flag.
            "PULUMI_DEBUG_COMMANDS": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_PROVIDERS": self.providers,
        }
