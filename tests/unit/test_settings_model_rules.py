from typing import Any

import pytest

from components.settings.model_rules import replica_memory, shape_of
from tests.unit.stack_files import faults, settings
from tests.unit.test_settings_fields import HARDWARE

SET = "Type: pulumi config set --path 'ray-llm-eks:"
RM = "Type: pulumi config rm --path 'ray-llm-eks:"
DENSE = {"id": "qwen3-8b", "source": "Qwen/Qwen3-8B"}
FOUR_GPUS: dict[str, Any] = {"gpuNodes__instanceType": "g6e.12xlarge", "model": DENSE}


def four_gpus(prefill: dict[str, int], decode: dict[str, int], **changes: Any) -> list[str]:
    return faults(**(FOUR_GPUS | {"prefill": prefill, "decode": decode} | changes))


def sizes(tensor: int, pipeline: int = 1) -> dict[str, int]:
    return {"replicas": 1, "tensorParallelSize": tensor, "pipelineParallelSize": pipeline}


def test_a_model_nobody_knows_needs_its_shape() -> None:
    assert faults(model__source="acme/model-7b") == [
        "ray-llm-eks:model.shape: the table does not know acme/model-7b, so nobody can tell whether it fits the GPUs. Write "
        "ray-llm-eks:model.shape with parameters, layers, heads, kvHeads and headDim from its config.json (for a hybrid model hybrid, "
        "kvLayers and stateBytes too), or choose one of: Qwen/Qwen3.5-9B, Qwen/Qwen3-8B, Qwen/Qwen3-14B, Qwen/Qwen3-32B, "
        "meta-llama/Llama-3.1-8B-Instruct, meta-llama/Llama-3.3-70B-Instruct."
    ]


def test_a_model_nobody_knows_is_judged_by_its_shape() -> None:
    shape = {"parameters": 7_000_000_000, "layers": 32, "heads": 32, "kvHeads": 8, "headDim": 128}
    model = settings(model__source="acme/model-7b", model__shape=shape).model

    assert (model.shape.kv_layers, model.shape.hybrid, model.shape.max_positions) == (32, False, None)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"kvLayers": 33},
            f"ray-llm-eks:model.shape.kvLayers is 33: the model has 32 layers. {SET}model.shape.kvLayers' 32",
        ),
        (
            {"kvHeads": 5},
            "ray-llm-eks:model.shape.kvHeads is 5: 32 heads share them evenly. Write num_key_value_heads of its config.json.",
        ),
    ],
)
def test_a_shape_does_not_contradict_itself(change: dict[str, int], expected: str) -> None:
    shape = {"parameters": 7_000_000_000, "layers": 32, "heads": 32, "kvHeads": 8, "headDim": 128} | change

    assert faults(model__source="acme/model-7b", model__shape=shape) == [expected]


def test_the_context_is_not_longer_than_the_model_was_made_for() -> None:
    assert faults(model=DENSE | {"maxModelLen": 65536}, gpuNodes__instanceType="g6e.8xlarge") == [
        "ray-llm-eks:model.maxModelLen is 65536: Qwen/Qwen3-8B was made for 40960 tokens. "
        f"{SET}model.maxModelLen' 40960"
    ]


def test_a_replica_takes_all_gpus_of_its_node() -> None:
    assert four_gpus(sizes(2), sizes(4)) == [
        "ray-llm-eks:prefill.tensorParallelSize is 2: tensorParallelSize 2 x pipelineParallelSize 1 = 2 leaves GPUs idle: a "
        f"privileged worker owns all 4 of its node (g6e.12xlarge). {SET}prefill.tensorParallelSize' 4"
    ]


def test_a_replica_takes_no_more_gpus_than_its_node_has() -> None:
    assert faults(prefill__tensorParallelSize=2, decode__tensorParallelSize=2) == [
        f"ray-llm-eks:{role}.tensorParallelSize is 2: tensorParallelSize 2 x pipelineParallelSize 1 = 2 is more than the 1 GPU of a "
        f"worker, and a replica lives on one node (g6.8xlarge). {SET}{role}.tensorParallelSize' 1"
        for role in ("prefill", "decode")
    ]


