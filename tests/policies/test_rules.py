"""The rules themselves, as components and settings call them: pure functions over plain values, without a policy SDK."""

from decimal import Decimal

import pytest

from policies.ray_efa_policies import kv_transfer, serve_config
from policies.ray_efa_policies.efa_requests import quantity
from policies.ray_efa_policies.karpenter import ZONE_EXAMPLE
from policies.ray_efa_policies.node_groups import is_gpu_type
from policies.ray_efa_policies.report import Finding, listed, unknown
from policies.ray_efa_policies.tokens import aws_type, kubernetes_type, ray_kind
from policies.ray_efa_policies.values import UNKNOWN, at, shown
from policies.ray_efa_policies.workloads import says_efa, workload_of
from tests.policies import samples


def test_unknown_is_neither_true_nor_equal_to_anything():
    assert not UNKNOWN
    assert UNKNOWN != ""
    assert repr(UNKNOWN) == "UNKNOWN"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("a", "b", 0), 1),
        (("a", "b", 7), None),
        (("a", "hidden", "deeper"), UNKNOWN),
        (("a", "missing", "deeper"), None),
        (("text", "x"), None),
        (("text", 0), None),
    ],
)
def test_a_path_ends_in_its_value_in_nothing_or_in_the_unknown(path, found):
    assert at({"a": {"b": [1], "hidden": UNKNOWN}, "text": "abc"}, *path) == found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "missing"),
        (UNKNOWN, "not known yet"),
        (True, "true"),
        (2, "2"),
        (0.5, "0.5"),
        ("us-east-1a", "'us-east-1a'"),
        ("", "an empty string"),
        ("two words", "a string that is not shown here"),
        ("x" * 49, "a string that is not shown here"),
        (["a", 1], "['a', 1]"),
        (["two words"], "[a string that is not shown here]"),
        ([], "an empty list"),
        ([{}], "a list"),
        ({"a": 1}, "a mapping"),
    ],
)
def test_messages_show_short_plain_values_only(value, text):
    assert shown(value) == text


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1), (1.0, 1), ("1", 1), ("1.0", 1), ("1k", 1000), ("1Ki", 1024), ("500m", Decimal("0.5")), ("2e1", 20)],
)
def test_quantities_are_numbers_however_they_are_written(value, number):
    assert quantity(value) == number


@pytest.mark.parametrize("value", [None, True, "", "one", "-1", -1, [], {}, "1 Gi", float("inf"), "1e999"])
def test_other_values_are_no_quantities(value):
    assert quantity(value) is None


@pytest.mark.parametrize(
    ("token", "parts"),
    [
        ("aws:eks/nodeGroup:NodeGroup", ("aws", "eks", "NodeGroup")),
        ("aws:eks:NodeGroup", ("aws", "eks", "NodeGroup")),
        ("pulumi:pulumi:Stack", ("pulumi", "pulumi", "Stack")),
        ("nonsense", ("nonsense", "", "")),
    ],
)
def test_aws_tokens_are_matched_in_both_spellings(token, parts):
    assert aws_type(token) == parts


def test_kubernetes_tokens_are_taken_apart():
    assert kubernetes_type("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass") == (
        "karpenter.k8s.aws",
        "v1",
        "EC2NodeClass",
        False,
    )
    assert kubernetes_type("kubernetes:ray.io/v1alpha1:RayJobPatch") == ("ray.io", "v1alpha1", "RayJob", True)
    assert kubernetes_type("aws:eks/nodeGroup:NodeGroup") is None
    assert ray_kind("kubernetes:ray.io/v2:RayCluster") == "RayCluster"
    assert ray_kind("kubernetes:serving.kserve.io/v1:RayService") is None


@pytest.mark.parametrize(
    "name", ["g6.8xlarge", "p5.48xlarge", "g4ad.xlarge", "gr6.4xlarge", "p6-b200.48xlarge", "g5g.metal"]
)
def test_p_and_g_types_have_gpus(name):
    assert is_gpu_type(name)


