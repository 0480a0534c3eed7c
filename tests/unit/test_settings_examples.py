import json
from typing import Any

import pytest

from tests.unit.stack_files import faults, faults_of, raw
from tests.unit.test_settings_fields import HARDWARE, SHAPE, set_to, stack_with, written

# What a block is to look like; of a block that requires something, all of it.
BLOCKS: dict[str, dict[str, Any]] = {
    "tags": {"team": "ml"},
    "network": {"zones": ["us-east-1a", "us-east-1b"]},
    "cluster": {"endpoint": {"publicCidrs": ["<your address>/32"]}},
    "cluster.endpoint": {"publicCidrs": ["<your address>/32"]},
    "cluster.systemNodes": {"instanceType": "m7i.xlarge"},
    "gpuNodes": {"zone": "us-east-1a"},
    "gpuNodes.capacity": {"kind": "onDemand"},
    "model": {"id": "qwen3.5-9b"},
    "model.shape": SHAPE,
    "prefill": {"replicas": 1},
    "decode": {"replicas": 1},
    "service": {"name": "ray-llm"},
    "service.worker": {"cpu": 24},
    "addons": {"nvidiaDevicePlugin": {"repository": "https://nvidia.github.io/k8s-device-plugin"}},
    "addons.kuberayOperator": {"repository": "https://ray-project.github.io/kuberay-helm/"},
}


@pytest.mark.parametrize("path", BLOCKS)
@pytest.mark.parametrize("value", ["text", ["a", "list"]])
def test_a_section_that_is_no_block_is_told_with_an_example(path: str, value: Any) -> None:
    assert faults_of(stack_with(path, value))[0] == (
        f"ray-llm-eks:{path} is {json.dumps(value)}: it must be a block of settings. {written(path, BLOCKS[path])}"
    )


def test_a_section_with_nothing_in_it_is_told_with_an_example() -> None:
    assert faults(service=None) == [
        f"ray-llm-eks:service is null: it must be a block of settings. {written('service', BLOCKS['service'])}"
    ]


def test_a_hardware_block_that_is_none_is_told_with_all_it_requires() -> None:
    example = HARDWARE | {"gpuName": "H100"}

    assert faults(gpuNodes__instanceType="p9.48xlarge", gpuNodes__hardware="8 GPUs")[0] == (
        f'ray-llm-eks:gpuNodes.hardware is "8 GPUs": it must be a block of settings. {written("gpuNodes.hardware", example)}'
    )


def test_an_example_is_in_the_region_of_the_stack() -> None:
    assert faults_of(raw() | {"network": {"zones": "eu-west-1a"}}, "eu-west-1")[0] == (
        'ray-llm-eks:network.zones is "eu-west-1a": it must be a list. '
        + written("network.zones", ["eu-west-1a", "eu-west-1b"])
    )


@pytest.mark.parametrize(
    ("path", "value", "example"),
    [
        ("network.zones[1]", {"network__zones": ["us-east-1a", None]}, "us-east-1a"),
        ("tags.team", {"tags": {"team": ["ml"]}}, "ml"),
        (
            "network.privateSubnets.us-east-1a",
            {"network": {"privateSubnets": {"us-east-1a": None}}},
            "subnet-0123456789abcdef0",
        ),
    ],
)
def test_an_element_of_a_wrong_type_is_told_with_an_element(path: str, value: dict[str, Any], example: str) -> None:
    [fault, *_] = faults(**value)
    assert fault.startswith(f"ray-llm-eks:{path} is ")
    assert fault.endswith(f"it must be text. {set_to(path, example)}")
