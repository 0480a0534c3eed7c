"""What the aws stand-in fills in, and what it leaves unknown or replaces."""

from typing import Any

import pytest

from sandbox.aws import schema
from sandbox.aws.provider import Aws
from sandbox.aws.seeds import EXISTING_NETWORK
from sandbox.aws.services import KINDS
from sandbox.standin import UNKNOWN, Difference, ResourceRef, StandInError

LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ROLE = "aws:iam/role:Role"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"

NODES: dict[str, Any] = {
    "clusterName": "llm",
    "instanceTypes": ["g6.8xlarge"],
    "launchTemplate": {"id": "lt-1", "version": "1"},
    "nodeRoleArn": "arn:aws:iam::123456789012:role/nodes",
    "scalingConfig": {"minSize": 2, "desiredSize": 2, "maxSize": 2},
    "subnetIds": ["subnet-1", "subnet-2"],
}


@pytest.fixture(scope="module")
def provider() -> Aws:
    stand_in = Aws()
    stand_in.configure({"region": "us-east-1", "defaultTags": '{"tags": {"team": "ml", "stage": "dev"}}'})
    return stand_in


def ref(token: str, name: str = "gpu") -> ResourceRef:
    return ResourceRef(token, f"urn:pulumi:dev::p::{token}::{name}", name)


