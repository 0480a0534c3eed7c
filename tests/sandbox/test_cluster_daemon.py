"""A cluster's folder, its daemon's locks and its processes, without a Kubernetes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from sandbox.cluster import daemon
from sandbox.cluster.clusters import Clusters
from sandbox.cluster.layout import Folder
from sandbox.cluster.processes import HELD, JUDGED, Process, kubelets, wait_for
from sandbox.cluster.tools import Tools, ToolsError
from sandbox.nodes import Node, Taint
from sandbox.standin import StandInError

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "cluster")
    folder.make("cluster", "1.35")
    return folder


def test_ports_are_its_own_and_below_those_of_outgoing_connections(folder: Folder, tmp_path: Path) -> None:
    other = Folder(tmp_path / "other")
    other.make("other", "1.35")
    ports = [*folder.about["ports"].values(), *other.about["ports"].values()]
    assert len(set(folder.about["ports"].values())) == len(folder.about["ports"])
    assert all(20000 <= port < 32000 for port in ports)
    assert folder.taken_ports() == []
    with socket.create_server(("127.0.0.1", folder.port("api"))):
        assert folder.taken_ports() == [folder.port("api")]


def test_only_the_owner_reads_the_token(folder: Folder) -> None:
    for name in ("token", "tokens.csv", "kubeconfig"):
        assert (folder.path / name).stat().st_mode & 0o077 == 0
    user = yaml.safe_load((folder.path / "kubeconfig").read_text())["users"][0]["user"]
    assert user == {"token": folder.token}


def test_nodes_come_back_as_they_were_written(folder: Folder) -> None:
    taints = (Taint("key", "value", "NoSchedule"),)
    node = Node("name", "i-1", "g6.8xlarge", "us-east-1a", "gpu", {"a": "b"}, taints, 1, 32, 131072, 1, 234)
    assert folder.nodes == []
    folder.put_nodes([node])
    assert folder.nodes == [node]


def test_a_daemon_is_running_exactly_while_its_process_holds_the_lock(folder: Folder) -> None:
    assert not daemon.is_running(folder)
    script = (
        "import os, sys, time; from pathlib import Path; from sandbox.cluster import daemon; path = Path(sys.argv[1]);"
        "daemon._claim(os.open(path / 'daemon.lock', os.O_RDWR | os.O_CREAT)); print('claimed', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "claimed\n"
        # It lives and is not ready; nor is it when another one, now dead, was.
        assert not daemon.is_running(folder)
        (folder.path / "daemon.json").write_text(json.dumps({"pid": holder.pid + 1}))
        assert not daemon.is_running(folder)
        (folder.path / "daemon.json").write_text(json.dumps({"pid": holder.pid}))
        assert daemon.is_running(folder)
        daemon.stop(folder)
        assert holder.wait(5) == -signal.SIGTERM
    assert not daemon.is_running(folder)
    daemon.stop(folder)


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from sandbox.cluster.processes import Process;"
        "one = Process('child', sys.argv[2:], Path(sys.argv[1])); one.start(); print(one._running.pid, flush=True);"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log"), *SLEEP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, 0)
        parent.kill()
    assert wait_for(lambda: not _lives(child), 5)


def test_a_process_that_fails_at_once_is_not_started_again_at_once(tmp_path: Path) -> None:
    process = Process("failing", [sys.executable, "-c", "print('no'); raise SystemExit('why')"], tmp_path / "log")
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        process.start()
        time.sleep(0.05)
    process.stop()
    assert process.last_words() == "why"
    assert 1 <= (tmp_path / "log").read_text().count("no\n") <= 2


def test_a_process_that_will_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.cluster.processes._END_SECONDS", 0.3)
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    process = Process("deaf", [sys.executable, "-c", deaf], tmp_path / "log")
    process.start()
    assert wait_for(lambda: process.last_words() == "deaf", 5)
    process.stop()
    assert not process.alive


def test_kwok_starts_only_pods_that_the_daemon_has_judged_and_nobody_holds(folder: Folder, tmp_path: Path) -> None:
    stage = {"kind": "Stage", "metadata": {"name": "pod-ready"}, "spec": {"selector": {"matchExpressions": []}}}
    stages = tmp_path / "stages.yaml"
    stages.write_text(yaml.safe_dump_all([{**stage, "metadata": {"name": "pod-delete"}}, stage]))
    nothing = tmp_path / "nothing"
    kubelets(Tools(nothing, nothing, nothing, nothing, "", stages, nothing), folder)
    made = {one["metadata"]["name"]: one for one in yaml.safe_load_all((folder.path / "stages.yaml").read_text())}
    assert made["pod-delete"]["spec"] == {"selector": {"matchExpressions": []}}
    chosen = made["pod-ready"]["spec"]["selector"]["matchExpressions"]
    assert {one["key"]: one["operator"] for one in chosen} == {
        f'.metadata.annotations["{HELD}"]': "DoesNotExist",
        f'.metadata.annotations["{JUDGED}"]': "Exists",
    }


def test_a_cluster_that_cannot_be_made_is_not_there(tmp_path: Path) -> None:
    def find() -> Tools:
        raise ToolsError("there is no Go on PATH")

    clusters = Clusters(tmp_path, find)
    clusters.makes = True
    with pytest.raises(StandInError, match="there is no Go on PATH"):
        clusters.start("cluster", "1.35")
    assert clusters.names() == []
    assert clusters.endpoint("cluster") is None


def test_a_daemon_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    clusters = Clusters(tmp_path, lambda: Tools(nothing, nothing, nothing, nothing, "", nothing, nothing))
    clusters.makes = True
    with pytest.raises(StandInError) as refused:
        clusters.start("cluster", "1.35")
    assert str(refused.value).startswith("the control plane did not start: ")
    assert "\n" not in str(refused.value)


def test_without_real_clusters_nothing_is_made(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path)
    clusters.start("cluster", "1.35")
    assert clusters.names() == []
    assert clusters.settle("cluster", []) == ""


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
