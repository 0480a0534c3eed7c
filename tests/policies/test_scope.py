"""Which Ray workers ray-worker-requests-efa and its like judge, over the analyzer protocol: signs of EFA, of GPUs, of a role."""

import pytest
import yaml

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Diagnostic, Resource

EFA_POLICY = "ray-worker-requests-efa"
PRIVILEGE_POLICY = "ray-worker-privileged"


def messages(found: list[Diagnostic], policy: str) -> list[str]:
    assert all(item.level == "mandatory" for item in found)
    assert {item.policy for item in found} <= {policy}
    return [item.message for item in found]


def quiet_worker(**spec: object) -> dict:
    container = {"name": "w", "resources": {"limits": {"nvidia.com/gpu": 1}}, "securityContext": {"privileged": True}}
    return {"groupName": "w", "template": {"spec": {"containers": [container], **spec}}}


def affinity(key: str, *values: str) -> dict:
    expression = {"key": key, "operator": "In", "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def quiet_cluster(**spec: object) -> Resource:
    return Resource("kubernetes:ray.io/v1:RayCluster", "c", {"spec": {"workerGroupSpecs": [quiet_worker(**spec)]}})


def test_a_worker_that_selects_nodes_by_an_efa_label_is_judged(preview):
    cluster = quiet_cluster(nodeSelector={"vpc.amazonaws.com/efa.present": "true"})
    assert len(messages(preview([cluster]), EFA_POLICY)) == 1


TYPE_SELECTORS = [
    {"nodeSelector": {"node.kubernetes.io/instance-type": "g6.8xlarge"}},
    {"affinity": affinity("node.kubernetes.io/instance-type", "m7i.large", "p5.48xlarge")},
]


@pytest.mark.parametrize("spec", TYPE_SELECTORS)
def test_a_type_that_only_can_have_efa_counts_where_the_configuration_says_so(preview, spec):
    assert preview([quiet_cluster(**spec)]) == []
    found = preview([quiet_cluster(**spec)], {EFA_POLICY: {"efaCapableTypes": "judge"}})
    assert len(messages(found, EFA_POLICY)) == 1


def test_a_type_counts_where_the_stack_shows_that_its_nodes_have_efa(preview):
    cluster = quiet_cluster(**TYPE_SELECTORS[0])
    assert len(messages(preview([*efa_nodes(pool="gpu"), cluster]), "ray-worker-on-efa-nodes")) == 1
    plain = samples.node_group([samples.subnet("c", "us-east-1c")], name="plain")
    assert preview([plain, cluster]) == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": {"node.kubernetes.io/instance-type": "g6.xlarge"}},
        {"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}},
        {"nodeSelector": {"eks.amazonaws.com/nodegroup": UNKNOWN}},
    ],
)
def test_a_worker_that_selects_other_nodes_is_left_alone(preview, spec):
    cluster = Resource("kubernetes:ray.io/v1:RayCluster", "c", {"spec": {"workerGroupSpecs": [quiet_worker(**spec)]}})
    assert preview([cluster]) == []


def test_one_pod_that_requests_efa_puts_the_whole_workload_in_scope(preview):
    groups = [samples.worker("a"), quiet_worker()]
    cluster = Resource("kubernetes:ray.io/v1:RayCluster", "c", {"spec": {"workerGroupSpecs": groups}})
    (message,) = messages(preview([cluster]), EFA_POLICY)
    assert "worker group 'w'" in message


def test_unknown_limits_of_an_otherwise_quiet_cluster_block(preview):
    group = quiet_worker()
    group["template"]["spec"]["containers"][0]["resources"]["limits"] = UNKNOWN
    cluster = Resource("kubernetes:ray.io/v1:RayCluster", "c", {"spec": {"workerGroupSpecs": [group]}})
    found = preview([cluster])
    assert {item.policy for item in found} == {EFA_POLICY, PRIVILEGE_POLICY}
    assert all("Whether the workload uses EFA cannot be checked" in item.message for item in found)


def efa_nodes(**labels: str) -> list[Resource]:
    resources = samples.compliant()[:-1]
    resources[-1].props["labels"] = labels
    return resources


def test_a_worker_that_selects_an_efa_node_group_by_its_labels_is_judged(preview):
    cluster = Resource(
        "kubernetes:ray.io/v1:RayCluster",
        "c",
        {"spec": {"workerGroupSpecs": [quiet_worker(nodeSelector={"pool": "gpu"})]}},
    )
    found = preview([*efa_nodes(pool="gpu"), cluster])
    (message,) = messages(found, "ray-worker-on-efa-nodes")
    assert found[0].urn == cluster.urn
    assert message.startswith("RayCluster 'c', worker group 'w', which selects the EFA node group 'gpu':")


def test_a_worker_that_selects_another_node_group_is_left_alone(preview):
    cluster = Resource(
        "kubernetes:ray.io/v1:RayCluster",
        "c",
        {"spec": {"workerGroupSpecs": [quiet_worker(nodeSelector={"pool": "cpu"})]}},
    )
    assert preview([*efa_nodes(pool="gpu"), cluster]) == []


