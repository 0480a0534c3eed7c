"""Rules of the network, of who reaches and administers the control plane, and of the tags."""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

from components.faults import Fault, path, remove, set_to
from components.settings.models import Settings
from components.settings.rules import Rule
from components.subnets import LARGEST_VPC_PREFIX, MIN_ZONES, SMALLEST_VPC_PREFIX
from components.tags import CLUSTER_TAG_PREFIX
from components.versions import KUBERNETES, KUBERNETES_SUPPORTED

REFUSED_ZONES: Final = {"us-east-1e": "EKS refuses a control plane there (UnsupportedAvailabilityZoneException)"}

PRIVATE_RANGES: Final = tuple(
    map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
)
"""RFC 1918, and the shared range of RFC 6598, which a VPC and EKS take too (Amazon VPC User Guide, VPC CIDR blocks)."""

_OF_NO_CLIENT: Final = (*PRIVATE_RANGES, *map(ipaddress.IPv4Network, ("127.0.0.0/8", "169.254.0.0/16")))

LOG_RETENTION_DAYS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827),
    *(2192, 2557, 2922, 3288, 3653),
)
"""What CloudWatch Logs takes (PutRetentionPolicy)."""

_ADMIN = re.compile(r"arn:aws(?:-[a-z]+)*:iam::\d{12}:(?:role|user)/[\w+=,.@/-]*[\w+=,.@-]")
_ASSUMED = re.compile(r"arn:(aws(?:-[a-z]+)*):sts::(\d{12}):assumed-role/([\w+=,.@-]+)/.+")
_SUBNET_ID = re.compile(r"subnet-[0-9a-f]{8,17}")
_TAG_KEY_LENGTH, _TAG_VALUE_LENGTH = 128, 256
_ANYWHERE = "0.0.0.0/0"


def one_network(s: Settings) -> Iterator[Fault]:
    """A new VPC or an existing one, not a mixture."""
    network = s.network
    if not network.existing:
        return
    if network.vpc_id is None:
        yield Fault(
            path("network", "vpcId"),
            "privateSubnets are given, so the VPC they lie in is needed",
            set_to(path("network", "vpcId"), "vpc-0123456789abcdef0"),
        )
    if not network.private_subnets:
        yield Fault(
            path("network", "privateSubnets"),
            "vpcId is given, so a private subnet in each of two zones is needed",
            set_to(path("network", "privateSubnets", f"{s.region}a"), "subnet-0123456789abcdef0"),
        )
    for field, name in (("cidr", "cidr"), ("zones", "zones"), ("nat_gateways", "natGateways")):
        if field in network.model_fields_set:
            yield Fault(
                path("network", name),
                "it belongs to a new VPC, and vpcId or privateSubnets name an existing one",
                remove(path("network", name)),
                getattr(network, field),
            )


def zones(s: Settings) -> Iterator[Fault]:
    """At least two zones of the stack's region, none twice, none that refuses a control plane."""
    network = s.network
    where = path("network", "privateSubnets" if network.existing else "zones")
    names = network.zone_names
    distinct = list(dict.fromkeys(names))
    if not names and network.existing:
        return
    another = next(zone for letter in "abcdf" if (zone := f"{s.region}{letter}") not in distinct)
    if len(names) < MIN_ZONES:
        add = (
            set_to(path("network", "privateSubnets", another), "subnet-0123456789abcdef0")
            if network.existing
            else set_to(path("network", "zones", len(names)), another)
        )
        yield Fault(where, "a control plane needs at least two zones", add, list(names))
    for name, times in Counter(names).items():
        if times > 1:
            fix = set_to(where, distinct if len(distinct) >= MIN_ZONES else [*distinct, another])
            yield Fault(where, f"zone {name} stands in it {times} times", fix, list(names))
    for index, name in enumerate(names):
        at = path("network", "privateSubnets", name) if network.existing else path("network", "zones", index)
        if not re.fullmatch(rf"{re.escape(s.region)}[a-z]", name):
            yield Fault(
                at,
                f"it is not the name of an Availability Zone of {s.region}, which are {s.region} and a letter",
                f"Write such as {s.region}a, or move the stack: pulumi config set aws:region <region>",
                name,
            )
        elif name in REFUSED_ZONES:
            yield Fault(at, REFUSED_ZONES[name], f"Choose another zone of {s.region}.", name)


