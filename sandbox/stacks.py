"""What stands in a program's project and stack files."""

from pathlib import Path
from typing import Any

import yaml


class UsageError(Exception):
    """What was asked cannot be run: no such program, stack or configuration. The text says what to type instead."""


def project_name(program: Path) -> str:
    """The ``name`` of a program's Pulumi.yaml.

    Raises:
        UsageError: there is no such file, or it cannot be read.
    """
    path = program / "Pulumi.yaml"
    if not path.is_file():
        raise UsageError(f"--program {program}: there is no Pulumi.yaml in it; name the folder of a Pulumi program")
    document = _mapping(path)
    name = document.get("name")
    if not isinstance(name, str):
        raise UsageError(f"{path}: it has no `name`; give the project one")
    return name


def stack_config(program: Path, stack: str) -> tuple[dict[str, Any], list[str]]:
    """The stack file's configuration without its secrets, and the paths at which these stand.

    Raises:
        UsageError: there is no such stack file where the program has others, or it cannot be read.
    """
    path = program / f"Pulumi.{stack}.yaml"
    if not path.is_file():
        known = sorted(one.name.removeprefix("Pulumi.").removesuffix(".yaml") for one in program.glob("Pulumi.*.yaml"))
        if known:
            raise UsageError(
                f"--stack {stack}: there is no {path.name}; the stacks of this program are {', '.join(known)}"
            )
        return {}, []
    secrets: list[str] = []
    config = _mapping(path).get("config") or {}
    return _without_secrets(config, "", secrets), secrets


def _without_secrets(value: Any, path: str, secrets: list[str]) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, member in value.items():
            at = f"{path}.{key}" if path else str(key)
            if isinstance(member, dict) and set(member) == {"secure"}:
                secrets.append(at)
            else:
                kept[key] = _without_secrets(member, at, secrets)
        return kept
    if isinstance(value, list):
        return [_without_secrets(member, f"{path}[{index}]", secrets) for index, member in enumerate(value)]
    return value


def _mapping(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text())
    except yaml.YAMLError as fault:
        raise UsageError(f"{path}: it is not YAML: {' '.join(str(fault).split())}") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: it is not a mapping of keys to values")
    return document
