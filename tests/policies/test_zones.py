"""gpu-node-group-single-az, over the analyzer protocol."""

import pytest

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Diagnostic, Resource

POLICY = "gpu-node-group-single-az"
A, B = "us-east-1a", "us-east-1b"


def only(found: list[Diagnostic]) -> Diagnostic:
    (item,) = [item for item in found if item.policy == POLICY]
    assert item.level == "mandatory"
    return item


def test_a_gpu_group_over_two_zones_is_named_with_both(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    group = samples.node_group(zones)
    item = only(preview([*zones, group]))
    assert item.urn == group.urn
    assert item.message == (
        "GPU node group 'gpu', judged because its instance type is g6.8xlarge: subnetIds is 2 subnets in us-east-1a and us-east-1b. "
        "EFA does not cross Availability Zones: prefill and decode in two zones cannot exchange the KV cache. "
        "Give the group one subnet, or subnets of one zone only; the cluster itself may span zones."
    )


def test_two_subnets_of_one_zone_pass(preview):
    zones = [samples.subnet("a", A), samples.subnet("a2", A)]
    assert preview([*zones, samples.node_group(zones)]) == []


def test_one_subnet_passes_whatever_its_zone(preview):
    assert preview([samples.node_group([samples.subnet("a", None)])]) == []


def test_subnets_without_a_zone_are_no_proof(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", None)]
    item = only(preview([*zones, samples.node_group(zones)]))
    assert "subnetIds is 2 subnets whose zones the stack does not show (subnet 'b')" in item.message


def test_known_ids_of_subnets_outside_the_stack_are_no_proof(preview):
    group = samples.node_group([], subnetIds=["subnet-1", "subnet-2"])
    assert "2 subnets whose zones the stack does not show (subnet-1 and subnet-2)" in only(preview([group])).message


def test_the_configuration_can_tell_the_zones_of_foreign_subnets(preview):
    group = samples.node_group([], subnetIds=["subnet-1", "subnet-2"])
    zones = {"subnet-1": A, "subnet-2": A}
    assert preview([group], {POLICY: {"subnetZones": zones}}) == []
    zones["subnet-2"] = B
    assert "in us-east-1a and us-east-1b" in only(preview([group], {POLICY: {"subnetZones": zones}})).message


def test_subnets_of_the_stack_are_found_by_known_ids_too(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    for index, zone in enumerate(zones):
        zone.props["id"] = f"subnet-{index}"
    group = samples.node_group([], subnetIds=["subnet-0", "subnet-1"])
    assert "in us-east-1a and us-east-1b" in only(preview([*zones, group])).message


def test_a_list_that_is_unknown_as_a_whole_is_judged_by_where_it_came_from(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    group = samples.node_group(zones, subnetIds=UNKNOWN)
    message = only(preview([*zones, group])).message
    assert "subnetIds is a list of subnets not known yet" in message
    assert "It was made from subnets in us-east-1a and us-east-1b." in message
    one = samples.node_group(zones[:1], subnetIds=UNKNOWN)
    assert preview([*zones, one]) == []


def test_a_list_from_a_stack_reference_is_no_proof(preview):
    reference = Resource("pulumi:pulumi:StackReference", "network", {})
    group = samples.node_group([reference], subnetIds=UNKNOWN)
    assert "cannot be checked before the deployment" in only(preview([reference, group])).message


def test_a_list_of_unknown_origin_is_no_proof_and_not_taken_for_a_computed_one(preview):
    group = samples.node_group([], subnetIds=UNKNOWN)
    assert "subnetIds is a list of subnets not known yet" in only(preview([group])).message


def test_a_dropped_subnet_list_is_judged_by_where_it_came_from(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    group = samples.node_group(zones)
    del group.props["subnetIds"]
    assert "in us-east-1a and us-east-1b" in only(preview([*zones, group])).message


@pytest.mark.parametrize(
    ("props", "reason"),
    [
        ({"instanceTypes": ["m7i.large", "p5.48xlarge"]}, "its instance type is p5.48xlarge"),
        ({"instanceTypes": ["g4ad.xlarge"]}, "its instance type is g4ad.xlarge"),
        ({"amiType": "AL2_x86_64_GPU"}, "its amiType is AL2_x86_64_GPU"),
        ({"amiType": "BOTTLEROCKET_x86_64_NVIDIA_FIPS"}, "its amiType is BOTTLEROCKET_x86_64_NVIDIA_FIPS"),
        ({"labels": {"nvidia.com/gpu.present": "true"}}, "its nodes carry the label nvidia.com/gpu.present"),
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}]}, "its nodes carry the taint nvidia.com/gpu"),
    ],
)
def test_each_sign_of_a_gpu_group_counts_alone(preview, props, reason):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    assert f"judged because {reason}:" in only(preview([*zones, samples.cpu_group(zones, **props)])).message


def test_the_instance_type_may_stand_in_the_template(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    template = Resource("aws:ec2/launchTemplate:LaunchTemplate", "t", {"instanceType": "g6.8xlarge"})
    group = samples.cpu_group(zones, launchTemplate={"id": UNKNOWN, "version": UNKNOWN})
    group.sources["launchTemplate"] = [template]
    assert "judged because its instance type is g6.8xlarge" in only(preview([*zones, template, group])).message


def test_a_template_with_efa_interfaces_makes_an_efa_group(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    resources = samples.compliant()
    template = next(item for item in resources if item.type.endswith("LaunchTemplate"))
    group = samples.node_group(zones, template, amiType="AL2023_x86_64_STANDARD", instanceTypes=["hpc7a.96xlarge"])
    item = only(preview([*zones, *resources[2:6], group]))
    assert "judged because its launch template has EFA interfaces" in item.message


@pytest.mark.parametrize(
    "props",
    [
        {},
        {"instanceTypes": ["m7i.xlarge"]},
        {"amiType": "AL2023_x86_64_STANDARD"},
        {"instanceTypes": ["gd.large"], "labels": {"pool": "gpuless"}},
    ],
)
def test_a_cpu_group_over_two_zones_raises_nothing(preview, props):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    assert preview([*zones, samples.cpu_group(zones, **props)]) == []


def test_an_instance_type_that_is_not_known_yet_is_never_taken_for_a_cpu(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    source = Resource("pulumi:pulumi:StackReference", "shared", {})
    group = samples.cpu_group(zones, instanceTypes=[UNKNOWN])
    group.sources["instanceTypes"] = [source]
    item = only(preview([*zones, source, group]))
    assert "Whether the group has GPUs cannot be checked before the deployment: its instance type" in item.message


def test_a_foreign_template_may_hide_a_gpu_type(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    group = samples.cpu_group(zones, launchTemplate={"id": "lt-1", "version": "3"})
    assert "its launch template, which is not in this stack, is not known yet" in only(preview([*zones, group])).message
    group.props["instanceTypes"] = ["m7i.large"]
    assert preview([*zones, group]) == []


def test_onunknown_advisory_leaves_what_cannot_be_seen_to_the_companion(preview):
    group = samples.node_group([], subnetIds=["subnet-1", "subnet-2"])
    (item,) = preview([group], {POLICY: {"onUnknown": "advisory"}})
    assert (item.policy, item.level, item.urn) == (f"{POLICY}-unverified", "advisory", group.urn)


def test_onunknown_advisory_does_not_soften_a_proven_fault(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    only(preview([*zones, samples.node_group(zones)], {POLICY: {"onUnknown": "advisory"}}))


def test_exclude_and_efa_scope_narrow(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    resources = [*zones, samples.node_group(zones)]
    assert preview(resources, {POLICY: {"exclude": ["g*"]}}) == []
    assert preview(resources, {POLICY: {"scope": "efa"}}) == []


def test_include_widens_to_a_cpu_group(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    only(preview([*zones, samples.cpu_group(zones)], {POLICY: {"include": ["system"]}}))


def test_an_auto_scaling_group_is_judged_by_its_template(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    template = Resource("aws:ec2/launchTemplate:LaunchTemplate", "t", {"instanceType": "p4d.24xlarge"})
    group = Resource(
        "aws:autoscaling/group:Group",
        "workers",
        {"vpcZoneIdentifiers": [UNKNOWN, UNKNOWN], "launchTemplate": {"id": UNKNOWN}, "maxSize": 2, "minSize": 0},
        {"vpcZoneIdentifiers": zones, "launchTemplate": [template]},
    )
    item = only(preview([*zones, template, group]))
    assert item.message.startswith("GPU Auto Scaling group 'workers', judged because its instance type is p4d.24xlarge")


def test_an_auto_scaling_group_over_listed_zones_is_judged_too(preview):
    template = Resource(
        "aws:ec2/launchTemplate:LaunchTemplate", "t", {"instanceType": "p4d.24xlarge", "name": "gpu-lt"}
    )
    props = {"availabilityZones": [A, B], "launchTemplate": {"name": "gpu-lt"}, "maxSize": 2, "minSize": 0}
    group = Resource("aws:autoscaling/group:Group", "workers", props)
    assert "availabilityZones is 2 zones in us-east-1a and us-east-1b" in only(preview([template, group])).message


def test_a_mixed_instances_override_with_a_gpu_type_counts(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    policy = {"launchTemplate": {"overrides": [{"instanceType": "c7i.large"}, {"instanceType": "g5.12xlarge"}]}}
    props = {"vpcZoneIdentifiers": [UNKNOWN, UNKNOWN], "mixedInstancesPolicy": policy, "maxSize": 1, "minSize": 0}
    group = Resource("aws:autoscaling/group:Group", "mixed", props, {"vpcZoneIdentifiers": zones})
    assert "its instance type is g5.12xlarge" in only(preview([*zones, group])).message


def pool(requirements: list[dict], version: str = "v1", **spec: object) -> Resource:
    inner = {"requirements": requirements, "nodeClassRef": {"kind": "EC2NodeClass", "name": "gpu"}, **spec}
    props = {"metadata": {"name": "gpu-pool"}, "spec": {"template": {"spec": inner}}}
    return Resource(f"kubernetes:karpenter.sh/{version}:NodePool", "pool", props)


def node_class(terms: list[dict], subnets: list[Resource]) -> Resource:
    props = {"metadata": {"name": "gpu"}, "spec": {"subnetSelectorTerms": terms}}
    return Resource("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "class", props, {"spec": subnets})


GPU_FAMILY = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g6"]}


def zone(*values: str) -> dict:
    return {"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(values)}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_gpu_node_pool_without_one_zone_is_a_violation(preview, version):
    item = only(preview([pool([GPU_FAMILY], version)]))
    assert item.message.startswith(
        "Karpenter NodePool 'gpu-pool', judged because it requires karpenter.k8s.aws/instance-family: "
        "spec.template.spec.requirements[topology.kubernetes.io/zone] is without exactly one zone."
    )


def test_a_gpu_node_pool_with_two_zones_is_a_violation(preview):
    assert "is ['us-east-1a', 'us-east-1b']" in only(preview([pool([GPU_FAMILY, zone(A, B)])])).message


def test_a_gpu_node_pool_of_a_cluster_that_does_not_exist_yet_is_judged_by_its_inputs(preview):
    future = pool([GPU_FAMILY, zone(A, B)])
    future.in_future_cluster = True
    assert "is ['us-east-1a', 'us-east-1b']" in only(preview([future])).message


def test_a_node_pool_that_nobody_has_seen_cannot_be_checked(pack):
    future = pool([GPU_FAMILY, zone(A)])
    future.name = "never analyzed"
    future.in_future_cluster = True
    (item,) = pack.preview([future], analyzed=False)
    assert "cannot be checked before the deployment" in item.message


def test_a_gpu_node_pool_with_one_zone_passes(preview):
    assert preview([pool([GPU_FAMILY, zone(A)])]) == []


@pytest.mark.parametrize(
    "requirement",
    [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.8xlarge"]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["g", "p"]},
        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["0"]},
        {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "Exists"},
    ],
)
def test_each_requirement_that_names_gpus_makes_a_gpu_pool(preview, requirement):
    only(preview([pool([requirement])]))


def test_a_tainted_node_pool_is_a_gpu_pool(preview):
    only(preview([pool([], taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])]))


def test_a_cpu_node_pool_raises_nothing(preview):
    category = {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}
    assert preview([pool([category])]) == []


def test_a_node_class_with_one_subnet_id_pins_its_pool(preview):
    a = samples.subnet("a", A)
    assert preview([a, pool([GPU_FAMILY]), node_class([{"id": UNKNOWN}], [a])]) == []


def test_a_node_class_over_two_zones_does_not_pin_its_pool(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    found = preview([*zones, pool([GPU_FAMILY]), node_class([{"id": UNKNOWN}, {"id": UNKNOWN}], zones)])
    assert "spec.subnetSelectorTerms of class is 2 subnets in us-east-1a and us-east-1b" in only(found).message


def test_a_node_class_that_selects_by_tag_does_not_pin_its_pool(preview):
    only(preview([pool([GPU_FAMILY]), node_class([{"tags": {"karpenter.sh/discovery": "x"}}], [])]))


def test_an_ami_type_that_is_not_known_yet_is_never_taken_for_a_cpu(preview):
    zones = [samples.subnet("a", A), samples.subnet("b", B)]
    source = Resource("pulumi:pulumi:StackReference", "shared", {})
    group = samples.cpu_group(zones, amiType=UNKNOWN)
    group.sources["amiType"] = [source]
    assert "its amiType is not known yet" in only(preview([*zones, source, group])).message
