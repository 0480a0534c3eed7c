"""Do all nodes of a GPU group stand in one Availability Zone? EFA does not cross zones, and a cluster placement group has one.

A group passes with one subnet, or with several where the stack shows that they lie in one zone.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from . import karpenter
from .node_groups import NodeGroup, judge, node_groups
from .options import Options
from .report import Finding, listed, subject, unknown
from .stack import Resource, Stack, known_strings
from .tokens import SUBNETS
from .values import UNKNOWN, at, sequence, shown

_WHY: Final = "EFA does not cross Availability Zones: prefill and decode in two zones cannot exchange the KV cache."
_FIX: Final = "Give the group one subnet, or subnets of one zone only; the cluster itself may span zones."
_ZONE_ID = re.compile(r"[a-z0-9]+-az\d+")


def check(stack: Stack, options: Options) -> Iterator[tuple[Resource, str, Finding]]:
    """Faults of all groups in scope, each with its resource and how a message names it."""
    zones = SubnetZones(stack, options.subnet_zones or {})
    for group in node_groups(stack):
        resource = group.resource
        if options.excludes(resource.name):
            continue
        placement = _placement(group, zones)
        if placement is None:
            continue
        verdict = judge(group)
        reason = "the policy's configuration includes it" if options.includes(resource.name) else verdict.reason
        if options.efa_only and not verdict.efa and not options.includes(resource.name):
            reason = ""
        if reason:
            yield resource, subject(f"GPU {group.kind}", resource.name, f"judged because {reason}"), placement
        elif verdict.unknown:
            yield resource, subject(group.kind, resource.name), _perhaps_gpu(placement, verdict.unknown)
    for pool in karpenter.node_pools(stack):
        included = options.includes(pool.resource.name)
        if options.excludes(pool.resource.name) or (options.efa_only and not included):
            continue
        finding = _pool_placement(pool, zones)
        reason = "the policy's configuration includes it" if included else pool.gpu_reason()
        if finding and reason:
            yield pool.resource, subject("Karpenter NodePool", pool.name, f"judged because {reason}"), finding
        elif finding and pool.requirements_unknown:
            hidden = "what its requirements ask for"
            yield pool.resource, subject("Karpenter NodePool", pool.name), _perhaps_gpu(finding, hidden)


def _perhaps_gpu(placement: Finding, hidden: str) -> Finding:
    return Finding(
        placement.path,
        placement.found,
        f"Whether the group has GPUs cannot be checked before the deployment: {hidden} is not known yet.",
        f"Make it a plain value of the program. If the group has GPUs: {_FIX[0].lower()}{_FIX[1:]}",
        unverified=True,
    )


class SubnetZones:
    """The zones of subnets: of those in the stack, and of those the policy's configuration tells."""

    def __init__(self, stack: Stack, configured: Mapping[str, str]) -> None:
        """Takes the stack and a map from subnet id to zone."""
        self._stack = stack
        self._subnets = stack.aws(SUBNETS)
        self._configured = configured

    def of_subnet(self, subnet: Resource) -> str | None:
        """The zone's name, or its id where only that is given; None if neither can be seen."""
        for name in ("availabilityZone", "availabilityZoneId"):
            zone = subnet.props.get(name)
            if isinstance(zone, str) and zone:
                return zone
        return self.of_id(subnet.props.get("id"), in_stack=False)

    def of_id(self, identity: object, in_stack: bool = True) -> str | None:
        """The zone of a subnet by its known id, or None."""
        if not isinstance(identity, str):
            return None
        subnet = self._stack.by_identity(self._subnets, identity, "id", "subnetId") if in_stack else None
        return self.of_subnet(subnet) if subnet else self._configured.get(identity)

    def check(self, value: object, resource: Resource, name: str, path: str) -> Finding | None:
        """The fault of a list of subnet ids.

        Args:
            value: the list as the program gave it; UNKNOWN if it is unknown as a whole.
            resource: whose list it is.
            name: the top-level property it stands in, for the engine's record of where it came from.
            path: where it stands, for the message.
        """
        sources = [item for item in self._stack.sources(resource, name) if item.aws in SUBNETS]
        hidden = 1 if value is UNKNOWN else sum(item is UNKNOWN for item in sequence(value))
        known = known_strings(value)
        if value is not UNKNOWN and hidden + len(known) <= 1:
            return None
        zones: dict[str, str | None] = {identity: self.of_id(identity) for identity in known}
        if hidden:
            zones |= {f"subnet '{subnet.name}'": self.of_subnet(subnet) for subnet in sources}
        if value is UNKNOWN:
            return _hidden_list(zones, path)
        return _verdict(zones, f"{hidden + len(known)} subnets", path, complete=len(sources) >= hidden)