@pytest.mark.parametrize(
    "name", ["m7i.xlarge", "c7gn.16xlarge", "r8g.large", "hpc7g.16xlarge", "trn1.32xlarge", "inf2.xlarge", "", None, 6]
)
def test_other_types_have_none(name):
    assert not is_gpu_type(name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("efa", True),
        ("all-efa-devices", True),
        ("EFA0", True),
        ("default", False),
        ("gpu", False),
        ("no-efa", False),
        ("without_efa", False),
        ("piano-efa", True),
    ],
)
def test_the_word_efa_is_no_part_of_default(text, said):
    assert says_efa([{"name": text}]) is said


def test_findings_read_as_sentences():
    finding = Finding("a.b", "missing", "It fails.", "Write it.")
    assert finding.under("x: ").message("Thing 't'") == "Thing 't': x: a.b is missing. It fails. Write it."
    assert unknown("a", "Whether it works").unverified
    assert listed([]) == ""
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_a_compliant_transfer_config_has_no_faults():
    assert kv_transfer.judge(samples.transfer("kv_producer"), "x") == []
    assert (
        kv_transfer.judge(
            '{"kv_connector": "NixlConnector", "kv_connector_extra_config": {"backends": ["LIBFABRIC"]}}', "x"
        )
        == []
    )


def test_json_is_found_inside_a_command_line():
    text = 'run {broken --a \'{"x": 1}\' --kv-transfer-config \'{"kv_connector": "NixlConnector", "n": {"m": 1}}\' {'
    assert kv_transfer.in_text(text) == [{"kv_connector": "NixlConnector", "n": {"m": 1}}]


def test_json_in_double_quotes_of_a_shell_is_found():
    text = 'vllm serve m --kv-transfer-config "{\\"kv_connector\\": \\"NixlConnector\\"}"'
    assert kv_transfer.in_text(text) == [{"kv_connector": "NixlConnector"}]


def test_aliases_that_would_fill_the_memory_are_refused():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    assert serve_config.parse(bomb).reason == "not YAML that can be read"


def test_anchors_in_reasonable_numbers_are_fine():
    parsed = serve_config.parse("applications:\n- &a {import_path: 'x:y'}\n- *a\n")
    assert [app.import_path for app in serve_config.applications(parsed.tree)] == ["x:y", "x:y"]


def test_an_application_at_the_root_counts():
    parsed = serve_config.parse("import_path: 'ray.serve.llm:build_pd_openai_app'\n")
    (application,) = serve_config.applications(parsed.tree)
    assert application.is_prefill_decode
    assert [config.label for config in serve_config.llm_configs(application)] == ["prefill", "decode"]


def test_the_error_of_a_parser_never_quotes_the_text():
    assert serve_config.parse("token: hf_secret: [").reason == "not YAML (line 1, column 17)"


def test_the_nearer_runtime_env_wins():
    role = {"runtime_env": {"env_vars": {"FI_PROVIDER": "efa"}}}
    tree = {
        "applications": [
            {
                "import_path": "ray.serve.llm:build_openai_app",
                "runtime_env": {"env_vars": {"FI_PROVIDER": "tcp", "OTHER": "1"}},
                "args": {"llm_configs": [role]},
            }
        ]
    }
    (application,) = serve_config.applications(tree)
    (config,) = serve_config.llm_configs(application)
    assert serve_config.environment(config, application) == {"FI_PROVIDER": "efa", "OTHER": "1"}


def test_only_ray_kinds_are_workloads():
    assert workload_of("kubernetes:apps/v1:Deployment", {}) is None
    assert workload_of("kubernetes:ray.io/v1:RayJob", {}).cluster_path == "spec.rayClusterSpec"  # type: ignore[union-attr]


def test_the_zone_example_is_a_requirement_karpenter_takes():
    assert serve_config.parse(ZONE_EXAMPLE).tree == {
        "key": "topology.kubernetes.io/zone",
        "operator": "In",
        "values": ["us-east-1a"],
    }
