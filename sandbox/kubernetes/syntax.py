"""How Kubernetes spells names, labels, quantities and the like (k8s.io/apimachinery pkg/util/validation, pkg/api/resource)."""

import re
from decimal import Decimal
from typing import Any, Final

_DNS_1123_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_1123_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+)?")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_$-]+")
_SUFFIXES: Final = {
    **{"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10) ** 3},
    **{letter: Decimal(10) ** (3 * power) for power, letter in enumerate("MGTPE", start=2)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


def key(name: str) -> str:
    """A map key as a step of a path: ``limits``, but ``["nvidia.com/gpu"]``."""
    return name if _PLAIN_KEY.fullmatch(name) else f'["{name}"]'


def shown(value: Any) -> str:
    """A value as an error quotes it."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def label_fault(name: str) -> str:
    """Why ``name`` is no DNS-1123 label (namespaces, containers, volumes), or ""."""
    if len(name) > 63:
        return f'"{name}" has {len(name)} characters, and 63 are the most'
    if not _DNS_1123_LABEL.fullmatch(name):
        return f'"{name}" must be lower-case letters, digits and "-", with a letter or digit at both ends'
    return ""


def subdomain_fault(name: str) -> str:
    """Why ``name`` is no DNS-1123 subdomain (the name of most objects), or ""."""
    if len(name) > 253:
        return f'"{name}" has {len(name)} characters, and 253 are the most'
    if not _DNS_1123_SUBDOMAIN.fullmatch(name):
        return f'"{name}" must be lower-case letters, digits, "-" and ".", with a letter or digit at both ends'
    return ""


def dns_1035_fault(name: str) -> str:
    """Why ``name`` is no DNS-1035 label (services, KubeRay's objects), or ""."""
    if len(name) > 63:
        return f'"{name}" has {len(name)} characters, and 63 are the most'
    if not _DNS_1035_LABEL.fullmatch(name):
        return f'"{name}" must start with a lower-case letter and have only lower-case letters, digits and "-"'
    return ""


def qualified_name_fault(name: str) -> str:
    """Why ``name`` is no key of a label, annotation, taint or extended resource (``[prefix/]name``), or ""."""
    prefix, slash, local = name.rpartition("/")
    if slash and (fault := subdomain_fault(prefix)):
        return f'the prefix of "{name}": {fault}' if prefix else f'"{name}" has an empty prefix'
    if len(local) > 63:
        return f'"{name}" has {len(local)} characters in its name, and 63 are the most'
    if not _QUALIFIED_NAME.fullmatch(local):
        return f'"{name}" must be letters, digits, "-", "_" and ".", with a letter or digit at both ends'
    return ""


def label_value_fault(value: str) -> str:
    """Why ``value`` is no label value, or ""."""
    if len(value) > 63:
        return f'"{value}" has {len(value)} characters, and a label value has at most 63'
    if not _LABEL_VALUE.fullmatch(value):
        return f'"{value}" must be letters, digits, "-", "_" and ".", with a letter or digit at both ends'
    return ""


def quantity(text: Any) -> Decimal | None:
    """The amount that a resource quantity stands for (bytes, cores, devices); None when it is not one."""
    if isinstance(text, bool):
        return None
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        return None
    number, suffix = match.groups()
    if not suffix:
        return Decimal(number)
    return Decimal(number) * (_SUFFIXES[suffix] if suffix in _SUFFIXES else Decimal(10) ** int(suffix[1:]))
