"""What a stand-in provider is: plain Python values in, plain Python values out.

Unknown values are :data:`UNKNOWN`, secrets are unwrapped (the engine marks them again), whole numbers are ``int``, and
property names are camelCase. :mod:`sandbox.wire` puts a stand-in on the wire.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

from pulumi.runtime.proto import provider_pb2


class Unknown:
    """The type of :data:`UNKNOWN`. Neither true nor false: whoever asks has forgotten that a value may be unknown."""

    def __bool__(self) -> bool:
        raise TypeError("an unknown value was used as a decision")

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


class StandInError(Exception):
    """What the real provider would refuse. Its text reaches the user as one line, without a traceback."""


class InitFailed(StandInError):
    """A resource that exists and is not what was asked for: it goes into the state, with what is wrong with it.

    The engine takes it up again at the next update (pulumirpc.ErrorResourceInitFailed).
    """

    def __init__(self, id: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.id = id
        self.inputs = inputs
        self.outputs = outputs
        self.reasons = reasons


@dataclass(frozen=True)
class ResourceRef:
    """Which resource a call is about: ``token`` is the type token, ``name`` the logical name."""

    token: str
    urn: str
    name: str


@dataclass(frozen=True)
class CheckFailure:
    """One refused input: ``property`` is its path (``networkInterfaces[0].deviceIndex``), ``reason`` a full sentence."""

    property: str
    reason: str


@dataclass(frozen=True)
class Checked:
    """Inputs as the provider keeps them (names filled in), and what it refuses of them."""

    inputs: dict[str, Any]
    failures: Sequence[CheckFailure] = ()


@dataclass(frozen=True)
class Difference:
    """What an update would change, as property paths. ``replaces`` is the part of ``changed`` that forces a new resource."""

    changed: Sequence[str] = field(default=())
    replaces: Sequence[str] = field(default=())
    delete_before_replace: bool = False


class StandIn(ABC):
    """A provider for the sandbox. Calls may come concurrently."""

    package: str

    @property
    def version(self) -> str:
        """The version that the installed SDK of this package asks for."""
        return version(f"pulumi-{self.package}")

    @abstractmethod
    def configure(self, config: Mapping[str, Any]) -> None:
        """Takes the provider's configuration, for instance ``{"region": "us-east-1"}``."""

    def check_config(self, inputs: Mapping[str, Any]) -> Sequence[CheckFailure]:
        """What the provider refuses of its own configuration."""
        return ()

    def settle_config(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The configuration as the engine keeps it.

        The engine never calls a provider whose configuration holds an unknown (pkg/resource/plugin/provider_plugin.go),
        so a stand-in that can judge without it puts something known there.
        """
        return inputs

    @abstractmethod
    def check(
        self, ref: ResourceRef, inputs: dict[str, Any], old_inputs: dict[str, Any] | None, random_seed: bytes
    ) -> Checked:
        """Judges inputs and fills in what the provider fills in; ``random_seed`` makes auto-names stable."""

    @abstractmethod
    def diff(
        self,
        ref: ResourceRef,
        id: str,
        old_inputs: dict[str, Any],
        old_outputs: dict[str, Any],
        new_inputs: dict[str, Any],
    ) -> Difference:
        """Says what would change."""

    @abstractmethod
    def create(self, ref: ResourceRef, inputs: dict[str, Any], preview: bool) -> tuple[str, dict[str, Any]]:
        """Returns id and outputs; in a preview the id is empty and what only AWS knows is :data:`UNKNOWN`."""

    @abstractmethod
    def read(
        self, ref: ResourceRef, id: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
        """Returns id, inputs and outputs as they are now, or None when the resource does not exist."""

    @abstractmethod
    def update(
        self,
        ref: ResourceRef,
        id: str,
        old_inputs: dict[str, Any],
        old_outputs: dict[str, Any],
        new_inputs: dict[str, Any],
        preview: bool,
    ) -> dict[str, Any]:
        """Returns the outputs after the update."""

    @abstractmethod
    def delete(self, ref: ResourceRef, id: str, old_inputs: dict[str, Any], old_outputs: dict[str, Any]) -> None:
        """Deletes the resource."""

    @abstractmethod
    def invoke(self, token: str, args: dict[str, Any]) -> dict[str, Any]:
        """Answers a data source."""

    def construct(self, request: provider_pb2.ConstructRequest) -> provider_pb2.ConstructResponse:
        """Registers a remote component's children; the one call that is passed on as it came."""
        raise StandInError(f"the {self.package} stand-in has no component {request.type}")


def contains_unknown(value: Any) -> bool:
    """Whether an unknown stands anywhere in a plain value."""
    if isinstance(value, Mapping):
        return any(contains_unknown(member) for member in value.values())
    if isinstance(value, (list, tuple)):
        return any(contains_unknown(member) for member in value)
    return value is UNKNOWN
