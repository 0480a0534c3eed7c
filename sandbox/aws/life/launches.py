"""Nodes: what EC2 says to a launch, and what a new instance needs before it can join its cluster."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sandbox.aws import seeds
from sandbox.aws.account import Record
from sandbox.aws.life.base import At, Life, Outputs, tags_of, with_tags
from sandbox.aws.life.ec2_calls import row
from sandbox.aws.life.iam import attached_policies
from sandbox.aws.life.instances import PLACEMENT_GROUP, RESERVATION
from sandbox.aws.life.routes import way_out
from sandbox.aws.life.security_groups import admits_https
from sandbox.aws.limits import quota_of
from sandbox.faults import FaultKind

NODE = "aws:ec2/instance:Instance"

# EKS user guide, "Amazon EKS node IAM role": the first two, and one that lets it pull images.
_NEEDED = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy")
_PULLS = ("AmazonEC2ContainerRegistryPullOnly", "AmazonEC2ContainerRegistryReadOnly")


@dataclass(frozen=True)
class Issue:
    """What EKS reports of a node group that failed.

    Attributes:
        code: NodegroupIssueCode of EKS's API.
        message: EKS's message.
        resources: Ids of what it is about: the Auto Scaling group, or instances.
        has_instances: The instances run; they did not become nodes.
        why: What EKS does not say: the cause, for the sandbox's own report.
    """

    code: str
    message: str
    resources: tuple[str, ...] = ()
    has_instances: bool = False
    why: str = ""


@dataclass(frozen=True)
class Launch:
    """Instances that a node group wants. ``template`` is launch template data in EC2's words."""

    group: str
    asg: str
    cluster: str
    cluster_group: str
    subnets: tuple[str, ...]
    instance_type: str
    market: str
    role: str
    template: Mapping[str, Any] = field(default_factory=dict)

    @property
    def placement_group(self) -> str | None:
        """Its placement group."""
        return self.template.get("Placement", {}).get("GroupName")

    @property
    def reservation(self) -> str | None:
        """The capacity reservation or block it aims at."""
        target = self.template.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        return target.get("CapacityReservationId")

    def failed(self, reason: str, why: str = "") -> Issue:
        """What EKS says when its Auto Scaling group cannot launch (containers-roadmap#2204, EKS API NodegroupIssueCode)."""
        message = f"Could not launch {self.market} Instances. {reason} Launching EC2 instance failed."
        return Issue("AsgInstanceLaunchFailures", message, (self.asg,), why=why)

    def finds_no_capacity(self) -> Issue:
        """The zone has none of its type left."""
        return self.failed(
            f"InsufficientInstanceCapacity - We currently do not have sufficient {self.instance_type} capacity in the "
            "Availability Zone you requested. Our system will be working on provisioning additional capacity."
        )

    def exceeds(self, vcpus: int) -> Issue:
        """The account's quota is too small.

        EC2 API reference, error codes: VcpuLimitExceeded; EC2 user guide, "Spot Instance quotas", and
        aws-deepracer-community/deepracer-on-the-spot#55.
        """
        if self.market == "Spot":
            return self.failed("MaxSpotInstanceCountExceeded - Max spot instance count exceeded.")
        return self.failed(
            f"VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of {vcpus} allows for "
            "the instance bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
        )

    def mishap(self, kind: FaultKind) -> Issue:
        """The fault that a run asked for."""
        match kind:
            case FaultKind.INSUFFICIENT_CAPACITY:
                return self.finds_no_capacity()
            case FaultKind.QUOTA_EXCEEDED:
                return self.exceeds(0)
            case FaultKind.RESERVATION_EXPIRED:
                return self.failed(_NO_RESERVED_CAPACITY)
            case _:
                return Issue(
                    "NodeCreationFailure", "Instances failed to join the kubernetes cluster", has_instances=True
                )


# hashicorp/terraform-provider-aws#35745 shows EC2's words.
_NO_RESERVED_CAPACITY = (
    "ReservationCapacityExceeded - The requested reservation does not have sufficient compatible and available capacity "
    "for this request."
)


