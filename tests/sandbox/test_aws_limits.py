"""Quotas and capacity that a test sets: what EC2 says to a node group that exceeds them, and that they are given back."""

from typing import Any

import pytest

from sandbox.aws import seeds
from sandbox.aws.limits import Limits, quota_of
from sandbox.standin import InitFailed
from tests.sandbox.aws_stack import NODES, TAGS, TEMPLATE, Stack

GPU_QUOTA = "L-DB2E81BA"
SPOT_QUOTA = "L-3819A6DF"


def failure(stack: Stack, name: str, inputs: dict[str, Any]) -> str:
    with pytest.raises(InitFailed) as failed:
        stack.make(NODES, name, inputs)
    return failed.value.reasons[0]


@pytest.mark.parametrize(
    ("instance_type", "market", "code"),
    [
        ("g6.8xlarge", "On-Demand", GPU_QUOTA),
        ("g6.8xlarge", "Spot", SPOT_QUOTA),
        ("gr6.8xlarge", "On-Demand", GPU_QUOTA),
        ("vt1.3xlarge", "On-Demand", GPU_QUOTA),
        ("p5.48xlarge", "On-Demand", "L-417A185B"),
        ("m7i.xlarge", "On-Demand", "L-1216C47A"),
        ("m7i.xlarge", "Spot", ""),
        ("trn1.32xlarge", "On-Demand", ""),
    ],
)
def test_each_type_counts_against_its_quota(instance_type: str, market: str, code: str) -> None:
    assert quota_of(instance_type, market) == code


def test_what_runs_counts_and_is_given_back(whole: Stack) -> None:
    whole.aws.cloud.limits = Limits(vcpus={GPU_QUOTA: 3 * 32})
    more = {**whole.node_inputs(), "nodeGroupName": "more"}

    assert "current vCPU limit of 96 allows" in failure(whole, "more", more)
    whole.delete("more")
    whole.delete("gpu")
    whole.make(NODES, "again", more)


def test_spot_nodes_have_a_quota_and_words_of_their_own(whole: Stack) -> None:
    whole.aws.cloud.limits = Limits(vcpus={GPU_QUOTA: 64, SPOT_QUOTA: 32})
    spot = {**whole.node_inputs(), "nodeGroupName": "spot", "capacityType": "SPOT"}

    assert "Could not launch Spot Instances. MaxSpotInstanceCountExceeded" in failure(whole, "spot", spot)
    one = {"minSize": 1, "desiredSize": 1, "maxSize": 1}
    whole.make(NODES, "one", {**spot, "nodeGroupName": "one", "scalingConfig": one})


def test_a_zone_runs_out_of_one_type(whole: Stack) -> None:
    whole.aws.cloud.limits = Limits(capacity={("us-east-1a", "g6.8xlarge"): 3})
    more = {**whole.node_inputs(), "nodeGroupName": "more"}
    elsewhere = {**more, "nodeGroupName": "elsewhere", "subnetIds": [whole.id("b")]}

    assert "InsufficientInstanceCapacity" in failure(whole, "more", more)
    whole.make(NODES, "elsewhere", elsewhere)
    whole.delete("gpu")
    whole.make(NODES, "again", {**more, "nodeGroupName": "again"})


def test_a_reservation_has_capacity_of_its_own_and_counts_against_the_quota(whole: Stack) -> None:
    (reservation,) = seeds.RESERVATIONS.values()
    target = {"capacityReservationTarget": {"capacityReservationId": reservation.id}}
    template = whole.make(TEMPLATE, "targeted", {"capacityReservationSpecification": target, "tags": TAGS})
    inputs = {
        **whole.node_inputs(),
        "nodeGroupName": "reserved",
        "instanceTypes": [reservation.instance_type],
        "launchTemplate": {"id": template, "version": "1"},
    }
    full = Limits(capacity={(reservation.zone, reservation.instance_type): 0})

    whole.aws.cloud.limits = Limits(vcpus={GPU_QUOTA: 64}, capacity=full.capacity)
    assert "current vCPU limit of 64 allows" in failure(whole, "reserved", inputs)
    whole.aws.cloud.limits = full
    whole.make(NODES, "again", {**inputs, "nodeGroupName": "again"})
