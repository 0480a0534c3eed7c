"""What the engine tests ask of a preview: its exit code, its text, and, from the engine's own events, who blocked what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sandbox.engine import Run

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = CHECKOUT / "tests" / "programs"
SAMPLES = PROGRAMS / "samples"

ZONES = "gpu-node-group-single-az"
EFA = "ray-worker-requests-efa"
PRIVILEGED = "ray-worker-privileged"
NIXL = "nixl-backend-libfabric"
SECURITY_GROUP = "efa-security-group-self-reference"
ON_EFA_NODES = "ray-worker-on-efa-nodes"


@dataclass(frozen=True)
class Violation:
    """One mandatory violation: the policy, the logical name of the resource, and what it says beyond its description."""

    policy: str
    resource: str
    message: str


@dataclass(frozen=True)
class Preview:
    """A finished preview."""

    run: Run

    @property
    def exit_code(self) -> int:
        """The engine's exit code."""
        return self.run.exit_code

    @property
    def output(self) -> str:
        """All that the engine printed."""
        return self.run.output

    @cached_property
    def words(self) -> str:
        """The output with all white space made one blank, for phrases that may be wrapped."""
        return " ".join(self.output.split())

    @cached_property
    def violations(self) -> Sequence[Violation]:
        """What the policies block, in the engine's order."""
        return [
            Violation(event["policyName"], event["resourceUrn"].rpartition("::")[2], _message(event))
            for event in self._events("policyEvent")
            if event["enforcementLevel"] == "mandatory"
        ]

    @cached_property
    def blocking(self) -> set[str]:
        """The names of the policies that block."""
        return {violation.policy for violation in self.violations}

    @cached_property
    def advice(self) -> Sequence[str]:
        """What policies say without blocking."""
        return [_message(event) for event in self._events("policyEvent") if event["enforcementLevel"] == "advisory"]

    @cached_property
    def errors(self) -> Sequence[str]:
        """The engine's error diagnostics, without terminal markup."""
        return [
            event["message"].replace("<{%reset%}>", "").replace("<{%fg 1%}>", "").strip()
            for event in self._events("diagnosticEvent")
            if event["severity"] == "error"
        ]

    @cached_property
    def resources(self) -> Sequence[tuple[str, str]]:
        """Type and logical name of everything the preview plans, sorted; providers and the stack itself left out."""
        planned = {
            (metadata["type"], metadata["urn"].rpartition("::")[2])
            for metadata in self.planned()
            if not metadata["type"].startswith("pulumi:")
        }
        return sorted(planned)

    @cached_property
    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs, as far as a preview knows them."""
        stacks = [
            event["metadata"]["new"]["outputs"]
            for event in self._events("resOutputsEvent")
            if event["metadata"]["type"] == "pulumi:pulumi:Stack"
        ]
        return stacks[-1] if stacks else {}

    def inputs(self, kind: str, name: str) -> Mapping[str, Any]:
        """The inputs of one planned resource, by type token and logical name."""
        for metadata in self.planned():
            if metadata["type"] == kind and metadata["urn"].rpartition("::")[2] == name:
                return metadata["new"]["inputs"]
        raise KeyError(f"{kind} {name} is not among {self.resources}")

    def planned(self) -> list[Mapping[str, Any]]:
        """The engine's own record of each step that leaves a resource behind."""
        return [event["metadata"] for event in self._events("resourcePreEvent") if event["metadata"].get("new")]

    def _events(self, kind: str) -> list[Mapping[str, Any]]:
        return [event[kind] for event in self.run.events if kind in event]


def _message(event: Mapping[str, Any]) -> str:
    # The engine puts the policy's description, a paragraph of its own, before the message.
    return event["message"].strip().partition("\n")[2] or event["message"]
