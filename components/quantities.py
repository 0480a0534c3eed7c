"""Kubernetes quantities and versions as numbers, as far as this project writes them."""

import re

_MEMORY = re.compile(r"(\d+)(Mi|Gi)")
_CPU = re.compile(r"(\d+)(m?)")


def mebibytes(quantity: str) -> int:
    """The MiB of a memory quantity in Mi or Gi.

    Raises:
        ValueError: It is written another way.
    """
    match = _MEMORY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"not a memory quantity in Mi or Gi: {quantity}")
    return int(match[1]) * (1024 if match[2] == "Gi" else 1)


def millicpus(quantity: str) -> int:
    """The thousandths of a CPU of a CPU quantity such as ``2`` or ``500m``.

    Raises:
        ValueError: It is written another way.
    """
    match = _CPU.fullmatch(quantity)
    if match is None:
        raise ValueError(f"not a CPU quantity: {quantity}")
    return int(match[1]) * (1 if match[2] else 1000)


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison: ``v1.6.0-rc.1`` is ``(1, 6, 0)``."""
    return tuple(int(number) for number in re.findall(r"\d+", re.split(r"[-+]", version.removeprefix("v"))[0]))
