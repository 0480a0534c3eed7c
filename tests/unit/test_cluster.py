from typing import Any

import pulumi_aws as aws
import pytest

from components.cluster import Cluster, ClusterArgs
from components.faults import StackFaults

GROUP = "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
IDENTITY_PROVIDER = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"


def cluster_args(**changes: Any) -> ClusterArgs:
    args: Any = {
        "kubernetes_version": "1.35",
        "vpc_id": "vpc-1",
        "subnet_ids": ["subnet-a", "subnet-b"],
        "endpoint": {"public": True, "private": True, "public_cidrs": ["203.0.113.0/24"]},
        "system_instance_type": "m7i.xlarge",
        "system_node_count": 1,
        **changes,
    }
    return args


@pytest.mark.parametrize("preview", [True, False])
def test_a_cluster_has_exactly_these_resources(deploy, preview):
    recording = deploy(lambda: Cluster("k8s", cluster_args()), preview=preview)
    assert recording.listed() == sorted(
        [
            ("ray-llm-eks:index:Cluster", "k8s"),
            ("aws:kms/key:Key", "k8s-secrets"),
            ("aws:cloudwatch/logGroup:LogGroup", "k8s-logs"),
            ("eks:index:Cluster", "k8s-control-plane"),
            ("pulumi:providers:kubernetes", "k8s-kubernetes"),
            ("aws:iam/role:Role", "k8s-system-role"),
            *(
                ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", f"k8s-system-role-{policy}")
                for policy in (
                    "AmazonEKSWorkerNodePolicy",
                    "AmazonEKS_CNI_Policy",
                    "AmazonEC2ContainerRegistryPullOnly",
                )
            ),
            (TEMPLATE, "k8s-system"),
            (GROUP, "k8s-system"),
            ("aws:eks/addon:Addon", "k8s-coredns"),
            (IDENTITY_PROVIDER, "k8s-oidc"),
        ]
    )


def test_the_control_plane_is_made_by_the_api_with_encrypted_secrets_and_every_log(deploy):
    inputs = deploy(lambda: Cluster("k8s", cluster_args())).one("eks:index:Cluster").inputs
    assert inputs["authenticationMode"] == "API"
    assert inputs["encryptionConfigKeyArn"] == "arn:aws:::k8s-secrets"
    assert inputs["enabledClusterLogTypes"] == ["api", "audit", "authenticator", "controllerManager", "scheduler"]
    assert inputs["skipDefaultNodeGroup"] is True
    assert inputs["skipDefaultSecurityGroups"] is True
    assert inputs["vpcCniOptions"] == {"enableNetworkPolicy": True}
    assert inputs["privateSubnetIds"] == ["subnet-a", "subnet-b"]
    assert inputs["version"] == "1.35"
    assert "instanceRoles" not in inputs
    assert "accessEntries" not in inputs


def test_roles_can_trust_the_clusters_service_accounts_and_the_provider_for_it_has_tags(deploy):
    recording = deploy(lambda: Cluster("k8s", cluster_args()))
    provider = recording.one(IDENTITY_PROVIDER).inputs
    assert (provider["url"], provider["clientIdLists"]) == ("https://oidc.example/id/k8s", ["sts.amazonaws.com"])
    assert provider["tags"]["Project"] == "ray-llm-eks"
    assert "createOidcProvider" not in recording.one("eks:index:Cluster").inputs


@pytest.mark.parametrize("preview", [True, False])
def test_the_cluster_name_is_known_in_preview_and_names_the_log_group(deploy, preview):
    recording = deploy(lambda: Cluster("k8s", cluster_args(log_retention_days=7)), preview=preview, stack="dev.eu")
    assert recording.one("eks:index:Cluster").inputs["name"] == "ray-llm-eks-dev-eu"
    logs = recording.one("aws:cloudwatch/logGroup:LogGroup").inputs
    assert (logs["name"], logs["retentionInDays"]) == ("/aws/eks/ray-llm-eks-dev-eu/cluster", 7)
    assert "k8s-logs" in recording.one("eks:index:Cluster").depends_on


def test_public_cidrs_are_passed_only_where_the_endpoint_is_public(deploy):
    public = deploy(lambda: Cluster("k8s", cluster_args())).one("eks:index:Cluster").inputs
    assert public["publicAccessCidrs"] == ["203.0.113.0/24"]
    hidden = {"public": False, "private": True, "public_cidrs": ["203.0.113.0/24"]}
    private = deploy(lambda: Cluster("k8s", cluster_args(endpoint=hidden))).one("eks:index:Cluster").inputs
    assert "publicAccessCidrs" not in private
    assert private["endpointPublicAccess"] is False


def test_nodes_get_the_group_eks_made_and_not_one_of_pulumi(deploy):
    recording = deploy(lambda: Cluster("k8s", cluster_args()))
    assert recording.outputs["k8s"]["security_group_id"] == "sg-eks-own"


