"""What is left in a simulated account or cluster: one line a thing, whoever made it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Item:
    """One thing that exists.

    Attributes:
        kind: Its type in the service's own words: ``ec2:subnet``, ``eks:nodegroup``, ``Deployment``.
        id: What the service calls it: an id, an ARN, or a name.
        name: What people call it: its ``Name`` tag, its name, or its id.
        tags: Its tags or labels; empty for what cannot be tagged.
        parent_id: The thing it belongs to and goes with, where it cannot be tagged itself (a route's table).
        made_by: The type token of the resource it came from; empty for what AWS made by itself (nodes, interfaces).
    """

    kind: str
    id: str
    name: str
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    parent_id: str | None = None
    made_by: str = ""
