import pytest

from components import addon_values
from components.settings.service_rules import TAKEN_NAMESPACES
from tests.unit.stack_files import REMOVED, faults, faults_of, raw, settings

EXISTING = {
    "vpcId": "vpc-0123456789abcdef0",
    "privateSubnets": {"us-east-1a": "subnet-0123456789abcdef0", "us-east-1b": "subnet-0123456789abcdef1"},
}
SET = "Type: pulumi config set --path 'ray-llm-eks:"
RM = "Type: pulumi config rm --path 'ray-llm-eks:"


def test_an_existing_network_needs_no_address_plan() -> None:
    network = settings(network=EXISTING).network

    assert network.existing
    assert network.zone_names == ("us-east-1a", "us-east-1b")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("cidr", "10.20.0.0/16", '"10.20.0.0/16"'),
        ("zones", ["us-east-1a", "us-east-1b"], '["us-east-1a", "us-east-1b"]'),
        ("natGateways", "single", '"single"'),
    ],
)
def test_an_existing_network_and_a_new_one_do_not_mix(name: str, value: object, shown: str) -> None:
    assert faults(network=EXISTING | {name: value}) == [
        f"ray-llm-eks:network.{name} is {shown}: it belongs to a new VPC, and vpcId or privateSubnets name an existing one. "
        f"{RM}network.{name}'"
    ]


def test_an_existing_vpc_needs_its_subnets() -> None:
    assert faults(network={"vpcId": EXISTING["vpcId"]}) == [
        "ray-llm-eks:network.privateSubnets: vpcId is given, so a private subnet in each of two zones is needed. "
        f"{SET}network.privateSubnets.us-east-1a' subnet-0123456789abcdef0"
    ]


def test_existing_subnets_need_their_vpc() -> None:
    assert faults(network={"privateSubnets": EXISTING["privateSubnets"]}) == [
        "ray-llm-eks:network.vpcId: privateSubnets are given, so the VPC they lie in is needed. "
        f"{SET}network.vpcId' vpc-0123456789abcdef0"
    ]


def test_an_existing_network_has_two_zones() -> None:
    one = {"us-east-1a": "subnet-0123456789abcdef0"}

    assert faults(network=EXISTING | {"privateSubnets": one}) == [
        'ray-llm-eks:network.privateSubnets is ["us-east-1a"]: a control plane needs at least two zones. '
        f"{SET}network.privateSubnets.us-east-1b' subnet-0123456789abcdef0"
    ]


def test_two_zones_do_not_share_a_subnet() -> None:
    twice = {"us-east-1a": "subnet-0123456789abcdef0", "us-east-1b": "subnet-0123456789abcdef0"}

    assert faults(network=EXISTING | {"privateSubnets": twice}) == [
        f'ray-llm-eks:network.privateSubnets.{zone} is "subnet-0123456789abcdef0": two zones name this subnet, and a subnet lies '
        f"in one zone. Write the subnet of {zone}."
        for zone in twice
    ]


def test_a_subnet_is_given_by_its_id() -> None:
    named = EXISTING["privateSubnets"] | {"us-east-1b": "private-b"}

    assert faults(network=EXISTING | {"privateSubnets": named}) == [
        'ray-llm-eks:network.privateSubnets.us-east-1b is "private-b": it must be the id of a subnet: subnet- and 8 to 17 '
        f"hexadecimal digits. {SET}network.privateSubnets.us-east-1b' subnet-0123456789abcdef0"
    ]


def test_a_network_has_two_zones() -> None:
    assert faults(network__zones=["us-east-1a"]) == [
        'ray-llm-eks:network.zones is ["us-east-1a"]: a control plane needs at least two zones. '
        f"{SET}network.zones[1]' us-east-1b"
    ]


def test_zones_have_no_default() -> None:
    assert faults(network__zones=REMOVED) == [
        f"ray-llm-eks:network.zones is []: a control plane needs at least two zones. {SET}network.zones[0]' us-east-1a"
    ]


