"""This project with a dependency taken out, as a program of its own, and stand-ins that take their time."""

import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from sandbox.engine import Sandbox
from tests.lifecycle.runs import CHECKOUT

_PROGRAM = """import runpy

import pulumi

OF = {of!r}
ON = {on!r}


def without(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    if args.name not in OF or not args.opts.depends_on:
        return None
    kept = [one for one in args.opts.depends_on if not one.pulumi_resource_name.startswith(tuple(ON))]
    print(f"taken out of {{args.name}}: {{len(args.opts.depends_on) - len(kept)}}")
    args.opts.depends_on = kept
    return pulumi.ResourceTransformationResult(args.props, args.opts)


pulumi.runtime.register_stack_transformation(without)
runpy.run_path({main!r})
"""


def without_dependency(folder: Path, of: Collection[str], on: Collection[str]) -> Path:
    """A program as this one, in which the resources ``of`` do not depend explicitly on those whose names start with ``on``.

    What they get as an input they still wait for: only the edges that somebody has to write are gone.
    """
    folder.mkdir()
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "components", "policies"):
        (folder / name).symlink_to(CHECKOUT / name)
    text = _PROGRAM.format(of=[*of], on=[*on], main=str(CHECKOUT / "__main__.py"))
    (folder / "__main__.py").write_text(text)
    return folder


def slow_down(sandbox: Sandbox, operation: str, seconds: Mapping[str, float]) -> None:
    """Makes ``create`` or ``delete`` of the resources whose names start so take that long before anything happens."""
    for stand_in in (sandbox.aws, sandbox.kubernetes):
        _slow(stand_in, operation, seconds)


def _slow(stand_in: Any, operation: str, seconds: Mapping[str, float]) -> None:
    at_once = getattr(stand_in, operation)

    def slowly(ref: Any, *args: Any, **kwargs: Any) -> Any:
        preview = operation == "create" and (kwargs.get("preview") or (len(args) > 1 and args[1]))
        if not preview:
            time.sleep(max((value for name, value in seconds.items() if ref.name.startswith(name)), default=0.0))
        return at_once(ref, *args, **kwargs)

    setattr(stand_in, operation, slowly)