class Node(Life):
    """An instance of a node group. No program has it."""

    service, kind, subject = "ec2", "ec2:instance", "EC2 Instance"
    creating, deleting = "RunInstances", "TerminateInstances"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        raise AssertionError("nodes come from node groups")

    def look(self, at: At, record: Record) -> Outputs | None:
        reservation = row(at, "describe_instances", "Reservations", InstanceIds=[record.id])
        instance = reservation["Instances"][0] if reservation else None
        if instance is None or instance["State"]["Name"] in ("shutting-down", "terminated"):
            return None
        return with_tags({}, tags_of(instance))

    def delete(self, at: At, record: Record) -> None:
        at.ec2("terminate_instances", InstanceIds=[record.id])


def cannot_launch(at: At, order: Launch, count: int) -> Issue | None:
    """Why EC2 would not launch, if it would not."""
    if not count:
        return None
    for subnet in order.subnets:
        zone = _zone(at, subnet)
        if zone not in at.cloud.zones_offering(order.instance_type, at.region):
            return order.failed(
                f"Unsupported - Your requested instance type ({order.instance_type}) is not supported in your requested "
                f"Availability Zone ({zone})."
            )
    for interface in order.template.get("NetworkInterfaces", ()):
        for group in interface.get("Groups", ()):
            if row(at, "describe_security_groups", "SecurityGroups", GroupIds=[group]) is None:
                return order.failed(f"InvalidGroup.NotFound - The security group '{group}' does not exist.")
    name = order.placement_group
    if name and at.account.record(PLACEMENT_GROUP, name, at.region) is None:
        return order.failed(f"InvalidPlacementGroup.Unknown - The Placement Group '{name}' is unknown.")
    return _reservation_issue(at, order, count) or _limit_issue(at, order, count)


def cannot_join(at: At, order: Launch) -> str:
    """What an instance lacks to become a node; empty when it lacks nothing."""
    policies = {one.rpartition("/")[2] for one in attached_policies(at, order.role)}
    for needed in _NEEDED:
        if needed not in policies:
            return f"role {order.role} lacks {needed}"
    if not policies & set(_PULLS):
        return f"role {order.role} lacks {_PULLS[0]}"
    for subnet in order.subnets:
        if reason := way_out(at, subnet):
            return f"{subnet} has no way out: {reason}"
        if reason := _deaf_endpoint(at, subnet):
            return reason
    return ""


def launch(at: At, order: Launch, count: int) -> list[str]:
    """Starts instances, over the subnets in turn, and returns their ids."""
    return [_run(at, order, order.subnets[number % len(order.subnets)]) for number in range(count)]


def terminate(at: At, instances: list[str]) -> None:
    """Ends instances; their interfaces go with them."""
    for id in instances:
        record = at.account.record(NODE, id, at.region)
        if record is not None:
            at.ec2("terminate_instances", InstanceIds=[id])
            at.account.drop(record)


def _run(at: At, order: Launch, subnet: str) -> str:
    tags = {
        one["Key"]: one["Value"]
        for specification in order.template.get("TagSpecifications", ())
        if specification["ResourceType"] == "instance"
        for one in specification["Tags"]
    }
    cluster, group = order.group.split(":")
    tags |= {"eks:cluster-name": cluster, "eks:nodegroup-name": group, f"kubernetes.io/cluster/{cluster}": "owned"}
    made = at.ec2(
        "run_instances",
        ImageId=_image(),
        InstanceType=order.instance_type,
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=_interfaces(order, subnet),
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    )["Instances"][0]["InstanceId"]
    facts = {
        "parent": order.group,
        "placementGroup": order.placement_group,
        "reservation": order.reservation,
        "type": order.instance_type,
        "zone": _zone(at, subnet),
        "quota": quota_of(order.instance_type, order.market),
    }
    at.account.put(Record(NODE, made, at.region, facts=facts, by_aws=True))
    return made


