import base64
import email
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
import yaml

from components.choices import CapacityKind
from components.efa_node_group import EfaNodeGroup, EfaNodeGroupArgs
from components.faults import StackFaults
from components.launch_template import interface_layout
from components.node_labels import GPU_TAINT

GROUP = "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
RESERVATION = {
    "cr-1": {
        "availabilityZone": "us-east-1a",
        "instanceType": "g6.8xlarge",
        "instanceCount": 2,
    }
}


def group_args(**changes: Any) -> EfaNodeGroupArgs:
    args: Any = {
        "cluster_name": "demo",
        "vpc_id": "vpc-1",
        "cluster_security_group_id": "sg-eks-own",
        "subnet_id": "subnet-a",
        "zone": "us-east-1a",
        "instance_type": "g6.8xlarge",
        "node_count": 2,
        **changes,
    }
    return args


def make(deploy: Any, *, preview: bool = False, reads: Any = None, **changes: Any) -> Any:
    return deploy(lambda: EfaNodeGroup("gpu", group_args(**changes)), preview=preview, reads=reads)


@pytest.mark.parametrize("preview", [True, False])
def test_an_on_demand_group_has_exactly_these_resources(deploy, preview):
    assert make(deploy, preview=preview).listed() == sorted(
        [
            ("ray-llm-eks:index:EfaNodeGroup", "gpu"),
            ("aws:ec2/securityGroup:SecurityGroup", "gpu-efa"),
            (INGRESS, "gpu-efa-from-itself"),
            (EGRESS, "gpu-efa-to-itself"),
            (PLACEMENT, "gpu-placement-us-east-1a"),
            ("aws:iam/role:Role", "gpu-role"),
            *(
                ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", f"gpu-role-{policy}")
                for policy in (
                    "AmazonEKSWorkerNodePolicy",
                    "AmazonEKS_CNI_Policy",
                    "AmazonEC2ContainerRegistryPullOnly",
                )
            ),
            (TEMPLATE, "gpu-nodes"),
            (GROUP, "gpu-nodes"),
        ]
    )


@pytest.mark.parametrize("preview", [True, False])
def test_what_policies_judge_is_plain_in_a_preview(deploy, preview):
    group = make(deploy, preview=preview, subnet_id=pulumi.Output.from_input("subnet-a")).one(GROUP).inputs
    assert group["amiType"] == "AL2023_x86_64_NVIDIA"
    assert group["instanceTypes"] == ["g6.8xlarge"]
    assert group["capacityType"] == "ON_DEMAND"
    assert group["scalingConfig"] == {"minSize": 2, "maxSize": 2, "desiredSize": 2}
    assert len(group["subnetIds"]) == 1


def test_an_update_never_starts_a_second_node_and_a_replacement_deletes_first(deploy):
    group = make(deploy, create_timeout_minutes=55).one(GROUP)
    assert group.inputs["updateConfig"] == {"updateStrategy": "MINIMAL", "maxUnavailable": 1}
    assert group.delete_before_replace
    assert group.create_timeout == "55m"
    assert "nodeGroupName" not in group.inputs
    assert "diskSize" not in group.inputs
    assert "remoteAccess" not in group.inputs


def test_labels_and_taint_are_those_the_plugins_and_workers_read(deploy):
    group = make(deploy).one(GROUP).inputs
    assert group["labels"] == {"ray-llm-eks/node-group": "gpu", "nvidia.com/gpu.present": "true"}
    assert group["taints"] == [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}]
    assert GPU_TAINT.toleration() == {
        "key": "nvidia.com/gpu",
        "operator": "Equal",
        "value": "true",
        "effect": "NoSchedule",
    }


def test_each_interface_carries_the_cluster_group_and_the_efa_group(deploy):
    template = make(deploy).one(TEMPLATE).inputs
    assert template["networkInterfaces"] == [
        {
            "networkCardIndex": 0,
            "deviceIndex": 0,
            "interfaceType": "efa",
            "securityGroups": ["sg-eks-own", "gpu-efa-id"],
            "deleteOnTermination": "true",
        }
    ]
    assert "vpcSecurityGroupIds" not in template
    assert "securityGroupNames" not in template
    assert "imageId" not in template
    assert "instanceType" not in template


def test_the_efa_group_opens_to_itself_in_both_directions_and_to_nothing_else(deploy):
    recording = make(deploy)
    group = recording.one("aws:ec2/securityGroup:SecurityGroup").inputs
    assert "ingress" not in group
    assert "egress" not in group
    for typ in (INGRESS, EGRESS):
        rule = recording.one(typ).inputs
        assert rule["securityGroupId"] == "gpu-efa-id"
        assert rule["referencedSecurityGroupId"] == "gpu-efa-id"
        assert rule["ipProtocol"] == "-1"
        assert "cidrIpv4" not in rule


