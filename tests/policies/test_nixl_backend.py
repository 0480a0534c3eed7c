"""nixl-backend-libfabric, over the analyzer protocol."""

import json
from typing import Any

import pytest
import yaml

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Diagnostic, Resource, secret

POLICY = "nixl-backend-libfabric"
ARGS = "spec.serveConfigV2: applications[0].args"
EXTRA = "engine_kwargs.kv_transfer_config.kv_connector_extra_config"


def messages(found: list[Diagnostic]) -> list[str]:
    assert all((item.policy, item.level) == (POLICY, "mandatory") for item in found), found
    return [item.message for item in found]


def args(tree: dict[str, Any]) -> dict[str, Any]:
    return tree["applications"][0]["args"]


def transfers(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [args(tree)[f"{role}_config"]["engine_kwargs"]["kv_transfer_config"] for role in ("prefill", "decode")]


def with_backends(value: Any) -> Resource:
    tree = samples.serve_tree()
    transfers(tree)[1]["kv_connector_extra_config"]["backends"] = value
    return samples.ray_service(tree)


def test_backends_missing_on_both_roles_is_told_of_both(preview):
    tree = samples.serve_tree()
    for transfer in transfers(tree):
        del transfer["kv_connector_extra_config"]
    service = samples.ray_service(tree)
    for index in (0, 1):
        samples.container(service, index)["env"].append({"name": "NIXL_BACKEND", "value": "LIBFABRIC"})
    found = preview([service])
    assert found[0].urn == service.urn
    assert messages(found) == [
        f"RayService 'service': {ARGS}.{role}_config.{EXTRA}.backends is missing. "
        'vLLM\'s default is ["UCX"]. NIXL then uses UCX, and the KV cache moves at TCP speed with no error. '
        'Write kv_transfer_config["kv_connector_extra_config"] = {"backends": ["LIBFABRIC"]}.'
        for role in ("prefill", "decode")
    ]


def test_one_role_fixed_still_names_the_other(preview):
    tree = samples.serve_tree()
    del transfers(tree)[1]["kv_connector_extra_config"]
    (message,) = messages(preview([samples.ray_service(tree)]))
    assert f"{ARGS}.decode_config.{EXTRA}.backends is missing." in message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["UCX"], "is ['UCX']. Only LIBFABRIC runs over EFA."),
        (["UCX", "LIBFABRIC"], "is ['UCX', 'LIBFABRIC']. With more than one backend it is open which one NIXL takes"),
        (["LIBFABRIC", "LIBFABRIC"], "With more than one backend it is open"),
        (["libfabric"], "is ['libfabric']. Backend names count by case"),
        ("LIBFABRIC", "is the string 'LIBFABRIC'. vLLM expects a list of names, not a string."),
        ([], "is an empty list. It names no backend."),
        ({"LIBFABRIC": True}, "is a mapping. It names no backend."),
        ([1], "is [1]. It names no backend."),
    ],
)
def test_anything_but_exactly_libfabric_is_refused_with_its_own_reason(preview, value, text):
    (message,) = messages(preview([with_backends(value)]))
    assert f"{ARGS}.decode_config.{EXTRA}.backends is " in message
    assert text in message


@pytest.mark.parametrize("level", ["transfer", "engine_kwargs", "role"])
def test_backends_at_a_level_vllm_never_reads_are_named_where_they_stand(preview, level):
    tree = samples.serve_tree()
    transfer = transfers(tree)[0]
    del transfer["kv_connector_extra_config"]
    role = args(tree)["prefill_config"]
    place = {"transfer": transfer, "engine_kwargs": role["engine_kwargs"], "role": role}[level]
    place["backends"] = ["LIBFABRIC"]
    path = {
        "transfer": "engine_kwargs.kv_transfer_config.backends",
        "engine_kwargs": "engine_kwargs.backends",
        "role": "backends",
    }[level]
    (message,) = messages(preview([samples.ray_service(tree)]))
    assert f"{ARGS}.prefill_config.{path} is at a level vLLM never reads. It only looks at applications[0]" in message


