"""Kills and faults where Kubernetes is in play, one after the other in the life of one stack: each is survived.

Every test leaves the stack so that the next run goes on from there, which is what a user's does.
"""

import json
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox import cli
from sandbox.cluster.api import Refusal
from sandbox.cluster.processes import wait_for
from sandbox.cluster.tools import Tools
from sandbox.engine import Sandbox
from sandbox.faults import IN_CLUSTERS, FaultPlan
from tests.cluster.faults import (
    API_SERVER_RESTART,
    APPLICATION_FAILS,
    CLUSTER_FAULTS,
    NAMESPACE_TERMINATING,
    OPERATOR_MISSING,
    WORKER_NEVER_READY,
    ClusterFault,
)
from tests.cluster.programs import impatient
from tests.cluster.stacks import CLUSTER, NAMESPACE, RAY_SERVICE
from tests.lifecycle.runs import OPERATOR, RELEASE, SERVICE, Steps

pytestmark = pytest.mark.cluster

SHORT = {"ray-llm-eks:addons.timeoutMinutes": "1"}
LIMITS = {"ray-llm-service-ray-service": "40s", "ray-llm-service-namespace": "30s"}
RELEASE_NOTES = "/api/v1/namespaces/kuberay-system/secrets"


class Stack:
    """The dev stack in one home; each command is a process of its own, as far as the home can tell."""

    def __init__(self, folder: Path, programs: Tools) -> None:
        self.program = impatient(folder / "program", LIMITS)
        self._home = folder / "home"
        self._programs = programs

    @contextmanager
    def sandbox(self, faults: Sequence[str] = ()) -> Iterator[Sandbox]:
        plan = FaultPlan.parse(faults)
        with Sandbox(cli.find(print), self._home, faults=plan, say=print, real=lambda: self._programs) as sandbox:
            yield sandbox
        assert plan.unmet == []

    def run(self, sandbox: Sandbox, command: str, config: dict[str, str] | None = None) -> Steps:
        if command == "destroy":
            return Steps(sandbox.destroy(self.program, "dev", SHORT))
        return Steps(sandbox.up(self.program, "dev", {**SHORT, **(config or {})}, preview_first=False))

    def meets(self, fault: ClusterFault, command: str, shown_at: str) -> Steps:
        """Runs into a fault, and holds against the row what the user reads and what the cluster shows."""
        seen = Watch(self, fault.shows, shown_at)
        with self.sandbox([fault.option]) as sandbox, seen.over(sandbox):
            done = self.run(sandbox, command, dict(fault.config))
        assert (done.exit_code == 0) is (not fault.says), done.output
        assert [part for part in fault.says if part not in done.words] == [], done.output
        assert seen.found, f"{fault.look} never showed {fault.shows}"
        return done


class Watch:
    """Looks at one place in the API server during a run, since what a failed release had made is gone after it."""

    def __init__(self, stack: Stack, text: str, path: str) -> None:
        self._text, self._path = text, path
        self.found = not text

    @contextmanager
    def over(self, sandbox: Sandbox) -> Iterator[None]:
        ended = threading.Event()

        def look() -> None:
            while not (self.found or ended.wait(0.5)):
                if CLUSTER in sandbox.clusters.names():
                    try:
                        found = sandbox.clusters.api(CLUSTER).find(self._path)
                    except (Refusal, OSError, ValueError):
                        # It is being made, or restarts.
                        continue
                    self.found = self._text in json.dumps(found)

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


@pytest.fixture(scope="module")
def stack(programs: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("faults"), programs)
    yield stack
    with stack.sandbox() as sandbox:
        for name in sandbox.clusters.names():
            sandbox.clusters.stop(name)


def test_every_kind_of_fault_in_a_cluster_has_its_row() -> None:
    assert {one.option for one in CLUSTER_FAULTS} == set(IN_CLUSTERS)


def test_a_killed_up_leaves_orphans_in_the_cluster_that_can_be_named_and_deleted(stack: Stack) -> None:
    with stack.sandbox() as sandbox:
        killer = threading.Thread(target=_kill_in_release, args=(sandbox,))
        killer.start()
        done = stack.run(sandbox, "up")
        killer.join()
        assert done.exit_code == -signal.SIGKILL, done.output

    with stack.sandbox() as sandbox:
        orphans = sandbox.orphans(stack.program, "dev")
        assert (RELEASE, "kuberay-system/kuberay-operator") in {(one.made_by, one.id) for one in orphans}
        assert sandbox.delete_orphans(stack.program, "dev") == []
        assert sandbox.orphans(stack.program, "dev") == []


def _kill_in_release(sandbox: Sandbox) -> None:
    def begun() -> bool:
        if CLUSTER not in sandbox.clusters.names():
            return False
        try:
            notes = sandbox.clusters.api(CLUSTER).items(RELEASE_NOTES, labelSelector="owner=helm")
        except (Refusal, OSError, ValueError):
            return False
        return bool(notes)

    assert wait_for(begun, 180)
    sandbox.kill()


def test_without_its_operator_an_up_says_so_and_leaves_no_release(stack: Stack) -> None:
    done = stack.meets(OPERATOR_MISSING, "up", "/api/v1/namespaces/kuberay-system/events")

    assert OPERATOR not in done.changes or done.changes[OPERATOR] == "create"
    with stack.sandbox() as sandbox:
        assert sandbox.clusters.api(CLUSTER).items(RELEASE_NOTES, labelSelector="owner=helm") == []


def test_an_application_that_fails_is_in_the_services_status_and_a_second_up_goes_on(stack: Stack) -> None:
    stack.meets(APPLICATION_FAILS, "up", RAY_SERVICE)

    with stack.sandbox() as sandbox:
        again = stack.run(sandbox, "up")
        assert again.exit_code == 0, again.output
        conditions = {one["type"]: one["status"] for one in _status(sandbox)["conditions"]}
        assert conditions["Ready"] == "True"


def test_a_worker_that_never_becomes_ready_fails_the_up(stack: Stack) -> None:
    done = stack.meets(WORKER_NEVER_READY, "up", f"/api/v1/namespaces/{NAMESPACE}/events")

    assert done.changes[SERVICE] == "replace"


def test_an_api_server_that_restarts_in_the_middle_is_survived(stack: Stack) -> None:
    done = stack.meets(API_SERVER_RESTART, "up", "")

    assert done.changes[SERVICE] in ("replace", "update")
    with stack.sandbox() as sandbox:
        pods = sandbox.clusters.api(CLUSTER).items(f"/api/v1/namespaces/{NAMESPACE}/pods")
        images = {one["spec"]["containers"][0]["image"] for one in pods if "deletionTimestamp" not in one["metadata"]}
        assert images == {API_SERVER_RESTART.config["ray-llm-eks:service.image"]}


def test_a_namespace_that_hangs_is_named_and_a_second_destroy_leaves_nothing(stack: Stack) -> None:
    stack.meets(NAMESPACE_TERMINATING, "destroy", f"/api/v1/namespaces/{NAMESPACE}")

    with stack.sandbox() as sandbox:
        done = stack.run(sandbox, "destroy")
        assert done.exit_code == 0, done.output
        assert sandbox.inventory() == []
        assert sandbox.clusters.names() == []


def _status(sandbox: Sandbox) -> dict[str, list[dict[str, str]]]:
    return sandbox.clusters.api(CLUSTER).get(RAY_SERVICE)["status"]
