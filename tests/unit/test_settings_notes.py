from typing import Any

import pytest

from components.settings import notes
from tests.unit.stack_files import settings

DOCUMENTATION = (
    "ray-llm-eks:cluster.endpoint.publicCidrs: 203.0.113.0/24 is a range of documentation, so nobody reaches the Kubernetes API, this "
    "program neither. Type: pulumi config set --path 'ray-llm-eks:cluster.endpoint.publicCidrs[0]' <your address>/32"
)
NO_GPUDIRECT = (
    "ray-llm-eks:gpuNodes.instanceType: g6.8xlarge has no GPUDirect, so the KV cache goes GPU, host, EFA, host, GPU and takes longer "
    "than the bytes at 25 Gbit/s."
)
P5: dict[str, Any] = {
    "gpuNodes__instanceType": "p5.48xlarge",
    "model": {"id": "qwen3-8b", "source": "Qwen/Qwen3-8B"},
    "prefill": {"tensorParallelSize": 8},
    "decode": {"tensorParallelSize": 8},
    "cluster__endpoint__publicCidrs": ["198.18.0.7/32"],
}


def test_the_reference_deployment_is_told_its_placeholder_and_its_detour() -> None:
    assert notes(settings()) == [DOCUMENTATION, NO_GPUDIRECT]


def test_a_stack_with_nothing_to_say() -> None:
    assert notes(settings(**P5)) == []


RESERVATION = {"kind": "reservation", "reservationId": "cr-0123456789abcdef1"}
BLOCK = {"kind": "capacityBlock", "reservationId": "cr-0123456789abcdef1"}


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (
            {"cluster__endpoint": {"public": False}},
            "ray-llm-eks:cluster.endpoint.public: the API answers inside the VPC only; run Pulumi where it is reached.",
        ),
        (
            {"cluster__endpoint": {"publicCidrs": ["0.0.0.0/0"], "allowAnywhere": True}},
            "ray-llm-eks:cluster.endpoint.publicCidrs: 0.0.0.0/0 opens the Kubernetes API to the whole internet; authentication alone "
            "guards it.",
        ),
        (
            {"cluster__kubernetesVersion": "1.34"},
            "ray-llm-eks:cluster.kubernetesVersion: 1.34 is offered by EKS; this project is tested with 1.35.",
        ),
        (
            {"gpuNodes__capacity": RESERVATION},
            "ray-llm-eks:gpuNodes.placementGroup: with a capacity reservation no placement group is made, since instances would not launch "
            "into one the capacity was not bought in (eksctl-io/eksctl#7949); name it if it was.",
        ),
        (
            {"gpuNodes__capacity": BLOCK},
            "ray-llm-eks:gpuNodes.placementGroup: with a capacity block no placement group is made, since instances would not launch into "
            "one the capacity was not bought in (eksctl-io/eksctl#7949); name it if it was.",
        ),
        (
            {
                "gpuNodes__capacity": RESERVATION | {"reservationId": "cr-0123456789abcdef0"},
                "gpuNodes__placementGroup": "mine",
            },
            "ray-llm-eks:gpuNodes.capacity.reservationId: cr-0123456789abcdef0 is a placeholder that no account has. Type: pulumi config "
            "set --path 'ray-llm-eks:gpuNodes.capacity.reservationId' <id>",
        ),
        (
            {"gpuNodes__count": 3},
            "ray-llm-eks:gpuNodes.count: 1 GPU node has no worker and cost money all the same.",
        ),
        (
            {"prefill": {"tensorParallelSize": 4, "pipelineParallelSize": 2}},
            "ray-llm-eks:decode.tensorParallelSize: 8 is more than prefill's 4; equal sizes are the tested case "
            "(vllm-project/vllm#50765). After an error of the handshake restart decode.",
        ),
        (
            {"service__readyTimeoutMinutes": 0},
            "ray-llm-eks:service.readyTimeoutMinutes: 0, so an update ends before the model serves.",
        ),
        (
            {"service__image": "example.com/ray:1"},
            "ray-llm-eks:service.image: it must hold Ray 2.58.0 and vLLM 0.26 or newer with NIXL and libfabric; an older vLLM refuses "
            "hybrid models with a KV connector or recomputes failed transfers in silence.",
        ),
    ],
)
def test_what_is_allowed_and_worth_saying(change: dict[str, Any], note: str) -> None:
    assert note in notes(settings(**(P5 | change)))


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_pipeline_parallelism_names_what_is_known_of_it(role: str) -> None:
    split = {"tensorParallelSize": 4, "pipelineParallelSize": 2}

    assert notes(settings(**(P5 | {"prefill": split, "decode": split})))[role == "decode"] == (
        f"ray-llm-eks:{role}.pipelineParallelSize: 2 is known to fail while NixlConnector registers memory (vllm-project/vllm#40674, "
        "ray-project/ray#55775); tensorParallelSize alone works."
    )