def test_a_pipeline_does_not_stretch_over_workers() -> None:
    assert faults(decode__pipelineParallelSize=2) == [
        "ray-llm-eks:decode.pipelineParallelSize is 2: tensorParallelSize 1 x pipelineParallelSize 2 = 2 would stretch over workers of "
        "1 GPU: the second node of a pipeline holds no replica and is never Ready, and NixlConnector fails with it "
        f"(vllm-project/vllm#40674) (g6.8xlarge). {SET}decode.pipelineParallelSize' 1 and set ray-llm-eks:decode.tensorParallelSize to 1"
    ]


def test_a_pipeline_inside_a_worker_is_accepted() -> None:
    assert four_gpus(sizes(2, 2), sizes(2, 2)) == []


def test_tensor_parallelism_divides_the_attention_heads() -> None:
    shape = {"parameters": 7_000_000_000, "layers": 32, "heads": 6, "kvHeads": 2, "headDim": 128}
    model = {"id": "six", "source": "acme/six-heads", "shape": shape}

    assert four_gpus(sizes(4), sizes(4), model=model) == [
        f"ray-llm-eks:{role}.tensorParallelSize is 4: it does not divide the 6 attention heads of acme/six-heads. Choose a type with "
        "fewer or more GPUs, or a model whose heads 4 divides."
        for role in ("prefill", "decode")
    ]


def test_tensor_parallelism_and_kv_heads_divide_each_other() -> None:
    shape = {"parameters": 7_000_000_000, "layers": 32, "heads": 12, "kvHeads": 6, "headDim": 128}
    model = {"id": "six", "source": "acme/six-kv-heads", "shape": shape}

    assert four_gpus(sizes(4), sizes(4), model=model) == [
        f"ray-llm-eks:{role}.tensorParallelSize is 4: it and the 6 KV heads of acme/six-kv-heads do not divide each other. Choose a "
        "type with fewer or more GPUs, or a model whose heads 4 divides."
        for role in ("prefill", "decode")
    ]


def test_more_gpus_than_kv_heads_copy_them() -> None:
    shape = {"parameters": 7_000_000_000, "layers": 32, "heads": 8, "kvHeads": 2, "headDim": 128}

    assert four_gpus(sizes(4), sizes(4), model={"id": "two", "source": "acme/two-kv-heads", "shape": shape}) == []


def test_a_pipeline_has_no_more_stages_than_layers() -> None:
    shape = {"parameters": 1_000_000_000, "layers": 2, "heads": 8, "kvHeads": 8, "headDim": 128}

    assert four_gpus(sizes(1, 4), sizes(4), model={"id": "two", "source": "acme/two-layers", "shape": shape}) == [
        "ray-llm-eks:prefill.pipelineParallelSize is 4: acme/two-layers has 2 layers. "
        f"{SET}prefill.pipelineParallelSize' 1"
    ]


def test_prefill_has_no_more_tensor_parallelism_than_decode() -> None:
    assert four_gpus(sizes(4), sizes(2, 2)) == [
        "ray-llm-eks:prefill.tensorParallelSize is 4: NixlConnector does not hand a KV cache from more GPUs to fewer, and decode has 2 "
        f"(vllm-project/vllm#43523). {SET}prefill.tensorParallelSize' 2"
    ]


@pytest.mark.parametrize(("prefill", "decode"), [((4, 1), (2, 2)), ((2, 2), (4, 1))])
def test_a_hybrid_model_has_equal_tensor_parallelism(prefill: tuple[int, int], decode: tuple[int, int]) -> None:
    hybrid = {"id": "qwen3.5-9b", "source": "Qwen/Qwen3.5-9B"}

    assert four_gpus(sizes(*prefill), sizes(*decode), model=hybrid) == [
        f"ray-llm-eks:prefill.tensorParallelSize is {prefill[0]}: Qwen/Qwen3.5-9B is a hybrid model, whose state moves only between "
        f"equal sizes, and decode has {decode[0]} (vllm-project/vllm#42895). {SET}prefill.tensorParallelSize' {decode[0]}"
    ]


