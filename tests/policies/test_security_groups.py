"""efa-security-group-self-reference, over the analyzer protocol."""

import pytest

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Diagnostic, Resource

POLICY = "efa-security-group-self-reference"
SELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
ANYWHERE = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}


def messages(found: list[Diagnostic]) -> list[str]:
    assert all((item.policy, item.level) == (POLICY, "mandatory") for item in found), found
    return [item.message for item in found]


def rules_of(group: Resource) -> list[Resource]:
    return [samples.rule("ingress", group), samples.rule("egress", group)]


def test_an_allow_all_egress_rule_is_no_egress_to_itself(preview):
    group = samples.security_group(ingress=[SELF], egress=[ANYWHERE])
    template = samples.launch_template([group])
    found = preview([group, template])
    assert found[0].urn == group.urn
    assert messages(found) == [
        "security group 'efa', on an EFA interface of launch template 'gpu-template': egress is without a rule for all traffic "
        "to the group itself (only address ranges are allowed). "
        "EFA traffic is not IP: a rule on an address range never matches it, and the first transfer hangs or fails. "
        "Add ingress and egress rules with protocol -1 and the group itself as the peer, on a group that every EFA interface "
        "carries."
    ]


def test_inline_self_rules_both_ways_pass(preview):
    group = samples.security_group(ingress=[SELF], egress=[SELF, ANYWHERE])
    assert preview([group, samples.launch_template([group])]) == []


def test_rule_resources_of_the_newer_kind_pass(preview):
    group = samples.security_group()
    assert preview([group, *rules_of(group), samples.launch_template([group])]) == []


@pytest.mark.parametrize("missing", ["ingress", "egress"])
def test_each_direction_is_needed(preview, missing):
    group = samples.security_group()
    rules = [item for item in rules_of(group) if missing not in item.name]
    (message,) = messages(preview([group, *rules, samples.launch_template([group])]))
    assert f": {missing} is without a rule for all traffic" in message


def older_rule(group: Resource, direction: str, **peer: object) -> Resource:
    props = {"type": direction, "protocol": "-1", "fromPort": 0, "toPort": 0, "securityGroupId": UNKNOWN, **peer}
    sources = {"securityGroupId": [group]}
    if "sourceSecurityGroupId" in peer:
        sources["sourceSecurityGroupId"] = [group]
    return Resource("aws:ec2/securityGroupRule:SecurityGroupRule", f"r-{direction}", props, sources)


@pytest.mark.parametrize("peer", [{"self": True}, {"sourceSecurityGroupId": UNKNOWN}])
def test_rule_resources_of_the_older_kind_pass(preview, peer):
    group = samples.security_group()
    rules = [older_rule(group, direction, **peer) for direction in ("ingress", "egress")]
    assert preview([group, *rules, samples.launch_template([group])]) == []


def test_an_older_rule_on_address_ranges_is_not_enough(preview):
    group = samples.security_group()
    rules = [older_rule(group, "ingress", self=True), older_rule(group, "egress", cidrBlocks=["0.0.0.0/0"])]
    (message,) = messages(preview([group, *rules, samples.launch_template([group])]))
    assert "to the group itself (only address ranges are allowed)" in message


def test_a_rule_for_one_protocol_is_not_enough(preview):
    group = samples.security_group()
    rules = [samples.rule("ingress", group, ipProtocol="tcp"), samples.rule("egress", group)]
    (message,) = messages(preview([group, *rules, samples.launch_template([group])]))
    assert "ingress is without a rule for all traffic from the group itself (the rule covers protocol 'tcp'" in message


def test_rules_of_another_group_do_not_count(preview):
    group = samples.security_group()
    other = Resource("aws:ec2/securityGroup:SecurityGroup", "other", {})
    rules = rules_of(group)
    for item in rules:
        item.sources["referencedSecurityGroupId"] = [other]
    assert len(messages(preview([group, other, *rules, samples.launch_template([group])]))) == 2


def test_rules_are_found_by_known_ids_too(preview):
    group = samples.security_group(id="sg-1")
    rules = rules_of(group)
    for item in rules:
        item.sources.clear()
        item.props |= {"securityGroupId": "sg-1", "referencedSecurityGroupId": "sg-1"}
    template = samples.launch_template([group])
    template.sources.clear()
    template.props["networkInterfaces"][0]["securityGroups"] = ["sg-1"]
    assert preview([group, *rules, template]) == []
    assert len(messages(preview([group, template]))) == 2