def subnet_ids(s: Settings) -> Iterator[Fault]:
    """Existing subnets are given by id, each once."""
    ids = s.network.private_subnets
    for zone, subnet in ids.items():
        at = path("network", "privateSubnets", zone)
        if not _SUBNET_ID.fullmatch(subnet):
            yield Fault(
                at,
                "it must be the id of a subnet: subnet- and 8 to 17 hexadecimal digits",
                set_to(at, "subnet-0123456789abcdef0"),
                subnet,
            )
        elif sum(subnet == other for other in ids.values()) > 1:
            yield Fault(
                at, "two zones name this subnet, and a subnet lies in one zone", f"Write the subnet of {zone}.", subnet
            )


def address_range(s: Settings) -> Iterator[Fault]:
    """A private range, written from its first address, of a size the address plan can split."""
    at, text = path("network", "cidr"), s.network.cidr
    if s.network.existing:
        return
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        try:
            first = str(ipaddress.IPv4Network(text, strict=False))
        except ValueError:
            yield Fault(at, "it is not an IPv4 range", set_to(at, "10.20.0.0/16"), text)
        else:
            yield Fault(at, "it does not start at the first address of its range", set_to(at, first), text)
        return
    if not LARGEST_VPC_PREFIX <= network.prefixlen <= SMALLEST_VPC_PREFIX:
        resized = ipaddress.IPv4Network((network.network_address, LARGEST_VPC_PREFIX), strict=False)
        yield Fault(
            at,
            f"a VPC takes /{LARGEST_VPC_PREFIX} at most, and below /{SMALLEST_VPC_PREFIX} its subnets have no room for nodes and pods",
            set_to(at, str(resized)),
            text,
        )
    if not any(network.subnet_of(private) for private in PRIVATE_RANGES):
        known = ", ".join(map(str, PRIVATE_RANGES))
        why = f"it is not in a private range, {known}: other addresses would be cut off, or mean something else to EC2"
        yield Fault(at, why, set_to(at, "10.20.0.0/16"), text)


def endpoint(s: Settings) -> Iterator[Fault]:
    """Somebody reaches the API, and on the internet only who is named."""
    e, at = s.cluster.endpoint, path("cluster", "endpoint", "publicCidrs")
    if not e.public and not e.private:
        yield Fault(
            path("cluster", "endpoint"),
            "public and private are both false, so nobody reaches the Kubernetes API",
            set_to(path("cluster", "endpoint", "private"), True),
        )
    if e.public and not e.public_cidrs:
        yield Fault(
            at,
            "the public endpoint is on, so it needs the address ranges that may reach it",
            set_to(path("cluster", "endpoint", "publicCidrs", 0), "<your address>/32"),
        )
    if not e.public and e.public_cidrs:
        yield Fault(at, "the public endpoint is off, and EKS refuses ranges for it", remove(at), e.public_cidrs)
    for index, cidr in enumerate(e.public_cidrs):
        here = path("cluster", "endpoint", "publicCidrs", index)
        try:
            known = ipaddress.ip_network(cidr)
        except ValueError:
            yield Fault(here, "it is not an address range", set_to(here, "<your address>/32"), cidr)
            continue
        if known.version != 4:
            why = "it is an IPv6 range, and EKS takes IPv4 ranges for the endpoint of an IPv4 cluster"
            yield Fault(here, why, set_to(here, "<your IPv4 address>/32"), cidr)
            continue
        if any(known.subnet_of(range_) for range_ in _OF_NO_CLIENT):
            why = "it is a private range, which EKS refuses: the public endpoint sees the address you have on the internet"
            yield Fault(here, why, set_to(here, "<your address>/32"), cidr)
        if cidr == _ANYWHERE and not e.allow_anywhere:
            yield Fault(
                here,
                "it opens the Kubernetes API to the whole internet",
                f"{set_to(here, '<your address>/32')} (or, if it is meant, set {path('cluster', 'endpoint', 'allowAnywhere')} true)",
                cidr,
            )


