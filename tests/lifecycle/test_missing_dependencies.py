"""Each dependency that this program writes by hand is needed: without it an `up` fails as on AWS, or goes wrong in silence.

Not a look at options: the program runs without the edge, and the stand-ins take their time where AWS would.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lifecycle.conftest import SandboxIn
from tests.lifecycle.missing import EDGES, MISBEHAVIOURS, Edge, Misbehaviour
from tests.lifecycle.programs import slow_down, without_dependency
from tests.lifecycle.runs import CHECKOUT, EFA_PLUGIN, EFA_RULES, GPU_NODES, GPU_PLUGIN, SYSTEM_NODES, Steps

# What nobody would notice otherwise.
SLOW = (
    {key[1]: 8.0 for key in (GPU_NODES, EFA_PLUGIN, GPU_PLUGIN)}
    | {SYSTEM_NODES[1]: 5.0}
    | {rule[1]: 25.0 for rule in EFA_RULES}
)


def ids(edge: Edge) -> str:
    return f"{edge.of_in_words} without {edge.on_in_words}"


def missing(words: str, parts: Sequence[str]) -> list[str]:
    return [part for part in parts if part not in words]


@pytest.mark.parametrize("edge", EDGES, ids=ids)
def test_without_it_an_up_fails_as_on_aws(edge: Edge, sandbox_in: SandboxIn, tmp_path: Path) -> None:
    program = without_dependency(tmp_path / "program", edge.of, edge.on)
    with sandbox_in(tmp_path / "home") as sandbox:
        slow_down(sandbox, "create", edge.slow)
        done = Steps(sandbox.up(program, "dev", preview_first=False))

    assert "taken out of" in done.output
    assert done.exit_code != 0
    assert missing(done.words, edge.says) == [], done.output


def in_order(one: Misbehaviour, done: Steps) -> bool:
    return done.places("create", one.on)[1] < done.places("create", one.of)[0]


def test_with_all_of_them_a_slow_aws_changes_nothing(sandbox_in: SandboxIn, tmp_path: Path) -> None:
    with sandbox_in(tmp_path / "home") as sandbox:
        slow_down(sandbox, "create", {name: seconds for edge in EDGES for name, seconds in edge.slow.items()} | SLOW)
        done = Steps(sandbox.up(CHECKOUT, "dev", preview_first=False))

    assert done.exit_code == 0, done.output
    assert [one.of_in_words for one in MISBEHAVIOURS if not in_order(one, done)] == []


def test_without_the_others_nothing_fails_and_the_order_is_wrong(sandbox_in: SandboxIn, tmp_path: Path) -> None:
    program = without_dependency(
        tmp_path / "program",
        ["ray-llm-service", *(key[1] for one in MISBEHAVIOURS for key in one.of)],
        [key[1] for one in MISBEHAVIOURS for key in one.on],
    )
    with sandbox_in(tmp_path / "home") as sandbox:
        slow_down(sandbox, "create", SLOW)
        done = Steps(sandbox.up(program, "dev", preview_first=False))

    assert done.exit_code == 0, done.output
    assert [one.of_in_words for one in MISBEHAVIOURS if in_order(one, done)] == []