def test_no_zone_stands_twice() -> None:
    assert faults(network__zones=["us-east-1a", "us-east-1b", "us-east-1a"]) == [
        'ray-llm-eks:network.zones is ["us-east-1a", "us-east-1b", "us-east-1a"]: zone us-east-1a stands in it 2 times. '
        'Write ["us-east-1a", "us-east-1b"] at ray-llm-eks:network.zones in the stack file.'
    ]


@pytest.mark.parametrize("zone", ["us-west-2a", "use1-az1", "us-east-1-bos-1a", "us-east-1"])
def test_a_zone_is_one_of_the_region(zone: str) -> None:
    assert faults(network__zones=["us-east-1a", "us-east-1b", zone]) == [
        f'ray-llm-eks:network.zones[2] is "{zone}": it is not the name of an Availability Zone of us-east-1, which are us-east-1 '
        "and a letter. Write such as us-east-1a, or move the stack: pulumi config set aws:region <region>"
    ]


def test_a_zone_that_refuses_control_planes_is_refused() -> None:
    assert faults(network__zones=["us-east-1a", "us-east-1e"]) == [
        'ray-llm-eks:network.zones[1] is "us-east-1e": EKS refuses a control plane there '
        "(UnsupportedAvailabilityZoneException). Choose another zone of us-east-1."
    ]


@pytest.mark.parametrize(
    ("cidr", "why", "instead"),
    [
        ("10.20.0.0/33", "it is not an IPv4 range", "10.20.0.0/16"),
        ("10.20.1.0/16", "it does not start at the first address of its range", "10.20.0.0/16"),
        (
            "10.0.0.0/8",
            "a VPC takes /16 at most, and below /20 its subnets have no room for nodes and pods",
            "10.0.0.0/16",
        ),
        (
            "10.20.4.0/24",
            "a VPC takes /16 at most, and below /20 its subnets have no room for nodes and pods",
            "10.20.0.0/16",
        ),
        (
            "52.20.0.0/16",
            "it is not in a private range, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10: other addresses would be cut off, or mean something else to EC2",
            "10.20.0.0/16",
        ),
    ],
)
def test_the_address_range_is_private_and_of_a_useful_size(cidr: str, why: str, instead: str) -> None:
    assert faults(network__cidr=cidr) == [f'ray-llm-eks:network.cidr is "{cidr}": {why}. {SET}network.cidr\' {instead}']


def test_somebody_reaches_the_api() -> None:
    assert faults(cluster__endpoint={"public": False, "private": False}) == [
        "ray-llm-eks:cluster.endpoint: public and private are both false, so nobody reaches the Kubernetes API. "
        f"{SET}cluster.endpoint.private' true"
    ]


def test_a_public_endpoint_says_for_whom() -> None:
    assert faults(cluster__endpoint__publicCidrs=[]) == [
        "ray-llm-eks:cluster.endpoint.publicCidrs: the public endpoint is on, so it needs the address ranges that may reach it. "
        f"{SET}cluster.endpoint.publicCidrs[0]' '<your address>/32'"
    ]


def test_a_private_endpoint_has_no_public_ranges() -> None:
    assert faults(cluster__endpoint__public=False) == [
        'ray-llm-eks:cluster.endpoint.publicCidrs is ["203.0.113.0/24"]: the public endpoint is off, and EKS refuses ranges for it. '
        f"{RM}cluster.endpoint.publicCidrs'"
    ]


def test_a_public_range_is_a_range() -> None:
    assert faults(cluster__endpoint__publicCidrs=["office"]) == [
        'ray-llm-eks:cluster.endpoint.publicCidrs[0] is "office": it is not an address range. '
        f"{SET}cluster.endpoint.publicCidrs[0]' '<your address>/32'"
    ]


