"""Runs the real Pulumi engine over a program, with the stand-in providers attached and the policy pack switched on.

Everything it writes lies under one folder (``.sandbox/`` of the checkout).
"""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sandbox import orphans, recovery
from sandbox.aws import Aws
from sandbox.calls import OnCall
from sandbox.charts.web import ChartWeb
from sandbox.cli import Cli
from sandbox.cluster import objects
from sandbox.cluster.clusters import Clusters
from sandbox.cluster.tools import Tools
from sandbox.faults import FaultPlan
from sandbox.inventory import Item
from sandbox.kubernetes import Kubernetes
from sandbox.stacks import UsageError, project_name
from sandbox.wire import serve
from sandbox.workspace import Standing, Workspace

CHECKOUT = Path(__file__).resolve().parent.parent
PACK = CHECKOUT / "policies"


@dataclass(frozen=True)
class Run:
    """One engine command: its exit code, what it printed, and its events (the engine's own JSON, in order)."""

    exit_code: int
    output: str
    events: Sequence[Mapping[str, Any]]

    @property
    def changes(self) -> Mapping[str, int]:
        """How many resources the command, or the preview that it stopped at, treats how: ``{"create": 3, "same": 40}``."""
        summaries = [event["summaryEvent"] for event in self.events if "summaryEvent" in event]
        return summaries[-1]["resourceChanges"] or {} if summaries else {}


