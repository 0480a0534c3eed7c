"""One way to write a violation: which resource, which field, what was found, why that fails on EFA, what to write."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Finding:
    """One fault, or one thing that could not be checked.

    ``path`` is the field, from the resource's own root; ``found`` what stands there, in words that hold no secret;
    ``why`` a sentence on what goes wrong; ``fix`` a sentence on what to write. ``unverified`` marks a finding that is no
    proven fault: the value cannot be seen.
    """

    path: str
    found: str
    why: str
    fix: str
    unverified: bool = False

    def message(self, subject: str) -> str:
        """The text for people, led by the resource it speaks of."""
        return f"{subject}: {self.path} is {self.found}. {self.why} {self.fix}"

    def under(self, prefix: str) -> "Finding":
        """The same finding with its path seen from further up."""
        return replace(self, path=f"{prefix}{self.path}")


def unknown(path: str, question: str) -> Finding:
    """The finding for a value that decides and is not known: ``question`` says what cannot be told, as a noun clause."""
    return Finding(
        path=path,
        found="not known yet",
        why=f"{question} cannot be checked before the deployment.",
        fix="Make it a plain value of the program, not an Output of another resource.",
        unverified=True,
    )


def subject(kind: str, name: str, part: str = "") -> str:
    """How a message names a resource: ``RayService 'ray-llm', worker group 'decode'``."""
    return f"{kind} '{name}'" + (f", {part}" if part else "")


def listed(items: Sequence[str]) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]
