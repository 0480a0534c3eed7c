"""What is allowed and still worth saying: advice the program logs as warnings."""

import ipaddress
from collections.abc import Iterator
from typing import Final

from components import versions
from components.choices import CapacityKind
from components.faults import path
from components.settings.models import Settings

PLACEHOLDER_RESERVATION: Final = "cr-0123456789abcdef0"
"""The id the repository's own prod stack carries; no account has it."""

DOCUMENTATION_RANGES: Final = tuple(map(ipaddress.IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))
"""Addresses nobody has (RFC 5737)."""


def notes(settings: Settings) -> list[str]:
    """Advice on a stack that is in order, each a sentence with the path it is about."""
    return [*_access(settings), *_capacity(settings), *_parallelism(settings), *_service(settings)]


def _access(s: Settings) -> Iterator[str]:
    endpoint, at = s.cluster.endpoint, path("cluster", "endpoint", "publicCidrs")
    for cidr in endpoint.public_cidrs:
        network = ipaddress.ip_network(cidr)
        if isinstance(network, ipaddress.IPv4Network) and any(
            network.subnet_of(known) for known in DOCUMENTATION_RANGES
        ):
            yield (
                f"{at}: {cidr} is a range of documentation, so nobody reaches the Kubernetes API, this program neither. Type: "
                f"pulumi config set --path '{path('cluster', 'endpoint', 'publicCidrs', 0)}' <your address>/32"
            )
        elif network.prefixlen == 0:
            yield f"{at}: {cidr} opens the Kubernetes API to the whole internet; authentication alone guards it."
    if not endpoint.public:
        yield f"{path('cluster', 'endpoint', 'public')}: the API answers inside the VPC only; run Pulumi where it is reached."
    if s.cluster.kubernetes_version != versions.KUBERNETES:
        at = path("cluster", "kubernetesVersion")
        yield f"{at}: {s.cluster.kubernetes_version} is offered by EKS; this project is tested with {versions.KUBERNETES}."


def _capacity(s: Settings) -> Iterator[str]:
    nodes = s.gpu_nodes
    if nodes.capacity.kind is not CapacityKind.ON_DEMAND and nodes.placement_group is None:
        yield (
            f"{path('gpuNodes', 'placementGroup')}: with a capacity {_reserved(nodes.capacity.kind)} no placement group is made, since "
            "instances would not launch into one the capacity was not bought in (eksctl-io/eksctl#7949); name it if it was."
        )
    if nodes.capacity.reservation_id == PLACEHOLDER_RESERVATION:
        at = path("gpuNodes", "capacity", "reservationId")
        yield f"{at}: {PLACEHOLDER_RESERVATION} is a placeholder that no account has. Type: pulumi config set --path '{at}' <id>"
    idle = nodes.count - s.prefill.replicas - s.decode.replicas
    if idle > 0:
        what = "1 GPU node has" if idle == 1 else f"{idle} GPU nodes have"
        yield f"{path('gpuNodes', 'count')}: {what} no worker and cost money all the same."
    if not nodes.hardware.gpudirect:
        yield (
            f"{path('gpuNodes', 'instanceType')}: {nodes.instance_type} has no GPUDirect, so the KV cache goes GPU, host, EFA, host, GPU "
            f"and takes longer than the bytes at {nodes.hardware.bandwidth_gbps} Gbit/s."
        )


def _parallelism(s: Settings) -> Iterator[str]:
    for name, role in s.roles.items():
        if role.pipeline_parallel_size > 1:
            yield (
                f"{path(name, 'pipelineParallelSize')}: {role.pipeline_parallel_size} is known to fail while NixlConnector registers "
                "memory (vllm-project/vllm#40674, ray-project/ray#55775); tensorParallelSize alone works."
            )
    if s.decode.tensor_parallel_size > s.prefill.tensor_parallel_size:
        yield (
            f"{path('decode', 'tensorParallelSize')}: {s.decode.tensor_parallel_size} is more than prefill's "
            f"{s.prefill.tensor_parallel_size}; equal sizes are the tested case (vllm-project/vllm#50765). After an error of the "
            "handshake restart decode."
        )


def _service(s: Settings) -> Iterator[str]:
    if s.service.ready_timeout_minutes == 0:
        yield f"{path('service', 'readyTimeoutMinutes')}: 0, so an update ends before the model serves."
    if s.service.image is not None:
        yield (
            f"{path('service', 'image')}: it must hold Ray {s.service.ray_version} and vLLM 0.26 or newer with NIXL and libfabric; "
            "an older vLLM refuses hybrid models with a KV connector or recomputes failed transfers in silence."
        )


def _reserved(kind: CapacityKind) -> str:
    return "reservation" if kind is CapacityKind.RESERVATION else "block"
