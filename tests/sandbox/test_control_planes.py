"""What AWS's side tells those who run control planes."""

from collections.abc import Sequence

import pytest

from sandbox.aws.control_planes import Endpoint
from sandbox.nodes import Node
from sandbox.standin import StandInError
from tests.sandbox.aws_stack import Stack


class Heard:
    """Control planes that only listen; ``absent`` are the nodes that never come."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.nodes: Sequence[Node] = ()
        self.absent = ""

    def start(self, name: str, version: str) -> None:
        self.calls.append(("start", name, version))

    def endpoint(self, name: str) -> Endpoint | None:
        return Endpoint("https://127.0.0.1:26443", "Y2VydA==")

    def stop(self, name: str) -> None:
        self.calls.append(("stop", name))

    def settle(self, name: str, nodes: Sequence[Node]) -> str:
        self.nodes = nodes
        return self.absent


@pytest.fixture
def heard(stack: Stack) -> Heard:
    stack.aws.cloud.control_planes = heard = Heard()
    stack.network()
    stack.cluster()
    return heard


def test_a_cluster_shows_where_its_control_plane_is(stack: Stack, heard: Heard) -> None:
    found = stack.outputs("cluster")
    assert heard.calls == [("start", found["name"], found["version"])]
    assert found["endpoint"] == "https://127.0.0.1:26443"
    assert found["certificateAuthority"] == {"data": "Y2VydA=="}


def test_a_newer_version_reaches_the_control_plane_and_other_changes_do_not(stack: Stack, heard: Heard) -> None:
    name = stack.outputs("cluster")["name"]
    stack.update("cluster", enabledClusterLogTypes=["api"])
    assert len(heard.calls) == 1
    stack.update("cluster", version="1.36")
    assert heard.calls[1:] == [("start", name, "1.36")]


def test_nodes_come_with_their_group_and_go_with_it(stack: Stack, heard: Heard) -> None:
    stack.nodes()
    assert len(heard.nodes) == stack.outputs("gpu")["scalingConfig"]["desiredSize"]
    offers = {(one.vcpus, one.memory_mib, one.gpus, one.efa_interfaces, one.pods) for one in heard.nodes}
    assert offers == {(32, 131072, 1, 1, 234)}
    stack.delete("gpu")
    assert heard.nodes == []
    name = stack.outputs("cluster")["name"]
    stack.delete("cluster")
    assert heard.calls[-1] == ("stop", name)


def test_nodes_that_do_not_come_fail_their_group_in_eks_words(stack: Stack, heard: Heard) -> None:
    heard.absent = "ip-10-9-16-4.ec2.internal"
    with pytest.raises(StandInError, match=r"NodeCreationFailure.*Instances failed to join the kubernetes cluster"):
        stack.nodes()
