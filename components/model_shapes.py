"""What a model weighs on a GPU: its shape, and the arithmetic from shape to bytes.

Rows are config.json of the named Hugging Face repository. ``parameters`` counts what vLLM loads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

GIB: Final = 1024**3
MIB: Final = 1024**2

ACTIVATION_RESERVE_BYTES: Final = 3 * GIB // 2
"""An estimate: activations of a prefill step, logits and CUDA libraries, as vLLM profiles them at start. The reference
deployment (Qwen3.5-9B on an L4 at 0.90) starts with 2.1 GiB left over for these and the KV cache together."""

DTYPE_BYTES: Final[Mapping[str, int]] = MappingProxyType({"bfloat16": 2, "float16": 2, "float32": 4})


@dataclass(frozen=True)
class ModelShape:
    """The numbers of a model that decide where it fits.

    ``kv_layers`` is the number of layers that hold a KV cache: all of a dense model, the full-attention ones of a
    hybrid. ``state_bytes`` is what one sequence holds in all other layers together, 0 for a dense model.
    ``max_positions`` is the longest context the model was made for.
    """

    parameters: int
    layers: int
    kv_layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hybrid: bool = False
    state_bytes: int = 0
    max_positions: int | None = None


@dataclass(frozen=True)
class GpuMemory:
    """What one GPU of a replica must hold, in bytes."""

    weights: int
    kv_cache: int
    state: int
    reserve: int = ACTIVATION_RESERVE_BYTES

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.weights + self.kv_cache + self.state + self.reserve


def gpu_memory(
    shape: ModelShape,
    *,
    element_bytes: int,
    kv_element_bytes: int,
    tensor_parallel: int,
    pipeline_parallel: int,
    tokens: int,
) -> GpuMemory:
    """The memory one GPU needs to serve a single sequence of ``tokens`` tokens.

    weights  = parameters x element_bytes / (TP x PP)
    kv_cache = tokens x kv_layers / PP x 2 x KV heads of the GPU x head_dim x kv_element_bytes
    state    = state_bytes / (TP x PP)
    reserve  = ACTIVATION_RESERVE_BYTES

    KV heads of the GPU are kv_heads / TP and at least 1: vLLM copies heads where TP is larger. Divisions round up.
    """
    gpus = tensor_parallel * pipeline_parallel
    kv_heads = max(1, -(-shape.kv_heads // tensor_parallel))
    kv_layers = -(-shape.kv_layers // pipeline_parallel)
    return GpuMemory(
        weights=-(-shape.parameters * element_bytes // gpus),
        kv_cache=tokens * kv_layers * 2 * kv_heads * shape.head_dim * kv_element_bytes,
        state=-(-shape.state_bytes // gpus),
    )


def _gated_delta_net_state(layers: int, value_heads: int, key_dim: int, value_dim: int) -> int:
    """Bytes of recurrent state, 4 bytes an element, plus 1 MiB of convolution state (inferred from the shapes)."""
    return layers * value_heads * key_dim * value_dim * 4 + MIB


MODEL_SHAPES: Final[Mapping[str, ModelShape]] = MappingProxyType(
    {
        # 8.95e9 of the text model, and the vision encoder and the multi-token-prediction layer of its checkpoint.
        "Qwen/Qwen3.5-9B": ModelShape(
            parameters=9_650_000_000,
            layers=32,
            kv_layers=8,
            heads=16,
            kv_heads=4,
            head_dim=256,
            hybrid=True,
            state_bytes=_gated_delta_net_state(24, 32, 128, 128),
            max_positions=262_144,
        ),
        "Qwen/Qwen3-8B": ModelShape(8_200_000_000, 36, 36, 32, 8, 128, max_positions=40_960),
        "Qwen/Qwen3-14B": ModelShape(14_800_000_000, 40, 40, 40, 8, 128, max_positions=40_960),
        "Qwen/Qwen3-32B": ModelShape(32_800_000_000, 64, 64, 64, 8, 128, max_positions=40_960),
        "meta-llama/Llama-3.1-8B-Instruct": ModelShape(8_030_000_000, 32, 32, 32, 8, 128, max_positions=131_072),
        "meta-llama/Llama-3.3-70B-Instruct": ModelShape(70_600_000_000, 80, 80, 64, 8, 128, max_positions=131_072),
    }
)
"""Hugging Face repository -> shape. A model that is not here needs ``model.shape`` in the stack's configuration."""
