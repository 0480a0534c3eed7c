"""What the cluster needs before a Ray worker can run: device plugins for GPU and EFA, and the KubeRay operator."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as kubernetes

from components import PACKAGE
from components.addon_values import (
    OPERATOR_NAMESPACE,
    PLUGIN_NAMESPACE,
    efa_device_plugin_values,
    kuberay_crd_urls,
    kuberay_operator_values,
    nvidia_device_plugin_values,
)
from components.defaults import HELM_TIMEOUT_MINUTES


class ChartArgs(TypedDict):
    """One Helm chart, pinned."""

    repository: str
    """URL of the chart repository."""
    chart: str
    """Name of the chart there."""
    version: str
    """Version of the chart."""


class ClusterAddonsArgs(TypedDict):
    """Arguments of `ClusterAddons`. The Kubernetes provider comes with the resource options."""

    instance_type: str
    """EC2 type of the GPU nodes; the EFA plugin runs on the types it is told."""
    region: str
    """AWS region, for the registry of the EFA plugin's image."""
    nvidia_device_plugin: ChartArgs
    """Chart that makes nvidia.com/gpu a resource of the nodes."""
    efa_device_plugin: ChartArgs
    """Chart that makes vpc.amazonaws.com/efa a resource of the nodes."""
    kuberay_operator: ChartArgs
    """Chart of the operator that turns a RayService into pods."""
    kuberay_crds: NotRequired[Sequence[str] | None]
    """URLs or paths of the operator's CRD files. Default: those of the operator's version on GitHub."""
    timeout_minutes: NotRequired[int]
    """How long each release may take before it is rolled back. Default: 10."""
    gpu_nodes: NotRequired[Sequence[pulumi.Resource]]
    """What the device plugins need to run on: the GPU node group."""
    system_nodes: NotRequired[Sequence[pulumi.Resource]]
    """What the operator needs to run: the system node group and CoreDNS."""


class ClusterAddons(pulumi.ComponentResource):
    """Device plugins and the KubeRay operator as Helm releases that succeed or leave nothing.

    Raises:
        StackFaults: No CRD files can be derived from the operator's version.
    """

    nvidia_device_plugin: kubernetes.helm.v3.Release
    efa_device_plugin: kubernetes.helm.v3.Release
    kuberay_operator: kubernetes.helm.v3.Release
    kuberay_crds: kubernetes.yaml.v2.ConfigGroup

    def __init__(self, name: str, args: ClusterAddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        operator_chart = args["kuberay_operator"]
        crd_files = list(args.get("kuberay_crds") or kuberay_crd_urls(operator_chart["version"]))
        super().__init__(f"{PACKAGE}:index:ClusterAddons", name, None, opts)
        self._name = name
        self._timeout_seconds = args.get("timeout_minutes", HELM_TIMEOUT_MINUTES) * 60

        # Both plugins mount the kubelet's sockets and the devices; the EFA plugin is privileged and on the host network.
        plugins = self._namespace(PLUGIN_NAMESPACE, pod_security="privileged")
        on_gpu_nodes = [plugins, *args.get("gpu_nodes", [])]
        self.nvidia_device_plugin = self._release(
            "nvidia-device-plugin",
            args["nvidia_device_plugin"],
            PLUGIN_NAMESPACE,
            nvidia_device_plugin_values(),
            on_gpu_nodes,
        )
        self.efa_device_plugin = self._release(
            "efa-device-plugin",
            args["efa_device_plugin"],
            PLUGIN_NAMESPACE,
            efa_device_plugin_values(args["instance_type"], args["region"]),
            on_gpu_nodes,
        )

        operators = self._namespace(OPERATOR_NAMESPACE, pod_security="restricted")
        self.kuberay_crds = kubernetes.yaml.v2.ConfigGroup(
            f"{name}-kuberay-crds",
            files=crd_files,
            opts=pulumi.ResourceOptions(
                parent=self,
                # Deleting a CRD deletes every RayService at once, the operator's finalizers notwithstanding, and nothing
                # orders these children after the operator on the way down. They go with the cluster.
                retain_on_delete=True,
            ),
        )
        self.kuberay_operator = self._release(
            "kuberay-operator",
            operator_chart,
            OPERATOR_NAMESPACE,
            kuberay_operator_values(),
            [operators, self.kuberay_crds, *args.get("system_nodes", [])],
            skip_crds=True,
        )
        self.register_outputs(
            {
                "nvidia_device_plugin": self.nvidia_device_plugin,
                "efa_device_plugin": self.efa_device_plugin,
                "kuberay_operator": self.kuberay_operator,
                "kuberay_crds": self.kuberay_crds,
            }
        )

    def _namespace(self, namespace: str, *, pod_security: str) -> kubernetes.core.v1.Namespace:
        return kubernetes.core.v1.Namespace(
            f"{self._name}-{namespace}",
            metadata={"name": namespace, "labels": {"pod-security.kubernetes.io/enforce": pod_security}},
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _release(
        self,
        suffix: str,
        chart: ChartArgs,
        namespace: str,
        values: Mapping[str, Any],
        depends_on: Sequence[pulumi.Resource],
        *,
        skip_crds: bool = False,
    ) -> kubernetes.helm.v3.Release:
        return kubernetes.helm.v3.Release(
            f"{self._name}-{suffix}",
            name=suffix,
            namespace=namespace,
            chart=chart["chart"],
            version=chart["version"],
            repository_opts={"repo": chart["repository"]},
            values=values,
            skip_crds=skip_crds,
            # A release that timed out would otherwise hold its name and block the next run (pulumi-kubernetes#2758).
            atomic=True,
            cleanup_on_fail=True,
            timeout=self._timeout_seconds,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(depends_on),
                # The name is literal, and Helm allows it once a namespace.
                delete_before_replace=True,
            ),
        )
