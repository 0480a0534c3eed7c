"""The tables of docs/lifecycle.md and docs/faults.md, written from what the tests hold against the engine.

``python -m tests.lifecycle.tables`` rewrites them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.cluster.faults import CLUSTER_FAULTS
from tests.lifecycle.changes import CHANGES
from tests.lifecycle.faults import FAULTS
from tests.lifecycle.missing import EDGES, MISBEHAVIOURS
from tests.lifecycle.runs import CHECKOUT

_BEGIN: Final = "<!-- table: {name}, written by python -m tests.lifecycle.tables -->"
_END: Final = "<!-- end of table -->"


def changes() -> str:
    """What each change of the configuration does."""
    rows = [
        (change.name, f"`{change.key}`", change.effect, _counts(change.does.values()), change.outage)
        for change in CHANGES
    ]
    return _table(["change", "setting", "what `up` does", "resources", "what users notice"], rows)


def faults() -> str:
    """What each fault looks like and what to do next."""
    rows = [(f"`{fault.option}`", fault.meaning, fault.says_in_words, fault.next_step) for fault in FAULTS]
    return _table(["`--fault`", "what happens", "what AWS says", "what to do"], rows)


def cluster_faults() -> str:
    """The same in Kubernetes."""
    rows = [
        (
            f"`{fault.option}`",
            fault.meaning,
            fault.says_in_words,
            f"`{fault.look}`: `{fault.shows}`" if fault.look else "-",
            fault.next_step,
        )
        for fault in CLUSTER_FAULTS
    ]
    return _table(["`--fault`", "what happens", "what Pulumi says", "what shows the cause", "what to do"], rows)


def edges() -> str:
    """What each hand-written dependency is for."""
    rows = [(f"{edge.of_in_words} → {edge.on_in_words}", edge.without) for edge in (*EDGES, *MISBEHAVIOURS)]
    return _table(["dependency", "without it"], rows)


TABLES: Final[Mapping[str, tuple[Path, Callable[[], str]]]] = {
    "changes": (CHECKOUT / "docs" / "lifecycle.md", changes),
    "dependencies": (CHECKOUT / "docs" / "lifecycle.md", edges),
    "cluster faults": (CHECKOUT / "docs" / "faults.md", cluster_faults),
    "faults": (CHECKOUT / "docs" / "faults.md", faults),
}


def current(name: str) -> str:
    """The document of a table as it stands, with that table as it should be.

    Raises:
        ValueError: The document has no place for it.
    """
    path, table = TABLES[name]
    text = path.read_text()
    begin = _BEGIN.format(name=name)
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(_END)
    if not (found and closed):
        raise ValueError(f"{path.name}: write {begin} and {_END} where the table belongs")
    return f"{head}{begin}\n{table()}\n{_END}{tail}"


def _counts(ops: Iterable[str]) -> str:
    found = [*ops]
    return (
        ", ".join(f"{found.count(op)} {op}" for op in ("create", "update", "replace", "delete") if op in found)
        or "none"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    for one in TABLES:
        TABLES[one][0].write_text(current(one))