def test_the_efa_group_never_carries_the_cluster_tag(deploy):
    group = make(deploy, tags={"kubernetes.io/cluster/demo": "owned", "team": "ml"}).one(
        "aws:ec2/securityGroup:SecurityGroup"
    )
    assert group.inputs["tags"]["team"] == "ml"
    assert not [key for key in group.inputs["tags"] if key.startswith("kubernetes.io/cluster/")]


def test_nodes_wait_for_the_way_out_their_role_and_the_rules(deploy):
    def program() -> EfaNodeGroup:
        route = aws.ec2.Route("way-out", route_table_id="rtb-1", gateway_id="igw-1", destination_cidr_block="0.0.0.0/0")
        return EfaNodeGroup("gpu", group_args(egress=[route]))

    assert {
        "way-out",
        "gpu-role-AmazonEKSWorkerNodePolicy",
        "gpu-role-AmazonEKS_CNI_Policy",
        "gpu-role-AmazonEC2ContainerRegistryPullOnly",
        "gpu-efa-from-itself",
        "gpu-efa-to-itself",
        "gpu-nodes",
    } <= deploy(program).one(GROUP).depends_on


def test_no_pod_leans_on_node_credentials_and_the_root_volume_is_encrypted(deploy):
    template = make(deploy).one(TEMPLATE).inputs
    assert template["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }
    [root] = template["blockDeviceMappings"]
    assert root["deviceName"] == "/dev/xvda"
    assert root["ebs"]["encrypted"] == "true"
    assert root["ebs"]["volumeType"] == "gp3"


def test_the_user_data_is_mime_with_a_node_config_that_joins_the_nvme_disks(deploy):
    document = base64.b64decode(make(deploy).one(TEMPLATE).inputs["userData"]).decode()
    parts: Any = email.message_from_string(document).get_payload()
    assert [part.get_content_type() for part in parts] == ["application/node.eks.aws"]
    config = yaml.safe_load(parts[0].get_payload())
    assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert config["spec"]["instance"]["localStorage"] == {"strategy": "RAID0"}


def test_instances_volumes_and_interfaces_are_tagged_by_the_template(deploy):
    specifications = make(deploy, tags={"team": "ml"}).one(TEMPLATE).inputs["tagSpecifications"]
    assert [it["resourceType"] for it in specifications] == ["instance", "volume", "network-interface"]
    assert all(it["tags"]["team"] == "ml" and it["tags"]["Project"] == "ray-llm-eks" for it in specifications)


def test_another_zone_moves_subnet_placement_group_and_template_together(deploy):
    here = make(deploy)
    there = make(deploy, zone="us-east-1b", subnet_id="subnet-b")
    assert here.one(PLACEMENT).name == "gpu-placement-us-east-1a"
    assert there.one(PLACEMENT).name == "gpu-placement-us-east-1b"
    assert here.one(TEMPLATE).inputs["placement"] != there.one(TEMPLATE).inputs["placement"]
    assert there.one(GROUP).inputs["subnetIds"] == ["subnet-b"]
    assert there.result.zone == "us-east-1b"


def test_the_placement_group_is_a_cluster_one(deploy):
    recording = make(deploy)
    assert recording.one(PLACEMENT).inputs["strategy"] == "cluster"
    assert recording.one(TEMPLATE).inputs["placement"] == {"groupName": "gpu-placement-us-east-1a-0123456"}


def test_a_named_placement_group_is_used_and_none_is_made(deploy):
    recording = make(deploy, placement_group_name="mine")
    assert recording.of_type(PLACEMENT) == []
    assert recording.one(TEMPLATE).inputs["placement"] == {"groupName": "mine"}


@pytest.mark.parametrize("preview", [True, False])
def test_a_reservation_has_no_placement_group_unless_one_is_named(deploy, preview):
    reserved = {"capacity_kind": CapacityKind.RESERVATION, "reservation_id": "cr-1"}
    recording = make(deploy, preview=preview, reads=RESERVATION, **reserved)
    template = recording.one(TEMPLATE).inputs
    assert recording.of_type(PLACEMENT) == []
    assert "placement" not in template
    assert template["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": "cr-1"}
    }
    assert "instanceMarketOptions" not in template
    assert recording.one(GROUP).inputs["capacityType"] == "ON_DEMAND"
    assert recording.one(GROUP).inputs["instanceTypes"] == ["g6.8xlarge"]
    named = make(deploy, preview=preview, reads=RESERVATION, placement_group_name="mine", **reserved)
    assert named.one(TEMPLATE).inputs["placement"] == {"groupName": "mine"}


