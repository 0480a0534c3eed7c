"""The repository's own stack files as raw sections, changed here and there, and what the settings say about them."""

import copy
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components.settings import Settings, SettingsError, parse

ROOT = Path(__file__).parents[2]
REMOVED = object()


@cache
def _stack(stack: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]


def region(stack: str = "dev") -> str:
    return _stack(stack)["aws:region"]


def raw(stack: str = "dev", /, **changes: Any) -> dict[str, Any]:
    """The sections of a stack file. A change is ``section__key__key=value``, or REMOVED."""
    prefix = "ray-llm-eks:"
    config = copy.deepcopy(_stack(stack))
    sections = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    for where, value in changes.items():
        *parents, last = where.split("__")
        node = sections
        for parent in parents:
            node = node.setdefault(parent, {})
        if value is REMOVED:
            del node[last]
        else:
            node[last] = value
    return sections


def settings(stack: str = "dev", /, **changes: Any) -> Settings:
    return parse(raw(stack, **changes), region(stack), stack)


def faults_of(
    sections: Mapping[str, Any], aws_region: str | None = "us-east-1", secret_sections: Collection[str] = frozenset()
) -> list[str]:
    """The text of every fault, in the order of the message."""
    try:
        parse(sections, aws_region, "dev", secret_sections)
    except SettingsError as error:
        return [str(fault) for fault in error.faults]
    return []


def faults(stack: str = "dev", /, **changes: Any) -> list[str]:
    return faults_of(raw(stack, **changes), region(stack))
