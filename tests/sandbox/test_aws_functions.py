"""The aws stand-in's data sources."""

import json
from typing import Any

import pytest

from sandbox.aws import schema
from sandbox.aws.data_sources import _ANSWERS
from sandbox.aws.provider import Aws
from sandbox.aws.seeds import EXISTING_NETWORK
from sandbox.standin import StandInError

ARGUMENTS: dict[str, dict[str, Any]] = {
    "aws:ec2/getInstanceType:getInstanceType": {"instanceType": "g6.8xlarge"},
    "aws:ec2/getSecurityGroup:getSecurityGroup": {"vpcId": EXISTING_NETWORK.vpc_id, "name": "default"},
    "aws:ec2/getSubnet:getSubnet": {"id": EXISTING_NETWORK.subnet_ids["us-east-1a"]},
    "aws:ec2/getVpc:getVpc": {"id": EXISTING_NETWORK.vpc_id},
    "aws:eks/getAddonVersion:getAddonVersion": {"addonName": "kube-proxy", "kubernetesVersion": "1.35"},
    "aws:iam/getPolicyDocument:getPolicyDocument": {"statements": []},
    "aws:servicequotas/getServiceQuota:getServiceQuota": {"serviceCode": "ec2", "quotaCode": "L-DB2E81BA"},
    "aws:ssm/getParameter:getParameter": {
        "name": "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
    },
}
ECHOED = {
    *("allAvailabilityZones", "excludeNames", "excludeZoneIds", "filters", "locationType", "mostRecent", "tags"),
    *("overrideJson", "overridePolicyDocuments", "policyId", "sourceJson", "sourcePolicyDocuments", "state"),
}


@pytest.fixture(scope="module")
def provider() -> Aws:
    stand_in = Aws()
    stand_in.configure({"region": "us-east-1"})
    return stand_in


def refusal(provider: Aws, token: str, args: dict[str, Any]) -> str:
    with pytest.raises(StandInError) as found:
        provider.invoke(token, args)
    return str(found.value)


@pytest.mark.parametrize("token", _ANSWERS)
def test_an_answer_has_all_and_only_the_functions_results(provider: Aws, token: str) -> None:
    described = schema.function(token)
    assert described is not None

    answer = provider.invoke(token, ARGUMENTS.get(token, {}))

    assert set(answer) <= described.result
    assert described.result - set(answer) <= ECHOED


def test_available_zones_of_the_region(provider: Aws) -> None:
    token = "aws:index/getAvailabilityZones:getAvailabilityZones"

    answer = provider.invoke(token, {"state": "available", "excludeNames": ["us-east-1e"]})

    assert answer["names"] == ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1f"]
    assert answer["zoneIds"][0] == "use1-az6"


def test_zones_of_another_region(provider: Aws) -> None:
    answer = provider.invoke("aws:index/getAvailabilityZones:getAvailabilityZones", {"region": "eu-central-1"})

    assert answer["names"] == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]


def test_where_an_instance_type_is_offered(provider: Aws) -> None:
    answer = provider.invoke(
        "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings",
        {"locationType": "availability-zone", "filters": [{"name": "instance-type", "values": ["g6e.12xlarge"]}]},
    )

    assert sorted(answer["locations"]) == ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"]


def test_what_an_instance_type_has(provider: Aws) -> None:
    answer = provider.invoke("aws:ec2/getInstanceType:getInstanceType", {"instanceType": "g6.8xlarge"})

    assert (answer["defaultVcpus"], answer["efaMaximumInterfaces"], answer["memorySize"]) == (32, 1, 131072)
    assert answer["gpuses"] == [{"count": 1, "manufacturer": "NVIDIA", "memorySize": 22888, "name": "L4"}]


@pytest.mark.parametrize(
    ("region", "partition", "suffix"),
    [
        ("us-east-1", "aws", "amazonaws.com"),
        ("cn-north-1", "aws-cn", "amazonaws.com.cn"),
        ("us-gov-west-1", "aws-us-gov", "amazonaws.com"),
    ],
)
def test_partition_of_the_region(region: str, partition: str, suffix: str) -> None:
    stand_in = Aws()
    stand_in.configure({"region": region})

    answer = stand_in.invoke("aws:index/getPartition:getPartition", {})

    assert (answer["partition"], answer["dnsSuffix"]) == (partition, suffix)


def test_a_quota_is_the_one_of_the_seeds(provider: Aws) -> None:
    token = "aws:servicequotas/getServiceQuota:getServiceQuota"

    answer = provider.invoke(token, {"serviceCode": "ec2", "quotaName": "Running On-Demand G and VT instances"})

    assert (answer["quotaCode"], answer["value"]) == ("L-DB2E81BA", 256.0)


def test_an_add_on_version_follows_kubernetes(provider: Aws) -> None:
    answer = provider.invoke(
        "aws:eks/getAddonVersion:getAddonVersion", {"addonName": "kube-proxy", "kubernetesVersion": "1.34"}
    )

    assert answer["version"] == "v1.34.0-eksbuild.1"


