"""Which traffic between security groups their rules let through: written inline, or as rule resources of any kind.

EFA traffic matches rules that name a group and cover every protocol, and no others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .report import Finding, unknown
from .stack import Resource, Stack
from .tokens import CLUSTERS, RULES, SECURITY_GROUPS
from .values import UNKNOWN, at, is_true, sequence, shown

_ALL_PROTOCOLS: Final = ("-1", "all")
_CLUSTER_GROUP_HAS_BOTH: Final = (1, 33)
_LONGEST_NUMBER: Final = 4
WHY: Final = (
    "EFA traffic is not IP: a rule on an address range never matches it, and the first transfer hangs or fails."
)


@dataclass(frozen=True)
class State:
    """Whether a rule is there, cannot be seen, or is nearly there (in words)."""

    present: bool = False
    unknown: bool = False
    near_miss: str = ""
    inline: bool = False
    """Whether it is written in the group itself."""


@dataclass(frozen=True)
class SelfRules:
    """Both directions of one security group."""

    ingress: State
    egress: State


def self_rules(stack: Stack, group: Resource) -> SelfRules:
    """The self-referencing rules of a security group.

    Inline rules that the program does not set are unknown outputs in a first preview, and then say nothing; rules that the
    provider shows in a later run count as if they were written.
    """
    return SelfRules(allows(stack, group, "ingress", group), allows(stack, group, "egress", group))


def allows(stack: Stack, group: Resource, direction: str, peer: Resource) -> State:
    """Whether a group lets all traffic in from a peer (``ingress``) or out to it (``egress``).

    Either may be an EKS cluster, which stands for its own security group: that one has no other rules but those to itself.
    """
    if group.aws in CLUSTERS:
        fault = cluster_group_fault(group) if group == peer else None
        return State(present=group == peer and fault is None, unknown=fault is not None and fault.unverified)
    states = [*_inline(group, direction, peer), *_rules(stack, group, direction, peer)]
    misses = list(dict.fromkeys(state.near_miss for state in states if state.near_miss))
    present = [state for state in states if state.present]
    hidden = not present and any(state.unknown for state in states)
    return State(bool(present), hidden, "; ".join(misses), any(state.inline for state in present))


def exchange(stack: Stack, left: Sequence[Resource], right: Sequence[Resource]) -> State:
    """Whether interfaces with some groups and interfaces with others let all traffic through, both ways.

    Each way needs two rules, which may stand on different groups: an interface obeys the rules of all groups it carries.
    """
    ways = [
        [allows(stack, group, direction, peer) for group in groups for peer in peers]
        for groups, peers in ((left, right), (right, left))
        for direction in ("ingress", "egress")
    ]
    present = all(any(state.present for state in states) for states in ways)
    seen = all(any(state.present or state.unknown for state in states) for states in ways)
    return State(present, unknown=not present and seen)


def revoked(stack: Stack, group: Resource) -> Iterator[Finding]:
    """Self-referencing rule resources beside inline rules of the same direction, which the provider will revoke.

    A group with inline rules is made to have these and no others at its next update (Pulumi's documentation of
    ``aws.ec2.SecurityGroup``); CloudFormation leaves the others alone.
    """
    if group.aws[0] != "aws" or group.inputs is None:
        return
    for direction in ("ingress", "egress"):
        state = allows(stack, group, direction, group)
        if direction in group.inputs and group.props.get(direction) is not None and state.present and not state.inline:
            yield Finding(
                direction,
                "written inline beside a rule resource that lets the group reach itself",
                f"Whether that rule lasts cannot be verified: the next update of the group revokes what is not inline. {WHY}",
                "Write all rules of this direction inline, or all as rule resources.",
                unverified=True,
            )


def cluster_group_fault(cluster: Resource) -> Finding | None:
    """What is wrong with the security group that EKS itself makes for a cluster; None from Kubernetes 1.33 on."""
    version = cluster.props.get("version")
    parts = version.split(".")[:2] if isinstance(version, str) else []
    if len(parts) < 2 or not all(part.isdecimal() and len(part) <= _LONGEST_NUMBER for part in parts):
        return unknown("version", "Whether the cluster's own security group has both rules (from Kubernetes 1.33)")
    if (int(parts[0]), int(parts[1])) >= _CLUSTER_GROUP_HAS_BOTH:
        return None
    return Finding(
        "version",
        shown(version),
        f"Before Kubernetes 1.33 the cluster security group lacks egress to itself. {WHY}",
        "Add a security group of your own with both rules to the EFA interfaces, or upgrade the cluster.",
    )


def _inline(group: Resource, direction: str, peer: Resource) -> Iterator[State]:
    fields = SECURITY_GROUPS[group.aws]
    name = fields.ingress if direction == "ingress" else fields.egress
    rules = group.given(name)
    if rules is UNKNOWN:
        yield State(unknown=True)
    identity = at(peer.props, "id")
    for rule in sequence(rules):
        own = at(rule, "self") if group == peer else None
        peers = sequence(at(rule, "securityGroups"))
        hidden = UNKNOWN in peers and group != peer and peer.urn in group.sources.get(name, ())
        if rule is UNKNOWN or own is UNKNOWN:
            yield State(unknown=True)
        elif is_true(own) or hidden or (isinstance(identity, str) and identity in peers):
            yield _by_protocol(at(rule, "protocol"), inline=True)
        elif at(rule, "cidrBlocks") or at(rule, "ipv6CidrBlocks"):
            yield State(near_miss="only address ranges are allowed")


def _rules(stack: Stack, group: Resource, direction: str, peer: Resource) -> Iterator[State]:
    for rule in stack.aws(RULES):
        fields = RULES[rule.aws]
        if not rule.refers_to(fields.group, group):
            continue
        way = fields.direction or rule.given("type")
        if way is UNKNOWN:
            yield State(unknown=True)
        if way != direction:
            continue
        own = rule.given("self") if group == peer else None
        if own is UNKNOWN:
            yield State(unknown=True)
        elif is_true(own) or rule.refers_to(fields.peer, peer):
            yield _by_protocol(rule.given(fields.protocol))
        elif any(rule.given(name) for name in ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6", "cidrIp")):
            yield State(near_miss="only address ranges are allowed")


def _by_protocol(protocol: object, inline: bool = False) -> State:
    if protocol is UNKNOWN:
        return State(unknown=True)
    if isinstance(protocol, str | int) and str(protocol).lower() in _ALL_PROTOCOLS:
        return State(present=True, inline=inline)
    return State(near_miss=f"the rule covers protocol {shown(protocol)}, not all of them")