def checked(provider: Aws, token: str, inputs: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    options = {"old_inputs": None, "random_seed": b"seed", **kwargs}
    name = options.pop("name", "gpu")
    return provider.check(ref(token, name), inputs, **options).inputs


def planned(provider: Aws, token: str, inputs: dict[str, Any]) -> dict[str, Any]:
    id, outputs = provider.create(ref(token), checked(provider, token, inputs), preview=True)
    assert id == ""
    return outputs


def unknown(outputs: dict[str, Any]) -> set[str]:
    return {key for key, value in outputs.items() if value is UNKNOWN}


def difference(provider: Aws, token: str, old: dict[str, Any], **changes: Any) -> Difference:
    old, new = checked(provider, token, old), checked(provider, token, {**old, **changes})
    return provider.diff(ref(token), "id", old, old, new)


def test_a_name_is_the_logical_name_and_seven_hex_digits(provider: Aws) -> None:
    name = checked(provider, NODE_GROUP, NODES)["nodeGroupName"]

    prefix, _, random = name.rpartition("-")
    assert prefix == "gpu"
    assert len(random) == 7
    assert int(random, 16) >= 0
    assert checked(provider, NODE_GROUP, NODES)["nodeGroupName"] == name
    assert checked(provider, NODE_GROUP, NODES, random_seed=b"other")["nodeGroupName"] != name


def test_a_made_up_name_stays_on_the_next_run(provider: Aws) -> None:
    old = checked(provider, NODE_GROUP, NODES)

    assert (
        checked(provider, NODE_GROUP, NODES, old_inputs=old, random_seed=b"x")["nodeGroupName"] == old["nodeGroupName"]
    )


def test_a_given_name_or_prefix_is_left_alone(provider: Aws) -> None:
    assert checked(provider, ROLE, {"assumeRolePolicy": "{}", "name": "nodes"})["name"] == "nodes"
    assert "name" not in checked(provider, ROLE, {"assumeRolePolicy": "{}", "namePrefix": "nodes-"})


def test_a_role_takes_no_name_over_64_characters(provider: Aws) -> None:
    found = provider.check(ref(ROLE, "r" * 57), {"assumeRolePolicy": "{}"}, None, b"seed")

    (failure,) = found.failures
    assert failure.property == "name"
    assert failure.reason == (
        "cannot be made from the resource's name, which has 57 characters: "
        "56 are possible before the random ones; shorten the resource's name or set name"
    )
    assert len(checked(provider, ROLE, {"assumeRolePolicy": "{}"}, name="r" * 56)["name"]) == 64


def test_a_node_group_takes_no_name_over_63_characters(provider: Aws) -> None:
    found = provider.check(ref(NODE_GROUP, "n" * 56), NODES, None, b"seed")

    assert [(one.property, one.reason) for one in found.failures] == [
        ("nodeGroupName", "has 64 characters; between 1 and 63 are possible")
    ]


def test_a_key_alias_starts_with_alias(provider: Aws) -> None:
    inputs = checked(provider, "aws:kms/alias:Alias", {"targetKeyId": UNKNOWN})

    assert inputs["name"].startswith("alias/gpu-")


def test_region_tags_and_defaults_are_filled_in_as_the_provider_does(provider: Aws) -> None:
    inputs = checked(
        provider,
        SECURITY_GROUP,
        {"vpcId": UNKNOWN, "tags": {"stage": "prod"}, "ingress": [{"protocol": "-1", "fromPort": 0, "toPort": 0}]},
    )

    name = inputs.pop("name")
    assert name.startswith("gpu-")
    assert inputs == {
        "__defaults": ["name", "description", "revokeRulesOnDelete"],
        "description": "Managed by Pulumi",
        "ingress": [{"__defaults": ["self"], "protocol": "-1", "fromPort": 0, "toPort": 0, "self": False}],
        "region": "us-east-1",
        "revokeRulesOnDelete": False,
        "tags": {"stage": "prod"},
        "tagsAll": {"team": "ml", "stage": "prod"},
        "vpcId": UNKNOWN,
    }


def test_iam_has_no_region(provider: Aws) -> None:
    assert "region" not in checked(provider, ROLE, {"assumeRolePolicy": "{}"})


def test_computed_outputs_of_a_node_group_are_unknown(provider: Aws) -> None:
    outputs = planned(provider, NODE_GROUP, NODES)

    assert unknown(outputs) == {
        *("amiType", "arn", "capacityType", "diskSize", "nodeGroupNamePrefix", "nodeRepairConfig"),
        *("releaseVersion", "resources", "status", "updateConfig", "version"),
    }
    assert outputs["launchTemplate"] == {"id": "lt-1", "name": UNKNOWN, "version": "1"}
    assert outputs["instanceTypes"] == ["g6.8xlarge"]


def test_instance_types_of_a_group_whose_template_has_them_are_unknown(provider: Aws) -> None:
    inputs = {key: value for key, value in NODES.items() if key != "instanceTypes"}

    assert planned(provider, NODE_GROUP, inputs)["instanceTypes"] is UNKNOWN


def test_computed_outputs_of_a_subnet_are_unknown_but_for_the_given_zone(provider: Aws) -> None:
    token = "aws:ec2/subnet:Subnet"
    given = {"vpcId": UNKNOWN, "cidrBlock": "10.0.0.0/24"}

    with_zone = planned(provider, token, {**given, "availabilityZone": "us-east-1a"})

    assert with_zone["availabilityZone"] == "us-east-1a"
    assert {"arn", "availabilityZoneId", "ownerId"} <= unknown(with_zone)
    assert planned(provider, token, given)["availabilityZone"] is UNKNOWN


def test_rules_of_a_security_group_that_gives_none_are_unknown(provider: Aws) -> None:
    outputs = planned(provider, SECURITY_GROUP, {"vpcId": UNKNOWN})

    assert unknown(outputs) == {"arn", "egress", "ingress", "namePrefix", "ownerId", "vpcId"}


def test_outputs_carry_none_of_the_bridges_notes(provider: Aws) -> None:
    rule = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}

    outputs = planned(provider, SECURITY_GROUP, {"ingress": [rule]})

    assert outputs["ingress"] == [rule]
    assert "__defaults" not in outputs


def test_the_security_group_that_eks_makes_is_unknown_inside_a_given_object(provider: Aws) -> None:
    outputs = planned(
        provider, "aws:eks/cluster:Cluster", {"roleArn": UNKNOWN, "vpcConfig": {"subnetIds": [UNKNOWN, UNKNOWN]}}
    )

    assert outputs["vpcConfig"]["clusterSecurityGroupId"] is UNKNOWN
    assert outputs["vpcConfig"]["endpointPublicAccess"] is True


def test_tags_of_the_providers_newer_types_are_planned_too(provider: Aws) -> None:
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    given = {"securityGroupId": UNKNOWN, "ipProtocol": "-1", "referencedSecurityGroupId": UNKNOWN}

    assert "tagsAll" not in checked(provider, token, given)
    assert planned(provider, token, given)["tagsAll"] == {"team": "ml", "stage": "dev"}


def test_equal_inputs_change_nothing(provider: Aws) -> None:
    assert difference(provider, NODE_GROUP, NODES) == Difference()