def test_a_role_without_kv_transfer_config_is_refused(preview):
    tree = samples.serve_tree()
    del args(tree)["decode_config"]["engine_kwargs"]["kv_transfer_config"]
    (message,) = messages(preview([samples.ray_service(tree)]))
    assert f"{ARGS}.decode_config.engine_kwargs.kv_transfer_config is missing. The decode role cannot move" in message


def test_a_missing_role_is_refused(preview):
    tree = samples.serve_tree()
    del args(tree)["prefill_config"]
    (message,) = messages(preview([samples.ray_service(tree)]))
    assert f"{ARGS}.prefill_config.engine_kwargs.kv_transfer_config is missing." in message


def test_a_transfer_config_without_a_connector_is_refused(preview):
    tree = samples.serve_tree()
    del transfers(tree)[0]["kv_connector"]
    assert "kv_connector is missing. vLLM then moves no KV cache" in messages(preview([samples.ray_service(tree)]))[0]


def test_another_connector_cannot_be_verified(preview):
    tree = samples.serve_tree()
    transfers(tree)[0]["kv_connector"] = "LMCacheConnectorV1"
    service = samples.ray_service(tree)
    (message,) = messages(preview([service]))
    assert "kv_connector is 'LMCacheConnectorV1'. Only NixlConnector is known" in message
    (item,) = preview([service], {POLICY: {"onUnknown": "advisory"}})
    assert (item.policy, item.level) == (f"{POLICY}-unverified", "advisory")


def multi(child: dict[str, Any], **extra: Any) -> Resource:
    tree = samples.serve_tree()
    args(tree)["prefill_config"]["engine_kwargs"]["kv_transfer_config"] = {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_producer",
        "kv_connector_extra_config": {"connectors": [{"kv_connector": "OffloadingConnector"}, child], **extra},
    }
    return samples.ray_service(tree)


def test_a_child_of_a_multi_connector_is_judged_at_its_own_level(preview):
    assert preview([multi(samples.transfer("kv_producer"))]) == []
    (message,) = messages(preview([multi({"kv_connector": "NixlConnector"})]))
    assert f"{EXTRA}.connectors[1].kv_connector_extra_config.backends is missing." in message


def test_backends_beside_the_children_of_a_multi_connector_are_at_the_wrong_level(preview):
    (message,) = messages(preview([multi({"kv_connector": "NixlConnector"}, backends=["LIBFABRIC"])]))
    assert f"{EXTRA}.backends is at a level vLLM never reads." in message


def test_backends_beside_a_childs_connector_are_at_the_wrong_level(preview):
    (message,) = messages(preview([multi({"kv_connector": "NixlConnector", "backends": ["LIBFABRIC"]})]))
    assert f"{EXTRA}.connectors[1].backends is at a level vLLM never reads." in message


def test_nixl_in_a_plain_openai_app_is_judged_too(preview):
    config = samples.llm_config("kv_both")
    del config["engine_kwargs"]["kv_transfer_config"]["kv_connector_extra_config"]
    app = {"name": "a", "import_path": "ray.serve.llm:build_openai_app", "args": {"llm_configs": [config]}}
    (message,) = messages(preview([samples.ray_service({"applications": [app]})]))
    assert f"{ARGS}.llm_configs[0].{EXTRA}.backends is missing." in message


def test_nixl_in_the_arguments_of_custom_code_is_judged_and_the_code_said_to_be_unseen(preview):
    app = {
        "name": "a",
        "import_path": "mine:app",
        "args": {"deep": [{"kv_transfer_config": {"kv_connector": "NixlConnector"}}]},
    }
    found = messages(preview([samples.ray_service({"applications": [app]})]))
    assert f"{ARGS}.deep[0].kv_transfer_config.kv_connector_extra_config.backends is missing." in found[0]
    assert "applications[0].import_path is 'mine:app'. The application's own code may set up a KV transfer" in found[1]


