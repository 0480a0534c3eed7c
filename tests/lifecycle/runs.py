"""What the life-cycle tests ask of a run: which steps the engine took in which order, and what an account holds after it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sandbox.engine import Run
from sandbox.inventory import Item

CHECKOUT = Path(__file__).resolve().parents[2]

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
CLUSTER = "aws:eks/cluster:Cluster"
VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
RELEASE = "kubernetes:helm.sh/v3:Release"
RAY_SERVICE = "kubernetes:ray.io/v1:RayService"

GPU_NODES = (NODE_GROUP, "ray-llm-gpu-nodes")
SYSTEM_NODES = (NODE_GROUP, "ray-llm-cluster-system")
SERVICE = (RAY_SERVICE, "ray-llm-service-ray-service")
OPERATOR = (RELEASE, "ray-llm-addons-kuberay-operator")
EFA_PLUGIN = (RELEASE, "ray-llm-addons-efa-device-plugin")
GPU_PLUGIN = (RELEASE, "ray-llm-addons-nvidia-device-plugin")
EFA_GROUP = (SECURITY_GROUP, "ray-llm-gpu-efa")
EFA_RULES = (
    ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ray-llm-gpu-efa-from-itself"),
    ("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "ray-llm-gpu-efa-to-itself"),
)

Key = tuple[str, str]


@dataclass(frozen=True)
class Step:
    """One step of the engine: ``began`` and ``ended`` are places in the event stream; ``ended`` is None when it failed."""

    op: str
    key: Key
    began: int
    ended: int | None


@dataclass(frozen=True)
class Steps:
    """A finished run, without the preview that an `up` makes first."""

    run: Run
    previewed: bool = False

    @property
    def exit_code(self) -> int:
        """The engine's exit code."""
        return self.run.exit_code

    @property
    def output(self) -> str:
        """All that the engine printed."""
        return self.run.output

    @cached_property
    def words(self) -> str:
        """The output with all white space made one blank, for phrases that may be wrapped."""
        return " ".join(self.output.split())

    @cached_property
    def steps(self) -> Sequence[Step]:
        """What was done (or, in a preview, would be done) to resources; providers, components and the stack are left out."""
        began: dict[tuple[str, str], tuple[int, Key]] = {}
        ended: dict[tuple[str, str], int] = {}
        for place, event in enumerate(self.run.events):
            for kind in ("resourcePreEvent", "resOutputsEvent"):
                told = event.get(kind) or {}
                metadata = told.get("metadata")
                if metadata is None or bool(told.get("planning")) is not self.previewed or not _is_resource(metadata):
                    continue
                step = (metadata["op"], metadata["urn"])
                key = (metadata["type"], metadata["urn"].rpartition("::")[2])
                # A refresh begins as a "refresh" and ends as what it found.
                began.setdefault(step, (place, key))
                if kind == "resOutputsEvent":
                    ended[step] = place
        return [Step(step[0], key, place, ended.get(step)) for step, (place, key) in began.items()]

    @cached_property
    def changes(self) -> Mapping[Key, str]:
        """Resource -> ``create``, ``update``, ``replace`` or ``delete``; what stays as it is is left out."""
        ops: dict[Key, set[str]] = {}
        for step in self.steps:
            ops.setdefault(step.key, set()).add(step.op)
        return {key: word for key, found in ops.items() if (word := _word(found))}

    def places(self, op: str, keys: Iterable[Key]) -> tuple[int, int]:
        """Where the first of these steps began and the last ended.

        Raises:
            AssertionError: One of them was not done, or failed.
        """
        wanted = set(keys)
        found = [step for step in self.steps if step.op == op and step.key in wanted]
        missing = wanted - {step.key for step in found if step.ended is not None}
        assert not missing, f"no {op} of {sorted(missing)}"
        return min(step.began for step in found), max(step.ended for step in found if step.ended is not None)

    def keys(self, op: str, chosen: Callable[[Key], bool]) -> set[Key]:
        """The resources for which a step was taken."""
        return {step.key for step in self.steps if step.op == op and chosen(step.key)}


def shape(items: Iterable[Item]) -> Sequence[tuple[str, str, str]]:
    """An inventory without ids: kind, name (random endings cut), type of the resource it came from."""
    return sorted((item.kind, _stable(item.name, item.id), item.made_by) for item in items)


def _stable(name: str, id: str) -> str:
    # Pulumi ends names that it makes up in seven hexadecimal digits; an id stands for itself.
    if name == id:
        return "-"
    head, dash, tail = name.rpartition("-")
    return head if dash and len(tail) == 7 and set(tail) <= set("0123456789abcdef") else name


def _is_resource(metadata: Mapping[str, Any]) -> bool:
    state = metadata.get("new") or metadata.get("old") or {}
    return bool(state.get("custom")) and not metadata["type"].startswith("pulumi:")


def _word(ops: set[str]) -> str:
    if ops & {"replace", "create-replacement", "delete-replaced"}:
        return "replace"
    return next((op for op in ("create", "update", "delete") if op in ops), "")
