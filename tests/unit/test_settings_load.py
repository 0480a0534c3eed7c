import json
from collections.abc import Callable, Iterator
from typing import Any

import pulumi
import pytest
from pulumi.runtime import config

from components.settings import SettingsError, load, parse
from tests.unit.stack_files import faults_of, raw, region, settings

TOKEN = "hf_SEKRIT1234"
SetConfig = Callable[..., None]


@pytest.fixture
def set_config(monkeypatch: pytest.MonkeyPatch) -> Iterator[SetConfig]:
    """Sets the stack and its configuration as the engine hands them over: sections as JSON text."""
    monkeypatch.setattr(pulumi, "get_stack", lambda: "stack")

    def setter(sections: dict[str, Any], secret: tuple[str, ...] = (), **others: str) -> None:
        values = {f"ray-llm-eks:{name}": json.dumps(value) for name, value in sections.items()} | others
        config.set_all_config(values, [f"ray-llm-eks:{name}" for name in secret])

    yield setter
    config.set_all_config({}, [])


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", told.append)
    return told


@pytest.mark.parametrize("stack", ["dev", "staging", "prod"])
def test_every_stack_file_of_the_repository_is_in_order(stack: str, set_config: SetConfig) -> None:
    set_config(raw(stack), **{"aws:region": region(stack)})

    loaded = load()

    assert loaded.model_copy(update={"stack": stack}) == settings(stack)


def test_the_dev_stack_is_the_reference_deployment() -> None:
    stack = settings("dev")

    assert (stack.region, stack.gpu_nodes.zone, stack.network.zone_names) == (
        "us-east-1",
        "us-east-1a",
        ("us-east-1a", "us-east-1b"),
    )
    assert (
        stack.cluster.kubernetes_version,
        stack.cluster.system_nodes.instance_type,
        stack.cluster.system_nodes.count,
    ) == (
        "1.35",
        "m7i.xlarge",
        1,
    )
    assert (stack.gpu_nodes.instance_type, stack.gpu_nodes.count, stack.gpu_nodes.capacity.kind) == (
        "g6.8xlarge",
        2,
        "onDemand",
    )
    assert stack.model.model_dump(exclude={"shape_block", "hugging_face_token"}) == {
        "id": "qwen3.5-9b",
        "source": "Qwen/Qwen3.5-9B",
        "max_model_len": 4096,
        "dtype": "bfloat16",
        "gpu_memory_utilization": 0.9,
        "enforce_eager": True,
    }
    assert [
        (role.replicas, role.tensor_parallel_size, role.pipeline_parallel_size) for role in stack.roles.values()
    ] == [(1, 1, 1)] * 2
    assert (stack.service.name, stack.service.namespace, stack.service.upgrade_strategy) == (
        "ray-llm",
        "inference",
        "None",
    )
    assert stack.service.worker.model_dump() == {"cpu": 24, "memory": "96Gi", "shm_size": "16Gi"}
    assert stack.image == "763104351884.dkr.ecr.us-east-1.amazonaws.com/ray:serve-llm-cuda-v1.0"


def test_the_staging_stack_has_one_more_decode_replica() -> None:
    dev, staging = settings("dev"), settings("staging")

    assert (staging.gpu_nodes.count, staging.prefill.replicas, staging.decode.replicas) == (3, 1, 2)
    assert (staging.gpu_nodes.instance_type, staging.model) == (dev.gpu_nodes.instance_type, dev.model)


def test_the_prod_stack_spreads_a_dense_model_over_four_gpus() -> None:
    prod = settings("prod")

    assert (prod.gpu_nodes.instance_type, prod.gpu_nodes.count, prod.gpu_nodes.hardware.gpus) == ("g6e.12xlarge", 3, 4)
    assert [(role.replicas, role.tensor_parallel_size) for role in prod.roles.values()] == [(1, 4), (2, 4)]
    assert (prod.model.id, prod.model.source, prod.model.shape.hybrid) == ("qwen3-32b", "Qwen/Qwen3-32B", False)
    assert (prod.gpu_nodes.capacity.kind, prod.gpu_nodes.capacity.reservation_id) == (
        "reservation",
        "cr-0123456789abcdef0",
    )