def test_a_dense_model_may_have_more_tensor_parallelism_on_decode() -> None:
    assert four_gpus(sizes(2, 2), sizes(4)) == []


@pytest.mark.parametrize(
    ("key", "value", "owner"),
    [
        ("kv_transfer_config", {}, "the service, which gives both roles the NIXL connector with backend LIBFABRIC"),
        ("tensor_parallel_size", 2, "tensorParallelSize of the role"),
        ("pipeline_parallel_size", 2, "pipelineParallelSize of the role"),
        ("max_model_len", 8192, "model.maxModelLen"),
        ("dtype", "float16", "model.dtype"),
        ("gpu_memory_utilization", 0.95, "model.gpuMemoryUtilization"),
        ("enforce_eager", False, "model.enforceEager"),
        ("data_parallel_size", 2, "replicas of the role, each of which is one engine"),
        ("model", "Qwen/Qwen3-8B", "model.source"),
        ("served_model_name", "mine", "model.id"),
        ("model_id", "mine", "model.id"),
        ("model_source", "Qwen/Qwen3-8B", "model.source"),
        ("model_loading_config", {}, "model.id and model.source"),
        ("tokenizer", "Qwen/Qwen3-8B", "model.source, with the tokenizer beside the weights"),
    ],
)
def test_an_engine_argument_with_a_setting_of_its_own_is_refused(key: str, value: Any, owner: str) -> None:
    assert faults(decode__engineKwargs={key: value}) == [
        f"ray-llm-eks:decode.engineKwargs.{key}: it is set by {owner}. {RM}decode.engineKwargs.{key}'"
    ]


def test_num_gpus_is_no_engine_argument() -> None:
    assert faults(prefill__engineKwargs={"num_gpus": 0.5}) == [
        "ray-llm-eks:prefill.engineKwargs.num_gpus: the GPUs of a replica are tensorParallelSize x pipelineParallelSize; num_gpus has no "
        f"effect on them. {RM}prefill.engineKwargs.num_gpus'"
    ]


def test_proxy_settings_are_no_engine_arguments() -> None:
    assert faults(prefill__engineKwargs={"proxy_deployment_config": {}}) == [
        "ray-llm-eks:prefill.engineKwargs.proxy_deployment_config: Ray no longer uses proxy settings: decode hands requests on. "
        f"{RM}prefill.engineKwargs.proxy_deployment_config'"
    ]


def test_an_engine_argument_in_camel_case_is_told_in_snake_case() -> None:
    assert faults(prefill__engineKwargs={"maxNumSeqs": 8}) == [
        "ray-llm-eks:prefill.engineKwargs.maxNumSeqs: vLLM spells its arguments in snake_case. "
        f"{SET}prefill.engineKwargs.max_num_seqs' 8; then {RM}prefill.engineKwargs.maxNumSeqs'"
    ]


def test_an_engine_argument_of_vllm_is_handed_on() -> None:
    kwargs = {"max_num_seqs": 8, "max_num_batched_tokens": 4096, "skip_tokenizer_init": False}

    assert settings(decode__engineKwargs=kwargs).decode.engine_kwargs == kwargs