def test_the_whole_internet_is_refused() -> None:
    assert faults(cluster__endpoint__publicCidrs=["0.0.0.0/0"]) == [
        'ray-llm-eks:cluster.endpoint.publicCidrs[0] is "0.0.0.0/0": it opens the Kubernetes API to the whole internet. '
        f"{SET}cluster.endpoint.publicCidrs[0]' '<your address>/32' "
        "(or, if it is meant, set ray-llm-eks:cluster.endpoint.allowAnywhere true)"
    ]


def test_the_whole_internet_is_allowed_where_it_is_meant() -> None:
    assert faults(cluster__endpoint__publicCidrs=["0.0.0.0/0"], cluster__endpoint__allowAnywhere=True) == []


OPS = "arn:aws:iam::123456789012:role/ops"


@pytest.mark.parametrize("admin", [OPS, "arn:aws-us-gov:iam::123456789012:user/team/ada.l"])
def test_a_role_or_user_may_administer_the_cluster(admin: str) -> None:
    assert settings(cluster__admins=[admin]).cluster.admins == [admin]


@pytest.mark.parametrize(
    "admin", ["ops", "arn:aws:iam::123456789012:root", "arn:aws:iam::123456789012:group/ops", OPS[:-3]]
)
def test_an_admin_is_a_role_or_a_user(admin: str) -> None:
    assert faults(cluster__admins=[admin]) == [
        f'ray-llm-eks:cluster.admins[0] is "{admin}": it must be the ARN of an IAM role or user; groups and the account\'s root are let '
        f"in by no access entry. {SET}cluster.admins[0]' {OPS}"
    ]


def test_a_session_is_no_admin_but_its_role_is() -> None:
    session = "arn:aws:sts::123456789012:assumed-role/ops/ada"

    assert faults(cluster__admins=[session]) == [
        f'ray-llm-eks:cluster.admins[0] is "{session}": it is a session of a role, which ends, and EKS lets in the role itself. '
        f"{SET}cluster.admins[0]' {OPS} (with the role's path, if it has one)"
    ]


def test_no_admin_stands_twice() -> None:
    assert faults(cluster__admins=[OPS, OPS]) == [
        f'ray-llm-eks:cluster.admins[1] is "{OPS}": it stands in the list already, and EKS takes one access entry for each. '
        f"{RM}cluster.admins[1]'"
    ]


@pytest.mark.parametrize("version", ["1.29", "1.99"])
def test_a_kubernetes_version_eks_does_not_offer(version: str) -> None:
    assert faults(cluster__kubernetesVersion=version) == [
        f'ray-llm-eks:cluster.kubernetesVersion is "{version}": EKS offers 1.32, 1.33, 1.34, 1.35, 1.36. '
        "Type: pulumi config set --path --type string 'ray-llm-eks:cluster.kubernetesVersion' 1.35"
    ]


def test_cloudwatch_keeps_logs_for_certain_numbers_of_days() -> None:
    assert faults(cluster__logRetentionDays=31) == [
        "ray-llm-eks:cluster.logRetentionDays is 31: CloudWatch keeps logs for 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, "
        f"545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653 days. {SET}cluster.logRetentionDays' 60"
    ]


def test_the_clusters_own_tag_is_refused() -> None:
    assert faults(tags={"team": "ml", "kubernetes.io/cluster/ray": "owned"}) == [
        'ray-llm-eks:tags["kubernetes.io/cluster/ray"]: this tag on the EFA security group too makes load balancers refuse the nodes: '
        f'one group may carry it. {RM}tags["kubernetes.io/cluster/ray"]\''
    ]


def test_tags_of_aws_are_refused() -> None:
    assert faults(tags={"AWS:owner": "ml"}) == [
        f'ray-llm-eks:tags["AWS:owner"]: AWS keeps keys that start with aws: for itself. {RM}tags["AWS:owner"]\''
    ]


def test_tags_are_not_too_long() -> None:
    assert faults(tags={"team": "m" * 257}) == [
        "ray-llm-eks:tags.team: a key has 1 to 128 characters and a value at most 256. Shorten it."
    ]


