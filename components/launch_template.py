"""The parts of an EC2 launch template for EKS nodes, as plain documents: nothing here makes a resource."""

import base64
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from components.choices import CapacityKind
from policies.ray_efa_policies.instances import INSTANCE_TYPES, NetworkInterface, efa_interface_layout

NODE_LOCAL_STORAGE = "/mnt/k8s-disks/0"
"""Where nodeadm mounts the RAID0 over the instance's NVMe disks; containerd, kubelet and logs live there too."""

_BOUNDARY = "==node-config=="
# nodeadm's own document; EKS merges it with the part that holds the cluster's address (awslabs/amazon-eks-ami nodeadm).
_NODE_CONFIG = """\
---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  instance:
    localStorage:
      strategy: RAID0
"""


def interface_layout(
    instance_type: str, efa_interfaces: int | None = None, network_cards: int | None = None
) -> tuple[NetworkInterface, ...]:
    """Where the network interfaces of an instance type go so that all of its EFA devices are attached.

    Args:
        instance_type: An EC2 instance type.
        efa_interfaces: Its EFA maximum; needed for a type outside the catalogue only.
        network_cards: Its network cards; for a type outside the catalogue, one an EFA interface where it is not given.

    Raises:
        ValueError: The type is in no catalogue and no number is given, or the numbers contradict the catalogue.
    """
    known = INSTANCE_TYPES.get(instance_type)
    if known is None:
        if not efa_interfaces or efa_interfaces < 1:
            raise ValueError(
                f"gpuNodes.instanceType: '{instance_type}' is not in the catalogue of GPU types with EFA, and how many EFA "
                "interfaces it has cannot be guessed; choose a type with EFA such as g6.8xlarge, or write its "
                "gpuNodes.hardware (aws ec2 describe-instance-types shows MaximumEfaInterfaces)."
            )
        return efa_interface_layout(efa_interfaces, network_cards or efa_interfaces)
    for name, given, real in (
        ("EFA interface(s)", efa_interfaces, known.efa_interfaces),
        ("network card(s)", network_cards, known.network_cards),
    ):
        if given not in (None, real):
            raise ValueError(
                f"gpuNodes.hardware: {given} {name} given, but {instance_type} has {real}; remove the block."
            )
    return known.interface_layout()


def network_interfaces(
    layout: Sequence[NetworkInterface], security_group_ids: Sequence[pulumi.Input[str]]
) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgsDict]:
    """The interfaces with their security groups; once a template names groups, EKS adds none itself.

    No interface names a subnet: that is the node group's, and EKS refuses a template with one.
    """
    return [
        {
            "network_card_index": interface.network_card_index,
            "device_index": interface.device_index,
            "interface_type": interface.interface_type,
            "security_groups": list(security_group_ids),
            "delete_on_termination": "true",
        }
        for interface in layout
    ]


def raid0_user_data() -> str:
    """Base64 MIME user data that has nodeadm join the instance's NVMe disks to one RAID0 at `NODE_LOCAL_STORAGE`."""
    document = (
        "MIME-Version: 1.0\n"
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"\n'
        "\n"
        f"--{_BOUNDARY}\n"
        "Content-Type: application/node.eks.aws\n"
        "\n"
        f"{_NODE_CONFIG}\n"
        f"--{_BOUNDARY}--\n"
    )
    return base64.b64encode(document.encode()).decode()


def imds_v2_only() -> aws.ec2.LaunchTemplateMetadataOptionsArgsDict:
    """Instance metadata by session token, and not one hop further: no pod can lean on the node's credentials."""
    return {"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1}


def root_volume(gib: int) -> list[aws.ec2.LaunchTemplateBlockDeviceMappingArgsDict]:
    """An encrypted gp3 root volume of ``gib`` GiB; it belongs here, since EKS refuses a group's disk size beside a template."""
    return [
        {
            "device_name": "/dev/xvda",
            "ebs": {"volume_size": gib, "volume_type": "gp3", "encrypted": "true", "delete_on_termination": "true"},
        }
    ]


def instance_tags(tags: Mapping[str, str]) -> list[aws.ec2.LaunchTemplateTagSpecificationArgsDict]:
    """The same tags on the instances, volumes and interfaces that a group launches; a node group's tags reach none of them."""
    return [{"resource_type": kind, "tags": dict(tags)} for kind in ("instance", "volume", "network-interface")]


def capacity_faults(kind: CapacityKind, reservation_id: str | None) -> list[str]:
    """What is half-configured about where instances come from: a reservation without its id, or an id nobody uses."""
    if kind is CapacityKind.ON_DEMAND:
        if reservation_id:
            return [
                f"gpuNodes.capacity.reservationId: '{reservation_id}' is written, but kind onDemand does not use a reservation; "
                "write kind: reservation (or capacityBlock), or remove reservationId."
            ]
        return []
    if not reservation_id:
        return [
            f"gpuNodes.capacity.reservationId: missing, but kind {kind.value} launches into one reservation only; write its id, "
            "such as cr-0123456789abcdef0."
        ]
    return []


def reservation_faults(
    *,
    reservation_id: str,
    found_zone: str,
    found_type: str,
    found_count: int,
    zone: str,
    instance_type: str,
    node_count: int,
) -> list[str]:
    """Where an existing capacity reservation (``found_*``) cannot hold the node group that is to use it."""
    what = f"gpuNodes.capacity.reservationId: reservation '{reservation_id}'"
    faults: list[str] = []
    if found_zone != zone:
        faults.append(f"{what} lies in {found_zone}, the GPU nodes in {zone}; write gpuNodes.zone: {found_zone}.")
    if found_type != instance_type:
        faults.append(
            f"{what} holds {found_type}, the GPU nodes are {instance_type}; write gpuNodes.instanceType: {found_type}."
        )
    if found_count < node_count:
        faults.append(
            f"{what} holds {found_count} instance(s), the GPU group wants {node_count}; write gpuNodes.count: {found_count} or "
            "less, or enlarge the reservation."
        )
    return faults


def reservation_placement_faults(
    *, reservation_id: str, made_in_arn: str | None, placement_group_name: str | None
) -> list[str]:
    """Whether a reservation that was made in a placement group (``made_in_arn``) is used in another one, or in none."""
    made_in = made_in_arn.rpartition("/")[2] if made_in_arn else None
    if not made_in or made_in == placement_group_name:
        return []
    return [
        f"gpuNodes.capacity.reservationId: reservation '{reservation_id}' was made in placement group '{made_in}' and serves no "
        f"instance outside it; write gpuNodes.placementGroup: {made_in}."
    ]
