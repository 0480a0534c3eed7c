"""Rules of the model: how it is spread over GPUs, whether it fits them, and which engine arguments a stack may set."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from components.model_shapes import DTYPE_BYTES, GIB, MIB, MODEL_SHAPES, GpuMemory, ModelShape, gpu_memory
from components.serve_app import OWNED_ENGINE_KWARGS, SHARED_ENGINE_KWARGS
from components.settings.faults import Fault, Hidden, looks_secret, path, remove, set_to, shown
from components.settings.models import Role, Settings
from components.settings.node_rules import hardware_of
from components.settings.rules import Rule

_OWNERS: Final[Mapping[str, str]] = {
    "model": "model.source",
    "served_model_name": "model.id",
    "max_model_len": "model.maxModelLen",
    "dtype": "model.dtype",
    "gpu_memory_utilization": "model.gpuMemoryUtilization",
    "enforce_eager": "model.enforceEager",
    "tensor_parallel_size": "tensorParallelSize of the role",
    "pipeline_parallel_size": "pipelineParallelSize of the role",
    "kv_transfer_config": "the service, which gives both roles the NIXL connector with backend LIBFABRIC",
}
"""vLLM engine argument -> what sets it; a role may not set it too."""

_ONE_MODEL: Final = ("model", "served_model_name", "model_id", "model_source", "model_loading_config", "tokenizer")
_NO_ARGUMENT: Final = {
    "num_gpus": "the GPUs of a replica are tensorParallelSize x pipelineParallelSize; num_gpus has no effect on them",
    "ray_actor_options": "the GPUs of a replica are tensorParallelSize x pipelineParallelSize; num_gpus has no effect on them",
    "data_parallel_size": "one replica is one engine on one worker; set replicas",
    "runtime_env": "the environment of the workers is the pod's; a runtime_env would hide what runs there",
}
_SECRET = re.compile(r"(^|_)(token|secret|password|passwd|api_?key|credentials?)($|_)|^hf_", re.IGNORECASE)
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
        yield Fault(at, why, set_to(at, shape.max_positions), s.model.max_model_len)


def replica_takes_its_worker(s: Settings) -> Iterator[Fault]:
    """TP x PP is the number of GPUs of a node: one worker a node, one replica a worker."""
    hardware = hardware_of(s)
    if hardware is None:
        return
    gpus = hardware.gpus
    for name, role in s.roles.items():
        tensor, pipeline = role.tensor_parallel_size, role.pipeline_parallel_size
        product = tensor * pipeline
        if product == gpus:
            continue
        sizes = f"tensorParallelSize {tensor} x pipelineParallelSize {pipeline} = {product}"
        at = path(name, "tensorParallelSize")
        fix = set_to(at, gpus // pipeline if gpus % pipeline == 0 else gpus)
        if gpus % pipeline:
            fix += f" and set {path(name, 'pipelineParallelSize')} to 1"
        if product > gpus and pipeline > 1:
            at = path(name, "pipelineParallelSize")
            why = (
                f"{sizes} would stretch over workers of {gpus} {_gpus(gpus)}: the second node of a pipeline holds no replica and is "
                "never Ready, and NixlConnector fails with it (vllm-project/vllm#40674)"
            )
            yield Fault(at, why, f"{set_to(at, 1)} and set {path(name, 'tensorParallelSize')} to {gpus}", pipeline)
        elif product > gpus:
            why = f"{sizes} is more than the {gpus} {_gpus(gpus)} of a {hardware.name}; a replica lives on one node"
            yield Fault(at, why, fix, tensor)
        else:
            why = f"{sizes} leaves GPUs of a {hardware.name} idle: a privileged worker owns all {gpus} of its node"
            yield Fault(at, why, fix, tensor)


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
    for key in SHARED_ENGINE_KWARGS:
        prefill, decode = s.prefill.engine_kwargs.get(key), s.decode.engine_kwargs.get(key)
        if prefill != decode:
            at = path("decode", "engineKwargs", key)
            why = f"prefill has {_or_unset(prefill)}, decode {_or_unset(decode)}: decode refuses a KV cache made otherwise"
            yield Fault(at, why, "Give both roles the same value, or neither one.")


def fits_gpu_memory(s: Settings) -> Iterator[Fault]:
    """Weights, the KV cache of one longest sequence and the reserve fit the share of a GPU that vLLM may use."""
    hardware, shape = hardware_of(s), shape_of(s)
    if hardware is None or shape is None:
        return
    for name, role in s.roles.items():
        if role.tensor_parallel_size * role.pipeline_parallel_size > hardware.gpus:
            continue
        need = replica_memory(s, shape, role)
        budget = int(s.model.gpu_memory_utilization * hardware.gpu_memory_mib * MIB)
        if need.total <= budget:
            continue
        spread = f"tensorParallelSize {role.tensor_parallel_size} x pipelineParallelSize {role.pipeline_parallel_size}"
        why = (
            f"{name} needs {_gib(need.total)} on each GPU ({s.model.source} over {spread}: weights {_gib(need.weights)}, KV cache of one "
            f"sequence of {s.model.max_model_len} tokens {_gib(need.kv_cache)}, state {_gib(need.state)}, activations about "
            f"{_gib(need.reserve)}), and gpuMemoryUtilization {s.model.gpu_memory_utilization:g} of {hardware.gpu_memory_mib} MiB "
            f"({hardware.gpu_name}) is {_gib(budget)}"
        )
        rest = budget - need.weights - need.state - need.reserve
        tokens = rest * s.model.max_model_len // need.kv_cache // 16 * 16
        at = path("model", "maxModelLen")
        if tokens >= 16:
            yield Fault(at, why, set_to(at, tokens), s.model.max_model_len)
        else:
            fix = "Choose a type with more GPU memory or more GPUs (gpuNodes.instanceType), or a smaller model."
            yield Fault(path("model", "source"), why, fix, s.model.source)


def replica_memory(s: Settings, shape: ModelShape, role: Role) -> GpuMemory:
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
    elif snake in _ONE_MODEL:
        yield Fault(at, "both roles serve one model, which model.id and model.source name", remove(at))
    elif owner := _OWNERS.get(snake) or OWNED_ENGINE_KWARGS.get(snake):
        yield Fault(at, f"it is set by {owner}", remove(at))
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


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"


def _gpus(count: int) -> str:
    return "GPU" if count == 1 else "GPUs"


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
    Rule((*_SHAPE, *_TYPE, *_TENSOR, *_PIPELINE, *_KWARGS, *_MEMORY), fits_gpu_memory),
)