@pytest.mark.parametrize("value", ["/configs/prefill.yaml", "prefill.yaml"])
def test_a_role_in_a_file_of_its_own_cannot_be_verified(preview, value):
    tree = samples.serve_tree()
    args(tree)["prefill_config"] = value
    service = samples.ray_service(tree)
    (message,) = messages(preview([service]))
    assert f"{ARGS}.prefill_config is the path of a file." in message
    assert preview([service], {POLICY: {"onUnknown": "advisory"}})[0].level == "advisory"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("- a\n- b\n", "YAML, but not a mapping"),
        ("a: [1\nb: 2", "not YAML (line 2, column 2)"),
        ("just words", "YAML, but not a mapping"),
        ("proxy_location: EveryNode", "a mapping without a list 'applications'"),
        (None, "missing"),
        (7, "not a string"),
        ("a: &a [*a]", "not YAML that can be read"),
    ],
)
def test_a_serve_config_that_cannot_be_read_is_a_violation_with_a_reason(preview, text, reason):
    (message,) = messages(preview([samples.ray_service(serveConfigV2=text)]))
    assert message.startswith(f"RayService 'service': spec.serveConfigV2 is {reason}. Which backend NIXL takes")


def test_an_unknown_serve_config_blocks(preview):
    (message,) = messages(preview([samples.ray_service(serveConfigV2=UNKNOWN)]))
    assert message == (
        "RayService 'service': spec.serveConfigV2 is not known yet. Which backend NIXL takes on prefill and decode cannot be "
        "checked before the deployment. Make it a plain value of the program, not an Output of another resource."
    )


