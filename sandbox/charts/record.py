"""Records a chart's values for :mod:`sandbox.charts`: ``python -m sandbox.charts.record CLONE...`` writes ``recorded.json``.

A clone is a git repository that has the chart's tag; what is kept are keys, defaults and the lines they stand on.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

RECORDED: Final = Path(__file__).with_name("recorded.json")

# Chart -> its repository, what was checked out, and where in it the chart is.
_CHARTS: Final = {
    "kuberay-operator": ("ray-project/kuberay", "v1.6.0", "helm-chart/kuberay-operator"),
    "nvidia-device-plugin": ("NVIDIA/k8s-device-plugin", "v0.20.0", "deployments/helm/nvidia-device-plugin"),
    "aws-efa-k8s-device-plugin": ("aws/eks-charts", "5239609", "stable/aws-efa-k8s-device-plugin"),
}


def record(clones: list[Path]) -> dict[str, Any]:
    """What is written: chart -> repository, tag, folder, version, appVersion, and each value's default and line."""
    found = {}
    for chart, (repository, tag, folder) in _CHARTS.items():
        clone = next(one for one in clones if repository.replace("/", "+") in str(one) or repository in str(one))
        about = yaml.safe_load(_read(clone, tag, f"{folder}/Chart.yaml"))
        text = _read(clone, tag, f"{folder}/values.yaml")
        defaults = yaml.safe_load(text)
        found[chart] = {
            "repository": repository,
            "tag": tag,
            "folder": folder,
            "version": str(about["version"]),
            "appVersion": str(about.get("appVersion", "")),
            "values": [
                {"key": key, "default": _at(defaults, key), "line": line} for key, line in _keys(yaml.compose(text), "")
            ],
        }
    return found


def _keys(node: yaml.Node | None, prefix: str) -> Iterator[tuple[str, int]]:
    """Paths of the leaves of a document, with their lines; an empty mapping and a list are leaves."""
    if isinstance(node, yaml.MappingNode) and node.value:
        for key, value in node.value:
            path = f"{prefix}{key.value}"
            if isinstance(value, yaml.MappingNode) and value.value:
                yield from _keys(value, f"{path}.")
            else:
                yield path, key.start_mark.line + 1


def _at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document[step]
    return document


def _read(clone: Path, tag: str, path: str) -> str:
    return subprocess.run(
        ["git", "-C", clone, "show", f"{tag}:{path}"], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(record([Path(one) for one in sys.argv[1:]]), indent=1) + "\n")
