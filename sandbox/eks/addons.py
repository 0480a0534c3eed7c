"""The EKS add-ons that pulumi-eks manages: kube-proxy, vpc-cni and, where it can run, coredns."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from sandbox.standin import StandInError

# The environment of the CNI's containers: option, variable, default (nodejs/eks/addons/cni-addon.ts, computeEnv).
_CNI_ENVIRONMENT: Final = (
    ("nodePortSupport", "AWS_VPC_CNI_NODE_PORT_SUPPORT", None),
    ("customNetworkConfig", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", None),
    ("warmEniTarget", "WARM_ENI_TARGET", "1"),
    ("warmIpTarget", "WARM_IP_TARGET", None),
    ("warmPrefixTarget", "WARM_PREFIX_TARGET", None),
    ("enablePrefixDelegation", "ENABLE_PREFIX_DELEGATION", None),
    ("logLevel", "AWS_VPC_K8S_CNI_LOGLEVEL", "DEBUG"),
    ("logFile", "AWS_VPC_K8S_CNI_LOG_FILE", "/host/var/log/aws-routed-eni/ipamd.log"),
    ("vethPrefix", "AWS_VPC_K8S_CNI_VETHPREFIX", "eni"),
    ("eniMtu", "AWS_VPC_ENI_MTU", "9001"),
    ("eniConfigLabelDef", "ENI_CONFIG_LABEL_DEF", None),
    ("pluginLogLevel", "AWS_VPC_K8S_PLUGIN_LOG_LEVEL", "DEBUG"),
    ("pluginLogFile", "AWS_VPC_K8S_PLUGIN_LOG_FILE", "/var/log/aws-routed-eni/plugin.log"),
    ("enablePodEni", "ENABLE_POD_ENI", "false"),
    ("cniConfigureRpfilter", "AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER", None),
    ("cniCustomNetworkCfg", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "false"),
    ("externalSnat", "AWS_VPC_K8S_CNI_EXTERNALSNAT", None),
    ("cniExternalSnat", "AWS_VPC_K8S_CNI_EXTERNALSNAT", None),
)


class VpcCniAddon(pulumi.ComponentResource):
    """``eks:index:VpcCniAddon``: the vpc-cni add-on with its options as configuration values."""

    addon: aws.eks.Addon

    def __init__(
        self, name: str, cluster: aws.eks.Cluster, options: Mapping[str, Any], tags: Any, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__("eks:index:VpcCniAddon", name, {}, opts)
        if options.get("externalSnat") and options.get("cniExternalSnat"):
            raise StandInError("vpcCniOptions: cniExternalSnat and externalSnat exclude each other: keep one")
        below = pulumi.ResourceOptions(parent=self)
        version = options.get("addonVersion") or latest_version("vpc-cni", cluster, self)
        self.addon = _addon(name, "vpc-cni", cluster, version, _cni_values(options), options, tags, below)
        if options.get("securityContextPrivileged"):
            _privileged(name, self.addon, options["securityContextPrivileged"], self)
        self.register_outputs({"addon": self.addon})


def kube_proxy(
    name: str,
    cluster: aws.eks.Cluster,
    inputs: Mapping[str, Any],
    values: Mapping[str, Any],
    below: pulumi.ResourceOptions,
) -> None:
    """Makes the kube-proxy add-on unless it is switched off."""
    if (values.get("kubeProxyAddonOptions") or {}).get("enabled") is False:
        return
    _managed(
        f"{name}-kube-proxy",
        "kube-proxy",
        cluster,
        inputs.get("kubeProxyAddonOptions") or {},
        inputs.get("tags"),
        below,
    )


def coredns(
    name: str,
    cluster: aws.eks.Cluster,
    inputs: Mapping[str, Any],
    values: Mapping[str, Any],
    below: pulumi.ResourceOptions,
) -> None:
    """Makes the coredns add-on only where it was asked for: without a default node group it has nowhere to run."""
    options = values.get("corednsAddonOptions") or {}
    if options.get("enabled") is not True and not options.get("configurationValues"):
        return
    _managed(f"{name}-coredns", "coredns", cluster, inputs.get("corednsAddonOptions") or {}, inputs.get("tags"), below)


def vpc_cni(
    name: str,
    cluster: aws.eks.Cluster,
    after: Sequence[pulumi.Resource],
    provider: k8s.Provider,
    inputs: Mapping[str, Any],
    values: Mapping[str, Any],
    below: pulumi.ResourceOptions,
) -> VpcCniAddon | None:
    """Makes the vpc-cni add-on unless the cluster keeps the self-managed one (useDefaultVpcCni)."""
    if values.get("useDefaultVpcCni") is True:
        return None
    opts = pulumi.ResourceOptions(parent=below.parent, depends_on=list(after), providers={"kubernetes": provider})
    return VpcCniAddon(f"{name}-vpc-cni", cluster, inputs.get("vpcCniOptions") or {}, inputs.get("tags"), opts)


def latest_version(addon: str, cluster: aws.eks.Cluster, parent: Any) -> pulumi.Output[str]:
    """The newest version of an add-on for the cluster's Kubernetes; unknown until the cluster's own version is known."""
    return aws.eks.get_addon_version_output(
        addon_name=addon,
        kubernetes_version=cluster.version,
        most_recent=True,
        opts=pulumi.InvokeOutputOptions(parent=parent),
    ).version


def _managed(
    name: str,
    addon: str,
    cluster: aws.eks.Cluster,
    options: Mapping[str, Any],
    tags: Any,
    below: pulumi.ResourceOptions,
) -> None:
    version = options.get("version") or latest_version(addon, cluster, below.parent)
    values = options.get("configurationValues")
    _addon(name, addon, cluster, version, None if values is None else _json(values), options, tags, below)


def _addon(
    name: str,
    addon: str,
    cluster: aws.eks.Cluster,
    version: Any,
    values: Any,
    options: Mapping[str, Any],
    tags: Any,
    below: pulumi.ResourceOptions,
) -> aws.eks.Addon:
    return aws.eks.Addon(
        name,
        cluster_name=cluster.name,
        addon_name=addon,
        addon_version=version,
        preserve=True,
        resolve_conflicts_on_create=options.get("resolveConflictsOnCreate") or "OVERWRITE",
        resolve_conflicts_on_update=options.get("resolveConflictsOnUpdate") or "OVERWRITE",
        service_account_role_arn=options.get("serviceAccountRoleArn"),
        configuration_values=values,
        tags=tags,
        opts=below,
    )


def _cni_values(options: Mapping[str, Any]) -> pulumi.Output[str]:
    environment: dict[str, Any] = {}
    for option, variable, default in _CNI_ENVIRONMENT:
        value = options.get(option)
        if value is not None and value is not False:
            environment[variable] = pulumi.Output.from_input(value).apply(_text)
        elif default is not None:
            environment[variable] = default
    environment.setdefault("AWS_VPC_K8S_CNI_EXTERNALSNAT", "false")
    demux = pulumi.Output.from_input(options.get("disableTcpEarlyDemux") or False).apply(_text)
    return pulumi.Output.all(
        given=options.get("configurationValues") or {},
        policy=options.get("enableNetworkPolicy"),
        environment=environment,
        init={"DISABLE_TCP_EARLY_DEMUX": demux},
    ).apply(_merged)


def _merged(known: Mapping[str, Any]) -> str:
    given = dict(known["given"])
    if known["policy"] is not None:
        given.setdefault("enableNetworkPolicy", _text(known["policy"]))
    given["env"] = {**known["environment"], **(given.get("env") or {})}
    init = dict(given.get("init") or {})
    given["init"] = {**init, "env": {**known["init"], **(init.get("env") or {})}}
    return json.dumps(given, sort_keys=True, separators=(",", ":"))


def _privileged(name: str, addon: aws.eks.Addon, privileged: Any, parent: VpcCniAddon) -> None:
    container: Any = {"name": "aws-node", "security_context": {"privileged": privileged}}
    metadata: Any = {"name": "aws-node", "namespace": "kube-system", "annotations": {"pulumi.com/patchForce": "true"}}
    spec: Any = {"template": {"spec": {"containers": [container]}}}
    k8s.apps.v1.DaemonSetPatch(
        name,
        metadata=metadata,
        spec=spec,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[addon], retain_on_delete=True),
    )


def _json(values: Any) -> pulumi.Output[str]:
    return pulumi.Output.from_input(values).apply(
        lambda known: json.dumps(known, sort_keys=True, separators=(",", ":"))
    )


def _text(value: Any) -> str:
    return (
        ("true" if value else "false")
        if isinstance(value, bool)
        else f"{int(value) if isinstance(value, float) and value.is_integer() else value}"
    )
