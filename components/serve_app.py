"""The application Ray Serve runs: prefill and decode as two deployments of one model, as a plain document and as text.

The document is what KubeRay takes as ``spec.serveConfigV2``. It is one string there, so a single unknown inside would
hide all of it from a preview: everything here takes and gives plain values.

Shapes and limits come from Ray 2.58 (``build_pd_openai_app``, ``LLMConfig``) and vLLM 0.26 (``KVTransferConfig``,
``AsyncEngineArgs``).
"""

import copy
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NotRequired, TypedDict

import yaml

from components.choices import Dtype

IMPORT_PATH: Final = "ray.serve.llm:build_pd_openai_app"
"""Ray's own builder of a prefill/decode application: configuration only, no code of ours in the image."""

ROLE_RESOURCE_SHARE: Final = 0.001
"""How much of the role's custom Ray resource each GPU of a replica asks for: next to nothing, so that only the name counts."""

OWNED_ENGINE_KWARGS: Final[Mapping[str, str]] = {
    "model": "model.source",
    "served_model_name": "model.id",
    "model_id": "model.id",
    "model_source": "model.source",
    "model_loading_config": "model.id and model.source",
    "tokenizer": "model.source, with the tokenizer beside the weights",
    "max_model_len": "model.max_model_len",
    "dtype": "model.dtype",
    "gpu_memory_utilization": "model.gpu_memory_utilization",
    "enforce_eager": "model.enforce_eager",
    "tensor_parallel_size": "tensor_parallel_size of the role",
    "pipeline_parallel_size": "pipeline_parallel_size of the role",
    "data_parallel_size": "replicas of the role, each of which is one engine",
    "kv_transfer_config": "the service, which gives both roles the NIXL connector with backend LIBFABRIC",
    "hf_token": "the token of the service, which stays in a Secret",
}
"""Engine arguments that a role may not set by hand, each with what sets it, for both roles alike."""

SHARED_ENGINE_KWARGS: Final = (
    "attention_backend",
    "block_size",
    "kv_cache_dtype",
    "quantization",
    "speculative_config",
)
"""Engine arguments that both roles must set alike: they are part of the hash by which vLLM refuses a foreign KV cache."""


class Role(StrEnum):
    """What a worker does with a prompt. The value names the worker group and its custom Ray resource as well."""

    PREFILL = "prefill"
    """Computes the KV cache of the prompt and hands it over."""
    DECODE = "decode"
    """Takes the KV cache over and generates the answer."""

    @property
    def kv_role(self) -> str:
        """The role in vLLM's ``kv_transfer_config``; vLLM 0.26 deprecates ``kv_both`` for the NIXL connector."""
        return "kv_producer" if self is Role.PREFILL else "kv_consumer"


class ModelArgs(TypedDict):
    """The model and how every engine runs it. Both roles get exactly the same."""

    id: str
    """The name clients ask for, for example ``qwen3.5-9b``."""
    source: str
    """Where the weights come from: a Hugging Face repository such as ``Qwen/Qwen3.5-9B``, or a path in the image."""
    max_model_len: int
    """Longest prompt plus answer, in tokens."""
    dtype: Dtype
    """Number format of weights and KV cache."""
    gpu_memory_utilization: float
    """Share of the GPU's memory, 0 to 1, that the engine may take."""
    enforce_eager: bool
    """Skip CUDA graphs: a lower peak of memory for slower decode steps."""


class RoleArgs(TypedDict):
    """The replicas of one role."""

    replicas: int
    """Number of engines; each has a whole worker, and thus a whole node."""
    tensor_parallel_size: int
    """GPUs that share each layer."""
    pipeline_parallel_size: int
    """Stages the layers are cut into; the product of both sizes is the number of GPUs of one worker."""
    engine_kwargs: NotRequired[dict[str, Any]]
    """Further vLLM engine arguments by vLLM's own names; none of those this component owns."""


def check_engine_kwargs(prefill: Mapping[str, Any], decode: Mapping[str, Any]) -> list[str]:
    """Finds engine arguments that a role may not set, or that the two roles set differently.

    Args:
        prefill: The further engine arguments of the prefill role.
        decode: The same of the decode role.

    Returns:
        One sentence per fault, starting with the field. Values are not repeated: one may hold a token.
    """
    owned = [
        f"{role}.engine_kwargs.{key} is set by {OWNED_ENGINE_KWARGS[key]}: remove it here"
        for role, kwargs in ((Role.PREFILL, prefill), (Role.DECODE, decode))
        for key in kwargs
        if key in OWNED_ENGINE_KWARGS
    ]
    unlike = [
        f"decode.engine_kwargs.{key} differs from prefill's, and decode would refuse the KV cache of prefill: give both the same"
        for key in unlike_engine_kwargs(prefill, decode)
    ]
    return owned + unlike


def unlike_engine_kwargs(prefill: Mapping[str, Any], decode: Mapping[str, Any]) -> list[str]:
    """The engine arguments that both roles must set alike and do not."""
    return [key for key in SHARED_ENGINE_KWARGS if prefill.get(key) != decode.get(key)]


