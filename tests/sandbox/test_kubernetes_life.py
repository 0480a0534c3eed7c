"""What the simulated clusters keep, refuse and forget, without an engine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.calls import CURRENT, Call
from sandbox.kubernetes import Kubernetes
from sandbox.nodes import Node, Taint
from sandbox.standin import InitFailed, ResourceRef, StandInError

ENDPOINT = "https://0123456789ABCDEF0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com"
NO_CLUSTER = (
    f'unable to load schema information from the API server: Get "{ENDPOINT}/openapi/v2?timeout=32s": dial tcp: lookup'
    " 0123456789abcdef0123456789abcdef.gr7.us-east-1.eks.amazonaws.com: no such host"
)
FORGET = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with the"
    ' PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
)


class Cluster:
    """One cluster and a provider for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clusters = {ENDPOINT: "llm"}
        self.nodes = [node()]
        self.provider = self.started()

    def started(self) -> Kubernetes:
        """Another process on the same account."""
        provider = Kubernetes(self.folder, lambda: self.clusters, lambda _: self.nodes, patience_seconds=0)
        provider.configure({"kubeconfig": kubeconfig(ENDPOINT)})
        return provider

    def create(self, document: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return self.provider.create(ref(document), document, preview=False)

    def delete(self, id: str, document: dict[str, Any]) -> None:
        self.provider.delete(ref(document), id, document, document)

    def ids(self) -> list[str]:
        return [f"{one.kind} {one.id}" for one in self.provider.inventory()]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "kubernetes")


@pytest.fixture
def two_providers() -> Iterator[None]:
    token = CURRENT.set(Call("the other provider's connection"))
    yield
    CURRENT.reset(token)


def node(labels: dict[str, str] | None = None, *taints: Taint) -> Node:
    return Node("ip-10-9-16-4.ec2.internal", "i-0", "m7i.xlarge", "us-east-1a", "system", labels or {}, taints, 0)


def kubeconfig(endpoint: str) -> str:
    return json.dumps(
        {
            "clusters": [{"name": "kubernetes", "cluster": {"server": endpoint}}],
            "contexts": [{"name": "aws", "context": {"cluster": "kubernetes", "user": "aws"}}],
            "current-context": "aws",
            "users": [],
        }
    )


def ref(document: dict[str, Any]) -> ResourceRef:
    if "chart" in document:
        return ResourceRef("kubernetes:helm.sh/v3:Release", "the-urn", "release")
    version = document["apiVersion"]
    return ResourceRef(
        f"kubernetes:{version if '/' in version else f'core/{version}'}:{document['kind']}", "the-urn", "object"
    )


def namespace(name: str = "inference") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "inference"}, "data": data}


def crd() -> dict[str, Any]:
    spec = {
        "group": "ray.io",
        "names": {"kind": "RayService", "plural": "rayservices"},
        "scope": "Namespaced",
        "versions": [],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rayservices.ray.io"},
        "spec": spec,
    }


def operator(**fields: Any) -> dict[str, Any]:
    given = {"chart": "kuberay-operator", "version": "1.6.0", "name": "kuberay-operator", "namespace": "inference"}
    return {**given, "skipCrds": True, "timeout": 600, **fields}


def ray_service(**cluster_config: Any) -> dict[str, Any]:
    metadata = {"name": "llm", "namespace": "inference", "annotations": {"pulumi.com/waitFor": "condition=Ready"}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": metadata,
        "spec": {"rayClusterConfig": cluster_config},
    }


def refusal(action: Any, *arguments: Any) -> str:
    with pytest.raises(StandInError) as found:
        action(*arguments)
    return str(found.value)


def test_an_object_gets_what_an_api_server_gives_it(cluster: Cluster):
    id, live = cluster.create(namespace())
    assert id == "inference"
    assert live["status"] == {"phase": "Active"}
    assert {"uid", "creationTimestamp", "resourceVersion", "generation"} < live["metadata"].keys()


def test_objects_outlive_the_process(cluster: Cluster):
    cluster.create(namespace())
    _, live = cluster.create(config_map(a="1"))
    found = cluster.started().read(ref(live), "inference/a", config_map(a="1"), {})
    assert found == ("inference/a", config_map(a="1"), live)


def test_a_namespace_that_is_not_there_is_named(cluster: Cluster):
    assert refusal(cluster.create, config_map()) == (
        'resource "the-urn" was not successfully created by the Kubernetes API server: namespaces "inference" not found'
    )


def test_a_namespace_that_comes_in_time_is_waited_for(cluster: Cluster):
    patient = Kubernetes(cluster.folder, lambda: cluster.clusters, patience_seconds=5)
    patient.configure({"kubeconfig": kubeconfig(ENDPOINT)})
    waited: list[float] = []

    def make_it(seconds: float) -> bool:
        waited.append(seconds)
        cluster.create(namespace())
        return False

    patient._turn.wait = make_it  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
    assert patient.create(ref(config_map()), config_map(), preview=False)[0] == "inference/a"
    assert len(waited) == 1


