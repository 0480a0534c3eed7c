"""The EKS control plane, and the CPU nodes that hold whatever is not a Ray worker."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pulumi_kubernetes as kubernetes

from components import PACKAGE
from components.defaults import LOG_RETENTION_DAYS, REMADE_AFTER_A_FAILED_CREATE
from components.faults import Fault, StackFaults, end_program, path
from components.launch_template import imds_v2_only, instance_tags, root_volume
from components.node_labels import SYSTEM_NODE_LABELS
from components.node_role import NodeRole
from components.tags import resource_tags

_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
_KEY_DELETION_DAYS = 7
DEFAULT_SYSTEM_ROOT_GIB: Final = 120
"""The Ray head runs the workers' image, which unpacks to some tens of GiB; these nodes have no NVMe to put it on."""


class EndpointArgs(TypedDict):
    """Who reaches the Kubernetes API server."""

    public: bool
    """Whether it has an address on the internet."""
    private: bool
    """Whether it has an address in the VPC; without it nodes reach it through the NAT gateway."""
    public_cidrs: NotRequired[Sequence[str]]
    """Networks that may use the public address. Without it EKS admits every address, before authentication."""


class ClusterArgs(TypedDict):
    """Arguments of `Cluster`."""

    kubernetes_version: str
    """Minor version of control plane and system nodes, such as 1.35."""
    vpc_id: pulumi.Input[str]
    """VPC of the cluster."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets in at least two zones, for the control plane's interfaces and the system nodes."""
    endpoint: EndpointArgs
    """Who reaches the API server."""
    system_instance_type: str
    """x86-64 type of the CPU nodes; a Ray head with its application builder wants 4 vCPU and 16 GiB."""
    system_node_count: int
    """Number of CPU nodes."""
    egress: NotRequired[Sequence[pulumi.Resource]]
    """What must stand before nodes start and outlive them, see `Network.egress`."""
    name: NotRequired[str]
    """Name of the EKS cluster, for a stack with several. Default: project and stack."""
    admins: NotRequired[Sequence[str]]
    """ARNs of IAM roles and users that administer the cluster, beside the one that makes it, who must not be among them."""
    log_retention_days: NotRequired[int]
    """Days CloudWatch keeps the control plane's logs. Default: 30."""
    tags: NotRequired[Mapping[str, str]]
    """Tags added to every taggable resource."""