def test_a_claim_template_called_default_says_nothing_of_efa(preview):
    group = quiet_worker(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu-default"}])
    cluster = Resource("kubernetes:ray.io/v1:RayCluster", "c", {"spec": {"workerGroupSpecs": [group]}})
    assert preview([cluster]) == []


def forgetful(**pod: object) -> Resource:
    """A service whose decode workers ask for CPU and memory only, and nothing else."""
    service = samples.ray_service()
    group = samples.workers(service)[1]
    group["rayStartParams"] = {}
    limits = {"limits": {"cpu": "24", "memory": "96Gi"}}
    group["template"]["spec"] = {"containers": [{"name": "ray-worker", "resources": limits}], **pod}
    return service


def policies_of(found: list[Diagnostic], group: str = "workerGroupSpecs[1]") -> set[str]:
    assert all(item.level == "mandatory" for item in found)
    return {item.policy for item in found if group in item.message}


ALL_THREE = {EFA_POLICY, PRIVILEGE_POLICY, "nixl-backend-libfabric"}


def test_a_group_that_bears_the_name_of_a_role_is_no_cpu_group(preview):
    assert policies_of(preview([forgetful()])) == ALL_THREE


@pytest.mark.parametrize(
    ("pod", "group"),
    [
        ({"nodeSelector": {"node.kubernetes.io/instance-type": "g6.8xlarge"}}, {}),
        ({"nodeSelector": {"nvidia.com/gpu.present": "true"}}, {}),
        ({"affinity": affinity("vpc.amazonaws.com/efa.present", "true")}, {}),
        ({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}, {}),
        ({}, {"rayStartParams": {"num-gpus": "1"}}),
        ({}, {"rayStartParams": {"resources": '"{\\"GPU\\": 1}"'}}),
        ({}, {"rayStartParams": {"resources": "{not to be read"}}),
        ({}, {"resources": {"GPU": "1"}}),
    ],
)
def test_each_sign_of_a_gpu_makes_a_group_count(preview, pod, group):
    service = forgetful(**pod)
    samples.workers(service)[1] |= {"groupName": "second", **group}
    assert policies_of(preview([service])) == ALL_THREE


@pytest.mark.parametrize("offer", ["rayStartParams", "resources"])
def test_a_group_that_offers_what_a_role_asks_for_is_no_cpu_group(preview, offer):
    tree = samples.serve_tree()
    tree["applications"][0]["args"]["decode_config"]["placement_group_config"] = {
        "bundle_per_worker": {"GPU": 1, "second_role": 0.001}
    }
    service = forgetful()
    service.props["spec"]["serveConfigV2"] = yaml.safe_dump(tree)
    own = {"second_role": "1"} if offer == "resources" else {"resources": '"{\\"second_role\\": 1}"'}
    samples.workers(service)[1] |= {"groupName": "second", offer: own}
    assert policies_of(preview([service])) == ALL_THREE


def test_a_group_that_looks_like_a_cpu_group_on_efa_nodes_is_judged_beside_judged_ones(preview):
    service = forgetful(nodeSelector={"pool": "gpu"})
    samples.workers(service)[1]["groupName"] = "second"
    found = preview([*samples.compliant()[:-1], service])
    assert {item.policy for item in found} == {"ray-worker-on-efa-nodes"}
    assert "worker group 'second', which selects the EFA node group 'gpu'" in found[0].message


def bare_group(**changes: object) -> dict:
    return {"groupName": "ingress", "template": {"spec": {"containers": [{"name": "w"}]}}, **changes}


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ({}, True),
        ({"rayStartParams": {"num-gpus": "0"}}, False),
        ({"maxReplicas": 0}, False),
        ({"maxReplicas": 0, "minReplicas": 1}, True),
        ({"maxReplicas": 1}, True),
    ],
)
def test_a_group_without_gpus_by_its_own_word_or_without_pods_is_left_alone(preview, changes, judged):
    service = samples.ray_service()
    samples.workers(service).append(bare_group(**changes))
    assert bool(preview([service])) is judged


def test_the_items_of_a_list_count_for_the_stack_policies_too(preview):
    listed = Resource("kubernetes:ray.io/v1:RayClusterList", "all", {})
    listed.props["items"] = [quiet_cluster(nodeSelector={"pool": "gpu"}).props]
    assert len(messages(preview([*efa_nodes(pool="gpu"), listed]), "ray-worker-on-efa-nodes")) == 1


def test_a_cpu_worker_group_beside_gpu_groups_is_left_alone(preview):
    service = samples.ray_service()
    cpu = {"containers": [{"name": "w", "resources": {"limits": {"cpu": "4", "memory": "8Gi"}}}]}
    samples.workers(service).append({"groupName": "ingress", "template": {"spec": cpu}})
    assert preview([service]) == []