def test_the_order_of_subnets_means_nothing(provider: Aws) -> None:
    assert difference(provider, NODE_GROUP, NODES, subnetIds=["subnet-2", "subnet-1"]) == Difference()


def test_the_template_version_is_updated_in_place(provider: Aws) -> None:
    found = difference(provider, NODE_GROUP, NODES, launchTemplate={"id": "lt-1", "version": "2"})

    assert found == Difference(["launchTemplate.version"], [])


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"subnetIds": ["subnet-1"]}, "subnetIds[1]"),
        ({"instanceTypes": ["g6.12xlarge"]}, "instanceTypes[0]"),
        ({"launchTemplate": {"id": "lt-2", "version": "1"}}, "launchTemplate.id"),
        ({"launchTemplate": None}, "launchTemplate"),
        ({"amiType": "AL2023_x86_64_NVIDIA"}, "amiType"),
        ({"region": "us-west-2"}, "region"),
    ],
)
def test_force_new_fields_replace_the_node_group(provider: Aws, changes: dict[str, Any], path: str) -> None:
    found = difference(provider, NODE_GROUP, NODES, **changes)

    assert found == Difference([path], [path])


def test_a_fixed_name_deletes_before_it_replaces(provider: Aws) -> None:
    fixed = {**NODES, "nodeGroupName": "gpu"}

    found = difference(provider, NODE_GROUP, fixed, instanceTypes=["g6.12xlarge"])

    assert found == Difference(["instanceTypes[0]"], ["instanceTypes[0]"], delete_before_replace=True)


def test_a_rule_resource_is_replaced_for_all_but_its_description(provider: Aws) -> None:
    token = "aws:ec2/securityGroupRule:SecurityGroupRule"
    rule = {"type": "ingress", "protocol": "-1", "fromPort": 0, "toPort": 0, "securityGroupId": "sg-1", "self": True}

    assert difference(provider, token, rule, description="efa").replaces == []
    assert difference(provider, token, rule, type="egress") == Difference(["type"], ["type"], True)