class Sandbox(AbstractContextManager["Sandbox"]):
    """The engine with its stand-ins running; leave the ``with`` block and they end.

    A home is one AWS account with its clusters and one file backend, all of it kept between commands. One process at a
    time uses it.

    Args:
        cli: the Pulumi CLI.
        home: the folder that all of it lies in; made where it is missing.
        faults: what AWS is to refuse.
        on_call: hears of each call to a stand-in.
        say: gets a line for each thing that an interrupted run had left behind.
        shared: for what changes nothing (previews, inventories): others who share may use the home at the same time.
        real: finds the programs of a real Kubernetes. With it an `up` of a new stack gets one; without it Kubernetes is echoed.

    Attributes:
        aws: the account.
        kubernetes: the echo.
        clusters: the real clusters.
        on_real_kubernetes: whether the last command ran against one.

    Raises:
        UsageError: on entering, when another process uses the home.
    """

    def __init__(
        self,
        cli: Cli,
        home: Path,
        *,
        faults: FaultPlan | None = None,
        on_call: OnCall | None = None,
        say: recovery.Say = lambda _: None,
        shared: bool = False,
        real: Callable[[], Tools] | None = None,
    ) -> None:
        self._home = home.resolve()
        self._workspace = Workspace(cli, self._home)
        self._faults = faults or FaultPlan.parse([])
        self._on_call = on_call
        self._say = say
        self._shared = shared
        self._real = real
        self.clusters = Clusters(self._home)
        self.on_real_kubernetes = False
        self._stack = ExitStack()
        self._running: subprocess.Popen[str] | None = None
        self._one_command = threading.Lock()

    def __enter__(self) -> Self:
        self._home.mkdir(parents=True, exist_ok=True)
        claimed, alone = recovery.claim(self._home, shared=self._shared)
        self._stack.enter_context(claimed)
        with ExitStack() as started:
            started.push(self._stack)
            if alone:
                self._recover()
            if self._shared:
                recovery.share(claimed)
            self._stack.callback(self.clusters.close)
            self.aws = Aws(self._home / "aws", self._faults, control_planes=self.clusters)
            self.kubernetes = Kubernetes(self._home / "kubernetes", self.aws.cluster_endpoints, self.aws.nodes)
            # The CLI and the program take longer to start.
            threading.Thread(target=self.aws.warm_up, daemon=True).start()
            servers = [serve(self.aws, self._on_call), serve(self.kubernetes, self._on_call)]
            for server in servers:
                self._stack.callback(server.stop)
            self._ports = {server.package: server.port for server in servers} | {"eks": self._start_eks()}
            started.pop_all()
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
        *,
        secrets: Mapping[str, str] | None = None,
    ) -> Run:
        """Previews ``program``'s stack with the pack on, whose own stack file ``config`` and ``secrets`` override.

        Raises:
            UsageError: there is no such program, or its stack file or a ``config`` key cannot be read.
        """
        return self._run(
            ["preview", *_pack(policy_config)], program, stack, config, secrets, self._stands_on(program, stack)
        )

    def up(
        self,
        program: Path,
        stack: str,
        config: Mapping[str, str] | None = None,
        policy_config: Path | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        preview_first: bool = True,
    ) -> Run:
        """Makes the stack what the program says. Its preview comes first, and a policy that blocks there blocks it.

        ``preview_first=False`` leaves that out, which halves the time where something else is at stake.

        Raises:
            UsageError: as for a preview, or the stack is locked.
        """
        skipped = () if preview_first else ("--skip-preview",)
        wanted = Standing.REAL if self._real else Standing.ECHO
        found = self._stands_on(program, stack)
        if found not in (None, wanted):
            raise UsageError(
                f"stack {stack} stands on {found} Kubernetes and cannot move to {wanted}: destroy it first, or write --kubernetes {found}"
            )
        self._workspace.note(program, stack, wanted)
        return self._change(["up", "--yes", *skipped, *_pack(policy_config)], program, stack, config, secrets)

    def refresh(self, program: Path, stack: str, config: Mapping[str, str] | None = None) -> Run:
        """Reads every resource of the stack anew and keeps what was found in its state.

        A create that a killed CLI had begun is struck from the state, whatever became of it: see :meth:`orphans`.

        Raises:
            UsageError: as for ``up``.
        """
        return self._change(["refresh", "--yes", "--skip-preview", "--clear-pending-creates"], program, stack, config)

    def destroy(self, program: Path, stack: str, config: Mapping[str, str] | None = None) -> Run:
        """Deletes every resource of the stack.

        Raises:
            UsageError: as for ``up``.
        """
        run = self._change(["destroy", "--yes", "--skip-preview"], program, stack, config)
        if run.exit_code == 0:
            self._workspace.note(program, stack, None)
        return run

    def inventory(self) -> list[Item]:
        """Everything that exists, whoever made it, and nothing that AWS itself put there before any stack."""
        found = [*self.aws.inventory(), *self.kubernetes.inventory()]
        for name in self.clusters.names():
            self.clusters.resume(name)
            found += objects.inventory(self.clusters.api(name), name)
        return found

    def export(self, program: Path, stack: str) -> dict[str, Any]:
        """The stack's state as ``pulumi stack export`` gives it; an empty one where the stack was never deployed.

        Raises:
            UsageError: there is no such program, or its stack file cannot be read.
        """
        project = self._workspace.settle(program, stack)
        return json.loads(self._workspace.ask(["stack", "export", "--stack", stack], project))

    def import_state(self, program: Path, stack: str, state: Mapping[str, Any]) -> None:
        """Makes an exported state the stack's own, as ``pulumi stack import`` does.

        Raises:
            UsageError: the engine refuses it, or as for ``export``.
        """
        project = self._workspace.settle(program, stack)
        with tempfile.NamedTemporaryFile("w", dir=self._home, suffix=".json") as file:
            json.dump(state, file)
            file.flush()
            self._workspace.ask(["stack", "import", "--stack", stack, "--file", file.name], project)

    def orphans(self, program: Path, stack: str) -> list[Item]:
        """What exists with the stack's tags and is not in its state.

        Raises:
            UsageError: as for ``export``.
        """
        return orphans.find(self.inventory(), self.export(program, stack), project_name(program), stack)

    def delete_orphans(self, program: Path, stack: str, say: recovery.Say = lambda _: None) -> list[str]:
        """Deletes them; ``say`` gets a line for each. Returns why the rest could not be deleted.

        Raises:
            UsageError: as for ``export``.
        """
        return orphans.delete(self.orphans(program, stack), self._remove, say)

    def kill(self) -> None:
        """Ends the CLI that runs now by SIGKILL, as a machine that goes down would; its children stay."""
        running = self._running
        if running is not None:
            running.kill()

    def _change(
        self,
        command: Sequence[str],
        program: Path,
        stack: str,
        config: Mapping[str, str] | None,
        secrets: Mapping[str, str] | None = None,
    ) -> Run:
        self._recover()
        recovery.refuse_if_locked(self._workspace.state, project_name(program), stack)
        return self._run(command, program, stack, config, secrets, self._stands_on(program, stack))

    def _stands_on(self, program: Path, stack: str) -> Standing | None:
        return self._workspace.noted(program, stack)

    @contextmanager
    def _kubernetes_for(self, standing: Standing | None) -> Iterator[None]:
        """Has the engine find the Kubernetes provider that a stack needs: the stand-in, or Pulumi's own plugin."""
        ports, real = dict(self._ports), standing is Standing.REAL
        with ExitStack() as open_:
            if real:
                if self._real is None:
                    raise UsageError("this stack stands on a real Kubernetes, which was not asked for")
                del ports["kubernetes"]
                tools = self._real()
                web = open_.enter_context(ChartWeb(tools.ray_crds))
                self._workspace.install_plugin(tools, web.environment)
                self.clusters.plan(self._faults.hand_over())
                for name in self.clusters.names():
                    self.clusters.resume(name)
            self.clusters.makes = real
            self.on_real_kubernetes = real
            self._workspace.providers = ",".join(f"{package}:{port}" for package, port in ports.items())
            yield
            if real and (met := self.clusters.met()) is not None:
                self._faults.take_back(met)

    def _run(
        self,
        command: Sequence[str],
        program: Path,
        stack: str,
        config: Mapping[str, str] | None,
        secrets: Mapping[str, str] | None,
        standing: Standing | None,
    ) -> Run:
        with (
            self._one_command,
            self._kubernetes_for(standing),
            tempfile.TemporaryDirectory(dir=self._home) as folder,
        ):
            settings, log = Path(folder, "config.yaml"), Path(folder, "events")
            self._workspace.write_settings(settings, program, stack, config or {}, secrets or {})
            self.aws.start_run()
            arguments = [
                *command,
                *("--stack", stack, "--config-file", str(settings)),
                *("--event-log", str(log), "--non-interactive", "--color", "never", "--suppress-progress"),
            ]
            with self._workspace.start(arguments, program) as process:
                self._running = process
                try:
                    output = self._output(process)
                finally:
                    self._running = None
            # A killed CLI leaves half a line.
            lines = log.read_text().splitlines() if log.exists() else []
            events = [json.loads(line) for line in lines if line.endswith("}")]
            return Run(process.returncode, output, events)

    def _output(self, process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            lines.extend(process.stdout)
        except KeyboardInterrupt:
            # The engine was interrupted too. It waits for what is in flight, and that needs the stand-ins.
            self._say("Interrupted: waiting for what is in flight. Once more ends it at once.")
            lines.extend(process.stdout)
        process.wait()
        return "".join(lines)

    def _remove(self, item: Item) -> None:
        if not item.made_by.startswith("kubernetes:"):
            self.aws.remove(item)
        elif item.parent_id in self.clusters.names():
            objects.remove(self.clusters.api(item.parent_id), item)
        else:
            self.kubernetes.remove(item)

    def _recover(self) -> None:
        recovery.recover(self._home, self._workspace.state, self._say)

    def _start_eks(self) -> int:
        process = subprocess.Popen(
            [sys.executable, "-m", "sandbox.eks"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for the engine, which still needs this one.
            start_new_session=True,
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


def _pack(policy_config: Path | None) -> list[str]:
    chosen = [] if policy_config is None else ["--policy-pack-config", str(policy_config)]
    return ["--policy-pack", str(PACK), *chosen]
