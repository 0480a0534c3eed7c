"""ray-worker-requests-efa and ray-worker-privileged, over the analyzer protocol."""

import pytest

from tests.policies import samples
from tests.policies.analyzer import UNKNOWN, Diagnostic, Resource
from tests.policies.samples import EFA

EFA_POLICY = "ray-worker-requests-efa"
PRIVILEGE_POLICY = "ray-worker-privileged"
DECODE = "spec.rayClusterConfig.workerGroupSpecs[1].template.spec"


def messages(found: list[Diagnostic], policy: str) -> list[str]:
    assert all(item.level == "mandatory" for item in found)
    assert {item.policy for item in found} <= {policy}
    return [item.message for item in found]


def test_a_worker_without_efa_is_named_with_its_group_and_field(preview):
    service = samples.ray_service()
    resources = samples.container(service, 1)["resources"]
    del resources["limits"][EFA], resources["requests"][EFA]
    found = preview([service])
    assert found[0].urn == service.urn
    assert messages(found, EFA_POLICY) == [
        f"RayService 'service', worker group 'decode': {DECODE}.containers[0].resources.limits[\"{EFA}\"] is missing. "
        "Without an EFA device libfabric falls back to TCP, with no error. "
        f'Write "{EFA}": "1" (or as many as the node has) under resources.limits.'
    ]


@pytest.mark.parametrize("value", [1, 1.0, "1", "4", "1e0"])
def test_whole_numbers_are_requests_however_they_are_written(preview, value):
    service = samples.ray_service()
    samples.container(service, 0)["resources"] = {"limits": {"nvidia.com/gpu": 1, EFA: value}}
    assert preview([service]) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), ("0", "'0'"), ("0.5", "'0.5'"), (-1, "-1"), ("", "an empty string"), ("one", "'one'"), (True, "true")],
)
def test_nothing_below_one_whole_device_is_a_request(preview, value, shown):
    service = samples.ray_service()
    samples.container(service, 0)["resources"] = {"limits": {"nvidia.com/gpu": 1, EFA: value}}
    (message,) = messages(preview([service]), EFA_POLICY)
    assert f"is {shown}. It must be a whole number of at least 1." in message


def test_a_request_without_a_limit_is_refused(preview):
    service = samples.ray_service()
    del samples.container(service, 0)["resources"]["limits"][EFA]
    (message,) = messages(preview([service]), EFA_POLICY)
    assert "is 1 with no limit. An extended resource counts by its limit" in message


def test_a_request_that_differs_from_its_limit_is_refused(preview):
    service = samples.ray_service()
    samples.container(service, 0)["resources"]["limits"][EFA] = 4
    (message,) = messages(preview([service]), EFA_POLICY)
    assert "is 1 while the limit is 4." in message
    assert "Write 4 in both" in message


def claim(service: Resource, name: str, template: str) -> None:
    pod = samples.workers(service)[0]["template"]["spec"]
    pod["resourceClaims"] = [{"name": name, "resourceClaimTemplateName": template}]
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}, "claims": [{"name": name}]}


def test_a_resource_claim_for_efa_is_a_request(preview):
    service = samples.ray_service()
    claim(service, "net", "all-efa-devices")
    assert preview([service]) == []


def test_a_resource_claim_that_does_not_say_efa_is_no_proof(preview):
    service = samples.ray_service()
    claim(service, "gpus", "all-gpus")
    (message,) = messages(preview([service]), EFA_POLICY)
    assert "resources.claims is without a claim that names EFA." in message