def _interfaces(order: Launch, subnet: str) -> list[dict[str, Any]]:
    # EKS adds its own group only where the template names none (EKS user guide, "Customize managed nodes with launch templates").
    given = order.template.get("NetworkInterfaces")
    if given:
        return [
            {
                "DeviceIndex": one.get("DeviceIndex", 0),
                "NetworkCardIndex": one.get("NetworkCardIndex", 0),
                "InterfaceType": one.get("InterfaceType", "interface"),
                "SubnetId": subnet,
                "Groups": one.get("Groups") or [order.cluster_group],
                "DeleteOnTermination": True,
            }
            for one in given
        ]
    groups = order.template.get("SecurityGroupIds") or [order.cluster_group]
    return [{"DeviceIndex": 0, "SubnetId": subnet, "Groups": groups, "DeleteOnTermination": True}]


@cache
def _image() -> str:
    # Any will do: which one EKS takes follows from the group's amiType. Asked of the API it takes moto a second.
    from moto.ec2.models.amis import AMIS

    return min(one["ami_id"] for one in AMIS)


def _reservation_issue(at: At, order: Launch, count: int) -> Issue | None:
    id = order.reservation
    if id is None:
        return None
    record = at.account.record(RESERVATION, id, at.region)
    seeded = seeds.RESERVATIONS.get(id)
    if record is not None and record.facts["state"] == "active":
        size, wanted_type = record.inputs["instanceCount"], record.inputs["instanceType"]
    elif record is None and seeded is not None and seeded.region == at.region:
        size, wanted_type = seeded.instance_count, seeded.instance_type
    else:
        return order.failed(f"InvalidCapacityReservationId.NotFound - The capacity reservation '{id}' does not exist.")
    used = sum(one.facts.get("reservation") == id for one in at.account.records(NODE))
    if wanted_type != order.instance_type or used + count > size:
        return order.failed(_NO_RESERVED_CAPACITY)
    return None


def _limit_issue(at: At, order: Launch, count: int) -> Issue | None:
    # All or nothing: EKS would start what fits and report the rest.
    limits, running = at.cloud.limits, [one.facts for one in at.account.records(NODE) if one.region == at.region]
    code = quota_of(order.instance_type, order.market)
    if code in limits.vcpus:
        used = sum(_vcpus(at, one["type"]) for one in running if one["quota"] == code)
        if used + count * _vcpus(at, order.instance_type) > limits.vcpus[code]:
            return order.exceeds(limits.vcpus[code])
    if order.reservation is None:
        wanted = Counter(_zone(at, order.subnets[number % len(order.subnets)]) for number in range(count))
        for zone, more in wanted.items():
            place = (zone, order.instance_type)
            used = sum((one["zone"], one["type"]) == place and one["reservation"] is None for one in running)
            if place in limits.capacity and used + more > limits.capacity[place]:
                return order.finds_no_capacity()
    return None


def _vcpus(at: At, instance_type: str) -> int:
    row = at.cloud.instance_type(instance_type, at.region)
    return row["VCpuInfo"]["DefaultVCpus"] if row else 0


def _zone(at: At, subnet: str) -> str:
    return at.ec2("describe_subnets", SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"]


def _deaf_endpoint(at: At, subnet: str) -> str:
    # A private DNS name sends every node of the VPC to the endpoint, whose group must let it in (VPC user guide, "Access an
    # AWS service using an interface VPC endpoint").
    vpc = at.ec2("describe_subnets", SubnetIds=[subnet])["Subnets"][0]["VpcId"]
    for one in at.account.records("aws:ec2/vpcEndpoint:VpcEndpoint"):
        inputs = one.inputs
        if inputs["vpcId"] != vpc or not inputs.get("privateDnsEnabled") or one.region != at.region:
            continue
        if not admits_https(at, inputs.get("securityGroupIds") or []):
            return f"endpoint {one.id} of {inputs['serviceName']} lets no HTTPS in"
    return ""


LIVES: Mapping[str, Life] = {NODE: Node()}
