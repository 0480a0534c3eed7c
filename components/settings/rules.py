"""What a cross rule is: a function over settings, and the part of the configuration it reads."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from components.faults import Fault
from components.settings.models import Settings


@dataclass(frozen=True)
class Rule:
    """A check that needs more than one field.

    ``reads`` are paths such as ``gpuNodes`` or ``gpuNodes.count``, and ``region``.
    """

    reads: tuple[str, ...]
    check: Callable[[Settings], Iterable[Fault]]

    def applies(self, unsound: Collection[str]) -> bool:
        """Whether nothing it reads is among these paths, so that a wrong value causes one fault and hides no other."""
        return not any(
            f"{read}.".startswith(f"{bad}.") or f"{bad}.".startswith(f"{read}.")
            for read in self.reads
            for bad in unsound
        )
