"""The real control plane and its daemon: what comes, what goes, what survives."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.cluster import daemon, pods
from sandbox.cluster.api import Refusal
from sandbox.cluster.processes import wait_for
from sandbox.faults import FaultKind
from sandbox.nodes import Taint
from sandbox.recovery import HOME_VARIABLE
from sandbox.standin import StandInError
from tests.cluster.planes import GPU, SYSTEM, TOLERATES_GPU, Plane, pod, processes_of, workload

pytestmark = pytest.mark.cluster

DEVICES = ("nvidia.com/gpu", "vpc.amazonaws.com/efa")


@pytest.fixture
def joined(plane: Plane) -> Plane:
    assert plane.clusters.settle(plane.name, [SYSTEM, GPU]) == ""
    return plane


@pytest.fixture
def space(plane: Plane, request: pytest.FixtureRequest) -> Iterator[str]:
    name = plane.namespace(f"space-{abs(hash(request.node.name)) % 10**6}")
    yield name
    # It takes a real server some seconds, which nobody waits for.
    plane.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def plugins(joined: Plane) -> Iterator[Plane]:
    """Both device plugins, on the nodes that have GPUs."""
    where = {"nodeSelector": {"nvidia.com/gpu.present": "true"}, "tolerations": TOLERATES_GPU}
    joined.run("kube-system", workload("DaemonSet", "nvidia", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", **where))
    efa = "602401143452.dkr.ecr.us-east-1.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.30"
    joined.run("kube-system", workload("DaemonSet", "efa", efa, **where))
    yield joined
    for name in ("nvidia", "efa"):
        joined.api.delete(f"/apis/apps/v1/namespaces/kube-system/daemonsets/{name}")
    joined.until(
        lambda: not joined.api.items("/api/v1/namespaces/kube-system/pods", labelSelector="app in (nvidia, efa)")
    )


def test_it_is_ready_in_seconds(plane: Plane) -> None:
    assert plane.seconds < 30
    assert plane.api.get("/version")["gitVersion"] == "v1.35.4"


def test_joined_nodes_are_ready_with_what_they_have_to_give(joined: Plane) -> None:
    found = joined.api.get(f"/api/v1/nodes/{GPU.name}")
    assert found["metadata"]["labels"].items() >= GPU.labels.items()
    assert {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"} in found["spec"]["taints"]
    assert found["spec"]["providerID"] == f"aws:///us-east-1a/{GPU.instance_id}"
    assert joined.allocatable(SYSTEM)["cpu"] == "3920m"
    assert joined.allocatable(GPU)["cpu"] == "31850m"


def test_what_eks_runs_is_there(joined: Plane) -> None:
    def places() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in joined.ready("kube-system"):
            found.setdefault(pods.label(one, "k8s-app"), []).append(one["spec"]["nodeName"])
        return {name: sorted(nodes) for name, nodes in found.items()}

    everywhere = [SYSTEM.name, GPU.name]
    # CoreDNS does not tolerate the taint of the GPU nodes.
    expected = {"aws-node": everywhere, "kube-proxy": everywhere, "kube-dns": [SYSTEM.name, SYSTEM.name]}
    joined.until(lambda: places() == expected)


def test_devices_are_there_exactly_while_their_plugins_are(joined: Plane, request: pytest.FixtureRequest) -> None:
    assert not joined.allocatable(GPU).keys() & set(DEVICES)
    request.getfixturevalue("plugins")
    joined.until(lambda: [joined.allocatable(GPU).get(one) for one in DEVICES] == ["1", "1"])
    assert not joined.allocatable(SYSTEM).keys() & set(DEVICES)
    joined.api.delete("/apis/apps/v1/namespaces/kube-system/daemonsets/efa")
    joined.until(lambda: [joined.allocatable(GPU).get(one) for one in DEVICES] == ["1", "0"])


def test_a_worker_waits_for_the_device_that_it_asks_for(
    joined: Plane, space: str, request: pytest.FixtureRequest
) -> None:
    worker = pod("worker", dict.fromkeys(DEVICES, "1"), tolerations=TOLERATES_GPU)
    joined.run(space, worker)
    joined.until(lambda: "Insufficient" in str(joined.pods(space)[0]["status"].get("conditions")))
    assert not joined.ready(space)
    request.getfixturevalue("plugins")
    joined.until(lambda: joined.ready(space))
    assert joined.pods(space)[0]["spec"]["nodeName"] == GPU.name
    joined.run(space, {**worker, "metadata": {"name": "second"}})
    joined.until(lambda: "Insufficient" in str([one["status"].get("conditions") for one in joined.pods(space)]))
    joined.api.delete(f"/api/v1/namespaces/{space}/pods/worker")
    joined.until(lambda: [one["metadata"]["name"] for one in joined.ready(space)] == ["second"])


def test_labels_and_taints_of_a_group_reach_its_nodes(joined: Plane) -> None:
    other = replace(SYSTEM, labels={"colour": "blue"}, taints=(Taint("busy", "", "PreferNoSchedule"),))
    joined.clusters.settle(joined.name, [other, GPU])

    def found() -> tuple[set[str], list[str]]:
        node = joined.api.get(f"/api/v1/nodes/{SYSTEM.name}")
        return set(node["metadata"]["labels"]), [one["key"] for one in node["spec"].get("taints") or ()]

    joined.until(lambda: found() == ({"colour"}, ["busy"]))
    joined.clusters.settle(joined.name, [SYSTEM, GPU])
    joined.until(lambda: found() == (set(SYSTEM.labels), []))


def test_a_node_leaves_with_its_pods(joined: Plane, space: str) -> None:
    extra = replace(SYSTEM, name="ip-10-20-1-3.ec2.internal", labels={"only": "here"})
    assert joined.clusters.settle(joined.name, [SYSTEM, GPU, extra]) == ""
    joined.run(space, workload("Deployment", "guest", nodeSelector={"only": "here"}))
    joined.until(lambda: joined.ready(space))
    assert joined.clusters.settle(joined.name, [SYSTEM, GPU]) == ""
    assert joined.api.find(f"/api/v1/nodes/{extra.name}") is None
    # Its controller makes another, which finds no node.
    joined.until(lambda: [one["status"]["phase"] for one in joined.pods(space)] == ["Pending"])


def test_a_restricted_namespace_refuses_a_privileged_pod(plane: Plane) -> None:
    space = plane.namespace("restricted", {"pod-security.kubernetes.io/enforce": "restricted"})
    privileged = pod("privileged")
    privileged["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    with pytest.raises(Refusal, match='violates PodSecurity "restricted:latest": privileged'):
        plane.run(space, privileged)


def test_pods_start_unless_a_fault_holds_them(joined: Plane, space: str) -> None:
    joined.clusters.plan([{"kind": FaultKind.WORKER_NEVER_READY, "resource": "held", "times": 1}])
    for name in ("held", "free"):
        joined.run(space, pod(name, labels={"ray.io/node-type": "worker"}))
    joined.until(lambda: joined.ready(space))
    time.sleep(2)
    assert [one["metadata"]["name"] for one in joined.ready(space)] == ["free"]
    joined.clusters.plan([])
    joined.until(lambda: len(joined.ready(space)) == 2)
    assert all(one["status"]["podIP"].startswith("192.0.2.") for one in joined.ready(space))


def test_a_pod_waits_for_the_secret_that_it_refers_to(joined: Plane, space: str) -> None:
    reference = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "token"}}}
    waits = pod("waits")
    waits["spec"]["containers"][0]["env"] = [reference]
    joined.run(space, waits)

    def says() -> dict[str, str]:
        return joined.pods(space)[0]["status"]["containerStatuses"][0]["state"].get("waiting", {})

    missing = {"reason": "CreateContainerConfigError", "message": 'secret "token" not found'}
    joined.until(lambda: "containerStatuses" in joined.pods(space)[0]["status"] and says() == missing)
    secrets = f"/api/v1/namespaces/{space}/secrets"
    joined.api.create(secrets, {"metadata": {"name": "token"}, "stringData": {"other": "x"}})
    joined.until(lambda: says()["message"] == f"couldn't find key token in Secret {space}/token")
    joined.api.patch(f"{secrets}/token", {"stringData": {"token": "x"}})
    joined.until(lambda: joined.ready(space))
    assert says() == {}


def test_the_operator_runs_while_its_pod_does(joined: Plane, space: str) -> None:
    def operators() -> list[int]:
        return [pid for pid, command in processes_of(joined.folder).items() if "kuberay-operator" in command]

    assert operators() == []
    deployment = workload("Deployment", "operator")
    container = {
        "name": "main",
        "image": "quay.io/kuberay/operator:v1.6.0",
        "env": [{"name": "CLUSTER_DOMAIN", "value": "x.y"}],
    }
    deployment["spec"]["template"]["spec"]["containers"] = [container]
    joined.run(space, deployment)
    joined.until(operators)
    (pid,) = operators()
    assert b"CLUSTER_DOMAIN=x.y" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    (first,) = joined.pods(space)
    joined.api.delete(f"/api/v1/namespaces/{space}/pods/{first['metadata']['name']}")
    joined.until(lambda: operators() and operators() != [pid])
    joined.api.delete(f"/apis/apps/v1/namespaces/{space}/deployments/operator", propagationPolicy="Foreground")
    joined.until(lambda: not operators())


def test_no_pod_starts_before_the_daemon_has_seen_it(joined: Plane, space: str) -> None:
    # However slow a machine is, a fault that is planned is met.
    os.kill(joined.daemon, signal.SIGSTOP)
    try:
        joined.run(space, pod("early"))
        joined.until(lambda: joined.pods(space)[0]["spec"].get("nodeName"))
        time.sleep(2)
        assert joined.ready(space) == []
    finally:
        os.kill(joined.daemon, signal.SIGCONT)
    joined.until(lambda: joined.ready(space))


@pytest.mark.parametrize("name", ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"])
def test_what_dies_is_started_again_and_the_others_go_on(joined: Plane, space: str, name: str) -> None:
    (pid,) = (pid for pid, line in processes_of(joined.folder).items() if line.partition(" --")[0].endswith(name))
    before = set(processes_of(joined.folder)) - {pid}
    os.kill(pid, signal.SIGKILL)
    joined.until(lambda: joined.api.ready())
    joined.run(space, workload("Deployment", "after"))
    joined.until(lambda: joined.ready(space))
    assert before <= processes_of(joined.folder).keys()


def test_the_daemon_carries_nothing_of_the_users_environment(plane: Plane) -> None:
    variables = Path(f"/proc/{plane.daemon}/environ").read_bytes().split(b"\0")
    names = {one.partition(b"=")[0].decode() for one in variables if one}
    assert names <= {"HOME", "LANG", "PATH", "TMPDIR", "TZ", daemon.IDLE_VARIABLE}
    assert HOME_VARIABLE not in names


def test_two_clusters_live_side_by_side_and_an_older_one_behaves_so(plane: Plane) -> None:
    plane.clusters.start("older", "1.33")
    other = replace(plane, name="older")
    try:
        assert other.api.get("/version")["emulationMinor"] == "33"
        other.namespace("only-here")
        assert plane.api.find("/api/v1/namespaces/only-here") is None
        plane.clusters.start("older", "1.34")
        assert other.api.get("/version")["emulationMinor"] == "34"
        assert other.api.find("/api/v1/namespaces/only-here")
    finally:
        folder = other.folder
        ports = folder.about["ports"]
        plane.clusters.stop("older")
    assert not folder.path.exists()
    assert processes_of(folder) == {}
    assert [one for one in ports.values() if _answers(one)] == []
    assert plane.clusters.names() == [plane.name]


def test_stopped_it_leaves_nothing_running_and_goes_on_with_its_data(joined: Plane, space: str) -> None:
    ports, endpoint = joined.folder.about["ports"], joined.clusters.endpoint(joined.name)
    joined.run(space, workload("Deployment", "kept"))
    joined.until(lambda: joined.ready(space))
    joined.clusters.pause()
    assert processes_of(joined.folder) == {}
    assert joined.folder.taken_ports() == []
    joined.clusters.resume(joined.name)
    assert joined.folder.about["ports"] == ports
    assert joined.clusters.endpoint(joined.name) == endpoint
    assert len(joined.ready(space)) == 1
    joined.api.delete(f"/api/v1/namespaces/{space}/pods/{joined.ready(space)[0]['metadata']['name']}")
    joined.until(lambda: joined.ready(space))


def test_a_killed_daemon_takes_all_with_it_and_the_next_start_finds_the_data(joined: Plane, space: str) -> None:
    joined.run(space, workload("Deployment", "kept"))
    joined.until(lambda: joined.ready(space))
    os.kill(joined.daemon, signal.SIGKILL)
    assert wait_for(lambda: processes_of(joined.folder) == {} and not daemon.is_running(joined.folder), 5)
    joined.clusters.resume(joined.name)
    assert len(joined.ready(space)) == 1
    assert joined.clusters.settle(joined.name, [SYSTEM, GPU]) == ""


def test_a_port_that_somebody_took_is_named(plane: Plane) -> None:
    plane.clusters.pause()
    port = plane.folder.port("api")
    with socket.create_server(("127.0.0.1", port)), pytest.raises(StandInError, match=rf"port {port} of 127\.0\.0\.1"):
        plane.clusters.resume(plane.name)
    assert processes_of(plane.folder) == {}
    plane.clusters.resume(plane.name)
    assert plane.api.ready()


def test_it_ends_by_itself_when_nobody_uses_it(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    plane.clusters.pause()
    monkeypatch.setenv(daemon.IDLE_VARIABLE, "2")
    plane.clusters.resume(plane.name)
    time.sleep(4)
    assert daemon.is_running(plane.folder)
    plane.clusters.close()
    assert wait_for(lambda: processes_of(plane.folder) == {}, 20)
    monkeypatch.delenv(daemon.IDLE_VARIABLE)
    plane.clusters.resume(plane.name)
    assert plane.api.ready()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
