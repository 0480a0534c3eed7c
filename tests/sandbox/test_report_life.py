"""How changes, inventories and orphans are shown."""

from typing import Any

from sandbox.inventory import Item
from sandbox.report import engine_words, inventory, orphans, resource_tree


def _urn(name: str) -> str:
    return f"urn:pulumi:dev::shop::t:m:T::{name}"


def _step(name: str, op: str, parent: str = "") -> dict[str, Any]:
    metadata = {"op": op, "urn": _urn(name), "type": "t:m:T", "new": {"parent": _urn(parent) if parent else ""}}
    return {"resourcePreEvent": {"metadata": metadata}}


def _found(name: str, op: str) -> dict[str, Any]:
    return {"resOutputsEvent": {"metadata": {"op": op, "urn": _urn(name)}}}


def test_what_stays_is_left_out_but_for_the_parents_of_what_does_not() -> None:
    events = [_step("a", "same"), _step("b", "same", "a"), _step("c", "update", "b"), _step("d", "same", "a")]
    assert resource_tree(events, only_changes=True).splitlines() == [
        "  t:m:T a",
        "└──   t:m:T b",
        "    └── ~ t:m:T c",
    ]


def test_where_nothing_changes_there_is_no_tree() -> None:
    assert resource_tree([_step("a", "same"), _step("b", "refresh", "a")], only_changes=True) == ""


def test_a_replacement_is_shown_as_one_whichever_of_its_steps_comes_first() -> None:
    events = [_step("a", "delete-replaced"), _step("a", "replace"), _step("a", "create-replacement")]
    assert resource_tree(events) == "+- t:m:T a"


def test_a_refresh_shows_what_it_found() -> None:
    events = [_step("a", "refresh"), _step("b", "refresh"), _found("a", "update"), _found("b", "delete")]
    assert resource_tree(events, only_changes=True).splitlines() == ["~ t:m:T a", "- t:m:T b"]


def test_of_an_up_the_update_is_told_and_not_its_preview_too() -> None:
    output = (
        "Previewing update (dev):\n + a create\nResources:\n    + 1 to create\n\nUpdating (dev):\n + a created\n"
        "Resources:\n    + 1 created\n"
    )
    assert engine_words(output) == "Resources:\n    + 1 created"


ITEMS = [
    Item("iam:role", "node", "node"),
    Item("ec2:vpc", "vpc-1", "main"),
    Item("Pod", "x/a", "a", parent_id="llm", made_by="kubernetes:core/v1:Pod"),
]


def test_an_inventory_is_grouped_by_service_and_counted_in_its_last_line() -> None:
    assert inventory(ITEMS).split("\n\n") == [
        "ec2\nec2:vpc  vpc-1  main",
        "iam\niam:role  node",
        "kubernetes, cluster llm\nPod  x/a  a",
        "3 resources",
    ]


def test_an_empty_account_has_no_resources() -> None:
    assert inventory([]) == "0 resources"


def test_things_of_other_stacks_are_counted_apart() -> None:
    assert inventory([], others=2) == "Not shown: 2 of other stacks.\n\n0 resources"


def test_orphans_come_with_what_to_type_next() -> None:
    assert orphans(ITEMS[:1], "dev").split("\n\n") == [
        "iam\niam:role  node",
        "1 orphans of stack dev; `python -m sandbox orphans --stack dev --delete` deletes them",
    ]
    assert orphans([], "dev") == "No orphans: all that carries the tags of stack dev is in its state."
