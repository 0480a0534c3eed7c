import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from components.settings.models import Settings
from tests.unit.stack_files import REMOVED, ROOT, faults, faults_of, raw, region, settings

CONFIG = "pulumi config set --path"


def set_to(path: str, value: str, flags: str = "") -> str:
    return f"Type: {CONFIG} {flags}'ray-llm-eks:{path}' {value}"


def _rm(path: str) -> str:
    return f"Type: pulumi config rm --path 'ray-llm-eks:{path}'"


def written(path: str, value: Any) -> str:
    return f"Write {json.dumps(value)} at ray-llm-eks:{path} in the stack file."


CRDS = ["crds/ray.io_rayclusters.yaml", "crds/ray.io_rayjobs.yaml", "crds/ray.io_rayservices.yaml"]
WHOLE = "it must be a whole number, without quotes"
TRUTH = "it must be true or false, without quotes"
HARDWARE = {
    "gpus": 8,
    "gpuName": "B900",
    "gpuMemoryMib": 81920,
    "vcpus": 192,
    "memoryMib": 2097152,
    "nvmeGb": 30400,
    "efaInterfaces": 32,
    "networkCards": 32,
    "bandwidthGbps": 3200,
    "gpudirect": True,
}
SHAPE = {"parameters": 8_000_000_000, "layers": 32, "heads": 32, "kvHeads": 8, "headDim": 128}

