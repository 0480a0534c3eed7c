"""FI_PROVIDER in nixl-backend-libfabric, over the analyzer protocol: who sets it, who overrides it, who cannot be seen."""

import json
from typing import Any

import pytest
import yaml

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Diagnostic, Resource

POLICY = "nixl-backend-libfabric"
ARGS = "spec.serveConfigV2: applications[0].args"


def messages(found: list[Diagnostic]) -> list[str]:
    assert all((item.policy, item.level) == (POLICY, "mandatory") for item in found), found
    return [item.message for item in found]


def args(tree: dict[str, Any]) -> dict[str, Any]:
    return tree["applications"][0]["args"]


def job(runtime: object = None, env: bool = True, **spec: object) -> Resource:
    transfer = json.dumps(samples.transfer("kv_both"))
    worker = samples.worker("w")
    if not env:
        del worker["template"]["spec"]["containers"][0]["env"]
    fields = {
        "entrypoint": f"python serve.py --kv-transfer-config '{transfer}'",
        "rayClusterSpec": {"workerGroupSpecs": [worker]},
        **({"runtimeEnvYAML": runtime} if runtime is not None else {}),
        **spec,
    }
    return Resource("kubernetes:ray.io/v1:RayJob", "job", {"spec": fields})


def test_a_worker_without_fi_provider_is_named(preview):
    service = samples.ray_service()
    samples.container(service, 1)["env"] = []
    (message,) = messages(preview([service]))
    assert "workerGroupSpecs[1].template.spec.containers[0].env[FI_PROVIDER] is missing." in message
    assert message.endswith(
        'Write {"name": "FI_PROVIDER", "value": "efa"} in the env of every worker\'s Ray container.'
    )


@pytest.mark.parametrize("value", ["tcp", "sockets", "EFA", "efa,tcp", "", "^tcp"])
def test_another_provider_is_refused(preview, value):
    service = samples.ray_service()
    samples.container(service, 0)["env"] = [{"name": "FI_PROVIDER", "value": value}]
    (message,) = messages(preview([service]))
    assert "env[FI_PROVIDER].value is " in message
    assert "Only 'efa' makes libfabric fail" in message


def test_of_two_entries_the_last_counts(preview):
    service = samples.ray_service()
    samples.container(service, 0)["env"].append({"name": "FI_PROVIDER", "value": "tcp"})
    assert "value is 'tcp'" in messages(preview([service]))[0]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (
            {"env": [{"name": "FI_PROVIDER", "valueFrom": {"configMapKeyRef": {"name": "c"}}}]},
            "env[FI_PROVIDER].valueFrom",
        ),
        ({"env": [], "envFrom": [{"configMapRef": {"name": "c"}}]}, "envFrom"),
        ({"env": [{"name": "FI_PROVIDER", "value": UNKNOWN}]}, "env[FI_PROVIDER].value is not known yet"),
        ({"env": UNKNOWN}, "env is not known yet"),
    ],
)
def test_a_provider_that_cannot_be_seen_is_no_proof(preview, change, path):
    service = samples.ray_service()
    samples.container(service, 0).update(change)
    assert path in messages(preview([service]))[0]
    assert preview([service], {POLICY: {"onUnknown": "advisory"}})[0].level == "advisory"


@pytest.mark.parametrize("place", ["application", "role", "actor"])
def test_the_runtime_env_may_set_the_provider_for_all(preview, place):
    tree = samples.serve_tree()
    runtime_env = {"env_vars": {"FI_PROVIDER": "efa"}}
    roles = [args(tree)["prefill_config"], args(tree)["decode_config"]]
    if place == "application":
        tree["applications"][0]["runtime_env"] = runtime_env
    for role in roles:
        if place == "role":
            role["runtime_env"] = runtime_env
        if place == "actor":
            role["deployment_config"]["ray_actor_options"] = {"runtime_env": runtime_env}
    service = samples.ray_service(tree)
    for index in (0, 1):
        del samples.container(service, index)["env"]
    assert preview([service]) == []


def test_a_runtime_env_of_one_role_does_not_cover_the_other(preview):
    tree = samples.serve_tree()
    args(tree)["prefill_config"]["runtime_env"] = {"env_vars": {"FI_PROVIDER": "efa"}}
    service = samples.ray_service(tree)
    for index in (0, 1):
        del samples.container(service, index)["env"]
    assert len(messages(preview([service]))) == 2


def test_a_wrong_provider_in_the_runtime_env_overrides_a_right_container(preview):
    tree = samples.serve_tree()
    args(tree)["decode_config"]["runtime_env"] = {"env_vars": {"FI_PROVIDER": "tcp"}}
    (message,) = messages(preview([samples.ray_service(tree)]))
    assert f"{ARGS}.decode_config.runtime_env.env_vars.FI_PROVIDER is 'tcp'." in message


