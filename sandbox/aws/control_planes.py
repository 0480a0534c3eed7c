"""What AWS's side tells of its clusters to whoever runs their control planes, and asks back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbox.nodes import Node


@dataclass(frozen=True)
class Endpoint:
    """Where an API server is: its URL, and its certificate in base64."""

    url: str
    authority: str


class ControlPlanes(Protocol):
    """Runs control planes, by the names of their clusters."""

    def start(self, name: str, version: str) -> object:
        """Makes one, or makes the one of that name a newer version, and waits until it is ready.

        Raises:
            StandInError: It does not become ready.
        """

    def endpoint(self, name: str) -> Endpoint | None:
        """Where it is; None for a cluster without one."""

    def stop(self, name: str) -> None:
        """Takes one away, with all that was in it."""

    def settle(self, name: str, nodes: Sequence[Node]) -> str:
        """Makes a cluster's nodes these and waits for it; returns the names of those that are not there in time."""
        ...


class NoControlPlanes:
    """Clusters are names only; what Kubernetes would do is echoed elsewhere."""

    def start(self, name: str, version: str) -> object:
        """Nothing is made."""
        return None

    def endpoint(self, name: str) -> Endpoint | None:
        """There is none."""
        return None

    def stop(self, name: str) -> None:
        """Nothing is there."""

    def settle(self, name: str, nodes: Sequence[Node]) -> str:
        """Nodes are there at once."""
        return ""
