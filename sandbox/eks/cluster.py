"""``eks:index:Cluster``: registers the children that pulumi-eks 4 registers, with the same names and inputs.

Restated from pulumi/pulumi-eks nodejs/eks/cluster/cluster.ts (v4.3.0; 4.4.0 changes dependencies only).
"""

from collections.abc import Mapping
from typing import Any, Final

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from sandbox.eks import access, addons, cluster_rules, security_groups
from sandbox.eks.arguments import GIVEN
from sandbox.eks.kubeconfig import kubeconfig, text
from sandbox.eks.roles import ServiceRole

# The real one asks the issuer's TLS chain; this is the thumbprint that AWS documents for it.
_OIDC_THUMBPRINT: Final = "9e99a48a9960b14926bb7f3b02e22da2b0ab7280"


class Cluster(pulumi.ComponentResource):
    """The component; ``state`` is what it answers the program."""

    state: dict[str, Any]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        values = GIVEN.get()
        cluster_rules.check(values, explicit_provider="aws" in (opts.providers or {}))
        super().__init__("eks:index:Cluster", name, {}, opts)
        self._name, self._inputs, self._values = name, inputs, values
        self._below = pulumi.ResourceOptions(parent=self)
        self._tags = inputs.get("tags")
        groups = security_groups.ClusterGroup.of(name, inputs, values, self._below)
        cluster = self._control_plane(groups)
        addons.kube_proxy(name, cluster, inputs, values, self._below)
        credentials = inputs.get("providerCredentialOpts") or {}
        provider = k8s.Provider(
            f"{name}-eks-k8s",
            kubeconfig=text(kubeconfig(cluster, credentials, with_profile=True)),
            enable_config_map_mutable=inputs.get("enableConfigMapMutable"),
            opts=self._below,
        )
        roles = self._instance_roles()
        mapped = access.grant(name, cluster, provider, roles, inputs, values, self._below)
        vpc_cni = addons.vpc_cni(name, cluster, mapped, provider, inputs, values, self._below)
        addons.coredns(name, cluster, inputs, values, self._below)
        oidc = self._oidc_provider(cluster)
        nodes = security_groups.NodeGroup.of(name, groups, cluster, inputs, self._below)
        document = kubeconfig(cluster, credentials, with_profile=False)
        issuer = cluster.identities.apply(_issuer)
        own_group = cluster.vpc_config.apply(lambda found: found.cluster_security_group_id)
        core = {
            "cluster": cluster,
            "vpcId": groups.vpc_id,
            "subnetIds": self._subnet_ids,
            "publicSubnetIds": inputs.get("publicSubnetIds"),
            "privateSubnetIds": inputs.get("privateSubnetIds"),
            "endpoint": cluster.endpoint,
            "clusterSecurityGroup": groups.group,
            "provider": provider,
            "instanceRoles": roles,
            "nodeGroupOptions": inputs.get("nodeGroupOptions") or {},
            "kubeconfig": document,
            "vpcCni": vpc_cni,
            "tags": self._tags,
            "nodeSecurityGroupTags": inputs.get("nodeSecurityGroupTags"),
            "oidcProvider": oidc,
            "clusterIamRole": self._service_role,
            "accessEntries": list((inputs.get("accessEntries") or {}).values()),
            "autoModeNodeRoleName": "",
        }
        self.state = {
            "kubeconfig": document,
            "kubeconfigJson": text(document),
            "clusterSecurityGroup": groups.group,
            "instanceRoles": roles,
            "nodeSecurityGroup": nodes.group,
            "eksClusterIngressRule": nodes.cluster_ingress,
            "eksCluster": cluster,
            "core": {key: value for key, value in core.items() if value is not None},
            "clusterSecurityGroupId": groups.group.id if groups.group else own_group,
            "nodeSecurityGroupId": nodes.group.id if nodes.group else own_group,
            "clusterIngressRuleId": nodes.cluster_ingress.security_group_rule_id if nodes.cluster_ingress else "",
            "defaultNodeGroupAsgName": "",
            "fargateProfileId": "",
            "fargateProfileStatus": "",
            "oidcProviderArn": oidc.arn if oidc else "",
            "oidcProviderUrl": issuer,
            "oidcIssuer": issuer.apply(lambda url: url.replace("https://", "")),
            "autoModeNodeRoleName": "",
        }
        self.register_outputs(self.state)

    def _control_plane(self, groups: security_groups.ClusterGroup) -> aws.eks.Cluster:
        inputs, role = self._inputs, None
        self._service_role = inputs.get("serviceRole")
        if self._service_role is None:
            role = ServiceRole(
                f"{self._name}-eksRole",
                "eks.amazonaws.com",
                ["AmazonEKSClusterPolicy"],
                self._below,
                description="Allows EKS to manage clusters on your behalf.",
                actions=["sts:AssumeRole", "sts:TagSession"],
                tags=self._tags,
            )
            self._service_role = role.role
        self._subnet_ids = groups.subnet_ids
        key = inputs.get("encryptionConfigKeyArn")
        range_, family = inputs.get("kubernetesServiceIpAddressRange"), inputs.get("ipFamily")
        mode, owner = inputs.get("authenticationMode"), None
        if mode:
            owner = _given(authentication_mode=mode, bootstrap_cluster_creator_admin_permissions=True)
        return aws.eks.Cluster(
            f"{self._name}-eksCluster",
            name=inputs.get("name"),
            role_arn=pulumi.Output.from_input(self._service_role).apply(lambda found: found.arn),
            kubernetes_network_config=_given(ip_family=family or "ipv4", service_ipv4_cidr=range_)
            if range_ or family
            else None,
            bootstrap_self_managed_addons=inputs.get("bootstrapSelfManagedAddons", True),
            vpc_config=_given(
                security_group_ids=[groups.group.id] if groups.group else None,
                subnet_ids=self._subnet_ids,
                endpoint_private_access=inputs.get("endpointPrivateAccess"),
                endpoint_public_access=inputs.get("endpointPublicAccess"),
                public_access_cidrs=inputs.get("publicAccessCidrs"),
            ),
            version=inputs.get("version"),
            enabled_cluster_log_types=inputs.get("enabledClusterLogTypes"),
            tags=security_groups.tagged(f"{self._name}-eksCluster", inputs.get("clusterTags"), self._tags),
            encryption_config={"provider": {"key_arn": key}, "resources": ["secrets"]} if key is not None else None,
            access_config=owner,
            upgrade_policy=inputs.get("upgradePolicy"),
            deletion_protection=inputs.get("deletionProtection"),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=role.attachments if role else None,
                ignore_changes=["accessConfig.bootstrapClusterCreatorAdminPermissions", "bootstrapSelfManagedAddons"],
            ),
        )

    def _instance_roles(self) -> list[Any]:
        inputs = self._inputs
        if inputs.get("instanceRoles") is not None:
            return inputs["instanceRoles"]
        if inputs.get("instanceRole") is not None:
            return [inputs["instanceRole"]]
        if not self._values.get("createInstanceRole"):
            return []
        policies = ["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"]
        role = ServiceRole(
            f"{self._name}-instanceRole", "ec2.amazonaws.com", policies, self._below, tags=self._tags
        ).role
        aws.iam.InstanceProfile(f"{self._name}-instanceProfile", role=role.name, opts=self._below)
        return [role]

    def _oidc_provider(self, cluster: aws.eks.Cluster) -> aws.iam.OpenIdConnectProvider | None:
        if not self._values.get("createOidcProvider"):
            return None
        return aws.iam.OpenIdConnectProvider(
            f"{self._name}-oidcProvider",
            client_id_lists=["sts.amazonaws.com"],
            url=cluster.identities.apply(_issuer),
            thumbprint_lists=[_OIDC_THUMBPRINT],
            opts=self._below,
        )


def kubeconfig_of(args: Mapping[str, Any]) -> pulumi.Output[str]:
    """Answers ``Cluster.getKubeconfig(roleArn, profileName)``."""
    cluster = pulumi.Output.from_input(args["__self__"].eks_cluster)
    credentials = {key: args[key] for key in ("roleArn", "profileName") if args.get(key) is not None}
    return cluster.apply(lambda found: text(kubeconfig(found, credentials, with_profile=True)))


def _issuer(identities: Any) -> str:
    return identities[0].oidcs[0].issuer if identities and identities[0].oidcs else ""


def _given(**fields: Any) -> Any:
    return {name: value for name, value in fields.items() if value is not None}
