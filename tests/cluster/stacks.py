"""What the tests of whole stacks ask of their cluster."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.cluster import pods
from sandbox.engine import Sandbox

CLUSTER = "ray-llm-eks-dev"
NAMESPACE = "inference"
RAY_SERVICE = f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayservices/ray-llm"


@dataclass(frozen=True)
class Cluster:
    """The cluster of the dev stack in a sandbox's home."""

    sandbox: Sandbox

    @property
    def ray_pods(self) -> Mapping[str, list[dict[str, Any]]]:
        """``head``, ``prefill`` and ``decode`` -> their pods, none of them on its way out."""
        found: dict[str, list[dict[str, Any]]] = {"head": [], "prefill": [], "decode": []}
        for one in self.sandbox.clusters.api(CLUSTER).items(f"/api/v1/namespaces/{NAMESPACE}/pods"):
            if "deletionTimestamp" not in one["metadata"]:
                head = pods.label(one, "ray.io/node-type") == "head"
                found["head" if head else pods.label(one, "ray.io/group")].append(one)
        return found

    @property
    def ray_service(self) -> dict[str, Any]:
        """The live RayService."""
        return self.sandbox.clusters.api(CLUSTER).get(RAY_SERVICE)

    @property
    def node_groups(self) -> Mapping[str, str]:
        """Node -> ``system`` or ``gpu``, by its label."""
        nodes = self.sandbox.clusters.api(CLUSTER).items("/api/v1/nodes")
        return {one["metadata"]["name"]: pods.label(one, "ray-llm-eks/node-group") for one in nodes}

    @property
    def configs(self) -> Sequence[Mapping[str, Any]]:
        """What the operator has sent to Serve, oldest first."""
        log = self.sandbox.clusters.folder(CLUSTER).path / "ray.jsonl"
        return [json.loads(line)["config"] for line in log.read_text().splitlines()] if log.exists() else []


def uids(found: Sequence[Mapping[str, Any]]) -> set[str]:
    """What tells pods of one name apart."""
    return {one["metadata"]["uid"] for one in found}
