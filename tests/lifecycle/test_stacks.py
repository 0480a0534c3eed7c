"""The whole life of the three stacks: up, up again, refresh, destroy, and an account in which nothing is left."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from sandbox.inventory import Item
from tests.lifecycle.conftest import HomeOf, SandboxIn
from tests.lifecycle.runs import (
    CHECKOUT,
    CLUSTER,
    EFA_GROUP,
    EFA_PLUGIN,
    EFA_RULES,
    GPU_NODES,
    GPU_PLUGIN,
    OPERATOR,
    SERVICE,
    SUBNET,
    SYSTEM_NODES,
    VPC,
    Key,
    Steps,
)

STACKS = [
    pytest.param(name, marks=pytest.mark.xdist_group(f"the life of {name}")) for name in ("dev", "staging", "prod")
]


@dataclass(frozen=True)
class Life:
    """What each command of a stack's life did, what there was while it lived, and what is left."""

    again: Steps
    refresh: Steps
    lived_with: list[Item]
    destroy: Steps
    left: list[Item]


LifeOf = Callable[[str], Life]


@pytest.fixture(scope="session")
def life(sandbox_in: SandboxIn, made: HomeOf, tmp_path_factory: pytest.TempPathFactory) -> LifeOf:
    """Lives a stack's life once."""
    import shutil

    @cache
    def live(stack: str) -> Life:
        home = tmp_path_factory.mktemp("life") / stack
        shutil.copytree(made(stack), home)
        # One process for each command, as on the command line: nothing may live in memory alone.
        with sandbox_in(home) as sandbox:
            again = Steps(sandbox.up(CHECKOUT, stack))
        with sandbox_in(home) as sandbox:
            refresh = Steps(sandbox.refresh(CHECKOUT, stack))
            lived_with = sandbox.inventory()
        with sandbox_in(home) as sandbox:
            destroy = Steps(sandbox.destroy(CHECKOUT, stack))
        with sandbox_in(home) as sandbox:
            return Life(again, refresh, lived_with, destroy, sandbox.inventory())

    return live


@pytest.mark.parametrize("stack", STACKS)
def test_a_second_up_changes_nothing(stack: str, life: LifeOf) -> None:
    again = life(stack).again

    assert again.exit_code == 0, again.output
    assert again.changes == {}


@pytest.mark.parametrize("stack", STACKS)
def test_a_refresh_finds_no_difference(stack: str, life: LifeOf) -> None:
    refresh = life(stack).refresh

    assert refresh.exit_code == 0, refresh.output
    assert refresh.changes == {}


@pytest.mark.parametrize("stack", STACKS)
def test_a_destroy_leaves_nothing(stack: str, life: LifeOf) -> None:
    lived = life(stack)

    assert lived.destroy.exit_code == 0, lived.destroy.output
    assert len(lived.lived_with) > 50
    assert lived.left == []


def untagged(stack: str, items: list[Item]) -> list[Item]:
    """What the program made without the stack's tags."""
    tags = {"Project": "ray-llm-eks", "Stack": stack, "ManagedBy": "pulumi"}
    return [item for item in items if item.made_by.startswith("aws:") and not tags.items() <= item.tags.items()]


@pytest.mark.parametrize("stack", STACKS)
def test_every_resource_that_can_be_tagged_carries_the_stacks_tags(stack: str, life: LifeOf) -> None:
    items = life(stack).lived_with
    # What can have no tags says what it belongs to.
    bare = [item for item in untagged(stack, items) if item.parent_id is None]

    assert len(items) - len(untagged(stack, items)) > 40
    assert bare == []


@pytest.mark.parametrize("stack", STACKS)
def test_what_cannot_be_tagged_belongs_to_something_that_is(stack: str, life: LifeOf) -> None:
    items = life(stack).lived_with
    bare = untagged(stack, items)
    tagged = {item.id for item in items} - {item.id for item in bare}

    assert bare
    assert [item for item in bare if item.parent_id not in tagged] == []


ORDER: list[tuple[str, set[Key] | str, set[Key] | str]] = [
    ("the service goes before its operator, or its finalizers hang", {SERVICE}, {OPERATOR}),
    ("the service goes before the plugins", {SERVICE}, {GPU_PLUGIN, EFA_PLUGIN}),
    ("the operator goes before the nodes it runs on", {OPERATOR}, {SYSTEM_NODES}),
    ("the plugins go before the nodes they run on", {GPU_PLUGIN, EFA_PLUGIN}, {GPU_NODES}),
    ("the GPU nodes go before the rules of their security group", {GPU_NODES}, {*EFA_RULES}),
    ("the rules go before the group", {*EFA_RULES}, {EFA_GROUP}),
    ("the nodes go before the cluster", {GPU_NODES, SYSTEM_NODES}, CLUSTER),
    ("the security group goes before the VPC", {EFA_GROUP}, VPC),
    ("the cluster goes before its subnets", CLUSTER, SUBNET),
    ("the nodes go before their way out", {GPU_NODES, SYSTEM_NODES}, "aws:ec2/route:Route"),
    ("the nodes go before their way out", {GPU_NODES, SYSTEM_NODES}, "aws:ec2/natGateway:NatGateway"),
    ("the nodes go before the policies of their roles", {GPU_NODES}, "ray-llm-gpu-role-"),
    ("the nodes go before the policies of their roles", {SYSTEM_NODES}, "ray-llm-cluster-system-role-"),
    ("the VPC goes last of the network", SUBNET, VPC),
]


@pytest.mark.parametrize("stack", STACKS)
def test_a_destroy_takes_things_down_in_the_order_that_aws_asks_for(stack: str, life: LifeOf) -> None:
    destroy = life(stack).destroy

    def chosen(which: set[Key] | str) -> set[Key]:
        if not isinstance(which, str):
            return which
        return destroy.keys("delete", lambda key: key[0] == which or key[1].startswith(which))

    wrong = []
    for why, first, then in ORDER:
        before, after = chosen(first), chosen(then)
        assert before, why
        assert after, why
        if destroy.places("delete", before)[1] > destroy.places("delete", after)[0]:
            wrong.append(why)
    assert wrong == []
