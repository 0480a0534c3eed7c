"""What the simulated account refuses: deletes of what is in use, names of what is not there, nodes that cannot join."""

from typing import Any

import pytest

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
    kinds,
    ref,
)


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises(StandInError) as refused:
        call(*args)
    return str(refused.value).strip().rpartition("RequestID: ")[2].partition(", ")[2]


def failure(stack: Stack, token: str, name: str, inputs: dict[str, Any]) -> str:
    with pytest.raises(InitFailed) as failed:
        stack.make(token, name, inputs)
    return failed.value.reasons[0].rpartition("* ")[2].strip()


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


def test_a_cluster_stays_in_its_vpc(whole: Stack) -> None:
    vpc = whole.make(VPC, "other", {"cidrBlock": "10.8.0.0/16", "tags": TAGS})
    other = [
        whole.make(SUBNET, f"other-{zone}", {"vpcId": vpc, "cidrBlock": cidr, "availabilityZone": zone, "tags": TAGS})
        for zone, cidr in (("us-east-1a", "10.8.0.0/20"), ("us-east-1b", "10.8.16.0/20"))
    ]
    with pytest.raises(StandInError, match=r"InvalidParameterException: The subnets .*cannot change"):
        whole.update("cluster", vpcConfig={"subnetIds": other})


def test_nodes_whose_role_loses_the_cni_policy_first_leave_interfaces(whole: Stack) -> None:
    whole.delete("node-AmazonEKS_CNI_Policy")
    whole.delete("gpu")

    assert kinds(whole)["ec2:network-interface"] == 2
    assert "dependent object" in refused_by(whole, "efa")
    assert "has dependencies" in refused_by(whole, "a")
    for one in whole.aws.inventory():
        if one.kind == "ec2:network-interface":
            whole.aws.remove(one)
    for name in ("template", "efa"):
        whole.delete(name)


def refused_by(stack: Stack, name: str) -> str:
    with pytest.raises(StandInError) as refused:
        stack.delete(name)
    return str(refused.value)


def test_the_nodes_of_a_cluster_are_what_its_groups_have_launched(whole: Stack) -> None:
    first, second = whole.aws.nodes("llm")

    assert first.name != second.name
    assert first.name.startswith("ip-10-9-")
    assert (first.instance_type, first.zone, first.efa_interfaces) == ("g6.8xlarge", "us-east-1a", 1)
    assert first.labels["topology.kubernetes.io/zone"] == "us-east-1a"
    assert first.labels["eks.amazonaws.com/nodegroup"] == first.group
    assert whole.aws.nodes("another") == []
