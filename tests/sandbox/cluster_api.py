"""An API server in memory, for what only needs objects to be kept: no schema, no controller, no admission."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.cluster.api import Api, Refusal


class MemoryApi(Api):
    """Objects by path. ``find`` and ``items`` give copies, as a server does."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.made: list[tuple[str, Mapping[str, Any]]] = []

    def put(self, path: str, **members: Any) -> dict[str, Any]:
        """Keeps an object; its name and namespace are read off its path."""
        parts = path.split("/")
        metadata = {"name": parts[-1], "uid": path, "creationTimestamp": f"{len(self.objects):04}"}
        if "namespaces" in parts[:-2]:
            metadata["namespace"] = parts[parts.index("namespaces") + 1]
        self.objects[path] = {**members, "metadata": {**metadata, **members.get("metadata", {})}}
        return self.objects[path]

    def get(self, path: str, **query: str) -> dict[str, Any]:
        if path not in self.objects:
            raise Refusal(404, f"{path} not found")
        return copy.deepcopy(self.objects[path])

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        root, _, kind = path.rpartition("/")
        found = [
            one
            for place, one in self.objects.items()
            if place.split("/")[-2] == kind and place.startswith(root) and _matches(one, query)
        ]
        return copy.deepcopy(found)

    def create(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        self.made.append((path, document))
        return dict(document)

    def patch(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        place = path.removesuffix("/status")
        if place not in self.objects:
            raise Refusal(404, f"{place} not found")
        self.objects[place] = _merged(self.objects[place], change)
        return self.objects[place]

    def change(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        for one in operations:
            *way, last = one["path"].strip("/").split("/")
            target: Any = self.objects[path]
            for step in way:
                target = target[int(step) if isinstance(target, list) else step]
            target[last] = one["value"]
        return self.objects[path]

    def delete(self, path: str, **options: Any) -> None:
        self.objects.pop(path, None)


def _matches(one: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    labels = one["metadata"].get("labels") or {}
    wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
    field, _, value = query.get("fieldSelector", "").partition("=")
    target: Any = one
    for step in filter(None, field.split(".")):
        target = target.get(step, {})
    return all(labels.get(key) == text for key, text in wanted.items()) and (not field or target == value)


def _merged(target: Any, change: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(target) if isinstance(target, Mapping) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            found[key] = _merged(found.get(key), value)
        else:
            found[key] = value
    return found
