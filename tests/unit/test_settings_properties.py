from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.stack_files import faults_of, raw
from tests.unit.test_settings_fields import WRONG

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
PATHS = st.sampled_from(sorted({row[0] for row in WRONG}))


def _put(sections: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    node = sections
    for parent in parents:
        node = node.setdefault(parent, {})
        if not isinstance(node, dict):
            return
    node[last] = value


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(PATHS, JSON), min_size=1, max_size=3))
def test_whatever_stands_at_a_path_is_judged_and_not_tripped_over(changes: list[tuple[str, Any]]) -> None:
    sections = raw()
    for path, value in changes:
        _put(sections, path, value)

    assert all(fault.startswith(("ray-llm-eks:", "aws:region")) for fault in faults_of(sections))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(raw())), JSON)
def test_whatever_stands_as_a_section_is_judged_and_not_tripped_over(section: str, value: Any) -> None:
    assert all(fault.startswith("ray-llm-eks:") for fault in faults_of(raw() | {section: value}))


@settings(max_examples=100, deadline=None)
@given(PATHS, st.text("abcdefABCDEF", min_size=8, max_size=20))
def test_a_token_at_any_path_is_not_shown(path: str, secret: str) -> None:
    sections = raw()
    _put(sections, path, f"hf_{secret}")

    assert not any(secret in fault for fault in faults_of(sections))