@pytest.mark.parametrize("preview", [True, False])
def test_a_capacity_block_sets_all_three_and_puts_the_type_into_the_template(deploy, preview):
    block = {"capacity_kind": CapacityKind.CAPACITY_BLOCK, "reservation_id": "cr-1"}
    recording = make(deploy, preview=preview, reads=RESERVATION, node_count=0, **block)
    template, group = recording.one(TEMPLATE).inputs, recording.one(GROUP).inputs
    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert template["capacityReservationSpecification"]["capacityReservationTarget"]["capacityReservationId"] == "cr-1"
    assert template["instanceType"] == "g6.8xlarge"
    assert group["capacityType"] == "CAPACITY_BLOCK"
    assert "instanceTypes" not in group
    assert group["scalingConfig"] == {"minSize": 0, "maxSize": 1, "desiredSize": 0}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"capacity_kind": CapacityKind.RESERVATION},
            "gpuNodes.capacity.reservationId: missing, but kind reservation launches into one reservation only; write its id, "
            "such as cr-0123456789abcdef0.",
        ),
        (
            {"reservation_id": "cr-1"},
            "gpuNodes.capacity.reservationId: 'cr-1' is written, but kind onDemand does not use a reservation; write kind: "
            "reservation (or capacityBlock), or remove reservationId.",
        ),
    ],
)
def test_half_configured_capacity_is_refused(deploy, changes, text):
    with pytest.raises(StackFaults) as caught:
        make(deploy, **changes)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            {"availabilityZone": "us-east-1b"},
            "lies in us-east-1b, the GPU nodes in us-east-1a; write gpuNodes.zone: us-east-1b.",
        ),
        (
            {"instanceType": "g6e.12xlarge"},
            "holds g6e.12xlarge, the GPU nodes are g6.8xlarge; write gpuNodes.instanceType: g6e.12xlarge.",
        ),
        ({"instanceCount": 1}, "holds 1 instance(s), the GPU group wants 2; write gpuNodes.count: 1 or less"),
        (
            {"placementGroupArn": "arn:aws:ec2:us-east-1:1:placement-group/theirs"},
            "was made in placement group 'theirs' and serves no instance outside it; write gpuNodes.placementGroup: theirs.",
        ),
    ],
)
def test_a_reservation_that_cannot_hold_the_group_stops_the_preview(deploy, found, text):
    reads = {"cr-1": {**RESERVATION["cr-1"], **found}}
    with pytest.raises(StackFaults) as caught:
        make(deploy, preview=True, reads=reads, capacity_kind=CapacityKind.RESERVATION, reservation_id="cr-1")
    assert str(caught.value).startswith("gpuNodes.capacity.reservationId: reservation 'cr-1' ")
    assert text in str(caught.value)


def test_a_reservation_that_is_not_there_stops_the_preview(deploy):
    with pytest.raises(AssertionError, match="resource 'cr-9' does not exist"):
        make(deploy, preview=True, capacity_kind=CapacityKind.RESERVATION, reservation_id="cr-9")


def test_p5_gets_32_interfaces_of_which_only_the_first_carries_ip(deploy):
    interfaces = make(deploy, instance_type="p5.48xlarge").one(TEMPLATE).inputs["networkInterfaces"]
    layout = [(it["networkCardIndex"], it["deviceIndex"], it["interfaceType"]) for it in interfaces]
    assert layout == [(0, 0, "efa"), *((card, 1, "efa-only") for card in range(1, 32))]


def test_the_first_card_of_p6_b300_is_plain_ena():
    layout = interface_layout("p6-b300.48xlarge")
    assert (layout[0].interface_type, layout[0].device_index) == ("interface", 0)
    assert [it.interface_type for it in layout[1:]] == ["efa-only"] * 16


def test_a_type_outside_the_catalogue_takes_the_numbers_it_is_given():
    assert [it.interface_type for it in interface_layout("p9.48xlarge", 3)] == ["efa", "efa-only", "efa-only"]
    assert [it.interface_type for it in interface_layout("p9.48xlarge", 2, 3)] == ["interface", "efa-only", "efa-only"]


@pytest.mark.parametrize("instance_type", ["m7i.xlarge", "p9.48xlarge"])
def test_the_efa_interfaces_of_an_unknown_type_are_never_guessed(deploy, instance_type):
    with pytest.raises(StackFaults) as caught:
        make(deploy, instance_type=instance_type)
    assert str(caught.value) == (
        f"gpuNodes.instanceType: '{instance_type}' is not in the catalogue of GPU types with EFA, and how many EFA interfaces it "
        "has cannot be guessed; choose a type with EFA such as g6.8xlarge, or write its gpuNodes.hardware (aws ec2 "
        "describe-instance-types shows MaximumEfaInterfaces)."
    )


def test_a_number_that_contradicts_the_catalogue_is_refused(deploy):
    with pytest.raises(StackFaults, match=r"gpuNodes.hardware: 2 EFA interface\(s\) given, but g6.8xlarge has 1"):
        make(deploy, efa_interfaces=2)