# path, wrong value, what is said about it, what to type.
WRONG: list[tuple[str, Any, str, str]] = [
    ("network.cidr", "ten", "it must be an IPv4 range, such as 10.20.0.0/16", set_to("network.cidr", "10.20.0.0/16")),
    ("network.zones", "us-east-1a", "it must be a list", written("network.zones", ["us-east-1a", "us-east-1b"])),
    ("network.natGateways", "two", "it must be single or perZone", set_to("network.natGateways", "single")),
    (
        "network.vpcId",
        "my-vpc",
        "it must be the id of a VPC: vpc- and 8 to 17 hexadecimal digits",
        set_to("network.vpcId", "vpc-0123456789abcdef0"),
    ),
    (
        "network.privateSubnets",
        ["subnet-1"],
        "it must be a block of settings",
        written(
            "network.privateSubnets",
            {"us-east-1a": "subnet-0123456789abcdef0", "us-east-1b": "subnet-0123456789abcdef1"},
        ),
    ),
    (
        "cluster.kubernetesVersion",
        1.35,
        "it must be a Kubernetes minor version in quotes, such as '1.35'",
        set_to("cluster.kubernetesVersion", "1.35", "--type string "),
    ),
    ("cluster.endpoint.public", "yes", TRUTH, set_to("cluster.endpoint.public", "true")),
    ("cluster.endpoint.private", "false", TRUTH, set_to("cluster.endpoint.private", "false")),
    (
        "cluster.endpoint.publicCidrs",
        "203.0.113.0/24",
        "it must be a list",
        written("cluster.endpoint.publicCidrs", ["<your address>/32"]),
    ),
    (
        "cluster.admins",
        "arn:aws:iam::123456789012:role/ops",
        "it must be a list",
        written("cluster.admins", ["arn:aws:iam::123456789012:role/ops"]),
    ),
    ("cluster.endpoint.allowAnywhere", 1, TRUTH, set_to("cluster.endpoint.allowAnywhere", "false")),
    ("cluster.logRetentionDays", "30", WHOLE, set_to("cluster.logRetentionDays", "30")),
    (
        "cluster.systemNodes.instanceType",
        7,
        "it must be text",
        set_to("cluster.systemNodes.instanceType", "7", "--type string "),
    ),
    ("cluster.systemNodes.count", 0, "it must be at least 1", set_to("cluster.systemNodes.count", "1")),
    (
        "gpuNodes.instanceType",
        "g6",
        "it must be an EC2 instance type, such as g6.8xlarge",
        set_to("gpuNodes.instanceType", "g6.8xlarge"),
    ),
    ("gpuNodes.count", "3", WHOLE, set_to("gpuNodes.count", "3")),
    ("gpuNodes.count", True, WHOLE, set_to("gpuNodes.count", "2")),
    ("gpuNodes.count", 1.5, WHOLE, set_to("gpuNodes.count", "2")),
    ("gpuNodes.count", 101, "it must be at most 100", set_to("gpuNodes.count", "2")),
    (
        "gpuNodes.zone",
        "use1-az1",
        "it must be the name of an Availability Zone, such as us-east-1a",
        set_to("gpuNodes.zone", "us-east-1a"),
    ),
    (
        "gpuNodes.capacity.kind",
        "odcr",
        "it must be onDemand, reservation or capacityBlock",
        set_to("gpuNodes.capacity.kind", "onDemand"),
    ),
    (
        "gpuNodes.capacity.reservationId",
        "r-1",
        "it must be the id of a capacity reservation: cr- and 8 to 17 hexadecimal digits",
        set_to("gpuNodes.capacity.reservationId", "cr-0123456789abcdef0"),
    ),
    ("gpuNodes.placementGroup", "", "it must not be empty", set_to("gpuNodes.placementGroup", "my-placement-group")),
    ("gpuNodes.createTimeoutMinutes", 5, "it must be at least 10", set_to("gpuNodes.createTimeoutMinutes", "40")),
    ("gpuNodes.hardware.gpus", 0, "it must be at least 1", set_to("gpuNodes.hardware.gpus", "8")),
    ("gpuNodes.hardware.gpuName", 100, "it must be text", set_to("gpuNodes.hardware.gpuName", "100", "--type string ")),
    ("gpuNodes.hardware.gpuMemoryMib", "80Gi", WHOLE, set_to("gpuNodes.hardware.gpuMemoryMib", "81920")),
    ("gpuNodes.hardware.vcpus", 1, "it must be at least 2", set_to("gpuNodes.hardware.vcpus", "192")),
    ("gpuNodes.hardware.memoryMib", 128, "it must be at least 8192", set_to("gpuNodes.hardware.memoryMib", "2097152")),
    ("gpuNodes.hardware.nvmeGb", 0, "it must be at least 1", set_to("gpuNodes.hardware.nvmeGb", "30400")),
    ("gpuNodes.hardware.efaInterfaces", 0, "it must be at least 1", set_to("gpuNodes.hardware.efaInterfaces", "32")),
    ("gpuNodes.hardware.networkCards", 0, "it must be at least 1", set_to("gpuNodes.hardware.networkCards", "32")),
    ("gpuNodes.hardware.bandwidthGbps", 0, "it must be at least 1", set_to("gpuNodes.hardware.bandwidthGbps", "3200")),
    ("gpuNodes.hardware.gpudirect", "yes", TRUTH, set_to("gpuNodes.hardware.gpudirect", "true")),
    ("model.id", "my model", "it must be a name of letters, digits and . _ - /", set_to("model.id", "qwen3.5-9b")),
    (
        "model.source",
        "Qwen",
        "it must be a Hugging Face repository, such as Qwen/Qwen3.5-9B",
        set_to("model.source", "Qwen/Qwen3.5-9B"),
    ),
    ("model.maxModelLen", 1, "it must be at least 16", set_to("model.maxModelLen", "4096")),
    ("model.dtype", "bf16", "it must be bfloat16, float16 or float32", set_to("model.dtype", "bfloat16")),
    (
        "model.gpuMemoryUtilization",
        90,
        "it must be less than 1",
        set_to("model.gpuMemoryUtilization", "0.9", "--type float "),
    ),
    (
        "model.gpuMemoryUtilization",
        "0.8",
        "it must be a number, without quotes",
        set_to("model.gpuMemoryUtilization", "0.8", "--type float "),
    ),
    ("model.enforceEager", "true", TRUTH, set_to("model.enforceEager", "true")),
    ("model.shape.parameters", 8, "it must be at least 1000000", set_to("model.shape.parameters", "8000000000")),
    ("model.shape.layers", 0, "it must be at least 1", set_to("model.shape.layers", "32")),
    ("model.shape.kvLayers", 0, "it must be at least 1", set_to("model.shape.kvLayers", "8")),
    ("model.shape.heads", 0, "it must be at least 1", set_to("model.shape.heads", "32")),
    ("model.shape.kvHeads", 0, "it must be at least 1", set_to("model.shape.kvHeads", "8")),
    ("model.shape.headDim", 0, "it must be at least 1", set_to("model.shape.headDim", "128")),
    ("model.shape.hybrid", "no", TRUTH, set_to("model.shape.hybrid", "false")),
    ("model.shape.stateBytes", -1, "it must be at least 0", set_to("model.shape.stateBytes", "0")),
    ("model.shape.maxPositions", 0, "it must be at least 1", set_to("model.shape.maxPositions", "131072")),
    ("prefill.replicas", 0, "it must be at least 1", set_to("prefill.replicas", "1")),
    ("prefill.tensorParallelSize", 0, "it must be at least 1", set_to("prefill.tensorParallelSize", "1")),
    ("prefill.pipelineParallelSize", "1", WHOLE, set_to("prefill.pipelineParallelSize", "1")),
    (
        "prefill.engineKwargs",
        [],
        "it must be a block of settings",
        written("prefill.engineKwargs", {"max_num_seqs": 64}),
    ),
    ("decode.replicas", 65, "it must be at most 64", set_to("decode.replicas", "1")),
    ("decode.tensorParallelSize", "one", WHOLE, set_to("decode.tensorParallelSize", "1")),
    ("decode.pipelineParallelSize", 0, "it must be at least 1", set_to("decode.pipelineParallelSize", "1")),
    (
        "decode.engineKwargs",
        "--max-num-seqs 8",
        "it must be a block of settings",
        written("decode.engineKwargs", {"max_num_seqs": 64}),
    ),
    ("service.name", 5, "it must be text", set_to("service.name", "5", "--type string ")),
    (
        "service.namespace",
        "Inference",
        "it must be a DNS label: small letters, digits and -, with a letter or digit at both ends",
        set_to("service.namespace", "inference"),
    ),
    ("service.image", "", "it must not be empty", _rm("service.image")),
    (
        "service.rayVersion",
        2.58,
        "it must be a Ray version of three numbers, such as 2.58.0",
        set_to("service.rayVersion", "2.58.0"),
    ),
    ("service.acceleratorType", "", "it must not be empty", _rm("service.acceleratorType")),
    ("service.readyTimeoutMinutes", -1, "it must be at least 0", set_to("service.readyTimeoutMinutes", "60")),
    ("service.worker.cpu", "24", WHOLE, set_to("service.worker.cpu", "24")),
    (
        "service.worker.memory",
        96,
        "it must be a memory quantity with its unit, such as 96Gi or 512Mi",
        set_to("service.worker.memory", "96Gi"),
    ),
    (
        "service.worker.shmSize",
        "16GB",
        "it must be a memory quantity with its unit, such as 96Gi or 512Mi",
        set_to("service.worker.shmSize", "16Gi"),
    ),
    ("service.upgradeStrategy", "none", "it must be None or NewCluster", set_to("service.upgradeStrategy", "None")),
    *(
        row
        for plugin, repository, chart, version in (
            ("nvidiaDevicePlugin", "https://nvidia.github.io/k8s-device-plugin", "nvidia-device-plugin", "0.20.0"),
            ("efaDevicePlugin", "https://aws.github.io/eks-charts", "aws-efa-k8s-device-plugin", "v0.5.30"),
            ("kuberayOperator", "https://ray-project.github.io/kuberay-helm/", "kuberay-operator", "1.6.0"),
        )
        for row in (
            (
                f"addons.{plugin}.repository",
                "eks",
                "it must be an https:// or oci:// URL",
                set_to(f"addons.{plugin}.repository", repository),
            ),
            (f"addons.{plugin}.chart", "", "it must not be empty", set_to(f"addons.{plugin}.chart", chart)),
            (
                f"addons.{plugin}.version",
                "latest",
                "it must be one exact version, such as 1.6.0: no range, no latest",
                set_to(f"addons.{plugin}.version", version),
            ),
        )
    ),
    ("addons.kuberayOperator.crds", "crds.yaml", "it must be a list", written("addons.kuberayOperator.crds", CRDS)),
    ("addons.timeoutMinutes", 0, "it must be at least 1", set_to("addons.timeoutMinutes", "10")),
]


