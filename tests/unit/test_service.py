from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from components.choices import Dtype, UpgradeStrategy
from components.faults import StackFaults
from components.ray_cluster import replace_paths
from components.service import PrefillDecodeService, PrefillDecodeServiceArgs, check_service, ray_service_spec
from policies.ray_efa_policies import efa_requests, nixl_backend, privileges
from policies.ray_efa_policies.workloads import workload_of
from sandbox.kubernetes.objects import Identity, judge
from sandbox.wire import decode, encode

RAY_SERVICE = "kubernetes:ray.io/v1:RayService"
CHILDREN = [
    ("kubernetes:core/v1:Namespace", "llm-namespace"),
    ("kubernetes:core/v1:ServiceAccount", "llm-head-account"),
    ("kubernetes:core/v1:ServiceAccount", "llm-worker-account"),
    ("kubernetes:networking.k8s.io/v1:NetworkPolicy", "llm-network-policy"),
    ("kubernetes:ray.io/v1:RayService", "llm-ray-service"),
    ("ray-llm-eks:index:PrefillDecodeService", "llm"),
]


def service_args(**changes: Any) -> PrefillDecodeServiceArgs:
    role = {"replicas": 1, "tensor_parallel_size": 1, "pipeline_parallel_size": 1}
    return {
        "name": "ray-llm",
        "namespace": "inference",
        "operator_namespace": "kuberay-system",
        "image": "registry.example/ray:1.0",
        "ray_version": "2.58.0",
        "model": {
            "id": "qwen3.5-9b",
            "source": "Qwen/Qwen3.5-9B",
            "max_model_len": 4096,
            "dtype": Dtype.BFLOAT16,
            "gpu_memory_utilization": 0.9,
            "enforce_eager": True,
        },
        "prefill": role,
        "decode": role,
        "gpus": 1,
        "efa_interfaces": 1,
        "worker": {"cpu": 24, "memory": "96Gi", "shm_size": "16Gi"},
        **changes,
    }  # pyright: ignore[reportReturnType]


def program(depends_on: list[str] | None = None, **changes: Any) -> Any:
    """The service, behind namespaces that stand for what it has to wait for."""
    before = [kubernetes.core.v1.Namespace(name) for name in depends_on or []]
    return PrefillDecodeService("llm", service_args(**changes), pulumi.ResourceOptions(depends_on=before))


@pytest.mark.parametrize("preview", [True, False])
def test_the_service_is_made_of_these_resources(deploy: Any, preview: bool) -> None:
    assert deploy(program, preview=preview).listed() == CHILDREN


def test_every_resource_is_a_child_of_the_service(deploy: Any) -> None:
    recording = deploy(program)
    assert {resource.parent for resource in recording.resources if resource.name != "llm"} == {"llm"}


def test_a_first_preview_sees_the_whole_ray_service(deploy: Any) -> None:
    recording = deploy(lambda: program(hugging_face_token="hf_token"), preview=True)
    assert recording.one(RAY_SERVICE).inputs["spec"] == ray_service_spec(service_args(hugging_face_token="hf_token"))


def test_the_outputs_are_known_in_a_first_preview(deploy: Any) -> None:
    assert deploy(program, preview=True).outputs["llm"] == {
        "endpoint": "http://ray-llm-serve-svc.inference.svc.cluster.local:8000/v1",
        "modelId": "qwen3.5-9b",
    }


def test_the_ray_service_comes_after_what_the_caller_names_and_what_stands_around_it(deploy: Any) -> None:
    recording = deploy(lambda: program(depends_on=["operator", "gpu-nodes"]))
    children = {name for _, name in CHILDREN} - {"llm", "llm-ray-service"}
    assert recording.one(RAY_SERVICE).depends_on == {"operator", "gpu-nodes"} | children


def test_the_namespace_says_that_it_holds_privileged_pods(deploy: Any) -> None:
    metadata = deploy(lambda: program(labels={"team": "ml"})).one("kubernetes:core/v1:Namespace").inputs["metadata"]
    assert metadata["name"] == "inference"
    assert metadata["labels"] == {"team": "ml", "pod-security.kubernetes.io/enforce": "privileged"}


def test_no_account_hands_its_token_to_a_pod_that_does_not_ask(deploy: Any) -> None:
    accounts = deploy(program).of_type("kubernetes:core/v1:ServiceAccount")
    assert {
        account.inputs["metadata"]["name"]: account.inputs["automountServiceAccountToken"] for account in accounts
    } == {
        "ray-llm-head": False,
        "ray-llm-worker": False,
    }


def test_only_ray_and_its_operator_reach_the_dashboard(deploy: Any) -> None:
    spec = deploy(program).one("kubernetes:networking.k8s.io/v1:NetworkPolicy").inputs["spec"]
    ray_pods = {"matchExpressions": [{"key": "ray.io/node-type", "operator": "Exists"}]}
    assert spec["podSelector"] == ray_pods
    assert spec["policyTypes"] == ["Ingress"]
    inside, anybody = spec["ingress"]
    assert inside == {
        "from": [
            {"podSelector": ray_pods},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kuberay-system"}}},
        ]
    }
    assert {port["port"] for port in anybody["ports"]} == {8000, 8080}


