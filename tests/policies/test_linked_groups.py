"""Several node groups, each sound by itself, on which one prefill/decode workload runs: one zone, and one security group."""

from typing import Any

import pytest

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Diagnostic, Resource

ZONES = "gpu-node-group-single-az"
SECURITY_GROUPS = "efa-security-group-self-reference"
A, B = "us-east-1a", "us-east-1b"


def only(found: list[Diagnostic], policy: str) -> Diagnostic:
    (item,) = found
    assert (item.policy, item.level) == (policy, "mandatory")
    return item


def service(selectors: list[dict[str, str]] | None = None, **pod: Any) -> Resource:
    found = samples.ray_service()
    for index, group in enumerate(samples.workers(found)):
        selector = selectors[index] if selectors else {"role": group["groupName"]}
        group["template"]["spec"] |= {"nodeSelector": selector, **pod}
    return found


def group(name: str) -> Resource:
    return Resource("aws:ec2/securityGroup:SecurityGroup", name, {"vpcId": UNKNOWN})


def rules(of: Resource, peer: Resource) -> list[Resource]:
    found = [samples.rule(direction, of) for direction in ("ingress", "egress")]
    for item in found:
        item.name = f"{item.name}-{of.name}-{peer.name}"
        item.sources["referencedSecurityGroupId"] = [peer]
    return found


def template(name: str, groups: list[Resource]) -> Resource:
    found = samples.launch_template(groups)
    found.name = name
    return found


def nodes(subnets: list[Resource], templates: list[Resource], **props: Any) -> list[Resource]:
    """A node group for each role, in its own subnet and with its own template."""
    return [
        samples.node_group([subnet], used, name=role, labels={"role": role}, **props)
        for role, subnet, used in zip(("prefill", "decode"), subnets, templates, strict=True)
    ]


def in_zones(first: str | None, second: str | None, workload: Resource, **props: Any) -> list[Resource]:
    efa = group("efa")
    used = template("gpu", [efa])
    subnets = [samples.subnet("first", first), samples.subnet("second", second)]
    return [*subnets, efa, *rules(efa, efa), used, *nodes(subnets, [used, used], **props), workload]


def test_two_node_groups_of_one_service_in_two_zones_are_a_violation(preview):
    resources = in_zones(A, B, service())
    item = only(preview(resources), ZONES)
    assert item.urn == resources[-2].urn
    assert item.message == (
        "GPU node group 'decode', of worker group 'decode' of RayService 'service': subnetIds is in us-east-1b, while worker "
        "group 'prefill' runs in us-east-1a. EFA does not cross Availability Zones: prefill and decode in two zones cannot "
        "exchange the KV cache. Put all node groups that RayService 'service' runs on into one zone."
    )


def test_two_node_groups_of_one_service_in_one_zone_pass(preview):
    assert preview(in_zones(A, A, service())) == []


def test_two_node_groups_in_two_zones_that_carry_the_same_labels_are_a_violation(preview):
    resources = in_zones(A, B, service([{"pool": "gpu"}] * 2))
    for item in resources[-3:-1]:
        item.props["labels"] = {"pool": "gpu"}
    only(preview(resources), ZONES)


def test_workers_that_demand_only_a_device_may_run_on_any_efa_nodes(preview):
    only(preview(in_zones(A, B, service([{}, {}]))), ZONES)


def test_workers_that_do_not_tolerate_a_groups_taint_do_not_run_there(preview):
    resources = in_zones(A, B, service([{}, {}]))
    resources[-2].props["taints"] = [{"key": "team", "value": "other", "effect": "NO_SCHEDULE"}]
    assert preview(resources) == []
    resources[-1] = service([{}, {}], tolerations=[{"key": "team", "operator": "Exists"}])
    only(preview(resources), ZONES)


def test_node_groups_of_two_clusters_are_not_compared(preview):
    resources = in_zones(A, B, service([{}, {}]))
    resources[-3].props["clusterName"], resources[-2].props["clusterName"] = "one", "two"
    assert preview(resources) == []


def test_independent_gpu_groups_in_two_zones_are_left_alone(preview):
    resources = in_zones(A, B, service([{"role": "prefill"}] * 2))
    assert preview(resources) == []
    assert preview(resources[:-1]) == []


def test_a_training_cluster_may_keep_groups_of_two_zones_apart(preview):
    groups = [samples.worker(name) for name in ("prefill", "decode")]
    for item in groups:
        item["template"]["spec"]["nodeSelector"] = {"role": item["groupName"]}
    training = Resource("kubernetes:ray.io/v1:RayCluster", "train", {"spec": {"workerGroupSpecs": groups}})
    assert preview(in_zones(A, B, training)) == []


