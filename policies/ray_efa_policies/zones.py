"""Do all nodes of a GPU group stand in one Availability Zone? EFA does not cross zones, and a cluster placement group has one.

A group passes with one subnet, or with several where the stack shows that they lie in one zone.
"""

from collections.abc import Iterator

from . import karpenter, shared_zone
from .node_groups import NodeGroup, judge, node_groups
from .options import Options
from .report import Finding, subject, unknown
from .stack import Resource, Stack, known_strings
from .subnet_zones import FIX, WHY, SubnetZones, verdict
from .values import UNKNOWN, at, sequence, shown


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
    yield from shared_zone.check(stack, options, zones)


def _perhaps_gpu(placement: Finding, hidden: str) -> Finding:
    return Finding(
        placement.path,
        placement.found,
        f"Whether the group has GPUs cannot be checked before the deployment: {hidden} is not known yet.",
        f"Make it a plain value of the program. If the group has GPUs: {FIX[0].lower()}{FIX[1:]}",
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
        return verdict({}, "a list of zones not known yet", fields.zones, complete=False)
    if len(sequence(listed_zones)) < 2:
        return None
    known = known_strings(listed_zones)
    complete = all(zone is not UNKNOWN for zone in sequence(listed_zones))
    return verdict(dict(zip(known, known, strict=True)), f"{len(known)} zones", fields.zones, complete)


def _pool_placement(pool: karpenter.NodePool, zones: SubnetZones) -> Finding | None:
    """A pool needs one value of the zone requirement, or a node class whose subnets lie in one zone."""
    values, path = pool.zones()
    if values is not None and len(values) == 1:
        return None
    if values and UNKNOWN in values:
        return unknown(path, "Whether the pool keeps to one zone")
    if values:
        return Finding(path, shown(values), WHY, f"Write one value: {karpenter.ZONE_EXAMPLE}.")
    node_class = pool.node_class
    terms = at(node_class.props, "spec", "subnetSelectorTerms") if node_class else None
    ids = [at(term, "id") for term in sequence(terms)]
    if node_class and ids and all(identity is not None for identity in ids):
        return zones.check(ids, node_class, "spec", f"spec.subnetSelectorTerms of {node_class.name}")
    return Finding(
        path,
        "without exactly one zone",
        f"Karpenter then launches its GPU nodes in any zone of its node class. {WHY}",
        f"Write the requirement {karpenter.ZONE_EXAMPLE}, or give the node class the id of one subnet.",
    )