def test_a_tag_is_text() -> None:
    assert faults(tags={"cost-center": 42}) == [
        "ray-llm-eks:tags.cost-center is 42: it must be text. "
        "Type: pulumi config set --path --type string 'ray-llm-eks:tags.cost-center' 42"
    ]


def test_the_region_is_needed() -> None:
    assert faults_of(raw(), aws_region=None) == [
        "aws:region: it must be set: zones, endpoints and the image's registry follow from it. "
        "Type: pulumi config set aws:region us-east-1"
    ]


def test_the_region_is_a_region() -> None:
    assert faults_of(raw(), aws_region="Virginia") == [
        'aws:region is "Virginia": it is not the name of an AWS region. Type: pulumi config set aws:region us-east-1'
    ]


def test_another_region_moves_every_zone() -> None:
    assert [fault.partition(":")[2].partition(" ")[0] for fault in faults_of(raw(), aws_region="us-west-2")] == [
        "network.zones[0]",
        "network.zones[1]",
        "gpuNodes.zone",
    ]


def test_the_namespaces_of_the_add_ons_are_known_as_taken() -> None:
    assert {addon_values.PLUGIN_NAMESPACE, addon_values.OPERATOR_NAMESPACE} <= set(TAKEN_NAMESPACES)


def test_one_zone_written_twice_is_one_fault_and_its_fix_has_two_zones() -> None:
    assert faults(network__zones=["us-east-1a", "us-east-1a"]) == [
        'ray-llm-eks:network.zones is ["us-east-1a", "us-east-1a"]: zone us-east-1a stands in it 2 times. Write ["us-east-1a", '
        '"us-east-1b"] at ray-llm-eks:network.zones in the stack file.'
    ]


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "172.31.0.0/16", "192.168.0.0/18", "100.64.0.0/16", "100.127.0.0/16"])
def test_a_vpc_takes_the_private_and_the_shared_ranges(cidr: str) -> None:
    assert faults(network__cidr=cidr) == []


@pytest.mark.parametrize("cidr", ["127.0.0.0/16", "169.254.0.0/16", "224.0.0.0/16", "198.18.0.0/16", "172.32.0.0/16"])
def test_a_vpc_takes_no_range_that_means_something_else(cidr: str) -> None:
    assert faults(network__cidr=cidr) == [
        f'ray-llm-eks:network.cidr is "{cidr}": it is not in a private range, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, '
        "100.64.0.0/10: other addresses would be cut off, or mean something else to EC2. Type: pulumi config set --path "
        "'ray-llm-eks:network.cidr' 10.20.0.0/16"
    ]


@pytest.mark.parametrize("cidr", ["10.0.0.0/8", "192.168.1.7/32", "100.64.0.0/10", "127.0.0.1/32", "169.254.0.0/16"])
def test_no_client_of_the_public_endpoint_has_a_private_address(cidr: str) -> None:
    assert faults(cluster__endpoint__publicCidrs=[cidr]) == [
        f'ray-llm-eks:cluster.endpoint.publicCidrs[0] is "{cidr}": it is a private range, which EKS refuses: the public endpoint sees '
        "the address you have on the internet. Type: pulumi config set --path 'ray-llm-eks:cluster.endpoint.publicCidrs[0]' "
        "'<your address>/32'"
    ]


@pytest.mark.parametrize("cidr", ["2001:db8::/32", "::/0"])
def test_the_public_endpoint_takes_no_ipv6_range(cidr: str) -> None:
    assert faults(cluster__endpoint__publicCidrs=[cidr]) == [
        f'ray-llm-eks:cluster.endpoint.publicCidrs[0] is "{cidr}": it is an IPv6 range, and EKS takes IPv4 ranges for the endpoint of '
        "an IPv4 cluster. Type: pulumi config set --path 'ray-llm-eks:cluster.endpoint.publicCidrs[0]' '<your IPv4 address>/32'"
    ]
