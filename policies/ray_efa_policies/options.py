"""What a policy's configuration can say: one schema for people and the engine, the same defaults in code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .values import mapping, matches, sequence

_NAMES: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}, "default": []}

_COMMON: Final[dict[str, dict[str, Any]]] = {
    "onUnknown": {
        "type": "string",
        "enum": ["mandatory", "advisory"],
        "default": "mandatory",
        "description": "What a decision value that is not known in a preview counts as. With 'advisory' the policy's "
        "companion '<name>-unverified' reports it, and the deployment goes on.",
    },
    "include": _NAMES
    | {"description": "Shell patterns of resource names that are judged even where the scope leaves them out."},
    "exclude": _NAMES | {"description": "Shell patterns of resource names that are never judged."},
}

WORKER_SCHEMA: Final[dict[str, dict[str, Any]]] = _COMMON | {
    "namespaces": _NAMES | {"description": "Judge only workloads of these Kubernetes namespaces; empty judges all."},
    "efaCapableTypes": {
        "type": "string",
        "enum": ["judge", "ignore"],
        "default": "ignore",
        "description": "Whether selecting nodes by an instance type that can have EFA puts a worker in scope. Such nodes need not "
        "have EFA interfaces; where the stack shows that they have, the worker is judged all the same.",
    },
}

GROUP_SCHEMA: Final[dict[str, dict[str, Any]]] = _COMMON | {
    "scope": {
        "type": "string",
        "enum": ["gpu", "efa"],
        "default": "gpu",
        "description": "'gpu' judges every GPU node group, 'efa' only those whose template has EFA interfaces.",
    },
    "subnetZones": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "Zones of subnets that are not in the stack: {'subnet-0abc': 'us-east-1a'}.",
    },
}

SECURITY_GROUP_SCHEMA: Final[dict[str, dict[str, Any]]] = _COMMON | {
    "selfReferencing": _NAMES
    | {
        "description": "Ids of security groups outside the stack that are known to allow all traffic from and to themselves."
    },
}


@dataclass(frozen=True)
class Options:
    """A policy's configuration with the defaults filled in. A value the schema would refuse counts as its default."""

    unknown_blocks: bool = True
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    judge_efa_capable_types: bool = False
    efa_only: bool = False
    subnet_zones: Mapping[str, str] | None = None
    self_referencing: Sequence[str] = ()

    @classmethod
    def read(cls, config: object) -> "Options":
        """Reads the plain values of a policy's configuration; None means that there is none."""
        values = mapping(config)
        return cls(
            unknown_blocks=values.get("onUnknown") != "advisory",
            include=_names(values.get("include")),
            exclude=_names(values.get("exclude")),
            namespaces=_names(values.get("namespaces")),
            judge_efa_capable_types=values.get("efaCapableTypes") == "judge",
            efa_only=values.get("scope") == "efa",
            subnet_zones={key: str(zone) for key, zone in mapping(values.get("subnetZones")).items()},
            self_referencing=_names(values.get("selfReferencing")),
        )

    def excludes(self, name: str) -> bool:
        """Whether a resource of this name is never judged."""
        return matches(name, self.exclude)

    def includes(self, name: str) -> bool:
        """Whether a resource of this name is judged whatever the scope says."""
        return matches(name, self.include)


def _names(value: object) -> tuple[str, ...]:
    return tuple(item for item in sequence(value) if isinstance(item, str))
