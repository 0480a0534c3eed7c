"""Who may use the cluster: access entries, or the aws-auth ConfigMap (nodejs/eks/cluster/authenticationMode.ts)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
import yaml

from sandbox.eks.cluster_rules import uses_access_entries, uses_config_map


def grant(
    name: str,
    cluster: aws.eks.Cluster,
    provider: k8s.Provider,
    roles: Any,
    inputs: Mapping[str, Any],
    values: Mapping[str, Any],
    below: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    """Makes what the authentication mode calls for; returns what later add-ons wait for."""
    made: list[pulumi.Resource] = []
    if uses_access_entries(values):
        entries = dict(inputs.get("accessEntries") or {})
        if values.get("createInstanceRole") or values.get("instanceRole") is not None:
            arn = pulumi.Output.from_input(roles[0]).apply(lambda role: role.arn)
            entries = {"defaultNodeGroupInstanceRole": {"principalArn": arn, "type": "EC2_LINUX"}, **entries}
        for key, entry in entries.items():
            made.append(_entry(f"{name}-{key}", cluster, entry, below))
    if uses_config_map(values):
        made.append(_config_map(name, provider, roles, inputs, below))
    return made


def _entry(
    name: str, cluster: aws.eks.Cluster, entry: Mapping[str, Any], below: pulumi.ResourceOptions
) -> aws.eks.AccessEntry:
    made = aws.eks.AccessEntry(
        name,
        cluster_name=cluster.name,
        principal_arn=entry["principalArn"],
        kubernetes_groups=entry.get("kubernetesGroups"),
        type=entry.get("type"),
        user_name=entry.get("username"),
        tags=entry.get("tags"),
        opts=pulumi.ResourceOptions(parent=below.parent, depends_on=[cluster]),
    )
    for key, policy in (entry.get("accessPolicies") or {}).items():
        aws.eks.AccessPolicyAssociation(
            f"{name}-{key}",
            cluster_name=cluster.name,
            principal_arn=entry["principalArn"],
            policy_arn=pulumi.Output.from_input(policy)["policyArn"],
            access_scope=pulumi.Output.from_input(policy)["accessScope"],
            opts=pulumi.ResourceOptions(parent=made, depends_on=[made]),
        )
    return made


def _config_map(
    name: str, provider: k8s.Provider, roles: Any, inputs: Mapping[str, Any], below: pulumi.ResourceOptions
) -> k8s.core.v1.ConfigMap:
    arns = pulumi.Output.from_input(roles).apply(lambda found: pulumi.Output.all(*[role.arn for role in found or ()]))
    data = {"mapRoles": pulumi.Output.all(inputs.get("roleMappings") or [], arns).apply(_role_mappings)}
    if inputs.get("userMappings"):
        data["mapUsers"] = pulumi.Output.from_input(inputs["userMappings"]).apply(
            lambda found: _mappings(found, "userarn", "userArn")
        )
    metadata: Any = {"name": "aws-auth", "namespace": "kube-system", "annotations": {"pulumi.com/patchForce": "true"}}
    opts = pulumi.ResourceOptions(parent=below.parent, provider=provider)
    return k8s.core.v1.ConfigMap(f"{name}-nodeAccess", immutable=False, metadata=metadata, data=data, opts=opts)


def _role_mappings(known: Sequence[Any]) -> str:
    mappings, arns = known
    nodes = ["system:bootstrappers", "system:nodes"]
    instances = [{"roleArn": arn, "username": "system:node:{{EC2PrivateDNSName}}", "groups": nodes} for arn in arns]
    return _mappings([*mappings, *instances], "rolearn", "roleArn")


def _mappings(found: Sequence[Any], key: str, source: str) -> str:
    lines = [{key: one[source], "username": one.get("username"), "groups": one.get("groups")} for one in found]
    return yaml.safe_dump(lines, sort_keys=False)
