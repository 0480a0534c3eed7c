"""The tables of the documentation are what the tests hold against the engine."""

import re

import pytest

from tests.lifecycle import tables
from tests.lifecycle.runs import CHECKOUT


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_committed_table_is_current(name: str) -> None:
    path, _ = tables.TABLES[name]

    assert path.read_text() == tables.current(name), "run python -m tests.lifecycle.tables"


@pytest.mark.parametrize("name", ["faults", "lifecycle"])
def test_every_link_of_a_document_leads_somewhere(name: str) -> None:
    path = CHECKOUT / "docs" / f"{name}.md"
    headings = {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in path.read_text().splitlines()
        if line.startswith("#")
    }
    lost = [
        target
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text())
        if not ((target.startswith("#") and target[1:] in headings) or (path.parent / target).exists())
    ]

    assert lost == []
