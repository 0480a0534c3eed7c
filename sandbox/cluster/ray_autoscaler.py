"""What Ray's autoscaler does to a RayCluster. It is a container of the head pod, and no container runs here.

Read in ray 2.58.0, ``autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py`` (the calls: ``replicas`` of a
worker group is replaced, never above ``maxReplicas``; a worker goes by its name in ``scaleStrategy.workersToDelete``, which is
emptied before anything else once it is gone) and ``autoscaler/v2/scheduler.py`` (what is idle, and for how long). Staged: which
group gets a node that fits several is the first in the list, and the calls are an administrator's, not the head's account's.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sandbox.cluster import pods
from sandbox.cluster.api import Api
from sandbox.cluster.serve_config import Deployment, Resources, group_resources, place, take

# What autoscaler/_private/kuberay/autoscaling_config.py takes where nothing is said.
_IDLE_SECONDS: Final = 60


class Autoscaler:
    """The autoscalers of all Ray clusters that have one.

    Args:
        clock: Seconds, for what is idle.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._idle_since: dict[str, dict[str, float]] = {}

    def step(
        self,
        api: Api,
        cluster: Mapping[str, Any],
        workers: Sequence[Mapping[str, Any]],
        wanted: Sequence[Deployment],
    ) -> None:
        """Looks once, and makes the changes of one look.

        Args:
            api: The cluster's API server.
            cluster: The RayCluster.
            workers: Its worker pods, those on their way out left out.
            wanted: What Serve wants to run.

        Raises:
            Refusal: The API server refuses.
        """
        groups: list[Mapping[str, Any]] = cluster["spec"].get("workerGroupSpecs") or []
        operations, leaving = _emptied(groups, workers)
        if not leaving:
            operations += self._scaled(cluster, groups, workers, wanted)
        if operations:
            metadata = cluster["metadata"]
            path = f"/apis/ray.io/v1/namespaces/{metadata['namespace']}/rayclusters/{metadata['name']}"
            api.change(path, operations)

    def _scaled(
        self,
        cluster: Mapping[str, Any],
        groups: Sequence[Mapping[str, Any]],
        workers: Sequence[Mapping[str, Any]],
        wanted: Sequence[Deployment],
    ) -> list[dict[str, Any]]:
        members = [
            [one for one in workers if pods.label(one, "ray.io/group") == group["groupName"]] for group in groups
        ]
        # A pod that is asked for and not made yet counts as one: it is on its way.
        counts = [max(len(found), group.get("replicas") or 0) for group, found in zip(groups, members, strict=True)]
        nodes: list[Resources] = [group_resources(cluster["spec"]["headGroupSpec"])]
        owners: list[Mapping[str, Any] | None] = [None]
        for group, found, count in zip(groups, members, counts, strict=True):
            nodes += [group_resources(group)] * count
            owners += [*found, *[None] * (count - len(found))]
        taken, homeless = place(wanted, nodes)
        launched = _launched(groups, counts, [bundle for bundles in homeless.values() for bundle in bundles])
        idle = {
            owner["metadata"]["uid"]
            for owner, there in zip(owners, taken, strict=True)
            if owner is not None and not there and pods.is_ready(owner)
        }
        now, known = self._clock(), self._idle_since.get(cluster["metadata"]["uid"], {})
        since = {uid: known.get(uid, now) for uid in idle}
        self._idle_since[cluster["metadata"]["uid"]] = since
        operations: list[dict[str, Any]] = []
        for index, group in enumerate(groups):
            target = counts[index] + launched[index]
            seconds = _idle_seconds(cluster, group)
            overdue = [
                one["metadata"]["name"]
                for one in members[index]
                if now - since.get(one["metadata"]["uid"], now) > seconds
            ]
            gone = overdue[: max(target - (group.get("minReplicas") or 0), 0)]
            if target - len(gone) != (group.get("replicas") or 0):
                operations.append(_replaced(index, "replicas", target - len(gone)))
            if gone:
                operations.append(_replaced(index, "scaleStrategy", {"workersToDelete": gone}))
        return operations


def _launched(groups: Sequence[Mapping[str, Any]], counts: Sequence[int], homeless: Sequence[Resources]) -> list[int]:
    """How many nodes of each group to add, up to its bounds."""
    added = [max((group.get("minReplicas") or 0) - count, 0) for group, count in zip(groups, counts, strict=True)]
    fresh = [dict(group_resources(group)) for group, number in zip(groups, added, strict=True) for _ in range(number)]
    for bundle in homeless:
        if any(take(node, bundle) for node in fresh):
            continue
        for index, group in enumerate(groups):
            node = group_resources(group)
            most = group.get("maxReplicas")
            if (most is None or counts[index] + added[index] < most) and take(node, bundle):
                added[index] += 1
                fresh.append(node)
                break
    return added


def _emptied(
    groups: Sequence[Mapping[str, Any]], workers: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], bool]:
    """Operations that empty the lists of workers that are gone, and whether any worker is still on its way out."""
    names = {one["metadata"]["name"] for one in workers}
    operations: list[dict[str, Any]] = []
    leaving = False
    for index, group in enumerate(groups):
        listed = (group.get("scaleStrategy") or {}).get("workersToDelete") or []
        if names & set(listed):
            leaving = True
        elif listed:
            operations.append(_replaced(index, "scaleStrategy", {"workersToDelete": []}))
    return operations, leaving


def _idle_seconds(cluster: Mapping[str, Any], group: Mapping[str, Any]) -> float:
    options = cluster["spec"].get("autoscalerOptions") or {}
    for written in (group.get("idleTimeoutSeconds"), options.get("idleTimeoutSeconds")):
        if written is not None:
            return written
    return _IDLE_SECONDS


def _replaced(index: int, field: str, value: Any) -> dict[str, Any]:
    # "add" replaces a member that is there (RFC 6902) and serves one that is not.
    return {"op": "add", "path": f"/spec/workerGroupSpecs/{index}/{field}", "value": value}
