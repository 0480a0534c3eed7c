"""Which self-referencing rules a security group has: written inline, or as rule resources of any kind."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .stack import Resource, Stack
from .tokens import RULES, SECURITY_GROUPS
from .values import UNKNOWN, at, is_true, sequence, shown

_ALL_PROTOCOLS: Final = ("-1", -1, "all")


@dataclass(frozen=True)
class State:
    """One direction: whether the rule is there, cannot be seen, or is nearly there (in words)."""

    present: bool = False
    unknown: bool = False
    near_miss: str = ""


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
    return SelfRules(_direction(stack, group, "ingress"), _direction(stack, group, "egress"))


def _direction(stack: Stack, group: Resource, direction: str) -> State:
    states = [*_inline(group, direction), *_rules(stack, group, direction)]
    misses = list(dict.fromkeys(state.near_miss for state in states if state.near_miss))
    present = any(state.present for state in states)
    return State(present, not present and any(state.unknown for state in states), "; ".join(misses))


def _inline(group: Resource, direction: str) -> Iterator[State]:
    fields = SECURITY_GROUPS[group.aws]
    rules = group.given(fields.ingress if direction == "ingress" else fields.egress)
    if rules is UNKNOWN:
        yield State(unknown=True)
    identity = at(group.props, "id")
    for rule in sequence(rules):
        own = at(rule, "self")
        peers = sequence(at(rule, "securityGroups"))
        if rule is UNKNOWN or own is UNKNOWN:
            yield State(unknown=True)
        elif is_true(own) or (isinstance(identity, str) and identity in peers):
            yield _by_protocol(at(rule, "protocol"))
        elif at(rule, "cidrBlocks") or at(rule, "ipv6CidrBlocks"):
            yield State(near_miss="only address ranges are allowed")


def _rules(stack: Stack, group: Resource, direction: str) -> Iterator[State]:
    for rule in stack.aws(RULES):
        fields = RULES[rule.aws]
        if not rule.refers_to(fields.group, group):
            continue
        way = fields.direction or rule.given("type")
        if way is UNKNOWN:
            yield State(unknown=True)
        if way != direction:
            continue
        if is_true(rule.given("self")) or rule.refers_to(fields.peer, group):
            yield _by_protocol(rule.given(fields.protocol))
        elif any(rule.given(name) for name in ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6", "cidrIp")):
            yield State(near_miss="only address ranges are allowed")


def _by_protocol(protocol: object) -> State:
    if protocol in _ALL_PROTOCOLS:
        return State(present=True)
    if protocol is UNKNOWN:
        return State(unknown=True)
    return State(near_miss=f"the rule covers protocol {shown(protocol)}, not all of them")
