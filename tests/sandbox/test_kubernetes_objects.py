"""Objects of Kubernetes' own kinds, as the stand-in's Check judges them."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.kubernetes import Kubernetes
from sandbox.standin import UNKNOWN, ResourceRef


def deployment() -> dict[str, Any]:
    labels = {"app": "web"}
    container = {
        "name": "web",
        "image": "registry.example.com/web:1.0",
        "env": [{"name": "MODE", "value": "fast"}],
        "ports": [{"containerPort": 8000}],
        "resources": {
            "limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": 1, "vpc.amazonaws.com/efa": "1"},
            "requests": {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"},
        },
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    pod = {
        "containers": [container],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "disk", "hostPath": {"path": "/mnt/k8s-disks/0", "type": "Directory"}},
        ],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "inference", "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def refusals(inputs: dict[str, Any], token: str = "kubernetes:apps/v1:Deployment") -> list[str]:
    checked = Kubernetes().check(ResourceRef(token, "urn", "web"), inputs, None, b"seed")
    return [f"{one.property}: {one.reason}" for one in checked.failures]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The correct Deployment with one value changed; a digit is a place in a list, "-" takes the value away."""
    inputs = deployment()
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(" ")]
    place: Any = inputs
    for step in steps:
        place = place[step]
    if value == "-":
        del place[last]
    else:
        place[last] = value
    return inputs


CONTAINER = "spec template spec containers 0"
SHOWN = "spec.template.spec.containers[0]"


def test_a_correct_deployment_is_accepted():
    assert refusals(deployment()) == []


