"""No value, known or not, in any place, may stop a policy from running."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.policies import samples
from tests.policies.analyzer import SECRET_KEY, UNKNOWN, Resource, secret

JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 3),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.sampled_from([UNKNOWN, "", "efa", "g6.8xlarge", "NixlConnector", "-1", "{", "1.35", "us-east-1a"]),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "value", "id", "spec", "containers", "limits", "self"]), inner, max_size=3
        ),
        inner.map(secret),
    ),
    max_leaves=8,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path of a tree below its root."""
    if isinstance(node, dict) and SECRET_KEY in node:
        return []  # the engine's own envelope, not a value
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place for key, child in items for place in ((*path, key), *places(child, (*path, key)))]


def put(root: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        root = root[step]
    root[path[-1]] = value


def everything() -> list[Resource]:
    """The compliant stack and one of each other kind that a policy looks at."""
    resources = samples.compliant()
    group = resources[2]
    pool = {
        "spec": {
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.8xlarge"]}]
        }
    }
    scaling = {
        "vpcZoneIdentifiers": [UNKNOWN, UNKNOWN],
        "mixedInstancesPolicy": {"launchTemplate": {"overrides": [{}]}},
    }
    node_class = {"metadata": {"name": "c"}, "spec": {"subnetSelectorTerms": [{"id": UNKNOWN}]}}
    older = {"type": "ingress", "securityGroupId": UNKNOWN, "self": True, "protocol": "-1", "fromPort": 0, "toPort": 0}
    job = {
        "spec": {"entrypoint": 'x \'{"kv_connector": "NixlConnector"}\'', "rayClusterSpec": {"workerGroupSpecs": [{}]}}
    }
    return [
        *resources,
        Resource("kubernetes:karpenter.sh/v1:NodePool", "pool", {"metadata": {}, "spec": {"template": pool}}),
        Resource("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "class", node_class),
        Resource("aws:autoscaling/group:Group", "asg", scaling, {"vpcZoneIdentifiers": resources[:2]}),
        Resource("aws:ec2/securityGroupRule:SecurityGroupRule", "older", older, {"securityGroupId": [group]}),
        Resource("aws:eks/cluster:Cluster", "cluster", {"version": "1.35", "vpcConfig": {"subnetIds": [UNKNOWN]}}),
        Resource("kubernetes:ray.io/v1:RayJob", "job", job),
    ]


@settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_value_in_any_place_crashes_a_policy(preview, data):
    resources = copy.deepcopy(everything())
    for _ in range(data.draw(st.integers(1, 3))):
        resource = data.draw(st.sampled_from(resources))
        found = places(resource.props)
        if found:
            put(resource.props, data.draw(st.sampled_from(found)), data.draw(JUNK))
    assert all(item.message for item in preview(resources))


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(st.text(max_size=30), st.sampled_from(["&a [*a]", "a: 2001-99-99", "!!python/object:x {}", "? [a]"]))
)
def test_no_serve_config_crashes_a_policy(preview, text):
    found = preview([samples.ray_service(serveConfigV2=text)])
    assert {item.policy for item in found} == {"nixl-backend-libfabric"}


SERVICE_PLACES = places(samples.ray_service().props["spec"]["rayClusterConfig"]["workerGroupSpecs"][0])


@pytest.mark.parametrize("path", SERVICE_PLACES, ids=lambda path: ".".join(map(str, path)))
def test_an_unknown_never_makes_a_broken_worker_clean(preview, path):
    """Whatever hides in one worker group, the fault in the other is found."""
    service = samples.ray_service()
    put(samples.workers(service)[0], path, UNKNOWN)
    del samples.container(service, 1)["securityContext"]
    found = [item for item in preview([service]) if item.policy == "ray-worker-privileged"]
    assert any("workerGroupSpecs[1]" in item.message and item.level == "mandatory" for item in found)


DECISIONS = [
    ("template",),
    ("template", "spec"),
    ("template", "spec", "containers"),
    ("template", "spec", "containers", 0),
    ("template", "spec", "containers", 0, "securityContext", "privileged"),
    ("template", "spec", "containers", 0, "securityContext", "runAsUser"),
    ("template", "spec", "containers", 0, "resources", "limits", samples.EFA),
    ("template", "spec", "containers", 0, "env"),
]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: ".".join(map(str, path)))
def test_an_unknown_decision_is_a_violation(preview, path):
    service = samples.ray_service()
    put(samples.workers(service)[0], path, UNKNOWN)
    found = preview([service])
    assert found
    assert all(
        item.level == "mandatory" and "cannot be checked before the deployment" in item.message for item in found
    )


@pytest.mark.parametrize(
    "path", [("spec",), ("spec", "rayClusterConfig"), ("spec", "rayClusterConfig", "workerGroupSpecs")]
)
def test_an_unknown_cluster_is_a_violation_that_says_where(preview, path):
    service = samples.ray_service()
    put(service.props, path, UNKNOWN)
    found = preview([service])
    assert {item.policy for item in found} >= {"ray-worker-requests-efa", "ray-worker-privileged"}
    assert all("is not known yet" in item.message for item in found)
