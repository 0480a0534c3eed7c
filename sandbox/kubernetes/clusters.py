"""Which API server a provider of the program talks to, and whether there is one."""

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from sandbox.standin import StandInError

_NO_KUBECONFIG: Final = (
    "unable to load Kubernetes client configuration from kubeconfig file: invalid configuration: no configuration has been"
    " provided. The sandbox has no ~/.kube/config: give the resource the provider of the stack's own cluster"
)

NOT_YET: Final = "the sandbox's: no cluster yet"
"""Takes the place of a configuration that is not known yet."""

_FORGET_VARIABLE: Final = "PULUMI_K8S_DELETE_UNREACHABLE"

Clusters = Callable[[], Mapping[str, str]]
"""Asks AWS for the clusters that exist now: endpoint, as a kubeconfig has it, to the cluster's name."""


@dataclass(frozen=True)
class Connection:
    """One provider: the endpoint that its kubeconfig names ("" without one), and the kinds it updates in place."""

    endpoint: str = ""
    mutable: frozenset[str] = frozenset()
    upserts: bool = False
    forgets: bool = False
    """Whether what lies in an unreachable cluster counts as deleted."""
    has_cluster: bool = True
    """False in a preview in which the cluster is still to be made."""


def connection(config: Mapping[str, Any]) -> Connection:
    """Reads a provider's configuration, whose kubeconfig has been judged before."""
    switches = {"ConfigMap": "enableConfigMapMutable", "Secret": "enableSecretMutable"}
    return Connection(
        endpoint=_endpoint(config.get("kubeconfig"), config.get("context")),
        mutable=frozenset(kind for kind, key in switches.items() if config.get(key) in (True, "true")),
        upserts=config.get("upsertExistingObjects") in (True, "true"),
        has_cluster=NOT_YET not in config.values(),
        forgets=(config.get("deleteUnreachable") or os.environ.get(_FORGET_VARIABLE)) in (True, "true"),
    )


def host_of(endpoint: str) -> str:
    """The host name in a cluster's endpoint."""
    return urlsplit(endpoint).hostname or ""


def unreachable(endpoint: str, living: Collection[str]) -> str:
    """Why the cluster does not answer, in pulumi-kubernetes' words (provider/pkg/provider/provider.go); "" if it does."""
    if not endpoint:
        return _NO_KUBECONFIG
    if host_of(endpoint) in {host_of(one) for one in living}:
        return ""
    return (
        f'unable to load schema information from the API server: Get "{endpoint.rstrip("/")}/openapi/v2?timeout=32s":'
        f" dial tcp: lookup {host_of(endpoint)}: no such host"
    )


def refuse(reason: str, operation: str, *, release: bool) -> None:
    """Says that the cluster does not answer as pulumi-kubernetes says it for each operation.

    Raises:
        StandInError: always, where there is a reason.
    """
    if not reason:
        return
    gone = (
        "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with the"
        f' {_FORGET_VARIABLE} environment variable set to "true"'
    )
    if operation == "read":
        raise StandInError(f"failed to read resource state due to unreachable cluster. {gone} ({reason})")
    if release and operation != "update":
        raise StandInError(f"can't {operation} Helm Release with unreachable cluster: {reason}")
    if operation == "delete":
        raise StandInError(f"configured Kubernetes cluster is unreachable. {gone} ({reason})")
    raise StandInError(f"configured Kubernetes cluster is unreachable: {reason}")


def _endpoint(kubeconfig: Any, context: Any) -> str:
    if not isinstance(kubeconfig, str):
        return ""
    document = _document(kubeconfig)
    if not isinstance(document, Mapping):
        return ""
    wanted = context or document.get("current-context")
    contexts = {one.get("name"): one.get("context") or {} for one in document.get("contexts") or ()}
    clusters = {one.get("name"): one.get("cluster") or {} for one in document.get("clusters") or ()}
    return clusters.get(contexts.get(wanted, {}).get("cluster"), {}).get("server") or ""


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None
