"""How a run is shown, from events as the engine writes them."""

from typing import Any

from sandbox.report import engine_words, resource_tree


def _step(kind: str, name: str, op: str = "create", parent: str = "") -> dict[str, Any]:
    urn = f"urn:pulumi:dev::shop::{kind}::{name}"
    return {"resourcePreEvent": {"metadata": {"op": op, "urn": urn, "type": kind, "new": {"parent": parent}}}}


STACK = _step("pulumi:pulumi:Stack", "shop-dev")
STACK_URN = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"


def test_children_stand_under_their_parents() -> None:
    events = [STACK, _step("acme:index:Shop", "shop", parent=STACK_URN)]
    events.append(_step("aws:ec2/vpc:Vpc", "vpc", parent="urn:pulumi:dev::shop::acme:index:Shop::shop"))
    assert resource_tree(events).splitlines() == [
        "+ pulumi:pulumi:Stack shop-dev",
        "└── + acme:index:Shop shop",
        "    └── + aws:ec2/vpc:Vpc vpc",
    ]


def test_default_providers_and_second_steps_are_left_out() -> None:
    events = [STACK, _step("pulumi:providers:aws", "default"), STACK]
    assert resource_tree(events) == "+ pulumi:pulumi:Stack shop-dev"


def test_without_a_resource_there_is_no_tree() -> None:
    assert resource_tree([{"diagnosticEvent": {}}]) == ""


def test_the_engine_speaks_from_its_first_section_on() -> None:
    output = (
        "Previewing update (dev):\n +  aws:ec2:Vpc vpc create\nPolicies:\n    fine\n\nResources:\n    + 2 to create\n"
    )
    assert engine_words(output) == "Policies:\n    fine\n\nResources:\n    + 2 to create"


def test_an_early_failure_is_shown_whole() -> None:
    assert engine_words("something unforeseen\n") == "something unforeseen"