@pytest.mark.parametrize(
    ("kwargs", "key", "named"),
    [
        ({"hf_token": "hf_SEKRIT1234"}, "hf_token", "hf_token"),
        ({"hfToken": "SEKRIT1234"}, "hfToken", "hf_token"),
        ({"HF_TOKEN": "SEKRIT1234"}, "HF_TOKEN", "hf_token"),
        ({"additional_config": {"api_key": "SEKRIT1234"}}, "additional_config", "api_key"),
        ({"overrides": ["hf_SEKRIT1234"]}, "overrides", "overrides"),
    ],
)
def test_a_secret_is_no_engine_argument_and_is_not_printed(kwargs: dict[str, Any], key: str, named: str) -> None:
    found = faults(decode__engineKwargs=kwargs)

    assert found == [
        f"ray-llm-eks:decode.engineKwargs.{key} is [hidden]: {named} looks like a secret, and serveConfigV2 is plain text that everybody "
        f"in the cluster may read. {RM}decode.engineKwargs.{key}', then pulumi config set --secret --path "
        "'ray-llm-eks:model.huggingFaceToken'"
    ]
    assert "SEKRIT" not in found[0]


def test_both_roles_hold_the_kv_cache_alike() -> None:
    assert faults(decode__engineKwargs={"kv_cache_dtype": "fp8"}) == [
        'ray-llm-eks:decode.engineKwargs.kv_cache_dtype: prefill has nothing, decode "fp8": decode refuses a KV cache made otherwise. '
        "Give both roles the same value, or neither one."
    ]


def test_the_reference_model_fits_the_reference_gpu() -> None:
    stack = settings()
    shape = shape_of(stack)
    assert shape is not None
    memory = replica_memory(stack, shape, stack.prefill)

    assert memory.kv_cache == 128 * 1024**2
    assert 17.9 < memory.weights / 1024**3 < 18.0
    assert memory.total < 0.9 * 22888 * 1024**2


def test_a_model_too_large_for_the_gpus_is_refused_with_the_sum() -> None:
    assert faults(model={"id": "qwen3-14b", "source": "Qwen/Qwen3-14B"})[0] == (
        'ray-llm-eks:model.source is "Qwen/Qwen3-14B": prefill needs 29.69 GiB on each GPU (Qwen/Qwen3-14B over tensorParallelSize 1 x '
        "pipelineParallelSize 1: weights 27.57 GiB, KV cache of one sequence of 4096 tokens 0.62 GiB, state 0.00 GiB, activations "
        "about 1.50 GiB), and gpuMemoryUtilization 0.9 of 22888 MiB (L4) is 20.12 GiB. Choose a type with more GPU memory or more "
        "GPUs (gpuNodes.instanceType), or a smaller model."
    )


def test_a_context_too_long_for_the_gpus_is_refused_with_one_that_fits() -> None:
    found = faults(model__maxModelLen=32768)

    assert found[0] == (
        "ray-llm-eks:model.maxModelLen is 32768: prefill needs 20.52 GiB on each GPU (Qwen/Qwen3.5-9B over tensorParallelSize 1 x "
        "pipelineParallelSize 1: weights 17.97 GiB, KV cache of one sequence of 32768 tokens 1.00 GiB, state 0.05 GiB, activations "
        f"about 1.50 GiB), and gpuMemoryUtilization 0.9 of 22888 MiB (L4) is 20.12 GiB. {SET}model.maxModelLen' 19456"
    )
    assert faults(model__maxModelLen=19456) == []
    assert len(faults(model__maxModelLen=19472)) == 2


def test_a_smaller_kv_cache_makes_room_for_a_longer_context() -> None:
    smaller = {"kv_cache_dtype": "fp8"}

    assert faults(model__maxModelLen=32768, prefill__engineKwargs=smaller, decode__engineKwargs=smaller) == []


@pytest.mark.parametrize(
    ("instance", "gpu", "capability", "gpus"),
    [("g4dn.12xlarge", "T4", 7.5, 4), ("g4dn.metal", "T4", 7.5, 8), ("p3dn.24xlarge", "V100", 7.0, 8)],
)
def test_bfloat16_needs_a_gpu_that_computes_in_it(instance: str, gpu: str, capability: float, gpus: int) -> None:
    on_all = {"prefill": sizes(gpus), "decode": sizes(gpus), "model": DENSE, "gpuNodes__instanceType": instance}

    assert faults(**on_all) == [
        f'ray-llm-eks:model.dtype is "bfloat16": vLLM takes it from compute capability 8.0 on, and the {gpu} of a {instance} has '
        f"{capability}. {SET}model.dtype' float16 (or choose another gpuNodes.instanceType)"
    ]
    assert faults(**on_all | {"model": DENSE | {"dtype": "float16"}}) == []