class Cluster(pulumi.ComponentResource):
    """An EKS cluster with encrypted secrets and logs, one CPU node group, CoreDNS, and a Kubernetes provider for it.

    Raises:
        SystemExit: Later: EKS made no security group for the cluster.
    """

    cluster_name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    """Secret. Calls ``aws eks get-token``, so that it works wherever AWS CLI v2 and credentials are."""
    provider: kubernetes.Provider
    """The only provider the stack's Kubernetes resources may use."""
    security_group_id: pulumi.Output[str]
    """The group EKS made: nodes outside it get no traffic from the control plane and no DNS."""
    oidc_provider_arn: pulumi.Output[str]
    """For trust policies of IAM roles that pods take by their service account."""
    system_node_group: aws.eks.NodeGroup
    coredns: aws.eks.Addon

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(f"{PACKAGE}:index:Cluster", name, None, opts)
        self._name = name
        self._args = args
        self._tags = args.get("tags")
        self._child = pulumi.ResourceOptions(parent=self)

        control_plane = self._control_plane()
        self.cluster_name = control_plane.eks_cluster.apply(lambda cluster: cluster.name)
        self.security_group_id = control_plane.eks_cluster.apply(lambda cluster: cluster.vpc_config).apply(
            lambda config: _own_security_group(config.cluster_security_group_id)
        )
        self.oidc_provider_arn = self._identity_provider(control_plane).arn
        self.kubeconfig = pulumi.Output.secret(control_plane.kubeconfig_json)
        self.provider = kubernetes.Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            # A new kubeconfig for the same cluster must update this provider, not replace every resource under it
            # (pulumi/pulumi-kubernetes#2517, #2675). A cluster's endpoint is its own for life.
            cluster_identifier=control_plane.eks_cluster.apply(lambda cluster: cluster.endpoint),
            opts=self._child,
        )
        for admin in args.get("admins", []):
            self._admin(admin)
        self.system_node_group = self._system_nodes()
        self.coredns = aws.eks.Addon(
            f"{name}-coredns",
            addon_name="coredns",
            cluster_name=self.cluster_name,
            # EKS installs an unmanaged CoreDNS with every cluster; this add-on takes it over.
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            tags=resource_tags(self._tags, name=f"{name}-coredns"),
            # It is healthy only where its pods run, so asked for earlier it would wait for nodes that wait for it.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.system_node_group]),
        )
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "kubeconfig": self.kubeconfig,
                "security_group_id": self.security_group_id,
                "oidc_provider_arn": self.oidc_provider_arn,
            }
        )

    def _control_plane(self) -> eks.Cluster:
        args = self._args
        cluster_name = args.get("name") or re.sub(r"[^0-9A-Za-z_-]", "-", f"{PACKAGE}-{pulumi.get_stack()}")
        key = aws.kms.Key(
            f"{self._name}-secrets",
            description=f"Kubernetes secrets of {cluster_name}",
            enable_key_rotation=True,
            deletion_window_in_days=_KEY_DELETION_DAYS,
            tags=resource_tags(self._tags, name=f"{self._name}-secrets"),
            opts=self._child,
        )
        # Made first and under the name EKS looks for; EKS would make it without retention, and leave it behind.
        logs = aws.cloudwatch.LogGroup(
            f"{self._name}-logs",
            name=f"/aws/eks/{cluster_name}/cluster",
            retention_in_days=args.get("log_retention_days", LOG_RETENTION_DAYS),
            tags=resource_tags(self._tags, name=f"{self._name}-logs"),
            opts=self._child,
        )
        endpoint = args["endpoint"]
        return eks.Cluster(
            f"{self._name}-control-plane",
            name=cluster_name,
            version=args["kubernetes_version"],
            vpc_id=args["vpc_id"],
            private_subnet_ids=args["subnet_ids"],
            authentication_mode=eks.AuthenticationMode.API,
            encryption_config_key_arn=key.arn,
            enabled_cluster_log_types=list(_LOG_TYPES),
            endpoint_public_access=endpoint["public"],
            endpoint_private_access=endpoint["private"],
            # pulumi-eks refuses them where there is no public endpoint.
            public_access_cidrs=endpoint.get("public_cidrs") if endpoint["public"] else None,
            skip_default_node_group=True,
            # Nodes join EKS's own group; a second one of Pulumi's would leave them without kubelet and DNS traffic.
            skip_default_security_groups=True,
            vpc_cni_options={"enable_network_policy": True},
            tags=resource_tags(self._tags),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[logs]),
        )

    def _identity_provider(self, control_plane: eks.Cluster) -> aws.iam.OpenIdConnectProvider:
        """Lets IAM roles trust the cluster's service accounts.

        pulumi-eks would make it without tags; what carries none is not found again when a killed `up` has lost it.
        """
        name = f"{self._name}-oidc"
        return aws.iam.OpenIdConnectProvider(
            name,
            url=control_plane.oidc_provider_url,
            client_id_lists=["sts.amazonaws.com"],
            tags=resource_tags(self._tags, name=name),
            opts=self._child,
        )

    def _admin(self, principal: str) -> None:
        """Lets an IAM principal in, as administrator of the whole cluster."""
        _, partition, _, _, account, identity = principal.split(":", maxsplit=5)
        name = f"{self._name}-admin-{account}-{identity}"
        entry = aws.eks.AccessEntry(
            name,
            cluster_name=self.cluster_name,
            principal_arn=principal,
            type="STANDARD",
            tags=resource_tags(self._tags, name=name),
            opts=self._child,
        )
        aws.eks.AccessPolicyAssociation(
            name,
            cluster_name=self.cluster_name,
            principal_arn=principal,
            policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
            access_scope={"type": "cluster"},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[entry]),
        )

    def _system_nodes(self) -> aws.eks.NodeGroup:
        args = self._args
        name = f"{self._name}-system"
        node_role = NodeRole(name, self._tags, parent=self)
        tags = resource_tags(self._tags, name=name)
        template = aws.ec2.LaunchTemplate(
            name,
            description="CPU nodes: system pods, KubeRay operator, Ray head",
            metadata_options=imds_v2_only(),
            block_device_mappings=root_volume(DEFAULT_SYSTEM_ROOT_GIB),
            tag_specifications=instance_tags(tags),
            tags=tags,
            opts=self._child,
        )
        count = args["system_node_count"]
        return aws.eks.NodeGroup(
            name,
            cluster_name=self.cluster_name,
            node_role_arn=node_role.role.arn,
            subnet_ids=args["subnet_ids"],
            version=args["kubernetes_version"],
            ami_type="AL2023_x86_64_STANDARD",
            instance_types=[args["system_instance_type"]],
            capacity_type="ON_DEMAND",
            scaling_config={"min_size": count, "max_size": count, "desired_size": count},
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            labels=dict(SYSTEM_NODE_LABELS),
            tags=tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*args.get("egress", []), *node_role.attachments],
                replace_on_changes=[*REMADE_AFTER_A_FAILED_CREATE],
            ),
        )


def _own_security_group(group_id: str | None) -> str:
    if not group_id:
        why = "EKS names no security group of its own for it, and nodes outside that group get neither control-plane traffic nor DNS"
        fix = "Look at clusterSecurityGroupId in aws eks describe-cluster, then type: pulumi refresh"
        end_program(StackFaults([Fault(path("cluster"), why, fix)]))
    return group_id
