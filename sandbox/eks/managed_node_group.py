"""``eks:index:ManagedNodeGroup``: the node group and, where its options ask for one, the launch template around it.

Restated from pulumi/pulumi-eks nodejs/eks/nodes/nodegroup.ts and instances.ts (v4.3.0).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_aws as aws
import pulumi_eks
from pulumi.errors import InputPropertyError

from sandbox.eks.arguments import GIVEN, judge
from sandbox.standin import UNKNOWN, StandInError

_USER_DATA: Final = ("kubeletExtraArgs", "bootstrapExtraArgs", "bottlerocketSettings", "nodeadmExtraOptions")
_TEMPLATE: Final = (*_USER_DATA, "enableIMDSv2", "userData", "amiId", "enableEfaSupport")
_PASSED_ON: Final = {
    **{
        "capacityType": "capacity_type",
        "forceUpdateVersion": "force_update_version",
        "instanceTypes": "instance_types",
    },
    **{"labels": "labels", "nodeGroupName": "node_group_name", "nodeGroupNamePrefix": "node_group_name_prefix"},
    **{"releaseVersion": "release_version", "tags": "tags", "version": "version", "diskSize": "disk_size"},
}


class ManagedNodeGroup(pulumi.ComponentResource):
    """The component; ``state`` is what it answers the program."""

    state: dict[str, Any]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        values = GIVEN.get()
        judge(pulumi_eks.ManagedNodeGroupArgs, _judgeable(values), "ManagedNodeGroup")
        if faults := list(_refusals(values)):
            raise StandInError("; ".join(faults))
        super().__init__("eks:index:ManagedNodeGroup", name, {}, opts)
        self._inputs, self._values, self._below = inputs, values, pulumi.ResourceOptions(parent=self)
        core = pulumi.Output.from_input(inputs["cluster"]).apply(_core)
        self._cluster = core.apply(lambda found: found["cluster"] if isinstance(found, Mapping) else found.cluster)
        placement = self._placement_group(name)
        template = self._launch_template(name, placement)
        group = self._node_group(name, core, template)
        self.state = {"nodeGroup": group, "placementGroupName": placement.name if placement else ""}
        self.register_outputs(self.state)

    def _placement_group(self, name: str) -> aws.ec2.PlacementGroup | None:
        if self._values.get("enableEfaSupport") is not True:
            return None
        return aws.ec2.PlacementGroup(name, strategy="cluster", tags=self._inputs.get("tags"), opts=self._below)

    def _launch_template(self, name: str, placement: aws.ec2.PlacementGroup | None) -> aws.ec2.LaunchTemplate | None:
        inputs, values = self._inputs, self._values
        if not any(values.get(key) is not None for key in _TEMPLATE):
            return None
        size, imds = inputs.get("diskSize"), values.get("enableIMDSv2")
        return aws.ec2.LaunchTemplate(
            f"{name}-launchTemplate",
            block_device_mappings=None
            if size is None
            else [{"device_name": "/dev/xvda", "ebs": {"volume_size": size}}],
            metadata_options=None
            if imds is None
            else {
                "http_tokens": "required" if imds else "optional",
                "http_put_response_hop_limit": 2,
                "http_endpoint": "enabled",
            },
            placement={"group_name": placement.name} if placement else None,
            network_interfaces=self._interfaces() if placement else None,
            opts=self._below,
        )

    def _interfaces(self) -> pulumi.Output[list[Any]]:
        group = self._cluster.apply(lambda found: found.vpc_config).apply(lambda found: found.cluster_security_group_id)
        info = aws.ec2.get_instance_type_output(instance_type=self._instance_type(), opts=self._ask())
        return pulumi.Output.all(info.efa_supported, info.maximum_network_cards, self._instance_type()).apply(
            lambda known: _efa_interfaces(known[0], known[1], known[2], group)
        )

    def _node_group(
        self, name: str, core: pulumi.Output[Any], template: aws.ec2.LaunchTemplate | None
    ) -> aws.eks.NodeGroup:
        inputs, values = self._inputs, self._values
        passed = {python: inputs.get(key) for key, python in _PASSED_ON.items()}
        if template is not None:
            passed["disk_size"] = None
        if passed["version"] is None and values.get("launchTemplate") is None:
            passed["version"] = self._cluster.apply(lambda found: found.version)
        role = inputs.get("nodeRoleArn") or pulumi.Output.from_input(inputs["nodeRole"]).apply(lambda found: found.arn)
        scaling = pulumi.Output.from_input(inputs.get("scalingConfig") or {}).apply(_scaling)
        ignored = ["scalingConfig.desiredSize"] if values.get("ignoreScalingChanges") else None
        launch: Any = inputs.get("launchTemplate")
        if template is not None:
            launch = {"id": template.id, "version": template.latest_version.apply(str)}
        return aws.eks.NodeGroup(
            name,
            ami_type=inputs.get("amiType"),
            cluster_name=inputs.get("clusterName") or self._cluster.apply(lambda found: found.name),
            node_role_arn=role,
            scaling_config=scaling,
            subnet_ids=self._subnets(core),
            launch_template=launch,
            remote_access=inputs.get("remoteAccess"),
            taints=inputs.get("taints"),
            update_config=None
            if inputs.get("updateConfig") is None
            else pulumi.Output.from_input(inputs["updateConfig"]).apply(_update),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=ignored),
            **passed,
        )

    def _subnets(self, core: pulumi.Output[Any]) -> Any:
        given = self._inputs.get("subnetIds")
        subnets = core.apply(_subnets_of) if given is None else given
        if self._values.get("enableEfaSupport") is not True:
            return subnets
        # Asked of AWS, so the subnets are unknown until they exist.
        zone = self._inputs["placementGroupAvailabilityZone"]
        filters: Any = [{"name": "availability-zone", "values": [zone]}, {"name": "subnet-id", "values": subnets}]
        return aws.ec2.get_subnets_output(filters=filters, opts=self._ask()).ids

    def _instance_type(self) -> pulumi.Output[str]:
        return pulumi.Output.from_input(self._inputs["instanceTypes"]).apply(lambda types: types[0])

    def _ask(self) -> pulumi.InvokeOutputOptions:
        return pulumi.InvokeOutputOptions(parent=self)


def _refusals(values: Mapping[str, Any]) -> Iterator[str]:
    if values.get("nodeRole") is not None and values.get("nodeRoleArn") is not None:
        yield "nodeRole and nodeRoleArn exclude each other: keep one"
    if values.get("nodeRole") is None and values.get("nodeRoleArn") is None:
        yield "nodeRole: a role or its ARN (nodeRoleArn) must be given"
    for key in ("gpu", "amiType"):
        if values.get("amiId") is not None and values.get(key) is not None:
            yield f"amiId and {key} exclude each other: keep one"
    if values.get("enableEfaSupport") is True:
        if values.get("placementGroupAvailabilityZone") is None:
            yield "enableEfaSupport: placementGroupAvailabilityZone must be given with it"
        if not isinstance(values.get("instanceTypes"), list) or len(values["instanceTypes"]) != 1:
            yield "enableEfaSupport: instanceTypes must name exactly one type"
    custom = [key for key in _TEMPLATE if values.get(key) is not None]
    if values.get("launchTemplate") is not None and custom:
        yield f"launchTemplate excludes {', '.join(custom)}: put them into the template"
    if values.get("userData") is not None and any(values.get(key) is not None for key in _USER_DATA):
        yield f"userData excludes {', '.join(_USER_DATA)}: put them into the user data"
    unsimulated = [key for key in (*_USER_DATA, "userData", "amiId", "operatingSystem") if values.get(key) is not None]
    if unsimulated:
        yield f"not simulated by the sandbox: {', '.join(unsimulated)} of eks.ManagedNodeGroup"


def _judgeable(values: Mapping[str, Any]) -> Mapping[str, Any]:
    # A cluster is a resource or the core of one; which it is does not matter to the judgement.
    return {**values, "cluster": UNKNOWN} if values.get("cluster") is not None else values


def _core(cluster: Any) -> Any:
    return cluster.core if isinstance(cluster, pulumi_eks.Cluster) else cluster


def _subnets_of(core: Any) -> Sequence[str]:
    for key in ("subnetIds", "privateSubnetIds", "publicSubnetIds"):
        if isinstance(core, Mapping) and core.get(key) is not None:
            return core[key]
    return []


def _efa_interfaces(supported: bool, cards: int, instance_type: str, group: Any) -> list[Any]:
    if not supported:
        raise InputPropertyError("instanceTypes", f"the instance type {instance_type} does not support EFA")
    return [
        aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            delete_on_termination="true",
            network_card_index=card,
            device_index=min(card, 1),
            interface_type="efa-only" if card else "efa",
            security_groups=[group],
        )
        for card in range(max(int(cards), 1))
    ]


def _scaling(given: Mapping[str, Any]) -> aws.eks.NodeGroupScalingConfigArgs:
    return aws.eks.NodeGroupScalingConfigArgs(
        desired_size=given.get("desiredSize", 2), min_size=given.get("minSize", 1), max_size=given.get("maxSize", 2)
    )


def _update(given: Mapping[str, Any]) -> aws.eks.NodeGroupUpdateConfigArgs:
    return aws.eks.NodeGroupUpdateConfigArgs(
        max_unavailable=given.get("maxUnavailable"), max_unavailable_percentage=given.get("maxUnavailablePercentage")
    )