def test_the_kubeconfig_is_secret(deploy):
    recording = deploy(lambda: Cluster("k8s", cluster_args()))
    assert recording.secrets["k8s"] == {"kubeconfig"}
    assert recording.outputs["k8s"]["kubeconfig"] == '{"kind": "Config"}'
    assert "kubeconfig" in recording.one("pulumi:providers:kubernetes").secret_inputs


def test_the_kubernetes_provider_is_replaced_with_the_cluster_only(deploy):
    first = deploy(lambda: Cluster("k8s", cluster_args())).one("pulumi:providers:kubernetes").inputs
    second = deploy(lambda: Cluster("k8s", cluster_args())).one("pulumi:providers:kubernetes").inputs
    assert first == second
    assert first["clusterIdentifier"] == "https://cluster.example"


def test_the_system_nodes_are_cpu_nodes_that_pods_can_tell_apart(deploy):
    group = deploy(lambda: Cluster("k8s", cluster_args())).one(GROUP).inputs
    assert group["labels"] == {"ray-llm-eks/node-group": "system"}
    assert "taints" not in group
    assert group["instanceTypes"] == ["m7i.xlarge"]
    assert group["amiType"] == "AL2023_x86_64_STANDARD"
    assert group["scalingConfig"] == {"minSize": 1, "maxSize": 1, "desiredSize": 1}
    assert group["subnetIds"] == ["subnet-a", "subnet-b"]
    assert "nodeGroupName" not in group


def test_system_nodes_whose_create_failed_are_made_anew(deploy):
    assert deploy(lambda: Cluster("k8s", cluster_args())).one(GROUP).replace_on_changes == ("#initerror",)


def test_the_system_template_leaves_the_security_groups_to_eks(deploy):
    template = deploy(lambda: Cluster("k8s", cluster_args())).one(TEMPLATE).inputs
    assert "networkInterfaces" not in template
    assert "vpcSecurityGroupIds" not in template
    assert template["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }
    assert template["blockDeviceMappings"][0]["ebs"]["encrypted"] == "true"


def test_the_system_nodes_wait_for_the_way_out_and_for_their_role(deploy):
    def program() -> Cluster:
        route = aws.ec2.Route("way-out", route_table_id="rtb-1", gateway_id="igw-1", destination_cidr_block="0.0.0.0/0")
        return Cluster("k8s", cluster_args(egress=[route]))

    group = deploy(program).one(GROUP)
    assert {"way-out", "k8s-system-role-AmazonEKS_CNI_Policy"} <= group.depends_on


def test_coredns_comes_after_the_system_nodes(deploy):
    addon = deploy(lambda: Cluster("k8s", cluster_args())).one("aws:eks/addon:Addon")
    assert "k8s-system" in addon.depends_on
    assert addon.inputs["addonName"] == "coredns"
    assert addon.inputs["resolveConflictsOnCreate"] == "OVERWRITE"


def test_the_node_policies_belong_to_the_partition_of_the_account(deploy):
    china = {"aws:index/getPartition:getPartition": {"partition": "aws-cn"}}
    recording = deploy(lambda: Cluster("k8s", cluster_args()), invokes=china)
    attachment = recording.one(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "k8s-system-role-AmazonEKS_CNI_Policy"
    )
    assert attachment.inputs["policyArn"] == "arn:aws-cn:iam::aws:policy/AmazonEKS_CNI_Policy"


OPS = "arn:aws:iam::123456789012:role/ops"
ENTRY = "aws:eks/accessEntry:AccessEntry"
ASSOCIATION = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"


@pytest.mark.parametrize("preview", [True, False])
def test_an_admin_is_let_in_as_administrator_of_the_whole_cluster(deploy, preview):
    recording = deploy(lambda: Cluster("k8s", cluster_args(admins=[OPS])), preview=preview)
    name = "k8s-admin-123456789012-role/ops"
    entry, association = recording.one(ENTRY, name), recording.one(ASSOCIATION, name)
    assert entry.inputs["principalArn"] == association.inputs["principalArn"] == OPS
    assert entry.inputs["type"] == "STANDARD"
    assert association.inputs["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert association.inputs["accessScope"] == {"type": "cluster"}
    assert name in association.depends_on
    assert entry.parent == association.parent == "k8s"


def test_an_admin_more_moves_none_of_the_others(deploy):
    user = "arn:aws-cn:iam::123456789012:user/team/ada"
    recording = deploy(lambda: Cluster("k8s", cluster_args(admins=[user, OPS])))
    assert [entry.name for entry in recording.of_type(ENTRY)] == [
        "k8s-admin-123456789012-user/team/ada",
        "k8s-admin-123456789012-role/ops",
    ]
    in_china = recording.one(ASSOCIATION, "k8s-admin-123456789012-user/team/ada").inputs["policyArn"]
    assert in_china == "arn:aws-cn:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def test_a_cluster_without_a_group_of_its_own_is_refused(deploy, monkeypatch):
    config = aws.eks.outputs.ClusterVpcConfig
    monkeypatch.setattr(config, "cluster_security_group_id", property(lambda _: None))
    with pytest.raises(StackFaults, match="ray-llm-eks:cluster: EKS names no security group of its own for it"):
        deploy(lambda: Cluster("k8s", cluster_args()))
