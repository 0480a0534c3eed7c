"""Resources made, looked at, changed and taken away on the simulated account."""

from pathlib import Path

from sandbox.aws import schema
from tests.sandbox.aws_stack import (
    EIP,
    REGION,
    TAGS,
    VPC,
    Stack,
    kinds,
)


def test_outputs_hold_all_that_the_provider_fills_in(whole: Stack) -> None:
    for token, _, _, outputs in whole.made.values():
        described = schema.resource(token)
        assert described is not None
        # Of an object that AWS does not answer the bridge shows nothing.
        missing = {name for name in described.computed - outputs.keys() if described.outputs[name].kind != "object"}
        assert missing == set(), token


def test_an_account_is_the_same_in_another_process(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    stack.network()
    stack.cluster()
    stack.nodes()
    before = stack.aws.inventory(), {name: stack.read(name) for name in stack.made}

    stack.open()

    assert (stack.aws.inventory(), {name: stack.read(name) for name in stack.made}) == before


def test_warming_up_keeps_nothing_and_moves_no_id(tmp_path: Path) -> None:
    warm, cold = Stack(tmp_path / "warm"), Stack(tmp_path / "cold")
    warm.aws.warm_up()

    assert not (tmp_path / "warm").exists()
    for stack in (warm, cold):
        stack.network()
        stack.cluster()
        stack.nodes()
    assert {name: warm.id(name) for name in warm.made} == {name: cold.id(name) for name in cold.made}


def test_a_torn_last_line_is_an_operation_that_never_was(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16"})
    journal = tmp_path / "account.jsonl"
    whole = journal.read_bytes()
    stack.make(VPC, "second", {"cidrBlock": "10.8.0.0/16"})
    journal.write_bytes(whole + journal.read_bytes()[len(whole) : -20])

    stack.open()

    assert [one.id for one in stack.aws.inventory()] == [stack.id("vpc")]
    assert journal.read_bytes() == whole


def test_an_account_with_nothing_in_it_forgets_its_past_but_no_id(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    first = stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16"})
    stack.delete("vpc")
    stack.open()
    stack.aws.inventory()

    assert len((tmp_path / "account.jsonl").read_bytes()) < 100
    assert stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16"}) != first


def test_two_accounts_of_one_process_do_not_see_each_other(tmp_path: Path) -> None:
    one, other = Stack(tmp_path / "one"), Stack(tmp_path / "other")
    one.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16"})
    other.make(EIP, "address", {"domain": "vpc"})

    assert kinds(one) == {"ec2:vpc": 1}
    assert kinds(other) == {"ec2:elastic-ip": 1}


def test_a_refresh_right_after_finds_no_difference(whole: Stack) -> None:
    for name, (_, _, inputs, _) in whole.made.items():
        found = whole.read(name)
        assert found is not None
        assert found[0] == inputs, name


def test_tags_changed_behind_the_programs_back_are_seen(stack: Stack) -> None:
    vpc = stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16", "tags": TAGS})
    stack.aws.cloud.call("ec2", "create_tags", REGION, Resources=[vpc], Tags=[{"Key": "Stack", "Value": "other"}])

    found = stack.read("vpc")

    assert found is not None
    assert [one["tags"]["Stack"] for one in found] == ["other", "other"]


def test_what_is_deleted_behind_the_programs_back_is_gone(whole: Stack) -> None:
    table = whole.id("inner")
    whole.aws.cloud.call("ec2", "delete_route", REGION, RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")

    assert whole.read("to-nat") is None
    assert whole.read("inner") is not None


def test_a_size_changed_behind_the_programs_back_is_seen(whole: Stack) -> None:
    whole.aws.cloud.call(
        "eks",
        "update_nodegroup_config",
        REGION,
        clusterName="llm",
        nodegroupName=whole.outputs("gpu")["nodeGroupName"],
        scalingConfig={"minSize": 1, "desiredSize": 1, "maxSize": 2},
    )

    found = whole.read("gpu")

    assert found is not None
    assert found[0]["scalingConfig"]["desiredSize"] == 1


def test_a_rule_added_by_hand_shows_under_its_group(whole: Stack) -> None:
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    whole.aws.cloud.call(
        "ec2", "authorize_security_group_ingress", REGION, GroupId=whole.id("efa"), IpPermissions=[rule]
    )

    found = whole.read("efa")

    assert found is not None
    assert [one["fromPort"] for one in found[1]["ingress"]] == [22]


def test_an_update_changes_tags_and_says_so(stack: Stack) -> None:
    stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16", "tags": TAGS})

    outputs = stack.update("vpc", tags={"Stack": "prod"})

    assert outputs["tagsAll"] == {"Stack": "prod"}
    assert stack.read("vpc") == (stack.made["vpc"][2], outputs)


def test_a_changed_template_has_a_new_version(whole: Stack) -> None:
    outputs = whole.update("template", description="newer")

    assert (outputs["latestVersion"], outputs["defaultVersion"]) == (2, 1)


def test_a_node_group_on_a_new_template_version_has_new_nodes(whole: Stack) -> None:
    before = {one.id for one in whole.aws.inventory() if one.kind == "ec2:instance"}
    whole.update("template", description="newer")
    whole.update("gpu", launchTemplate={"id": whole.id("template"), "version": "2"})
    after = {one.id for one in whole.aws.inventory() if one.kind == "ec2:instance"}

    assert len(after) == 2
    assert not before & after


def test_a_smaller_node_group_keeps_the_nodes_that_stay(whole: Stack) -> None:
    before = {one.id for one in whole.aws.inventory() if one.kind == "ec2:instance"}
    whole.update("gpu", scalingConfig={"minSize": 1, "desiredSize": 1, "maxSize": 2})
    after = {one.id for one in whole.aws.inventory() if one.kind == "ec2:instance"}

    assert len(after) == 1
    assert after < before


def test_everything_goes_and_leaves_nothing(whole: Stack) -> None:
    for name in reversed(list(whole.made)):
        whole.delete(name)

    assert whole.aws.inventory() == []


def test_what_aws_makes_itself_belongs_to_what_it_made_it_for(whole: Stack) -> None:
    by_aws = [one for one in whole.aws.inventory() if not one.made_by]

    assert [(one.kind, one.parent_id) for one in by_aws] == [
        ("ec2:security-group", "llm"),
        ("ec2:instance", whole.id("gpu")),
        ("ec2:instance", whole.id("gpu")),
    ]


def test_what_cannot_be_tagged_names_what_it_belongs_to(whole: Stack) -> None:
    items = whole.aws.inventory()
    known = {one.id for one in items}

    untagged = [one for one in items if not one.tags]
    assert untagged
    assert all(one.parent_id in known for one in untagged)


def test_an_endpoint_is_found_by_its_clusters_name(whole: Stack) -> None:
    assert whole.aws.cluster_endpoints() == {whole.outputs("cluster")["endpoint"]: "llm"}
