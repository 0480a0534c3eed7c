"""Each row of the table of changes, against the engine's own plan for a stack that exists."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandbox.engine import Sandbox
from tests.lifecycle.changes import CHANGES, Change
from tests.lifecycle.conftest import HomeOf, SandboxIn
from tests.lifecycle.programs import slow_down
from tests.lifecycle.runs import CHECKOUT, GPU_NODES, SERVICE, Steps

pytestmark = pytest.mark.xdist_group("changes")


@pytest.fixture(scope="module")
def living(sandbox_in: SandboxIn, made: HomeOf, tmp_path_factory: pytest.TempPathFactory):
    """A sandbox in which the dev stack lives; previews leave it as it is."""
    home = Path(shutil.copytree(made("dev"), tmp_path_factory.mktemp("changes") / "home"))
    with ExitStack() as stack:
        yield stack.enter_context(sandbox_in(home))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.key)
def test_a_change_does_what_the_table_says_and_nothing_else(change: Change, living: Sandbox) -> None:
    plan = Steps(living.preview(CHECKOUT, "dev", change.after), previewed=True)

    assert plan.exit_code == 0, plan.output
    assert dict(plan.changes) == dict(change.does)


@pytest.mark.parametrize(
    ("key", "replaced"),
    [("gpuNodes.zone", GPU_NODES), ("gpuNodes.instanceType", GPU_NODES), ("service.image", SERVICE)],
)
def test_what_needs_the_gpus_of_the_old_one_comes_after_it(
    key: str, replaced: tuple[str, str], sandbox_in: SandboxIn, home_of: HomeOf
) -> None:
    (change,) = [one for one in CHANGES if one.key == key]
    with sandbox_in(home_of("dev")) as sandbox:
        done = Steps(sandbox.up(CHECKOUT, "dev", change.after))

        assert done.exit_code == 0, done.output
        assert done.places("delete-replaced", [replaced])[1] < done.places("create-replacement", [replaced])[0]


def test_another_address_range_is_refused_half_way_and_a_destroy_clears_up(
    sandbox_in: SandboxIn, home_of: HomeOf
) -> None:
    (change,) = [one for one in CHANGES if one.key == "network.cidr"]
    with sandbox_in(home_of("dev")) as sandbox:
        # The provider goes on asking for 20 minutes (internal/service/ec2/vpc_internet_gateway.go, detachInternetGateway).
        slow_down(sandbox, "update", {"ray-llm-network-internet": 15.0})
        refused = Steps(sandbox.up(CHECKOUT, "dev", change.after, preview_first=False))
        assert refused.exit_code != 0
        assert "operation error EKS: UpdateClusterConfig" in refused.words, refused.output
        assert "DetachInternetGateway" in refused.words, refused.output
        assert "has some mapped public address(es)" in refused.words

        destroyed = Steps(sandbox.destroy(CHECKOUT, "dev", change.after))
        assert destroyed.exit_code == 0, destroyed.output
        assert sandbox.inventory() == []