def test_the_first_hooks_of_an_autoscaling_group_are_not_changed_in_place(provider: Aws) -> None:
    token = "aws:autoscaling/group:Group"
    hook = {"name": "join", "lifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}
    group = {"minSize": 0, "maxSize": 1, "launchTemplate": {"id": "lt-1"}, "initialLifecycleHooks": [hook]}

    longer = difference(provider, token, group, initialLifecycleHooks=[{**hook, "heartbeatTimeout": 60}])
    assert longer.replaces == ["initialLifecycleHooks[0].heartbeatTimeout"]
    assert difference(provider, token, group, maxSize=2).replaces == []


def test_the_order_of_an_access_policys_namespaces_means_nothing(provider: Aws) -> None:
    token = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    arns = {
        "principalArn": "arn:aws:iam::123456789012:role/ops",
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
    }
    scope = {"type": "namespace", "namespaces": ["llm", "default"]}
    policy = {"clusterName": "llm", **arns, "accessScope": scope}

    turned = difference(provider, token, policy, accessScope={**scope, "namespaces": ["default", "llm"]})
    assert (*turned.changed, *turned.replaces) == ()
    fewer = difference(provider, token, policy, accessScope={**scope, "namespaces": ["llm"]})
    assert fewer.replaces != []


def test_a_change_of_an_unlisted_type_is_an_error_of_the_sandbox(provider: Aws) -> None:
    token = "aws:sqs/queue:Queue"

    with pytest.raises(StandInError) as refusal:
        difference(provider, token, {"delaySeconds": 1}, delaySeconds=2)

    assert str(refusal.value) == (
        "the sandbox does not know what a change of delaySeconds does to aws:sqs/queue:Queue: "
        "list the type's ForceNew fields in sandbox/aws/services"
    )


def test_an_update_keeps_what_aws_filled_in_but_for_the_new_version(provider: Aws) -> None:
    old = checked(provider, LAUNCH_TEMPLATE, {"instanceType": "g6.8xlarge"})
    new = checked(provider, LAUNCH_TEMPLATE, {"instanceType": "g6.12xlarge"}, old_inputs=old)
    old_outputs = {**old, "arn": "arn:lt", "latestVersion": 3, "defaultVersion": 1}

    outputs = provider.update(ref(LAUNCH_TEMPLATE), "lt-1", old, old_outputs, new, preview=True)

    assert outputs["arn"] == "arn:lt"
    assert outputs["instanceType"] == "g6.12xlarge"
    assert outputs["latestVersion"] is UNKNOWN


@pytest.mark.parametrize("token", KINDS)
def test_every_listed_field_exists_in_the_sdk(token: str) -> None:
    described = schema.resource(token)
    assert described is not None
    kind = KINDS[token]

    for pattern in (*kind.replaces - {"*"}, *kind.keeps, *kind.sets, *kind.defaults):
        assert _exists(described.inputs, pattern.split(".")), pattern
    assert kind.changes_with_update <= described.outputs.keys()


def _exists(fields: dict[str, schema.Field], steps: list[str]) -> bool:
    field = fields.get(steps[0].removesuffix("[]"))
    if field is None:
        return False
    element = field.type.element if field.type.element is not None else field.type
    return len(steps) == 1 or _exists(element.fields, steps[1:])


def test_an_existing_reservation_is_read(provider: Aws) -> None:
    token = "aws:ec2/capacityReservation:CapacityReservation"

    found = provider.read(ref(token), "cr-0123456789abcdef0", {}, {})

    assert found is not None
    id, inputs, outputs = found
    assert id == "cr-0123456789abcdef0"
    assert (inputs["instanceType"], inputs["availabilityZone"], inputs["instanceCount"]) == (
        "g6e.12xlarge",
        "us-east-1a",
        3,
    )
    assert schema.resource(token).computed <= outputs.keys()  # type: ignore[union-attr]
    assert provider.read(ref(token), "cr-0fedcba9876543210", {}, {}) is None


def test_the_existing_network_is_read(provider: Aws) -> None:
    vpc = provider.read(ref("aws:ec2/vpc:Vpc"), EXISTING_NETWORK.vpc_id, {}, {})
    subnet = provider.read(ref("aws:ec2/subnet:Subnet"), EXISTING_NETWORK.subnet_ids["us-east-1b"], {}, {})

    assert vpc is not None
    assert vpc[2]["cidrBlock"] == EXISTING_NETWORK.cidr
    assert subnet is not None
    assert subnet[2]["availabilityZone"] == "us-east-1b"
    assert subnet[2]["vpcId"] == EXISTING_NETWORK.vpc_id


def test_a_type_that_cannot_be_looked_up_is_named(provider: Aws) -> None:
    with pytest.raises(
        StandInError, match="the sandbox cannot look up an existing aws:iam/role:Role: it knows aws:ec2/"
    ):
        provider.read(ref(ROLE), "nodes", {}, {})


def test_a_rule_with_another_kind_of_peer_is_a_new_rule(provider: Aws) -> None:
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    old = {"securityGroupId": "sg-1", "ipProtocol": "-1", "cidrIpv4": "10.0.0.0/16"}

    other_range = difference(provider, token, old, cidrIpv4="10.1.0.0/16")
    other_peer = difference(provider, token, old, cidrIpv4=None, referencedSecurityGroupId="sg-1")

    assert other_range.replaces == []
    assert sorted(other_peer.replaces) == ["cidrIpv4", "referencedSecurityGroupId"]


def test_a_gateway_endpoint_does_not_change_its_private_dns_in_place(provider: Aws) -> None:
    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    gateway = {"vpcId": "vpc-1", "serviceName": "com.amazonaws.us-east-1.s3"}

    assert difference(provider, token, gateway, privateDnsEnabled=True).replaces == ["privateDnsEnabled"]
    interface = {**gateway, "vpcEndpointType": "Interface"}
    assert difference(provider, token, interface, privateDnsEnabled=True).replaces == []


def test_encryption_cannot_be_taken_from_a_cluster(provider: Aws) -> None:
    cluster = {
        "name": "llm",
        "roleArn": "arn:aws:iam::123456789012:role/control",
        "vpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]},
    }
    encryption = {"provider": {"keyArn": "arn:aws:kms:us-east-1:123456789012:key/1"}, "resources": ["secrets"]}

    given = difference(provider, "aws:eks/cluster:Cluster", cluster, encryptionConfig=encryption)
    taken = difference(
        provider, "aws:eks/cluster:Cluster", {**cluster, "encryptionConfig": encryption}, encryptionConfig=None
    )

    assert given.replaces == []
    assert taken.replaces == ["encryptionConfig"]
