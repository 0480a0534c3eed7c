"""Foreign programs, each with one mistake: the preview stops and says which, where and what to write; corrected, it passes."""

from dataclasses import dataclass

import pytest

from tests.engine.conftest import PreviewOf
from tests.engine.previews import EFA, NIXL, ON_EFA_NODES, PRIVILEGED, PROGRAMS, SECURITY_GROUP, ZONES


@dataclass(frozen=True)
class Mistake:
    """What one policy must say about a program: of which resource, what it found, and what to write instead."""

    policy: str
    resource: str
    found: str
    fix: str


NO_EGRESS = "egress is without a rule for all traffic to the group itself (only address ranges are allowed)"
BOTH_RULES = "Add ingress and egress rules with protocol -1 and the group itself as the peer"
MISSING = "{}_config.engine_kwargs.kv_transfer_config.kv_connector_extra_config.backends is missing"
LIBFABRIC = '{"backends": ["LIBFABRIC"]}'

MISTAKES = {
    "gpu_group_over_two_zones": [
        Mistake(ZONES, "gpu", "2 subnets in us-east-1a and us-east-1b", "Give the group one subnet")
    ],
    "each_role_on_nodes_of_its_own": [
        Mistake(ZONES, "decode", "in us-east-1b, while worker group 'prefill' runs in us-east-1a", "into one zone"),
        Mistake(
            SECURITY_GROUP, "decode", "without a group that launch template 'prefill'", "one security group in common"
        ),
    ],
    "gpu_type_only_in_the_template": [
        Mistake(ZONES, "gpu-group", "2 subnets in us-east-1a and us-east-1b", "Give the group one subnet")
    ],
    "subnets_filtered_in_an_apply": [
        Mistake(ZONES, "gpu", "subnetIds is a list of subnets not known yet", "Write a list of single subnet ids")
    ],
    "karpenter_pool_over_two_zones": [Mistake(ZONES, "gpu-pool", "['us-east-1a', 'us-east-1b']", "Write one value")],
    "autoscaling_group_over_two_zones": [
        Mistake(ZONES, "gpu", "2 subnets in us-east-1a and us-east-1b", "Give the group one subnet"),
        Mistake(SECURITY_GROUP, "nodes", NO_EGRESS, BOTH_RULES),
    ],
    "efa_group_without_self_egress": [Mistake(SECURITY_GROUP, "efa", NO_EGRESS, BOTH_RULES)],
    "rule_resource_without_its_twin": [Mistake(SECURITY_GROUP, "efa", NO_EGRESS, BOTH_RULES)],
    "cluster_group_before_1_33": [Mistake(SECURITY_GROUP, "serving", "version is '1.32'", "or upgrade the cluster")],
    "worker_without_efa": [
        Mistake(EFA, "llm", 'limits["vpc.amazonaws.com/efa"] is missing', 'Write "vpc.amazonaws.com/efa": "1"')
    ],
    "raw_resource_token": [
        Mistake(EFA, "llm", 'limits["vpc.amazonaws.com/efa"] is 0', 'Write "vpc.amazonaws.com/efa": "1"')
    ],
    "worker_not_privileged": [
        Mistake(PRIVILEGED, "llm-rayservice", "missing and only the capability IPC_LOCK is added", '"privileged": true')
    ],
    "ray_job_as_uid_1000": [Mistake(PRIVILEGED, "bench", "securityContext.runAsUser is 1000", "Write 0 there")],
    "image_not_known_yet": [Mistake(PRIVILEGED, "llm", "securityContext.privileged is missing", '"privileged": true')],
    "nixl_takes_ucx": [
        Mistake(NIXL, "llm", MISSING.format("prefill"), LIBFABRIC),
        Mistake(NIXL, "llm", MISSING.format("decode"), LIBFABRIC),
        Mistake(NIXL, "llm", "env[FI_PROVIDER] is missing", '{"name": "FI_PROVIDER", "value": "efa"}'),
    ],
    "one_role_left_on_ucx": [Mistake(NIXL, "llm", MISSING.format("decode"), LIBFABRIC)],
    "manifest_leaves_ucx_open": [Mistake(NIXL, "default/llm", "['UCX', 'LIBFABRIC']", LIBFABRIC)],
    "patch_takes_the_backend_away": [Mistake(NIXL, "longer-prompts", MISSING.format("decode"), LIBFABRIC)],
    "backends_at_the_wrong_level": [
        Mistake(NIXL, "llm", "connectors[1].backends is at a level vLLM never reads", "Move it there")
    ],
    "ray_cluster_that_runs_vllm": [
        Mistake(NIXL, "bench", "args[0].kv_connector_extra_config.backends is missing", LIBFABRIC)
    ],
    "training_on_efa_nodes": [
        Mistake(
            ON_EFA_NODES, "training", 'limits["vpc.amazonaws.com/efa"] is missing', 'Write "vpc.amazonaws.com/efa": "1"'
        ),
        Mistake(ON_EFA_NODES, "training", "securityContext.privileged is missing", '"privileged": true'),
    ],
    "serve_config_holds_an_output": [Mistake(NIXL, "llm", "serveConfigV2 is not known yet", "Make it a plain value")],
}

MISSPELT = {
    "misspelt_worker_groups": ("spec.rayClusterConfig.workerGroupSpec", "workerGroupSpecs"),
    "misspelt_security_context": (
        "spec.workerGroupSpecs[0].template.spec.containers[0].securityContex",
        "securityContext",
    ),
    "misspelt_interface_field": ("networkInterfaces[0].deviceIdx", "deviceIndex"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_program_with_a_mistake_is_stopped_by_the_policy_that_knows_it(name: str, preview: PreviewOf) -> None:
    done = preview(PROGRAMS / name)

    expected = MISTAKES[name]
    assert done.exit_code != 0, done.output
    assert done.blocking == {mistake.policy for mistake in expected}
    for mistake in expected:
        messages = [
            violation.message
            for violation in done.violations
            if (violation.policy, violation.resource) == (mistake.policy, mistake.resource)
        ]
        assert any(mistake.found in message and mistake.fix in message for message in messages), messages
        assert mistake.policy in done.output


@pytest.mark.parametrize("name", MISTAKES)
def test_the_same_program_corrected_passes(name: str, preview: PreviewOf) -> None:
    done = preview(PROGRAMS / name, corrected=True)

    assert done.exit_code == 0, done.output
    assert done.violations == []
    assert done.advice == []


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_field_stops_the_preview_and_names_the_right_one(name: str, preview: PreviewOf) -> None:
    path, meant = MISSPELT[name]

    done = preview(PROGRAMS / name)

    assert done.exit_code != 0, done.output
    assert path in done.output
    assert meant in done.output.replace(path, "")
    assert "Traceback" not in done.output


@pytest.mark.parametrize("name", MISSPELT)
def test_the_field_spelt_right_passes(name: str, preview: PreviewOf) -> None:
    done = preview(PROGRAMS / name, corrected=True)

    assert done.exit_code == 0, done.output


def test_every_program_of_this_folder_is_previewed() -> None:
    found = {folder.parent.name for folder in PROGRAMS.glob("*/Pulumi.yaml")}

    assert found == {*MISTAKES, *MISSPELT}
