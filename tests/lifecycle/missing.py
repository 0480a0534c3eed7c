"""The dependencies that this program writes by hand: the rows of docs/lifecycle.md, each taken out by a test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.lifecycle.runs import (
    EFA_PLUGIN,
    EFA_RULES,
    GPU_NODES,
    GPU_PLUGIN,
    OPERATOR,
    SERVICE,
    SYSTEM_NODES,
    Key,
)

_EGRESS: Final = ("ray-llm-network-",)
# A component that depends on something keeps its children waiting too.
_SERVICE: Final = (SERVICE[1], "ray-llm-service")
_NAMESPACES: Final = ("ray-llm-addons-device-plugins", "ray-llm-addons-kuberay-system", "ray-llm-service-namespace")
_IN_NAMESPACES: Final = (
    *(EFA_PLUGIN[1], GPU_PLUGIN[1], OPERATOR[1]),
    *("ray-llm-service-head-account", "ray-llm-service-worker-account", "ray-llm-service-network-policy"),
)


@dataclass(frozen=True)
class Edge:
    """One dependency, or several that only make sense together.

    Attributes:
        of: Logical names of the resources that wait.
        on: Beginnings of the names of what they wait for.
        of_in_words: Who waits, for the table.
        on_in_words: For what.
        without: What happens without it, for the table.
        says: What AWS says then, as parts of the engine's output.
        slow: What takes its time on AWS: beginning of a name -> seconds here.
    """

    of: Sequence[str]
    on: Sequence[str]
    of_in_words: str
    on_in_words: str
    without: str
    says: Sequence[str]
    slow: Mapping[str, float] = field(default_factory=dict)


EDGES: Final[Sequence[Edge]] = (
    Edge(
        of=[SYSTEM_NODES[1]],
        on=_EGRESS,
        of_in_words="system nodes",
        on_in_words="NAT gateway, routes, endpoints",
        without="`up`: the nodes boot without a way out and never join: NodeCreationFailure after 15 to 30 minutes",
        says=["NodeCreationFailure", "failed to join the kubernetes cluster"],
        slow={"ray-llm-network-nat-": 12.0},
    ),
    Edge(
        of=[GPU_NODES[1]],
        on=_EGRESS,
        of_in_words="GPU nodes",
        on_in_words="NAT gateway, routes, endpoints",
        without="the same, at the price of GPUs",
        says=["NodeCreationFailure", "failed to join the kubernetes cluster"],
        slow={"ray-llm-network-nat-": 12.0},
    ),
    Edge(
        of=[SYSTEM_NODES[1]],
        on=["ray-llm-cluster-system-role-"],
        of_in_words="system nodes",
        on_in_words="the policies of their role",
        without="`up`: nodes that may not ask EKS who they are never join: NodeCreationFailure",
        says=["NodeCreationFailure"],
        slow={"ray-llm-cluster-system-role-": 12.0},
    ),
    Edge(
        of=[GPU_NODES[1]],
        on=["ray-llm-gpu-role-"],
        of_in_words="GPU nodes",
        on_in_words="the policies of their role",
        without="the same",
        says=["NodeCreationFailure"],
        slow={"ray-llm-gpu-role-": 12.0},
    ),
    Edge(
        of=[*_SERVICE, OPERATOR[1]],
        on=["ray-llm-addons-kuberay-crds"],
        of_in_words="RayService and operator",
        on_in_words="KubeRay's CRDs",
        without='`up`: no matches for kind "RayService"',
        says=['no matches for kind "RayService" in version "ray.io/v1"'],
        slow={"ray-llm-addons-kuberay-crds": 20.0},
    ),
    Edge(
        of=_SERVICE,
        on=[OPERATOR[1]],
        of_in_words="RayService",
        on_in_words="the operator",
        without="`up`: the object is there, nobody makes pods of it, and the wait for Ready times out",
        says=["timed out waiting for the condition"],
        slow={OPERATOR[1]: 20.0},
    ),
    Edge(
        of=_SERVICE,
        on=[EFA_PLUGIN[1], GPU_PLUGIN[1]],
        of_in_words="RayService",
        on_in_words="device plugins",
        without="`up`: workers are Pending, and if that lasts longer than `service.readyTimeoutMinutes` the wait for Ready times out",
        says=["timed out waiting for the condition", "Insufficient"],
        slow={EFA_PLUGIN[1]: 20.0, GPU_PLUGIN[1]: 20.0},
    ),
    Edge(
        # The plugins would make it wait too.
        of=[*_SERVICE, EFA_PLUGIN[1], GPU_PLUGIN[1]],
        on=[GPU_NODES[1]],
        of_in_words="RayService",
        on_in_words="GPU nodes",
        without="`up`: the same",
        says=["timed out waiting for the condition", "no node takes them"],
        slow={GPU_NODES[1]: 25.0},
    ),
    Edge(
        of=[*_IN_NAMESPACES, *_SERVICE],
        on=_NAMESPACES,
        of_in_words="releases, RayService and what is around it",
        on_in_words="their namespaces",
        without='`up`: namespaces "device-plugins" not found; `destroy`, where the edge to the nodes is missing too: '
        "release: not found, since the namespace has taken it along",
        says=['namespaces "device-plugins" not found'],
        slow=dict.fromkeys(_NAMESPACES, 20.0),
    ),
    Edge(
        of=[OPERATOR[1]],
        on=[SYSTEM_NODES[1], "ray-llm-cluster-coredns"],
        of_in_words="operator",
        on_in_words="system nodes, CoreDNS",
        without="`up`: its release waits for a node, and is rolled back if that takes longer than `addons.timeoutMinutes`",
        says=["uninstalled due to atomic being set"],
        slow={SYSTEM_NODES[1]: 25.0},
    ),
    Edge(
        of=["ray-llm-cluster-coredns"],
        on=[SYSTEM_NODES[1]],
        of_in_words="CoreDNS add-on",
        on_in_words="system nodes",
        without="`up`: without a node its pods never run, and the wait times out after 20 minutes if the nodes take that long",
        says=["waiting for EKS Add-On", "(last state: 'DEGRADED', timeout: 20m0s)"],
        slow={SYSTEM_NODES[1]: 5.0},
    ),
    Edge(
        of=["ray-llm-cluster-control-plane"],
        on=["ray-llm-cluster-logs"],
        of_in_words="cluster",
        on_in_words="its log group",
        without="`up`: EKS makes the group itself, without retention, and ours exists already; `destroy` leaves it behind",
        says=["ResourceAlreadyExistsException"],
        slow={"ray-llm-cluster-logs": 15.0},
    ),
    Edge(
        of=["ray-llm-network-nat-us-east-1a"],
        on=["ray-llm-network-internet", "ray-llm-network-public-to-internet"],
        of_in_words="NAT gateway and its address",
        on_in_words="the internet gateway",
        without="`up`: a NAT gateway in a VPC without an internet gateway fails: Gateway.NotAttached",
        says=["Gateway.NotAttached", "has no Internet gateway attached"],
        slow={"ray-llm-network-internet": 15.0},
    ),
)
"""What makes AWS, or the API server, refuse."""


@dataclass(frozen=True)
class Misbehaviour:
    """A dependency without which nothing fails and something is wrong.

    Attributes:
        of: What waits.
        on: What it waits for.
        of_in_words: Who waits, for the table.
        on_in_words: For what.
        without: What happens without it, for the table.
    """

    of: Sequence[Key]
    on: Sequence[Key]
    of_in_words: str
    on_in_words: str
    without: str


MISBEHAVIOURS: Final[Sequence[Misbehaviour]] = (
    Misbehaviour(
        of=[GPU_NODES],
        on=EFA_RULES,
        of_in_words="GPU nodes",
        on_in_words="the rules of the EFA group",
        without="no error: AWS has no opinion on who talks before they are there; EFA traffic is dropped until then",
    ),
    Misbehaviour(
        of=[EFA_PLUGIN, GPU_PLUGIN],
        on=[GPU_NODES],
        of_in_words="device plugins",
        on_in_words="GPU nodes",
        without="no error: a DaemonSet that wants 0 pods is ready, whatever its image",
    ),
)
"""What is in the wrong order, with nobody to say so."""
