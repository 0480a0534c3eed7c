"""What exists with a stack's tags and is in no state: creates that were in flight when the CLI was killed.

The engine never hears of them, so that ``destroy`` does not see them and the next ``up`` makes them again. What cannot be
tagged counts as its tagged parent's (a route as its table's).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sandbox.inventory import Item
from sandbox.standin import StandInError

PROJECT_TAG: Final = "Project"
STACK_TAG: Final = "Stack"

# On a cluster what others need goes last; AWS itself refuses what is still in use.
_ON_A_CLUSTER: Final = ("kubernetes:helm.sh/v3:Release", "kubernetes:core/v1:Namespace")


def of_stack(items: Sequence[Item], project: str, stack: str) -> list[Item]:
    """The items of one stack, by their own tags or those of what they belong to."""
    by_id = _by_id(items)
    return [one for one in items if _owner(one, by_id) == (project, stack)]


def of_nobody(items: Sequence[Item]) -> list[Item]:
    """The items that no stack's tags lead to."""
    by_id = _by_id(items)
    return [one for one in items if _owner(one, by_id) is None]


def find(items: Sequence[Item], state: Mapping[str, Any], project: str, stack: str) -> list[Item]:
    """The stack's items that its state does not have. What AWS made by itself goes with what it was made for.

    Args:
        items: everything that exists.
        state: what ``pulumi stack export`` says.
        project: name of the Pulumi project.
        stack: name of the stack.
    """
    resources = (state.get("deployment") or {}).get("resources") or ()
    known = {(one["type"], one.get("id")) for one in resources}
    return [one for one in of_stack(items, project, stack) if one.made_by and (one.made_by, one.id) not in known]


def delete(orphans: Sequence[Item], remove: Callable[[Item], None], say: Callable[[str], None]) -> list[str]:
    """Deletes orphans, what is in use after what uses it; returns why the rest could not be.

    Args:
        orphans: as found.
        remove: deletes one; raises StandInError where that is refused.
        say: gets a line for each that is gone.
    """
    left = sorted(orphans, key=_rank)
    while left:
        refusals: dict[str, str] = {}
        stuck: list[Item] = []
        for one in left:
            try:
                remove(one)
            except StandInError as refusal:
                stuck.append(one)
                refusals[described(one)] = str(refusal)
            else:
                say(f"Deleted {described(one)}.")
        if len(stuck) == len(left):
            return [f"{name}: {reason}" for name, reason in refusals.items()]
        left = stuck
    return []


def described(item: Item) -> str:
    """One item in a line."""
    name = "" if item.name == item.id else f" ({item.name})"
    return f"{item.kind} {item.id}{name}"


def _rank(item: Item) -> tuple[bool, int]:
    on_cluster = item.made_by.startswith("kubernetes:")
    last = _ON_A_CLUSTER.index(item.made_by) + 1 if item.made_by in _ON_A_CLUSTER else 0
    return (not on_cluster, last)


def _by_id(items: Sequence[Item]) -> Mapping[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for one in items:
        found.setdefault(one.id, []).append(one)
    return found


def _owner(item: Item, by_id: Mapping[str, list[Item]]) -> tuple[str, str] | None:
    for one in _line(item, by_id, frozenset()):
        if STACK_TAG in one.tags:
            return one.tags.get(PROJECT_TAG, ""), one.tags[STACK_TAG]
    return None


def _line(item: Item, by_id: Mapping[str, list[Item]], seen: frozenset[str]) -> Iterator[Item]:
    yield item
    if item.parent_id is not None and item.parent_id not in seen:
        for parent in by_id.get(item.parent_id, []):
            yield from _line(parent, by_id, seen | {item.parent_id})