def test_a_zone_that_the_stack_does_not_show_is_no_proof_for_a_second_group(preview):
    resources = in_zones(A, None, service())
    item = only(preview(resources), ZONES)
    assert "subnetIds is in a zone that the stack does not show, while worker group 'prefill' runs in" in item.message
    (advice,) = preview(resources, {ZONES: {"onUnknown": "advisory"}})
    assert advice.level == "advisory"


def test_two_groups_on_one_subnet_are_in_one_zone_whichever_it_is(preview):
    resources = in_zones(None, None, service())
    resources[-2].sources["subnetIds"] = resources[-3].sources["subnetIds"]
    assert preview(resources) == []


def test_an_excluded_group_is_not_compared(preview):
    assert preview(in_zones(A, B, service()), {ZONES: {"exclude": ["decode"]}}) == []


@pytest.mark.parametrize("label", ["topology.kubernetes.io/zone", "topology.k8s.aws/zone-id"])
def test_worker_groups_pinned_to_two_zones_are_a_violation(preview, label):
    first, second = (A, B) if label.endswith("zone") else ("use1-az1", "use1-az2")
    pinned = service([{label: first}, {label: second}])
    for item in samples.workers(pinned):
        item["template"]["spec"]["nodeSelector"]["elsewhere"] = "yes"
    item = only(preview([pinned]), ZONES)
    assert item.urn == pinned.urn
    assert f"workerGroupSpecs[1].template.spec.nodeSelector is in {second}, while" in item.message


def test_worker_groups_pinned_to_one_zone_of_two_groups_pass(preview):
    pinned = service([{"topology.kubernetes.io/zone": A}] * 2)
    assert preview(in_zones(A, B, pinned)) == []


def pool(name: str, zone: str) -> Resource:
    requirements = [
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g6"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
    ]
    inner = {"metadata": {"labels": {"role": name}}, "spec": {"requirements": requirements}}
    props = {"metadata": {"name": name}, "spec": {"template": inner}}
    return Resource("kubernetes:karpenter.sh/v1:NodePool", name, props)


def test_two_karpenter_pools_of_one_service_in_two_zones_are_a_violation(preview):
    pools = [pool("prefill", A), pool("decode", B)]
    assert only(preview([*pools, service()]), ZONES).urn == pools[1].urn
    assert preview([pool("prefill", A), pool("decode", A), service()]) == []
    assert preview(pools) == []


def apart(groups: list[list[Resource]], extra: list[Resource], workload: Resource | None = None) -> list[Resource]:
    subnet = samples.subnet("gpu", A)
    templates = [template(f"template-{index}", used) for index, used in enumerate(groups)]
    unique = {item.name: item for used in groups for item in used}
    return [subnet, *unique.values(), *extra, *templates, *nodes([subnet] * 2, templates), workload or service()]


def test_two_self_referencing_groups_that_do_not_let_each_other_in_are_a_violation(preview):
    one, two = group("one"), group("two")
    resources = apart([[one], [two]], [*rules(one, one), *rules(two, two)])
    item = only(preview(resources), SECURITY_GROUPS)
    assert item.message.startswith(
        "launch template 'template-1': networkInterfaces[0].securityGroups is without a group that launch template "
        "'template-0' of node group 'prefill' has too, and without rules between the two. RayService 'service' runs on both"
    )
    assert preview(resources[:-1]) == []


def test_a_group_in_common_is_enough(preview):
    one, two, common = group("one"), group("two"), group("common")
    assert preview(apart([[one, common], [two, common]], rules(common, common))) == []


def test_rules_between_the_two_groups_are_enough(preview):
    one, two = group("one"), group("two")
    own = [*rules(one, one), *rules(two, two)]
    assert preview(apart([[one], [two]], [*own, *rules(one, two), *rules(two, one)])) == []
    assert len(preview(apart([[one], [two]], [*own, *rules(one, two)]))) == 1


def test_groups_outside_the_stack_are_no_proof_unless_configured(preview):
    one, two = group("one"), group("two")
    resources = apart([[one], [two]], [*rules(one, one), *rules(two, two)])
    for item in resources:
        if item.name.startswith("template-"):
            item.props["networkInterfaces"][0]["securityGroups"].append("sg-nodes")
    (advice,) = preview(resources, {SECURITY_GROUPS: {"onUnknown": "advisory"}})
    assert advice.level == "advisory"
    assert preview(resources, {SECURITY_GROUPS: {"selfReferencing": ["sg-nodes"]}}) == []
