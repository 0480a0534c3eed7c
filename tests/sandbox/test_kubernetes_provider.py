"""The stand-in around the objects: releases, provider configuration, changes, manifests, outputs."""

import json
from typing import Any

import pytest

from sandbox.kubernetes import Kubernetes
from sandbox.kubernetes.documents import decode
from sandbox.standin import UNKNOWN, Difference, ResourceRef, StandInError

RELEASE = ResourceRef("kubernetes:helm.sh/v3:Release", "urn", "operator")
CONFIG_MAP = ResourceRef("kubernetes:core/v1:ConfigMap", "urn", "settings")
SERVICE = ResourceRef("kubernetes:ray.io/v1:RayService", "urn", "llm")


def release() -> dict[str, Any]:
    return {
        "chart": "kuberay-operator",
        "version": "1.6.0",
        "name": "kuberay-operator",
        "namespace": "kuberay",
        "repositoryOpts": {"repo": "https://ray-project.github.io/kuberay-helm/"},
        "values": {"anything": {"goes": UNKNOWN}},
        "atomic": True,
        "timeout": 600,
    }


def test_a_correct_release_is_kept_as_it_is():
    checked = Kubernetes().check(RELEASE, release(), None, b"seed")
    assert (checked.inputs, checked.failures) == (release(), [])


def test_a_release_gets_a_name_a_namespace_and_a_timeout():
    inputs = {"chart": "kuberay-operator"}
    kept = Kubernetes().check(RELEASE, inputs, None, b"seed").inputs
    assert kept == {"chart": "kuberay-operator", "name": "operator-19b25856", "namespace": "default", "timeout": 300}
    assert Kubernetes().check(RELEASE, inputs, {"name": "operator-older"}, b"seed").inputs["name"] == "operator-older"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"versoin": "1"}, "versoin: is no property that Release has there; did you mean 'version'?"),
        ({"chart": None}, "chart: is required and not set: give it a string"),
        ({"timeout": 0}, "timeout: must be a number of seconds above 0, not 0"),
        (
            {"repositoryOpts": {"repo": "kuberay"}},
            'repositoryOpts.repo: "kuberay" must be the URL of a chart repository, such as https://ray-project.github.io/kuberay-helm/',
        ),
        ({"name": "a" * 54}, f'name: "{"a" * 54}" has 54 characters, and Helm allows a release 53'),
        ({"skipAwait": True}, "skipAwait: contradicts atomic, which waits in order to roll back: keep one of the two"),
    ],
)
def test_each_fault_of_a_release_is_refused(change: dict[str, Any], refusal: str):
    checked = Kubernetes().check(RELEASE, {**release(), **change}, None, b"seed")
    assert [f"{one.property}: {one.reason}" for one in checked.failures] == [refusal]


def kubeconfig() -> str:
    return json.dumps({"clusters": [], "contexts": [{"name": "aws"}], "users": []})


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"kubeconfig": UNKNOWN}, []),
        ({"kubeconfig": kubeconfig(), "context": "aws"}, []),
        ({"kubeconfig": "/home/me/.kube/config"}, []),
        ({"kubeClientSettings": '{"qps": 50}'}, []),
        ({"namspace": "x"}, ["namspace: is no property that Provider has there; did you mean 'namespace'?"]),
        (
            {"kubeClientSettings": '{"qsp": 50}'},
            ["kubeClientSettings.qsp: is no property that Provider has there; did you mean 'qps'?"],
        ),
        ({"kubeconfig": kubeconfig(), "context": "gke"}, ['context: "gke" is not a context of the kubeconfig']),
        ({"kubeconfig": '{"clusters": [], "users": []}'}, ["kubeconfig: has no list of contexts"]),
        (
            {"kubeconfig": '{"users": [{"token": "t0p"'},
            ["kubeconfig: is neither YAML nor JSON, nor the path of a file"],
        ),
    ],
)
def test_the_providers_configuration_is_judged(inputs: dict[str, Any], expected: list[str]):
    assert [f"{one.property}: {one.reason}" for one in Kubernetes().check_config(inputs)] == expected


