"""The objects of the simulated clusters: one folder a cluster, one file an object, written before a call is answered."""

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

_CLUSTER_WIDE: Final = "-"


@dataclass(frozen=True, order=True)
class Key:
    """What tells one object from another: API group ("" for the core), kind, namespace ("" for none) and name."""

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Key":
        """The key of a document."""
        metadata = document["metadata"]
        group, slash, _ = str(document["apiVersion"]).rpartition("/")
        return cls(group if slash else "", document["kind"], metadata.get("namespace") or "", metadata["name"])

    @property
    def id(self) -> str:
        """Pulumi's id of the object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Store:
    """The objects of one cluster. Not for concurrent use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: Key) -> dict[str, Any] | None:
        """The object, or None."""
        path = self._path(key)
        return json.loads(path.read_text()) if path.exists() else None

    def put(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Writes an object, with a new resourceVersion and, where it has none, uid and creationTimestamp."""
        path = self._path(Key.of(document))
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {
            "uid": str(uuid.uuid4()),
            "creationTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **document["metadata"],
            "resourceVersion": str(self._next_version()),
        }
        written = {**document, "metadata": metadata}
        _write(path, json.dumps(written))
        return written

    def remove(self, key: Key) -> None:
        """Removes an object if it is there."""
        self._path(key).unlink(missing_ok=True)

    def all(self) -> Iterator[dict[str, Any]]:
        """Every object, in the order of the keys."""
        for path in sorted(self._folder.glob("*/*/*.json")):
            yield json.loads(path.read_text())

    def clear(self) -> None:
        """Forgets the cluster."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, key: Key) -> Path:
        group = f"{key.kind}.{key.group}" if key.group else key.kind
        return self._folder / group / (key.namespace or _CLUSTER_WIDE) / f"{key.name}.json"

    def _next_version(self) -> int:
        path = self._folder / "resource-version"
        version = int(path.read_text()) + 1 if path.exists() else 1
        _write(path, str(version))
        return version


def _write(path: Path, text: str) -> None:
    # Whole or not at all, for whoever ends this process meanwhile; readable for its owner only, Secrets being among them.
    file, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(file, "w") as stream:
        stream.write(text)
    os.replace(name, path)