@pytest.mark.parametrize(
    ("path", "value", "refusal"),
    [
        ("spec replica", 2, 'spec.replica: unknown field "replica": did you mean "replicas"?'),
        ("spec zzz", 2, 'spec.zzz: unknown field "zzz"'),
        ("spec replicas", "2", "spec.replicas: must be an integer, not a string"),
        ("spec replicas", 2**31, "spec.replicas: must fit a 32-bit integer, and 2147483648 does not"),
        ("spec selector", "-", 'spec.selector: required field "selector" is missing'),
        (
            "metadata name",
            "Web",
            'metadata.name: "Web" must be lower-case letters, digits, "-" and ".", with a letter or digit at both ends',
        ),
        (
            "metadata namespace",
            "a.b",
            'metadata.namespace: "a.b" must be lower-case letters, digits and "-", with a letter or digit at both ends',
        ),
        (
            "metadata labels",
            {"app": "a b"},
            'metadata.labels.app: "a b" must be letters, digits, "-", "_" and ".", with a letter or digit at both ends',
        ),
        (
            "metadata annotations",
            {"a/b/c": "x"},
            'metadata.annotations["a/b/c"]: the key the prefix of "a/b/c": "a/b" must be lower-case letters, digits, "-" and ".", with a letter or digit at both ends',
        ),
        (f"{CONTAINER} image", "-", f"{SHOWN}.image: is required"),
        (
            f"{CONTAINER} name",
            "Web",
            f'{SHOWN}.name: "Web" must be lower-case letters, digits and "-", with a letter or digit at both ends',
        ),
        (f"{CONTAINER} env 0 value", 1, f"{SHOWN}.env[0].value: must be a string, not an integer: put it in quotes"),
        (f"{CONTAINER} env 0 name", "A=B", f'{SHOWN}.env[0].name: "A=B" must be printable ASCII without "="'),
        (
            f"{CONTAINER} env",
            [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
            f'{SHOWN}.env[1]: name "A" is already taken by entry 0 of this list',
        ),
        (
            f"{CONTAINER} env 0 valueFrom",
            {"fieldRef": {"fieldPath": "status.podIP"}},
            f"{SHOWN}.env[0].valueFrom: cannot stand beside a value: keep one of the two",
        ),
        (
            f"{CONTAINER} resources requests cpu",
            "half",
            f'{SHOWN}.resources.requests.cpu: "half" is no quantity: write a number with a unit such as "500m", "96Gi" or "1"',
        ),
        (
            f"{CONTAINER} resources requests memory",
            "8Gi",
            f"{SHOWN}.resources.requests.memory: the request (8Gi) is above the limit (4Gi)",
        ),
        (
            f"{CONTAINER} resources limits nvidia.com/gpu",
            2,
            f'{SHOWN}.resources.requests["nvidia.com/gpu"]: nvidia.com/gpu cannot be overcommitted: the request (1) must equal the limit (2)',
        ),
        (
            f"{CONTAINER} resources limits nvidia.com/gpu",
            "-",
            f'{SHOWN}.resources.requests["nvidia.com/gpu"]: nvidia.com/gpu needs a limit too, equal to the request (1)',
        ),
        (
            f"{CONTAINER} resources limits vpc.amazonaws.com/other",
            "500m",
            f'{SHOWN}.resources.limits["vpc.amazonaws.com/other"]: vpc.amazonaws.com/other is counted in whole devices, not 500m',
        ),
        (
            f"{CONTAINER} resources limits gpu",
            1,
            f'{SHOWN}.resources.limits.gpu: "gpu" is no resource: the plain ones are cpu, ephemeral-storage, memory, storage; a device is named like nvidia.com/gpu',
        ),
        (
            f"{CONTAINER} resources limits hugepages-2Mi",
            "5120",
            f'{SHOWN}.resources.limits.hugepages-2Mi: 5120 is no multiple of the page size: write bytes with a unit, such as "2Mi"',
        ),
        (
            f"{CONTAINER} resources limits hugepages-big",
            "1Gi",
            f'{SHOWN}.resources.limits.hugepages-big: "hugepages-big" names no page size: write hugepages-2Mi or hugepages-1Gi',
        ),
        (
            f"{CONTAINER} securityContext allowPrivilegeEscalation",
            False,
            f"{SHOWN}.securityContext.allowPrivilegeEscalation: cannot be false in a privileged container: leave it out",
        ),
        (
            f"{CONTAINER} volumeMounts 0 name",
            "shn",
            f'{SHOWN}.volumeMounts[0].name: the pod has no volume "shn" (it has disk, shm)',
        ),
        (
            f"{CONTAINER} volumeMounts 0 subPath",
            "../up",
            f'{SHOWN}.volumeMounts[0].subPath: "../up" must be relative and stay inside the volume',
        ),
        (
            f"{CONTAINER} ports 0 containerPort",
            80000,
            f"{SHOWN}.ports[0].containerPort: must be between 1 and 65535, not 80000",
        ),
        (
            "spec template spec volumes 1 hostPath type",
            "Dir",
            'spec.template.spec.volumes[1].hostPath.type: "Dir" is none of DirectoryOrCreate, Directory, FileOrCreate, File, Socket, CharDevice, BlockDevice',
        ),
        (
            "spec template spec volumes 0 hostPath",
            {"path": "/x"},
            "spec.template.spec.volumes[0]: must have one kind of volume, not 2: emptyDir, hostPath",
        ),
        (
            "spec template spec tolerations 0 operator",
            "Exist",
            'spec.template.spec.tolerations[0].operator: "Exist" is none of Exists, Equal',
        ),
        (
            "spec template spec tolerations 0 operator",
            "Exists",
            "spec.template.spec.tolerations[0].value: must be empty when the operator is Exists",
        ),
        (
            "spec template spec tolerations 0 effect",
            "NO_SCHEDULE",
            'spec.template.spec.tolerations[0].effect: "NO_SCHEDULE" is none of NoSchedule, PreferNoSchedule, NoExecute',
        ),
        (
            "spec template spec tolerations 0 key",
            "-",
            "spec.template.spec.tolerations[0].operator: must be Exists when there is no key, which then tolerates every taint",
        ),
        (
            "spec template spec affinity podAntiAffinity requiredDuringSchedulingIgnoredDuringExecution 0 topologyKey",
            "-",
            'spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: required field "topologyKey" is missing',
        ),
        (
            "spec template metadata labels",
            {"app": "other"},
            'spec.template.metadata.labels: must carry app: "web", which the selector asks for',
        ),
        ("kind", "Deploymnt", "kind: must be Deployment, as the resource's type says"),
    ],
)
def test_each_fault_is_refused_with_its_path_and_remedy(path: str, value: Any, refusal: str):
    assert refusals(changed(path, value)) == [refusal]


def test_all_faults_come_at_once():
    inputs = changed("spec replica", 1)
    inputs["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = True
    assert sorted(refusals(inputs)) == [
        'spec.replica: unknown field "replica": did you mean "replicas"?',
        f"{SHOWN}.env[0].value: must be a string, not a boolean: put it in quotes",
    ]


def test_an_unknown_value_hides_no_fault_beside_it():
    inputs = changed(f"{CONTAINER} image", UNKNOWN)
    inputs["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = "Always"
    assert refusals(inputs) == [
        f'{SHOWN}.imagePullPolcy: unknown field "imagePullPolcy": did you mean "imagePullPolicy"?'
    ]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        found += _places(member, (*path, key))
    return found


PLACES = _places(deployment())


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_whatever_is_unknown_is_no_fault(path: tuple[Any, ...]):
    inputs = deployment()
    place: Any = inputs
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = UNKNOWN
    assert refusals(inputs) == []


@settings(max_examples=60, deadline=None)
@given(
    path=st.sampled_from(PLACES),
    value=st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.text(max_size=4),
        st.lists(st.integers(), max_size=2),
        st.just({"a": [UNKNOWN]}),
    ),
)
def test_whatever_stands_anywhere_is_judged_and_never_breaks_the_judge(path: tuple[Any, ...], value: Any):
    inputs = copy.deepcopy(deployment())
    place: Any = inputs
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert all(": " in one for one in refusals(inputs))


@pytest.mark.parametrize(
    ("token", "kind", "refusal"),
    [
        (
            "kubernetes:apps/v1:Deploymentt",
            "Deploymentt",
            'kind: apps/v1 has no kind Deploymentt in Kubernetes 1.35: did you mean "Deployment"?',
        ),
        (
            "kubernetes:batch/v1beta1:CronJob",
            "CronJob",
            "kind: Kubernetes 1.35 has no batch/v1beta1: it serves batch/v1",
        ),
        (
            "kubernetes:ray.io/v1:RayServise",
            "RayServise",
            'kind: KubeRay has no kind RayServise in ray.io/v1: did you mean "RayService"?',
        ),
    ],
)
def test_a_kind_that_does_not_exist_is_refused(token: str, kind: str, refusal: str):
    version = token.split(":")[1]
    assert refusals({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}, token) == [refusal]


def test_a_kind_of_somebody_elses_crd_is_taken_on_trust_and_said():
    stand_in = Kubernetes()
    inputs = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"anything": 1}}
    checked = stand_in.check(ResourceRef("kubernetes:karpenter.sh/v1:NodePool", "urn", "gpu"), inputs, None, b"seed")
    assert checked.failures == []
    assert checked.inputs["metadata"] == {"name": "gpu"}
    assert stand_in.remarks == ["not validated: karpenter.sh/v1/NodePool"]