def test_a_token_is_a_secret_and_nowhere_in_the_clear(deploy: Any) -> None:
    recording = deploy(lambda: program(hugging_face_token="hf_not_for_you"))
    secret = recording.one("kubernetes:core/v1:Secret", "llm-hugging-face-token")
    assert "stringData" in secret.secret_inputs
    assert secret.inputs["metadata"]["name"] == "ray-llm-hugging-face"
    assert "hf_not_for_you" not in str(recording.one(RAY_SERVICE).inputs)
    assert "ray-llm-hugging-face" in str(recording.one(RAY_SERVICE).inputs)


def test_up_waits_until_the_service_is_ready(deploy: Any) -> None:
    ray_service = deploy(lambda: program(ready_timeout_minutes=45)).one(RAY_SERVICE)
    assert ray_service.inputs["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Ready"}
    assert ray_service.create_timeout == "45m"


def test_up_waits_for_nothing_where_the_stack_says_so(deploy: Any) -> None:
    ray_service = deploy(lambda: program(ready_timeout_minutes=0)).one(RAY_SERVICE)
    assert ray_service.inputs["metadata"].get("annotations") is None
    assert ray_service.create_timeout == ""


@pytest.mark.parametrize("strategy", UpgradeStrategy)
def test_a_change_that_kuberay_ignores_replaces_the_service_the_old_one_first(
    deploy: Any, strategy: UpgradeStrategy
) -> None:
    ray_service = deploy(lambda: program(upgrade_strategy=strategy)).one(RAY_SERVICE)
    assert ray_service.delete_before_replace
    assert list(ray_service.replace_on_changes) == replace_paths(strategy)
    assert ray_service.inputs["spec"]["upgradeStrategy"] == {"type": strategy.value}


def test_more_replicas_change_the_application_and_the_start_of_the_group_only() -> None:
    role = {"replicas": 2, "tensor_parallel_size": 1, "pipeline_parallel_size": 1}
    before, after = ray_service_spec(service_args()), ray_service_spec(service_args(decode=role))
    application = yaml.safe_load(after["serveConfigV2"])["applications"][0]
    assert application["args"]["decode_config"]["deployment_config"] == {"num_replicas": 2}
    assert after["rayClusterConfig"]["workerGroupSpecs"][1].pop("replicas") == 2
    assert before["rayClusterConfig"]["workerGroupSpecs"][1].pop("replicas") == 1
    assert before["rayClusterConfig"] == after["rayClusterConfig"]


def test_every_pod_runs_the_same_image() -> None:
    config = ray_service_spec(service_args())["rayClusterConfig"]
    templates = [config["headGroupSpec"]["template"], *(group["template"] for group in config["workerGroupSpecs"])]
    images = {container["image"] for template in templates for container in template["spec"]["containers"]}
    assert images == {"registry.example/ray:1.0"}


def test_the_api_server_and_the_operator_refuse_none_of_the_objects(deploy: Any) -> None:
    recording = deploy(lambda: program(hugging_face_token="hf_token", labels={"team": "ml"}))
    objects = [resource for resource in recording.resources if resource.typ.startswith("kubernetes:")]
    assert len(objects) == len(CHILDREN)
    for resource in objects:
        inputs = decode(encode(resource.inputs))
        assert list(judge(Identity.of(resource.typ, inputs), inputs)) == [], resource.name


def test_the_packs_own_rules_find_nothing(deploy: Any) -> None:
    ray_service = deploy(program, preview=True).one(RAY_SERVICE)
    workload = workload_of(ray_service.typ, ray_service.inputs)
    assert workload is not None
    assert nixl_backend.check(workload) == []
    assert [group.name for group in workload.groups] == ["prefill", "decode"]
    for group in workload.groups:
        assert efa_requests.check(group) == privileges.check(group) == []


def test_requests_go_to_workers_only() -> None:
    assert ray_service_spec(service_args())["excludeHeadPodFromServeSvc"] is True


def test_the_reference_arguments_have_no_fault() -> None:
    assert check_service(service_args()) == []


def test_a_replica_that_does_not_fill_its_worker_is_a_fault() -> None:
    role = {"replicas": 1, "tensor_parallel_size": 2, "pipeline_parallel_size": 1}
    assert check_service(service_args(prefill=role, gpus=4, decode={**role, "tensor_parallel_size": 4})) == [
        "prefill: tensor_parallel_size 2 x pipeline_parallel_size 1 = 2 leaves GPUs idle: a privileged worker owns all 4 of its node; "
        "make the product 4"
    ]


@pytest.mark.parametrize("replicas", [0, 65])
def test_replicas_beyond_the_bounds_of_a_role_are_a_fault(replicas: int) -> None:
    role = {"replicas": replicas, "tensor_parallel_size": 1, "pipeline_parallel_size": 1}
    assert check_service(service_args(decode=role)) == [f"decode.replicas is {replicas}: write 1 to 64"]


def test_all_faults_come_at_once_and_before_any_resource(deploy: Any) -> None:
    bad = {"replicas": 0, "tensor_parallel_size": 1, "pipeline_parallel_size": 1, "engine_kwargs": {"model": "x"}}
    made: list[Any] = []

    def refused() -> None:
        with pytest.raises(StackFaults) as refusal:
            program(prefill={**bad, "replicas": 1}, decode=bad)
        made.append(refusal.value.faults)

    assert deploy(refused).listed() == []
    [faults] = made
    assert [fault.split(" ")[0] for fault in faults] == [
        "decode.replicas",
        "prefill.engine_kwargs.model",
        "decode.engine_kwargs.model",
    ]