def test_one_good_group_on_the_interface_is_enough(preview):
    group = samples.security_group()
    other = Resource("aws:ec2/securityGroup:SecurityGroup", "nodes", {})
    assert preview([group, other, *rules_of(group), samples.launch_template([other, group], interfaces=4)]) == []


def test_interfaces_that_may_carry_only_the_bad_group_are_no_proof(preview):
    group = samples.security_group()
    other = Resource("aws:ec2/securityGroup:SecurityGroup", "nodes", {})
    template = samples.launch_template([other, group], interfaces=2)
    template.props["networkInterfaces"][1]["securityGroups"] = [UNKNOWN]
    (message,) = messages(preview([group, other, *rules_of(group), template]))
    assert "networkInterfaces[1].securityGroups is a list of ids not known yet." in message


def test_a_list_of_groups_that_is_unknown_as_a_whole_is_judged_by_where_it_came_from(preview):
    group = samples.security_group()
    template = samples.launch_template([group])
    template.props["networkInterfaces"][0]["securityGroups"] = UNKNOWN
    assert preview([group, *rules_of(group), template]) == []
    assert len(messages(preview([group, template]))) == 2


def test_unset_inline_rules_are_unknown_outputs_and_say_nothing(preview):
    group = samples.security_group()
    assert len(messages(preview([group, samples.launch_template([group])]))) == 2


def test_inline_rules_that_the_program_gives_but_cannot_be_seen_block(preview):
    group = samples.security_group(ingress=UNKNOWN, egress=[SELF])
    source = Resource("pulumi:pulumi:StackReference", "shared", {})
    group.sources["ingress"] = [source]
    (message,) = messages(preview([source, group, samples.launch_template([group])]))
    assert "ingress is not known yet. Whether the group allows all traffic from itself cannot be checked" in message


def cluster(version: str | None) -> Resource:
    props = {"roleArn": UNKNOWN, "vpcConfig": {"subnetIds": [UNKNOWN]}}
    return Resource("aws:eks/cluster:Cluster", "c", props | ({"version": version} if version else {}))


def test_the_cluster_group_alone_is_enough_from_kubernetes_1_33(preview):
    eks = cluster("1.35")
    assert preview([eks, samples.launch_template([eks])]) == []


def test_the_cluster_group_alone_is_not_enough_before(preview):
    eks = cluster("1.32")
    found = preview([eks, samples.launch_template([eks])])
    assert found[0].urn == eks.urn
    (message,) = messages(found)
    assert message.startswith(
        "cluster security group of EKS cluster 'c', on an EFA interface of launch template 'gpu-template': version is '1.32'. "
        "Before Kubernetes 1.33 the cluster security group lacks egress to itself."
    )


def test_the_cluster_group_of_a_version_nobody_set_is_no_proof(preview):
    eks = cluster(None)
    assert "version is not known yet." in messages(preview([eks, samples.launch_template([eks])]))[0]


def test_the_cluster_is_found_behind_its_component(preview):
    component = Resource("eks:index:Cluster", "prod", {})
    eks = cluster("1.32")
    eks.parent = component
    assert len(messages(preview([component, eks, samples.launch_template([component])]))) == 1
    eks.props["version"] = "1.33"
    assert preview([component, eks, samples.launch_template([component])]) == []


def test_a_good_group_beside_an_old_cluster_group_passes(preview):
    eks, group = cluster("1.32"), samples.security_group()
    assert preview([eks, group, *rules_of(group), samples.launch_template([eks, group])]) == []


def test_an_efa_interface_without_any_group_gets_the_cluster_group(preview):
    template = samples.launch_template([])
    eks = cluster("1.35")
    nodes = samples.node_group([samples.subnet("a", "us-east-1a")], template)
    nodes.sources["clusterName"] = [eks]
    assert preview([eks, template, nodes]) == []
    eks.props["version"] = "1.31"
    assert "networkInterfaces[0].securityGroups is missing." in messages(preview([eks, template, nodes]))[0]


def test_a_group_outside_the_stack_is_no_proof_unless_configured(preview):
    template = samples.launch_template([])
    template.props["networkInterfaces"][0]["securityGroups"] = ["sg-9"]
    (message,) = messages(preview([template]))
    assert "networkInterfaces[0].securityGroups is ['sg-9'], not in this stack." in message
    assert preview([template], {POLICY: {"selfReferencing": ["sg-9"]}}) == []
    assert preview([template], {POLICY: {"onUnknown": "advisory"}})[0].level == "advisory"


