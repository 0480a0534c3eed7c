"""``python -m sandbox preview --stack NAME``: the real engine, the policy pack and no AWS account."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from sandbox import cli, report
from sandbox.engine import CHECKOUT, PACK, Sandbox, UsageError

HOME = CHECKOUT / ".sandbox"


def main(arguments: Sequence[str]) -> int:
    """Runs one command and returns the engine's exit code; 2 when the command itself cannot be run."""
    options = _parser().parse_args(arguments)
    try:
        return _preview(options)
    except (UsageError, cli.CliError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2


def _preview(options: argparse.Namespace) -> int:
    HOME.mkdir(exist_ok=True)
    found = cli.find(_say)
    config = dict(_pair(text) for text in options.config)
    program = options.program.resolve()
    _say(f"Previewing stack {options.stack} of {options.program} ({found.origin}) ...")
    with Sandbox(found, HOME) as sandbox:
        run = sandbox.preview(program, options.stack, config, options.policy_config)
        simulated = _simulated(sandbox)
    for part in (report.resource_tree(run.events), report.engine_words(run.output), simulated):
        if part:
            print(part, end="\n\n")
    return run.exit_code


def _simulated(sandbox: Sandbox) -> str:
    parts = [
        f"AWS (pulumi-aws {version('pulumi-aws')} inputs, moto {version('moto')} data)",
        f"pulumi-eks {version('pulumi-eks')}'s cluster component",
        "Kubernetes and KubeRay (schemas and rules, nothing runs)",
    ]
    said = f"Simulated: {', '.join(parts)}. Real: the Pulumi engine and the policy pack in {PACK.name}/."
    remarks = "; ".join(sandbox.kubernetes.remarks)
    return f"{said} Of Kubernetes, {remarks}." if remarks else said


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not (key and sign):
        raise UsageError(f"--config {text}: write KEY=VALUE, for instance aws:region=us-east-1")
    return key, value


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    preview = commands.add_parser("preview", help="plan a stack and judge it, as `pulumi preview --policy-pack` does")
    preview.add_argument("--stack", required=True, help="the stack's name; its Pulumi.NAME.yaml is read, never written")
    preview.add_argument(
        "--program", type=Path, default=Path(), metavar="DIR", help="a Pulumi program (default: this project)"
    )
    preview.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="one more configuration value; repeatable"
    )
    preview.add_argument(
        "--policy-config", type=Path, metavar="FILE", help="configuration of the policy pack, as the engine takes it"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
