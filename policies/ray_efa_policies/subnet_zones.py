"""In which Availability Zones subnets lie: those of the stack, and those that the policy's configuration tells."""

import re
from collections.abc import Mapping
from typing import Final

from .report import Finding, listed
from .stack import Resource, Stack, known_strings
from .tokens import SUBNETS
from .values import UNKNOWN, sequence

WHY: Final = "EFA does not cross Availability Zones: prefill and decode in two zones cannot exchange the KV cache."
FIX: Final = "Give the group one subnet, or subnets of one zone only; the cluster itself may span zones."
_ZONE_ID = re.compile(r"[a-z0-9]+-az\d+")


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

    def named(self, value: object, resource: Resource, name: str) -> dict[str, str | None]:
        """The zones of the subnets that a list holds or may hold, by what a message calls each.

        Args:
            value: the list as the program gave it; UNKNOWN if it is unknown as a whole.
            resource: whose list it is.
            name: the top-level property it stands in, for the engine's record of where it came from.
        """
        zones: dict[str, str | None] = {identity: self.of_id(identity) for identity in known_strings(value)}
        if value is UNKNOWN or UNKNOWN in sequence(value):
            sources = self._stack.sources(resource, name)
            zones |= {f"subnet '{item.name}'": self.of_subnet(item) for item in sources if item.aws in SUBNETS}
        return zones

    def check(self, value: object, resource: Resource, name: str, path: str) -> Finding | None:
        """The fault of a list of subnet ids, given as to ``named``; ``path`` is where it stands, for the message."""
        hidden = 1 if value is UNKNOWN else sum(item is UNKNOWN for item in sequence(value))
        known = known_strings(value)
        if value is not UNKNOWN and hidden + len(known) <= 1:
            return None
        zones = self.named(value, resource, name)
        if value is UNKNOWN:
            return _hidden_list(zones, path)
        sources = self._stack.sources(resource, name)
        of_stack = [item for item in sources if item.aws in SUBNETS]
        # An id may stand there twice. Where all it was made from is subnets, each is one of them.
        complete = len(of_stack) >= hidden or (bool(of_stack) and len(of_stack) == len(resource.came_from(name)))
        return verdict(zones, f"{hidden + len(known)} subnets", path, complete)


def one_zone(zones: Mapping[str, str | None]) -> str | None:
    """The zone, if all subnets certainly lie in it."""
    seen = set(zones.values())
    return seen.pop() if len(seen) == 1 else None


def differ(one: str, other: str) -> bool | None:
    """Whether two zones are certainly different; None where one is a name and the other an id."""
    if bool(_ZONE_ID.fullmatch(one)) != bool(_ZONE_ID.fullmatch(other)):
        return None
    return one != other


def verdict(zones: Mapping[str, str | None], count: str, path: str, complete: bool) -> Finding | None:
    """The fault of subnets in some zones; ``complete`` says whether no other subnet can be among them."""
    seen = sorted({zone for zone in zones.values() if zone})
    names = [zone for zone in seen if not _ZONE_ID.fullmatch(zone)]
    ids = [zone for zone in seen if _ZONE_ID.fullmatch(zone)]
    if len(names) > 1 or len(ids) > 1:
        return Finding(path, f"{count} in {listed(names if len(names) > 1 else ids)}", WHY, FIX)
    unseen = [label for label, zone in zones.items() if not zone]
    if complete and not unseen and len(seen) == 1:
        return None
    hint = f" ({listed(unseen)})" if unseen else ""
    return Finding(
        path,
        f"{count} whose zones the stack does not show{hint}",
        f"Whether they lie in one zone cannot be checked before the deployment. {WHY}",
        f"{FIX} Set availabilityZone on each subnet of the stack; zones of others go into the policy's subnetZones.",
        unverified=True,
    )


def _hidden_list(zones: Mapping[str, str | None], path: str) -> Finding | None:
    """The fault of a list that is unknown as a whole, by the zones of the subnets it was made from."""
    seen = {zone for zone in zones.values() if zone}
    if len(seen) == 1 and all(zones.values()):
        return None
    origin = f" It was made from subnets in {listed(sorted(seen))}." if len(seen) > 1 else ""
    return Finding(
        path,
        "a list of subnets not known yet",
        f"Whether they lie in one zone cannot be checked before the deployment.{origin} {WHY}",
        "Write a list of single subnet ids, [subnet.id], not one Output of a list: its length is then known.",
        unverified=True,
    )
