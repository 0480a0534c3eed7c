"""``iam.getPolicyDocument``: the JSON that the provider renders (internal/service/iam/policy_document_data_source.go)."""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.standin import StandInError

_VERSION = "2012-10-17"


def answer(args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the function's whole result.

    Raises:
        StandInError: Two statements share a sid, or a source is no JSON.
    """
    version = args.get("version") or _VERSION
    own = [_statement(one, version) for one in args.get("statements") or []]
    sources = [args["sourceJson"]] if args.get("sourceJson") else list(args.get("sourcePolicyDocuments") or [])
    overrides = [args["overrideJson"]] if args.get("overrideJson") else list(args.get("overridePolicyDocuments") or [])
    statements = _without_clashes([one for text in sources for one in _statements_of(text)])
    statements = _overridden(statements, _without_clashes(own))
    for text in overrides:
        statements = _overridden(statements, _statements_of(text))
    document: dict[str, Any] = {"Version": version}
    if args.get("policyId"):
        document["Id"] = args["policyId"]
    document["Statement"] = statements
    text = _as_go_writes(json.dumps(document, indent=2, ensure_ascii=False))
    return {
        **args,
        "version": version,
        "json": text,
        "minifiedJson": _as_go_writes(json.dumps(document, separators=(",", ":"), ensure_ascii=False)),
        "id": str(zlib.crc32(text.encode())),
    }


def _statement(given: Mapping[str, Any], version: str) -> dict[str, Any]:
    rendered: dict[str, Any] = {}
    if given.get("sid"):
        rendered["Sid"] = given["sid"]
    rendered["Effect"] = given.get("effect") or "Allow"
    for key, name in (
        ("actions", "Action"),
        ("notActions", "NotAction"),
        ("resources", "Resource"),
        ("notResources", "NotResource"),
    ):
        if given.get(key):
            rendered[name] = _one_or_many(given[key], version)
    for key, name in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        if given.get(key):
            rendered[name] = _principals(given[key], version)
    if given.get("conditions"):
        rendered["Condition"] = _conditions(given["conditions"], version)
    return rendered


def _one_or_many(values: Sequence[str], version: str) -> Any:
    replaced = [_interpolated(one, version) for one in values]
    return replaced[0] if len(replaced) == 1 else sorted(replaced, reverse=True)


def _principals(given: Sequence[Mapping[str, Any]], version: str) -> Any:
    if len(given) == 1 and given[0]["type"] == "*" and list(given[0]["identifiers"]) == ["*"]:
        return "*"
    merged: dict[str, list[str]] = {}
    for one in given:
        merged.setdefault(one["type"], []).extend(one["identifiers"])
    return {kind: _one_or_many(merged[kind], version) for kind in sorted(merged)}


def _conditions(given: Sequence[Mapping[str, Any]], version: str) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, list[str]]] = {}
    for one in given:
        values = merged.setdefault(one["test"], {}).setdefault(one["variable"], [])
        values.extend(_interpolated(value, version) for value in one["values"])
    return {
        test: {name: values[0] if len(values) == 1 else values for name, values in sorted(variables.items())}
        for test, variables in sorted(merged.items())
    }


def _interpolated(text: str, version: str) -> str:
    # `&{aws:username}` stands for `${aws:username}`, which Terraform would have read as its own.
    return text.replace("&{", "${") if version == _VERSION else text


def _statements_of(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text).get("Statement", [])
    except (ValueError, AttributeError) as fault:
        raise StandInError(f"aws:iam/getPolicyDocument: a merged policy is no JSON document: {fault}") from fault
    return [found] if isinstance(found, dict) else found


def _without_clashes(statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sids = [one["Sid"] for one in statements if one.get("Sid")]
    double = sorted({sid for sid in sids if sids.count(sid) > 1})
    if double:
        raise StandInError(f"aws:iam/getPolicyDocument: duplicate Sid ({', '.join(double)})")
    return statements


def _overridden(statements: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    merged = list(statements)
    for other in others:
        place = next((i for i, one in enumerate(merged) if one.get("Sid") and one["Sid"] == other.get("Sid")), None)
        if place is None:
            merged.append(other)
        else:
            merged[place] = other
    return merged


def _as_go_writes(text: str) -> str:
    # encoding/json escapes these so that the text is safe inside HTML.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