@pytest.mark.parametrize(("gpu", "count"), [("V100", 1), ("A100", 0), ("B900", 0)])
def test_a_described_type_is_judged_by_the_name_of_its_gpu(gpu: str, count: int) -> None:
    described = {"gpuNodes__instanceType": "p9.48xlarge", "gpuNodes__hardware": HARDWARE | {"gpuName": gpu}}

    assert len(faults(model=DENSE, prefill=sizes(8), decode=sizes(8), **described)) == count


def test_the_weights_fit_the_disks_of_a_node_beside_the_images() -> None:
    described = {"gpuNodes__instanceType": "p9.48xlarge", "prefill": sizes(8), "decode": sizes(8)}
    model = {"id": "llama", "source": "meta-llama/Llama-3.3-70B-Instruct"}

    def on(nvme_gb: int) -> list[str]:
        return faults(model=model, gpuNodes__hardware=HARDWARE | {"nvmeGb": nvme_gb}, **described)

    assert on(250) == [
        'ray-llm-eks:model.source is "meta-llama/Llama-3.3-70B-Instruct": its weights in bfloat16 are 141.2 GB, cached whole on every '
        "GPU node, and the 250 GB of instance storage of a p9.48xlarge leave 125.0 GB: the kubelet keeps 10% free, and images and "
        "logs take about 100 GB. Choose a type with more instance storage (gpuNodes.instanceType), or a smaller model."
    ]
    assert [len(on(nvme_gb)) for nvme_gb in (267, 268)] == [1, 0]


@pytest.mark.parametrize(
    "key", ["kv_connector", "kv_role", "kv_load_failure_policy", "kv_connector_extra_config", "engine_id"]
)
def test_a_part_of_the_kv_transfer_config_is_no_engine_argument(key: str) -> None:
    assert faults(decode__engineKwargs={key: "fail"}) == [
        f"ray-llm-eks:decode.engineKwargs.{key}: it belongs into kv_transfer_config, which the service writes, and vLLM takes it nowhere "
        f"else. Type: pulumi config rm --path 'ray-llm-eks:decode.engineKwargs.{key}'"
    ]


def test_a_hybrid_model_keeps_its_cache_manager() -> None:
    assert faults(prefill__engineKwargs={"disable_hybrid_kv_cache_manager": True}) == [
        "ray-llm-eks:prefill.engineKwargs.disable_hybrid_kv_cache_manager is true: Qwen/Qwen3.5-9B is a hybrid model, and without that "
        "manager vLLM has no cache for its two kinds of layers. Type: pulumi config rm --path "
        "'ray-llm-eks:prefill.engineKwargs.disable_hybrid_kv_cache_manager'"
    ]


def test_a_dense_model_needs_no_hybrid_cache_manager() -> None:
    assert faults("prod", prefill__engineKwargs={"disable_hybrid_kv_cache_manager": True}) == []


def test_overrides_of_the_model_are_no_secret_and_the_token_is() -> None:
    assert (
        faults(prefill__engineKwargs={"hf_overrides": {"a": 1}}, decode__engineKwargs={"hf_overrides": {"a": 1}}) == []
    )
    assert "hf_token looks like a secret" in faults(decode__engineKwargs={"hf_token": "x"})[0]


def test_every_fault_of_a_far_too_long_context_gives_the_same_number_and_it_fits() -> None:
    found = faults(model__maxModelLen=10_000_000)

    [fix] = {fault.rpartition(". ")[2] for fault in found}
    assert len(found) == 3
    assert fix == "Type: pulumi config set --path 'ray-llm-eks:model.maxModelLen' 19456"
    assert faults(model__maxModelLen=19456) == []
