"""How a wrong configuration is told and ends a program: every fault with its path, the value found, the reason, and what to type.

No text ever holds a value that may be a secret: see ``shown``.
"""

import json
import re
import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pulumi

from components import PACKAGE

EXIT_CODE: Final = 32
"""The code by which a Python program tells Pulumi's language host that it has said why it failed."""

_PLAIN_SEGMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# Access tokens by their public prefixes (Hugging Face, GitHub, OpenAI, AWS key ids), wherever they stand in a value.
_TOKEN = re.compile(r"\b(hf_|gh[pousr]_|sk-|AKIA|ASIA)[A-Za-z0-9]")
_LONGEST: Final = 120
HIDDEN: Final = "[hidden]"


@dataclass(frozen=True)
class Hidden:
    """Stands for a value that must not be printed."""


class _Nothing:
    """Stands for a value that is not there."""


NOTHING: Final = _Nothing()


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    ``path`` is where, as ``pulumi config set --path`` spells it; ``why`` completes the sentence after the value and ends
    without a full stop; ``fix`` is a command, or a sentence, to type or do.
    """

    path: str
    why: str
    fix: str
    value: Any = NOTHING

    def __str__(self) -> str:
        found = "" if self.value is NOTHING else f" is {shown(self.value)}"
        return f"{self.path}{found}: {self.why}. {self.fix}"


class SettingsError(Exception):
    """The configuration of a stack has faults; ``faults`` holds all of them, and the message too."""

    def __init__(self, stack: str, faults: Sequence[Fault]) -> None:
        super().__init__(
            f"The configuration of stack {stack} has {_count(faults)}; nothing was made:\n{_lines(faults)}"
        )
        self.faults = tuple(faults)


class StackFaults(pulumi.RunError):
    """Everything that a component finds wrong with its arguments, or with what it found in the account, at once.

    A fault of the configuration is a `Fault`. One of arguments that only a program of one's own can give, since the settings
    refuse the configuration for it, is a sentence that starts with the argument.
    """

    def __init__(self, faults: Sequence[Fault | str]) -> None:
        super().__init__(f"The configuration of stack {pulumi.get_stack()} has {_count(faults)}:\n{_lines(faults)}")
        self.faults = tuple(map(str, faults))


@contextmanager
def faults_end_the_program() -> Generator[None]:
    """Ends the program where a component refuses what it is given, see `end_program`."""
    try:
        yield
    except StackFaults as error:
        end_program(error)


def end_program(error: SettingsError | StackFaults) -> NoReturn:
    """Tells an error, once, and ends the program with the code to which Pulumi adds no text of its own.

    Works in an apply too, where Pulumi would answer any exception, a RunError as well, with a second error. The engine
    finishes what it is about and begins nothing new.

    Raises:
        SystemExit: Always.
    """
    pulumi.log.error(str(error))
    raise SystemExit(EXIT_CODE) from None


def path(*parts: str | int, namespace: str = PACKAGE) -> str:
    """A configuration path such as ``ray-llm-eks:gpuNodes.capacity.kind`` or ``ray-llm-eks:tags["a/b"]``."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_SEGMENT.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return f"{namespace}:{text}"


def respelt(text: str) -> str:
    """What a component says about its arguments, in the names of the configuration: snake_case becomes camelCase."""
    return re.sub(r"(?<=[a-z0-9])_([a-z])", lambda match: match[1].upper(), text)


def looks_secret(text: str) -> bool:
    """Whether something in the text starts as access tokens of well-known services do."""
    return _TOKEN.search(text) is not None


def shown(value: Any) -> str:
    """The value as JSON, or a placeholder where it may be a secret or is too long to help."""
    if isinstance(value, Hidden):
        return HIDDEN
    text = json.dumps(value, ensure_ascii=False)
    if looks_secret(text):
        return HIDDEN
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def set_to(where: str, value: Any) -> str:
    """The command that sets a path. Text that looks like a number or a truth value needs ``--type`` to stay text."""
    if isinstance(value, list | dict):
        return f"Write {json.dumps(value)} at {where} in the stack file."
    if isinstance(value, bool):
        return _command("set", where, str(value).lower())
    if isinstance(value, float):
        return _command("set", where, str(value), "--type float")
    text = str(value)
    stays_text = not isinstance(value, str) or re.fullmatch(r"-?\d+|true|false", text) is None
    # A decimal such as 1.35 stays text by itself, but says so for people.
    flags = "" if stays_text and not re.fullmatch(r"\d+\.\d+", text) else "--type string"
    return _command("set", where, text, flags)


def remove(where: str) -> str:
    """The command that removes a path."""
    return _command("rm", where)


def _command(verb: str, where: str, value: str = "", flags: str = "") -> str:
    words = ["pulumi config", verb, "--path", flags, f"'{where}'", shlex.quote(value) if value else ""]
    return "Type: " + " ".join(word for word in words if word)


def _count(faults: Sequence[object]) -> str:
    return "1 fault" if len(faults) == 1 else f"{len(faults)} faults"


def _lines(faults: Sequence[object]) -> str:
    return "\n".join(f"  - {fault}" for fault in faults)
