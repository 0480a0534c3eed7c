"""Runs the real Pulumi engine over a program, with the stand-in providers attached and the policy pack switched on.

Everything it writes lies under one folder (``.sandbox/`` of the checkout): the engine's home, its file backend, and a
copy of the stack's configuration, so that neither the user's Pulumi login nor the project's stack files are touched.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from sandbox.aws import Aws
from sandbox.cli import Cli
from sandbox.kubernetes import Kubernetes
from sandbox.wire import serve

CHECKOUT = Path(__file__).resolve().parent.parent
PACK = CHECKOUT / "policies"
_PASSPHRASE = "sandbox"
# A stack file's secrets are sealed with a key that a rehearsal must not have; this takes their place.
_SECRET = "sandbox-placeholder"


class UsageError(Exception):
    """What was asked cannot be run: no such program, stack or configuration. The text says what to type instead."""


@dataclass(frozen=True)
class Run:
    """One engine command: its exit code, what it printed, and its events (the engine's own JSON, in order)."""

    exit_code: int
    output: str
    events: Sequence[Mapping[str, Any]]


class Sandbox(AbstractContextManager["Sandbox"]):
    """The engine with its stand-ins running; leave the ``with`` block and they end."""

    def __init__(self, cli: Cli, home: Path) -> None:
        self._cli = cli
        self._home = home
        self._stack = ExitStack()
        self._providers = ""
        self.aws = Aws()
        self.kubernetes = Kubernetes()

    def __enter__(self) -> Self:
        servers = [serve(self.aws), serve(self.kubernetes)]
        for server in servers:
            self._stack.callback(server.stop)
        ports = [f"{server.package}:{server.port}" for server in servers]
        ports.append(f"eks:{self._start_eks()}")
        self._providers = ",".join(ports)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def preview(
        self,
        program: Path,
        stack: str,
        config: Mapping[str, str] | None = None,
        policy_config: Path | None = None,
    ) -> Run:
        """Previews ``program``'s stack with the pack on, whose own stack file ``config`` overrides.

        Raises:
            UsageError: there is no such program, or its stack file or a ``config`` key cannot be read.
        """
        options = ["--policy-pack", str(PACK)]
        if policy_config is not None:
            options += ["--policy-pack-config", str(policy_config)]
        return self._run(["preview", *options], program, stack, config or {})

    def _run(self, command: Sequence[str], program: Path, stack: str, config: Mapping[str, str]) -> Run:
        with tempfile.TemporaryDirectory(dir=self._home) as folder:
            settings, log = Path(folder, "config.yaml"), Path(folder, "events")
            self._write_settings(settings, program, stack, config)
            arguments = [
                *command,
                *("--stack", stack, "--config-file", str(settings)),
                *("--event-log", str(log), "--non-interactive", "--color", "never", "--suppress-progress"),
            ]
            with self._pulumi(arguments, program) as process:
                output, _ = process.communicate()
            events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
            return Run(process.returncode, output, events)

    def _write_settings(self, settings: Path, program: Path, stack: str, config: Mapping[str, str]) -> None:
        project = self._home / "stacks" / _project_name(program)
        salt = self._salt(project, stack)
        plain, secrets = _stack_config(program, stack)
        settings.write_text(yaml.safe_dump({"encryptionsalt": salt, "config": plain}))
        for options in (
            *(("--secret", "--path", path, _SECRET) for path in secrets),
            *(("--path", key, value) for key, value in config.items()),
        ):
            target = ("--stack", stack, "--config-file", str(settings))
            self._quiet(["config", "set", *options, *target], project)

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
                self._quiet(["stack", "init", stack, "--no-select"], project)
            return yaml.safe_load(salted.read_text())["encryptionsalt"]

    def _quiet(self, arguments: Sequence[str], folder: Path) -> None:
        with self._pulumi([*arguments, "--non-interactive"], folder) as process:
            output, _ = process.communicate()
        if process.returncode != 0:
            raise UsageError(f"pulumi {arguments[0]} {arguments[1]}: {output.strip()}")

    def _pulumi(self, arguments: Sequence[str], folder: Path) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(self._cli.executable), *arguments],
            cwd=folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _environment(self) -> dict[str, str]:
        state = self._home / "state"
        state.mkdir(parents=True, exist_ok=True)
        python = Path(sys.prefix)
        # No credential and no kubeconfig of the user's gets near a rehearsal.
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PULUMI_", "KUBE"))}
        return {
            **kept,
            **self._cli.environment,
            "PATH": os.pathsep.join(
                [*map(str, self._cli.path_entries), str(python / "bin"), os.environ.get("PATH", "")]
            ),
            "VIRTUAL_ENV": str(python),
            "PULUMI_HOME": str(self._home / "pulumi"),
            "PULUMI_BACKEND_URL": f"file://{state}",
            "PULUMI_CONFIG_PASSPHRASE": _PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # Makes --event-log a flag.
            "PULUMI_DEBUG_COMMANDS": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_PROVIDERS": self._providers,
        }

    def _start_eks(self) -> int:
        process = subprocess.Popen(
            [sys.executable, "-m", "sandbox.eks"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(_end, process)
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line.isdigit():
            raise RuntimeError(f"the eks stand-in did not start: {line or 'it printed nothing'}")
        return int(line)


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.communicate()


def _project_name(program: Path) -> str:
    path = program / "Pulumi.yaml"
    if not path.is_file():
        raise UsageError(f"--program {program}: there is no Pulumi.yaml in it; name the folder of a Pulumi program")
    document = _mapping(path)
    name = document.get("name")
    if not isinstance(name, str):
        raise UsageError(f"{path}: it has no `name`; give the project one")
    return name


def _stack_config(program: Path, stack: str) -> tuple[dict[str, Any], list[str]]:
    """The stack file's configuration without its secrets, and the paths at which these stand."""
    path = program / f"Pulumi.{stack}.yaml"
    if not path.is_file():
        known = sorted(one.name.removeprefix("Pulumi.").removesuffix(".yaml") for one in program.glob("Pulumi.*.yaml"))
        if known:
            raise UsageError(
                f"--stack {stack}: there is no {path.name}; the stacks of this program are {', '.join(known)}"
            )
        return {}, []
    secrets: list[str] = []
    config = _mapping(path).get("config") or {}
    return _without_secrets(config, "", secrets), secrets


def _without_secrets(value: Any, path: str, secrets: list[str]) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, member in value.items():
            at = f"{path}.{key}" if path else str(key)
            if isinstance(member, dict) and set(member) == {"secure"}:
                secrets.append(at)
            else:
                kept[key] = _without_secrets(member, at, secrets)
        return kept
    if isinstance(value, list):
        return [_without_secrets(member, f"{path}[{index}]", secrets) for index, member in enumerate(value)]
    return value


def _mapping(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text())
    except yaml.YAMLError as fault:
        raise UsageError(f"{path}: it is not YAML: {' '.join(str(fault).split())}") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: it is not a mapping of keys to values")
    return document
