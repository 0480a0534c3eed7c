"""What a run looks like on the terminal: the resource tree from the engine's events, the engine's own words, tables."""

import io
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from sandbox.inventory import Item

_SIGNS = {
    "create": "+",
    "update": "~",
    "replace": "+-",
    "create-replacement": "+-",
    "delete": "-",
    "delete-replaced": "-",
    "read": ">",
    "refresh": " ",
    "same": " ",
}
# Of several steps of one resource the first of these says what happens to it.
_TELLING = ("replace", "create-replacement")
_SECTION = re.compile(r"^(Policies|Diagnostics|Outputs|Resources|error):?", re.MULTILINE)
# An `up` prints its preview first, and all of that again.
_AFTER_PREVIEW = re.compile(r"^Updating \(.*\):$", re.MULTILINE)
_WIDTH = 200


def resource_tree(events: Sequence[Mapping[str, Any]], *, only_changes: bool = False) -> str:
    """All resources of a run under their parents, each with what the engine does to it. Empty when there is none.

    Args:
        events: the engine's events, in order.
        only_changes: leaves out what stays as it is, but for the parents of what does not.
    """
    steps: dict[str, Mapping[str, Any]] = {}
    for metadata in _steps(events):
        urn, kind = metadata["urn"], metadata["type"]
        is_default_provider = kind.startswith("pulumi:providers:") and _name(urn).startswith("default")
        if not is_default_provider and (urn not in steps or metadata["op"] in _TELLING):
            steps[urn] = metadata
    found = _found_different(events)
    operations = {urn: str(found.get(urn) or metadata["op"]) for urn, metadata in steps.items()}
    shown = _with_parents(steps, [urn for urn in steps if operations[urn] not in ("same", "refresh")])
    if not only_changes:
        shown = set(steps)
    children: dict[str, list[str]] = {}
    for urn in steps:
        if urn in shown:
            children.setdefault(_parent(steps[urn]), []).append(urn)

    def label(urn: str) -> Text:
        operation = operations[urn]
        return Text(f"{_SIGNS.get(operation, operation)} {steps[urn]['type']} {_name(urn)}")

    def branch(tree: Tree, urn: str) -> Tree:
        # The engine's order is that of a race; by name a resource stands where one looks for it.
        for child in sorted(children.get(urn, []), key=_name):
            branch(tree.add(label(child)), child)
        return tree

    return "\n".join(_printed(branch(Tree(label(root)), root)) for root in children.get("", []))


def engine_words(output: str) -> str:
    """The engine's own sections (policies, diagnostics, outputs, counts), without the flat list of steps above them."""
    updating = _AFTER_PREVIEW.search(output)
    words = output[updating.end() :] if updating else output
    found = _SECTION.search(words)
    return words[found.start() :].strip() if found else words.strip()


def inventory(items: Sequence[Item], others: int = 0) -> str:
    """What exists, a table for each service or cluster, and ``N resources`` in the last line.

    Args:
        items: what is to be shown.
        others: how many things of other stacks are left out.
    """
    parts: list[str] = []
    for service, members in groupby(sorted(items, key=_place), key=_service):
        table = Table(box=None, pad_edge=False, show_header=False)
        for one in members:
            table.add_row(Text(one.kind), Text(one.id), Text("" if one.name == one.id else one.name))
        parts.append(f"{service}\n{_printed(table)}")
    if others:
        parts.append(f"Not shown: {others} of other stacks.")
    return "\n\n".join([*parts, f"{len(items)} resources"])


def orphans(items: Sequence[Item], stack: str) -> str:
    """What exists with a stack's tags and is in no state."""
    if not items:
        return f"No orphans: all that carries the tags of stack {stack} is in its state."
    listed = inventory(items).rpartition("\n\n")[0]
    return f"{listed}\n\n{len(items)} orphans of stack {stack}; `python -m sandbox orphans --stack {stack} --delete` deletes them"


def _found_different(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What a refresh found, by URN: ``update`` or ``delete``; the step itself is only called ``refresh``."""
    found: dict[str, str] = {}
    for event in events:
        metadata = event.get("resOutputsEvent", {}).get("metadata", {})
        if metadata.get("op") in ("update", "delete"):
            found[metadata["urn"]] = metadata["op"]
    return found


def _with_parents(steps: Mapping[str, Mapping[str, Any]], chosen: Sequence[str]) -> set[str]:
    kept: set[str] = set()
    for urn in chosen:
        while urn in steps and urn not in kept:
            kept.add(urn)
            urn = _parent(steps[urn])
    return kept


def _parent(metadata: Mapping[str, Any]) -> str:
    return (metadata.get("new") or metadata.get("old") or {}).get("parent", "")


def _printed(what: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _service(item: Item) -> str:
    if item.made_by.startswith("kubernetes:"):
        return f"kubernetes, cluster {item.parent_id}"
    return item.kind.partition(":")[0]


def _place(item: Item) -> tuple[str, str, str]:
    return _service(item), item.kind, item.id


def _steps(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]
