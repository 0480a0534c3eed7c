import pytest

from components.model_shapes import GIB, MIB, MODEL_SHAPES, gpu_memory


def test_a_token_of_the_reference_model_takes_32_kib() -> None:
    shape = MODEL_SHAPES["Qwen/Qwen3.5-9B"]

    memory = gpu_memory(shape, element_bytes=2, kv_element_bytes=2, tensor_parallel=1, pipeline_parallel=1, tokens=1)

    assert memory.kv_cache == 32 * 1024


def test_a_sequence_of_the_reference_model_holds_49_mib_of_state() -> None:
    assert MODEL_SHAPES["Qwen/Qwen3.5-9B"].state_bytes == 49 * MIB


def test_tensor_parallelism_shares_weights_and_kv_heads() -> None:
    shape = MODEL_SHAPES["Qwen/Qwen3-32B"]

    memory = gpu_memory(shape, element_bytes=2, kv_element_bytes=2, tensor_parallel=4, pipeline_parallel=1, tokens=4096)

    assert memory.weights == 32_800_000_000 * 2 // 4
    assert memory.kv_cache == 4096 * 64 * 2 * (8 // 4) * 128 * 2
    assert memory.state == 0
    assert memory.total == memory.weights + memory.kv_cache + 3 * GIB // 2


def test_kv_heads_are_copied_where_there_are_more_gpus_than_heads() -> None:
    shape = MODEL_SHAPES["Qwen/Qwen3.5-9B"]

    of_four, of_eight = (
        gpu_memory(shape, element_bytes=2, kv_element_bytes=2, tensor_parallel=gpus, pipeline_parallel=1, tokens=4096)
        for gpus in (4, 8)
    )

    assert of_four.kv_cache == of_eight.kv_cache
    assert of_four.weights == 2 * of_eight.weights


def test_a_pipeline_stage_holds_the_larger_share_of_uneven_layers() -> None:
    shape = MODEL_SHAPES["Qwen/Qwen3.5-9B"]

    memory = gpu_memory(shape, element_bytes=2, kv_element_bytes=1, tensor_parallel=1, pipeline_parallel=3, tokens=10)

    assert memory.kv_cache == 10 * 3 * 2 * 4 * 256


@pytest.mark.parametrize("source", MODEL_SHAPES)
def test_a_row_does_not_contradict_itself(source: str) -> None:
    shape = MODEL_SHAPES[source]

    assert shape.heads % shape.kv_heads == 0
    assert shape.hybrid == (shape.kv_layers < shape.layers) == (shape.state_bytes > 0)