def test_an_unknown_serve_config_on_gpu_workers_blocks_even_where_nothing_requests_efa(preview):
    service = samples.ray_service(serveConfigV2=UNKNOWN)
    for index in (0, 1):
        samples.container(service, index)["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    assert len(messages(preview([service]))) == 1


def test_an_unknown_serve_config_on_cpu_workers_is_left_alone(preview):
    service = samples.ray_service(serveConfigV2=UNKNOWN)
    for group in samples.workers(service):
        cpu = {"name": "w", "resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}
        group["template"]["spec"] = {"containers": [cpu]}
        group["rayStartParams"] = {}
    assert preview([service]) == []


def test_a_secret_serve_config_is_read_and_never_printed(preview):
    tree = samples.serve_tree()
    tree["applications"][0]["runtime_env"] = {"env_vars": {"HF_TOKEN": "hf_abc", "FI_PROVIDER": "hf abc def?"}}
    service = samples.ray_service(tree)
    service.props["spec"]["serveConfigV2"] = secret(service.props["spec"]["serveConfigV2"])
    (message,) = messages(preview([service]))
    assert "runtime_env.env_vars.FI_PROVIDER is a string that is not shown here." in message
    assert "hf" not in message


def ray_job(config: object, text: str = "python serve.py --kv-transfer-config '{}'") -> Resource:
    spec = {
        "entrypoint": text.replace("{}", json.dumps(config)),
        "rayClusterSpec": {"workerGroupSpecs": [samples.worker("w")]},
    }
    return Resource("kubernetes:ray.io/v1:RayJob", "job", {"spec": spec})


def test_json_on_a_command_line_is_judged(preview):
    assert preview([ray_job(samples.transfer("kv_both"))]) == []
    (message,) = messages(preview([ray_job({"kv_connector": "NixlConnector"})]))
    assert "RayJob 'job': spec.entrypoint.kv_connector_extra_config.backends is missing." in message


def test_nixl_on_a_command_line_without_json_cannot_be_verified(preview):
    (message,) = messages(preview([ray_job(None, "vllm serve m --kv-transfer-config.kv_connector NixlConnector")]))
    assert "spec.entrypoint is a text that names NixlConnector without a readable JSON kv_transfer_config." in message


def test_a_patch_is_judged_by_what_it_changes(preview):
    service = with_backends(["UCX"])
    service.type += "Patch"
    del service.props["spec"]["rayClusterConfig"]
    assert len(messages(preview([service]))) == 1
    service.props["spec"]["serveConfigV2"] = UNKNOWN
    assert "is not known yet" in messages(preview([service]))[0]
    label = Resource("kubernetes:ray.io/v1:RayServicePatch", "label", {"metadata": {"labels": {"a": "b"}}})
    assert preview([label]) == []


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_every_version_is_judged(preview, version):
    tree = samples.serve_tree()
    del transfers(tree)[0]["kv_connector_extra_config"]
    assert len(messages(preview([samples.ray_service(tree, version)]))) == 1


def test_a_word_in_a_comment_does_not_put_a_service_in_scope(preview):
    text = "# not NixlConnector\napplications:\n- {name: a, import_path: 'fruit:app'}\n"
    service = samples.ray_service(serveConfigV2=text)
    for index in (0, 1):
        samples.container(service, index)["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    assert preview([service]) == []


def test_a_connector_deep_inside_multi_connectors_is_judged(preview):
    def nested(child: dict[str, Any]) -> dict[str, Any]:
        inner = {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": [child]}}
        return {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": [inner]}}

    assert preview([multi(nested(samples.transfer("kv_both")))]) == []
    (message,) = messages(preview([multi(nested({"kv_connector": "NixlConnector"}))]))
    deep = "connectors[1].kv_connector_extra_config.connectors[0].kv_connector_extra_config.connectors[0]"
    assert f"{deep}.kv_connector_extra_config.backends is missing." in message


def test_a_connector_of_ones_own_module_cannot_be_verified(preview):
    tree = samples.serve_tree()
    transfers(tree)[0]["kv_connector_module_path"] = "acme.connectors"
    service = samples.ray_service(tree)
    (message,) = messages(preview([service]))
    assert "kv_connector_module_path is 'acme.connectors'. vLLM then loads a NixlConnector of that module" in message
    assert preview([service], {POLICY: {"onUnknown": "advisory"}})[0].level == "advisory"
    transfers(tree)[0]["kv_connector_module_path"] = "vllm.distributed.kv_transfer.kv_connector.v1.nixl_connector"
    assert preview([samples.ray_service(tree)]) == []


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(samples.serve_tree(), indent="\t"),
        yaml.safe_dump(samples.serve_tree()) + "---\n",
        "---\n" + yaml.safe_dump(samples.serve_tree()) + "---\nanother: document\n",
    ],
)
def test_what_kuberay_can_read_passes(preview, text):
    assert preview([samples.ray_service(serveConfigV2=text)]) == []


def test_only_the_first_document_counts(preview):
    tree = samples.serve_tree()
    del transfers(tree)[0]["kv_connector_extra_config"]
    text = f"{yaml.safe_dump(tree)}---\n{yaml.safe_dump(samples.serve_tree())}"
    assert "backends is missing" in messages(preview([samples.ray_service(serveConfigV2=text)]))[0]


MERGED = """
bad: &bad
  kv_transfer_config: {kv_connector: NixlConnector}
more: &more {<<: *bad}
applications:
- name: llm
  import_path: ray.serve.llm:build_pd_openai_app
  args:
    prefill_config: &role
      model_loading_config: {model_id: m, model_source: org/m}
      engine_kwargs:
        kv_transfer_config: {kv_connector: NixlConnector, kv_connector_extra_config: {backends: [LIBFABRIC]}}
        <<: *bad
    decode_config: *role
"""


@pytest.mark.parametrize("merged", ["*bad", "*more", "[*bad]"])
def test_a_merge_that_parsers_read_differently_is_a_violation(preview, merged):
    text = MERGED.replace("        <<: *bad", f"        <<: {merged}")
    (message,) = messages(preview([samples.ray_service(serveConfigV2=text)]))
    assert "is YAML that parsers read differently (line 13: '<<' after a key that it also sets)." in message


def test_a_merge_that_every_parser_reads_alike_passes(preview):
    bad = "        <<: *bad\n"
    first = MERGED.replace(bad, "").replace("      engine_kwargs:\n", f"      engine_kwargs:\n{bad}")
    assert preview([samples.ray_service(serveConfigV2=first)]) == []
    other = MERGED.replace(
        "bad: &bad\n  kv_transfer_config: {kv_connector: NixlConnector}", "bad: &bad {dtype: bfloat16}"
    )
    assert preview([samples.ray_service(serveConfigV2=other)]) == []


@pytest.mark.parametrize("place", ["entrypoint", "args", "command"])
def test_a_command_that_is_not_known_yet_may_move_a_kv_cache(preview, place):
    found = ray_job(None, "python train.py")
    assert preview([found]) == []
    spec = found.props["spec"]
    container = spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]
    (spec if place == "entrypoint" else container)[place] = UNKNOWN if place == "entrypoint" else ["sh", UNKNOWN]
    (message,) = messages(preview([found]))
    assert f"{place} is not known yet. Whether NIXL moves a KV cache" in message
