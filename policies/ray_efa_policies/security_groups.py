"""Does every EFA interface carry security groups that let all traffic in from itself and out to itself?

EFA traffic is no IP traffic: rules on address ranges never match it, not even an allow-all egress rule
(gardener/gardener-extension-provider-aws#1832). EKS's own cluster security group has both rules from Kubernetes 1.33.
"""

from collections.abc import Iterator
from itertools import combinations

from .group_rules import WHY, cluster_group_fault, exchange, revoked
from .interface_groups import (
    FIX,
    Candidate,
    Carried,
    EfaInterface,
    carried,
    default_clusters,
    has_no_groups,
    template_interfaces,
)
from .linked_groups import Linked, linked
from .node_groups import EFA_INTERFACE_TYPES, NodeGroup, Template, node_groups
from .options import Options
from .report import Finding, listed, subject, unknown
from .stack import Resource, Stack, known_strings
from .tokens import LAUNCH_TEMPLATES, NETWORK_INTERFACES, SECURITY_GROUPS
from .values import UNKNOWN, shown

_Found = Iterator[tuple[Resource, str, Finding]]


def check(stack: Stack, options: Options) -> _Found:
    """Faults of all EFA interfaces, each with the resource to blame and how a message names it; none is told twice."""
    told: set[tuple[str, str]] = set()
    for resource, label, finding in (*_all(stack, options), *_apart(stack, options)):
        if (resource.urn, finding.path) not in told and not options.excludes(resource.name):
            told.add((resource.urn, finding.path))
            yield resource, label, finding


def _all(stack: Stack, options: Options) -> _Found:
    groups = node_groups(stack)
    for owner in stack.aws(LAUNCH_TEMPLATES):
        template = Template(owner)
        if template.efa_interfaces() is UNKNOWN:
            path = ".".join((*template.nested, "networkInterfaces"))
            question = "Whether the template has EFA interfaces and which groups they carry"
            yield owner, subject("launch template", owner.name), unknown(path, question)
            continue
        users = [group for group in groups if template in group.templates]
        for interface in template_interfaces(template):
            yield from _judge(stack, options, interface, users)
    for owner in stack.aws(NETWORK_INTERFACES):
        if owner.given("interfaceType") in EFA_INTERFACE_TYPES:
            interface = EfaInterface(owner, "securityGroups", "securityGroups", owner.given("securityGroups"))
            yield from _judge(stack, options, interface, [])


def _judge(stack: Stack, options: Options, interface: EfaInterface, users: list[NodeGroup]) -> _Found:
    """An interface is good as soon as the groups it certainly carries let it reach itself."""
    if has_no_groups(interface):
        yield from _without_groups(stack, interface, users)
        return
    if _is_told(interface, options):
        return
    groups = carried(stack, interface)
    if exchange(stack, groups.sure, groups.sure).present:
        for resource in groups.sure:
            if resource.aws in SECURITY_GROUPS:
                label = subject("security group", resource.name, f"on an EFA interface of {interface.label}")
                yield from ((resource, label, finding) for finding in revoked(stack, resource))
        return
    bad = [item for item in groups.possible if item.faults]
    good = [item.label for item in groups.possible if not item.faults]
    if good and min(groups.slots, len(groups.possible)) > len(bad):
        return
    if good:
        yield interface.owner, interface.label, _ambiguous(interface, good, bad)
        return
    yield from _faults(interface, groups, bad)


def _faults(interface: EfaInterface, groups: Carried, bad: list[Candidate]) -> _Found:
    faulty = [*groups.certain, *bad]
    own = [item for item in faulty if item.resource.aws in SECURITY_GROUPS]
    for item in own or faulty:
        for finding in item.faults:
            yield item.resource, f"{item.label}, on an EFA interface of {interface.label}", finding
    if groups.foreign or not faulty:
        yield interface.owner, interface.label, _outside(interface, groups.foreign, certain_fault=bool(own))


def _is_told(interface: EfaInterface, options: Options) -> bool:
    return any(identity in options.self_referencing for identity in known_strings(interface.groups))


def _without_groups(stack: Stack, interface: EfaInterface, users: list[NodeGroup]) -> _Found:
    """Without groups of its own an interface gets EKS's cluster group, or the VPC's default one outside EKS."""
    clusters = default_clusters(stack, users)
    if clusters and not any(cluster_group_fault(cluster) for cluster in clusters):
        return
    finding = Finding(interface.path, "missing", f"The interface then gets a default group. {WHY}", FIX)
    yield interface.owner, interface.label, finding


def _apart(stack: Stack, options: Options) -> _Found:
    """Faults between node groups that one workload runs on: each may be sound, and the two still not reach each other."""
    for link in linked(stack):
        for left, right in combinations(link.node_groups, 2):
            pairs = ((one, other) for one in _sound(stack, options, left) for other in _sound(stack, options, right))
            for one, other in pairs:
                if one.owner != other.owner:
                    yield from _between(stack, options, link, (one, left), (other, right))


def _sound(stack: Stack, options: Options, group: NodeGroup) -> list[EfaInterface]:
    """The EFA interfaces of a node group with which nothing is wrong by themselves."""
    found = [interface for template in group.templates for interface in template_interfaces(template)]
    return [
        item for item in found if not any(not fault.unverified for _, _, fault in _judge(stack, options, item, [group]))
    ]


def _between(
    stack: Stack,
    options: Options,
    link: Linked,
    left: tuple[EfaInterface, NodeGroup],
    right: tuple[EfaInterface, NodeGroup],
) -> _Found:
    (one, one_group), (other, other_group) = left, right
    common = set(known_strings(one.groups)) & set(known_strings(other.groups))
    if not common.isdisjoint(options.self_referencing):
        return
    hers, his = _resources(stack, one, one_group), _resources(stack, other, other_group)
    state = exchange(stack, hers.sure, his.sure)
    # A group that may be on both, and lets itself through, is not held against them: each interface was judged for that.
    shared = {item.resource.urn for item in hers.possible if not item.faults}
    if state.present or any(item.resource.urn in shared for item in his.possible if not item.faults):
        return
    partners = f"launch template '{one.owner.name}' of node group '{one_group.resource.name}'"
    open_ends = [item for item in (hers, his) if item.foreign or (item.hidden and not item.possible)]
    yield (
        other.owner,
        other.label,
        Finding(
            other.path,
            f"without a group that {partners} has too, and without rules between the two",
            f"{link.subject} runs on both node groups. {WHY}",
            "Give the EFA interfaces of both one security group in common, with all traffic from and to itself.",
            unverified=state.unknown or bool(open_ends),
        ),
    )


def _resources(stack: Stack, interface: EfaInterface, group: NodeGroup) -> Carried:
    if not has_no_groups(interface):
        return carried(stack, interface)
    clusters = [Candidate(cluster, "") for cluster in default_clusters(stack, [group])]
    return Carried(clusters, [], 0, [], hidden=False)


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
        f"{FIX} If it has both rules already, list its id in the policy's selfReferencing.",
        unverified=True,
    )
