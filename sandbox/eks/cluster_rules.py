"""What pulumi-eks refuses of a cluster's arguments, and what of them the sandbox does not simulate.

Restated from pulumi/pulumi-eks nodejs/eks/cluster/cluster.ts and authenticationMode.ts (v4).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pulumi_eks

from sandbox.eks.arguments import judge
from sandbox.standin import UNKNOWN, StandInError

_MODES: Final = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
_SINGLE_NODE_OPTIONS: Final = (
    *("nodeSubnetIds", "nodeAssociatePublicIpAddress", "instanceType", "instanceProfileName", "nodePublicKey"),
    *("nodeRootVolumeSize", "nodeUserData", "minSize", "maxSize", "desiredCapacity", "nodeAmiId", "gpu"),
)
_CONFIG_MAP_ONLY: Final = ("roleMappings", "userMappings", "instanceRoles")


def check(values: Mapping[str, Any], explicit_provider: bool) -> None:
    """Judges plain values, unknown ones among them.

    Raises:
        StandInError: what is wrong, all of it in one line.
    """
    # The SDK lets these two be a shorthand or an object.
    whole = {
        key: value
        for key, value in values.items()
        if not (key in ("fargate", "storageClasses") and not isinstance(value, Mapping))
    }
    judge(pulumi_eks.ClusterArgs, whole, "Cluster")
    if faults := list(_refusals(values, explicit_provider)):
        raise StandInError("; ".join(faults))
    if missing := list(_not_simulated(values)):
        raise StandInError(f"not simulated by the sandbox: {'; '.join(missing)}")


def uses_config_map(values: Mapping[str, Any]) -> bool:
    """Whether the cluster maps roles in the aws-auth ConfigMap."""
    return values.get("authenticationMode") in (None, "CONFIG_MAP", "API_AND_CONFIG_MAP")


def uses_access_entries(values: Mapping[str, Any]) -> bool:
    """Whether the cluster maps roles by access entries."""
    return values.get("authenticationMode") in ("API", "API_AND_CONFIG_MAP")


def _refusals(values: Mapping[str, Any], explicit_provider: bool) -> Iterator[str]:
    mode = values.get("authenticationMode")
    if mode not in (None, *_MODES):
        yield f"authenticationMode: {mode} is none of {', '.join(_MODES)}"
    if not uses_config_map(values):
        for key in _CONFIG_MAP_ONLY:
            if values.get(key) not in (None, []):
                yield f"{key}: must be empty when authenticationMode is {mode}; use accessEntries"
    if not uses_access_entries(values) and values.get("accessEntries"):
        yield f"accessEntries: not supported when authenticationMode is {mode or 'not set'}; set it to API"
    if values.get("instanceRole") is not None and values.get("instanceRoles") is not None:
        yield "instanceRole and instanceRoles exclude each other: keep one"
    if values.get("subnetIds") is not None and (values.get("publicSubnetIds") or values.get("privateSubnetIds")):
        yield "subnetIds excludes publicSubnetIds and privateSubnetIds: keep one way"
    if values.get("nodeGroupOptions") is not None and (
        single := [key for key in _SINGLE_NODE_OPTIONS if values.get(key) is not None]
    ):
        yield f"nodeGroupOptions excludes {', '.join(single)}: move them into it"
    # An unknown endpointPublicAccess is judged by `up`.
    if values.get("publicAccessCidrs") not in (None, UNKNOWN) and values.get("endpointPublicAccess") is False:
        yield "publicAccessCidrs can only be set when endpointPublicAccess is true"
    if explicit_provider and values.get("providerCredentialOpts") is None:
        yield "an explicit AWS provider needs its credentials in providerCredentialOpts too, or the kubeconfig names none"
    if values.get("creationRoleProvider") is not None:
        yield "creationRoleProvider is for Node.js programs only: use providerCredentialOpts"


def _not_simulated(values: Mapping[str, Any]) -> Iterator[str]:
    if values.get("skipDefaultNodeGroup") is not True and not values.get("fargate") and not _auto_mode(values):
        yield "the default node group of eks.Cluster (set skipDefaultNodeGroup and make the nodes as a node group of their own)"
    for key in ("fargate", "storageClasses"):
        if values.get(key):
            yield f"{key} of eks.Cluster"
    if _auto_mode(values):
        yield "autoMode of eks.Cluster"


def _auto_mode(values: Mapping[str, Any]) -> bool:
    mode = values.get("autoMode")
    return isinstance(mode, Mapping) and mode.get("enabled") is True