def admins(s: Settings) -> Iterator[Fault]:
    """Who administers the cluster is a role or a user of IAM, each once."""
    for index, principal in enumerate(s.cluster.admins):
        at = path("cluster", "admins", index)
        if principal in s.cluster.admins[:index]:
            yield Fault(
                at, "it stands in the list already, and EKS takes one access entry for each", remove(at), principal
            )
        elif assumed := _ASSUMED.fullmatch(principal):
            role = f"arn:{assumed[1]}:iam::{assumed[2]}:role/{assumed[3]}"
            why = "it is a session of a role, which ends, and EKS lets in the role itself"
            yield Fault(at, why, f"{set_to(at, role)} (with the role's path, if it has one)", principal)
        elif not _ADMIN.fullmatch(principal):
            why = (
                "it must be the ARN of an IAM role or user; groups and the account's root are let in by no access entry"
            )
            yield Fault(at, why, set_to(at, "arn:aws:iam::123456789012:role/ops"), principal)


def kubernetes_version(s: Settings) -> Iterator[Fault]:
    """A version EKS creates clusters with."""
    version, at = s.cluster.kubernetes_version, path("cluster", "kubernetesVersion")
    if version not in KUBERNETES_SUPPORTED:
        yield Fault(at, f"EKS offers {', '.join(KUBERNETES_SUPPORTED)}", set_to(at, KUBERNETES), version)


def log_retention(s: Settings) -> Iterator[Fault]:
    """A number of days that CloudWatch knows."""
    days, at = s.cluster.log_retention_days, path("cluster", "logRetentionDays")
    if days not in LOG_RETENTION_DAYS:
        longer = next((known for known in LOG_RETENTION_DAYS if known > days), LOG_RETENTION_DAYS[-1])
        known = ", ".join(map(str, LOG_RETENTION_DAYS))
        yield Fault(at, f"CloudWatch keeps logs for {known} days", set_to(at, longer), days)


def tags(s: Settings) -> Iterator[Fault]:
    """Tags AWS takes, and none that make a second security group the cluster's."""
    for key, value in s.tags.items():
        yield from _tag(path("tags", key), key, value)


def default_tags(value: Any) -> Iterator[Fault]:
    """The same of ``aws:defaultTags``; whether it has the form of one, the provider tells."""
    block: Any = cast("dict[str, Any]", value).get("tags") if isinstance(value, dict) else None
    for key, text in cast("dict[str, Any]", block).items() if isinstance(block, dict) else ():
        yield from _tag(path("defaultTags", "tags", key, namespace="aws"), key, str(text))


def _tag(at: str, key: str, value: str) -> Iterator[Fault]:
    if key.startswith(CLUSTER_TAG_PREFIX):
        why = "this tag on the EFA security group too makes load balancers refuse the nodes: one group may carry it"
        yield Fault(at, why, remove(at))
    elif key.lower().startswith("aws:"):
        yield Fault(at, "AWS keeps keys that start with aws: for itself", remove(at))
    elif not 1 <= len(key) <= _TAG_KEY_LENGTH or len(value) > _TAG_VALUE_LENGTH:
        why = f"a key has 1 to {_TAG_KEY_LENGTH} characters and a value at most {_TAG_VALUE_LENGTH}"
        yield Fault(at, why, "Shorten it.")


RULES: Final = (
    Rule(("network", "region"), one_network),
    Rule(("network", "region"), zones),
    Rule(("network",), subnet_ids),
    Rule(("network",), address_range),
    Rule(("cluster.endpoint",), endpoint),
    Rule(("cluster.admins",), admins),
    Rule(("cluster.kubernetesVersion",), kubernetes_version),
    Rule(("cluster.logRetentionDays",), log_retention),
    Rule(("tags",), tags),
)
