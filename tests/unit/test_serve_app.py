from typing import Any

import pytest
import yaml

from components.choices import Dtype
from components.serve_app import ModelArgs, RoleArgs, check_engine_kwargs, render_serve_config, serve_config

MODEL: ModelArgs = {
    "id": "qwen3.5-9b",
    "source": "Qwen/Qwen3.5-9B",
    "max_model_len": 4096,
    "dtype": Dtype.BFLOAT16,
    "gpu_memory_utilization": 0.9,
    "enforce_eager": True,
}

# The reference deployment, written out: what has to come out whatever code makes it.
REFERENCE = """
applications:
- name: ray-llm
  route_prefix: /
  import_path: ray.serve.llm:build_pd_openai_app
  args:
    prefill_config:
      model_loading_config: {model_id: qwen3.5-9b, model_source: Qwen/Qwen3.5-9B}
      engine_kwargs:
        max_model_len: 4096
        dtype: bfloat16
        gpu_memory_utilization: 0.9
        enforce_eager: true
        tensor_parallel_size: 1
        kv_transfer_config:
          kv_connector: NixlConnector
          kv_role: kv_producer
          kv_load_failure_policy: fail
          kv_connector_extra_config: {backends: [LIBFABRIC]}
      placement_group_config: {bundle_per_worker: {GPU: 1, prefill: 0.001}}
      deployment_config: {num_replicas: 1}
    decode_config:
      model_loading_config: {model_id: qwen3.5-9b, model_source: Qwen/Qwen3.5-9B}
      engine_kwargs:
        max_model_len: 4096
        dtype: bfloat16
        gpu_memory_utilization: 0.9
        enforce_eager: true
        tensor_parallel_size: 1
        kv_transfer_config:
          kv_connector: NixlConnector
          kv_role: kv_consumer
          kv_load_failure_policy: fail
          kv_connector_extra_config: {backends: [LIBFABRIC]}
      placement_group_config: {bundle_per_worker: {GPU: 1, decode: 0.001}}
      deployment_config: {num_replicas: 1}
"""


def role(**changes: Any) -> RoleArgs:
    args: RoleArgs = {"replicas": 1, "tensor_parallel_size": 1, "pipeline_parallel_size": 1}
    return {**args, **changes}  # pyright: ignore[reportReturnType]


def roles_of(document: dict[str, Any]) -> dict[str, Any]:
    return document["applications"][0]["args"]


def test_the_reference_deployment_comes_out_value_for_value() -> None:
    rendered = render_serve_config(serve_config("ray-llm", MODEL, role(), role()))
    assert yaml.safe_load(rendered) == yaml.safe_load(REFERENCE)


def test_the_same_values_give_the_same_text() -> None:
    texts = {render_serve_config(serve_config("ray-llm", MODEL, role(), role())) for _ in range(3)}
    assert len(texts) == 1


def test_a_value_that_both_roles_share_is_written_out_twice() -> None:
    shared = {"compilation_config": {"cudagraph_capture_sizes": [1, 2, 4]}}
    rendered = render_serve_config(
        serve_config("ray-llm", MODEL, role(engine_kwargs=shared), role(engine_kwargs=shared))
    )
    assert "&" not in rendered
    assert "*" not in rendered
    assert rendered.count("cudagraph_capture_sizes") == 2


def test_engine_arguments_of_a_role_are_added_to_that_role_only() -> None:
    document = serve_config("ray-llm", MODEL, role(engine_kwargs={"max_num_batched_tokens": 8192}), role())
    args = roles_of(document)
    assert args["prefill_config"]["engine_kwargs"]["max_num_batched_tokens"] == 8192
    assert "max_num_batched_tokens" not in args["decode_config"]["engine_kwargs"]


def test_changing_the_document_does_not_change_the_arguments_it_was_made_of() -> None:
    kwargs = {"compilation_config": {"cudagraph_capture_sizes": [1]}}
    document = serve_config("ray-llm", MODEL, role(engine_kwargs=kwargs), role())
    roles_of(document)["prefill_config"]["engine_kwargs"]["compilation_config"]["cudagraph_capture_sizes"].append(2)
    assert kwargs == {"compilation_config": {"cudagraph_capture_sizes": [1]}}


def test_replicas_become_serve_replicas_of_the_role() -> None:
    args = roles_of(serve_config("ray-llm", MODEL, role(), role(replicas=2)))
    assert args["prefill_config"]["deployment_config"] == {"num_replicas": 1}
    assert args["decode_config"]["deployment_config"] == {"num_replicas": 2}


def test_pipeline_stages_are_named_only_where_there_is_more_than_one() -> None:
    args = roles_of(serve_config("ray-llm", MODEL, role(), role(tensor_parallel_size=2, pipeline_parallel_size=2)))
    assert "pipeline_parallel_size" not in args["prefill_config"]["engine_kwargs"]
    assert args["decode_config"]["engine_kwargs"]["pipeline_parallel_size"] == 2


def test_the_accelerator_type_is_on_both_roles_when_asked_for_and_absent_otherwise() -> None:
    asked = roles_of(serve_config("ray-llm", MODEL, role(), role(), accelerator_type="L4"))
    assert [asked[config]["accelerator_type"] for config in ("prefill_config", "decode_config")] == ["L4", "L4"]
    unasked = roles_of(serve_config("ray-llm", MODEL, role(), role()))
    assert all("accelerator_type" not in config for config in unasked.values())


def test_engine_arguments_of_vllm_raise_no_fault() -> None:
    assert check_engine_kwargs({"max_num_seqs": 64, "kv_cache_dtype": "fp8"}, {"kv_cache_dtype": "fp8"}) == []


def test_an_engine_argument_that_something_else_sets_is_refused() -> None:
    assert check_engine_kwargs({}, {"tensor_parallel_size": 2}) == [
        "decode.engine_kwargs.tensor_parallel_size is set by tensor_parallel_size of the role: remove it here"
    ]


@pytest.mark.parametrize("key", ["model", "served_model_name", "model_id", "model_source", "tokenizer"])
def test_a_role_has_no_model_of_its_own(key: str) -> None:
    [fault] = check_engine_kwargs({key: "Qwen/Qwen3-8B"}, {})
    assert fault.startswith(f"prefill.engine_kwargs.{key} is set by model.")


def test_a_token_among_the_engine_arguments_is_refused_without_being_repeated() -> None:
    [fault] = check_engine_kwargs({"hf_token": "hf_not_for_you"}, {})
    assert "stays in a Secret" in fault
    assert "hf_not_for_you" not in fault


def test_roles_that_keep_the_cache_in_different_formats_are_refused() -> None:
    assert check_engine_kwargs({"kv_cache_dtype": "fp8"}, {}) == [
        "decode.engine_kwargs.kv_cache_dtype differs from prefill's, and decode would refuse the KV cache of prefill: "
        "give both the same"
    ]


def test_all_faults_of_the_engine_arguments_are_found_at_once() -> None:
    faults = check_engine_kwargs({"dtype": "float16"}, {"model": "x", "quantization": "fp8"})
    assert [fault.split(" ")[0] for fault in faults] == [
        "prefill.engine_kwargs.dtype",
        "decode.engine_kwargs.model",
        "decode.engine_kwargs.quantization",
    ]