@pytest.mark.parametrize(
    ("token", "args", "expected"),
    [
        ("aws:ec2/getVpc:getVpc", {"idd": "vpc-1"},
         "aws:ec2/getVpc:getVpc: idd is no property that getVpc has there; did you mean 'id'?"),
        ("aws:ec2/getVpc:getVpc", {"cidrBlock": "10.99.0.0/16"}, "aws:ec2/getVpc: no Vpc in us-east-1 matches"),
        ("aws:ec2/getSubnet:getSubnet", {"vpcId": EXISTING_NETWORK.vpc_id},
         "aws:ec2/getSubnet: 3 (be more specific) Subnet in us-east-1 matches"),
        ("aws:ec2/getInstanceType:getInstanceType", {"instanceType": "g6.9xlarge"},
         "aws:ec2/getInstanceType: EC2 has no instance type g6.9xlarge in us-east-1"),
        ("aws:ec2/getInstanceType:getInstanceType", {},
         "aws:ec2/getInstanceType: instanceType is required and not set"),
        ("aws:index/getRegion:getRegion", {"name": "mars"},
         "aws:index/getRegion: finding Region using name (mars): no matching region found"),
        ("aws:eks/getAddonVersion:getAddonVersion", {"addonName": "istio", "kubernetesVersion": "1.35"},
         "aws:eks/getAddonVersion: the sandbox has no version of add-on istio; it knows aws-ebs-csi-driver, coredns, "
         "eks-pod-identity-agent, kube-proxy, vpc-cni"),
        ("aws:ec2/getGoose:getGoose", {}, "aws:ec2/getGoose:getGoose is no function of the aws provider"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_answered_says_why(
    provider: Aws, token: str, args: dict[str, Any], expected: str
) -> None:
    assert refusal(provider, token, args) == expected


def test_a_function_that_is_not_simulated_is_named(provider: Aws) -> None:
    message = refusal(provider, "aws:sqs/getQueue:getQueue", {"name": "jobs"})

    assert message.startswith("the sandbox cannot answer aws:sqs/getQueue:getQueue; it knows getAddonVersion, ")


def test_an_aws_refusal_keeps_its_own_text(provider: Aws) -> None:
    message = refusal(provider, "aws:ssm/getParameter:getParameter", {"name": "/none"})

    assert message.startswith("operation error SSM: GetParameter, https response error StatusCode: 400")
    assert message.endswith("ParameterNotFound: Parameter /none not found.")


def policy(provider: Aws, **args: Any) -> dict[str, Any]:
    return provider.invoke("aws:iam/getPolicyDocument:getPolicyDocument", args)


def test_a_policy_document_is_rendered_as_the_provider_renders_it(provider: Aws) -> None:
    answer = policy(
        provider,
        statements=[
            {
                "sid": "Trust",
                "actions": ["sts:AssumeRole"],
                "principals": [{"type": "Service", "identifiers": ["eks.amazonaws.com", "ec2.amazonaws.com"]}],
                "conditions": [{"test": "StringEquals", "variable": "aws:user", "values": ["&{aws:username}"]}],
            }
        ],
    )

    assert answer["json"] == (
        "{\n"
        '  "Version": "2012-10-17",\n'
        '  "Statement": [\n'
        "    {\n"
        '      "Sid": "Trust",\n'
        '      "Effect": "Allow",\n'
        '      "Action": "sts:AssumeRole",\n'
        '      "Principal": {\n'
        '        "Service": [\n'
        '          "eks.amazonaws.com",\n'
        '          "ec2.amazonaws.com"\n'
        "        ]\n"
        "      },\n"
        '      "Condition": {\n'
        '        "StringEquals": {\n'
        '          "aws:user": "${aws:username}"\n'
        "        }\n"
        "      }\n"
        "    }\n"
        "  ]\n"
        "}"
    )
    assert json.loads(answer["minifiedJson"]) == json.loads(answer["json"])


def test_everybody_is_written_as_a_star(provider: Aws) -> None:
    answer = policy(
        provider,
        statements=[{"effect": "Deny", "resources": ["*"], "principals": [{"type": "*", "identifiers": ["*"]}]}],
    )

    assert json.loads(answer["json"])["Statement"] == [{"Effect": "Deny", "Resource": "*", "Principal": "*"}]


def test_statements_override_those_of_the_same_sid(provider: Aws) -> None:
    source = json.dumps({"Statement": [{"Sid": "A", "Effect": "Allow"}, {"Sid": "B", "Effect": "Allow"}]})

    answer = policy(provider, sourcePolicyDocuments=[source], statements=[{"sid": "B", "effect": "Deny"}])

    found = json.loads(answer["json"])["Statement"]
    assert found == [{"Sid": "A", "Effect": "Allow"}, {"Sid": "B", "Effect": "Deny"}]


def test_two_statements_may_not_share_a_sid(provider: Aws) -> None:
    message = refusal(
        provider, "aws:iam/getPolicyDocument:getPolicyDocument", {"statements": [{"sid": "A"}, {"sid": "A"}]}
    )

    assert message == "aws:iam/getPolicyDocument: duplicate Sid (A)"
