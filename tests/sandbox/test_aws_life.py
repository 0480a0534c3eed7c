"""Resources made, looked at, changed and taken away on the simulated account."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sandbox.aws import schema
from sandbox.standin import InitFailed, StandInError
from tests.sandbox.aws_stack import (
    ADDON,
    ASSOCIATION,
    CLUSTER,
    EIP,
    ENDPOINT,
    ENTRY,
    GROUP,
    INGRESS,
    KEY,
    LOGS,
    NAT,
    NODES,
    PLACEMENT,
    REGION,
    ROUTE,
    SUBNET,
    TABLE,
    TAGS,
    TEMPLATE,
    VPC,
    Stack,
    ref,
)


@pytest.fixture
def stack() -> Stack:
    return Stack()


@pytest.fixture
def whole() -> Stack:
    stack = Stack()
    stack.network()
    stack.cluster()
    stack.nodes()
    return stack


def kinds(stack: Stack) -> Counter[str]:
    return Counter(one.kind for one in stack.aws.inventory())


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises(StandInError) as refused:
        call(*args)
    return str(refused.value).strip().rpartition("RequestID: ")[2].partition(", ")[2]


def failure(stack: Stack, token: str, name: str, inputs: dict[str, Any]) -> str:
    with pytest.raises(InitFailed) as failed:
        stack.make(token, name, inputs)
    return failed.value.reasons[0].rpartition("* ")[2].strip()


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "StatusCode: 400"),
        ("efa", "StatusCode: 400"),
        ("placement", "StatusCode: 400"),
        ("vpc", "StatusCode: 400"),
        ("address", "StatusCode: 400"),
        ("gateway", "StatusCode: 400"),
        ("cluster", "StatusCode: 409"),
        ("node", "StatusCode: 409"),
    ],
)
def test_what_is_in_use_stays(whole: Stack, name: str, expected: str) -> None:
    before = whole.aws.inventory()

    with pytest.raises(StandInError, match=expected):
        whole.delete(name)

    assert whole.aws.inventory() == before


def test_a_refusal_to_delete_has_aws_words(whole: Stack) -> None:
    group = whole.id("efa")
    subnet = whole.id("a")

    assert refusal(whole.delete, "efa") == f"api error DependencyViolation: resource {group} has a dependent object"
    assert refusal(whole.delete, "a") == (
        f"api error DependencyViolation: The subnet '{subnet}' has dependencies and cannot be deleted."
    )
    assert refusal(whole.delete, "cluster") == "ResourceInUseException: Cluster has nodegroups attached"
    assert refusal(whole.delete, "node") == "DeleteConflict: Cannot delete entity, must detach all policies first."


def test_a_group_that_another_groups_rule_names_stays(stack: Stack) -> None:
    vpc = stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16"})
    named = stack.make(GROUP, "named", {"vpcId": vpc})
    other = stack.make(GROUP, "other", {"vpcId": vpc})
    stack.make(INGRESS, "rule", {"securityGroupId": other, "referencedSecurityGroupId": named, "ipProtocol": "-1"})

    assert "DependencyViolation" in refusal(stack.delete, "named")
    stack.delete("rule")
    stack.delete("named")


def missing(stack: Stack, token: str, inputs: dict[str, Any]) -> str:
    return refusal(stack.make, token, "new", inputs)


def test_what_is_named_must_exist(whole: Stack) -> None:
    nodes, cluster = whole.node_inputs(), whole.cluster_inputs()
    table, vpc = whole.id("inner"), whole.id("vpc")
    role = "arn:aws:iam::123456789012:role/none"
    https = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443}

    found = {
        "subnet": missing(whole, SUBNET, {"vpcId": "vpc-0", "cidrBlock": "10.9.64.0/20"}),
        "nat": missing(whole, NAT, {"allocationId": "eipalloc-0", "subnetId": whole.id("a")}),
        "route": missing(
            whole, ROUTE, {"routeTableId": table, "destinationCidrBlock": "10.0.0.0/8", "natGatewayId": "nat-0"}
        ),
        "association": missing(whole, ASSOCIATION, {"routeTableId": table, "subnetId": "subnet-0"}),
        "endpoint": missing(
            whole,
            ENDPOINT,
            {"vpcId": vpc, "serviceName": "com.amazonaws.us-east-1.sts", "securityGroupIds": ["sg-0"]},
        ),
        "rule": missing(
            whole, INGRESS, {"securityGroupId": whole.id("efa"), "referencedSecurityGroupId": "sg-0", **https}
        ),
        "cluster": missing(whole, CLUSTER, {**cluster, "name": "other", "roleArn": role}),
        "node group": missing(whole, NODES, {**nodes, "clusterName": "none"}),
        "node role": missing(whole, NODES, {**nodes, "nodeRoleArn": role}),
        "node subnet": missing(whole, NODES, {**nodes, "subnetIds": ["subnet-0"]}),
        "template": missing(whole, NODES, {**nodes, "launchTemplate": {"id": whole.id("template"), "version": "9"}}),
        "add-on": missing(whole, ADDON, {"clusterName": "none", "addonName": "coredns"}),
    }

    assert found == {
        "subnet": "api error InvalidVpcID.NotFound: VpcID vpc-0 does not exist.",
        "nat": "api error InvalidAllocationID.NotFound: The allocation ID 'eipalloc-0' does not exist",
        "route": "api error InvalidNatGatewayID.NotFound: The natGateway ID 'nat-0' does not exist",
        "association": "api error InvalidSubnetID.NotFound: The subnet ID 'subnet-0' does not exist",
        "endpoint": "api error InvalidGroup.NotFound: The security group 'sg-0' does not exist",
        "rule": "api error InvalidGroup.NotFound: The security group 'sg-0' does not exist",
        "cluster": f"InvalidParameterException: roleArn, {role}, does not exist",
        "node group": "ResourceNotFoundException: No cluster found for name: none.",
        "node role": "InvalidParameterException: The role with name none cannot be found.",
        "node subnet": "InvalidParameterException: The subnet ID 'subnet-0' does not exist",
        "template": (
            f"InvalidParameterException: The launch template {whole.id('template')} version 9 does not exist."
        ),
        "add-on": "ResourceNotFoundException: No cluster found for name: none.",
    }


def test_names_are_unique(whole: Stack) -> None:
    whole.make(LOGS, "logs", {"name": "/aws/eks/llm/cluster"})
    whole.make(ADDON, "proxy", {"clusterName": "llm", "addonName": "kube-proxy"})
    principal = whole.outputs("node")["arn"]
    whole.make(ENTRY, "entry", {"clusterName": "llm", "principalArn": principal, "type": "STANDARD"})
    placement = whole.id("placement")

    assert "ResourceAlreadyExistsException" in missing(whole, LOGS, {"name": "/aws/eks/llm/cluster"})
    assert missing(whole, ADDON, {"clusterName": "llm", "addonName": "kube-proxy"}) == (
        "ResourceInUseException: Addon already exists."
    )
    assert missing(whole, ENTRY, {"clusterName": "llm", "principalArn": principal}) == (
        "ResourceInUseException: The specified access entry resource is already in use on this cluster."
    )
    assert missing(whole, PLACEMENT, {"name": placement, "strategy": "cluster"}) == (
        f"api error InvalidPlacementGroup.Duplicate: The placement group '{placement}' already exists."
    )
    assert "ResourceInUseException" in missing(whole, CLUSTER, whole.cluster_inputs())
    assert "AlreadyExists" in missing(whole, TEMPLATE, {"name": whole.outputs("template")["name"]})


def test_a_control_plane_needs_its_policy(stack: Stack) -> None:
    stack.network()
    stack.role("control", "eks.amazonaws.com", ())

    assert refusal(stack.make, CLUSTER, "cluster", stack.cluster_inputs()).startswith(
        "InvalidParameterException: The provided role doesn't have the Amazon EKS Managed Policies associated with it."
    )


def test_a_nat_gateway_needs_an_attached_internet_gateway(stack: Stack) -> None:
    vpc = stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16"})
    subnet = stack.make(SUBNET, "public", {"vpcId": vpc, "cidrBlock": "10.9.0.0/24"})
    address = stack.make(EIP, "address", {"domain": "vpc"})

    assert failure(stack, NAT, "nat", {"allocationId": address, "subnetId": subnet}).endswith(
        f"last error: Gateway.NotAttached: Network {vpc} has no Internet gateway attached"
    )


@pytest.mark.parametrize(
    "missing", ["node-AmazonEKS_CNI_Policy", "to-nat", "a-inner", "to-internet", "node-AmazonEKSWorkerNodePolicy"]
)
def test_nodes_without_what_they_need_do_not_join(whole: Stack, missing: str) -> None:
    whole.delete("gpu")
    whole.delete(missing)

    reason = failure(whole, NODES, "gpu", whole.node_inputs())

    nodes = [one.id for one in whole.aws.inventory() if one.kind == "ec2:instance"]
    assert reason == (
        f"waiting for EKS Node Group ({whole.id('gpu')}) create: unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. "
        f"last error: {', '.join(nodes)}: NodeCreationFailure: Instances failed to join the kubernetes cluster"
    )
    assert len(nodes) == 2


def test_an_endpoint_that_lets_nothing_in_keeps_nodes_out(whole: Stack) -> None:
    whole.delete("gpu")
    closed = whole.make(GROUP, "closed", {"vpcId": whole.id("vpc")})
    endpoint = {"serviceName": "com.amazonaws.us-east-1.sts", "vpcEndpointType": "Interface", "privateDnsEnabled": True}
    whole.make(
        ENDPOINT,
        "sts",
        {**endpoint, "vpcId": whole.id("vpc"), "subnetIds": [whole.id("a")], "securityGroupIds": [closed]},
    )
    assert "NodeCreationFailure" in failure(whole, NODES, "gpu", whole.node_inputs())
    whole.delete("gpu")

    https = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIpv4": "10.9.0.0/16"}
    whole.make(INGRESS, "https", {"securityGroupId": closed, **https})
    whole.make(NODES, "gpu", whole.node_inputs())
    assert whole.outputs("gpu")["status"] == "ACTIVE"


def test_coredns_waits_for_a_node_that_takes_it(stack: Stack) -> None:
    stack.network()
    stack.cluster()

    assert failure(stack, ADDON, "dns", {"clusterName": "llm", "addonName": "coredns"}) == (
        "waiting for EKS Add-On (llm:coredns) create: timeout while waiting for state to become 'ACTIVE' "
        "(last state: 'DEGRADED', timeout: 20m0s)"
    )


def test_a_cluster_that_logs_makes_its_log_group_and_leaves_it(stack: Stack) -> None:
    stack.network()
    stack.role("control", "eks.amazonaws.com", ("AmazonEKSClusterPolicy",))
    stack.make(CLUSTER, "cluster", {**stack.cluster_inputs(), "enabledClusterLogTypes": ["api"]})
    for name in reversed(list(stack.made)):
        stack.delete(name)

    assert [(one.kind, one.id, one.made_by) for one in stack.aws.inventory()] == [
        ("logs:log-group", "/aws/eks/llm/cluster", "")
    ]


def test_a_log_group_that_goes_before_its_cluster_comes_back(stack: Stack) -> None:
    stack.network()
    stack.role("control", "eks.amazonaws.com", ("AmazonEKSClusterPolicy",))
    stack.make(LOGS, "logs", {"name": "/aws/eks/llm/cluster", "tags": TAGS})
    stack.make(CLUSTER, "cluster", {**stack.cluster_inputs(), "enabledClusterLogTypes": ["api"]})
    stack.delete("logs")

    assert kinds(stack)["logs:log-group"] == 1


def test_a_key_scheduled_for_deletion_is_gone(stack: Stack) -> None:
    stack.make(KEY, "key", {"deletionWindowInDays": 7, "enableKeyRotation": True, "tags": TAGS})
    assert stack.outputs("key")["enableKeyRotation"] is True
    stack.delete("key")

    assert stack.aws.inventory() == []


def test_an_orphan_is_removed_by_what_the_inventory_says_of_it(whole: Stack) -> None:
    (gpu,) = [one for one in whole.aws.inventory() if one.kind == "eks:nodegroup"]
    whole.aws.remove(gpu)

    assert kinds(whole)["ec2:instance"] == 0
    assert whole.aws.read(ref(NODES, "gpu"), gpu.id, *whole.made["gpu"][2:]) is None


def test_an_update_of_what_is_gone_says_to_refresh(stack: Stack) -> None:
    table = stack.make(VPC, "vpc", {"cidrBlock": "10.9.0.0/16", "tags": TAGS})
    stack.aws.cloud.call("ec2", "delete_vpc", REGION, VpcId=table)

    with pytest.raises(StandInError, match="running `pulumi refresh`"):
        stack.update("vpc", tags={})


def test_a_table_of_routes_keeps_its_inline_routes(stack: Stack) -> None:
    stack.network()
    routes = [{"cidrBlock": "0.0.0.0/0", "gatewayId": stack.id("gateway")}]
    stack.make(TABLE, "inline", {"vpcId": stack.id("vpc"), "routes": routes})

    found = stack.read("inline")

    assert found == (stack.made["inline"][2], stack.outputs("inline"))
    assert stack.outputs("inline")["routes"] == routes


def test_a_refresh_keeps_what_existed_before_every_stack(stack: Stack) -> None:
    token, id = "aws:ec2/capacityReservation:CapacityReservation", "cr-0123456789abcdef0"
    found = stack.aws.read(ref(token, "reserved"), id, {}, {})
    assert found is not None

    assert stack.aws.read(ref(token, "reserved"), id, *found[1:]) == found
