"""The parts of an EC2 launch template for EKS nodes, as plain documents: nothing here makes a resource."""

import base64
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from components.choices import CapacityKind
from components.faults import Fault, StackFaults, path, remove, set_to
from policies.ray_efa_policies.instances import INSTANCE_TYPES, NetworkInterface, efa_interface_layout

_RESERVATION = path("gpuNodes", "capacity", "reservationId")
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
        StackFaults: The type is in no catalogue and no number is given, or the numbers contradict the catalogue.
    """
    known = INSTANCE_TYPES.get(instance_type)
    if known is None:
        if not efa_interfaces or efa_interfaces < 1:
            at, hardware = path("gpuNodes", "instanceType"), path("gpuNodes", "hardware")
            why = (
                "it is not in the catalogue of GPU types with EFA, and how many EFA interfaces it has cannot be guessed"
            )
            told = f"aws ec2 describe-instance-types --instance-types {instance_type} shows MaximumEfaInterfaces"
            raise StackFaults(
                [Fault(at, why, f"{set_to(at, 'g6.8xlarge')} (or write {hardware}; {told})", instance_type)]
            )
        return efa_interface_layout(efa_interfaces, network_cards or efa_interfaces)
    for name, given, real in (
        ("EFA interface(s)", efa_interfaces, known.efa_interfaces),
        ("network card(s)", network_cards, known.network_cards),
    ):
        if given not in (None, real):
            at = path("gpuNodes", "hardware")
            raise StackFaults([Fault(at, f"{given} {name} given, but {instance_type} has {real}", remove(at))])
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
    """Base64 MIME user data that has nodeadm join the instance's NVMe disks to one RAID0 at `node_labels.NODE_STORAGE`."""
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


def capacity_faults(kind: CapacityKind, reservation_id: str | None) -> list[Fault]:
    """What is half-configured about where instances come from: one fault, or none."""
    if (why := kind.contradiction(reservation_id)) is None:
        return []
    if reservation_id is None:
        return [Fault(_RESERVATION, why, set_to(_RESERVATION, "cr-0123456789abcdef0"))]
    fix = f"{set_to(path('gpuNodes', 'capacity', 'kind'), 'reservation')} (or {CapacityKind.CAPACITY_BLOCK})"
    return [Fault(_RESERVATION, why, fix, reservation_id)]


def reservation_faults(
    *,
    reservation_id: str,
    found_zone: str,
    found_type: str,
    found_count: int,
    zone: str,
    instance_type: str,
    node_count: int,
) -> list[Fault]:
    """Where an existing capacity reservation (``found_*``) cannot hold the node group that is to use it."""
    faults: list[Fault] = []
    if found_zone != zone:
        why = f"the reservation lies in {found_zone}, the GPU nodes in {zone}"
        faults.append(Fault(_RESERVATION, why, set_to(path("gpuNodes", "zone"), found_zone), reservation_id))
    if found_type != instance_type:
        why = f"the reservation holds {found_type}, the GPU nodes are {instance_type}"
        faults.append(Fault(_RESERVATION, why, set_to(path("gpuNodes", "instanceType"), found_type), reservation_id))
    if found_count < node_count:
        why = f"the reservation holds {found_count} instance(s), the GPU group wants {node_count}"
        fix = f"{set_to(path('gpuNodes', 'count'), found_count)} (or enlarge the reservation)"
        faults.append(Fault(_RESERVATION, why, fix, reservation_id))
    return faults


def reservation_placement_faults(
    *, reservation_id: str, made_in_arn: str | None, placement_group_name: str | None
) -> list[Fault]:
    """Whether a reservation that was made in a placement group (``made_in_arn``) is used in another one, or in none."""
    made_in = made_in_arn.rpartition("/")[2] if made_in_arn else None
    if not made_in or made_in == placement_group_name:
        return []
    why = f"the reservation was made in placement group {made_in} and serves no instance outside it"
    return [Fault(_RESERVATION, why, set_to(path("gpuNodes", "placementGroup"), made_in), reservation_id)]
