"""A node group and its launch template together: what EKS or EC2 refuses of the pair, in a preview and in an update."""

from typing import Any

import pytest

from sandbox.aws import Aws
from sandbox.standin import UNKNOWN
from tests.sandbox.aws_stack import NODES, REGION, TEMPLATE, Stack, ref

TYPE = "p5.48xlarge"
RESERVED = {"capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}}
MARKET = {"marketType": "capacity-block"}
TARGET = "launchTemplate: capacityReservationSpecification.capacityReservationTarget.capacityReservationId"


@pytest.fixture(scope="module")
def cloudy() -> Aws:
    stand_in = Aws()
    stand_in.configure({"region": REGION})
    return stand_in


@pytest.fixture
def provider(cloudy: Aws) -> Aws:
    cloudy.start_run()
    return cloudy


def plan(provider: Aws, name: str, /, **template: Any) -> None:
    """Checks a launch template, as a preview does."""
    assert provider.check(ref(TEMPLATE, name), template, None, b"seed").failures == []


def refusals(provider: Aws, template: Any = None, **group: Any) -> list[tuple[str, str]]:
    """What is refused of a node group; its template is one that has no id yet, unless another is given."""
    inputs = {
        "clusterName": UNKNOWN,
        "launchTemplate": template or {"id": UNKNOWN, "version": UNKNOWN},
        "nodeRoleArn": UNKNOWN,
        "scalingConfig": {"minSize": 1, "desiredSize": 1, "maxSize": 1},
        "subnetIds": [UNKNOWN],
        **group,
    }
    return [(one.property, one.reason) for one in provider.check(ref(NODES, "gpu"), inputs, None, b"seed").failures]


def efa(*cards: int) -> list[dict[str, Any]]:
    """EFA interfaces on these network cards."""
    return [{"deviceIndex": min(card, 1), "networkCardIndex": card, "interfaceType": "efa"} for card in cards]


@pytest.mark.parametrize(
    ("template", "group"),
    [
        ({"networkInterfaces": efa(0)}, {"instanceTypes": ["g6.8xlarge"]}),
        ({"instanceType": "g6.8xlarge", "networkInterfaces": efa(0)}, {}),
        (
            {"instanceType": TYPE, "instanceMarketOptions": MARKET, "capacityReservationSpecification": RESERVED},
            {"capacityType": "CAPACITY_BLOCK"},
        ),
        ({"instanceMarketOptions": UNKNOWN, "networkInterfaces": UNKNOWN}, {"instanceTypes": UNKNOWN}),
    ],
)
def test_a_pair_that_fits_passes(provider: Aws, template: dict[str, Any], group: dict[str, Any]) -> None:
    plan(provider, "t", **template)

    assert refusals(provider, **group) == []


@pytest.mark.parametrize(
    ("template", "group", "expected"),
    [
        ({"instanceType": "g6.8xlarge"}, {"instanceTypes": ["g6.8xlarge"]},
         ("instanceTypes",
          "cannot stand beside the launchTemplate's instanceType (g6.8xlarge): leave out one of the two")),
        ({"networkInterfaces": [{"deviceIndex": 0, "subnetId": UNKNOWN}]}, {},
         ("launchTemplate: networkInterfaces[0].subnetId",
          "belongs to the node group: leave it out of the launch template, subnetIds place the nodes")),
        ({"networkInterfaces": efa(0)}, {"instanceTypes": ["m7i.xlarge"]},
         ("launchTemplate: networkInterfaces[0].interfaceType",
          "is EFA interface number 1, but m7i.xlarge takes 0")),
        ({"networkInterfaces": [*efa(0), {"deviceIndex": 1, "networkCardIndex": 1}]}, {"instanceTypes": ["g6.8xlarge"]},
         ("launchTemplate: networkInterfaces[1].networkCardIndex",
          "is 1, but g6.8xlarge has 1 network card(s), counted from 0")),
        ({"instanceType": TYPE, "instanceMarketOptions": MARKET}, {"capacityType": "CAPACITY_BLOCK"},
         (TARGET, "must name the block's reservation for capacityType CAPACITY_BLOCK, and is not set")),
        ({"instanceType": TYPE, "capacityReservationSpecification": RESERVED}, {"capacityType": "CAPACITY_BLOCK"},
         ("launchTemplate: instanceMarketOptions.marketType",
          "must be capacity-block for capacityType CAPACITY_BLOCK, and is not set")),
        ({"instanceType": TYPE, "instanceMarketOptions": {"marketType": "spot"},
          "capacityReservationSpecification": RESERVED}, {"capacityType": "CAPACITY_BLOCK"},
         ("launchTemplate: instanceMarketOptions.marketType",
          "must be capacity-block for capacityType CAPACITY_BLOCK, not spot")),
        ({"instanceType": TYPE, "instanceMarketOptions": MARKET, "capacityReservationSpecification": RESERVED}, {},
         ("capacityType",
          "is ON_DEMAND, but the launchTemplate's marketType is capacity-block: set CAPACITY_BLOCK")),
    ],
)  # fmt: skip
def test_what_a_pair_cannot_say_is_refused_in_a_first_preview(
    provider: Aws, template: dict[str, Any], group: dict[str, Any], expected: tuple[str, str]
) -> None:
    plan(provider, "t", **template)

    assert refusals(provider, **group) == [expected]


def test_a_group_that_fits_one_of_the_planned_templates_is_left_to_the_update(provider: Aws) -> None:
    plan(provider, "typed", instanceType="g6.8xlarge")
    plan(provider, "plain", networkInterfaces=efa(0))

    assert refusals(provider, instanceTypes=["g6.8xlarge"]) == []


def test_a_template_referred_to_by_name_is_the_one_that_is_judged(provider: Aws) -> None:
    plan(provider, "typed", instanceType="g6.8xlarge", name="typed")
    plan(provider, "plain", networkInterfaces=efa(0), name="plain")

    (refused,) = refusals(provider, {"name": "typed", "version": "$Latest"}, instanceTypes=["g6.8xlarge"])

    assert refused[0] == "instanceTypes"
    assert refusals(provider, {"name": "plain", "version": "$Latest"}, instanceTypes=["g6.8xlarge"]) == []


def test_templates_of_an_earlier_run_or_another_region_are_no_candidates(provider: Aws) -> None:
    plan(provider, "typed", instanceType="g6.8xlarge", region="us-west-2")
    assert refusals(provider, instanceTypes=["g6.8xlarge"]) == []
    plan(provider, "typed", instanceType="g6.8xlarge")
    provider.start_run()

    assert refusals(provider, instanceTypes=["g6.8xlarge"]) == []


def test_a_template_that_exists_is_judged_by_its_version() -> None:
    stack = Stack()
    id = stack.make(TEMPLATE, "t", {"networkInterfaces": efa(0)})
    stack.update("t", instanceType="g6.8xlarge")

    assert refusals(stack.aws, {"id": id, "version": "1"}, instanceTypes=["g6.8xlarge"]) == []
    (refused,) = refusals(stack.aws, {"id": id, "version": "2"}, instanceTypes=["g6.8xlarge"])
    assert refused[0] == "instanceTypes"


def test_a_version_that_is_still_to_be_made_is_judged_by_the_planned_template() -> None:
    stack = Stack()
    id = stack.make(TEMPLATE, "t", {"networkInterfaces": efa(0)})
    old = stack.made["t"][2]
    stack.aws.start_run()
    stack.aws.check(ref(TEMPLATE, "t"), {"instanceType": "g6.8xlarge"}, old, b"seed")

    (refused,) = refusals(stack.aws, {"id": id, "version": UNKNOWN}, instanceTypes=["g6.8xlarge"])

    assert refused[0] == "instanceTypes"
