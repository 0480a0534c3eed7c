import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from components.node_budget import (
    Budget,
    head_budget,
    heads_held,
    kubelet_millicpus,
    system_demand,
    system_node,
    weights_room_gb,
    worker_budget,
)


@cache
def _ec2_types() -> dict[str, Any]:
    record = files("moto").joinpath("ec2/resources/instance_types.json.gz").read_bytes()
    return json.loads(gzip.decompress(record))


@pytest.mark.parametrize(("vcpus", "kept"), [(1, 60), (2, 70), (4, 80), (8, 90), (32, 150), (192, 550)])
def test_the_kubelet_keeps_a_share_that_shrinks_with_the_node(vcpus: int, kept: int) -> None:
    assert kubelet_millicpus(vcpus) == kept


def test_the_system_node_of_the_reference_deployment() -> None:
    assert system_node("m7i.xlarge") == Budget(3920, 14327)


def test_every_system_type_has_the_cpus_and_at_least_the_memory_its_name_says() -> None:
    wrong: list[str] = []
    judged = 0
    for name, row in _ec2_types().items():
        node = system_node(name)
        if node is None:
            continue
        judged += 1
        vcpus = row["VCpuInfo"]["DefaultVCpus"]
        architectures = row["ProcessorInfo"]["SupportedArchitectures"]
        if (
            "x86_64" not in architectures
            or node.millicpus != vcpus * 1000 - kubelet_millicpus(vcpus)
            or node.memory_mib > row["MemoryInfo"]["SizeInMiB"]
        ):
            wrong.append(name)

    assert judged > 300
    assert wrong == []


def test_the_head_asks_for_what_is_deployed_and_its_autoscaler() -> None:
    assert head_budget() == Budget(2500, 8 * 1024 + 512)


def test_a_second_system_node_takes_the_operator_and_dns() -> None:
    assert system_demand(1) == system_demand(2) + Budget(300, 652)


def test_a_node_holds_a_head_exactly_where_it_meets_the_demand() -> None:
    for nodes in (1, 2):
        demand = system_demand(nodes)
        assert heads_held(demand, nodes) == 1
        assert heads_held(demand - Budget(1, 0), nodes) == heads_held(demand - Budget(0, 1), nodes) == 0


def test_a_second_system_node_holds_a_second_head() -> None:
    room = Budget(3920, 14327)
    assert [heads_held(room, nodes) for nodes in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize(("nvme_gb", "room"), [(900, 710.0), (200, 80.0), (50, 0.0)])
def test_weights_get_what_images_and_the_kubelet_leave(nvme_gb: int, room: float) -> None:
    assert weights_room_gb(nvme_gb) == room


def test_a_worker_gets_what_kubelet_and_daemon_sets_leave() -> None:
    assert worker_budget(32, 114_198) == Budget(31_550, 113_686)


def test_a_budget_is_told_in_cpus_and_gib() -> None:
    assert str(Budget(3920, 14327)) == "3.92 CPU and 14.0 GiB"
