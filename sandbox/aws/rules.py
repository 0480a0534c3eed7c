"""Makers of the rules that several resource types share. Each returns a function for ``ResourceKind.rules``."""

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Iterable

from sandbox.aws.kinds import Rule, RuleContext
from sandbox.aws.paths import is_given, values_at
from sandbox.standin import CheckFailure


def conflicts(first: str, *others: str) -> Rule:
    """The first property may not stand beside any of the others."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        if is_given(context.inputs, first):
            for other in others:
                if is_given(context.inputs, other):
                    yield CheckFailure(first, f"conflicts with {other}: give one of the two")

    return rule


def exactly_one_of(*names: str) -> Rule:
    """One of the properties must be given, and one only."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        given = [name for name in names if is_given(context.inputs, name)]
        if not given:
            yield CheckFailure(names[0], f"give one of {', '.join(names)}: none is set")
        elif len(given) > 1:
            yield CheckFailure(given[0], f"give only one of {', '.join(names)}: {', '.join(given)} are set")

    return rule


def at_most_one_of(parent: str, *names: str) -> Rule:
    """At most one of an object's members may be given."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, parent):
            given = [name for name in names if is_given(value, name)]
            if len(given) > 1:
                yield CheckFailure(path, f"give only one of {', '.join(names)}: {', '.join(given)} are set")

    return rule


def one_of(pattern: str, *allowed: object) -> Rule:
    """A closed set of values that the API model does not carry."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            if value not in allowed:
                yield CheckFailure(path, f"is {value!r}; it may be {', '.join(str(one) for one in allowed)}")

    return rule


def length(pattern: str, shortest: int, longest: int) -> Rule:
    """Bounds, both included, of a text's or list's length."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            if not shortest <= len(value) <= longest:
                unit = "elements" if isinstance(value, list) else "characters"
                reason = f"has {len(value)} {unit}; between {shortest} and {longest} are possible"
                yield CheckFailure(path, reason)

    return rule


def between(pattern: str, lowest: int, highest: int) -> Rule:
    """Bounds, both included, of a number."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            if not lowest <= value <= highest:
                yield CheckFailure(path, f"is {value}; it may be {lowest} to {highest}")

    return rule


def matches(pattern: str, expression: str, example: str) -> Rule:
    """A text's form."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            if not re.fullmatch(expression, value):
                yield CheckFailure(path, f"is {value!r}, which is not of the form {example}")

    return rule


def cidr(pattern: str, longest_network: int = 0, shortest_network: int = 32) -> Rule:
    """An IPv4 network without host bits, its prefix length between the two bounds."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            try:
                network = ipaddress.IPv4Network(value, strict=False)
            except ValueError:
                yield CheckFailure(path, f"is {value!r}, which is no IPv4 network such as 10.0.0.0/16")
                continue
            if str(network) != value:
                yield CheckFailure(path, f"is {value!r}; the network is written {network}")
            elif not longest_network <= network.prefixlen <= shortest_network:
                reason = f"is {value!r}; its prefix must be /{longest_network} to /{shortest_network}"
                yield CheckFailure(path, reason)

    return rule


def json_document(pattern: str) -> Rule:
    """A JSON text, as policies are."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            try:
                json.loads(value)
            except ValueError as fault:
                yield CheckFailure(path, f"is no JSON: {fault}")

    return rule


def base64_text(pattern: str) -> Rule:
    """EC2 refuses anything else with InvalidUserData.Malformed."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            try:
                base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                yield CheckFailure(path, "is not base64: encode it first")

    return rule


def zone_exists(pattern: str) -> Rule:
    """The zone is one of the region's."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        for path, value in values_at(context.inputs, pattern):
            zones = context.cloud.zones(context.region)
            if value not in zones:
                reason = f"is {value!r}; {context.region} has {', '.join(sorted(zones))}"
                yield CheckFailure(path, reason)

    return rule


def instance_type_offered(pattern: str, zone: str | None = None) -> Rule:
    """The type exists, the region has it, and so has the zone where ``zone`` (a pattern) gives one."""

    def rule(context: RuleContext) -> Iterable[CheckFailure]:
        wanted = [value for _, value in values_at(context.inputs, zone)] if zone else []
        for path, value in values_at(context.inputs, pattern):
            yield from offering_faults(context, path, value, wanted)

    return rule


def offering_faults(
    context: RuleContext, path: str, instance_type: str, zones: Iterable[str]
) -> Iterable[CheckFailure]:
    """What is wrong with an instance type in this region and these zones (EC2's data as moto records it)."""
    if context.cloud.instance_type(instance_type, context.region) is None:
        yield CheckFailure(path, f"is {instance_type!r}, which is no EC2 instance type")
        return
    offered = context.cloud.zones_offering(instance_type, context.region)
    if not offered:
        yield CheckFailure(path, f"is {instance_type!r}, which EC2 does not offer in {context.region}")
    for one in zones:
        if offered and one not in offered:
            reason = f"is {instance_type!r}, which EC2 does not offer in {one}: {', '.join(sorted(offered))} have it"
            yield CheckFailure(path, reason)
