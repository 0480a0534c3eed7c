"""``python -m sandbox preview|up|refresh|destroy|inventory|orphans``: the real engine, the policy pack and no AWS account."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from sandbox import cli, orphans, report
from sandbox.cluster import tools
from sandbox.cluster.clusters import Clusters
from sandbox.cluster.tools import Tools
from sandbox.engine import CHECKOUT, PACK, Run, Sandbox
from sandbox.faults import FaultKind, FaultPlan
from sandbox.stacks import UsageError, project_name
from sandbox.workspace import Standing

HOME = CHECKOUT / ".sandbox"

_DOING = {"preview": "Previewing", "up": "Updating", "refresh": "Refreshing", "destroy": "Destroying"}


def main(arguments: Sequence[str]) -> int:
    """Runs one command and returns the engine's exit code; 2 when the command itself cannot be run."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "stop":
            return _stop()
        if options.command == "inventory":
            return _inventory(options)
        return _orphans(options) if options.command == "orphans" else _engine(options)
    except (UsageError, cli.CliError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2


def _engine(options: argparse.Namespace) -> int:
    config, secrets, plan = _config_and_faults(options)
    program = _program(options)
    real = _real(options)
    if real is None and plan.in_clusters:
        raise UsageError(
            f"--fault {', '.join(plan.in_clusters)}: only a real Kubernetes meets that: leave out --kubernetes echo"
        )
    found = cli.find(_say)
    _say(f"{_DOING[options.command]} stack {options.stack} of {options.program} ({found.origin}) ...")
    shared = options.command == "preview"
    with Sandbox(found, HOME, faults=plan, say=_say, shared=shared, real=real) as sandbox:
        run = _command(sandbox, options, program, config, secrets)
        simulated = _simulated(sandbox)
    tree = report.resource_tree(run.events, only_changes=options.command != "preview")
    for part in (tree, report.engine_words(run.output), simulated):
        if part:
            print(part, end="\n\n")
    if plan.unmet:
        _say(f"No call met the fault {', '.join(plan.unmet)}.")
    return run.exit_code


def _command(
    sandbox: Sandbox, options: argparse.Namespace, program: Path, config: dict[str, str], secrets: dict[str, str]
) -> Run:
    if options.command == "preview":
        return sandbox.preview(program, options.stack, config, options.policy_config, secrets=secrets)
    if options.command == "up":
        return sandbox.up(program, options.stack, config, options.policy_config, secrets=secrets)
    act = sandbox.refresh if options.command == "refresh" else sandbox.destroy
    return act(program, options.stack, config)


def _real(options: argparse.Namespace) -> Callable[[], Tools] | None:
    echoed = getattr(options, "kubernetes", Standing.REAL) == Standing.ECHO
    return None if echoed else lambda: tools.find(_say)


def _inventory(options: argparse.Namespace) -> int:
    project = project_name(_program(options)) if options.stack else ""
    with Sandbox(cli.find(_say), HOME, say=_say, shared=True) as sandbox:
        items = sandbox.inventory()
    if options.stack is None:
        print(report.inventory(items))
        return 0
    # What no tags lead to is shown for every stack: it would cost money and be nobody's.
    shown = [*orphans.of_stack(items, project, options.stack), *orphans.of_nobody(items)]
    print(report.inventory(shown, others=len(items) - len(shown)))
    return 0


def _stop() -> int:
    clusters = Clusters(HOME)
    clusters.pause()
    names = ", ".join(clusters.names())
    print(f"Stopped: {names}; the next command starts them again." if names else "No control plane exists.")
    return 0


def _orphans(options: argparse.Namespace) -> int:
    program = _program(options)
    with Sandbox(cli.find(_say), HOME, say=_say) as sandbox:
        found = sandbox.orphans(program, options.stack)
        if not options.delete:
            print(report.orphans(found, options.stack))
            return 0
        refusals = sandbox.delete_orphans(program, options.stack, print)
    print(f"{len(found) - len(refusals)} of {len(found)} orphans deleted")
    for refusal in refusals:
        print(f"error: {refusal}", file=sys.stderr)
    return 1 if refusals else 0


def _program(options: argparse.Namespace) -> Path:
    program = options.program.resolve()
    # Said before anything is started for it.
    project_name(program)
    return program


def _config_and_faults(options: argparse.Namespace) -> tuple[dict[str, str], dict[str, str], FaultPlan]:
    """The pairs of ``--config`` and ``--secret-config``, and the plan of ``--fault``; all that is wrong is said at once."""
    faults: list[str] = []
    config = _pairs("--config", options.config, "aws:region=us-east-1", faults, shown=True)
    sealed: list[str] = getattr(options, "secret_config", [])
    secrets = _pairs("--secret-config", sealed, "ray-llm-eks:model.huggingFaceToken=hf_...", faults, shown=False)
    faults += [
        f"--secret-config {key}: --config sets it too; leave out one of the two" for key in secrets if key in config
    ]
    plan = FaultPlan()
    texts: list[str] = getattr(options, "fault", [])
    for text in texts:
        try:
            FaultPlan.parse([text])
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        raise UsageError("\nerror: ".join(faults))
    return config, secrets, FaultPlan.parse(texts) if texts else plan


def _pairs(option: str, texts: Sequence[str], example: str, faults: list[str], *, shown: bool) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if key and sign:
            pairs[key] = value
        else:
            # What lacks its key may be the secret itself.
            faults.append(f"{option}{f' {text}' if shown else ''}: write KEY=VALUE, for instance {example}")
    return pairs


def _simulated(sandbox: Sandbox) -> str:
    parts = [
        f"AWS (pulumi-aws {version('pulumi-aws')} inputs, moto {version('moto')} data)",
        f"pulumi-eks {version('pulumi-eks')}'s cluster component",
    ]
    real = ["the Pulumi engine"]
    if sandbox.on_real_kubernetes:
        parts += [
            "machines and kubelets (KWOK)",
            "devices",
            "Ray behind its dashboard",
            "three Helm charts as recorded",
        ]
        real += [
            f"etcd, API server, controllers and scheduler {tools.KUBERNETES}",
            f"KubeRay's operator {tools.KUBERAY}",
            "Pulumi's Kubernetes plugin",
        ]
    else:
        parts.append("Kubernetes and KubeRay (schemas and rules, nothing runs)")
    said = f"Simulated: {', '.join(parts)}. Real: {', '.join(real)} and the policy pack in {PACK.name}/."
    remarks = "; ".join(sandbox.kubernetes.remarks)
    return f"{said} Of Kubernetes, {remarks}." if remarks else said


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("preview", "plan a stack and judge it, as `pulumi preview --policy-pack` does"),
        ("up", "make a stack what the program says; what the policies block in its preview is not begun"),
        ("refresh", "compare a stack's state with what exists, and keep what exists"),
        ("destroy", "delete everything that a stack has made"),
    ):
        command = _with_stack(commands.add_parser(name, help=text), required=True)
        command.add_argument(
            "--config",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="one more configuration value; repeatable",
        )
        if name in ("preview", "up"):
            command.add_argument(
                "--secret-config",
                action="append",
                default=[],
                metavar="KEY=VALUE",
                help="one more configuration value, kept as a secret and never shown; repeatable",
            )
            if name == "up":
                command.add_argument(
                    "--kubernetes",
                    choices=[*Standing],
                    default=Standing.REAL,
                    help="a real control plane on this machine (default), or objects that are judged and echoed",
                )
            command.add_argument(
                "--policy-config",
                type=Path,
                metavar="FILE",
                help="configuration of the policy pack, as the engine takes it",
            )
        if name != "preview":
            command.add_argument(
                "--fault",
                action="append",
                default=[],
                metavar="KIND[@RESOURCE][:TIMES]",
                help=f"a fault of AWS to meet, repeatable; KIND is one of {', '.join(FaultKind)}",
            )
    _with_stack(
        commands.add_parser("inventory", help="list what exists in the account and its clusters"), required=False
    )
    commands.add_parser("stop", help="stop the control planes now; idle ones stop by themselves")
    lost = _with_stack(
        commands.add_parser("orphans", help="list what a killed command made and no state knows"), required=True
    )
    lost.add_argument("--delete", action="store_true", help="delete it")
    return parser


def _with_stack(command: argparse.ArgumentParser, *, required: bool) -> argparse.ArgumentParser:
    command.add_argument(
        "--stack",
        required=required,
        metavar="NAME",
        help="the stack's name; its Pulumi.NAME.yaml is read, never written"
        if required
        else "only what belongs to this stack or to none",
    )
    command.add_argument(
        "--program", type=Path, default=Path(), metavar="DIR", help="a Pulumi program (default: this project)"
    )
    return command


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