def test_efa_on_a_sidecar_or_an_init_container_does_not_count(preview):
    service = samples.ray_service()
    pod = samples.workers(service)[0]["template"]["spec"]
    pod["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    other = {"name": "other", "resources": {"limits": {EFA: 1}}}
    pod["containers"].append(other)
    pod["initContainers"] = [other]
    assert "is missing" in messages(preview([service]), EFA_POLICY)[0]


def test_an_unknown_limit_blocks(preview):
    service = samples.ray_service()
    samples.container(service, 0)["resources"]["limits"][EFA] = UNKNOWN
    (message,) = messages(preview([service]), EFA_POLICY)
    assert message.endswith(
        f'.resources.limits["{EFA}"] is not known yet. Whether the worker asks for EFA cannot be checked before the deployment. '
        "Make it a plain value of the program, not an Output of another resource."
    )


def test_a_worker_that_is_not_privileged_is_named(preview):
    service = samples.ray_service()
    del samples.container(service, 0)["securityContext"]["privileged"]
    (message,) = messages(preview([service]), PRIVILEGE_POLICY)
    assert message == (
        "RayService 'service', worker group 'prefill': "
        "spec.rayClusterConfig.workerGroupSpecs[0].template.spec.containers[0].securityContext.privileged is missing. "
        "NIXL cannot register GPU memory with the EFA device, and the transfer fails or falls back to TCP. "
        'Write securityContext {"privileged": true, "runAsUser": 0} on this container.'
    )


def test_ipc_lock_alone_is_not_enough(preview):
    service = samples.ray_service()
    samples.container(service, 0)["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    (message,) = messages(preview([service]), PRIVILEGE_POLICY)
    assert "is missing and only the capability IPC_LOCK is added. IPC_LOCK alone does not let NIXL register" in message


@pytest.mark.parametrize(
    ("context", "path"),
    [
        ({"privileged": True, "runAsUser": 1000}, "containers[0].securityContext.runAsUser is 1000"),
        ({"privileged": True, "runAsNonRoot": True}, "containers[0].securityContext.runAsNonRoot is true"),
    ],
)
def test_privileged_without_root_is_not_enough(preview, context, path):
    service = samples.ray_service()
    samples.container(service, 1)["securityContext"] = context
    (message,) = messages(preview([service]), PRIVILEGE_POLICY)
    assert f"{DECODE}.{path}. A process that is not root" in message


def test_the_pods_own_user_counts_where_the_container_sets_none(preview):
    service = samples.ray_service()
    samples.workers(service)[1]["template"]["spec"]["securityContext"] = {"runAsUser": 1000}
    assert preview([service]) == []
    samples.container(service, 1)["securityContext"] = {"privileged": True}
    (message,) = messages(preview([service]), PRIVILEGE_POLICY)
    assert f"{DECODE}.securityContext.runAsUser is 1000" in message


def test_no_user_at_all_is_the_image_root_and_passes(preview):
    service = samples.ray_service()
    samples.container(service, 1)["securityContext"] = {"privileged": True}
    assert preview([service]) == []


def test_privilege_on_the_head_alone_does_not_help_the_workers(preview):
    service = samples.ray_service()
    head = service.props["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    head["securityContext"] = {"privileged": True}
    for index in (0, 1):
        del samples.container(service, index)["securityContext"]
    assert len(messages(preview([service]), PRIVILEGE_POLICY)) == 2


@pytest.mark.parametrize("where", ["securityContext", "privileged"])
def test_an_unknown_security_context_blocks(preview, where):
    service = samples.ray_service()
    context = samples.container(service, 0)
    if where == "privileged":
        context["securityContext"]["privileged"] = UNKNOWN
    else:
        context["securityContext"] = UNKNOWN
    (message,) = messages(preview([service]), PRIVILEGE_POLICY)
    assert f"{where} is not known yet." in message


def test_an_unknown_image_hides_nothing(preview):
    service = samples.ray_service()
    assert samples.container(service, 0)["image"] == UNKNOWN
    samples.container(service, 0)["securityContext"]["privileged"] = False
    assert "privileged is false" in messages(preview([service]), PRIVILEGE_POLICY)[0]


def test_a_worker_that_states_no_resources_is_no_cpu_group(preview):
    service = samples.ray_service()
    del samples.container(service, 1)["resources"]
    assert f"{DECODE}.containers[0].resources.limits" in messages(preview([service]), EFA_POLICY)[0]


def test_a_worker_group_that_is_unknown_as_a_whole_blocks(preview):
    service = samples.ray_service()
    samples.workers(service)[1] = UNKNOWN
    found = preview([service])
    assert {item.policy for item in found} == {EFA_POLICY, PRIVILEGE_POLICY, "nixl-backend-libfabric"}
    assert all("workerGroupSpecs[1] is not known yet" in item.message for item in found)


def test_onunknown_advisory_reports_through_the_companion_and_nothing_blocks(preview):
    service = samples.ray_service()
    samples.container(service, 0)["securityContext"]["privileged"] = UNKNOWN
    (item,) = preview([service], {PRIVILEGE_POLICY: {"onUnknown": "advisory"}})
    assert (item.policy, item.level, item.urn) == (f"{PRIVILEGE_POLICY}-unverified", "advisory", service.urn)


def test_exclude_and_namespaces_narrow(preview):
    service = samples.ray_service()
    del samples.container(service, 0)["securityContext"]
    assert preview([service], {PRIVILEGE_POLICY: {"exclude": ["serv*"]}}) == []
    assert preview([service], {PRIVILEGE_POLICY: {"namespaces": ["other"]}}) == []
    assert len(preview([service], {PRIVILEGE_POLICY: {"namespaces": ["inference"]}})) == 1


CLUSTER_PATHS = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}


@pytest.mark.parametrize("kind", CLUSTER_PATHS)
@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
@pytest.mark.parametrize("patch", ["", "Patch"])
def test_every_ray_kind_is_judged_in_every_version_and_as_a_patch(preview, kind, version, patch):
    group = samples.worker("train")
    del group["template"]["spec"]["containers"][0]["securityContext"]
    value: dict = {"headGroupSpec": samples.head(), "workerGroupSpecs": [group]}
    for step in reversed(CLUSTER_PATHS[kind]):
        value = {step: value}
    resource = Resource(f"kubernetes:ray.io/{version}:{kind}{patch}", "x", value)
    (message,) = messages(preview([resource]), PRIVILEGE_POLICY)
    assert ".".join(CLUSTER_PATHS[kind]) + ".workerGroupSpecs[0]" in message


def test_a_user_namespace_takes_the_nodes_root_away(preview):
    service = samples.ray_service()
    samples.workers(service)[1]["template"]["spec"]["hostUsers"] = False
    (message,) = messages(preview([service]), PRIVILEGE_POLICY)
    assert f"{DECODE}.hostUsers is false. Root is then nobody on the node." in message


def test_a_claim_that_says_it_is_without_efa_is_no_proof(preview):
    service = samples.ray_service()
    claim(service, "no-efa", "without-efa")
    assert "without a claim that names EFA" in messages(preview([service]), EFA_POLICY)[0]


def test_a_claim_that_the_pod_does_not_declare_is_refused(preview):
    service = samples.ray_service()
    claim(service, "efa", "efa")
    samples.workers(service)[0]["template"]["spec"]["resourceClaims"] = []
    (message,) = messages(preview([service]), EFA_POLICY)
    assert "resources.claims is ['efa'], which the pod does not declare. Kubernetes refuses" in message


@pytest.mark.parametrize("value", [1e30, "1e99", "9" * 400, "9" * 5000])
def test_an_absurd_amount_is_a_number_like_any_other(preview, value):
    service = samples.ray_service()
    samples.container(service, 0)["resources"] = {"limits": {"nvidia.com/gpu": 1, EFA: value}}
    samples.container(service, 1)["securityContext"] = {}
    messages(preview([service]), PRIVILEGE_POLICY)


def unprivileged() -> Resource:
    service = samples.ray_service()
    samples.container(service, 0)["securityContext"] = {}
    return service


@pytest.mark.parametrize("token", ["apiextensions.k8s.io", "apiextensions.k8s.io/v1"])
@pytest.mark.parametrize("patch", ["", "Patch"])
def test_a_bare_custom_resource_is_what_its_body_says(preview, pack, token, patch):
    bare = Resource(f"kubernetes:{token}:CustomResource{patch}", "bare", unprivileged().props)
    assert len(messages(preview([bare]), PRIVILEGE_POLICY)) == 1
    other = Resource(bare.type, "other", {"apiVersion": "acme.com/v1", "kind": "Thing", "spec": {}})
    assert pack.not_applicable(other)[PRIVILEGE_POLICY] == "not a Ray workload"


def test_the_items_of_a_list_are_judged_each(preview):
    items = [samples.ray_service().props, unprivileged().props]
    listed = Resource("kubernetes:ray.io/v1:RayServiceList", "all", {"items": items})
    (message,) = messages(preview([listed]), PRIVILEGE_POLICY)
    assert "items[1].spec.rayClusterConfig.workerGroupSpecs[0]" in message
