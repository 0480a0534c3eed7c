"""How the address range of a new VPC is split into one private and one public subnet a zone."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

# A private block is 1/16 of the VPC; the last of the sixteen is cut into sixteen public blocks.
_PRIVATE_BITS = 4
_PUBLIC_BITS = 8
MAX_ZONES = 2**_PRIVATE_BITS - 1
MIN_ZONES = 2
"""EKS puts its control plane into at least two zones."""
LARGEST_VPC_PREFIX = 16
SMALLEST_VPC_PREFIX = 20
"""A public block of a /20 is a /28, the smallest subnet that EC2 allows."""


@dataclass(frozen=True)
class ZoneSubnets:
    """The two CIDR blocks of one zone."""

    private: str
    public: str


def subnet_faults(cidr: str, zones: Sequence[str]) -> list[str]:
    """What keeps ``cidr`` from being split over ``zones``: one sentence a fault, empty when nothing does."""
    faults: list[str] = []
    try:
        network = IPv4Network(cidr)
    except ValueError as error:
        faults.append(f"network.cidr: '{cidr}' is not an IPv4 network ({error}); write one such as 10.20.0.0/16.")
    else:
        if not LARGEST_VPC_PREFIX <= network.prefixlen <= SMALLEST_VPC_PREFIX:
            faults.append(
                f"network.cidr: '{cidr}' is a /{network.prefixlen}; a VPC holds at most a /{LARGEST_VPC_PREFIX}, and below a "
                f"/{SMALLEST_VPC_PREFIX} its public subnets would be too small for EC2: write one between, such as 10.20.0.0/16."
            )
    if not MIN_ZONES <= len(zones) <= MAX_ZONES:
        faults.append(
            f"network.zones: {len(zones)} zone(s) given; the EKS control plane needs at least {MIN_ZONES} and the address plan "
            f"holds at most {MAX_ZONES}: list them, such as [us-east-1a, us-east-1b]. The GPU nodes still use one only."
        )
    repeated = sorted({zone for zone in zones if list(zones).count(zone) > 1})
    if repeated:
        faults.append(f"network.zones: {', '.join(repeated)} appears more than once; list each zone once.")
    return faults


def plan_subnets(cidr: str, zones: Sequence[str]) -> dict[str, ZoneSubnets]:
    """Gives each zone its blocks by its place in the list, so that a zone appended later moves none of the others.

    Of a /16 each zone gets a private /20 (4,091 addresses for pods and nodes) and a public /24.

    Raises:
        ValueError: The range or the zones do not allow it; `subnet_faults` says why.
    """
    faults = subnet_faults(cidr, zones)
    if faults:
        raise ValueError("\n".join(faults))
    *private_blocks, public_range = IPv4Network(cidr).subnets(prefixlen_diff=_PRIVATE_BITS)
    public_blocks = public_range.subnets(prefixlen_diff=_PUBLIC_BITS - _PRIVATE_BITS)
    return {
        zone: ZoneSubnets(private=str(private), public=str(public))
        for zone, private, public in zip(zones, private_blocks, public_blocks, strict=False)
    }
