"""Helm Releases and the provider's own configuration, judged by the arguments that the SDK declares for them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pulumi_kubernetes as k8s
import yaml
from pulumi_kubernetes.helm.v3 import ReleaseArgs

from sandbox.aws.inputs import checked, without_defaults
from sandbox.aws.schema import ValueType
from sandbox.kubernetes.rules import known, members
from sandbox.standin import UNKNOWN, CheckFailure

RELEASE: Final = "kubernetes:helm.sh/v3:Release"

# Objects in a provider's configuration travel as JSON text.
_AS_JSON: Final = ("helmReleaseSettings", "kubeClientSettings")
_DEFAULT_TIMEOUT_SECONDS: Final = 300


def release(
    name: str, inputs: Mapping[str, Any], old: Mapping[str, Any] | None, seed: bytes
) -> tuple[dict[str, Any], list[CheckFailure]]:
    """A Release's inputs as pulumi-kubernetes keeps them, and what is refused of them.

    What stands under ``values`` is the chart's business and is not judged here.
    """
    kept, failures = checked(ValueType("object", sdk_class=ReleaseArgs).fields, inputs, "Release")
    kept = without_defaults(kept)
    if kept.get("name") is None:
        kept["name"] = (old or {}).get("name") or f"{name}-{hashlib.sha256(seed).hexdigest()[:8]}"
    kept.setdefault("namespace", "default")
    kept.setdefault("timeout", _DEFAULT_TIMEOUT_SECONDS)
    return kept, [*failures, *_release_rules(kept)]


def _release_rules(inputs: Mapping[str, Any]) -> Iterator[CheckFailure]:
    name, chart, timeout = (known(inputs, key) for key in ("name", "chart", "timeout"))
    if isinstance(name, str) and len(name) > 53:
        yield CheckFailure("name", f'"{name}" has {len(name)} characters, and Helm allows a release 53')
    if chart == "":
        yield CheckFailure("chart", "must name a chart")
    if isinstance(timeout, int) and timeout <= 0:
        yield CheckFailure("timeout", f"must be a number of seconds above 0, not {timeout}")
    repository = known(members(inputs, "repositoryOpts"), "repo")
    if isinstance(repository, str) and "://" not in repository:
        yield CheckFailure(
            "repositoryOpts.repo",
            f'"{repository}" must be the URL of a chart repository, such as https://ray-project.github.io/kuberay-helm/',
        )
    if known(inputs, "skipAwait") is True and known(inputs, "atomic") is True:
        yield CheckFailure("skipAwait", "contradicts atomic, which waits in order to roll back: keep one of the two")


def provider(inputs: Mapping[str, Any]) -> list[CheckFailure]:
    """What is refused of the configuration of a kubernetes Provider. The kubeconfig is never quoted."""
    plain = {key: _parsed(value) if key in _AS_JSON else value for key, value in inputs.items() if key != "version"}
    _, failures = checked(ValueType("object", sdk_class=k8s.ProviderArgs).fields, plain, "Provider")
    return [*failures, *_kubeconfig(known(inputs, "kubeconfig"), known(inputs, "context"))]


def _kubeconfig(text: Any, context: Any) -> Iterator[CheckFailure]:
    # One line without braces is the path of a file.
    if not isinstance(text, str) or ("\n" not in text.strip() and not text.lstrip().startswith("{")):
        return
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        document = None
    if not isinstance(document, Mapping):
        yield CheckFailure("kubeconfig", "is neither YAML nor JSON, nor the path of a file")
        return
    for key in ("clusters", "contexts", "users"):
        if not isinstance(document.get(key), list):
            yield CheckFailure("kubeconfig", f"has no list of {key}")
    names = [one.get("name") for one in document.get("contexts") or () if isinstance(one, Mapping)]
    if isinstance(context, str) and context not in names:
        yield CheckFailure("context", f'"{context}" is not a context of the kubeconfig')


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return UNKNOWN
