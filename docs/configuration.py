"""Writes docs/configuration.md from the settings themselves: ``python -m docs.configuration``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from components.settings.models import Settings

PAGE = Path(__file__).with_name("configuration.md")
_NO_SECTIONS = {"region", "stack"}
_HEAD = """\
# Configuration

Written by `python -m docs.configuration` from `components/settings/models.py`; a test holds both together.

Keys stand in `Pulumi.<stack>.yaml` under `ray-llm-eks:`, and are set by
`pulumi config set --path 'ray-llm-eks:gpuNodes.count' 3`. A key that is not in this table is refused. `aws:region` must be set.
The blocks `gpuNodes.hardware` and `model.shape` are for types and models that the built-in tables do not know; what they require is
required inside the block only.

| key | default | meaning |
|---|---|---|
"""


def page() -> str:
    """The whole page, a row for each setting."""
    return _HEAD + "".join(f"| `{key}` | {default} | {meaning} |\n" for key, default, meaning in _rows(Settings, ""))


def _rows(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        if not prefix and name in _NO_SECTIONS:
            continue
        key = f"{prefix}{field.alias or name}"
        inner = _model(field.annotation)
        if inner is None:
            yield key, _default(field), field.description or ""
        else:
            yield from _rows(inner, f"{key}.")


def _model(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *get_args(annotation)]
    return next((one for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        example = f", such as {_shown(field.examples[0])}" if field.examples else ""
        return f"required{example}"
    value = field.get_default(call_default_factory=True, validated_data={})
    return "" if value is None or value in ([], {}) else _shown(value)


def _shown(value: object) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    PAGE.write_text(page())
