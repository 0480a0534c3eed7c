"""Judges a ``kv_transfer_config``: does vLLM's NixlConnector take the LIBFABRIC backend, and nothing else?

vLLM reads ``kv_connector_extra_config.backends`` and takes ``["UCX"]`` without it; environment variables do nothing
(vllm-project/vllm#41814). The name counts by case, and a list that also holds UCX leaves the choice open.
"""

import json
from typing import Final, cast

from .report import Finding, unknown
from .values import UNKNOWN, at, mapping, sequence, shown

NIXL: Final = "NixlConnector"
BACKENDS: Final = ("LIBFABRIC",)
_MULTI: Final = "MultiConnector"
_MODULE: Final = "kv_connector_module_path"
_VLLM: Final = "vllm."
_EXTRA: Final = "kv_connector_extra_config"
_WRITE: Final = f'Write kv_transfer_config["{_EXTRA}"] = {{"backends": ["LIBFABRIC"]}}.'
_TCP: Final = "NIXL then uses UCX, and the KV cache moves at TCP speed with no error."


def judge(config: object, path: str, elsewhere: str = "") -> list[Finding]:
    """Faults of one kv_transfer_config.

    Args:
        config: the value of ``kv_transfer_config``; a JSON text is read too.
        path: where it stands.
        elsewhere: where, outside it, a ``backends`` key stands that vLLM never reads; for the message.
    """
    if config is UNKNOWN:
        return [unknown(path, "The backend of NIXL")]
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            config = None
    if not mapping(config):
        return [
            Finding(
                path,
                "not a mapping with kv_connector",
                "No KV transfer over EFA can be set up from it.",
                f'Write {{"kv_connector": "{NIXL}", "{_EXTRA}": {{"backends": ["LIBFABRIC"]}}}}.',
            )
        ]
    connector = at(config, "kv_connector")
    if connector is UNKNOWN:
        return [unknown(f"{path}.kv_connector", "Which connector moves the KV cache")]
    if connector == _MULTI:
        return _judge_children(config, path)
    if connector != NIXL:
        return [_other_connector(connector, f"{path}.kv_connector")]
    module = at(config, _MODULE)
    if module is not None and not (isinstance(module, str) and module.startswith(_VLLM)):
        return [_own_module(module, f"{path}.{_MODULE}")]
    wrong_level = f"{path}.backends" if "backends" in mapping(config) else elsewhere
    return _judge_backends(at(config, _EXTRA), f"{path}.{_EXTRA}", wrong_level)


def _judge_children(config: object, path: str) -> list[Finding]:
    nixl, findings = _children(config, path)
    if nixl or findings:
        return findings
    return [
        Finding(
            f"{path}.{_EXTRA}.connectors",
            "without a NixlConnector",
            "The pack knows no other connector that moves a KV cache over EFA.",
            "Add a NixlConnector child with LIBFABRIC, or check by hand what the children use.",
            unverified=True,
        )
    ]


def _children(config: object, path: str) -> tuple[bool, list[Finding]]:
    """Whether NIXL is among the connectors of a MultiConnector, however deep, and the faults of those that are NIXL."""
    children_path = f"{path}.{_EXTRA}.connectors"
    children = at(config, _EXTRA, "connectors")
    if children is UNKNOWN or at(config, _EXTRA) is UNKNOWN:
        return False, [unknown(children_path, "Which connectors move the KV cache")]
    stray = f"{path}.{_EXTRA}.backends" if at(config, _EXTRA, "backends") is not None else ""
    findings: list[Finding] = []
    nixl = False
    for index, child in enumerate(sequence(children)):
        name, child_path = at(child, "kv_connector"), f"{children_path}[{index}]"
        if name is UNKNOWN or child is UNKNOWN:
            findings.append(unknown(f"{child_path}.kv_connector", "Which connector this is"))
        elif name == _MULTI:
            inner, faults = _children(child, child_path)
            nixl = nixl or inner
            findings += faults
        elif name == NIXL:
            nixl = True
            findings += judge(child, child_path, stray)
    return nixl, findings


def _other_connector(connector: object, path: str) -> Finding:
    if connector is None:
        return Finding(path, "missing", "vLLM then moves no KV cache at all.", f'Write "kv_connector": "{NIXL}".')
    return Finding(
        path,
        shown(connector),
        "Only NixlConnector is known to move the KV cache over EFA; what this one uses cannot be verified here.",
        f'Write "kv_connector": "{NIXL}", or check by hand what it uses.',
        unverified=True,
    )


def _own_module(module: object, path: str) -> Finding:
    return Finding(
        path,
        shown(module),
        f"vLLM then loads a {NIXL} of that module, and which backend that one takes cannot be verified here.",
        "Leave it out to take vLLM's own, or check by hand what the module does.",
        unverified=True,
    )


def _judge_backends(extra: object, path: str, wrong_level: str) -> list[Finding]:
    backends_path = f"{path}.backends"
    backends = at(extra, "backends")
    if backends is UNKNOWN:
        return [unknown(backends_path, "The backend of NIXL")]
    if backends is None and wrong_level:
        return [
            Finding(
                wrong_level,
                "at a level vLLM never reads",
                f"It only looks at {backends_path}. {_TCP}",
                f'Move it there: "{_EXTRA}": {{"backends": ["LIBFABRIC"]}}.',
            )
        ]
    if backends is None:
        return [Finding(backends_path, "missing", f'vLLM\'s default is ["UCX"]. {_TCP}', _WRITE)]
    if isinstance(backends, str):
        return [
            Finding(
                backends_path, f"the string {shown(backends)}", "vLLM expects a list of names, not a string.", _WRITE
            )
        ]
    names = sequence(backends)
    if any(name is UNKNOWN for name in names):
        return [unknown(backends_path, "The backend of NIXL")]
    if tuple(names) == BACKENDS:
        return []
    return [Finding(backends_path, shown(backends), _why(names), _WRITE)]


def _why(names: object) -> str:
    given = [name for name in sequence(names) if isinstance(name, str)]
    if not given:
        return f"It names no backend. {_TCP}"
    if "LIBFABRIC" in given:
        return "With more than one backend it is open which one NIXL takes; LIBFABRIC must stand alone."
    if any(name.upper() == "LIBFABRIC" for name in given):
        return "Backend names count by case: only LIBFABRIC, in capitals, is NIXL's EFA backend."
    return "Only LIBFABRIC runs over EFA. With another backend the KV cache moves at TCP speed with no error."


def in_text(text: str) -> list[object]:
    """The JSON objects inside a text (a command line, say) that name a ``kv_connector``, outermost first.

    Inside double quotes a shell takes JSON with each quote escaped; that is read where nothing else is found.
    """
    return _json_in(text) or _json_in(text.replace('\\"', '"'))


def _json_in(text: str) -> list[object]:
    found: list[object] = []
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if '"kv_connector"' in text[start:end]:
                found.append(cast("object", value))
        start = text.find("{", end)
    return found
