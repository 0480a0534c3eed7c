"""A whole stack as plain values: resources, what they were made from, and what the program itself gave them.

In a first preview every id is unknown, so resources are linked by dependencies: the engine says, property by property,
which resources a value came from. Known ids and names link them in later runs, and in stacks that only refer to AWS.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from .tokens import KubernetesType, aws_type, kubernetes_type
from .values import UNKNOWN, at, sequence

FILLED_IN: Final = frozenset(
    {
        "amiType",
        "availabilityZones",
        "egress",
        "ingress",
        "instanceTypes",
        "interfaceType",
        "launchTemplate",
        "mixedInstancesPolicy",
        "securityGroupEgress",
        "securityGroupIngress",
        "securityGroups",
        "sourceSecurityGroupId",
        "vpcZoneIdentifier",
        "vpcZoneIdentifiers",
    }
)
"""Properties that the rules read and a provider fills in where the program sets none: pulumi_aws's outputs that are never None."""


@dataclass(frozen=True)
class Resource:
    """One resource with its outputs; ``sources`` maps a property to the URNs of the resources its value came from."""

    token: str
    name: str
    urn: str
    props: Mapping[str, object]
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    parent: str = ""
    inputs: frozenset[str] | None = None
    """The names of the properties that the program itself sets, where that was seen."""

    @cached_property
    def aws(self) -> tuple[str, str, str]:
        """Package, service and type name."""
        return aws_type(self.token)

    @cached_property
    def kubernetes(self) -> KubernetesType | None:
        """API group, version and kind, if it is a Kubernetes resource."""
        return kubernetes_type(self.token)

    def given(self, name: str) -> object:
        """A property as the program gave it.

        Outputs hold UNKNOWN for what the provider will fill in, too. Such a value that came from no resource was not
        given: None. A missing one that came from some was lost on the way: UNKNOWN.
        """
        value = self.props.get(name)
        sources = self.sources.get(name, ())
        if value is UNKNOWN and not sources and name in FILLED_IN:
            return None
        if value is None and sources:
            return UNKNOWN
        return value

    def came_from(self, *names: str) -> list[str]:
        """The URNs of the resources that some properties came from."""
        return [urn for name in names for urn in self.sources.get(name, ())]

    def refers_to(self, name: str, other: "Resource") -> bool:
        """Whether a property holds another resource's id: it came from it, or equals it."""
        identity = at(other.props, "id")
        return other.urn in self.sources.get(name, ()) or (
            isinstance(identity, str) and self.props.get(name) == identity
        )


class Stack:
    """All resources of a stack, found by URN, type, or id."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        """Takes the resources in any order."""
        self.resources = list(resources)
        self._by_urn = {resource.urn: resource for resource in self.resources}

    def aws(self, types: Iterable[tuple[str, str, str]]) -> list[Resource]:
        """Resources of some AWS types."""
        wanted = set(types)
        return [resource for resource in self.resources if resource.aws in wanted]

    def kubernetes(self, kinds: Iterable[tuple[str, str]]) -> list[Resource]:
        """Kubernetes resources of some (API group, kind), in any version; patches are left out."""
        wanted = set(kinds)
        return [
            resource
            for resource in self.resources
            if (kind := resource.kubernetes) and not kind.patch and (kind.group, kind.kind) in wanted
        ]

    def by_urn(self, urns: Iterable[str]) -> Iterator[Resource]:
        """The resources of some URNs, each once."""
        return (self._by_urn[urn] for urn in dict.fromkeys(urns) if urn in self._by_urn)

    def sources(self, resource: Resource, *names: str) -> list[Resource]:
        """The resources that some properties of a resource came from."""
        return list(self.by_urn(resource.came_from(*names)))

    def by_identity(self, candidates: Iterable[Resource], value: object, *names: str) -> Resource | None:
        """The candidate of which one of the properties (such as ``id``) equals a known text."""
        if not isinstance(value, str):
            return None
        return next(
            (resource for resource in candidates if value in [resource.props.get(name) for name in names]), None
        )


def known_strings(value: object) -> list[str]:
    """The known texts of a list, each once, in order."""
    return list(dict.fromkeys(item for item in sequence(value) if isinstance(item, str)))
