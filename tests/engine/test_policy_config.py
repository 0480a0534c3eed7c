"""The pack's configuration, as the engine takes it from a file: what cannot be seen may be made advice, and scope narrowed."""

import json
from pathlib import Path

import pytest

from tests.engine.conftest import PreviewOf
from tests.engine.previews import NIXL, PROGRAMS, ZONES


@pytest.mark.parametrize(
    ("name", "policy", "hidden"),
    [("serve_config_holds_an_output", NIXL, "serveConfigV2"), ("subnets_filtered_in_an_apply", ZONES, "subnetIds")],
)
def test_what_cannot_be_seen_is_advice_where_the_configuration_says_so(
    name: str, policy: str, hidden: str, preview: PreviewOf, tmp_path: Path
) -> None:
    config = tmp_path / "policies.json"
    config.write_text(json.dumps({policy: {"onUnknown": "advisory"}}))

    done = preview(PROGRAMS / name, policy_config=config)

    assert done.exit_code == 0, done.output
    assert done.violations == []
    assert [hidden in message for message in done.advice] == [True]


def test_a_proven_fault_blocks_whatever_the_configuration_says_of_unknown_values(
    preview: PreviewOf, tmp_path: Path
) -> None:
    config = tmp_path / "policies.json"
    config.write_text(json.dumps({ZONES: {"onUnknown": "advisory"}}))

    done = preview(PROGRAMS / "gpu_group_over_two_zones", policy_config=config)

    assert done.exit_code != 0
    assert done.blocking == {ZONES}


def test_an_excluded_group_may_spread_over_zones(preview: PreviewOf, tmp_path: Path) -> None:
    config = tmp_path / "policies.json"
    config.write_text(json.dumps({ZONES: {"exclude": ["gpu"]}}))

    done = preview(PROGRAMS / "gpu_group_over_two_zones", policy_config=config)

    assert done.exit_code == 0, done.output
    assert done.violations == []
