"""Does every EFA interface carry a security group that lets all traffic in from itself and out to itself?

EFA traffic is no IP traffic: rules on address ranges never match it, not even an allow-all egress rule
(gardener/gardener-extension-provider-aws#1832). EKS's own cluster security group has both rules from Kubernetes 1.33.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .node_groups import EFA_INTERFACE_TYPES, NodeGroup, Template, node_groups
from .options import Options
from .report import Finding, listed, subject, unknown
from .self_rules import SelfRules, self_rules
from .stack import Resource, Stack, known_strings
from .tokens import CLUSTERS, LAUNCH_TEMPLATES, NETWORK_INTERFACES, SECURITY_GROUPS
from .values import UNKNOWN, at, sequence, shown

_WHY: Final = (
    "EFA traffic is not IP: a rule on an address range never matches it, and the first transfer hangs or fails."
)
_FIX: Final = "Add ingress and egress rules with protocol -1 and the group itself as the peer, on a group that every EFA interface carries."
_CLUSTER_GROUP_HAS_BOTH: Final = (1, 33)


@dataclass(frozen=True)
class EfaInterface:
    """One EFA interface: whose it is, the top-level property it stands in, its path, and its groups as given."""

    owner: Resource
    property: str
    path: str
    groups: object


@dataclass(frozen=True)
class Candidate:
    """A group that an interface carries or may carry; ``faults`` is empty for a good one."""

    resource: Resource
    label: str
    faults: tuple[Finding, ...] = ()


def check(stack: Stack, options: Options) -> Iterator[tuple[Resource, str, Finding]]:
    """Faults of all EFA interfaces, each with the resource to blame and how a message names it; none is told twice."""
    told: set[tuple[str, str]] = set()
    for resource, label, finding in _all(stack, options):
        if (resource.urn, finding.path) not in told and not options.excludes(resource.name):
            told.add((resource.urn, finding.path))
            yield resource, label, finding


def _all(stack: Stack, options: Options) -> Iterator[tuple[Resource, str, Finding]]:
    groups = node_groups(stack)
    for owner in stack.aws(LAUNCH_TEMPLATES):
        template = Template(owner)
        interfaces = template.efa_interfaces()
        prefix = "".join(f"{part}." for part in template.nested)
        if interfaces is UNKNOWN:
            yield (
                owner,
                subject("launch template", owner.name),
                unknown(
                    f"{prefix}networkInterfaces", "Whether the template has EFA interfaces and which groups they carry"
                ),
            )
            continue
        users = [group for group in groups if template in group.templates]
        for index, item in interfaces if isinstance(interfaces, list) else ():
            interface = _interface(template, index, item, prefix)
            yield from _judge(stack, options, interface, users)
    for owner in stack.aws(NETWORK_INTERFACES):
        if owner.given("interfaceType") in EFA_INTERFACE_TYPES:
            groups_given = owner.given("securityGroups")
            yield from _judge(stack, options, EfaInterface(owner, "securityGroups", "securityGroups", groups_given), [])


def _interface(template: Template, index: int, item: object, prefix: str) -> EfaInterface:
    groups = at(item, "groups") if template.nested else at(item, "securityGroups")
    top_level = "securityGroupIds" if template.nested else "vpcSecurityGroupIds"
    if not groups and groups is not UNKNOWN and template.given(top_level) is not None:
        property_ = template.nested[0] if template.nested else top_level
        return EfaInterface(template.resource, property_, f"{prefix}{top_level}", template.given(top_level))
    field = "groups" if template.nested else "securityGroups"
    path = f"{prefix}networkInterfaces[{index}].{field}"
    return EfaInterface(template.resource, template.interfaces_property, path, groups)


def _judge(
    stack: Stack, options: Options, interface: EfaInterface, users: list[NodeGroup]
) -> Iterator[tuple[Resource, str, Finding]]:
    """An interface is good as soon as one group on it, certainly, has both rules."""
    owner = interface.owner
    label = subject("launch template" if owner.aws in LAUNCH_TEMPLATES else "network interface", owner.name)
    hidden = sum(item is UNKNOWN for item in sequence(interface.groups))
    known = known_strings(interface.groups)
    if not hidden and not known and interface.groups is not UNKNOWN:
        yield from _without_groups(stack, interface, users, label)
        return
    if any(identity in options.self_referencing for identity in known):
        return
    security_groups = stack.aws(SECURITY_GROUPS)
    named = {identity: stack.by_identity(security_groups, identity, "id", "groupId") for identity in known}
    certain = [_candidate(stack, resource) for resource in named.values() if resource]
    cluster_groups = _cluster_groups(stack)
    certain += [_cluster_candidate(cluster_groups[identity]) for identity in known if identity in cluster_groups]
    foreign = [identity for identity in known if not named[identity] and identity not in cluster_groups]
    possible = _possible(stack, interface) if hidden or interface.groups is UNKNOWN else []
    possible = [item for item in possible if item.resource not in [other.resource for other in certain]]
    bad = [item for item in possible if item.faults]
    slots = len(possible) if interface.groups is UNKNOWN else hidden
    if any(not item.faults for item in certain) or (possible and min(slots, len(possible)) > len(bad)):
        return
    if len(possible) > len(bad):
        good = [item.label for item in possible if not item.faults]
        yield owner, label, _ambiguous(interface, good, bad)
        return
    faulty = [*certain, *bad]
    own = [item for item in faulty if item.resource.aws in SECURITY_GROUPS]
    for item in own or faulty:
        for finding in item.faults:
            yield item.resource, f"{item.label}, on an EFA interface of {label}", finding
    if foreign or not faulty:
        yield owner, label, _outside(interface, foreign, certain_fault=bool(own))


def _candidate(stack: Stack, resource: Resource) -> Candidate:
    rules = self_rules(stack, resource)
    return Candidate(resource, subject("security group", resource.name), tuple(_faults(rules)))


def _faults(rules: SelfRules) -> Iterator[Finding]:
    for direction, state in (("ingress", rules.ingress), ("egress", rules.egress)):
        way = "from" if direction == "ingress" else "to"
        if state.unknown:
            yield unknown(direction, f"Whether the group allows all traffic {way} itself")
        elif not state.present:
            near = f" ({state.near_miss})" if state.near_miss else ""
            yield Finding(direction, f"without a rule for all traffic {way} the group itself{near}", _WHY, _FIX)


def _possible(stack: Stack, interface: EfaInterface) -> list[Candidate]:
    """The groups that the unknown ids may be: security groups they came from, and the cluster's own group."""
    sources = stack.sources(interface.owner, interface.property)
    found = [_candidate(stack, source) for source in sources if source.aws in SECURITY_GROUPS]
    clusters = [cluster for source in sources if (cluster := _cluster_behind(stack, source))]
    return found + [_cluster_candidate(cluster) for cluster in {item.urn: item for item in clusters}.values()]


