import subprocess
import sys
import time

from pulumi.runtime.proto import analyzer_pb2

from policies.ray_efa_policies.stack import FILLED_IN
from policies.ray_efa_policies.tokens import aws_type
from tests.policies import samples
from tests.policies.analyzer import CLASSES, PACK_FOLDER, Pack, Resource, computed

FIRST_FIVE = {
    "gpu-node-group-single-az": analyzer_pb2.POLICY_TYPE_STACK,
    "ray-worker-requests-efa": analyzer_pb2.POLICY_TYPE_RESOURCE,
    "ray-worker-privileged": analyzer_pb2.POLICY_TYPE_RESOURCE,
    "nixl-backend-libfabric": analyzer_pb2.POLICY_TYPE_RESOURCE,
    "efa-security-group-self-reference": analyzer_pb2.POLICY_TYPE_STACK,
}


def test_the_first_five_policies_are_mandatory_and_of_the_agreed_kind(pack):
    levels = {item.name: (item.policy_type, item.enforcementLevel) for item in pack.info.policies}
    for name, kind in FIRST_FIVE.items():
        assert levels[name] == (kind, analyzer_pb2.MANDATORY)


def test_each_name_is_one_policy(pack):
    names = [item.name for item in pack.info.policies]
    assert len(names) == len(set(names))


def test_every_policy_says_why_it_exists_how_to_fix_it_and_where_to_read_on(pack):
    for item in pack.info.policies:
        assert item.description.endswith(".")
        assert item.remediation_steps
        assert item.url.startswith("https://")


def test_only_companions_advise(pack):
    advising = {item.name for item in pack.info.policies if item.enforcementLevel == analyzer_pb2.ADVISORY}
    blocking = {item.name for item in pack.info.policies if item.enforcementLevel == analyzer_pb2.MANDATORY}
    assert advising == {f"{name}-unverified" for name in blocking}


def test_config_schemas_have_a_default_for_every_key(pack):
    for item in pack.info.policies:
        assert all("default" in schema for schema in dict(item.configSchema.properties).values())


def test_the_compliant_stack_raises_nothing(preview):
    assert preview(samples.compliant()) == []


def test_the_pack_starts_in_seconds():
    started = time.monotonic()
    running = Pack()
    elapsed = time.monotonic() - started
    running.close()
    assert elapsed < 4  # about 1 s on an idle machine; test machines are shared


def test_the_pack_loads_no_provider_sdk():
    code = "import sys; sys.path.insert(0, '.'); import ray_efa_policies.pack; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=PACK_FOLDER, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"pulumi_aws", "pulumi_eks", "pulumi_kubernetes"} & set(loaded)


def test_the_catalogue_loads_no_policy_sdk():
    code = "import sys; import policies.ray_efa_policies.instances; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=PACK_FOLDER.parent, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pulumi_policy" not in loaded


def test_the_rules_load_no_policy_sdk():
    modules = ("zones", "security_groups", "efa_requests", "privileges", "nixl_backend", "efa_nodes", "karpenter")
    code = "import sys; from policies.ray_efa_policies import " + ", ".join(modules) + "; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=PACK_FOLDER.parent, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"pulumi", "pulumi_policy"} & set(loaded)


OPTIONAL_INPUTS = {
    "NodeGroup": ("amiType", "instanceTypes"),
    "Group": ("availabilityZones", "vpcZoneIdentifiers", "launchTemplate", "mixedInstancesPolicy"),
    "SecurityGroup": ("ingress", "egress"),
    "SecurityGroupRule": ("sourceSecurityGroupId",),
    "NetworkInterface": ("interfaceType", "securityGroups"),
    "LaunchTemplate": (),
}


def test_what_the_provider_fills_in_is_what_pulumi_aws_says():
    read = {"networkInterfaces", "instanceType", "labels", "taints", "self", "launchTemplate", *FILLED_IN}
    for token in CLASSES:
        name = aws_type(token)[2]
        if name in OPTIONAL_INPUTS:
            assert read & set(computed(token)) == set(OPTIONAL_INPUTS[name])


def test_other_resources_are_not_applicable(pack):
    bucket = Resource("aws:s3/bucket:Bucket", "data", {"tags": {"a": "b"}})
    reasons = pack.not_applicable(bucket)
    assert reasons["ray-worker-privileged"] == "not a Ray workload"


def test_ray_without_kv_transfer_and_efa_is_not_applicable(pack):
    service = samples.ray_service({"applications": [{"name": "a", "import_path": "fruit:app"}]})
    for index in (0, 1):
        samples.container(service, index)["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    reasons = pack.not_applicable(service)
    assert reasons["nixl-backend-libfabric"] == "no KV transfer through NIXL and no EFA in this workload"