def test_the_head_cannot_set_the_provider_for_the_workers(preview):
    service = samples.ray_service()
    head = service.props["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    head["env"] = [{"name": "FI_PROVIDER", "value": "efa"}]
    for index in (0, 1):
        del samples.container(service, index)["env"]
    assert len(messages(preview([service]))) == 2


def test_a_jobs_runtime_environment_overrides_its_containers(preview):
    (message,) = messages(preview([job("env_vars: {FI_PROVIDER: tcp}")]))
    assert "spec.runtimeEnvYAML: env_vars.FI_PROVIDER is 'tcp'. Only 'efa' makes libfabric fail" in message
    assert preview([job("env_vars: {FI_PROVIDER: efa}", env=False)]) == []
    assert preview([job("pip: [requests]")]) == []
    assert len(messages(preview([job("pip: [requests]", env=False)]))) == 1


@pytest.mark.parametrize("text", [UNKNOWN, "a: [", "- a"])
def test_a_jobs_runtime_environment_that_cannot_be_read_is_no_proof(preview, text):
    assert len(messages(preview([job(text)]))) == 1
    assert preview([job(text)], {POLICY: {"onUnknown": "advisory"}})[0].level == "advisory"


COMMANDS = {
    "FI_PROVIDER=tcp vllm serve m": "sets FI_PROVIDER to 'tcp'",
    "export FI_PROVIDER='tcp;ofi_rxm'; vllm serve m": "sets FI_PROVIDER to 'tcp'",
    "FI_PROVIDER= vllm serve m": "sets FI_PROVIDER to an empty string",
    """python -c 'import os; os.environ["FI_PROVIDER"] = "sockets"'""": "sets FI_PROVIDER to 'sockets'",
    """x --runtime-env-json '{"env_vars": {"FI_PROVIDER": "tcp"}}'""": "sets FI_PROVIDER to 'tcp'",
    "unset FI_PROVIDER; vllm serve m": "takes FI_PROVIDER out of the environment",
    "env A=b -u FI_PROVIDER vllm serve m": "takes FI_PROVIDER out of the environment",
    "env -i PATH=/bin vllm serve m": "takes FI_PROVIDER out of the environment",
    "FI_PROVIDER=$OTHER vllm serve m": "sets FI_PROVIDER to what cannot be seen",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["entrypoint", "args", "command"])
def test_a_command_that_overrides_the_provider_is_a_violation(preview, command, place):
    found = job()
    if place == "entrypoint":
        found.props["spec"]["entrypoint"] = f"{command}; {found.props['spec']['entrypoint']}"
    else:
        container = found.props["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]
        container[place] = ["sh", "-c", command] if place == "command" else [command]
    (message,) = messages(preview([found]))
    assert f"{place} is a command that {COMMANDS[command]}." in message


@pytest.mark.parametrize(
    "command",
    [
        "FI_PROVIDER=efa vllm serve m",
        'FI_PROVIDER="${FI_PROVIDER:-efa}" vllm serve m',
        "env -i FI_PROVIDER=efa vllm serve m",
        '[ "$FI_PROVIDER" = tcp ] && exit 1; echo ${FI_PROVIDER}',
        "OTHER_FI_PROVIDER=tcp vllm serve m",
        'python -c \'assert os.environ["FI_PROVIDER"] == "efa"\'',
    ],
)
def test_a_command_that_leaves_the_provider_at_efa_passes(preview, command):
    found = job()
    found.props["spec"]["entrypoint"] = f"{command}; {found.props['spec']['entrypoint']}"
    assert preview([found]) == []


def test_an_entry_of_unknown_name_after_the_provider_may_override_it(preview):
    service = samples.ray_service()
    env = samples.container(service, 0)["env"]
    env.insert(0, {"name": UNKNOWN, "value": "tcp"})
    assert preview([service]) == []
    env.append({"name": UNKNOWN, "value": "tcp"})
    assert "containers[0].env is not known yet." in messages(preview([service]))[0]


def test_a_job_on_a_cluster_from_elsewhere_has_workers_nobody_sees(preview):
    found = job(clusterSelector={"ray.io/cluster": "shared"})
    del found.props["spec"]["rayClusterSpec"]
    (message,) = messages(preview([found]))
    assert "spec.clusterSelector is a reference to another cluster." in message
    found.props["spec"]["runtimeEnvYAML"] = "env_vars: {FI_PROVIDER: efa}"
    assert preview([found]) == []


def test_each_role_may_be_covered_in_its_own_way_where_ray_keeps_them_apart(preview):
    tree = samples.serve_tree()
    args(tree)["prefill_config"]["runtime_env"] = {"env_vars": {"FI_PROVIDER": "efa"}}
    service = samples.ray_service(tree)
    del samples.container(service, 0)["env"]
    # A group's name keeps no engine away: Ray may place decode on it.
    assert "workerGroupSpecs[0]" in messages(preview([service]))[0]
    for index, role in enumerate(("prefill", "decode")):
        args(tree)[f"{role}_config"]["placement_group_config"] = {"bundle_per_worker": {"GPU": 1, role: 0.001}}
        samples.workers(service)[index]["resources"] = {role: "1"}
    service.props["spec"]["serveConfigV2"] = yaml.safe_dump(tree)
    assert preview([service]) == []
