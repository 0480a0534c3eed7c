"""Rules of the model: how it is spread over GPUs, whether it fits them, and which engine arguments a stack may set."""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from components.choices import Dtype
from components.faults import Fault, Hidden, looks_secret, path, remove, respelt, set_to, shown
from components.model_shapes import DTYPE_BYTES, GIB, MIB, MODEL_SHAPES, GpuMemory, ModelShape, gpu_memory
from components.node_budget import DISK_KEPT_FREE, IMAGE_RESERVE_GB, weights_room_gb
from components.serve_app import OWNED_ENGINE_KWARGS, replica_fault, unlike_engine_kwargs
from components.settings.models import RoleSettings, Settings
from components.settings.node_rules import hardware_of
from components.settings.reading import NUM_GPUS
from components.settings.rules import Rule
from policies.ray_efa_policies.instances import InstanceType

BFLOAT16_CAPABILITY: Final = 8.0
"""Below this compute capability vLLM refuses bfloat16 (vllm-project/vllm#946, #1157)."""

_NO_ARGUMENT: Final = {
    "num_gpus": NUM_GPUS,
    "ray_actor_options": NUM_GPUS,
    **dict.fromkeys(
        (
            *(
                "kv_connector",
                "kv_connector_module_path",
                "kv_connector_extra_config",
                "kv_role",
                "kv_rank",
                "kv_parallel_size",
            ),
            *(
                "kv_ip",
                "kv_port",
                "kv_buffer_device",
                "kv_buffer_size",
                "kv_load_failure_policy",
                "enable_permute_local_kv",
            ),
            "engine_id",
        ),
        "it belongs into kv_transfer_config, which the service writes, and vLLM takes it nowhere else",
    ),
    "runtime_env": "the environment of the workers is the pod's; a runtime_env would hide what runs there",
}
_SECRET = re.compile(r"(^|_)(token|secret|password|passwd|api_?key|credentials?)($|_)", re.IGNORECASE)
# Settings of the tokenizer and scheduler count tokens; they are no access tokens.
_COUNTS_TOKENS = re.compile(r"tokens|token_(ids?|budget|limit)|num_.*token|^skip_tokenizer", re.IGNORECASE)
_KV_CACHE_BYTES: Final = {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "bfloat16": 2, "float16": 2}


def shape_of(s: Settings) -> ModelShape | None:
    """The model's shape, or None where neither the table nor the configuration has it."""
    return s.model.shape if s.model.shape_block is not None or s.model.source in MODEL_SHAPES else None


def known_shape(s: Settings) -> Iterator[Fault]:
    """Where a model fits can be told only of a model whose shape is known."""
    if shape_of(s) is None:
        at = path("model", "shape")
        yield Fault(
            at,
            f"the table does not know {s.model.source}, so nobody can tell whether it fits the GPUs",
            f"Write {at} with parameters, layers, heads, kvHeads and headDim from its config.json (for a hybrid model hybrid, "
            f"kvLayers and stateBytes too), or choose one of: {', '.join(MODEL_SHAPES)}.",
        )


def shape_fits_itself(s: Settings) -> Iterator[Fault]:
    """A shape written by hand does not contradict itself."""
    block = s.model.shape_block
    if block is None:
        return
    if block.kv_layers is not None and block.kv_layers > block.layers:
        at = path("model", "shape", "kvLayers")
        yield Fault(at, f"the model has {block.layers} layers", set_to(at, block.layers), block.kv_layers)
    if block.kv_heads > block.heads or block.heads % block.kv_heads:
        at = path("model", "shape", "kvHeads")
        yield Fault(
            at,
            f"{block.heads} heads share them evenly",
            "Write num_key_value_heads of its config.json.",
            block.kv_heads,
        )


def context_length(s: Settings) -> Iterator[Fault]:
    """The model was made for the context that is asked for."""
    shape, at = shape_of(s), path("model", "maxModelLen")
    if shape is not None and shape.max_positions is not None and s.model.max_model_len > shape.max_positions:
        why = f"{s.model.source} was made for {shape.max_positions} tokens"
        yield Fault(at, why, set_to(at, longest_context(s, shape) or shape.max_positions), s.model.max_model_len)


