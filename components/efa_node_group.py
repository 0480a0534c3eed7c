"""GPU nodes with EFA: one managed node group, in one Availability Zone by construction."""

from collections.abc import Mapping, Sequence
from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components import PACKAGE
from components.choices import CapacityKind
from components.faults import StackFaults
from components.launch_template import (
    capacity_faults,
    imds_v2_only,
    instance_tags,
    interface_layout,
    network_interfaces,
    raid0_user_data,
    reservation_faults,
    reservation_placement_faults,
    root_volume,
)
from components.node_labels import GPU_NODE_LABELS, GPU_TAINT
from components.node_role import NodeRole
from components.tags import resource_tags, without_cluster_ownership

DEFAULT_CREATE_TIMEOUT_MINUTES: Final = 40
_ROOT_GIB = 50


class EfaNodeGroupArgs(TypedDict):
    """Arguments of `EfaNodeGroup`. What policies judge is plain; only wiring is an Input."""

    cluster_name: pulumi.Input[str]
    """Name of the EKS cluster."""
    vpc_id: pulumi.Input[str]
    """VPC of the EFA security group."""
    cluster_security_group_id: pulumi.Input[str]
    """The security group EKS made for the cluster."""
    subnet_id: pulumi.Input[str]
    """The one subnet of the group, in `zone`."""
    zone: str
    """Availability Zone of the whole group, such as us-east-1a: EFA does not cross zones."""
    instance_type: str
    """EC2 type with GPUs and EFA, such as g6.8xlarge."""
    node_count: int
    """Number of nodes: minimum, maximum and desired. A capacity block that has not begun may say 0."""
    capacity_kind: NotRequired[CapacityKind]
    """Where the instances come from. Default: onDemand."""
    reservation_id: NotRequired[str | None]
    """Id of the capacity reservation or block; required by, and only for, those two kinds."""
    placement_group_name: NotRequired[str | None]
    """An existing cluster placement group. Without it one is made, unless a reservation is used."""
    efa_interfaces: NotRequired[int | None]
    """EFA maximum of the type. Needed for a type outside the catalogue; for another it must agree."""
    network_cards: NotRequired[int | None]
    """Network cards of the type, likewise. Default outside the catalogue: one an EFA interface."""
    kubernetes_version: NotRequired[str | None]
    """Minor version of the nodes. Default: the cluster's when the group is made."""
    egress: NotRequired[Sequence[pulumi.Resource]]
    """What must stand before nodes start and outlive them, see `Network.egress`."""
    create_timeout_minutes: NotRequired[int]
    """How long to wait for the nodes; EKS itself does not say soon that a zone has no capacity. Default: 40."""
    tags: NotRequired[Mapping[str, str]]
    """Tags added to every taggable resource, instances, volumes and interfaces too."""


