"""Each dependency that this program writes by hand is needed: without it an `up` fails as on AWS, or goes wrong in silence.

Not a look at options: the program runs without the edge, and the stand-ins take their time where AWS would.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lifecycle.conftest import HomeOf, SandboxIn
from tests.lifecycle.missing import EDGES, MISBEHAVIOURS, Edge, Misbehaviour
from tests.lifecycle.programs import slow_down, without_dependency
from tests.lifecycle.runs import (
    CHECKOUT,
    EFA_PLUGIN,
    EFA_RULES,
    GPU_NODES,
    GPU_PLUGIN,
    SERVICE,
    SYSTEM_NODES,
    Key,
    Steps,
)

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


@pytest.mark.parametrize(
    ("of", "on"),
    [
        (GPU_NODES, "ray-llm-network-"),
        (GPU_NODES, "ray-llm-gpu-role-"),
        (GPU_NODES, "ray-llm-gpu-efa-"),
        (SERVICE, GPU_NODES[1]),
        (EFA_PLUGIN, GPU_NODES[1]),
    ],
    ids=lambda one: one if isinstance(one, str) else one[1],
)
def test_without_one_of_them_a_destroy_keeps_its_order(
    of: Key, on: str, sandbox_in: SandboxIn, home_of: HomeOf, tmp_path: Path
) -> None:
    # The service's component hands its own dependencies on.
    program = without_dependency(tmp_path / "program", [of[1], "ray-llm-service"] if of == SERVICE else [of[1]], [on])
    with sandbox_in(home_of("dev")) as sandbox:
        forgotten = Steps(sandbox.up(program, "dev", preview_first=False))
        done = Steps(sandbox.destroy(program, "dev"))

        assert "taken out of" in forgotten.output
        assert done.exit_code == 0, done.output
        assert sandbox.inventory() == []
    waited_for = done.keys("delete", lambda key: key != of and key[1].startswith(on))
    assert done.places("delete", [of])[1] < done.places("delete", waited_for)[0]


def test_without_two_of_them_a_destroy_fails_as_on_aws(sandbox_in: SandboxIn, home_of: HomeOf, tmp_path: Path) -> None:
    program = without_dependency(tmp_path / "program", [GPU_PLUGIN[1]], ["ray-llm-addons-device-plugins", GPU_NODES[1]])
    with sandbox_in(home_of("dev")) as sandbox:
        assert Steps(sandbox.up(program, "dev", preview_first=False)).exit_code == 0
        slow_down(sandbox, "delete", {GPU_PLUGIN[1]: 3.0})
        done = Steps(sandbox.destroy(program, "dev"))

    assert done.exit_code != 0
    assert "uninstall: Release not loaded: nvidia-device-plugin: release: not found" in done.words, done.output


def test_with_all_of_them_a_slow_destroy_leaves_nothing(sandbox_in: SandboxIn, home_of: HomeOf) -> None:
    with sandbox_in(home_of("dev")) as sandbox:
        slow_down(sandbox, "delete", {key[1]: 3.0 for key in (SERVICE, GPU_PLUGIN, EFA_PLUGIN, GPU_NODES)})
        done = Steps(sandbox.destroy(CHECKOUT, "dev"))

        assert done.exit_code == 0, done.output
        assert sandbox.inventory() == []
