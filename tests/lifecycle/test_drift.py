"""What somebody changes behind the program's back, and a state that moves to another backend."""

import shutil
from pathlib import Path

import pytest

from sandbox.engine import Sandbox
from tests.lifecycle.conftest import HomeOf, SandboxIn
from tests.lifecycle.runs import CHECKOUT, EFA_RULES, GPU_NODES, Steps

pytestmark = pytest.mark.xdist_group("drift")

REGION = "us-east-1"
EGRESS = EFA_RULES[1]


def by_hand(sandbox: Sandbox) -> None:
    """Takes a rule of the EFA group away and makes the GPU group smaller, as in the console."""
    (rule,) = [item for item in sandbox.inventory() if item.made_by == EGRESS[0]]
    sandbox.aws.remove(rule)
    (group,) = [item for item in sandbox.inventory() if item.made_by == GPU_NODES[0] and "gpu" in item.name]
    cluster, _, name = group.id.partition(":")
    sizes = {"minSize": 1, "maxSize": 2, "desiredSize": 1}
    sandbox.aws.cloud.call(
        "eks", "update_nodegroup_config", REGION, clusterName=cluster, nodegroupName=name, scalingConfig=sizes
    )


def test_a_refresh_shows_what_was_changed_by_hand_and_an_up_puts_it_right(
    sandbox_in: SandboxIn, home_of: HomeOf
) -> None:
    with sandbox_in(home_of("dev")) as sandbox:
        by_hand(sandbox)
        found = Steps(sandbox.refresh(CHECKOUT, "dev"))
        assert found.exit_code == 0, found.output
        assert found.changes == {EGRESS: "delete", GPU_NODES: "update"}

        put_right = Steps(sandbox.up(CHECKOUT, "dev", preview_first=False))
        assert put_right.exit_code == 0, put_right.output
        assert put_right.changes == {EGRESS: "create", GPU_NODES: "update"}
        assert Steps(sandbox.refresh(CHECKOUT, "dev")).changes == {}


def test_a_state_that_was_exported_and_imported_elsewhere_is_the_same_stack(
    sandbox_in: SandboxIn, home_of: HomeOf, tmp_path: Path
) -> None:
    old, new = home_of("dev"), tmp_path / "elsewhere"
    with sandbox_in(old) as sandbox:
        state = sandbox.export(CHECKOUT, "dev")
    # The same account and cluster, seen from another backend that knows nothing yet.
    for name in ("aws", "kubernetes"):
        shutil.copytree(old / name, new / name)

    with sandbox_in(new) as sandbox:
        assert sandbox.export(CHECKOUT, "dev")["deployment"].get("resources") in (None, [])
        sandbox.import_state(CHECKOUT, "dev", state)
        again = Steps(sandbox.up(CHECKOUT, "dev", preview_first=False))
        assert again.exit_code == 0, again.output
        assert again.changes == {}
        assert Steps(sandbox.destroy(CHECKOUT, "dev")).exit_code == 0
        assert sandbox.inventory() == []
