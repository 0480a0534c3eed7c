"""This project with less patience, since a test cannot wait as long as a user."""

from collections.abc import Mapping
from pathlib import Path

from tests.lifecycle.runs import CHECKOUT

_PROGRAM = """import runpy

import pulumi

LIMITS = {limits!r}


def impatient(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    if args.name not in LIMITS:
        return None
    limit = LIMITS[args.name]
    args.opts.custom_timeouts = pulumi.CustomTimeouts(create=limit, update=limit, delete=limit)
    return pulumi.ResourceTransformationResult(args.props, args.opts)


pulumi.runtime.register_stack_transformation(impatient)
runpy.run_path({main!r})
"""


def impatient(folder: Path, limits: Mapping[str, str]) -> Path:
    """A program as this one that waits at most so long for the resources of these names (``45s``)."""
    folder.mkdir()
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "components", "policies"):
        (folder / name).symlink_to(CHECKOUT / name)
    (folder / "__main__.py").write_text(_PROGRAM.format(limits=dict(limits), main=str(CHECKOUT / "__main__.py")))
    return folder