def test_all_faults_are_one_error_and_the_program_ends(set_config: SetConfig, errors: list[str]) -> None:
    set_config(raw(gpuNodes__count="3", network__zones=["us-east-1a"]) | {"gpuNode": {}}, **{"aws:region": "us-east-1"})

    with pytest.raises(SystemExit) as ended:
        load()

    assert ended.value.code == 32
    assert errors == [
        "The configuration of stack stack has 3 faults; nothing was made:\n"
        "  - ray-llm-eks:gpuNode: there is no such setting; gpuNodes is meant, perhaps. Rename it. Type: pulumi config rm --path "
        "'ray-llm-eks:gpuNode'\n"
        '  - ray-llm-eks:gpuNodes.count is "3": it must be a whole number, without quotes. Type: pulumi config set --path '
        "'ray-llm-eks:gpuNodes.count' 3\n"
        '  - ray-llm-eks:network.zones is ["us-east-1a"]: a control plane needs at least two zones. Type: pulumi config set --path '
        "'ray-llm-eks:network.zones[1]' us-east-1b"
    ]


def test_an_empty_configuration_is_told_what_it_lacks(set_config: SetConfig, errors: list[str]) -> None:
    set_config({})

    with pytest.raises(SystemExit):
        load()

    assert [line.split(": ")[0] for line in errors[0].splitlines()[1:]] == [
        "  - aws:region",
        "  - ray-llm-eks:gpuNodes.zone",
        "  - ray-llm-eks:cluster.endpoint.publicCidrs",
    ]


def test_a_section_that_is_plain_text_is_told(set_config: SetConfig, errors: list[str]) -> None:
    set_config(raw(), **{"ray-llm-eks:service": "hello", "aws:region": "us-east-1"})

    with pytest.raises(SystemExit):
        load()

    assert 'ray-llm-eks:service is "hello": it must be a block of settings.' in errors[0]


def test_other_projects_keys_are_nobodys_business(set_config: SetConfig) -> None:
    set_config(raw(), **{"aws:region": "us-east-1", "other:gpuNode": "{}"})

    assert load().gpu_nodes.count == 2


def test_a_secret_token_is_kept_and_never_shown(set_config: SetConfig) -> None:
    set_config(raw(model__huggingFaceToken=TOKEN), ("model",), **{"aws:region": "us-east-1"})

    loaded = load()

    assert loaded.model.hugging_face_token is not None
    assert loaded.model.hugging_face_token.get_secret_value() == TOKEN
    assert "SEKRIT" not in f"{loaded!r} {loaded} {loaded.model_dump()}"


def test_a_token_in_plain_text_is_refused_and_not_shown() -> None:
    found = faults_of(raw(model__huggingFaceToken=TOKEN))

    assert found == [
        "ray-llm-eks:model.huggingFaceToken: it stands in the stack file as plain text, for everybody who reads it. Revoke it, then "
        "type: pulumi config set --secret --path 'ray-llm-eks:model.huggingFaceToken'"
    ]


@pytest.mark.parametrize("value", [["hf_SEKRIT1234"], {"value": "hf_SEKRIT1234"}, "", 1234])
def test_a_token_of_a_wrong_type_is_not_shown(value: Any) -> None:
    found = faults_of(raw(model__huggingFaceToken=value), secret_sections=("model",))

    assert "SEKRIT" not in found[0]
    assert "1234" not in found[0]
    assert found[0].startswith("ray-llm-eks:model.huggingFaceToken is [hidden]: it must")
    assert found[0].endswith("Type: pulumi config set --secret --path 'ray-llm-eks:model.huggingFaceToken'")


def test_a_misspelt_token_is_not_shown() -> None:
    found = faults_of(raw(model__huggingfaceToken=TOKEN, model__hfToken=TOKEN), secret_sections=("model",))

    assert len(found) == 2
    assert "SEKRIT" not in " ".join(found)


def test_values_beside_a_secret_are_not_shown() -> None:
    found = faults_of(raw(model__huggingFaceToken=TOKEN, model__maxModelLen="SEKRIT"), secret_sections=("model",))

    assert found == [
        "ray-llm-eks:model.maxModelLen is [hidden]: it must be a whole number, without quotes. "
        "Type: pulumi config set --path 'ray-llm-eks:model.maxModelLen' 4096"
    ]


@pytest.mark.parametrize("section", ["gpuNodes", "model"])
def test_a_secret_where_none_belongs_is_refused_and_not_shown(section: str) -> None:
    found = faults_of(raw(), secret_sections=(section,))

    assert found == [
        f"ray-llm-eks:{section}: it holds a secret, and the program would write it into resources as plain text. Set it again without "
        "--secret; only ray-llm-eks:model.huggingFaceToken is kept secret."
    ]


def test_a_token_in_any_other_text_is_not_shown() -> None:
    found = faults_of(raw(service__name=TOKEN))

    assert found[0].startswith("ray-llm-eks:service.name is [hidden]: it must be a DNS-1035 label")


def test_the_error_counts_a_single_fault() -> None:
    with pytest.raises(SettingsError, match="The configuration of stack dev has 1 fault; nothing was made:"):
        parse(raw(service__worker__cpu=1), "us-east-1", "dev")
