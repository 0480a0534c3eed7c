"""What an account may run and what a zone has free, where a test sets it: without it there is no limit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# EC2 user guide, "Amazon EC2 instance type quotas": beginnings of a type's family -> its quota code.
_ON_DEMAND: Final = {"g": "L-DB2E81BA", "vt": "L-DB2E81BA", "p": "L-417A185B"}
_SPOT: Final = {"g": "L-3819A6DF", "vt": "L-3819A6DF"}
_STANDARD: Final = {one: "L-1216C47A" for one in "acdhimrtz"}
# They begin like a family of those quotas and have quotas of their own.
_APART: Final = ("dl", "hpc", "inf", "mac", "trn")


@dataclass(frozen=True)
class Limits:
    """Limits of one region of an account.

    Attributes:
        vcpus: Quota code -> vCPU that may run at once.
        capacity: (zone, instance type) -> instances that the zone can start beside those in reservations.
    """

    vcpus: Mapping[str, int] = field(default_factory=dict)
    capacity: Mapping[tuple[str, str], int] = field(default_factory=dict)


def quota_of(instance_type: str, market: str) -> str:
    """The code of the quota that an instance counts against; empty where the sandbox knows none.

    Args:
        instance_type: EC2's type, such as ``g6.8xlarge``.
        market: ``On-Demand`` or ``Spot``.
    """
    codes = {**_STANDARD, **_ON_DEMAND} if market == "On-Demand" else _SPOT
    letters = instance_type[: next((i for i, one in enumerate(instance_type) if not one.isalpha()), 0)]
    return "" if letters in _APART else codes.get(letters) or codes.get(letters[:1], "")
