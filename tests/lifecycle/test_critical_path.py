"""The arithmetic behind `make bench`: spans from events, waits from a state, the longest chain, stages in a row."""

from typing import Any

import pytest

from benchmarks import critical_path, durations
from benchmarks.up_parallelism import measure, report, stage_of

PREFIX = "urn:pulumi:dev::ray-llm-eks::"


def urn(name: str, kind: str = "a:b:C") -> str:
    return f"{PREFIX}{kind}::{name}"


def began(at: float, name: str, custom: bool = True, op: str = "create") -> tuple[float, dict[str, Any]]:
    return at, {"resourcePreEvent": {"metadata": {"op": op, "urn": urn(name), "new": {"custom": custom}}}}


def ended(at: float, name: str, custom: bool = True, op: str = "create") -> tuple[float, dict[str, Any]]:
    return at, {"resOutputsEvent": {"metadata": {"op": op, "urn": urn(name), "new": {"custom": custom}}}}


def resource(name: str, **fields: Any) -> dict[str, Any]:
    return {"urn": urn(name), "custom": True, **fields}


def state(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"deployment": {"resources": list(resources)}}


def test_a_span_lasts_from_the_engines_step_to_its_outputs() -> None:
    found = critical_path.spans([began(1.0, "vpc"), began(1.5, "key"), ended(2.25, "vpc"), ended(4.0, "key")])

    assert {key.rpartition("::")[2]: span.seconds for key, span in found.items()} == {"vpc": 1.25, "key": 2.5}


def test_components_and_what_stays_as_it_is_have_no_span() -> None:
    events = [began(1, "network", custom=False), ended(9, "network", custom=False), began(1, "old", op="same")]

    assert critical_path.spans(events) == {}


def test_a_provider_has_no_span() -> None:
    provider = f"{PREFIX}pulumi:providers:aws::default"
    metadata = {"op": "create", "urn": provider, "new": {"custom": True}}

    assert critical_path.spans([(0, {"resourcePreEvent": {"metadata": metadata}})]) == {}
    assert critical_path.spans([(0, {"resOutputsEvent": {"metadata": metadata}})]) == {}


def test_what_the_preview_before_an_up_plans_has_no_span() -> None:
    events = [began(0, "vpc"), ended(1, "vpc")]
    for _, event in events:
        for told in event.values():
            told["planning"] = True

    assert critical_path.spans(events) == {}


def test_a_resource_waits_for_dependencies_properties_and_provider() -> None:
    needs = critical_path.waits(
        state(
            resource("a"),
            resource("b"),
            resource("p"),
            resource(
                "c",
                dependencies=[urn("a")],
                propertyDependencies={"id": [urn("b")], "plain": None},
                provider=f"{urn('p')}::some-id",
            ),
        )
    )

    assert needs[urn("c")] == {urn("a"), urn("b"), urn("p")}


def test_a_component_stands_for_all_that_is_below_it() -> None:
    needs = critical_path.waits(
        state(
            {"urn": urn("outer"), "custom": False},
            {"urn": urn("inner"), "custom": False, "parent": urn("outer")},
            resource("leaf", parent=urn("inner")),
            resource("other"),
            resource("after", dependencies=[urn("outer")]),
        )
    )

    assert needs[urn("after")] == {urn("leaf")}


def test_the_longest_chain_is_not_the_one_with_most_links() -> None:
    seconds = {"a": 1.0, "b": 1.0, "c": 1.0, "slow": 5.0, "end": 1.0}
    needs = {"b": frozenset({"a"}), "c": frozenset({"b"}), "end": frozenset({"c", "slow"})}

    assert critical_path.longest(seconds, needs) == critical_path.Path(6.0, ["slow", "end"])


def test_a_chain_passes_through_what_was_not_made_in_this_run() -> None:
    needs = {"end": frozenset({"provider"}), "provider": frozenset({"start"})}

    assert critical_path.longest({"start": 2.0, "end": 3.0}, needs) == critical_path.Path(5.0, ["start", "end"])


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="waits for itself"):
        critical_path.longest({"a": 1.0, "b": 1.0}, {"a": frozenset({"b"}), "b": frozenset({"a"})})


def test_stages_are_parallel_inside_and_wait_for_each_other() -> None:
    seconds = {"one-a": 2.0, "one-b": 3.0, "two-a": 4.0}
    found = critical_path.one_after_another(seconds, {"one-b": frozenset({"one-a"})}, lambda urn: urn[:3])

    assert found == {"one": 5.0, "two": 4.0}


def test_a_run_in_which_nothing_waits_for_nothing_has_the_ratio_one() -> None:
    events = [began(0, "a"), ended(4, "a"), began(4, "b"), ended(6, "b"), began(0, "c"), ended(5, "c")]
    found = measure(events, state(resource("a"), resource("b", dependencies=[urn("a")]), resource("c")))

    assert (found.makespan, found.path.seconds, found.ratio) == (6, 6, 1)
    assert list(found.idle) == [0, 0]
    assert "makespan / critical path: 1.000" in report(found)


def test_a_run_that_waits_without_need_shows_it() -> None:
    events = [began(0, "a"), ended(5, "a"), began(5, "b"), ended(10, "b")]

    assert measure(events, state(resource("a"), resource("b"))).ratio == 2


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("ray-llm-network-vpc", "network, cluster and system nodes"),
        ("ray-llm-cluster-system", "network, cluster and system nodes"),
        ("ray-llm-gpu-nodes", "GPU nodes"),
        ("ray-llm-addons-efa-device-plugin", "device plugins"),
        ("ray-llm-addons-kuberay-operator", "operator"),
        ("ray-llm-addons-kuberay-crds", "operator"),
        ("ray-llm-service-ray-service", "service"),
    ],
)
def test_each_resource_stands_in_a_stage_of_the_sample(name: str, stage: str) -> None:
    assert stage_of(urn(name)) == stage


def test_a_node_group_and_its_template_of_one_name_take_their_own_time() -> None:
    group = durations.creation("aws:eks/nodeGroup:NodeGroup", "ray-llm-gpu-nodes")
    template = durations.creation("aws:ec2/launchTemplate:LaunchTemplate", "ray-llm-gpu-nodes")

    assert group.seconds > 10 * template.seconds


def test_every_figure_says_where_it_was_read() -> None:
    figures = [*durations.CREATE.values(), *durations.NAMED.values(), durations.OTHER]

    assert [figure for figure in figures if not figure.source.strip()] == []
    assert all(figure.seconds > 0 for figure in figures)
