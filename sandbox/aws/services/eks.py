"""EKS: clusters, managed node groups, add-ons, access."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from sandbox.aws.inputs import join
from sandbox.aws.kinds import ApiShape, ResourceKind, RuleContext
from sandbox.aws.paths import is_given, values_at
from sandbox.aws.rules import at_most_one_of, cidr, conflicts, length, matches, offering_faults, one_of
from sandbox.aws.templates import faults_of_pair
from sandbox.kubernetes import syntax
from sandbox.standin import CheckFailure

_SOURCE = "internal/service/eks/"
_ARN = r"arn:[\w-]+:[\w-]+:[\w-]*:(\d{12}|aws)?:.+"
_ARN_EXAMPLE = "arn:aws:iam::123456789012:role/name"


def _template_carries(context: RuleContext) -> Iterable[CheckFailure]:
    # EKS CreateNodegroup: InvalidParameterException, with a launch template these belong to the template.
    if not is_given(context.inputs, "launchTemplate"):
        return
    homes = {"diskSize": "blockDeviceMappings", "remoteAccess": "keyName and its security groups"}
    for name, home in homes.items():
        if is_given(context.inputs, name):
            yield CheckFailure(name, f"cannot stand beside launchTemplate: give the template {home} instead")


def _template_is_needed(context: RuleContext) -> Iterable[CheckFailure]:
    # EKS user guide, "Create a managed node group with Capacity Blocks" and "custom AMI".
    if is_given(context.inputs, "launchTemplate"):
        return
    for name, value in (("capacityType", "CAPACITY_BLOCK"), ("amiType", "CUSTOM")):
        if context.inputs.get(name) == value:
            yield CheckFailure(name, f"is {value}, which needs a launchTemplate")


def _template_is_named_once(context: RuleContext) -> Iterable[CheckFailure]:
    for path, template in values_at(context.inputs, "launchTemplate"):
        given = [name for name in ("id", "name") if is_given(template, name)]
        if len(given) != 1:
            yield CheckFailure(path, f"give either id or name: {' and '.join(given) or 'none'} is set")


def _sizes_are_ordered(context: RuleContext) -> Iterable[CheckFailure]:
    # EKS CreateNodegroup: InvalidParameterException, capacities out of order.
    for path, sizes in values_at(context.inputs, "scalingConfig"):
        known = [
            (name, sizes[name]) for name in ("minSize", "desiredSize", "maxSize") if isinstance(sizes.get(name), int)
        ]
        for (low, lower), (high, higher) in pairwise(known):
            if lower > higher:
                yield CheckFailure(f"{path}.{low}", f"is {lower}, above {high} {higher}")


def _types_are_offered(context: RuleContext) -> Iterable[CheckFailure]:
    subnets = [value for _, value in values_at(context.inputs, "subnetIds[]")]
    zones = {zone for one in subnets if (zone := context.cloud.zone_of_subnet(one, context.region))}
    for path, name in values_at(context.inputs, "instanceTypes[]"):
        yield from offering_faults(context, path, name, sorted(zones))


def _labels_are_well_formed(context: RuleContext) -> Iterable[CheckFailure]:
    # EKS CreateNodegroup: InvalidParameterException; a node's labels and taints are Kubernetes' (apimachinery, validation).
    for _, labels in values_at(context.inputs, "labels"):
        for key, text in labels.items():
            path = join("labels", key)
            if fault := syntax.qualified_name_fault(key):
                yield CheckFailure(path, f"the key {fault}")
            if isinstance(text, str) and (fault := syntax.label_value_fault(text)):
                yield CheckFailure(path, fault)
    for path, taint in values_at(context.inputs, "taints[]"):
        for name, fault_of in (("key", syntax.qualified_name_fault), ("value", syntax.label_value_fault)):
            text = taint.get(name)
            if isinstance(text, str) and (fault := fault_of(text)):
                yield CheckFailure(f"{path}.{name}", fault)


def _endpoint_is_reachable(context: RuleContext) -> Iterable[CheckFailure]:
    # EKS CreateCluster: InvalidParameterException in both cases.
    for path, network in values_at(context.inputs, "vpcConfig"):
        public, private = network.get("endpointPublicAccess", True), network.get("endpointPrivateAccess", False)
        if public is False and private is False:
            yield CheckFailure(f"{path}.endpointPublicAccess", "is false and so is endpointPrivateAccess: open one")
        if public is False and is_given(network, "publicAccessCidrs"):
            reason = "cannot be given while endpointPublicAccess is false: leave it out"
            yield CheckFailure(f"{path}.publicAccessCidrs", reason)


def _subnets_span_zones(context: RuleContext) -> Iterable[CheckFailure]:
    # EKS CreateCluster: InvalidParameterException, subnets must lie in at least two Availability Zones.
    for path, subnets in values_at(context.inputs, "vpcConfig.subnetIds"):
        zones = [context.cloud.zone_of_subnet(one, context.region) if isinstance(one, str) else None for one in subnets]
        if len(subnets) < 2 or (None not in zones and len(set(zones)) < 2):
            found = zones[0] if subnets and zones[0] else f"{len(subnets)} subnet(s)"
            yield CheckFailure(path, f"must span at least two Availability Zones, found {found}")


def _encryption_taken_away(old: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str]:
    # CustomizeDiff: encryption cannot be switched off; nor can Auto Mode's nodes get another role.
    taken = {"encryptionConfig"} if old.get("encryptionConfig") and not new.get("encryptionConfig") else set[str]()
    role = (old.get("computeConfig") or {}).get("nodeRoleArn")
    return frozenset(taken | ({"computeConfig.nodeRoleArn"} if role else set()))


KINDS: Mapping[str, ResourceKind] = {
    "aws:eks/cluster:Cluster": ResourceKind(
        source=_SOURCE + "cluster.go",
        replaces=frozenset(
            {
                "accessConfig.bootstrapClusterCreatorAdminPermissions",
                "bootstrapSelfManagedAddons",
                "kubernetesNetworkConfig.ipFamily",
                "kubernetesNetworkConfig.serviceIpv4Cidr",
                "name",
                "outpostConfig.controlPlaneInstanceType",
                "outpostConfig.controlPlanePlacement.groupName",
                "remoteNetworkConfig",
                "roleArn",
            }
        ),
        replaces_when=_encryption_taken_away,
        sets=frozenset(
            {
                "enabledClusterLogTypes",
                "encryptionConfig.resources",
                "vpcConfig.publicAccessCidrs",
                "vpcConfig.securityGroupIds",
                "vpcConfig.subnetIds",
            }
        ),
        nested_computed=frozenset(
            {
                "accessConfig.authenticationMode",
                "kubernetesNetworkConfig.elasticLoadBalancing",
                "kubernetesNetworkConfig.ipFamily",
                "kubernetesNetworkConfig.serviceIpv4Cidr",
                "kubernetesNetworkConfig.serviceIpv6Cidr",
                "upgradePolicy.supportType",
                "vpcConfig.clusterSecurityGroupId",
                "vpcConfig.publicAccessCidrs",
                "vpcConfig.vpcId",
            }
        ),
        defaults=MappingProxyType(
            {
                "accessConfig.bootstrapClusterCreatorAdminPermissions": True,
                "bootstrapSelfManagedAddons": True,
                "vpcConfig.endpointPrivateAccess": False,
                "vpcConfig.endpointPublicAccess": True,
            }
        ),
        api=ApiShape("eks", "CreateClusterRequest", MappingProxyType({"vpcConfig": "resourcesVpcConfig"})),
        rules=(
            length("name", 1, 100),
            matches("name", r"[0-9A-Za-z][A-Za-z0-9_-]*", "letters, digits, - and _"),
            matches("version", r"1\.\d+", "1.35"),
            matches("roleArn", _ARN, _ARN_EXAMPLE),
            one_of("encryptionConfig.resources[]", "secrets"),
            one_of("enabledClusterLogTypes[]", "api", "audit", "authenticator", "controllerManager", "scheduler"),
            cidr("vpcConfig.publicAccessCidrs[]"),
            cidr("kubernetesNetworkConfig.serviceIpv4Cidr", 12, 24),
            _endpoint_is_reachable,
            _subnets_span_zones,
        ),
    ),
    "aws:eks/nodeGroup:NodeGroup": ResourceKind(
        source=_SOURCE + "node_group.go",
        replaces=frozenset(
            {
                "amiType",
                "capacityType",
                "clusterName",
                "diskSize",
                "instanceTypes",
                "launchTemplate.id",
                "launchTemplate.name",
                "nodeGroupName",
                "nodeGroupNamePrefix",
                "nodeRoleArn",
                "remoteAccess",
                "subnetIds",
            }
        ),
        sets=frozenset({"remoteAccess.sourceSecurityGroupIds", "subnetIds", "taints"}),
        nested_computed=frozenset({"launchTemplate.id", "launchTemplate.name"}),
        api=ApiShape(
            "eks",
            "CreateNodegroupRequest",
            MappingProxyType({"nodeRoleArn": "nodeRole", "subnetIds": "subnets"}),
        ),
        rules=(
            conflicts("nodeGroupName", "nodeGroupNamePrefix"),
            length("nodeGroupName", 1, 63),
            length("taints", 0, 50),
            length("subnetIds", 1, 2**31),
            matches("nodeRoleArn", _ARN, _ARN_EXAMPLE),
            at_most_one_of("updateConfig", "maxUnavailable", "maxUnavailablePercentage"),
            _template_is_named_once,
            _template_carries,
            _template_is_needed,
            _sizes_are_ordered,
            _types_are_offered,
            _labels_are_well_formed,
            faults_of_pair,
        ),
    ),
    "aws:eks/addon:Addon": ResourceKind(
        source=_SOURCE + "addon.go",
        replaces=frozenset({"addonName", "clusterName"}),
        api=ApiShape("eks", "CreateAddonRequest"),
        rules=(
            one_of("resolveConflictsOnCreate", "NONE", "OVERWRITE"),
            one_of("resolveConflictsOnUpdate", "NONE", "OVERWRITE", "PRESERVE"),
        ),
    ),
    "aws:eks/accessEntry:AccessEntry": ResourceKind(
        source=_SOURCE + "access_entry.go",
        replaces=frozenset({"clusterName", "principalArn", "type"}),
        sets=frozenset({"kubernetesGroups"}),
        defaults=MappingProxyType({"type": "STANDARD"}),
        rules=(matches("principalArn", _ARN, _ARN_EXAMPLE),),
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": ResourceKind(
        source=_SOURCE + "access_policy_association.go",
        replaces=frozenset({"*"}),
        sets=frozenset({"accessScope.namespaces"}),
        rules=(
            matches("principalArn", _ARN, _ARN_EXAMPLE),
            matches("policyArn", _ARN, "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"),
            one_of("accessScope.type", "cluster", "namespace"),
        ),
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": ResourceKind(
        source=_SOURCE + "pod_identity_association.go",
        replaces=frozenset({"clusterName", "namespace", "serviceAccount"}),
        rules=(matches("roleArn", _ARN, _ARN_EXAMPLE),),
    ),
}
