"""The configuration of a stack, typed and checked as a whole before anything is made.

``load`` is the only reader of ``pulumi.Config`` in this project; ``parse`` is the same without Pulumi. All faults are told
at once: each section is held against its model, and each cross rule runs where all that it reads is sound.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import pulumi

from components import PACKAGE
from components.faults import Fault, SettingsError, end_program, path
from components.settings import model_rules, network_rules, node_rules, service_rules
from components.settings.fields import EXAMPLE_REGION
from components.settings.models import Settings
from components.settings.notes import notes
from components.settings.reading import SECTIONS, TOKEN_FIELD, read_section, unknown_sections

__all__ = ["Fault", "Settings", "SettingsError", "load", "notes", "parse"]

RULES: Final = (*network_rules.RULES, *node_rules.RULES, *model_rules.RULES, *service_rules.RULES)

_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


def load() -> Settings:
    """The configuration of the current stack.

    Where it has faults, they are logged as one error and the program ends with a code that makes Pulumi add nothing.

    Raises:
        SystemExit: The configuration has faults.
    """
    config = pulumi.Config(PACKAGE)
    names = [*SECTIONS, *_other_names()]
    raw = {name: _plain(text) for name in names if (text := config.get(name)) is not None}
    secret = {name for name in raw if pulumi.runtime.config.is_config_secret(config.full_key(name))}
    try:
        aws = pulumi.Config("aws")
        default_tags = _plain(aws.get("defaultTags") or "{}")
        return parse(raw, aws.get("region"), pulumi.get_stack(), secret, default_tags)
    except SettingsError as error:
        end_program(error)


def parse(
    raw: Mapping[str, Any],
    region: str | None,
    stack: str,
    secret_sections: Collection[str] = frozenset(),
    default_tags: Any = None,
) -> Settings:
    """The settings these sections make.

    Args:
        raw: Section name -> plain JSON value, as in the stack file below ``ray-llm-eks:``.
        region: The value of ``aws:region``.
        stack: Name of the stack.
        secret_sections: Sections with a secret somewhere in them.
        default_tags: The value of ``aws:defaultTags``, which the provider adds to every resource.

    Raises:
        SettingsError: Something is wrong; it holds every fault.
    """
    faults = [*_region_faults(region), *network_rules.default_tags(default_tags), *unknown_sections([*raw])]
    known_region = None if any(fault.path == "aws:region" for fault in faults) else region
    unsound: set[str] = set() if known_region else {"region"}
    read: dict[str, Any] = {}
    for section, attribute in SECTIONS.items():
        reading = read_section(
            section, raw.get(section, {}), region=known_region or EXAMPLE_REGION, secret=section in secret_sections
        )
        faults += reading.faults
        unsound |= reading.unsound
        if reading.value is not None:
            read[attribute] = reading.value
    settings = Settings.model_construct(region=known_region or EXAMPLE_REGION, stack=stack, **read)
    token = settings.model.hugging_face_token if "model" in read else None
    if token is not None and "model" not in secret_sections:
        faults.append(_token_in_plain_text())
    # A model section with faults may hold the token under a wrong name: that fault is told already.
    keeps_token = token is not None or any(fault.path.startswith(path("model")) for fault in faults)
    for section in SECTIONS:
        if section in secret_sections and not (section == "model" and keeps_token):
            faults.append(_secret_where_none_belongs(section))
            unsound.add(section)
    faults += [fault for rule in RULES if rule.applies(unsound) for fault in rule.check(settings)]
    if faults:
        raise SettingsError(stack, faults)
    return settings


def _region_faults(region: str | None) -> list[Fault]:
    fix = f"Type: pulumi config set aws:region {EXAMPLE_REGION}"
    if not region:
        return [Fault("aws:region", "it must be set: zones, endpoints and the image's registry follow from it", fix)]
    if _REGION.fullmatch(region) is None:
        return [Fault("aws:region", "it is not the name of an AWS region", fix, region)]
    return []


def _secret_where_none_belongs(section: str) -> Fault:
    return Fault(
        path(section),
        "it holds a secret, and the program would write it into resources as plain text",
        f"Set it again without --secret; only {path('model', TOKEN_FIELD)} is kept secret.",
    )


def _token_in_plain_text() -> Fault:
    token = path("model", TOKEN_FIELD)
    fix = f"Revoke it, then type: pulumi config set --secret --path '{token}'"
    return Fault(token, "it stands in the stack file as plain text, for everybody who reads it", fix)


def _other_names() -> list[str]:
    prefix = f"{PACKAGE}:"
    names = (key.removeprefix(prefix) for key in pulumi.runtime.config.CONFIG.get() if key.startswith(prefix))
    return [name for name in names if name not in SECTIONS]


def _plain(text: str) -> Any:
    """The section as Pulumi hands it over, JSON text, or the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text
