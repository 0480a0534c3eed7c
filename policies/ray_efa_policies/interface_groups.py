"""EFA interfaces of a stack, and the security groups that each of them carries, as far as that can be seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .group_rules import WHY, SelfRules, cluster_group_fault, self_rules
from .node_groups import NodeGroup, Template
from .report import Finding, subject, unknown
from .stack import Resource, Stack, known_strings
from .tokens import CLUSTERS, LAUNCH_TEMPLATES, SECURITY_GROUPS
from .values import UNKNOWN, at, sequence

FIX: Final = "Add ingress and egress rules with protocol -1 and the group itself as the peer, on a group that every EFA interface carries."


@dataclass(frozen=True)
class EfaInterface:
    """One EFA interface: whose it is, the top-level property that holds it, its path, and its groups as given."""

    owner: Resource
    holder: str
    path: str
    groups: object

    @property
    def label(self) -> str:
        """How a message names its owner."""
        kind = "launch template" if self.owner.aws in LAUNCH_TEMPLATES else "network interface"
        return subject(kind, self.owner.name)


@dataclass(frozen=True)
class Candidate:
    """A group that an interface carries or may carry; ``faults`` is empty for one that lets it reach itself."""

    resource: Resource
    label: str
    faults: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Carried:
    """What an interface carries."""

    certain: list[Candidate]
    possible: list[Candidate]
    """Groups that ids which are not known yet may stand for."""
    slots: int
    """How many of the possible ones it carries at least."""
    foreign: list[str]
    """Known ids of groups that are not in the stack."""
    hidden: bool
    """Whether any id is not known yet."""

    @property
    def sure(self) -> list[Resource]:
        """The groups it carries for sure: an unknown id for each possible one leaves no choice."""
        all_of_them = self.possible if self.slots >= len(self.possible) else []
        return [item.resource for item in (*self.certain, *all_of_them)]


def template_interface(template: Template, index: int, item: object) -> EfaInterface:
    """An interface of a launch template; groups at the template's top level count where it has none of its own."""
    prefix = "".join(f"{part}." for part in template.nested)
    groups = at(item, "groups") if template.nested else at(item, "securityGroups")
    top_level = "securityGroupIds" if template.nested else "vpcSecurityGroupIds"
    if not groups and groups is not UNKNOWN and template.given(top_level) is not None:
        holder = template.nested[0] if template.nested else top_level
        return EfaInterface(template.resource, holder, f"{prefix}{top_level}", template.given(top_level))
    field = "groups" if template.nested else "securityGroups"
    path = f"{prefix}networkInterfaces[{index}].{field}"
    return EfaInterface(template.resource, template.interfaces_property, path, groups)


def template_interfaces(template: Template) -> list[EfaInterface]:
    """All EFA interfaces of a launch template that can be seen."""
    found = template.efa_interfaces()
    return [template_interface(template, index, item) for index, item in found] if isinstance(found, list) else []


def has_no_groups(interface: EfaInterface) -> bool:
    """Whether an interface has certainly no group of its own."""
    return interface.groups is not UNKNOWN and not any(
        item is UNKNOWN or isinstance(item, str) for item in sequence(interface.groups)
    )


def carried(stack: Stack, interface: EfaInterface) -> Carried:
    """The groups of an interface that has some of its own."""
    hidden = sum(item is UNKNOWN for item in sequence(interface.groups))
    known = known_strings(interface.groups)
    security_groups = stack.aws(SECURITY_GROUPS)
    named = {identity: stack.by_identity(security_groups, identity, "id", "groupId") for identity in known}
    cluster_groups = _cluster_groups(stack)
    certain = [_candidate(stack, resource) for resource in named.values() if resource]
    certain += [cluster_candidate(cluster_groups[identity]) for identity in known if identity in cluster_groups]
    foreign = [identity for identity in known if not named[identity] and identity not in cluster_groups]
    unseen = bool(hidden) or interface.groups is UNKNOWN
    seen = [item.resource for item in certain]
    possible = [item for item in (_possible(stack, interface) if unseen else []) if item.resource not in seen]
    slots = len(possible) if interface.groups is UNKNOWN else hidden
    return Carried(certain, possible, slots, foreign, unseen)


def default_clusters(stack: Stack, users: list[NodeGroup]) -> list[Resource]:
    """The clusters whose own group EKS puts on interfaces that have none; empty where no managed node group uses them."""
    managed = [user for user in users if user.fields.default_is_cpu]
    sources = [source for user in managed for source in stack.sources(user.resource, "clusterName")]
    clusters = [cluster for source in sources if (cluster := _cluster_behind(stack, source))]
    return (clusters or stack.aws(CLUSTERS)) if managed else []


def cluster_candidate(cluster: Resource) -> Candidate:
    """The group that EKS itself makes for a cluster."""
    finding = cluster_group_fault(cluster)
    label = subject("cluster security group of EKS cluster", cluster.name)
    return Candidate(cluster, label, (finding,) if finding else ())


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
            yield Finding(direction, f"without a rule for all traffic {way} the group itself{near}", WHY, FIX)


def _possible(stack: Stack, interface: EfaInterface) -> list[Candidate]:
    """The groups that the unknown ids may be: security groups they came from, and the cluster's own group."""
    sources = stack.sources(interface.owner, interface.holder)
    found = [_candidate(stack, source) for source in sources if source.aws in SECURITY_GROUPS]
    clusters = [cluster for source in sources if (cluster := _cluster_behind(stack, source))]
    return found + [cluster_candidate(cluster) for cluster in {item.urn: item for item in clusters}.values()]


def _cluster_groups(stack: Stack) -> dict[str, Resource]:
    """The clusters of the stack by the id of their own security group, where that is known already."""
    found = ((at(item.props, "vpcConfig", "clusterSecurityGroupId"), item) for item in stack.aws(CLUSTERS))
    return {identity: item for identity, item in found if isinstance(identity, str)}


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
