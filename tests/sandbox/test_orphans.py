"""Which things a killed command has lost, and in which order they go."""

from collections.abc import Mapping
from typing import Any

from sandbox import orphans
from sandbox.inventory import Item
from sandbox.standin import StandInError

DEV = {"Project": "shop", "Stack": "dev", "team": "ml"}
STAGING = {"Project": "shop", "Stack": "staging"}

VPC = Item("ec2:vpc", "vpc-1", "vpc-1", DEV, made_by="aws:ec2/vpc:Vpc")
TABLE = Item("ec2:route-table", "rtb-1", "private", DEV, made_by="aws:ec2/routeTable:RouteTable")
ROUTE = Item("ec2:route", "r-rtb-11", "r-rtb-11", parent_id="rtb-1", made_by="aws:ec2/route:Route")
NODES = Item("eks:nodegroup", "llm:gpu", "gpu", DEV, made_by="aws:eks/nodeGroup:NodeGroup")
INSTANCE = Item("ec2:instance", "i-1", "i-1", parent_id="llm:gpu")
INTERFACE = Item("ec2:network-interface", "eni-1", "eni-1", parent_id="i-1")
CLUSTER = Item("eks:cluster", "llm", "llm", DEV, made_by="aws:eks/cluster:Cluster")
NAMESPACE = Item("Namespace", "inference", "inference", parent_id="llm", made_by="kubernetes:core/v1:Namespace")
RELEASE = Item("Release", "inference/op", "op", parent_id="llm", made_by="kubernetes:helm.sh/v3:Release")
SERVICE = Item("RayService", "inference/llm", "llm", parent_id="llm", made_by="kubernetes:ray.io/v1:RayService")
OTHERS = Item("ec2:vpc", "vpc-2", "vpc-2", STAGING, made_by="aws:ec2/vpc:Vpc")
NOBODYS = Item("ec2:vpc", "vpc-3", "vpc-3", made_by="aws:ec2/vpc:Vpc")
ALL = [VPC, TABLE, ROUTE, NODES, INSTANCE, INTERFACE, CLUSTER, NAMESPACE, RELEASE, SERVICE, OTHERS, NOBODYS]


def state(*items: Item) -> Mapping[str, Any]:
    return {"deployment": {"resources": [{"type": one.made_by, "id": one.id} for one in items]}}


def found(*known: Item) -> list[Item]:
    return orphans.find(ALL, state(*known), "shop", "dev")


def test_what_the_state_has_is_no_orphan() -> None:
    assert found(VPC, TABLE, ROUTE, NODES, CLUSTER, NAMESPACE, RELEASE, SERVICE) == []


def test_what_the_state_has_not_is_one_if_it_carries_the_tags() -> None:
    assert found(TABLE, ROUTE, NODES, CLUSTER, NAMESPACE, RELEASE, SERVICE) == [VPC]


def test_what_cannot_be_tagged_is_found_by_its_parent() -> None:
    assert found(VPC, TABLE, NODES, CLUSTER, NAMESPACE, RELEASE) == [ROUTE, SERVICE]


def test_what_aws_made_by_itself_goes_with_what_it_was_made_for() -> None:
    assert found(VPC, TABLE, ROUTE, CLUSTER, NAMESPACE, RELEASE, SERVICE) == [NODES]


def test_without_a_state_all_of_the_stack_is_lost_and_nothing_of_others() -> None:
    lost = orphans.find(ALL, {"version": 3, "deployment": {}}, "shop", "dev")
    assert lost == [VPC, TABLE, ROUTE, NODES, CLUSTER, NAMESPACE, RELEASE, SERVICE]


def test_an_item_belongs_to_a_stack_through_any_number_of_parents() -> None:
    assert INTERFACE in orphans.of_stack(ALL, "shop", "dev")
    assert orphans.of_stack(ALL, "shop", "staging") == [OTHERS]
    assert orphans.of_nobody(ALL) == [NOBODYS]


def test_a_circle_of_parents_belongs_to_nobody() -> None:
    one, other = Item("a", "1", "1", parent_id="2"), Item("b", "2", "2", parent_id="1")
    assert orphans.of_nobody([one, other]) == [one, other]


class Account:
    """Refuses to delete what others still need."""

    def __init__(self, needs: Mapping[str, list[Item]]) -> None:
        self.needs = needs
        self.gone: list[str] = []

    def remove(self, item: Item) -> None:
        if needed := [one.id for one in self.needs.get(item.id, []) if one.id not in self.gone]:
            raise StandInError(f"DependencyViolation: {item.id} is needed by {', '.join(needed)}")
        self.gone.append(item.id)


def test_what_is_in_use_goes_after_what_uses_it() -> None:
    account, said = Account({"vpc-1": [TABLE], "rtb-1": [ROUTE]}), list[str]()
    assert orphans.delete([VPC, TABLE, ROUTE], account.remove, said.append) == []
    assert said == ["Deleted ec2:route r-rtb-11.", "Deleted ec2:route-table rtb-1 (private).", "Deleted ec2:vpc vpc-1."]


def test_on_a_cluster_what_others_need_goes_last_and_before_the_cluster() -> None:
    account = Account({})
    assert orphans.delete([CLUSTER, NAMESPACE, RELEASE, SERVICE], account.remove, lambda _: None) == []
    assert account.gone == ["inference/llm", "inference/op", "inference", "llm"]


def test_what_cannot_be_deleted_is_said_with_its_reason() -> None:
    account = Account({"vpc-1": [NOBODYS]})
    assert orphans.delete([VPC, ROUTE], account.remove, lambda _: None) == [
        "ec2:vpc vpc-1: DependencyViolation: vpc-1 is needed by vpc-3"
    ]
    assert account.gone == ["r-rtb-11"]