def test_a_second_object_of_a_name_is_refused(cluster: Cluster):
    cluster.create(namespace())
    assert refusal(cluster.create, namespace()) == (
        'resource "the-urn" was not successfully created by the Kubernetes API server: namespaces "inference" already'
        " exists. Import it (`pulumi import`), change it with a patch resource, or delete it"
    )


def test_a_provider_that_upserts_takes_it_over(cluster: Cluster):
    _, first = cluster.create(namespace())
    cluster.provider.configure({"kubeconfig": kubeconfig(ENDPOINT), "upsertExistingObjects": "true"})
    _, second = cluster.create(namespace())
    assert second["metadata"]["uid"] == first["metadata"]["uid"]


def test_an_update_keeps_the_object_and_counts_it(cluster: Cluster):
    cluster.create(namespace())
    _, before = cluster.create(config_map(a="1"))
    after = cluster.provider.update(
        ref(before), "inference/a", config_map(a="1"), before, config_map(a="2"), preview=False
    )
    assert after["data"] == {"a": "2"}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1


def test_what_somebody_deleted_cannot_be_updated_and_reads_as_gone(cluster: Cluster):
    old, new = config_map(a="1"), config_map(a="2")
    assert refusal(cluster.provider.update, ref(old), "inference/a", old, old, new, False) == (
        'update of resource "the-urn" failed: configmaps "a" not found'
    )
    assert cluster.provider.read(ref(old), "inference/a", old, old) is None


def test_a_read_shows_what_somebody_changed_and_nothing_that_the_program_left_open(cluster: Cluster):
    cluster.create(namespace())
    cluster.create(config_map(a="1"))
    cluster.provider.update(ref(config_map()), "inference/a", {}, {}, config_map(a="3", b="added"), preview=False)
    found = cluster.provider.read(ref(config_map()), "inference/a", config_map(a="1"), {})
    assert found is not None
    assert found[1] == config_map(a="3")


def test_deleting_a_namespace_takes_what_is_in_it(cluster: Cluster):
    cluster.create(namespace())
    cluster.create(namespace("other"))
    cluster.create(config_map())
    cluster.delete("inference", namespace())
    assert cluster.ids() == ["Namespace other"]


def test_what_is_gone_already_can_be_deleted_but_not_a_release(cluster: Cluster):
    cluster.delete("inference", namespace())
    assert refusal(cluster.delete, "inference/kuberay-operator", operator()) == (
        "uninstall: Release not loaded: kuberay-operator: release: not found"
    )


def test_a_ray_service_before_its_definition_matches_no_kind(cluster: Cluster):
    cluster.create(namespace())
    assert refusal(cluster.create, ray_service()) == (
        'creation of resource "the-urn" with kind ray.io/v1/RayService failed because the Kubernetes API server reported that'
        " the apiVersion for this resource does not exist. Verify that any required CRDs have been created: no matches for kind"
        ' "RayService" in version "ray.io/v1"'
    )