def test_a_patch_may_leave_out_what_the_kind_requires():
    inputs = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "aws-node", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "aws-node", "securityContext": {"privileged": True}}]}}},
    }
    assert refusals(inputs, "kubernetes:apps/v1:DaemonSetPatch") == []


def test_a_patch_without_a_name_is_refused():
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    assert refusals(inputs, "kubernetes:core/v1:ConfigMapPatch") == [
        "metadata.name: a patch needs the name of the ConfigMap that it changes"
    ]


def named(
    inputs: dict[str, Any], old: dict[str, Any] | None = None, token: str = "kubernetes:core/v1:ConfigMap"
) -> dict[str, Any]:
    return Kubernetes().check(ResourceRef(token, "urn", "settings"), inputs, old, b"seed").inputs["metadata"]


def test_an_object_without_a_name_gets_one_that_stays():
    inputs = {"apiVersion": "v1", "kind": "ConfigMap"}
    first = named(inputs)
    assert first == {
        "name": "settings-19b25856",
        "namespace": "default",
        "annotations": {"pulumi.com/autonamed": "true"},
    }
    assert named(inputs, {"metadata": {**first, "name": "settings-older"}})["name"] == "settings-older"


def test_a_name_of_the_programs_own_is_kept():
    assert named({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}) == {
        "name": "a",
        "namespace": "b",
    }


def test_an_object_of_the_whole_cluster_gets_no_namespace():
    assert named(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}, token="kubernetes:core/v1:Namespace"
    ) == {"name": "a"}


def test_a_secret_value_is_never_quoted():
    inputs = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token"},
        "stringData": {"token": {"hf_abc": "hf_abc"}},
    }
    assert refusals(inputs, "kubernetes:core/v1:Secret") == ["stringData.token: must be a string, not an object"]
