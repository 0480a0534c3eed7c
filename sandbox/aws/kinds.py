"""What the stand-in knows of a resource type beyond the SDK's schema: the shape of a row in ``services/``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sandbox.aws.cloud import Cloud
from sandbox.standin import CheckFailure


@dataclass(frozen=True)
class RuleContext:
    """What a rule may look at: inputs as the provider keeps them, the region they are for, and AWS.

    ``planned`` has the inputs of each launch template that this run has checked by now, by URN.
    """

    inputs: Mapping[str, Any]
    region: str
    cloud: Cloud
    planned: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))


Rule = Callable[[RuleContext], Iterable[CheckFailure]]


@dataclass(frozen=True)
class ApiShape:
    """The botocore shape that a type's inputs become.

    ``aliases`` gives the API's member where it is not the property's name (patterns as in ``paths``:
    ``networkInterfaces[].securityGroups`` -> ``Groups``); an empty name leaves the property unjudged.
    """

    service: str
    shape: str
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class ResourceKind:
    """How a type behaves.

    Attributes:
        source: Where this was read: a file of hashicorp/terraform-provider-aws (``internal/service/...``).
        replaces: Patterns of properties whose change makes a new resource (ForceNew); ``*`` is all of them.
        keeps: Patterns that are updated in place although ``replaces`` covers them.
        replaces_when: From old and new inputs, further properties that make a new resource (CustomizeDiff, ModifyPlan).
        sets: Patterns of lists in which order means nothing.
        nested_computed: Members of given objects that AWS fills in where they are unset.
        changes_with_update: Outputs that each update gives a new value.
        delete_before_replace: A replacement deletes first (pulumi/pulumi-aws provider/resources.go).
        defaults: Pattern -> value that the bridge fills in where nothing is given.
        api: The request the inputs become, for closed sets and ranges.
        rules: What the provider or the API refuses beyond that.
    """

    source: str
    replaces: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    replaces_when: "Callable[[Mapping[str, Any], Mapping[str, Any]], frozenset[str]] | None" = None
    sets: frozenset[str] = frozenset()
    nested_computed: frozenset[str] = frozenset()
    changes_with_update: frozenset[str] = frozenset()
    delete_before_replace: bool = False
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    api: ApiShape | None = None
    rules: tuple[Rule, ...] = ()