def test_objects_are_judged_before_their_cluster_exists():
    settled = Kubernetes().settle_config({"kubeconfig": UNKNOWN, "clusterIdentifier": UNKNOWN, "namespace": "x"})
    assert UNKNOWN not in settled.values()
    assert settled["namespace"] == "x"
    assert Kubernetes().settle_config({"kubeconfig": kubeconfig()}) == {"kubeconfig": kubeconfig()}


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": data}


def diff(
    ref: ResourceRef, old: dict[str, Any], new: dict[str, Any], config: dict[str, Any] | None = None
) -> Difference:
    stand_in = Kubernetes()
    stand_in.configure(config or {})
    return stand_in.diff(ref, "id", old, {}, new)


def test_no_change_is_no_difference():
    assert diff(CONFIG_MAP, config_map(a="1"), config_map(a="1")) == Difference([], [])


def test_a_changed_config_map_is_replaced_and_first_deleted_when_it_keeps_its_name():
    assert diff(CONFIG_MAP, config_map(a="1"), config_map(a="2")) == Difference(
        ["data.a"], ["data.a"], delete_before_replace=True
    )


def test_a_changed_config_map_of_a_chosen_name_is_made_before_the_old_one_goes():
    old, new = config_map(a="1"), config_map(a="2")
    for one in (old, new):
        one["metadata"]["annotations"] = {"pulumi.com/autonamed": "true"}
    assert diff(CONFIG_MAP, old, new) == Difference(["data.a"], ["data.a"], delete_before_replace=False)


def test_a_provider_that_lets_config_maps_change_updates_them():
    assert diff(CONFIG_MAP, config_map(a="1"), config_map(a="2"), {"enableConfigMapMutable": "true"}) == Difference(
        ["data.a"], []
    )


def test_a_moved_object_is_replaced():
    new = config_map(a="1")
    new["metadata"]["namespace"] = "c"
    assert diff(CONFIG_MAP, config_map(a="1"), new) == Difference(["metadata.namespace"], ["metadata.namespace"])


def test_a_changed_ray_service_is_updated_in_place():
    old = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "a"}, "spec": {"serveConfigV2": "a"}}
    assert diff(SERVICE, old, {**old, "spec": {"serveConfigV2": "b"}}) == Difference(["spec.serveConfigV2"], [])


def test_a_renamed_release_is_replaced_and_changed_values_update_it():
    assert diff(RELEASE, {"name": "a", "chart": "c"}, {"name": "b", "chart": "c"}) == Difference(["name"], ["name"])
    assert diff(RELEASE, {"values": {"a": 1}}, {"values": {"a": 2}}) == Difference(["values.a"], [])


def test_what_only_the_cluster_knows_is_unknown_in_a_preview():
    assert Kubernetes().create(CONFIG_MAP, config_map(a="1"), preview=True) == (
        "",
        {**config_map(a="1"), "status": UNKNOWN},
    )
    _, outputs = Kubernetes().create(RELEASE, {"chart": "c"}, preview=True)
    assert {key for key, value in outputs.items() if value is UNKNOWN} == {"status", "resourceNames", "manifest"}


MANIFEST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
---
apiVersion: v1
kind: Namespace
metadata: {name: b}
"""


def test_a_manifest_is_taken_apart():
    assert Kubernetes().invoke("kubernetes:yaml:decode", {"text": MANIFEST, "defaultNamespace": "x"})["result"] == [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "x"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "the manifest is not YAML: did not find expected node content (line 2, column 1)"),
        ("a: b", "a Kubernetes object needs an apiVersion and a kind, and a document of the manifest has not both"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused(text: str, message: str):
    with pytest.raises(StandInError) as refusal:
        decode(text + "\n")
    assert str(refusal.value) == message


def test_charts_are_not_rendered():
    with pytest.raises(
        StandInError,
        match=r"^kubernetes:helm:template: the sandbox has no charts to render; install a chart as a Release",
    ):
        Kubernetes().invoke("kubernetes:helm:template", {})
