"""Do all nodes that one prefill/decode workload runs on stand in one zone, when several groups make them?"""

from collections.abc import Iterator
from dataclasses import dataclass

from .karpenter import NodePool
from .linked_groups import Linked, Place, linked
from .node_groups import NodeGroup
from .options import Options
from .placement import pinned_zones
from .report import Finding, subject
from .stack import Resource, Stack
from .subnet_zones import WHY, SubnetZones, differ, one_zone
from .values import UNKNOWN, at, sequence


@dataclass(frozen=True)
class Spot:
    """Where a worker group's pods may run: the zone if it can be seen, and whom to blame for it."""

    worker: str
    zone: str | None
    subnets: frozenset[str]
    """The subnets behind it, so that two spots may be seen to be one although the zone cannot."""
    resource: Resource
    label: str
    path: str


def check(stack: Stack, options: Options, zones: SubnetZones) -> Iterator[tuple[Resource, str, Finding]]:
    """Faults between the node groups, node pools and zone pins of each workload; each resource is blamed once."""
    blamed: set[str] = set()
    for link in linked(stack):
        spots = [spot for place in link.places if (spot := _spot(link, place, zones))]
        spots = [spot for spot in spots if not options.excludes(spot.resource.name)]
        first = next((spot for spot in spots if spot.zone), spots[0] if spots else None)
        for spot in spots:
            finding = _compared(first, spot, link) if first else None
            if finding and spot.resource.urn not in blamed:
                blamed.add(spot.resource.urn)
                yield spot.resource, f"{spot.label}, of worker group '{spot.worker}' of {link.subject}", finding


def _spot(link: Linked, place: Place, zones: SubnetZones) -> Spot | None:
    """None where nothing can be said, or the group is at fault by itself, which is told of it already."""
    worker, nodes = place.worker, place.nodes
    pins = pinned_zones(worker.pod)
    pin = next(iter(pins)) if pins and len(pins) == 1 else None
    if nodes is None:
        path = f"{worker.pod_path}.nodeSelector"
        return Spot(worker.name, pin, frozenset(), link.resource, link.subject, path) if pin else None
    found = _of_pool(nodes, zones) if isinstance(nodes, NodePool) else _of_group(nodes, zones)
    if found is None:
        return None
    zone, subnets, path = found
    if zone and pins and all(differ(zone, other) for other in pins):
        return None  # its pods keep away from these nodes
    kind = "Karpenter NodePool" if isinstance(nodes, NodePool) else f"GPU {nodes.kind}"
    name = nodes.name if isinstance(nodes, NodePool) else nodes.resource.name
    return Spot(worker.name, zone or pin, subnets, nodes.resource, subject(kind, name), path)


_Found = tuple[str | None, frozenset[str], str]


def _of_group(group: NodeGroup, zones: SubnetZones) -> _Found | None:
    name = group.fields.subnets
    subnets = group.resource.given(name)
    listed = sequence(group.resource.given(group.fields.zones)) if group.fields.zones else ()
    if subnets is None and listed:
        zone = listed[0] if len(listed) == 1 else None
        return (zone if isinstance(zone, str) else None, frozenset(), group.fields.zones)
    return _of_subnets(subnets, group.resource, name, name, zones)


def _of_pool(pool: NodePool, zones: SubnetZones) -> _Found | None:
    values, path = pool.zones()
    if values:
        return (zone, frozenset(), path) if len(values) == 1 and isinstance(zone := values[0], str) else None
    terms = sequence(at(pool.node_class.props, "spec", "subnetSelectorTerms")) if pool.node_class else ()
    ids = [at(term, "id") for term in terms]
    if pool.node_class is None or not ids or None in ids:
        return None
    return _of_subnets(ids, pool.node_class, "spec", path, zones)


def _of_subnets(value: object, resource: Resource, name: str, path: str, zones: SubnetZones) -> _Found | None:
    if value is not None and zones.check(value, resource, name, path):
        return None
    named = zones.named(UNKNOWN if value is None else value, resource, name)
    return one_zone(named), frozenset(named), path


def _compared(first: Spot, spot: Spot, link: Linked) -> Finding | None:
    if spot == first or (spot.subnets and spot.subnets == first.subnets):
        return None
    where = f"worker group '{first.worker}' runs in {first.zone}" if first.zone else f"{first.label} is elsewhere"
    fix = f"Put all node groups that {link.subject} runs on into one zone."
    apart = differ(first.zone, spot.zone) if first.zone and spot.zone else None
    if apart is False:
        return None
    if apart:
        return Finding(spot.path, f"in {spot.zone}, while {where}", WHY, fix)
    return Finding(
        spot.path,
        f"in a zone that the stack does not show, while {where}" if not spot.zone else f"in {spot.zone}, while {where}",
        f"Whether the two are one zone cannot be checked before the deployment. {WHY}",
        f"{fix} Set availabilityZone on each subnet of the stack; zones of others go into the policy's subnetZones.",
        unverified=True,
    )