def _hidden_list(zones: Mapping[str, str | None], path: str) -> Finding | None:
    """The fault of a list that is unknown as a whole, by the zones of the subnets it was made from."""
    seen = {zone for zone in zones.values() if zone}
    if len(seen) == 1 and all(zones.values()):
        return None
    origin = f" It was made from subnets in {listed(sorted(seen))}." if len(seen) > 1 else ""
    return Finding(
        path,
        "a list of subnets not known yet",
        f"Whether they lie in one zone cannot be checked before the deployment.{origin} {_WHY}",
        "Write a list of single subnet ids, [subnet.id], not one Output of a list: its length is then known.",
        unverified=True,
    )


def _verdict(zones: Mapping[str, str | None], count: str, path: str, complete: bool) -> Finding | None:
    seen = sorted({zone for zone in zones.values() if zone})
    names = [zone for zone in seen if not _ZONE_ID.fullmatch(zone)]
    ids = [zone for zone in seen if _ZONE_ID.fullmatch(zone)]
    if len(names) > 1 or len(ids) > 1:
        return Finding(path, f"{count} in {listed(names if len(names) > 1 else ids)}", _WHY, _FIX)
    unseen = [label for label, zone in zones.items() if not zone]
    if complete and not unseen and len(seen) == 1:
        return None
    hint = f" ({listed(unseen)})" if unseen else ""
    return Finding(
        path,
        f"{count} whose zones the stack does not show{hint}",
        f"Whether they lie in one zone cannot be checked before the deployment. {_WHY}",
        f"{_FIX} Set availabilityZone on each subnet of the stack; zones of others go into the policy's subnetZones.",
        unverified=True,
    )


def _placement(group: NodeGroup, zones: SubnetZones) -> Finding | None:
    """The fault of a group's subnets or zones, before it is known whether the group is judged."""
    resource, fields = group.resource, group.fields
    subnets = resource.given(fields.subnets)
    listed_zones = resource.given(fields.zones) if fields.zones else None
    if subnets is None and listed_zones is None and resource.props.get(fields.subnets) is UNKNOWN:
        # No group is without subnets: this list was given, by a data source, say, of which the engine records nothing.
        subnets = UNKNOWN
    if subnets is not None:
        return zones.check(subnets, resource, fields.subnets, fields.subnets)
    if listed_zones is UNKNOWN:
        return _verdict({}, "a list of zones not known yet", fields.zones, complete=False)
    if len(sequence(listed_zones)) < 2:
        return None
    known = known_strings(listed_zones)
    complete = all(zone is not UNKNOWN for zone in sequence(listed_zones))
    return _verdict(dict(zip(known, known, strict=True)), f"{len(known)} zones", fields.zones, complete)


def _pool_placement(pool: karpenter.NodePool, zones: SubnetZones) -> Finding | None:
    """A pool needs one value of the zone requirement, or a node class whose subnets lie in one zone."""
    values, path = pool.zones()
    if values is not None and len(values) == 1:
        return None
    if values and UNKNOWN in values:
        return unknown(path, "Whether the pool keeps to one zone")
    if values:
        return Finding(path, shown(values), _WHY, f"Write one value: {karpenter.ZONE_EXAMPLE}.")
    node_class = pool.node_class
    terms = at(node_class.props, "spec", "subnetSelectorTerms") if node_class else None
    ids = [at(term, "id") for term in sequence(terms)]
    if node_class and ids and all(identity is not None for identity in ids):
        return zones.check(ids, node_class, "spec", f"spec.subnetSelectorTerms of {node_class.name}")
    return Finding(
        path,
        "without exactly one zone",
        f"Karpenter then launches its GPU nodes in any zone of its node class. {_WHY}",
        f"Write the requirement {karpenter.ZONE_EXAMPLE}, or give the node class the id of one subnet.",
    )
