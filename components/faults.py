"""The one exception by which components refuse arguments or what they found in the account."""

from collections.abc import Sequence

import pulumi


class StackFaults(pulumi.RunError):
    """Everything that is wrong with a stack, at once, each fault as a full sentence with the path it is about.

    It is a RunError, so that Pulumi prints the text without a traceback wherever it is raised, inside an apply too.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)