def replica_takes_its_worker(s: Settings) -> Iterator[Fault]:
    """TP x PP is the number of GPUs of a node: one worker a node, one replica a worker."""
    hardware = hardware_of(s)
    if hardware is None:
        return
    gpus = hardware.gpus
    for name, role in s.roles.items():
        tensor, pipeline = role.tensor_parallel_size, role.pipeline_parallel_size
        fault = replica_fault(tensor, pipeline, gpus)
        if fault is None:
            continue
        why = f"{respelt(fault)} ({hardware.name})"
        tensor_at, pipeline_at = path(name, "tensorParallelSize"), path(name, "pipelineParallelSize")
        if tensor * pipeline > gpus and pipeline > 1:
            yield Fault(pipeline_at, why, f"{set_to(pipeline_at, 1)} and set {tensor_at} to {gpus}", pipeline)
        elif gpus % pipeline:
            yield Fault(tensor_at, why, f"{set_to(tensor_at, gpus)} and set {pipeline_at} to 1", tensor)
        else:
            yield Fault(tensor_at, why, set_to(tensor_at, gpus // pipeline), tensor)


def heads_over_gpus(s: Settings) -> Iterator[Fault]:
    """Attention heads and KV heads spread evenly over the GPUs of a layer."""
    shape = shape_of(s)
    if shape is None:
        return
    for name, role in s.roles.items():
        tensor, at = role.tensor_parallel_size, path(name, "tensorParallelSize")
        fix = f"Choose a type with fewer or more GPUs, or a model whose heads {tensor} divides."
        if shape.heads % tensor:
            yield Fault(at, f"it does not divide the {shape.heads} attention heads of {s.model.source}", fix, tensor)
        elif shape.kv_heads % tensor and tensor % shape.kv_heads:
            yield Fault(
                at, f"it and the {shape.kv_heads} KV heads of {s.model.source} do not divide each other", fix, tensor
            )
        if role.pipeline_parallel_size > shape.layers:
            where = path(name, "pipelineParallelSize")
            yield Fault(
                where, f"{s.model.source} has {shape.layers} layers", set_to(where, 1), role.pipeline_parallel_size
            )


def same_parallelism(s: Settings) -> Iterator[Fault]:
    """Prefill never has more tensor parallelism than decode, and a hybrid model has the same on both."""
    prefill, decode, shape = s.prefill.tensor_parallel_size, s.decode.tensor_parallel_size, shape_of(s)
    if prefill == decode:
        return
    at = path("prefill", "tensorParallelSize")
    if shape is not None and shape.hybrid:
        why = f"{s.model.source} is a hybrid model, whose state moves only between equal sizes, and decode has {decode}"
        yield Fault(at, f"{why} (vllm-project/vllm#42895)", set_to(at, decode), prefill)
    elif prefill > decode:
        why = f"NixlConnector does not hand a KV cache from more GPUs to fewer, and decode has {decode}"
        yield Fault(at, f"{why} (vllm-project/vllm#43523)", set_to(at, decode), prefill)


def engine_kwargs(s: Settings) -> Iterator[Fault]:
    """Engine arguments are vLLM's, are nobody else's, hold no secret, and agree where both roles must."""
    for name, role in s.roles.items():
        for key, value in role.engine_kwargs.items():
            yield from _engine_kwarg(path(name, "engineKwargs", key), name, key, value)
    prefill, decode = s.prefill.engine_kwargs, s.decode.engine_kwargs
    for key in unlike_engine_kwargs(prefill, decode):
        has = f"prefill has {_or_unset(prefill.get(key))}, decode {_or_unset(decode.get(key))}"
        why = f"{has}: decode refuses a KV cache made otherwise"
        yield Fault(path("decode", "engineKwargs", key), why, "Give both roles the same value, or neither one.")


def hybrid_cache(s: Settings) -> Iterator[Fault]:
    """A hybrid model keeps the KV cache manager that can hold two kinds of layers."""
    shape, switch = shape_of(s), "disable_hybrid_kv_cache_manager"
    if shape is None or not shape.hybrid:
        return
    for name, role in s.roles.items():
        if role.engine_kwargs.get(switch):
            at = path(name, "engineKwargs", switch)
            why = f"{s.model.source} is a hybrid model, and without that manager vLLM has no cache for its two kinds of layers"
            yield Fault(at, why, remove(at), role.engine_kwargs[switch])


def fits_gpu_memory(s: Settings) -> Iterator[Fault]:
    """Weights, the KV cache of one longest sequence and the reserve fit the share of a GPU that vLLM may use."""
    hardware, shape = hardware_of(s), shape_of(s)
    if hardware is None or shape is None:
        return
    for name, role in s.roles.items():
        if role.tensor_parallel_size * role.pipeline_parallel_size > hardware.gpus:
            continue
        need = replica_memory(s, shape, role)
        budget = _vllm_share(s, hardware)
        if need.total <= budget:
            continue
        spread = f"tensorParallelSize {role.tensor_parallel_size} x pipelineParallelSize {role.pipeline_parallel_size}"
        why = (
            f"{name} needs {_gib(need.total)} on each GPU ({s.model.source} over {spread}: weights {_gib(need.weights)}, KV cache of one "
            f"sequence of {s.model.max_model_len} tokens {_gib(need.kv_cache)}, state {_gib(need.state)}, activations about "
            f"{_gib(need.reserve)}), and gpuMemoryUtilization {s.model.gpu_memory_utilization:g} of {hardware.gpu_memory_mib} MiB "
            f"({hardware.gpu_name}) is {_gib(budget)}"
        )
        at = path("model", "maxModelLen")
        if tokens := longest_context(s, shape):
            yield Fault(at, why, set_to(at, tokens), s.model.max_model_len)
        else:
            fix = "Choose a type with more GPU memory or more GPUs (gpuNodes.instanceType), or a smaller model."
            yield Fault(path("model", "source"), why, fix, s.model.source)


def fits_instance_storage(s: Settings) -> Iterator[Fault]:
    """The whole model lies on every GPU node's own disks, beside the images."""
    hardware, shape = hardware_of(s), shape_of(s)
    if hardware is None or shape is None:
        return
    weights, room = shape.parameters * DTYPE_BYTES[s.model.dtype] / 1e9, weights_room_gb(hardware.nvme_gb)
    if weights > room:
        why = (
            f"its weights in {s.model.dtype} are {weights:.1f} GB, cached whole on every GPU node, and the {hardware.nvme_gb} GB of instance "
            f"storage of a {hardware.name} leave {room:.1f} GB: the kubelet keeps {DISK_KEPT_FREE:.0%} free, and images and logs take "
            f"about {IMAGE_RESERVE_GB} GB"
        )
        fix = "Choose a type with more instance storage (gpuNodes.instanceType), or a smaller model."
        yield Fault(path("model", "source"), why, fix, s.model.source)


def dtype_of_the_gpu(s: Settings) -> Iterator[Fault]:
    """The GPU computes in the number format. One that nobody described is newer than the catalogue, and passes."""
    hardware, at = hardware_of(s), path("model", "dtype")
    capability = hardware.compute_capability if hardware is not None else None
    if hardware is None or capability is None or s.model.dtype is not Dtype.BFLOAT16:
        return
    if capability < BFLOAT16_CAPABILITY:
        why = (
            f"vLLM takes it from compute capability {BFLOAT16_CAPABILITY} on, and the {hardware.gpu_name} of a {hardware.name} has "
            f"{capability}"
        )
        yield Fault(at, why, f"{set_to(at, 'float16')} (or choose another gpuNodes.instanceType)", s.model.dtype)


def longest_context(s: Settings, shape: ModelShape) -> int | None:
    """The most tokens that the model was made for and that both roles hold, where the hardware is known; None where there are none.

    One number, so that every rule about maxModelLen says the same.
    """
    hardware = hardware_of(s)
    limits = [shape.max_positions] if shape.max_positions is not None else []
    for role in s.roles.values():
        if hardware is None or role.tensor_parallel_size * role.pipeline_parallel_size > hardware.gpus:
            continue
        need = replica_memory(s, shape, role)
        rest = _vllm_share(s, hardware) - need.weights - need.state - need.reserve
        limits.append(rest * s.model.max_model_len // need.kv_cache // 16 * 16)
    longest = min(limits, default=0)
    return longest if longest >= 16 else None


def replica_memory(s: Settings, shape: ModelShape, role: RoleSettings) -> GpuMemory:
    """What one GPU of a replica holds while it serves one sequence of maxModelLen tokens."""
    element = DTYPE_BYTES[s.model.dtype]
    return gpu_memory(
        shape,
        element_bytes=element,
        kv_element_bytes=_KV_CACHE_BYTES.get(str(role.engine_kwargs.get("kv_cache_dtype")), element),
        tensor_parallel=role.tensor_parallel_size,
        pipeline_parallel=role.pipeline_parallel_size,
        tokens=s.model.max_model_len,
    )


def _engine_kwarg(at: str, role: str, key: str, value: JsonValue) -> Iterator[Fault]:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()
    if secret := next(_secrets(snake, value), None):
        token = path("model", "huggingFaceToken")
        why = f"{secret} looks like a secret, and serveConfigV2 is plain text that everybody in the cluster may read"
        yield Fault(at, why, f"{remove(at)}, then pulumi config set --secret --path '{token}'", Hidden())
    elif snake.startswith("proxy_"):
        yield Fault(at, "Ray no longer uses proxy settings: decode hands requests on", remove(at))
    elif snake in _NO_ARGUMENT:
        yield Fault(at, _NO_ARGUMENT[snake], remove(at))
    elif owner := OWNED_ENGINE_KWARGS.get(snake):
        yield Fault(at, f"it is set by {respelt(owner)}", remove(at))
    elif key != snake:
        renamed = path(role, "engineKwargs", snake)
        yield Fault(at, "vLLM spells its arguments in snake_case", f"{set_to(renamed, value)}; then {remove(at)}")


def _secrets(key: str, value: JsonValue) -> Iterator[str]:
    """Names, from the outside in, of what looks like a secret: by its key, whatever the value is."""
    if _SECRET.search(key.replace("-", "_")) and not _COUNTS_TOKENS.search(key):
        yield key
    if isinstance(value, dict):
        for inner, content in value.items():
            yield from _secrets(inner, content)
    elif isinstance(value, list):
        for content in value:
            yield from _secrets(key, content)
    elif isinstance(value, str) and looks_secret(value):
        yield key


def _or_unset(value: JsonValue) -> str:
    return "nothing" if value is None else shown(value)


def _vllm_share(s: Settings, hardware: InstanceType) -> int:
    return int(s.model.gpu_memory_utilization * hardware.gpu_memory_mib * MIB)


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"


_TYPE = ("gpuNodes.instanceType", "gpuNodes.hardware")
_SHAPE = ("model.source", "model.shape")
_TENSOR = ("prefill.tensorParallelSize", "decode.tensorParallelSize")
_PIPELINE = ("prefill.pipelineParallelSize", "decode.pipelineParallelSize")
_KWARGS = ("prefill.engineKwargs", "decode.engineKwargs")
_MEMORY = ("model.dtype", "model.maxModelLen", "model.gpuMemoryUtilization")

RULES: Final = (
    Rule(_SHAPE, known_shape),
    Rule(_SHAPE, shape_fits_itself),
    Rule((*_SHAPE, "model.maxModelLen"), context_length),
    Rule((*_TYPE, *_TENSOR, *_PIPELINE), replica_takes_its_worker),
    Rule((*_SHAPE, *_TENSOR, *_PIPELINE), heads_over_gpus),
    Rule((*_SHAPE, *_TENSOR), same_parallelism),
    Rule(_KWARGS, engine_kwargs),
    Rule((*_SHAPE, *_KWARGS), hybrid_cache),
    Rule((*_SHAPE, *_TYPE, *_TENSOR, *_PIPELINE, *_KWARGS, *_MEMORY), fits_gpu_memory),
    Rule((*_SHAPE, *_TYPE, "model.dtype"), fits_instance_storage),
    Rule((*_TYPE, "model.dtype"), dtype_of_the_gpu),
)
