"""Each fault of AWS: what the user reads, what is left, and that a second run ends where a clean one ends."""

from pathlib import Path

import pytest

from sandbox.engine import Sandbox
from sandbox.faults import IN_CLUSTERS, FaultKind
from tests.lifecycle.conftest import HomeOf, SandboxIn
from tests.lifecycle.faults import FAULTS, Fault
from tests.lifecycle.runs import CHECKOUT, GPU_NODES, Steps, shape

OF_UP = [fault for fault in FAULTS if fault.command == "up"]
OF_DESTROY = [fault for fault in FAULTS if fault.command == "destroy"]


def test_every_kind_of_fault_of_aws_has_a_row() -> None:
    assert sorted(fault.kind for fault in FAULTS) == sorted(set(FaultKind) - IN_CLUSTERS)


def test_every_row_says_what_to_do_next() -> None:
    assert [fault.option for fault in FAULTS if not ("`" in fault.next_step or "](#" in fault.next_step)] == []


def statuses(sandbox: Sandbox) -> set[str]:
    """What EKS says of the node groups."""
    return {record.facts["status"] for record in sandbox.aws.cloud.account.records(GPU_NODES[0])}


@pytest.mark.parametrize("fault", OF_UP, ids=lambda fault: fault.option)
def test_after_a_fault_a_second_up_ends_where_a_clean_one_ends(
    fault: Fault, sandbox_in: SandboxIn, home_of: HomeOf, tmp_path: Path
) -> None:
    home = tmp_path / "faulty"
    with sandbox_in(home, [fault.option]) as sandbox:
        met = Steps(sandbox.up(CHECKOUT, fault.stack, preview_first=False))
        left = sandbox.inventory()
    assert met.exit_code != 0
    assert [part for part in fault.says if part not in met.words] == [], met.output
    assert "Traceback" not in met.output
    assert "the sandbox itself failed" not in met.output

    with sandbox_in(home) as sandbox:
        again = Steps(sandbox.up(CHECKOUT, fault.stack, preview_first=False))
        assert again.exit_code == 0, again.output
        ended = shape(sandbox.inventory())
        assert statuses(sandbox) == {"ACTIVE"}
    with sandbox_in(home_of(fault.stack)) as sandbox:
        clean = sandbox.inventory()
    assert ended == shape(clean)
    # What was made before the fault stayed.
    assert 0 < len(left) < len(clean)


@pytest.mark.parametrize("fault", OF_DESTROY, ids=lambda fault: fault.option)
def test_after_a_fault_a_second_destroy_leaves_nothing(fault: Fault, sandbox_in: SandboxIn, home_of: HomeOf) -> None:
    home = home_of(fault.stack)
    with sandbox_in(home, [fault.option]) as sandbox:
        met = Steps(sandbox.destroy(CHECKOUT, fault.stack))
        left = sandbox.inventory()
    assert met.exit_code != 0
    assert [part for part in fault.says if part not in met.words] == [], met.output
    assert left

    with sandbox_in(home) as sandbox:
        again = Steps(sandbox.destroy(CHECKOUT, fault.stack))
        assert again.exit_code == 0, again.output
        assert sandbox.inventory() == []


def test_a_group_that_failed_is_made_anew_although_the_provider_alone_would_keep_it(
    sandbox_in: SandboxIn, tmp_path: Path
) -> None:
    with sandbox_in(tmp_path, ["insufficient-capacity"]) as sandbox:
        assert sandbox.up(CHECKOUT, "dev", preview_first=False).exit_code != 0
        assert statuses(sandbox) == {"ACTIVE", "CREATE_FAILED"}
        planned = Steps(sandbox.preview(CHECKOUT, "dev"), previewed=True)
    assert planned.exit_code == 0, planned.output
    # pulumi-terraform-bridge does not taint (pkg/tfbridge/provider.go, initializationError): without the component's
    # replace_on_changes the next `up` would update nothing, take the error off and go green.
    assert "replace" in {step.op for step in planned.steps if step.key == GPU_NODES}
