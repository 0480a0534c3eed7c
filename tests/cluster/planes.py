"""What the tests of a real Kubernetes ask of it."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.cluster import pods
from sandbox.cluster.api import Api, Refusal
from sandbox.cluster.clusters import Clusters
from sandbox.cluster.layout import Folder
from sandbox.cluster.processes import wait_for
from sandbox.nodes import Node, Taint

# The machine may be busy with other things.
SECONDS = 40.0

SYSTEM = Node(
    name="ip-10-20-1-1.ec2.internal",
    instance_id="i-0123456789abcdef0",
    instance_type="m7i.xlarge",
    zone="us-east-1a",
    group="system",
    labels={"ray-llm-eks/node-group": "system", "kubernetes.io/hostname": "ip-10-20-1-1.ec2.internal"},
    taints=(),
    efa_interfaces=0,
    vcpus=4,
    memory_mib=16384,
    pods=58,
)
GPU = Node(
    name="ip-10-20-1-2.ec2.internal",
    instance_id="i-0123456789abcdef1",
    instance_type="g6.8xlarge",
    zone="us-east-1a",
    group="gpu",
    labels={"ray-llm-eks/node-group": "gpu", "nvidia.com/gpu.present": "true"},
    taints=(Taint("nvidia.com/gpu", "true", "NoSchedule"),),
    efa_interfaces=1,
    vcpus=32,
    memory_mib=131072,
    gpus=1,
    pods=234,
)
TOLERATES_GPU = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


@dataclass(frozen=True)
class Plane:
    """A running control plane, and the seconds that it took to become ready."""

    clusters: Clusters
    name: str
    seconds: float

    @property
    def api(self) -> Api:
        return self.clusters.api(self.name)

    @property
    def folder(self) -> Folder:
        return self.clusters.folder(self.name)

    @property
    def daemon(self) -> int:
        return json.loads((self.folder.path / "daemon.json").read_text())["pid"]

    def namespace(self, name: str, labels: Mapping[str, str] | None = None) -> str:
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels or {})}})
        return name

    def until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        def holds() -> bool:
            try:
                return bool(condition())
            except Refusal:
                return False

        assert wait_for(holds, seconds)

    def run(self, namespace: str, document: Mapping[str, Any]) -> None:
        """Makes a pod or workload."""
        group = "/api/v1" if document["kind"] == "Pod" else "/apis/apps/v1"
        # The namespace's account for pods is made by a controller, a moment after the namespace.
        self.until(lambda: self.api.find(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
        self.api.create(f"{group}/namespaces/{namespace}/{document['kind'].lower()}s", document)

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        return self.api.items(f"/api/v1/namespaces/{namespace}/pods")

    def ready(self, namespace: str) -> list[dict[str, Any]]:
        return [one for one in self.pods(namespace) if pods.is_ready(one)]

    def allocatable(self, node: Node) -> dict[str, str]:
        return self.api.get(f"/api/v1/nodes/{node.name}")["status"]["allocatable"]


def workload(kind: str, name: str, image: str = "nothing", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": image}], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def pod(
    name: str, limits: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None, **spec: Any
) -> Any:
    container = {"name": "main", "image": "nothing", "resources": {"limits": dict(limits or {})}}
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def processes_of(folder: Folder) -> dict[int, str]:
    """Number and command line of all that runs for a cluster."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{folder.path}" in command and int(entry.name) != os.getpid():
            found[int(entry.name)] = command
    return found
