"""Managed node groups: the group itself, and the nodes it launches, which hold groups and subnets until they are gone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandbox.aws.account import Record
from sandbox.aws.life.base import At, Life, Outputs, changed, with_tags
from sandbox.aws.life.ec2_calls import row
from sandbox.aws.life.eks_calls import NODE_GROUP, cluster_of, given, of_cluster, refused, role_name
from sandbox.aws.life.instances import template_data
from sandbox.aws.life.interfaces import leave_behind
from sandbox.aws.life.launches import Issue, Launch, cannot_join, cannot_launch, launch, terminate
from sandbox.faults import FaultKind
from sandbox.nodes import Node, Taint

# The kubelet's version and the AMI's release date; of the right form only, AWS makes a new one every week.
_RELEASE = "{version}.0-20251023"

# EKS's words for a taint's effect, and Kubernetes'.
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}
_EFA = ("efa", "efa-only")

_DISTURBING = ("launchTemplate", "releaseVersion", "version")


class NodeGroup(Life):
    """internal/service/eks/node_group.go."""

    service, kind, subject = "eks", "eks:nodegroup", "EKS Node Group"
    creating, deleting = "CreateNodegroup", "DeleteNodegroup"
    waits = ("ACTIVE", "CREATING", 60)

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['clusterName']}:{inputs['nodeGroupName']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        cluster = cluster_of(at, "CreateNodegroup", inputs["clusterName"])
        self._parts_exist(at, inputs)
        made = at.call(
            "eks",
            "create_nodegroup",
            clusterName=inputs["clusterName"],
            nodegroupName=inputs["nodeGroupName"],
            subnets=inputs["subnetIds"],
            nodeRole=inputs["nodeRoleArn"],
            amiType=inputs.get("amiType"),
            capacityType=inputs.get("capacityType"),
            scalingConfig=inputs["scalingConfig"],
            tags=inputs.get("tagsAll") or None,
        )["nodegroup"]
        version = inputs.get("version", cluster.facts["version"])
        facts = {
            "arn": made["nodegroupArn"],
            "asg": made["resources"]["autoScalingGroups"][0]["name"],
            "instances": [],
            "status": "CREATING",
            "version": version,
            "release": inputs.get("releaseVersion", _RELEASE.format(version=version)),
        }
        return Record(NODE_GROUP, f"{inputs['clusterName']}:{inputs['nodeGroupName']}", at.region, inputs, facts)

    def started(self, at: At, record: Record) -> str:
        if at.fault is FaultKind.TIME_OUT:
            return self.timed_out(at, record)
        issue = self._populate(at, record)
        if issue is None:
            return ""
        # issuesError and waitNodegroupCreated of the provider.
        return (
            f"waiting for EKS Node Group ({record.id}) create: unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. "
            f"last error: {', '.join(issue.resources)}: {issue.code}: {issue.message}"
        )

    def look(self, at: At, record: Record) -> Outputs | None:
        found = at.found(
            "eks", "describe_nodegroup", clusterName=record.inputs["clusterName"], nodegroupName=_name(record)
        )
        if found is None:
            return None
        if record.facts["status"] == "CREATING":
            # The provider stopped waiting; EKS did not.
            self._populate(at, record)
            record = at.account.record(NODE_GROUP, record.id, at.region) or record
        group, inputs, facts = found["nodegroup"], record.inputs, record.facts
        in_template = bool(inputs.get("launchTemplate"))
        outputs = {
            "amiType": inputs.get("amiType", "AL2023_x86_64_STANDARD"),
            "arn": facts["arn"],
            "capacityType": inputs.get("capacityType", "ON_DEMAND"),
            "diskSize": 0 if in_template else inputs.get("diskSize", 20),
            "instanceTypes": inputs.get("instanceTypes", [] if in_template else ["t3.medium"]),
            "launchTemplate": self._template(at, inputs),
            "nodeGroupName": _name(record),
            "nodeGroupNamePrefix": "",
            "releaseVersion": facts["release"],
            "resources": [{"autoscalingGroups": [{"name": facts["asg"]}], "remoteAccessSecurityGroupId": ""}],
            "scalingConfig": group["scalingConfig"],
            "status": facts["status"],
            "updateConfig": inputs.get("updateConfig") or {"maxUnavailable": 1, "maxUnavailablePercentage": 0},
            "version": facts["version"],
        }
        return with_tags(given(outputs), group.get("tags") or {})

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        disturbs = changed(record, inputs, *_DISTURBING)
        if not disturbs and not changed(
            record, inputs, "labels", "scalingConfig", "taints", "updateConfig", "nodeRepairConfig"
        ):
            return record
        if record.facts["status"] != "ACTIVE":
            action = "UpdateNodegroupVersion" if disturbs else "UpdateNodegroupConfig"
            reason = "Nodegroup cannot be updated as it is currently not in Active State"
            raise refused(action, "ResourceInUseException", reason)
        if changed(record, inputs, "scalingConfig"):
            at.call(
                "eks",
                "update_nodegroup_config",
                clusterName=inputs["clusterName"],
                nodegroupName=_name(record),
                scalingConfig=inputs["scalingConfig"],
            )
        version = inputs.get("version", record.facts["version"])
        release = record.facts["release"] if version == record.facts["version"] else _RELEASE.format(version=version)
        newer = replace(
            record,
            inputs=inputs,
            facts={**record.facts, "version": version, "release": inputs.get("releaseVersion", release)},
        )
        kept = [] if disturbs else list(record.facts["instances"])
        wanted = inputs["scalingConfig"]["desiredSize"]
        gone = [one for one in record.facts["instances"] if one not in kept[:wanted]]
        terminate(at, gone)
        more = wanted - len(kept[:wanted])
        started = launch(at, self._order(at, newer), more) if more else []
        newer = replace(newer, facts={**newer.facts, "instances": [*kept[:wanted], *started]})
        at.account.put(newer)
        self._settle(at, record)
        return newer

    def delete(self, at: At, record: Record) -> None:
        leave_behind(at, role_name(record.inputs["nodeRoleArn"]), record.facts["instances"])
        terminate(at, record.facts["instances"])
        at.account.note(record, instances=[])
        self._settle(at, record)
        at.call("eks", "delete_nodegroup", clusterName=record.inputs["clusterName"], nodegroupName=_name(record))

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        if gone:
            at.call("eks", "untag_resource", resourceArn=record.facts["arn"], tagKeys=gone)
        if tags:
            at.call("eks", "tag_resource", resourceArn=record.facts["arn"], tags=dict(tags))

    def _populate(self, at: At, record: Record) -> Issue | None:
        order = self._order(at, record)
        wanted = record.inputs["scalingConfig"]["desiredSize"]
        issue = cannot_launch(at, order, wanted) if at.fault is None else order.mishap(at.fault)
        if issue is None or issue.has_instances:
            started = launch(at, order, wanted)
            record = at.account.note(record, instances=started)
            if wanted and issue is None and (reason := cannot_join(at, order)):
                issue = Issue("NodeCreationFailure", "Instances failed to join the kubernetes cluster", why=reason)
            if issue is not None:
                issue = replace(issue, resources=tuple(started))
        status = "ACTIVE" if issue is None else "CREATE_FAILED"
        at.account.note(record, status=status, why=issue.why if issue else "")
        if issue is None and (absent := self._settle(at, record)):
            return Issue("NodeCreationFailure", "Instances failed to join the kubernetes cluster", (absent,))
        return issue

    def _settle(self, at: At, record: Record) -> str:
        cluster = record.inputs["clusterName"]
        return at.cloud.control_planes.settle(cluster, nodes_of(at, cluster))

    def _order(self, at: At, record: Record) -> Launch:
        inputs = record.inputs
        cluster = cluster_of(at, "CreateNodegroup", inputs["clusterName"])
        template = inputs.get("launchTemplate")
        data = template_data(at, template) if template else None
        types = inputs.get("instanceTypes") or []
        return Launch(
            group=record.id,
            asg=record.facts["asg"],
            cluster=inputs["clusterName"],
            cluster_group=cluster.facts["group"],
            subnets=tuple(inputs["subnetIds"]),
            instance_type=types[0] if types else (data or {}).get("InstanceType", "t3.medium"),
            market="Spot" if inputs.get("capacityType") == "SPOT" else "On-Demand",
            role=role_name(inputs["nodeRoleArn"]),
            template=data or {},
        )

    def _parts_exist(self, at: At, inputs: Mapping[str, Any]) -> None:
        role = role_name(inputs["nodeRoleArn"])
        if at.found("iam", "get_role", RoleName=role) is None:
            reason = f"The role with name {role} cannot be found."
            raise refused("CreateNodegroup", "InvalidParameterException", reason)
        for subnet in inputs["subnetIds"]:
            if row(at, "describe_subnets", "Subnets", SubnetIds=[subnet]) is None:
                reason = f"The subnet ID '{subnet}' does not exist"
                raise refused("CreateNodegroup", "InvalidParameterException", reason)
        template = inputs.get("launchTemplate")
        if template and template_data(at, template) is None:
            reason = f"The launch template {template.get('id') or template.get('name')} version {template['version']} does not exist."
            raise refused("CreateNodegroup", "InvalidParameterException", reason)

    def _template(self, at: At, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        template = inputs.get("launchTemplate")
        if not template:
            return None
        by = (
            {"LaunchTemplateIds": [template["id"]]}
            if template.get("id")
            else {"LaunchTemplateNames": [template["name"]]}
        )
        found = row(at, "describe_launch_templates", "LaunchTemplates", **by)
        names = {"id": found["LaunchTemplateId"], "name": found["LaunchTemplateName"]} if found else {}
        return {**template, **names}


def nodes_of(at: At, cluster: str) -> list[Node]:
    """The nodes of a cluster: the instances of its groups that are up."""
    return [
        _node(at, group, instance)
        for group in of_cluster(at, cluster, NODE_GROUP)
        if group.facts["status"] == "ACTIVE"
        for instance in group.facts["instances"]
    ]


def _node(at: At, group: Record, id: str) -> Node:
    found = at.ec2("describe_instances", InstanceIds=[id])["Reservations"][0]["Instances"][0]
    inputs, name = group.inputs, found["PrivateDnsName"]
    zone = found["Placement"]["AvailabilityZone"]
    row = at.cloud.instance_type(found["InstanceType"], at.region) or {}
    (architecture,) = row["ProcessorInfo"]["SupportedArchitectures"][:1]
    # EKS user guide, "Simplify node lifecycle with managed node groups"; kubernetes.io, "Well-Known Labels".
    labels = {
        "eks.amazonaws.com/capacityType": inputs.get("capacityType") or "ON_DEMAND",
        "eks.amazonaws.com/nodegroup": _name(group),
        "kubernetes.io/arch": {"x86_64": "amd64"}.get(architecture, architecture),
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": found["InstanceType"],
        "topology.kubernetes.io/region": at.region,
        "topology.kubernetes.io/zone": zone,
    }
    data = (template_data(at, inputs["launchTemplate"]) if inputs.get("launchTemplate") else None) or {}
    return Node(
        name=name,
        instance_id=id,
        instance_type=found["InstanceType"],
        zone=zone,
        group=_name(group),
        labels={**labels, **(inputs.get("labels") or {})},
        taints=[
            Taint(one["key"], one.get("value") or "", _EFFECTS[one["effect"]]) for one in inputs.get("taints") or ()
        ],
        efa_interfaces=sum(one.get("InterfaceType") in _EFA for one in data.get("NetworkInterfaces") or ()),
        vcpus=row["VCpuInfo"]["DefaultVCpus"],
        memory_mib=row["MemoryInfo"]["SizeInMiB"],
        gpus=sum(one["Count"] for one in row.get("GpuInfo", {}).get("Gpus", ())),
        pods=pods_of(row),
    )


def pods_of(row: Mapping[str, Any]) -> int:
    """How many pods a node finds addresses for; ``row`` is one of EC2's DescribeInstanceTypes."""
    # awslabs/amazon-eks-ami, nodeadm/internal/kubelet/eni_max_pods.go and instance-info.jsonl: interfaces of the default network
    # card, each of which keeps its first address, and two pods on the host's network.
    network = row["NetworkInfo"]
    card = network["NetworkCards"][network["DefaultNetworkCardIndex"]]
    return card["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2


def _name(record: Record) -> str:
    return record.inputs["nodeGroupName"]


LIVES: Mapping[str, Life] = {NODE_GROUP: NodeGroup()}
