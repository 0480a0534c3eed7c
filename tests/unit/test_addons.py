from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
import pytest

from components.addon_values import eks_image_registry, kuberay_crd_urls
from components.addons import ClusterAddons, ClusterAddonsArgs
from components.faults import StackFaults
from components.node_labels import GPU_NODE_LABELS, GPU_TAINT

RELEASE = "kubernetes:helm.sh/v3:Release"
NAMESPACE = "kubernetes:core/v1:Namespace"
CRDS = "kubernetes:yaml/v2:ConfigGroup"
RELEASES = ("addons-nvidia-device-plugin", "addons-efa-device-plugin", "addons-kuberay-operator")


def addon_args(**changes: Any) -> ClusterAddonsArgs:
    args: Any = {
        "instance_type": "g6.8xlarge",
        "region": "us-east-1",
        "nvidia_device_plugin": {
            "repository": "https://nvidia.example",
            "chart": "nvidia-device-plugin",
            "version": "0.20.0",
        },
        "efa_device_plugin": {
            "repository": "https://aws.example",
            "chart": "aws-efa-k8s-device-plugin",
            "version": "v0.5.30",
        },
        "kuberay_operator": {"repository": "https://ray.example", "chart": "kuberay-operator", "version": "1.6.0"},
        **changes,
    }
    return args


def addons(**changes: Any) -> ClusterAddons:
    """The add-ons on a cluster whose two node groups are ``system`` and ``gpu``."""
    provider = kubernetes.Provider("the-cluster", kubeconfig="{}")
    groups = {
        name: aws.eks.NodeGroup(
            name,
            cluster_name="demo",
            node_role_arn="arn",
            subnet_ids=["subnet-a"],
            scaling_config={"min_size": 1, "max_size": 1, "desired_size": 1},
        )
        for name in ("system", "gpu")
    }
    return ClusterAddons(
        "addons",
        addon_args(gpu_nodes=[groups["gpu"]], system_nodes=[groups["system"]], **changes),
        opts=pulumi.ResourceOptions(provider=provider),
    )


@pytest.mark.parametrize("preview", [True, False])
def test_the_add_ons_are_exactly_these_resources(deploy, preview):
    assert deploy(lambda: ClusterAddons("addons", addon_args()), preview=preview).listed() == sorted(
        [
            ("ray-llm-eks:index:ClusterAddons", "addons"),
            (NAMESPACE, "addons-device-plugins"),
            (NAMESPACE, "addons-kuberay-system"),
            (CRDS, "addons-kuberay-crds"),
            *((RELEASE, name) for name in RELEASES),
        ]
    )


@pytest.mark.parametrize("preview", [True, False])
def test_every_kubernetes_resource_has_the_provider_of_the_cluster(deploy, preview):
    recording = deploy(addons, preview=preview)
    children = [it for it in recording.resources if it.parent == "addons"]
    assert len(children) == 6
    assert all("::the-cluster::" in it.provider for it in children)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_succeeds_in_time_or_leaves_nothing(deploy, name):
    release = deploy(lambda: addons(timeout_minutes=7)).one(RELEASE, name)
    assert release.inputs["atomic"] is True
    assert release.inputs["cleanupOnFail"] is True
    assert release.inputs["timeout"] == 420
    assert release.delete_before_replace


def test_each_chart_is_pinned_to_its_repository_and_version(deploy):
    recording = deploy(addons)
    pins = {
        name: (it["repositoryOpts"]["repo"], it["chart"], it["version"])
        for name in RELEASES
        for it in [recording.one(RELEASE, name).inputs]
    }
    assert pins == {
        "addons-nvidia-device-plugin": ("https://nvidia.example", "nvidia-device-plugin", "0.20.0"),
        "addons-efa-device-plugin": ("https://aws.example", "aws-efa-k8s-device-plugin", "v0.5.30"),
        "addons-kuberay-operator": ("https://ray.example", "kuberay-operator", "1.6.0"),
    }