def _cluster_groups(stack: Stack) -> dict[str, Resource]:
    """The clusters of the stack by the id of their own security group, where that is known already."""
    found = ((at(item.props, "vpcConfig", "clusterSecurityGroupId"), item) for item in stack.aws(CLUSTERS))
    return {identity: item for identity, item in found if isinstance(identity, str)}


def _cluster_candidate(cluster: Resource) -> Candidate:
    finding = _cluster_group(cluster)
    label = subject("cluster security group of EKS cluster", cluster.name)
    return Candidate(cluster, label, (finding,) if finding else ())


def _cluster_behind(stack: Stack, source: Resource) -> Resource | None:
    """The EKS cluster that a resource is, or that a component (``eks:index:Cluster``) holds."""
    if source.aws in CLUSTERS:
        return source
    if source.aws[0] in ("aws", "aws-native", "kubernetes", "pulumi"):
        return None
    for cluster in stack.aws(CLUSTERS):
        parent = cluster.parent
        for _ in range(16):
            if parent == source.urn:
                return cluster
            parent = next((item.parent for item in stack.by_urn([parent])), "")
    return None


def _cluster_group(cluster: Resource) -> Finding | None:
    version = cluster.props.get("version")
    parts = version.split(".") if isinstance(version, str) else []
    if len(parts) < 2 or not all(part.isdecimal() for part in parts[:2]):
        return unknown("version", "Whether the cluster's own security group has both rules (from Kubernetes 1.33)")
    if (int(parts[0]), int(parts[1])) >= _CLUSTER_GROUP_HAS_BOTH:
        return None
    return Finding(
        "version",
        shown(version),
        f"Before Kubernetes 1.33 the cluster security group lacks egress to itself. {_WHY}",
        "Add a security group of your own with both rules to the EFA interfaces, or upgrade the cluster.",
    )


def _without_groups(
    stack: Stack, interface: EfaInterface, users: list[NodeGroup], label: str
) -> Iterator[tuple[Resource, str, Finding]]:
    """Without groups of its own an interface gets EKS's cluster group, or the VPC's default one outside EKS."""
    managed = [user for user in users if user.fields.default_is_cpu]
    sources = [source for user in managed for source in stack.sources(user.resource, "clusterName")]
    clusters = [cluster for source in sources if (cluster := _cluster_behind(stack, source))] or stack.aws(CLUSTERS)
    if managed and clusters and not any(_cluster_group(cluster) for cluster in clusters):
        return
    yield (
        interface.owner,
        label,
        Finding(interface.path, "missing", f"The interface then gets a default group. {_WHY}", _FIX),
    )


def _ambiguous(interface: EfaInterface, good: list[str], bad: list[Candidate]) -> Finding:
    return Finding(
        interface.path,
        "a list of ids not known yet",
        f"Whether it holds {listed(good)} or only {listed([item.label for item in bad])} cannot be checked before the deployment.",
        "Put both rules on every group of the template, or list the same groups on every EFA interface.",
        unverified=True,
    )


def _outside(interface: EfaInterface, foreign: list[str], certain_fault: bool) -> Finding:
    return Finding(
        interface.path,
        f"{shown(foreign)}, not in this stack" if foreign else "from outside this stack",
        "Whether that group allows all traffic from and to itself cannot be "
        + ("seen, and no other group on the interface does." if certain_fault else "seen."),
        f"{_FIX} If it has both rules already, list its id in the policy's selfReferencing.",
        unverified=True,
    )
