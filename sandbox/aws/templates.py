"""A node group and its launch template, judged together: what EKS or EC2 refuses of the pair although each alone is fine.

Rules read a template in the provider's words (``networkInterfaces``) as well as in EC2's (``NetworkInterfaces``).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sandbox.aws.kinds import RuleContext
from sandbox.aws.life.base import At
from sandbox.aws.life.instances import TEMPLATE, template_data
from sandbox.standin import UNKNOWN, CheckFailure

_BLOCK: Final = "CAPACITY_BLOCK"
_BLOCK_MARKET: Final = "capacity-block"
# Versions that a change of the template in the same run moves.
_MOVING: Final = ("$Latest", UNKNOWN)


def faults_of_pair(context: RuleContext) -> Iterator[CheckFailure]:
    """Yields what is wrong with a node group's inputs and the launch template that they refer to.

    In a preview the id of a template that is still to be made is unknown, and the protocol does not tell where an
    unknown comes from. Then it can be any template that the run has planned by now, and the pair is refused only where
    the group fits none of them; else EKS's own time is the node group's Check in ``up``, which sees the id.
    """
    group = context.inputs
    given = group.get("launchTemplate")
    if not isinstance(given, Mapping):
        return
    found = [list(_judged(context, template)) for template in _templates(context, given)]
    if all(found):
        # Several templates may share a fault.
        yield from dict.fromkeys(fault for faults in found for fault in faults)


def interface_faults(
    template: Mapping[str, Any], instance_type: str, row: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yields path and reason of each network interface that an instance type cannot take.

    EC2 RunInstances refuses them; ``row`` has the numbers, as DescribeInstanceTypes gives them.
    """
    network = row["NetworkInfo"]
    cards, most = network["MaximumNetworkCards"], network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    interfaces = list(_interfaces(template))
    efa = [path for path, one in interfaces if "efa" in _text(one, "interfaceType")]
    if len(efa) > most:
        reason = f"is EFA interface number {most + 1}, but {instance_type} takes {most}"
        yield f"{efa[most]}.interfaceType", reason
    for path, one in interfaces:
        card = _member(one, "networkCardIndex")
        if isinstance(card, int) and card >= cards:
            reason = f"is {card}, but {instance_type} has {cards} network card(s), counted from 0"
            yield f"{path}.networkCardIndex", reason


def _templates(context: RuleContext, given: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The template that is referred to; where that is unknown, all that it can be; none where the sandbox has none."""
    id, name, version = given.get("id"), given.get("name"), given.get("version")
    planned = [one for one in context.planned.values() if one.get("region", context.region) == context.region]
    if UNKNOWN in (id, name):
        return planned
    account = context.cloud.account
    made = next(
        (
            one
            for one in account.records(TEMPLATE)
            if one.region == context.region and (one.id == id or one.inputs.get("name") == name)
        ),
        None,
    )
    if made is None or version in _MOVING:
        name = made.inputs.get("name") if made else name
        return [one for one in planned if one.get("name") == name]
    with account.operation():
        data = template_data(At(context.cloud, context.region), {"id": made.id, "version": version})
    return [data] if data else []


def _judged(context: RuleContext, template: Mapping[str, Any]) -> Iterator[CheckFailure]:
    group, own = context.inputs, _member(template, "instanceType")
    types = group.get("instanceTypes")
    if isinstance(types, list) and types and isinstance(own, str) and own:
        # EKS CreateNodegroup: InvalidRequestException, instance types in both (terraform-aws-modules/terraform-aws-eks#1386).
        reason = f"cannot stand beside the launchTemplate's instanceType ({own}): leave out one of the two"
        yield CheckFailure("instanceTypes", reason)
    for path, one in _interfaces(template):
        # EKS user guide, "Customize managed nodes with launch templates": settings that a template may not carry.
        if _member(one, "subnetId") is not None:
            reason = "belongs to the node group: leave it out of the launch template, subnetIds place the nodes"
            yield CheckFailure(f"launchTemplate: {path}.subnetId", reason)
    yield from _capacity_block(group, template)
    for wanted in types if isinstance(types, list) else ():
        row = context.cloud.instance_type(wanted, context.region) if isinstance(wanted, str) else None
        for path, reason in interface_faults(template, wanted, row) if row else ():
            yield CheckFailure(f"launchTemplate: {path}", reason)


def _capacity_block(group: Mapping[str, Any], template: Mapping[str, Any]) -> Iterator[CheckFailure]:
    # EKS user guide, "Create a managed node group with Capacity Blocks for ML": all of these, or none.
    capacity = group.get("capacityType", "ON_DEMAND")
    market = _member(template, "instanceMarketOptions", "marketType")
    target = _member(template, "capacityReservationSpecification", "capacityReservationTarget")
    if capacity == _BLOCK:
        if market not in (UNKNOWN, _BLOCK_MARKET):
            reason = (
                f"must be {_BLOCK_MARKET} for capacityType {_BLOCK}, {f'not {market}' if market else 'and is not set'}"
            )
            yield CheckFailure("launchTemplate: instanceMarketOptions.marketType", reason)
        if not _aims(target):
            reason = f"must name the block's reservation for capacityType {_BLOCK}, and is not set"
            yield CheckFailure(
                "launchTemplate: capacityReservationSpecification.capacityReservationTarget.capacityReservationId",
                reason,
            )
    elif capacity is not UNKNOWN and market == _BLOCK_MARKET:
        reason = f"is {capacity}, but the launchTemplate's marketType is {_BLOCK_MARKET}: set {_BLOCK}"
        yield CheckFailure("capacityType", reason)


def _aims(target: Any) -> bool:
    if target is UNKNOWN:
        return True
    names = ("capacityReservationId", "capacityReservationResourceGroupArn")
    return any(_member(target, name) not in (None, "") for name in names)


def _interfaces(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = _member(template, "networkInterfaces")
    for index, one in enumerate(found if isinstance(found, list) else ()):
        if isinstance(one, Mapping):
            yield f"networkInterfaces[{index}]", one


def _text(value: Mapping[str, Any], name: str) -> str:
    found = _member(value, name)
    return found if isinstance(found, str) else ""


def _member(value: Any, *names: str) -> Any:
    """A member of a member, under either spelling; UNKNOWN as soon as one is."""
    for name in names:
        if not isinstance(value, Mapping):
            return value
        value = value.get(name, value.get(name[0].upper() + name[1:]))
    return value
