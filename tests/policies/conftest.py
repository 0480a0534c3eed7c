"""One pack process for the whole session; each test starts with the default configuration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.policies.analyzer import Diagnostic, Pack, Resource

Preview = Callable[..., list[Diagnostic]]


@pytest.fixture(scope="session")
def pack() -> Iterator[Pack]:
    running = Pack()
    yield running
    running.close()


@pytest.fixture
def preview(pack: Pack) -> Iterator[Preview]:
    """``preview(resources, config={policy: {key: value}})``: what the pack says."""

    def run(resources: Sequence[Resource], config: Mapping[str, Mapping[str, Any]] | None = None) -> list[Diagnostic]:
        pack.configure(config or {})
        found = pack.preview(resources)
        assert not [item for item in found if "can't run policy" in item.message]
        return found

    yield run
    pack.configure({})