def stack_with(path: str, value: Any) -> dict[str, Any]:
    sections = raw()
    if path.startswith("gpuNodes.hardware"):
        sections["gpuNodes"] |= {"instanceType": "p9.48xlarge", "hardware": dict(HARDWARE)}
    if path.startswith("model.shape"):
        sections["model"]["shape"] = dict(SHAPE)
    *parents, last = path.split(".")
    node = sections
    for parent in parents:
        node = node.setdefault(parent, {})
    node[last] = value
    return sections


@pytest.mark.parametrize(("path", "value", "why", "fix"), WRONG, ids=[f"{row[0]}={row[1]}" for row in WRONG])
def test_a_wrong_value_is_told_with_path_value_reason_and_what_to_type(
    path: str, value: Any, why: str, fix: str
) -> None:
    assert faults_of(stack_with(path, value)) == [f"ray-llm-eks:{path} is {json.dumps(value)}: {why}. {fix}"]


def _nested(field: FieldInfo) -> type[BaseModel] | None:
    kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
    return next((kind for kind in kinds if issubclass(kind, BaseModel)), None)


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield f"{model.__name__}.{name}", field
        if nested := _nested(field):
            yield from _fields(nested)


def _paths(model: type[BaseModel], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        nested = _nested(field)
        found += _paths(nested, f"{path}.") if nested else [path]
    return found


def test_every_setting_has_a_case_above() -> None:
    elsewhere = {"region", "stack", "tags", "model.huggingFaceToken"}

    assert {row[0] for row in WRONG} == set(_paths(Settings)) - elsewhere


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in _fields(Settings) if not field.description] == []