def test_interfaces_that_are_unknown_as_a_whole_block(preview):
    source = Resource("pulumi:pulumi:StackReference", "shared", {})
    template = samples.launch_template([source])
    template.props["networkInterfaces"] = UNKNOWN
    assert "networkInterfaces is not known yet." in messages(preview([source, template]))[0]


def test_interfaces_of_unknown_origin_block_too(preview):
    template = samples.launch_template([])
    template.props["networkInterfaces"] = UNKNOWN
    assert "networkInterfaces is not known yet." in messages(preview([template]))[0]


def test_a_template_without_efa_interfaces_is_left_alone(preview):
    group = samples.security_group()
    template = samples.launch_template([group])
    template.props["networkInterfaces"][0]["interfaceType"] = "interface"
    assert preview([group, template]) == []


def test_efa_only_interfaces_and_network_interfaces_of_their_own_count(preview):
    group = samples.security_group()
    template = samples.launch_template([group])
    template.props["networkInterfaces"][0]["interfaceType"] = "efa-only"
    interface = Resource(
        "aws:ec2/networkInterface:NetworkInterface",
        "eni",
        {"subnetId": UNKNOWN, "interfaceType": "efa", "securityGroups": [UNKNOWN]},
        {"securityGroups": [group]},
    )
    assert len(messages(preview([group, template]))) == 2
    assert len(messages(preview([group, interface]))) == 2


def test_the_cluster_group_is_known_by_its_id_in_a_later_run(preview):
    eks = cluster("1.35")
    eks.props["vpcConfig"]["clusterSecurityGroupId"] = "sg-cluster"
    template = samples.launch_template([eks])
    template.props["networkInterfaces"][0]["securityGroups"] = ["sg-cluster"]
    assert preview([eks, template]) == []
    eks.props["version"] = "1.32"
    assert len(messages(preview([eks, template]))) == 1


@pytest.mark.parametrize("protocol", ["ALL", "all", "-1", -1])
def test_every_spelling_of_all_protocols_is_one(preview, protocol):
    group = samples.security_group(ingress=[{**SELF, "protocol": protocol}], egress=[{**SELF, "protocol": protocol}])
    assert preview([group, samples.launch_template([group])]) == []


def test_two_groups_on_one_interface_may_share_the_two_directions(preview):
    one, two = samples.security_group(), Resource("aws:ec2/securityGroup:SecurityGroup", "two", {})
    rules = [samples.rule("ingress", one), samples.rule("egress", two)]
    assert preview([one, two, *rules, samples.launch_template([one, two])]) == []
    assert len(messages(preview([one, two, *rules, samples.launch_template([one])]))) == 1


def test_two_groups_on_one_interface_may_let_each_other_through(preview):
    one, two = samples.security_group(), Resource("aws:ec2/securityGroup:SecurityGroup", "two", {})
    rules = [*rules_of(one), *rules_of(two)]
    for item in rules[:2]:
        item.sources["referencedSecurityGroupId"] = [two]
    assert preview([one, two, *rules[:2], samples.launch_template([one, two])]) == []
    assert len(messages(preview([one, two, *rules[:2], samples.launch_template([one])]))) == 2


def test_a_rule_resource_beside_inline_rules_will_be_revoked(preview):
    group = samples.security_group(egress=[ANYWHERE])
    resources = [group, *rules_of(group), samples.launch_template([group])]
    found = preview(resources)
    assert found[0].urn == group.urn
    (message,) = messages(found)
    assert ": egress is written inline beside a rule resource that lets the group reach itself." in message
    assert preview(resources, {POLICY: {"onUnknown": "advisory"}})[0].level == "advisory"
    group.props["egress"] = [ANYWHERE, SELF]
    assert preview(resources) == []


def test_inline_rules_that_the_provider_reads_back_are_not_the_programs(pack):
    group = samples.security_group(egress=[ANYWHERE])
    group.name = "never analyzed"
    assert pack.preview([group, *rules_of(group), samples.launch_template([group])], analyzed=False) == []


def test_a_version_of_absurd_length_is_no_proof(preview):
    eks = cluster("1." + "9" * 5000)
    assert (
        "Whether the cluster's own security group has both rules"
        in messages(preview([eks, samples.launch_template([eks])]))[0]
    )
