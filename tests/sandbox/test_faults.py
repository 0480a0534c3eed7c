"""What ``--fault`` takes, and which call a strike meets."""

import pytest

from sandbox.faults import FaultKind, FaultPlan

CAPACITY, THROTTLING = FaultKind.INSUFFICIENT_CAPACITY, FaultKind.THROTTLING


def taken(plan: FaultPlan, resource: str, by_default: tuple[FaultKind, ...] = (CAPACITY,)) -> FaultKind | None:
    return plan.take({CAPACITY, THROTTLING}, resource, by_default=by_default)


def test_a_fault_strikes_once_and_then_no_more() -> None:
    plan = FaultPlan.parse(["insufficient-capacity"])

    assert taken(plan, "gpu") is CAPACITY
    assert taken(plan, "gpu") is None


def test_a_number_says_how_often() -> None:
    plan = FaultPlan.parse(["throttling@gpu:2"])

    assert [taken(plan, "gpu") for _ in range(3)] == [THROTTLING, THROTTLING, None]


def test_a_named_resource_is_the_only_one_struck() -> None:
    plan = FaultPlan.parse(["throttling@ray-llm-*-nodes"])

    assert taken(plan, "ray-llm-cluster-system") is None
    assert taken(plan, "ray-llm-gpu-nodes", by_default=()) is THROTTLING


def test_a_call_that_cannot_meet_the_fault_is_passed_by() -> None:
    plan = FaultPlan.parse(["access-denied"])

    assert taken(plan, "gpu") is None
    assert plan.unmet == ["access-denied"]


def test_a_strike_that_met_nothing_is_told() -> None:
    plan = FaultPlan.parse(["throttling@typo", "insufficient-capacity"])
    taken(plan, "gpu")

    assert plan.unmet == ["throttling@typo"]


def test_a_cluster_gets_the_kinds_that_are_its_own_and_tells_what_it_met() -> None:
    plan = FaultPlan.parse(["throttling", "worker-never-ready@decode:2", "operator-missing"])

    assert plan.hand_over() == [
        {"kind": "worker-never-ready", "resource": "decode", "times": 2},
        {"kind": "operator-missing", "resource": "", "times": 1},
    ]
    assert plan.hand_over() == []
    assert plan.unmet == ["throttling"]

    plan.take_back([{"kind": "worker-never-ready", "resource": "decode"}] * 2)
    assert plan.unmet == ["throttling", "operator-missing"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "meteor",
            "--fault meteor: 'meteor' is no fault; the kinds are throttling, insufficient-capacity, quota-exceeded, "
            "access-denied, reservation-expired, node-creation-failure, dependency-violation, time-out, "
            "api-server-restart, worker-never-ready, operator-missing, namespace-terminating, application-fails",
        ),
        (
            "throttling@",
            "--fault throttling@: name a resource after @, for instance throttling@ray-llm-gpu-nodes",
        ),
        (
            "throttling@vpc:often",
            "--fault throttling@vpc:often: write how many times after the colon, for instance throttling@vpc:2",
        ),
        (
            "throttling:0",
            "--fault throttling:0: write how many times after the colon, for instance throttling:2",
        ),
    ],
)
def test_a_text_of_another_form_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match="--fault") as refusal:
        FaultPlan.parse([text])

    assert str(refusal.value) == expected