def replica_fault(tensor_parallel_size: int, pipeline_parallel_size: int, gpus: int) -> str | None:
    """Why a replica does not take exactly one worker of ``gpus`` GPUs, or None where it does."""
    product = tensor_parallel_size * pipeline_parallel_size
    if product == gpus:
        return None
    sizes = f"tensor_parallel_size {tensor_parallel_size} x pipeline_parallel_size {pipeline_parallel_size} = {product}"
    worker = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    if product < gpus:
        return f"{sizes} leaves GPUs idle: a privileged worker owns all {gpus} of its node"
    if pipeline_parallel_size > 1:
        return (
            f"{sizes} would stretch over workers of {worker}: the second node of a pipeline holds no replica and is never Ready, "
            "and NixlConnector fails with it (vllm-project/vllm#40674)"
        )
    return f"{sizes} is more than the {worker} of a worker, and a replica lives on one node"


def serve_config(
    app_name: str,
    model: ModelArgs,
    prefill: RoleArgs,
    decode: RoleArgs,
    accelerator_type: str | None = None,
) -> dict[str, Any]:
    """The document of ``spec.serveConfigV2``: one application with one deployment per role.

    ``proxy_location`` stays unset, which means a proxy on every node with a replica. A worker's readiness asks the proxy
    on its own node, so ``HeadOnly`` would leave every worker unready.

    The engine arguments must have passed `check_engine_kwargs`.

    Args:
        app_name: The application's name in Ray Serve.
        model: The model, equal for both roles: Ray refuses two ids, vLLM two kinds of cache.
        prefill: Replicas and parallelism of the prefill role.
        decode: The same of the decode role.
        accelerator_type: Ray's name of the GPU, such as ``L4``. ``None`` leaves it to the role's own resource.

    """
    return {
        "applications": [
            {
                "name": app_name,
                "route_prefix": "/",
                "import_path": IMPORT_PATH,
                "args": {
                    "prefill_config": _llm_config(Role.PREFILL, model, prefill, accelerator_type),
                    "decode_config": _llm_config(Role.DECODE, model, decode, accelerator_type),
                },
            }
        ]
    }


def render_serve_config(document: Mapping[str, Any]) -> str:
    """The document as YAML text: keys in the order given, everything written out, the same text for the same values.

    KubeRay compares the text to see whether the application changed, and a policy reads it: hence no anchors.
    """
    text = yaml.dump(  # pyright: ignore[reportUnknownMemberType]  (its stub leaves the type of width open)
        document, Dumper=_PlainDumper, sort_keys=False, default_flow_style=False, width=10_000
    )
    return text


class _PlainDumper(yaml.SafeDumper):
    """A YAML dumper that writes a repeated value again instead of pointing at it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _llm_config(role: Role, model: ModelArgs, args: RoleArgs, accelerator_type: str | None) -> dict[str, Any]:
    """Ray's ``LLMConfig`` of one role."""
    engine_kwargs: dict[str, Any] = {
        "max_model_len": model["max_model_len"],
        "dtype": Dtype(model["dtype"]).value,
        "gpu_memory_utilization": model["gpu_memory_utilization"],
        "enforce_eager": model["enforce_eager"],
        "tensor_parallel_size": args["tensor_parallel_size"],
    }
    if args["pipeline_parallel_size"] > 1:
        engine_kwargs["pipeline_parallel_size"] = args["pipeline_parallel_size"]
    engine_kwargs |= copy.deepcopy(args.get("engine_kwargs", {}))
    engine_kwargs["kv_transfer_config"] = _kv_transfer_config(role)

    config: dict[str, Any] = {
        "model_loading_config": {"model_id": model["id"], "model_source": model["source"]},
        "engine_kwargs": engine_kwargs,
        # Repeated by Ray for every GPU of the replica; the replica's own CPU is added to the first bundle.
        "placement_group_config": {"bundle_per_worker": {"GPU": 1, role.value: ROLE_RESOURCE_SHARE}},
        "deployment_config": {"num_replicas": args["replicas"]},
    }
    if accelerator_type is not None:
        config["accelerator_type"] = accelerator_type
    return config


def _kv_transfer_config(role: Role) -> dict[str, Any]:
    """How KV cache travels: NIXL over libfabric, and a failed transfer fails the request.

    ``kv_buffer_device`` is left alone: both roles run on the same type, so vLLM's default is the same on both, which is
    what libfabric needs (a host-memory reader against a GPU buffer fails before ofiwg/libfabric#12566). On types without
    GPUDirect libfabric itself copies through host memory.
    """
    return {
        "kv_connector": "NixlConnector",
        "kv_role": role.kv_role,
        # The other policy, recompute, answers from the decode engine alone and so hides a broken fabric.
        "kv_load_failure_policy": "fail",
        # The only place vLLM reads it; without it NIXL takes UCX and runs at TCP speed (vllm-project/vllm#41814).
        "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
    }
