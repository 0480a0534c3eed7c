"""The kubeconfig that pulumi-eks generates: a token from ``aws eks get-token`` (nodejs/eks/cluster/cluster.ts)."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws


def kubeconfig(
    cluster: aws.eks.Cluster, credentials: Mapping[str, Any], *, with_profile: bool
) -> pulumi.Output[dict[str, Any]]:
    """The document; ``credentials`` are ``roleArn`` and ``profileName``, the latter left out unless ``with_profile``."""
    return pulumi.Output.all(
        name=cluster.name,
        arn=cluster.arn,
        endpoint=cluster.endpoint,
        authority=cluster.certificate_authority,
        credentials=dict(credentials),
    ).apply(lambda known: _document(known, with_profile))


def text(document: pulumi.Output[dict[str, Any]]) -> pulumi.Output[str]:
    """The document as JSON."""
    return document.apply(lambda known: json.dumps(known, separators=(",", ":")))


def _document(known: Mapping[str, Any], with_profile: bool) -> dict[str, Any]:
    region = known["arn"].split(":")[3]
    arguments = ["--region", region, "eks", "get-token", "--cluster-name", known["name"], "--output", "json"]
    if role := known["credentials"].get("roleArn"):
        arguments += ["--role", role]
    if with_profile and (profile := known["credentials"].get("profileName")):
        arguments += ["--profile", profile]
    protocol = "client.authentication.k8s.io/v1beta1"
    environment = [{"name": "KUBERNETES_EXEC_INFO", "value": f'{{"apiVersion": "{protocol}"}}'}]
    call = {"apiVersion": protocol, "command": "aws", "args": arguments, "env": environment}
    server = {"server": known["endpoint"], "certificate-authority-data": _data(known["authority"])}
    return {
        "apiVersion": "v1",
        "clusters": [{"cluster": server, "name": "kubernetes"}],
        "contexts": [{"context": {"cluster": "kubernetes", "user": "aws"}, "name": "aws"}],
        "current-context": "aws",
        "kind": "Config",
        "users": [{"name": "aws", "user": {"exec": call}}],
    }


def _data(authority: Any) -> Any:
    return authority["data"] if isinstance(authority, Mapping) else authority.data
