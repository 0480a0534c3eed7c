"""What the daemon asks about pods."""

from collections.abc import Mapping
from typing import Any


def images(pod: Mapping[str, Any]) -> list[str]:
    """The images of its containers."""
    return [one["image"] for one in pod["spec"]["containers"]]


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether it runs and is Ready."""
    conditions = pod.get("status", {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def path(pod: Mapping[str, Any], suffix: str = "") -> str:
    """Its path in the API."""
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}{suffix}"


def label(thing: Mapping[str, Any], key: str) -> str:
    """One of its labels; empty where it has none of that name."""
    return (thing["metadata"].get("labels") or {}).get(key, "")
