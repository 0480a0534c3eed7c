"""This project itself through the engine: its three stacks, a stack in somebody's own network, and a wrong configuration."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.aws.seeds import EXISTING_NETWORK
from tests.engine.conftest import PreviewOf
from tests.engine.previews import CHECKOUT, Preview

# One process previews each stack once for all tests here.
pytestmark = pytest.mark.xdist_group("the reference deployment")

NODE_GROUP = ("aws:eks/nodeGroup:NodeGroup", "ray-llm-gpu-nodes")
TEMPLATE = ("aws:ec2/launchTemplate:LaunchTemplate", "ray-llm-gpu-nodes")
PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"

DEV_RESOURCES = [
    ("aws:cloudwatch/logGroup:LogGroup", "ray-llm-cluster-logs"),
    ("aws:ec2/eip:Eip", "ray-llm-network-nat-us-east-1a"),
    ("aws:ec2/internetGateway:InternetGateway", "ray-llm-network-internet"),
    ("aws:ec2/launchTemplate:LaunchTemplate", "ray-llm-cluster-system"),
    ("aws:ec2/launchTemplate:LaunchTemplate", "ray-llm-gpu-nodes"),
    ("aws:ec2/natGateway:NatGateway", "ray-llm-network-nat-us-east-1a"),
    ("aws:ec2/placementGroup:PlacementGroup", "ray-llm-gpu-placement-us-east-1a"),
    ("aws:ec2/route:Route", "ray-llm-network-private-us-east-1a-to-nat"),
    ("aws:ec2/route:Route", "ray-llm-network-private-us-east-1b-to-nat"),
    ("aws:ec2/route:Route", "ray-llm-network-public-to-internet"),
    ("aws:ec2/routeTable:RouteTable", "ray-llm-network-private-us-east-1a-routes"),
    ("aws:ec2/routeTable:RouteTable", "ray-llm-network-private-us-east-1b-routes"),
    ("aws:ec2/routeTable:RouteTable", "ray-llm-network-public-routes"),
    ("aws:ec2/routeTableAssociation:RouteTableAssociation", "ray-llm-network-private-us-east-1a"),
    ("aws:ec2/routeTableAssociation:RouteTableAssociation", "ray-llm-network-private-us-east-1b"),
    ("aws:ec2/routeTableAssociation:RouteTableAssociation", "ray-llm-network-public-us-east-1a"),
    ("aws:ec2/routeTableAssociation:RouteTableAssociation", "ray-llm-network-public-us-east-1b"),
    ("aws:ec2/securityGroup:SecurityGroup", "ray-llm-gpu-efa"),
    ("aws:ec2/securityGroup:SecurityGroup", "ray-llm-network-endpoints"),
    ("aws:ec2/subnet:Subnet", "ray-llm-network-private-us-east-1a"),
    ("aws:ec2/subnet:Subnet", "ray-llm-network-private-us-east-1b"),
    ("aws:ec2/subnet:Subnet", "ray-llm-network-public-us-east-1a"),
    ("aws:ec2/subnet:Subnet", "ray-llm-network-public-us-east-1b"),
    ("aws:ec2/vpc:Vpc", "ray-llm-network-vpc"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "ray-llm-network-ec2"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "ray-llm-network-ecr-api"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "ray-llm-network-ecr-dkr"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "ray-llm-network-logs"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "ray-llm-network-s3"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "ray-llm-network-sts"),
    ("aws:eks/addon:Addon", "ray-llm-cluster-control-plane-kube-proxy"),
    ("aws:eks/addon:Addon", "ray-llm-cluster-control-plane-vpc-cni"),
    ("aws:eks/addon:Addon", "ray-llm-cluster-coredns"),
    ("aws:eks/cluster:Cluster", "ray-llm-cluster-control-plane-eksCluster"),
    ("aws:eks/nodeGroup:NodeGroup", "ray-llm-cluster-system"),
    ("aws:eks/nodeGroup:NodeGroup", "ray-llm-gpu-nodes"),
    ("aws:iam/openIdConnectProvider:OpenIdConnectProvider", "ray-llm-cluster-oidc"),
    ("aws:iam/role:Role", "ray-llm-cluster-control-plane-eksRole-role"),
    ("aws:iam/role:Role", "ray-llm-cluster-system-role"),
    ("aws:iam/role:Role", "ray-llm-gpu-role"),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "ray-llm-cluster-control-plane-eksRole-4b490823"),
    (
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "ray-llm-cluster-system-role-AmazonEC2ContainerRegistryPullOnly",
    ),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "ray-llm-cluster-system-role-AmazonEKSWorkerNodePolicy"),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "ray-llm-cluster-system-role-AmazonEKS_CNI_Policy"),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "ray-llm-gpu-role-AmazonEC2ContainerRegistryPullOnly"),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "ray-llm-gpu-role-AmazonEKSWorkerNodePolicy"),
    ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "ray-llm-gpu-role-AmazonEKS_CNI_Policy"),
    ("aws:kms/key:Key", "ray-llm-cluster-secrets"),
    ("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "ray-llm-gpu-efa-to-itself"),
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ray-llm-gpu-efa-from-itself"),
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ray-llm-network-endpoints-https"),
    ("eks:index:Cluster", "ray-llm-cluster-control-plane"),
    ("eks:index:ServiceRole", "ray-llm-cluster-control-plane-eksRole"),
    ("eks:index:VpcCniAddon", "ray-llm-cluster-control-plane-vpc-cni"),
    ("kubernetes:core/v1:Namespace", "ray-llm-addons-device-plugins"),
    ("kubernetes:core/v1:Namespace", "ray-llm-addons-kuberay-system"),
    ("kubernetes:core/v1:Namespace", "ray-llm-service-namespace"),
    ("kubernetes:core/v1:ServiceAccount", "ray-llm-service-head-account"),
    ("kubernetes:core/v1:ServiceAccount", "ray-llm-service-worker-account"),
    ("kubernetes:helm.sh/v3:Release", "ray-llm-addons-efa-device-plugin"),
    ("kubernetes:helm.sh/v3:Release", "ray-llm-addons-kuberay-operator"),
    ("kubernetes:helm.sh/v3:Release", "ray-llm-addons-nvidia-device-plugin"),
    ("kubernetes:networking.k8s.io/v1:NetworkPolicy", "ray-llm-service-network-policy"),
    ("kubernetes:ray.io/v1:RayService", "ray-llm-service-ray-service"),
    ("kubernetes:yaml/v2:ConfigGroup", "ray-llm-addons-kuberay-crds"),
    ("ray-llm-eks:index:Cluster", "ray-llm-cluster"),
    ("ray-llm-eks:index:ClusterAddons", "ray-llm-addons"),
    ("ray-llm-eks:index:EfaNodeGroup", "ray-llm-gpu"),
    ("ray-llm-eks:index:Network", "ray-llm-network"),
    ("ray-llm-eks:index:PrefillDecodeService", "ray-llm-service"),
]
# A NAT gateway for each zone; and no placement group, which would conflict with a reservation that was not made in it.
ONLY_PROD = {
    ("aws:ec2/capacityReservation:CapacityReservation", "ray-llm-gpu-reservation"),
    ("aws:ec2/eip:Eip", "ray-llm-network-nat-us-east-1b"),
    ("aws:ec2/natGateway:NatGateway", "ray-llm-network-nat-us-east-1b"),
}
ONLY_DEV = {(PLACEMENT, "ray-llm-gpu-placement-us-east-1a")}


@pytest.fixture(scope="session")
def reference(preview: PreviewOf, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Preview]:
    """Previews one of the three stacks, as on a machine without a kubeconfig or AWS credentials."""

    @cache
    def run(stack: str) -> Preview:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
            return preview(CHECKOUT, stack=stack)

    return run


@pytest.mark.parametrize("stack", ["dev", "staging", "prod"])
def test_a_stack_previews_without_a_violation(stack: str, reference: Callable[[str], Preview]) -> None:
    done = reference(stack)

    assert done.exit_code == 0, done.output
    assert done.violations == []
    assert done.advice == []
    assert done.errors == []


@pytest.mark.parametrize(("stack", "model"), [("dev", "qwen3.5-9b"), ("staging", "qwen3.5-9b"), ("prod", "qwen3-32b")])
def test_a_stack_exports_where_it_stands_and_what_it_serves(
    stack: str, model: str, reference: Callable[[str], Preview]
) -> None:
    outputs = dict(reference(stack).outputs)

    assert outputs.pop("kubeconfig")["ciphertext"] == "[secret]"
    assert outputs == {
        "clusterName": f"ray-llm-eks-{stack}",
        "endpoint": "http://ray-llm-serve-svc.inference.svc.cluster.local:8000/v1",
        "gpuZone": "us-east-1a",
        "modelId": model,
    }


def test_the_names_of_the_dev_stack_are_stable(reference: Callable[[str], Preview]) -> None:
    assert reference("dev").resources == DEV_RESOURCES


def test_the_readme_counts_what_the_engine_counts(reference: Callable[[str], Preview]) -> None:
    (count,) = re.findall(r"\+ \d+ to create", reference("dev").output)
    assert count in (CHECKOUT / "README.md").read_text()


def test_staging_is_made_of_the_same_resources_as_dev(reference: Callable[[str], Preview]) -> None:
    assert reference("staging").resources == DEV_RESOURCES


def test_prod_differs_by_its_reservation_and_its_second_nat_gateway(reference: Callable[[str], Preview]) -> None:
    prod, dev = set(reference("prod").resources), set(DEV_RESOURCES)

    assert prod - dev == ONLY_PROD
    assert dev - prod == ONLY_DEV


@pytest.mark.parametrize(
    ("stack", "instance_type", "count"),
    [("dev", "g6.8xlarge", 2), ("staging", "g6.8xlarge", 3), ("prod", "g6e.12xlarge", 3)],
)
def test_the_gpu_nodes_of_a_stack_say_what_they_are_before_anything_exists(
    stack: str, instance_type: str, count: int, reference: Callable[[str], Preview]
) -> None:
    group = reference(stack).inputs(*NODE_GROUP)

    assert group["instanceTypes"] == [instance_type]
    assert group["amiType"] == "AL2023_x86_64_NVIDIA"
    assert len(group["subnetIds"]) == 1
    sizes = group["scalingConfig"]
    assert (sizes["minSize"], sizes["desiredSize"], sizes["maxSize"]) == (count, count, count)


def test_prod_launches_into_its_reservation_and_no_placement_group(reference: Callable[[str], Preview]) -> None:
    template = reference("prod").inputs(*TEMPLATE)

    target = template["capacityReservationSpecification"]["capacityReservationTarget"]
    assert target["capacityReservationId"] == "cr-0123456789abcdef0"
    assert "placement" not in template


def test_every_kubernetes_resource_belongs_to_the_clusters_own_provider(reference: Callable[[str], Preview]) -> None:
    providers = {
        metadata["new"]["provider"].rpartition("::")[0].rpartition("::")[2]
        for metadata in reference("dev").planned()
        if metadata["type"].startswith("kubernetes:") and metadata["new"].get("custom")
    }

    assert providers == {"ray-llm-cluster-kubernetes"}


def checkout_with(folder: Path, stack: str, config: Mapping[str, Any]) -> Path:
    """This project with one more stack, in a folder of links."""
    for name in ("__main__.py", "Pulumi.yaml", "components", "policies", ".venv"):
        (folder / name).symlink_to(CHECKOUT / name)
    (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": dict(config)}))
    return folder


@pytest.mark.parametrize("zone", ["us-east-1a", "us-east-1b"])
def test_one_key_moves_subnet_placement_group_and_template_to_another_zone(
    zone: str, preview: PreviewOf, tmp_path: Path
) -> None:
    config = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())["config"]
    # In a network that exists the subnet ids are known, so that a preview shows where the group goes.
    config["ray-llm-eks:network"] = {
        "vpcId": EXISTING_NETWORK.vpc_id,
        "privateSubnets": dict(EXISTING_NETWORK.subnet_ids),
    }
    config["ray-llm-eks:gpuNodes"]["zone"] = zone

    done = preview(checkout_with(tmp_path, "own", config), stack="own")

    assert done.exit_code == 0, done.output
    assert done.violations == []
    assert done.inputs(*NODE_GROUP)["subnetIds"] == [EXISTING_NETWORK.subnet_ids[zone]]
    placements = [name for kind, name in done.resources if kind == PLACEMENT]
    assert placements == [f"ray-llm-gpu-placement-{zone}"]
    placement = done.inputs(PLACEMENT, placements[0])["name"]
    assert done.inputs(*TEMPLATE)["placement"]["groupName"] == placement
    assert done.outputs["gpuZone"] == zone


def test_a_stack_that_says_only_what_no_default_can_know_is_the_reference_deployment(
    preview: PreviewOf, tmp_path: Path
) -> None:
    config = {
        "aws:region": "us-east-1",
        "ray-llm-eks:network": {"zones": ["us-east-1a", "us-east-1b"]},
        "ray-llm-eks:gpuNodes": {"zone": "us-east-1a"},
        "ray-llm-eks:cluster": {"endpoint": {"publicCidrs": ["198.51.100.7/32"]}},
    }

    done = preview(checkout_with(tmp_path, "bare", config), stack="bare")

    assert done.exit_code == 0, done.output
    assert done.violations == []
    assert done.resources == DEV_RESOURCES


def test_a_wrong_configuration_gives_one_error_with_all_its_faults_and_makes_nothing(preview: PreviewOf) -> None:
    wrong = {
        "ray-llm-eks:gpuNodes.zone": "us-east-1c",
        "ray-llm-eks:gpuNodes.instanceType": "g6.4xlarge",
        "ray-llm-eks:model.dtyp": "bfloat16",
        "ray-llm-eks:decode.replicas": "3",
        "ray-llm-eks:service.name": "Ray_LLM",
    }

    done = preview(CHECKOUT, config=wrong)

    assert done.exit_code != 0
    assert len(done.errors) == 1
    heading, *faults = done.errors[0].splitlines()
    assert heading == "The configuration of stack dev has 5 faults; nothing was made:"
    assert len(faults) == 5
    for path in ("gpuNodes.zone", "gpuNodes.instanceType", "model.dtyp", "gpuNodes.count", "service.name"):
        assert any(fault.strip().startswith(f"- ray-llm-eks:{path}") for fault in faults), (path, faults)
    assert all("Type: pulumi config " in fault for fault in faults)
    assert done.resources == []
    assert done.outputs == {}


def test_a_reservation_that_no_account_has_stops_the_preview(preview: PreviewOf) -> None:
    missing = "cr-0fedcba9876543210"

    done = preview(CHECKOUT, stack="prod", config={"ray-llm-eks:gpuNodes.capacity.reservationId": missing})

    assert done.exit_code != 0
    assert any(missing in error for error in done.errors), done.errors
