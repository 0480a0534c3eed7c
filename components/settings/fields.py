"""How a setting is declared: its default, an example to type, and the rule that people read when it is wrong."""

from typing import Any, Final

from pydantic import Field

EXAMPLE_REGION: Final = "us-east-1"
"""The region of every example; what tells one to people puts the stack's own in its place."""

REQUIRED: Any = object()


def setting(default: Any, description: str, *, example: Any = None, must: str | None = None, **limits: Any) -> Any:
    """A field with what people need when it is wrong: ``example`` is a value to type, ``must`` the rule in words.

    The default ``REQUIRED`` means that the stack has to set it; a callable makes the default.
    """
    meta: dict[str, Any] = {"description": description, **limits}
    if default is not REQUIRED:
        meta["default_factory" if callable(default) else "default"] = default
    shown = example if example is not None or default is REQUIRED or callable(default) else default
    meta["examples"] = [] if shown is None else [shown]
    meta["json_schema_extra"] = {"must": must, "pattern": limits.get("pattern")} if must else None
    return Field(**meta)


def spelled(pattern: str, must: str) -> dict[str, str]:
    """The arguments of `setting` for text that has to match ``pattern`` as a whole, and what it ``must`` be, in words."""
    return {"pattern": f"^(?:{pattern})$", "must": must}


ZONE = spelled(r"[a-z]{2}(?:-[a-z]+)+-\d[a-z]", "be the name of an Availability Zone, such as us-east-1a")
QUANTITY = spelled(r"[1-9]\d{0,8}(?:Mi|Gi)", "be a memory quantity with its unit, such as 96Gi or 512Mi")
URL = spelled(r"(?:https|oci)://\S+", "be an https:// or oci:// URL")
EXACT = spelled(r"v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?", "be one exact version, such as 1.6.0: no range, no latest")
