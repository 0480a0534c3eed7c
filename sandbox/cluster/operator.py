"""KubeRay's operator as a process of this machine, which runs exactly while its pod does."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sandbox.cluster import pods, processes
from sandbox.cluster.layout import Folder
from sandbox.cluster.processes import Process
from sandbox.cluster.tools import Tools

_IMAGE: Final = "kuberay/operator"


class Operator:
    """The operator of one cluster.

    Args:
        tools: The programs.
        folder: The cluster's.
    """

    def __init__(self, tools: Tools, folder: Folder) -> None:
        self._tools = tools
        self._folder = folder
        self._process: Process | None = None
        self._pod = ""

    def follow(self, running: Sequence[Mapping[str, Any]]) -> None:
        """Starts it when a pod of its image is Ready, and ends it when that pod is not; another pod is another process.

        Args:
            running: All pods of the cluster.
        """
        ready = {pod["metadata"]["uid"]: pod for pod in running if _is_operator(pod) and pods.is_ready(pod)}
        if self._pod not in ready:
            self.stop()
        if self._process is None and ready:
            self._pod, pod = next(iter(ready.items()))
            self._process = processes.operator(self._tools, self._folder, _environment(pod))
        if self._process is not None:
            self._process.start()

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.stop()
        self._process, self._pod = None, ""


def _is_operator(pod: Mapping[str, Any]) -> bool:
    return any(_IMAGE in image for image in pods.images(pod))


def _environment(pod: Mapping[str, Any]) -> dict[str, str]:
    container = next(one for one in pod["spec"]["containers"] if _IMAGE in one["image"])
    return {one["name"]: one["value"] for one in container.get("env") or () if "value" in one}
