"""Public samples that were not written for this pack, restated: each gets the verdict that its facts ask for."""

import pytest

from tests.engine.conftest import PreviewOf
from tests.engine.previews import EFA, NIXL, PRIVILEGED, SAMPLES, SECURITY_GROUP, ZONES


@pytest.mark.parametrize(
    "name",
    [
        # CPU only; and GPUs without EFA or KV transfer: nobody's business.
        "kuberay_fruit_stand",
        "kuberay_llm_serve",
        # EFA nodes in one subnet, rules both ways; the CPU group beside them may spread over three zones.
        "blueprints_multi_node_vllm",
    ],
)
def test_a_sound_sample_passes_without_a_word(name: str, preview: PreviewOf) -> None:
    done = preview(SAMPLES / name)

    assert done.exit_code == 0, done.output
    assert done.violations == []
    assert done.advice == []


def test_awss_prefill_decode_sample_sends_its_kv_cache_over_tcp(preview: PreviewOf) -> None:
    done = preview(SAMPLES / "aws_ray_serve_multi_node")

    assert done.exit_code != 0
    # It runs on g5, which has no EFA, and moves the cache by UCX: each of the three steps to EFA is missing.
    assert done.blocking == {EFA, PRIVILEGED, NIXL}
    assert {violation.resource for violation in done.violations} == {"ray-llm"}
    roles = [violation.message for violation in done.violations if "kv_transfer_config" in violation.message]
    assert [any(role in message for message in roles) for role in ("prefill_config", "decode_config")] == [True, True]


def test_awss_prefill_decode_sample_moved_to_efa_nodes_still_takes_ucx(preview: PreviewOf) -> None:
    done = preview(SAMPLES / "aws_ray_serve_multi_node", config={"aws-ray-serve-multi-node:onEfa": "true"})

    assert done.exit_code != 0
    assert done.blocking == {NIXL}
    assert all("backends" in violation.message for violation in done.violations)


def test_pulumi_eks_efa_example_shows_neither_its_subnets_nor_its_version(preview: PreviewOf) -> None:
    done = preview(SAMPLES / "pulumi_eks_efa")

    assert done.exit_code != 0
    # The group picks its subnets by a data source, and leans on the cluster's own group of a version that EKS will choose.
    # The system group over both zones, of which nothing is set but its subnets, is left alone.
    assert [(violation.policy, violation.resource) for violation in done.violations] == [
        (ZONES, "efa-mng"),
        (SECURITY_GROUP, "efa-eksCluster"),
    ]
    assert all("cannot be checked before the deployment" in violation.message for violation in done.violations)


def test_blueprints_efa_pattern_spreads_p5_nodes_over_every_zone_that_offers_them(preview: PreviewOf) -> None:
    done = preview(SAMPLES / "blueprints_nvidia_gpu_efa")

    assert done.exit_code != 0
    assert [(violation.policy, violation.resource) for violation in done.violations] == [(ZONES, "nvidia-efa")]
    assert "us-west-2a, us-west-2b and us-west-2c" in done.violations[0].message


def test_capacity_orchestrators_efa_pool_may_make_nodes_in_any_zone(preview: PreviewOf) -> None:
    done = preview(SAMPLES / "capacity_orchestrator_efa_pool")

    assert done.exit_code != 0
    assert [(violation.policy, violation.resource) for violation in done.violations] == [(ZONES, "gpu-efa-pool")]
    assert "topology.kubernetes.io/zone" in done.violations[0].message


def test_slimes_ray_cluster_uses_efa_without_the_privileges(preview: PreviewOf) -> None:
    done = preview(SAMPLES / "distributed_ai_slime")

    assert done.exit_code != 0
    assert [(violation.policy, violation.resource) for violation in done.violations] == [(PRIVILEGED, "slime-ray")]
    assert "gpu-workers" in done.violations[0].message