class EfaNodeGroup(pulumi.ComponentResource):
    """GPU nodes with every EFA device attached, close together, with their NVMe disks as one volume.

    Raises:
        StackFaults: The type has no known EFA layout, capacity is half-configured, or the reservation (read in preview
            too) lies elsewhere, holds another type or too few instances, or was made in another placement group.
    """

    node_group: aws.eks.NodeGroup
    security_group_id: pulumi.Output[str]
    """The EFA group: everything from itself and to itself."""
    launch_template_id: pulumi.Output[str]
    placement_group_name: pulumi.Output[str] | None
    zone: str

    def __init__(self, name: str, args: EfaNodeGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        kind = args.get("capacity_kind", CapacityKind.ON_DEMAND)
        reservation_id = args.get("reservation_id")
        faults = capacity_faults(kind, reservation_id)
        try:
            layout = interface_layout(args["instance_type"], args.get("efa_interfaces"), args.get("network_cards"))
        except ValueError as error:
            raise StackFaults([str(error), *faults]) from error
        if faults:
            raise StackFaults(faults)

        super().__init__(f"{PACKAGE}:index:EfaNodeGroup", name, None, opts)
        self._name = name
        self._args = args
        self._tags = args.get("tags")
        self._child = pulumi.ResourceOptions(parent=self)
        self.zone = args["zone"]

        reservation = self._reservation(reservation_id) if reservation_id else None
        security_group, rules = self._efa_security_group()
        self.security_group_id = security_group.id
        self.placement_group_name = self._placement_group(reservation_id)
        template = self._launch_template(
            kind,
            reservation_id,
            network_interfaces(layout, [args["cluster_security_group_id"], security_group.id]),
        )
        self.launch_template_id = template.id
        self.node_group = self._node_group(kind, template, rules)
        self.register_outputs(
            {
                "node_group": self.node_group,
                "security_group_id": self.security_group_id,
                "launch_template_id": self.launch_template_id,
                "placement_group_name": self.placement_group_name,
                "zone": self.zone,
                "reservation_id": reservation,
            }
        )

    def _reservation(self, reservation_id: str) -> pulumi.Output[str]:
        """The id of the reservation, once EC2 has shown that it exists and can hold this group."""
        args = self._args
        found = aws.ec2.CapacityReservation.get(f"{self._name}-reservation", reservation_id, opts=self._child)

        def judged(zone: str, instance_type: str, count: int) -> str:
            faults = reservation_faults(
                reservation_id=reservation_id,
                found_zone=zone,
                found_type=instance_type,
                found_count=count,
                zone=args["zone"],
                instance_type=args["instance_type"],
                node_count=args["node_count"],
            )
            if faults:
                raise StackFaults(faults)
            return reservation_id

        def judge_placement(made_in_arn: str | None) -> None:
            faults = reservation_placement_faults(
                reservation_id=reservation_id,
                made_in_arn=made_in_arn,
                placement_group_name=args.get("placement_group_name"),
            )
            if faults:
                raise StackFaults(faults)

        # Apart from the rest: EC2 leaves it out where there is none, which a preview takes for unknown.
        found.placement_group_arn.apply(judge_placement)
        return pulumi.Output.all(found.availability_zone, found.instance_type, found.instance_count).apply(
            lambda values: judged(*values)
        )

    def _efa_security_group(self) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
        name = f"{self._name}-efa"
        tags = without_cluster_ownership(resource_tags(self._tags, name=name))
        group = aws.ec2.SecurityGroup(
            name,
            vpc_id=self._args["vpc_id"],
            description="EFA traffic between the GPU nodes",
            tags=tags,
            opts=self._child,
        )
        # EFA traffic is not IP: a rule with a CIDR never matches it, only one that names the group does, in both
        # directions (gardener/gardener-extension-provider-aws#1832). The way to the internet is the cluster's group.
        ingress = aws.vpc.SecurityGroupIngressRule(
            f"{name}-from-itself",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA from the other GPU nodes",
            tags=tags,
            opts=self._child,
        )
        egress = aws.vpc.SecurityGroupEgressRule(
            f"{name}-to-itself",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA to the other GPU nodes",
            tags=tags,
            opts=self._child,
        )
        return group, [ingress, egress]

    def _placement_group(self, reservation_id: str | None) -> pulumi.Output[str] | None:
        named = self._args.get("placement_group_name")
        if named:
            return pulumi.Output.from_input(named)
        if reservation_id:
            # A reservation serves no instance of a placement group it was not made in (eksctl-io/eksctl#7949).
            return None
        # A cluster placement group sits in one zone. With the zone in its name a move to another zone makes a new one,
        # and the launch template and the node group follow.
        name = f"{self._name}-placement-{self.zone}"
        group = aws.ec2.PlacementGroup(
            name, strategy="cluster", tags=resource_tags(self._tags, name=name), opts=self._child
        )
        return group.name

    def _launch_template(
        self,
        kind: CapacityKind,
        reservation_id: str | None,
        interfaces: list[aws.ec2.LaunchTemplateNetworkInterfaceArgsDict],
    ) -> aws.ec2.LaunchTemplate:
        tags = resource_tags(self._tags, name=self._name)
        in_block = kind is CapacityKind.CAPACITY_BLOCK
        return aws.ec2.LaunchTemplate(
            f"{self._name}-nodes",
            description=f"GPU nodes with EFA in {self.zone}",
            # EKS wants the type here for a capacity block, and otherwise either here or on the group, never twice.
            instance_type=self._args["instance_type"] if in_block else None,
            instance_market_options={"market_type": "capacity-block"} if in_block else None,
            capacity_reservation_specification=(
                {"capacity_reservation_target": {"capacity_reservation_id": reservation_id}} if reservation_id else None
            ),
            placement={"group_name": self.placement_group_name} if self.placement_group_name else None,
            network_interfaces=interfaces,
            metadata_options=imds_v2_only(),
            block_device_mappings=root_volume(_ROOT_GIB),
            user_data=raid0_user_data(),
            tag_specifications=instance_tags(tags),
            tags=tags,
            opts=self._child,
        )

    def _node_group(
        self, kind: CapacityKind, template: aws.ec2.LaunchTemplate, rules: Sequence[pulumi.Resource]
    ) -> aws.eks.NodeGroup:
        args = self._args
        node_role = NodeRole(self._name, self._tags, parent=self)
        in_block = kind is CapacityKind.CAPACITY_BLOCK
        count = args["node_count"]
        minutes = args.get("create_timeout_minutes", DEFAULT_CREATE_TIMEOUT_MINUTES)
        return aws.eks.NodeGroup(
            f"{self._name}-nodes",
            cluster_name=args["cluster_name"],
            node_role_arn=node_role.role.arn,
            subnet_ids=[args["subnet_id"]],
            version=args.get("kubernetes_version"),
            ami_type="AL2023_x86_64_NVIDIA",
            instance_types=None if in_block else [args["instance_type"]],
            capacity_type="CAPACITY_BLOCK" if in_block else "ON_DEMAND",
            # EKS refuses a maximum of 0.
            scaling_config={"min_size": count, "max_size": max(count, 1), "desired_size": count},
            # The default strategy starts a new node first, and there is no GPU for it.
            update_config={"update_strategy": "MINIMAL", "max_unavailable": 1},
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            labels=dict(GPU_NODE_LABELS),
            taints=[{"key": GPU_TAINT.key, "value": GPU_TAINT.value, "effect": GPU_TAINT.eks_effect}],
            tags=resource_tags(self._tags, name=self._name),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*args.get("egress", []), *node_role.attachments, *rules],
                # Quota and reservation hold the group once: the old one goes before the new one comes, with an outage.
                delete_before_replace=True,
                custom_timeouts=pulumi.CustomTimeouts(create=f"{minutes}m"),
            ),
        )
