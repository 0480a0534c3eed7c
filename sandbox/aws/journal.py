"""The account on disk: what was asked of it, one line an operation, so that another process finds the same account.

moto keeps its state in memory. Its ids come from one seeded generator, so the same calls under the same seeds give the
same ids. moto's own recorder is not used: it keeps every read as well, replays over HTTP machinery, and two files (its
recording and a store for what moto lacks) could not be written as one; here an operation is in the file whole or not at
all. Each call gets a seed of its own, or a read in between would move the ids that follow.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ApiCall:
    """A changing call as boto3 takes it."""

    service: str
    operation: str
    region: str
    parameters: Mapping[str, Any]


@dataclass
class Entry:
    """One operation.

    Attributes:
        first: Number of the first call, counted over the account's life; it seeds moto.
        calls: The changing calls in order, refused ones too: they may have moved something in moto.
        records: Key -> record that was written, or None where it was taken away.
    """

    first: int
    calls: list[ApiCall] = field(default_factory=list)
    records: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return not self.calls and not self.records


class Journal:
    """The file ``account.jsonl`` of a folder. Without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "account.jsonl"
        self._size = 0

    def is_behind(self) -> bool:
        """Whether another process has written since this one read or wrote."""
        return self._path is not None and self._on_disk() != self._size

    def read(self) -> Iterator[Entry]:
        """Every whole entry. A torn last line is the operation that a kill interrupted: nobody was answered, it is cut off."""
        if self._path is None or not self._path.exists():
            self._size = 0
            return
        text = self._path.read_bytes()
        self._size = text.rfind(b"\n") + 1
        if self._size != len(text):
            os.truncate(self._path, self._size)
        for line in text[: self._size].splitlines():
            found = json.loads(line)
            yield Entry(found["first"], [ApiCall(*one) for one in found["calls"]], found["records"])

    def append(self, entry: Entry) -> None:
        """Writes an entry in one go, before anybody is answered. It outlives the process, not the machine."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = _line(entry)
        with self._path.open("ab", buffering=0) as file:
            file.write(line)
        self._size += len(line)

    def start_over(self, next_call: int) -> None:
        """Forgets the past of an account in which nothing is left. Ids go on where they were: none is used twice."""
        if self._path is None:
            return
        line = _line(Entry(next_call))
        new = self._path.with_suffix(".new")
        new.write_bytes(line)
        os.replace(new, self._path)
        self._size = len(line)

    def _on_disk(self) -> int:
        assert self._path is not None
        return self._path.stat().st_size if self._path.exists() else 0


def _line(entry: Entry) -> bytes:
    calls = [[one.service, one.operation, one.region, one.parameters] for one in entry.calls]
    return json.dumps({"first": entry.first, "calls": calls, "records": entry.records}).encode() + b"\n"
