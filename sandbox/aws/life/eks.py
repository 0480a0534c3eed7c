"""EKS control planes, add-ons and access. moto has the control plane's identity; the rest is on record."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandbox.aws import seeds
from sandbox.aws.account import Record
from sandbox.aws.life.base import At, Life, Outputs, changed, with_tags
from sandbox.aws.life.ec2_calls import row
from sandbox.aws.life.eks_calls import (
    ACCESS_ENTRY,
    ACCESS_POLICY,
    ADDON,
    CLUSTER,
    NODE_GROUP,
    POD_IDENTITY,
    cluster_of,
    now,
    of_cluster,
    refused,
    retagged,
    role_name,
)
from sandbox.aws.life.iam import attached_policies
from sandbox.aws.life.keys_and_logs import LOG_GROUP
from sandbox.aws.life.security_groups import GROUP, delete_group

_DEFAULT_VERSION = "1.35"


class Cluster(Life):
    """internal/service/eks/cluster.go."""

    service, kind, subject = "eks", "eks:cluster", "EKS Cluster"
    creating, deleting = "CreateCluster", "DeleteCluster"
    waits = ("ACTIVE", "CREATING", 30)

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['name']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        name, network = inputs["name"], inputs["vpcConfig"]
        self._role_serves(at, inputs["roleArn"])
        subnets = [_subnet(at, "CreateCluster", one) for one in network["subnetIds"]]
        version = inputs.get("version", _DEFAULT_VERSION)
        at.call(
            "eks",
            "create_cluster",
            name=name,
            version=version,
            roleArn=inputs["roleArn"],
            resourcesVpcConfig={"subnetIds": network["subnetIds"]},
            tags=inputs.get("tagsAll") or None,
        )
        vpc = subnets[0]["VpcId"]
        facts = {
            "version": version,
            "createdAt": now(),
            "vpc": vpc,
            "group": self._own_group(at, name, vpc, version),
            # moto gives every cluster of a process the same endpoint and issuer; EKS builds both on one id.
            "identity": at.account.unique("", 32).upper(),
        }
        self._logs(at, inputs)
        at.cloud.control_planes.start(name, version)
        return Record(CLUSTER, name, at.region, inputs, facts)

    def look(self, at: At, record: Record) -> Outputs | None:
        found = at.found("eks", "describe_cluster", name=record.id)
        if found is None:
            return None
        cluster, inputs, facts = found["cluster"], record.inputs, record.facts
        real = at.cloud.control_planes.endpoint(record.id)
        outputs = {
            "accessConfig": {"authenticationMode": "CONFIG_MAP", **(inputs.get("accessConfig") or {})},
            "arn": cluster["arn"],
            "certificateAuthority": {
                "data": real.authority if real else cluster["certificateAuthority"]["data"],
            },
            "clusterId": "",
            "createdAt": facts["createdAt"],
            "deletionProtection": inputs.get("deletionProtection", False),
            "endpoint": real.url if real else f"https://{facts['identity']}.gr7.{at.region}.eks.amazonaws.com",
            "identities": [
                {"oidcs": [{"issuer": f"https://oidc.eks.{at.region}.amazonaws.com/id/{facts['identity']}"}]}
            ],
            "kubernetesNetworkConfig": {
                "elasticLoadBalancing": {"enabled": False},
                "ipFamily": "ipv4",
                "serviceIpv4Cidr": "172.20.0.0/16",
                "serviceIpv6Cidr": "",
                **(inputs.get("kubernetesNetworkConfig") or {}),
            },
            "platformVersion": "eks.1",
            "status": "ACTIVE",
            "upgradePolicy": {"supportType": "EXTENDED", **(inputs.get("upgradePolicy") or {})},
            "version": facts["version"],
            "vpcConfig": {
                "publicAccessCidrs": ["0.0.0.0/0"] if inputs["vpcConfig"].get("endpointPublicAccess", True) else [],
                **inputs["vpcConfig"],
                "clusterSecurityGroupId": facts["group"],
                "vpcId": facts["vpc"],
            },
        }
        return with_tags(outputs, cluster.get("tags") or {})

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        self._stays_in_its_vpc(at, record, inputs)
        self._logs(at, inputs)
        version = inputs.get("version", record.facts["version"])
        if version != record.facts["version"]:
            at.cloud.control_planes.start(record.id, version)
        return replace(record, facts={**record.facts, "version": version})

    def delete(self, at: At, record: Record) -> None:
        if of_cluster(at, record.id, NODE_GROUP):
            raise refused("DeleteCluster", "ResourceInUseException", "Cluster has nodegroups attached")
        for one in of_cluster(at, record.id, ADDON, ACCESS_ENTRY, ACCESS_POLICY, POD_IDENTITY):
            at.account.drop(one)
        at.call("eks", "delete_cluster", name=record.id)
        at.cloud.control_planes.stop(record.id)
        group = at.account.record(GROUP, record.facts["group"], at.region)
        at.account.drop(record)
        if group is not None:
            delete_group(at, group.id)
            at.account.drop(group)

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        arn = at.arn("eks", f"cluster/{record.id}")
        if gone:
            at.call("eks", "untag_resource", resourceArn=arn, tagKeys=gone)
        if tags:
            at.call("eks", "tag_resource", resourceArn=arn, tags=dict(tags))

    def _stays_in_its_vpc(self, at: At, record: Record, inputs: Mapping[str, Any]) -> None:
        # EKS API reference, UpdateClusterConfig: other subnets, but of the VPC that the cluster was made in. The words are ours.
        action, home = "UpdateClusterConfig", record.facts["vpc"]
        strange = [id for id in inputs["vpcConfig"]["subnetIds"] if _subnet(at, action, id)["VpcId"] != home]
        if strange:
            reason = f"The subnets {', '.join(strange)} are not in {home}, the VPC of the cluster, which cannot change"
            raise refused(action, "InvalidParameterException", reason)

    def _role_serves(self, at: At, arn: str) -> None:
        name = role_name(arn)
        if at.found("iam", "get_role", RoleName=name) is None:
            raise refused("CreateCluster", "InvalidParameterException", f"roleArn, {arn}, does not exist")
        policies = {role_name(one) for one in attached_policies(at, name)}
        if "AmazonEKSClusterPolicy" not in policies:
            # The message that the provider waits for (cluster.go, CreateCluster's RetryWhen).
            reason = (
                "The provided role doesn't have the Amazon EKS Managed Policies associated with it. "
                "Please ensure the following policy is attached: arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
            )
            raise refused("CreateCluster", "InvalidParameterException", reason)

    def _own_group(self, at: At, cluster: str, vpc: str, version: str) -> str:
        # EKS user guide, "View Amazon EKS security group requirements for clusters": made with the cluster, not by its user.
        tags = {"Name": f"eks-cluster-sg-{cluster}", f"kubernetes.io/cluster/{cluster}": "owned"}
        made = at.ec2(
            "create_security_group",
            GroupName=f"eks-cluster-sg-{cluster}-{at.account.unique('', 8)}",
            Description="EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, "
            "as well as any managed workloads.",
            VpcId=vpc,
            TagSpecifications=[
                {
                    "ResourceType": "security-group",
                    "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
                }
            ],
        )["GroupId"]
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made}]}]
        at.ec2("authorize_security_group_ingress", GroupId=made, IpPermissions=itself)
        if tuple(int(part) for part in version.split(".")) >= (1, 33):
            at.ec2("authorize_security_group_egress", GroupId=made, IpPermissions=itself)
        at.account.put(Record(GROUP, made, at.region, facts={"parent": cluster}, by_aws=True))
        return made

    def _logs(self, at: At, inputs: Mapping[str, Any]) -> None:
        if inputs.get("enabledClusterLogTypes"):
            ensure_log_group(at, inputs["name"])


def ensure_log_group(at: At, cluster: str) -> None:
    """What a control plane with logging does: it makes its log group where there is none, and never takes it away.

    EKS user guide, "Send control plane logs to CloudWatch Logs"; hashicorp/terraform-provider-aws website/docs/r/eks_cluster,
    "Enabling Control Plane Logging".
    """
    name = f"/aws/eks/{cluster}/cluster"
    groups = at.call("logs", "describe_log_groups", logGroupNamePrefix=name)["logGroups"]
    if name not in {one["logGroupName"] for one in groups}:
        at.call("logs", "create_log_group", logGroupName=name)
        at.account.put(Record(LOG_GROUP, name, at.region, by_aws=True))


class Addon(Life):
    """internal/service/eks/addon.go."""

    service, kind, subject = "eks", "eks:addon", "EKS Add-On"
    creating, deleting = "CreateAddon", "DeleteAddon"
    waits = ("ACTIVE", "CREATING", 20)

    def label(self, inputs: Mapping[str, Any]) -> str:
        return f" ({inputs['clusterName']}:{inputs['addonName']})"

    def create(self, at: At, inputs: Mapping[str, Any]) -> Record:
        cluster, name = inputs["clusterName"], inputs["addonName"]
        control_plane = cluster_of(at, "CreateAddon", cluster)
        id = f"{cluster}:{name}"
        if at.account.record(ADDON, id, at.region):
            raise refused("CreateAddon", "ResourceInUseException", "Addon already exists.")
        known = seeds.ADDON_VERSIONS.get(name)
        if known is None:
            reason = f"Addon {name} specified is not supported in {control_plane.facts['version']} kubernetes version"
            raise refused("CreateAddon", "InvalidParameterException", reason)
        facts = {
            "createdAt": now(),
            "number": at.account.unique("", 32),
            "tags": dict(inputs.get("tagsAll") or {}),
            "version": inputs.get("addonVersion") or known.format(kubernetes=control_plane.facts["version"]),
        }
        return Record(ADDON, id, at.region, inputs, facts)

    def started(self, at: At, record: Record) -> str:
        # CoreDNS is a Deployment: without an untainted node its pods never run, and the add-on stays DEGRADED with
        # InsufficientNumberOfReplicas (EKS user guide, "Troubleshoot add-ons").
        if record.inputs["addonName"] != "coredns" or any(map(_takes_any_pod, self._nodes(at, record))):
            return super().started(at, record)
        return self.timed_out(at, record).replace("'CREATING'", "'DEGRADED'")

    def look(self, at: At, record: Record) -> Outputs | None:
        cluster, name = record.id.split(":")
        outputs = {
            "addonName": name,
            "addonVersion": record.facts["version"],
            "arn": at.arn("eks", f"addon/{cluster}/{name}/{record.facts['number']}"),
            "clusterName": cluster,
            "configurationValues": record.inputs.get("configurationValues", ""),
            "createdAt": record.facts["createdAt"],
            "modifiedAt": record.facts.get("modifiedAt", record.facts["createdAt"]),
        }
        return with_tags(outputs, record.facts["tags"])

    def update(self, at: At, record: Record, inputs: Mapping[str, Any]) -> Record:
        newer = {"version": inputs.get("addonVersion", record.facts["version"])}
        if changed(
            record, inputs, "addonVersion", "configurationValues", "serviceAccountRoleArn", "podIdentityAssociations"
        ):
            newer["modifiedAt"] = now()
        return replace(record, facts={**record.facts, **newer})

    def delete(self, at: At, record: Record) -> None:
        return None

    def tag(self, at: At, record: Record, tags: Mapping[str, str], gone: list[str]) -> None:
        at.account.note(record, tags=retagged(record, tags, gone))

    def _nodes(self, at: At, record: Record) -> list[Record]:
        return of_cluster(at, record.inputs["clusterName"], NODE_GROUP)


def _takes_any_pod(group: Record) -> bool:
    effects = {one["effect"] for one in group.inputs.get("taints") or ()}
    return bool(group.facts["instances"]) and not effects & {"NO_SCHEDULE", "NO_EXECUTE"}


def _subnet(at: At, action: str, id: str) -> Mapping[str, Any]:
    found = row(at, "describe_subnets", "Subnets", SubnetIds=[id])
    if found is None:
        reason = f"The subnet ID '{id}' does not exist"
        raise refused(action, "InvalidParameterException", reason)
    return found


LIVES: Mapping[str, Life] = {CLUSTER: Cluster(), ADDON: Addon()}
