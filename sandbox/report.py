"""What a run looks like on the terminal: the resource tree from the engine's events, then the engine's own words."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

_SIGNS = {
    "create": "+",
    "update": "~",
    "replace": "+-",
    "create-replacement": "+-",
    "delete": "-",
    "delete-replaced": "-",
    "read": ">",
    "same": " ",
}
_SECTION = re.compile(r"^(Policies|Diagnostics|Outputs|Resources|error):?", re.MULTILINE)


def resource_tree(events: Sequence[Mapping[str, Any]]) -> str:
    """All resources of a run under their parents, each with what the engine would do to it. Empty when there is none."""
    labels: dict[str, Text] = {}
    children: dict[str, list[str]] = {}
    for metadata in _steps(events):
        urn, kind = metadata["urn"], metadata["type"]
        is_default_provider = kind.startswith("pulumi:providers:") and _name(urn).startswith("default")
        if urn in labels or is_default_provider:
            continue
        labels[urn] = Text(f"{_SIGNS.get(metadata['op'], metadata['op'])} {kind} {_name(urn)}")
        state = metadata.get("new") or metadata.get("old") or {}
        children.setdefault(state.get("parent", ""), []).append(urn)

    def branch(tree: Tree, urn: str) -> Tree:
        # The engine's order is that of a race; by name a resource stands where one looks for it.
        for child in sorted(children.get(urn, []), key=_name):
            branch(tree.add(labels[child]), child)
        return tree

    if not labels:
        return ""
    console = Console(file=io.StringIO(), width=200, color_system=None)
    for root in children.get("", []):
        console.print(branch(Tree(labels[root]), root))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def engine_words(output: str) -> str:
    """The engine's own sections (policies, diagnostics, outputs, counts), without the flat list of steps above them."""
    found = _SECTION.search(output)
    return output[found.start() :].strip() if found else output.strip()


def _steps(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]