@pytest.mark.parametrize("definition", [crd(), operator(skipCrds=False)], ids=["the CRD", "a chart that brings it"])
def test_a_ray_service_is_ready_at_once_where_an_operator_is(cluster: Cluster, definition: dict[str, Any]):
    cluster.create(namespace())
    cluster.create(definition)
    if "chart" not in definition:
        cluster.create(operator())
    _, live = cluster.create(ray_service())
    (condition,) = live["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    assert condition["message"] == "The sandbox starts nothing: this object is kept and given back"


def test_a_ray_service_without_an_operator_is_made_and_never_ready(cluster: Cluster):
    cluster.create(namespace())
    cluster.create(crd())
    with pytest.raises(InitFailed) as failure:
        cluster.create(ray_service())
    assert failure.value.id == "inference/llm"
    assert str(failure.value) == (
        'resource "the-urn" was successfully created, but the Kubernetes API server reported that it failed to fully'
        " initialize or become live: timed out waiting for the condition (no KubeRay operator is installed)"
    )
    assert "RayService inference/llm" in cluster.ids()


def test_deleting_a_definition_takes_its_objects(cluster: Cluster):
    for one in (namespace(), crd(), operator(), ray_service()):
        cluster.create(one)
    cluster.delete("rayservices.ray.io", crd())
    assert cluster.ids() == ["Namespace inference", "Release inference/kuberay-operator"]


def test_a_ray_service_outlives_its_operator_only_with_fault_tolerance(cluster: Cluster):
    for one in (namespace(), crd(), operator(), ray_service(gcsFaultToleranceOptions={"redisAddress": "redis:6379"})):
        cluster.create(one)
    cluster.delete("inference/kuberay-operator", operator())
    held = "finalizers might be preventing deletion (ray.io/gcs-ft-redis-cleanup-finalizer): timed out waiting for the condition"
    assert refusal(cluster.delete, "inference/llm", ray_service()) == held
    assert refusal(cluster.delete, "inference", namespace()) == held
    cluster.create(operator())
    cluster.delete("inference/llm", ray_service())
    assert "RayService inference/llm" not in cluster.ids()


def test_a_ray_service_without_fault_tolerance_goes_without_its_operator(cluster: Cluster):
    for one in (namespace(), crd(), operator(), ray_service()):
        cluster.create(one)
    cluster.delete("inference/kuberay-operator", operator())
    cluster.delete("inference/llm", ray_service())
    assert "RayService inference/llm" not in cluster.ids()


def test_a_release_says_how_often_it_was_deployed(cluster: Cluster):
    cluster.create(namespace())
    id, first = cluster.create(operator())
    second = cluster.provider.update(ref(operator()), id, operator(), first, operator(version="1.6.1"), preview=False)
    assert (first["status"]["revision"], second["status"]["revision"]) == (1, 2)
    assert second["status"]["status"] == "deployed"
    assert cluster.provider.read(ref(operator()), id, operator(), {}) == (id, operator(version="1.6.1"), second)


def test_a_release_needs_its_namespace_and_its_name(cluster: Cluster):
    assert refusal(cluster.create, operator()) == 'create: failed to create: namespaces "inference" not found'
    cluster.create(operator(createNamespace=True))
    assert refusal(cluster.create, operator()) == "cannot re-use a name that is still in use"


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("create", f"configured Kubernetes cluster is unreachable: {NO_CLUSTER}"),
        ("read", f"failed to read resource state due to unreachable cluster. {FORGET} ({NO_CLUSTER})"),
        ("update", f"configured Kubernetes cluster is unreachable: {NO_CLUSTER}"),
        ("delete", f"configured Kubernetes cluster is unreachable. {FORGET} ({NO_CLUSTER})"),
    ],
)
def test_a_cluster_that_is_gone_cannot_be_reached(cluster: Cluster, operation: str, message: str):
    cluster.clusters = {}
    one = namespace()
    arguments = {
        "create": (ref(one), one, False),
        "read": (ref(one), "inference", one, one),
        "update": (ref(one), "inference", one, one, one, False),
        "delete": (ref(one), "inference", one, one),
    }
    assert refusal(getattr(cluster.provider, operation), *arguments[operation]) == message


def test_the_way_out_of_a_cluster_that_is_gone_is_a_refresh(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    cluster.clusters = {}
    forgetful = cluster.started()
    forgetful.delete(ref(namespace()), "inference", namespace(), {})
    assert refusal(forgetful.delete, ref(operator()), "inference/kuberay-operator", operator(), {}) == (
        f"can't delete Helm Release with unreachable cluster: {NO_CLUSTER}"
    )
    assert forgetful.read(ref(operator()), "inference/kuberay-operator", operator(), {}) is None


def test_a_cluster_takes_its_objects_along(cluster: Cluster):
    cluster.create(namespace())
    cluster.clusters = {}
    assert cluster.ids() == []


@pytest.mark.usefixtures("two_providers")
def test_a_provider_without_a_kubeconfig_finds_no_cluster(cluster: Cluster):
    other = ResourceRef("kubernetes:core/v1:Namespace", "the-urn", "object")
    cluster.provider._connections.pop("the other provider's connection")  # pyright: ignore[reportPrivateUsage]
    assert "no configuration has been provided" in refusal(cluster.provider.create, other, namespace(), False)


def test_an_object_is_listed_with_its_cluster_and_its_type(cluster: Cluster):
    cluster.create({**namespace(), "metadata": {"name": "inference", "labels": {"team": "ml"}}})
    (item,) = cluster.provider.inventory()
    assert (item.parent_id, item.made_by, dict(item.tags)) == ("llm", "kubernetes:core/v1:Namespace", {"team": "ml"})
    cluster.provider.remove(item)
    assert cluster.provider.inventory() == []


def test_a_patch_changes_what_is_there_and_deletes_nothing(cluster: Cluster):
    cluster.create(namespace())
    cluster.create(config_map(a="1"))
    patch = ResourceRef("kubernetes:core/v1:ConfigMapPatch", "the-urn", "patch")
    _, live = cluster.provider.create(patch, config_map(b="2"), preview=False)
    assert live["data"] == {"a": "1", "b": "2"}
    cluster.provider.delete(patch, "inference/a", config_map(b="2"), live)
    assert "ConfigMap inference/a" in cluster.ids()
