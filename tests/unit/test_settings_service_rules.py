import pytest

from tests.unit.stack_files import faults, faults_of, raw, region, settings

SET = "Type: pulumi config set --path 'ray-llm-eks:"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/ray:serve-llm-cuda-v1.0"


@pytest.mark.parametrize("name", ["Ray-LLM", "1ray", "ray_llm", "ray-", ""])
def test_the_service_has_a_dns_1035_name(name: str) -> None:
    assert faults(service__name=name) == [
        f'ray-llm-eks:service.name is "{name}": it must be a DNS-1035 label: small letters, digits and -, a letter first, a letter or '
        f"digit last. {SET}service.name' ray-llm"
    ]


def test_the_name_of_the_service_leaves_kuberay_room() -> None:
    name = "r" * 48

    assert faults(service__name=name) == [
        f'ray-llm-eks:service.name is "{name}": it has 48 characters, and KubeRay allows 47 for a RayService. '
        f"{SET}service.name' {'r' * 47}"
    ]
    assert faults(service__name="r" * 47) == []


def test_a_namespace_is_not_too_long() -> None:
    name = "n" * 64

    assert faults(service__namespace=name) == [
        f'ray-llm-eks:service.namespace is "{name}": it has 64 characters, and a namespace has 63 at most. '
        f"{SET}service.namespace' {'n' * 63}"
    ]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-mine", "kuberay-system"])
def test_a_namespace_of_others_is_refused(name: str) -> None:
    assert faults(service__namespace=name) == [
        f'ray-llm-eks:service.namespace is "{name}": the stack makes a namespace that permits privileged pods, and this one belongs to '
        f"others. {SET}service.namespace' inference"
    ]


def test_the_image_is_awss_in_the_regions_registry() -> None:
    assert settings().image == IMAGE


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("rayproject/ray-llm", "it has neither a tag nor a digest, so each pull takes whatever is newest"),
        ("localhost:5000/ray", "it has neither a tag nor a digest, so each pull takes whatever is newest"),
        (
            "rayproject/ray-llm:latest",
            "the tag latest moves: two nodes may run two versions, and prefill and decode must match",
        ),
        ("rayproject/ray-llm@sha256:abc", "its digest is not sha256: and 64 hexadecimal digits"),
        ("rayproject/ray-llm:ümlaut", "its tag has characters no registry allows"),
        (
            "763104351884.dkr.ecr.us-west-2.amazonaws.com/ray:serve-llm-cuda-v1.0",
            "it is account 763104351884 in us-west-2; for us-east-1 AWS names account 763104351884",
        ),
        (
            "626614931356.dkr.ecr.us-east-1.amazonaws.com/ray:serve-llm-cuda-v1.0",
            "it is account 626614931356 in us-east-1; for us-east-1 AWS names account 763104351884",
        ),
    ],
)
def test_an_image_is_pinned_and_where_the_nodes_may_pull_it(image: str, why: str) -> None:
    assert faults(service__image=image) == [
        f'ray-llm-eks:service.image is "{image}": {why}. {SET}service.image\' {IMAGE}'
    ]


@pytest.mark.parametrize(
    "image",
    [
        "public.ecr.aws/deep-learning-containers/ray:serve-llm-cuda",
        "123456789012.dkr.ecr.eu-west-1.amazonaws.com/ray:mine-1",
        "rayproject/ray-llm@sha256:" + "0123456789abcdef" * 4,
    ],
)
def test_a_pinned_image_of_ones_own_is_accepted(image: str) -> None:
    assert settings(service__image=image).image == image


def test_a_region_without_a_registry_needs_an_image() -> None:
    found = faults_of(
        raw(network__zones=["us-gov-west-1a", "us-gov-west-1b"], gpuNodes__zone="us-gov-west-1a"), "us-gov-west-1"
    )

    assert len(found) == 1
    assert found[0].startswith(
        "ray-llm-eks:service.image: AWS names no registry of its containers for us-gov-west-1 (known: af-south-1, "
    )
    assert found[0].endswith("Mirror the image into a registry of your own and write it here, with tag or digest.")
    assert region() == "us-east-1"


def test_ray_knows_token_authentication() -> None:
    assert faults(service__rayVersion="2.51.2") == [
        'ray-llm-eks:service.rayVersion is "2.51.2": token authentication, which is always on, needs Ray 2.52.0: without it port 8265 '
        f"runs anybody's code. {SET}service.rayVersion' 2.58.0"
    ]
    assert faults(service__rayVersion="2.52.0") == []


def test_the_operator_knows_the_fields_in_use() -> None:
    assert faults(addons__kuberayOperator__version="1.4.0") == [
        'ray-llm-eks:addons.kuberayOperator.version is "1.4.0": the RayService uses authOptions, which KubeRay knows from 1.5.1. '
        f"{SET}addons.kuberayOperator.version' 1.6.0"
    ]
    assert faults(addons__kuberayOperator__version="1.5.1") == []


@pytest.mark.parametrize("version", ["0.19.0", "v0.19.2"])
def test_a_broken_nvidia_plugin_is_refused(version: str) -> None:
    assert faults(addons__nvidiaDevicePlugin__version=version) == [
        f'ray-llm-eks:addons.nvidiaDevicePlugin.version is "{version}": 0.19.0 to 0.19.2 switch on MOFED, which nodes with EFA have not; '
        f"NVIDIA took it back in 0.19.3. {SET}addons.nvidiaDevicePlugin.version' 0.20.0"
    ]


def test_one_version_may_be_set_alone() -> None:
    operator = settings(addons__kuberayOperator__version="1.6.1").addons.kuberay_operator

    assert (operator.chart, operator.version, operator.crds) == ("kuberay-operator", "1.6.1", [])


def test_the_wait_is_long_enough_to_load_a_model() -> None:
    assert faults(service__readyTimeoutMinutes=5) == [
        "ray-llm-eks:service.readyTimeoutMinutes is 5: pulling the image and loading the model takes longer; 10 at least, or 0 to not "
        f"wait. {SET}service.readyTimeoutMinutes' 60"
    ]
    assert faults(service__readyTimeoutMinutes=0) == []