@pytest.mark.parametrize("name", ["parameters", "layers", "heads", "kvHeads", "headDim"])
def test_a_shape_lacks_a_number(name: str) -> None:
    sections = stack_with("model.shape.layers", 32)
    del sections["model"]["shape"][name]

    assert faults_of(sections)[0].startswith(f"ray-llm-eks:model.shape.{name}: it must be set. Type: {CONFIG} '")


def test_the_zone_of_the_gpu_nodes_has_no_default_and_the_example_is_in_the_region() -> None:
    assert faults(gpuNodes__zone=REMOVED) == [
        "ray-llm-eks:gpuNodes.zone: it must be set. Type: pulumi config set --path 'ray-llm-eks:gpuNodes.zone' us-east-1a"
    ]


def test_a_misspelt_setting_is_told_with_the_one_that_is_meant() -> None:
    assert faults(gpuNodes__instancetype="g6.8xlarge") == [
        "ray-llm-eks:gpuNodes.instancetype: there is no such setting; instanceType is meant, perhaps. "
        "Rename it. Type: pulumi config rm --path 'ray-llm-eks:gpuNodes.instancetype'"
    ]


def test_snake_case_is_told_with_the_camel_case_that_is_meant() -> None:
    assert faults(prefill__tensor_parallel_size=1) == [
        "ray-llm-eks:prefill.tensor_parallel_size: there is no such setting; tensorParallelSize is meant, perhaps. "
        "Rename it. Type: pulumi config rm --path 'ray-llm-eks:prefill.tensor_parallel_size'"
    ]


def test_a_setting_nobody_can_have_meant_is_told_with_those_there_are() -> None:
    assert faults(gpuNodes__capacity__colour="blue") == [
        "ray-llm-eks:gpuNodes.capacity.colour: there is no such setting; ray-llm-eks:gpuNodes.capacity has kind, reservationId. "
        "Type: pulumi config rm --path 'ray-llm-eks:gpuNodes.capacity.colour'"
    ]


def test_a_misspelt_section_is_told_with_the_one_that_is_meant() -> None:
    assert faults_of(raw() | {"gpuNode": {"count": 3}}) == [
        "ray-llm-eks:gpuNode: there is no such setting; gpuNodes is meant, perhaps. "
        "Rename it. Type: pulumi config rm --path 'ray-llm-eks:gpuNode'"
    ]


@pytest.mark.parametrize("name", ["proxyDeploymentConfig", "proxy_deployment_config"])
def test_proxy_settings_are_no_longer_used(name: str) -> None:
    assert faults_of(stack_with(f"decode.{name}", {})) == [
        f"ray-llm-eks:decode.{name}: there is no such setting: Ray no longer uses it: decode hands requests on since "
        f"build_pd_openai_app lost its proxy. Type: pulumi config rm --path 'ray-llm-eks:decode.{name}'"
    ]


def test_num_gpus_has_no_effect() -> None:
    assert faults(decode__rayActorOptions={"num_gpus": 0.5}) == [
        "ray-llm-eks:decode.rayActorOptions: there is no such setting: the GPUs of a replica are tensorParallelSize x "
        "pipelineParallelSize; num_gpus has no effect on them. Type: pulumi config rm --path 'ray-llm-eks:decode.rayActorOptions'"
    ]


def test_the_stack_files_leave_to_defaults_what_they_do_not_say() -> None:
    assert settings() == settings(
        addons={},
        prefill__pipelineParallelSize=1,
        service__readyTimeoutMinutes=60,
        service__upgradeStrategy="None",
        gpuNodes__createTimeoutMinutes=40,
        cluster__logRetentionDays=30,
    )


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        settings().gpu_nodes.count = 3  # type: ignore[misc]


def test_the_project_file_declares_every_section_as_an_object_that_may_be_absent() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]

    assert list(declared) == [field.alias or name for name, field in Settings.model_fields.items()][2:]
    assert {(entry["type"], json.dumps(entry["default"])) for entry in declared.values()} == {("object", "{}")}
    assert all(entry["description"] for entry in declared.values())
    assert region() == "us-east-1"
