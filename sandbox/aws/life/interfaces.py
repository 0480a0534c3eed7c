"""Network interfaces that outlive their node, because nobody was allowed any more to delete them."""

from collections.abc import Mapping
from typing import Any, Final

from sandbox.aws.account import Record
from sandbox.aws.life.base import At, Life, Outputs
from sandbox.aws.life.ec2_calls import INTERFACE, row
from sandbox.aws.life.iam import attached_policies

_CLEANS_UP: Final = "AmazonEKS_CNI_Policy"


class NetworkInterface(Life):
    """One that the VPC CNI plugin had added to a node. No program has it."""

    service, kind, subject = "ec2", "ec2:network-interface", "EC2 Network Interface"
    creating, deleting = "CreateNetworkInterface", "DeleteNetworkInterface"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        raise AssertionError("interfaces come from nodes")

    def look(self, at: At, record: Record) -> Outputs | None:
        found = row(at, "describe_network_interfaces", "NetworkInterfaces", NetworkInterfaceIds=[record.id])
        return None if found is None else {"name": found["Description"]}

    def delete(self, at: At, record: Record) -> None:
        at.ec2("delete_network_interface", NetworkInterfaceId=record.id)

    def parent(self, record: Record) -> str | None:
        return record.inputs["subnetId"]


def leave_behind(at: At, role: str, instances: list[str]) -> None:
    """What a node group's end leaves where its role had lost the policy of the CNI plugin before its nodes.

    Neither the plugin nor EKS can delete the interfaces then, and they hold subnet and security groups
    (hashicorp/terraform-provider-aws, website/docs/r/eks_node_group.html.markdown, example's comment on ``depends_on``;
    aws/amazon-vpc-cni-k8s, pkg/awsutils/awsutils.go, for the description).
    """
    if any(one.rpartition("/")[2] == _CLEANS_UP for one in attached_policies(at, role)):
        return
    for instance in instances:
        inside = [{"Name": "attachment.instance-id", "Values": [instance]}]
        rows = at.ec2("describe_network_interfaces", Filters=inside)["NetworkInterfaces"]
        if not rows:
            continue
        made = at.ec2(
            "create_network_interface",
            SubnetId=rows[0]["SubnetId"],
            Groups=[one["GroupId"] for one in rows[0]["Groups"]],
            Description=f"aws-K8S-{instance}",
        )["NetworkInterface"]["NetworkInterfaceId"]
        at.account.put(Record(INTERFACE, made, at.region, {"subnetId": rows[0]["SubnetId"]}))


LIVES: Mapping[str, Life] = {INTERFACE: NetworkInterface()}