@pytest.mark.parametrize("name", ["addons-nvidia-device-plugin", "addons-efa-device-plugin"])
def test_a_plugin_tolerates_the_taint_of_the_gpu_nodes_and_selects_their_labels(deploy, name):
    values = deploy(addons).one(RELEASE, name).inputs["values"]
    assert values["tolerations"] == [GPU_TAINT.toleration()]
    assert values["nodeSelector"]
    assert values["nodeSelector"].items() <= GPU_NODE_LABELS.items()


def test_the_nvidia_plugin_selects_the_label_its_chart_knows(deploy):
    values = deploy(addons).one(RELEASE, "addons-nvidia-device-plugin").inputs["values"]
    assert values["nodeSelector"] == {"nvidia.com/gpu.present": "true"}


def test_the_efa_plugin_runs_on_the_type_of_the_gpu_nodes_with_an_image_of_the_region(deploy):
    values = deploy(lambda: addons(instance_type="g7.48xlarge", region="eu-south-1")).one(
        RELEASE, "addons-efa-device-plugin"
    )
    assert values.inputs["values"]["supportedInstanceLabels"] == {
        "keys": ["node.kubernetes.io/instance-type"],
        "values": ["g7.48xlarge"],
    }
    assert values.inputs["values"]["image"] == {
        "repository": "590381155156.dkr.ecr.eu-south-1.amazonaws.com/eks/aws-efa-k8s-device-plugin"
    }


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", "602401143452.dkr.ecr.us-east-1.amazonaws.com"),
        ("cn-north-1", "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com"),
    ],
)
def test_eks_images_come_from_the_account_and_partition_of_the_region(region, registry):
    assert eks_image_registry(region) == registry


def test_the_operator_stays_on_the_system_nodes_and_leaves_the_crds_alone(deploy):
    release = deploy(addons).one(RELEASE, "addons-kuberay-operator")
    assert release.inputs["values"] == {"nodeSelector": {"ray-llm-eks/node-group": "system"}}
    assert release.inputs["skipCrds"] is True
    assert "addons-kuberay-crds" in release.depends_on


def test_the_crds_are_those_of_the_operator_and_outlive_it(deploy):
    crds = deploy(addons).one(CRDS)
    root = "https://raw.githubusercontent.com/ray-project/kuberay/v1.6.0/helm-chart/kuberay-operator/crds"
    assert crds.inputs["files"] == [
        f"{root}/ray.io_{kind}.yaml" for kind in ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
    ]
    assert crds.retain_on_delete


def test_crd_files_may_be_named(deploy):
    assert deploy(lambda: addons(kuberay_crds=["crds/rayservices.yaml"])).one(CRDS).inputs["files"] == [
        "crds/rayservices.yaml"
    ]


def test_an_operator_before_1_6_has_no_cron_jobs():
    assert not [url for url in kuberay_crd_urls("v1.5.1") if "raycronjobs" in url]
    assert all("/v1.5.1/" in url for url in kuberay_crd_urls("v1.5.1"))


def test_a_version_no_crds_can_be_derived_from_is_refused(deploy):
    chart = {"repository": "https://ray.example", "chart": "kuberay-operator", "version": "nightly"}
    with pytest.raises(StackFaults) as caught:
        deploy(lambda: addons(kuberay_operator=chart))
    assert str(caught.value) == (
        "addons.kuberayOperator.version: 'nightly' is not a release such as 1.6.0; write one, or name its CRD files in "
        "addons.kuberayOperator.crds."
    )


def test_plugins_wait_for_the_gpu_nodes_and_the_operator_for_the_system_nodes_only(deploy):
    recording = deploy(addons)
    for name in ("addons-nvidia-device-plugin", "addons-efa-device-plugin"):
        assert recording.one(RELEASE, name).depends_on == {"gpu", "addons-device-plugins"}
    assert recording.one(RELEASE, "addons-kuberay-operator").depends_on == {
        "system",
        "addons-kuberay-system",
        "addons-kuberay-crds",
    }


def test_only_the_plugins_namespace_allows_privileged_pods(deploy):
    recording = deploy(addons)
    levels = {
        it.inputs["metadata"]["name"]: it.inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for it in recording.of_type(NAMESPACE)
    }
    assert levels == {"device-plugins": "privileged", "kuberay-system": "restricted"}
    for name in RELEASES:
        assert recording.one(RELEASE, name).inputs["namespace"] in levels
