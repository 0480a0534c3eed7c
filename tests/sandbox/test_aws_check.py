"""What the aws stand-in refuses in a preview, and what it lets through."""

from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.aws import schema
from sandbox.aws.provider import Aws
from sandbox.aws.seeds import EXISTING_NETWORK
from sandbox.standin import UNKNOWN, Checked, ResourceRef

CLUSTER = "aws:eks/cluster:Cluster"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
SUBNET = "aws:ec2/subnet:Subnet"

GOOD: Mapping[str, dict[str, Any]] = {
    CLUSTER: {
        "roleArn": UNKNOWN,
        "version": "1.35",
        "accessConfig": {"authenticationMode": "API"},
        "enabledClusterLogTypes": ["api", "audit"],
        "encryptionConfig": {"provider": {"keyArn": UNKNOWN}, "resources": ["secrets"]},
        "vpcConfig": {"subnetIds": [UNKNOWN, UNKNOWN], "publicAccessCidrs": ["203.0.113.0/24"]},
    },
    LAUNCH_TEMPLATE: {
        "instanceType": "g6.8xlarge",
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"encrypted": True, "volumeSize": 100}}],
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        "networkInterfaces": [
            {"deviceIndex": 0, "networkCardIndex": 0, "interfaceType": "efa", "securityGroups": [UNKNOWN, UNKNOWN]}
        ],
        "placement": {"groupName": UNKNOWN},
        "tagSpecifications": [{"resourceType": "instance", "tags": {"team": "ml"}}],
        "userData": "TUlNRQ==",
    },
    NODE_GROUP: {
        "amiType": "AL2023_x86_64_NVIDIA",
        "capacityType": "ON_DEMAND",
        "clusterName": UNKNOWN,
        "instanceTypes": ["g6.8xlarge"],
        "labels": {"nvidia.com/gpu.present": "true"},
        "launchTemplate": {"id": UNKNOWN, "version": UNKNOWN},
        "nodeRoleArn": UNKNOWN,
        "scalingConfig": {"minSize": 2, "desiredSize": 2, "maxSize": 2},
        "subnetIds": [UNKNOWN],
        "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
        "updateConfig": {"maxUnavailable": 1, "updateStrategy": "MINIMAL"},
    },
    RULE: {
        "type": "ingress",
        "protocol": "-1",
        "fromPort": 0,
        "toPort": 0,
        "securityGroupId": UNKNOWN,
        "self": True,
    },
    SECURITY_GROUP: {
        "vpcId": UNKNOWN,
        "ingress": [{"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}],
    },
    SUBNET: {"vpcId": UNKNOWN, "cidrBlock": "10.20.0.0/19", "availabilityZone": "us-east-1a"},
}

# Properties that conflict with another one; whoever gives every property gives one of the two.
RIVALS: Mapping[str, set[str]] = {
    CLUSTER: set(),
    LAUNCH_TEMPLATE: {"instanceRequirements", "securityGroupNames", "updateDefaultVersion", "vpcSecurityGroupIds"},
    NODE_GROUP: {"diskSize", "remoteAccess"},
    RULE: {"cidrBlocks", "ipv6CidrBlocks", "sourceSecurityGroupId"},
    SECURITY_GROUP: set(),
    SUBNET: {"availabilityZoneId"},
}


@pytest.fixture(scope="module")
def provider() -> Aws:
    stand_in = Aws()
    stand_in.configure({"region": "us-east-1"})
    return stand_in


@pytest.fixture(autouse=True)
def _new_run(provider: Aws) -> None:
    provider.start_run()


def check(provider: Aws, token: str, inputs: dict[str, Any], name: str = "main") -> Checked:
    return provider.check(ResourceRef(token, f"urn:pulumi:dev::p::{token}::{name}", name), inputs, None, b"seed")


def refusals(provider: Aws, token: str, **changes: Any) -> list[tuple[str, str]]:
    inputs = {**GOOD.get(token, {}), **changes}
    return [(one.property, one.reason) for one in check(provider, token, inputs).failures]


@pytest.mark.parametrize("token", GOOD)
def test_compliant_inputs_pass(provider: Aws, token: str) -> None:
    assert refusals(provider, token) == []


def test_a_misspelt_property_is_named_with_the_right_one(provider: Aws) -> None:
    found = refusals(provider, NODE_GROUP, instanceType=["g6.8xlarge"])

    assert found == [("instanceType", "is no property that NodeGroup has there; did you mean 'instanceTypes'?")]


def test_a_misspelt_field_of_a_nested_object_is_named_with_its_path(provider: Aws) -> None:
    found = refusals(provider, LAUNCH_TEMPLATE, networkInterfaces=[{"deviceIndx": 0, "interfaceType": "efa"}])

    expected = "is no property that LaunchTemplate has there; did you mean 'deviceIndex'?"
    assert found == [("networkInterfaces[0].deviceIndx", expected)]


def test_a_property_that_resembles_nothing_gets_the_list_of_those_that_exist(provider: Aws) -> None:
    found = refusals(provider, "aws:ec2/internetGateway:InternetGateway", zzz=1)

    assert found == [("zzz", "is no property that InternetGateway has there; it takes region, tags, vpcId")]


def test_every_missing_property_is_reported_at_once(provider: Aws) -> None:
    found = [(one.property, one.reason) for one in check(provider, NODE_GROUP, {"scalingConfig": {}}).failures]

    assert sorted(found) == [
        ("clusterName", "is required and not set: give it a string"),
        ("nodeRoleArn", "is required and not set: give it a string"),
        ("scalingConfig.desiredSize", "is required and not set: give it an integer"),
        ("scalingConfig.maxSize", "is required and not set: give it an integer"),
        ("scalingConfig.minSize", "is required and not set: give it an integer"),
        ("subnetIds", "is required and not set: give it a list of strings"),
    ]


@pytest.mark.parametrize(
    ("token", "name", "value", "path", "reason"),
    [
        (NODE_GROUP, "subnetIds", "subnet-1", "", "must be a list of strings, but a string was given: put it in a list"),
        (NODE_GROUP, "amiType", {"a": 1}, "", "must be a string, but an object was given"),
        (NODE_GROUP, "diskSize", "big", "", "must be an integer, but a string was given"),
        (NODE_GROUP, "forceUpdateVersion", 1, "", "must be a boolean, but an integer was given"),
        (NODE_GROUP, "labels", ["a"], "", "must be a map of strings, but a list was given: give the one element without the list"),
        (NODE_GROUP, "labels", {"a/b": []}, '["a/b"]', "must be a string, but a list was given"),
        (NODE_GROUP, "subnetIds", [None], "[0]", "is null: give it a string"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_refused_without_being_shown(
    provider: Aws, token: str, name: str, value: Any, path: str, reason: str
) -> None:
    inputs = {**GOOD[token], "launchTemplate": None, name: value}

    found = [(one.property, one.reason) for one in check(provider, token, inputs).failures]

    assert found == [(name + path, reason)]


def test_scalars_are_converted_as_the_bridge_converts_them(provider: Aws) -> None:
    inputs = {
        **GOOD[NODE_GROUP],
        "forceUpdateVersion": "true",
        "version": 1.35,
        "scalingConfig": {"minSize": "2", "desiredSize": 2, "maxSize": "2"},
        "tags": {"gpu": True},
    }

    checked = check(provider, NODE_GROUP, inputs)

    assert checked.failures == []
    assert checked.inputs["forceUpdateVersion"] is True
    assert checked.inputs["version"] == "1.35"
    assert checked.inputs["scalingConfig"] == {"__defaults": [], "minSize": 2, "desiredSize": 2, "maxSize": 2}
    assert checked.inputs["tags"] == {"gpu": "true"}


def test_a_policy_written_as_an_object_becomes_text(provider: Aws) -> None:
    checked = check(provider, "aws:iam/role:Role", {"assumeRolePolicy": {"Version": "2012-10-17", "Statement": []}})

    assert checked.failures == []
    assert checked.inputs["assumeRolePolicy"] == '{"Statement":[],"Version":"2012-10-17"}'


@pytest.mark.parametrize(
    ("token", "changes", "expected"),
    [
        (NODE_GROUP, {"amiType": "AL2023_NVIDIA"},
         ("amiType", "is 'AL2023_NVIDIA'; did you mean AL2023_x86_64_NVIDIA or AL2023_ARM_64_NVIDIA?")),
        (NODE_GROUP, {"capacityType": "RESERVED"},
         ("capacityType", "is 'RESERVED'; it may be ON_DEMAND, SPOT, CAPACITY_BLOCK")),
        (NODE_GROUP, {"taints": [{"key": "a", "effect": "NoSchedule"}]},
         ("taints[0].effect", "is 'NoSchedule'; it may be NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE")),
        (NODE_GROUP, {"updateConfig": {"maxUnavailable": 1, "updateStrategy": "SURGE"}},
         ("updateConfig.updateStrategy", "is 'SURGE'; it may be DEFAULT, MINIMAL")),
        (NODE_GROUP, {"updateConfig": {"maxUnavailable": 1, "maxUnavailablePercentage": 50}},
         ("updateConfig", "give only one of maxUnavailable, maxUnavailablePercentage: "
          "maxUnavailable, maxUnavailablePercentage are set")),
        (NODE_GROUP, {"scalingConfig": {"minSize": 3, "desiredSize": 2, "maxSize": 3}},
         ("scalingConfig.minSize", "is 3, above desiredSize 2")),
        (NODE_GROUP, {"scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 0}},
         ("scalingConfig.maxSize", "is 0; AWS takes at least 1")),
        (NODE_GROUP, {"diskSize": 100},
         ("diskSize", "cannot stand beside launchTemplate: give the template blockDeviceMappings instead")),
        (NODE_GROUP, {"launchTemplate": {"version": "1"}},
         ("launchTemplate", "give either id or name: none is set")),
        (NODE_GROUP, {"instanceTypes": ["g6.9xlarge"]},
         ("instanceTypes[0]", "is 'g6.9xlarge', which is no EC2 instance type")),
        (NODE_GROUP, {"labels": {"a b": "c"}},
         ('labels["a b"]', 'the key "a b" must be letters, digits, "-", "_" and ".", with a letter or digit at both ends')),
        (NODE_GROUP, {"labels": {"pool": "c d"}},
         ("labels.pool", '"c d" must be letters, digits, "-", "_" and ".", with a letter or digit at both ends')),
        (NODE_GROUP, {"taints": [{"key": "a/b/c", "effect": "NO_SCHEDULE"}]},
         ("taints[0].key", 'the prefix of "a/b/c": "a/b" must be lower-case letters, digits, "-" and ".", '
          "with a letter or digit at both ends")),
        (NODE_GROUP, {"nodeRoleArn": "node-role"},
         ("nodeRoleArn", "is 'node-role', which is not of the form arn:aws:iam::123456789012:role/name")),
        (NODE_GROUP, {"nodeGroupName": "a", "nodeGroupNamePrefix": "b"},
         ("nodeGroupName", "conflicts with nodeGroupNamePrefix: give one of the two")),
        (LAUNCH_TEMPLATE, {"vpcSecurityGroupIds": ["sg-1"]},
         ("vpcSecurityGroupIds", "cannot stand beside networkInterfaces: "
          "move the groups to networkInterfaces[].securityGroups")),
        (LAUNCH_TEMPLATE, {"networkInterfaces": [{"interfaceType": "EFA"}]},
         ("networkInterfaces[0].interfaceType", "is 'EFA'; it may be efa, efa-only, interface")),
        (LAUNCH_TEMPLATE, {"networkInterfaces": [{"deviceIndex": 0}, {"deviceIndex": 0}]},
         ("networkInterfaces[1].deviceIndex",
          "has device index 0 on network card 0, as networkInterfaces[0] has: make it unique")),
        (LAUNCH_TEMPLATE, {"networkInterfaces": [{"networkCardIndex": 1}]},
         ("networkInterfaces[0].networkCardIndex", "is 1, but g6.8xlarge has 1 network card(s), counted from 0")),
        (LAUNCH_TEMPLATE, {"instanceType": "m7i.xlarge"},
         ("networkInterfaces[0].interfaceType", "is EFA interface number 1, but m7i.xlarge takes 0")),
        (LAUNCH_TEMPLATE, {"metadataOptions": {"httpTokens": "yes"}},
         ("metadataOptions.httpTokens", "is 'yes'; it may be optional, required")),
        (LAUNCH_TEMPLATE, {"metadataOptions": {"httpPutResponseHopLimit": 65}},
         ("metadataOptions.httpPutResponseHopLimit", "is 65; it may be 1 to 64")),
        (LAUNCH_TEMPLATE, {"userData": "#!/bin/sh"}, ("userData", "is not base64: encode it first")),
        (LAUNCH_TEMPLATE, {"placement": {"availabilityZone": "us-east-1z"}, "instanceType": UNKNOWN},
         ("placement.availabilityZone", "is 'us-east-1z'; us-east-1 has us-east-1a, us-east-1b, us-east-1c, "
          "us-east-1d, us-east-1e, us-east-1f")),
        (LAUNCH_TEMPLATE, {"placement": {"availabilityZone": "us-east-1e"}},
         ("instanceType", "is 'g6.8xlarge', which EC2 does not offer in us-east-1e: us-east-1a, us-east-1b, "
          "us-east-1c, us-east-1d, us-east-1f have it")),
        (CLUSTER, {"vpcConfig": {"subnetIds": [UNKNOWN]}},
         ("vpcConfig.subnetIds", "must span at least two Availability Zones, found 1 subnet(s)")),
        (CLUSTER, {"vpcConfig": {"subnetIds": [UNKNOWN, UNKNOWN], "endpointPublicAccess": False}},
         ("vpcConfig.endpointPublicAccess", "is false and so is endpointPrivateAccess: open one")),
        (CLUSTER, {"enabledClusterLogTypes": ["kubelet"]},
         ("enabledClusterLogTypes[0]",
          "is 'kubelet'; it may be api, audit, authenticator, controllerManager, scheduler")),
        (CLUSTER, {"version": "v1.35"}, ("version", "is 'v1.35', which is not of the form 1.35")),
        (SUBNET, {"availabilityZone": "us-west-2a"},
         ("availabilityZone", "is 'us-west-2a'; us-east-1 has us-east-1a, us-east-1b, us-east-1c, us-east-1d, "
          "us-east-1e, us-east-1f")),
        (SUBNET, {"cidrBlock": "10.20.0.0"}, ("cidrBlock", "is '10.20.0.0'; the network is written 10.20.0.0/32")),
        (SUBNET, {"cidrBlock": "10.20.0.1/19"},
         ("cidrBlock", "is '10.20.0.1/19'; the network is written 10.20.0.0/19")),
        (SUBNET, {"cidrBlock": "ten"}, ("cidrBlock", "is 'ten', which is no IPv4 network such as 10.0.0.0/16")),
        (SUBNET, {"cidrBlock": "10.0.0.0/8"}, ("cidrBlock", "is '10.0.0.0/8'; its prefix must be /16 to /28")),
        (SUBNET, {"vpcId": EXISTING_NETWORK.vpc_id, "cidrBlock": "10.61.0.0/24"},
         ("cidrBlock", f"is '10.61.0.0/24', which lies outside 10.60.0.0/16 of {EXISTING_NETWORK.vpc_id}")),
        (SECURITY_GROUP, {"name": "sg-efa"},
         ("name", "is 'sg-efa', which is not of the form a name that does not start with sg-")),
        (SECURITY_GROUP, {"ingress": [{"protocol": "-1", "fromPort": 0, "toPort": 65535, "self": True}]},
         ("ingress[0]", "has protocol -1 (all) with ports 0 to 65535: both must be 0")),
        (RULE, {"sourceSecurityGroupId": UNKNOWN},
         ("self", "conflicts with sourceSecurityGroupId: give one of the two")),
        (RULE, {"type": "inbound"}, ("type", "is 'inbound'; it may be ingress, egress")),
        (RULE, {"self": None}, ("self", "give one of cidrBlocks, ipv6CidrBlocks, prefixListIds, self, "
                                "sourceSecurityGroupId: none is set")),
        ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
         {"securityGroupId": UNKNOWN, "ipProtocol": "-1"},
         ("cidrIpv4", "give one of cidrIpv4, cidrIpv6, prefixListId, referencedSecurityGroupId: none is set")),
        ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
         {"securityGroupId": UNKNOWN, "ipProtocol": "-1", "cidrIpv4": "10.0.0.0/8", "fromPort": 0, "toPort": -1},
         ("fromPort", "is 0, but ipProtocol -1 (all) takes no ports: leave it out")),
        ("aws:ec2/placementGroup:PlacementGroup", {"strategy": "clustered"},
         ("strategy", "is 'clustered'; it may be cluster, spread, partition, precision-time")),
        ("aws:ec2/placementGroup:PlacementGroup", {"strategy": "cluster", "partitionCount": 2},
         ("partitionCount", "must not be set with strategy cluster: it belongs to partition")),
        ("aws:ec2/natGateway:NatGateway", {"subnetId": UNKNOWN},
         ("allocationId", "is needed for a public NAT gateway: give it an Eip's id")),
        ("aws:ec2/eip:Eip", {"domain": "vpcs"}, ("domain", "is 'vpcs'; it may be vpc, standard")),
        ("aws:ec2/vpcEndpoint:VpcEndpoint", {"vpcId": UNKNOWN, "serviceName": "s3"},
         ("serviceName", "is 's3', which is not of the form com.amazonaws.us-east-1.s3")),
        ("aws:ec2/route:Route", {"routeTableId": UNKNOWN, "destinationCidrBlock": "0.0.0.0/0"},
         ("carrierGatewayId", "give one of carrierGatewayId, coreNetworkArn, egressOnlyGatewayId, gatewayId, "
          "localGatewayId, natGatewayId, networkInterfaceId, transitGatewayId, vpcEndpointId, "
          "vpcPeeringConnectionId: none is set")),
        ("aws:iam/role:Role", {"assumeRolePolicy": "{"},
         ("assumeRolePolicy", "is no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)")),
        ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", {"role": UNKNOWN, "policyArn": "AmazonEKSClusterPolicy"},
         ("policyArn", "is 'AmazonEKSClusterPolicy', which is not of the form "
          "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")),
        ("aws:kms/alias:Alias", {"name": "alias/llm", "namePrefix": "alias/llm", "targetKeyId": UNKNOWN},
         ("name", "conflicts with namePrefix: give one of the two")),
        ("aws:kms/key:Key", {"deletionWindowInDays": 3}, ("deletionWindowInDays", "is 3; it may be 7 to 30")),
        ("aws:cloudwatch/logGroup:LogGroup", {"retentionInDays": 31},
         ("retentionInDays", "is 31; it may be 0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, "
          "1096, 1827, 2192, 2557, 2922, 3288, 3653")),
        ("aws:autoscaling/group:Group",
         {"minSize": 0, "maxSize": 1, "availabilityZones": ["us-east-1q"], "launchTemplate": {"id": UNKNOWN}},
         ("availabilityZones[0]", "is 'us-east-1q'; us-east-1 has us-east-1a, us-east-1b, us-east-1c, us-east-1d, "
          "us-east-1e, us-east-1f")),
    ],
)  # fmt: skip
def test_what_the_provider_or_aws_refuses_is_refused_in_a_preview(
    provider: Aws, token: str, changes: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert refusals(provider, token, **changes) == [expected]


def test_a_capacity_block_needs_a_template(provider: Aws) -> None:
    found = refusals(provider, NODE_GROUP, capacityType="CAPACITY_BLOCK", launchTemplate=None)

    assert found == [("capacityType", "is CAPACITY_BLOCK, which needs a launchTemplate")]


def test_a_type_must_be_offered_in_the_zone_of_an_existing_subnet(provider: Aws) -> None:
    subnet = EXISTING_NETWORK.subnet_ids["us-east-1b"]

    found = refusals(provider, NODE_GROUP, subnetIds=[subnet], instanceTypes=["p6-b300.48xlarge"])

    expected = "is 'p6-b300.48xlarge', which EC2 does not offer in us-east-1b: us-east-1a, us-east-1c have it"
    assert found == [("instanceTypes[0]", expected)]


def test_two_existing_subnets_of_one_zone_do_not_carry_a_control_plane(provider: Aws) -> None:
    subnet = EXISTING_NETWORK.subnet_ids["us-east-1a"]

    found = refusals(provider, CLUSTER, vpcConfig={"subnetIds": [subnet, subnet]})

    assert found == [("vpcConfig.subnetIds", "must span at least two Availability Zones, found us-east-1a")]


def test_a_resource_may_lie_in_another_region_than_the_provider(provider: Aws) -> None:
    assert refusals(provider, SUBNET, region="us-west-2", availabilityZone="us-west-2a") == []


def test_unknown_values_are_left_to_aws(provider: Aws) -> None:
    for token in GOOD:
        described = schema.resource(token)
        assert described is not None
        rivals = [name for name in described.inputs if name.endswith("Prefix")]
        inputs = dict.fromkeys(described.inputs.keys() - {*rivals, *RIVALS[token]}, UNKNOWN)

        assert check(provider, token, inputs).failures == []


@pytest.mark.parametrize("region", ["", "us-east-9"])
def test_a_provider_needs_a_region_that_exists(provider: Aws, region: str) -> None:
    (failure,) = provider.check_config({"region": region})

    assert failure.property == "region"
    if region:
        assert failure.reason.startswith("is 'us-east-9', which is no AWS region: af-south-1, ap-east-1")
    else:
        assert failure.reason == "is not set: run `pulumi config set aws:region us-east-1`"


def test_a_provider_in_an_existing_region_is_accepted(provider: Aws) -> None:
    assert list(provider.check_config({"region": "eu-west-1"})) == []
    assert list(provider.check_config({"region": UNKNOWN})) == []
