"""The eks stand-in through its own protocol, against a resource monitor that records what is registered."""

import asyncio
import json
import subprocess
import sys
import threading
from concurrent import futures
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, resource_pb2, resource_pb2_grpc

from sandbox.eks.arguments import plain
from sandbox.eks.server import start
from sandbox.standin import UNKNOWN
from sandbox.wire import decode, encode

ANSWERS = {
    "aws:index/getPartition:getPartition": {"partition": "aws", "dnsSuffix": "amazonaws.com"},
    "aws:eks/getAddonVersion:getAddonVersion": {"version": "v1.99.0"},
    "aws:ec2/getInstanceType:getInstanceType": {"efaSupported": True, "maximumNetworkCards": 2},
}


def answer(value: dict[str, Any]) -> provider_pb2.InvokeResponse:
    response = provider_pb2.InvokeResponse()
    getattr(response, "return").CopyFrom(encode(value))
    return response


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Previews: answers each registration with its inputs, so that all else is unknown."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.registered: dict[str, dict[str, Any]] = {}
        self.requests: dict[str, Any] = {}

    def SupportsFeature(self, request: Any, context: Any) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)

    def RegisterResource(self, request: Any, context: Any) -> resource_pb2.RegisterResourceResponse:
        with self.lock:
            inputs = plain(decode(request.object))
            self.registered[f"{request.type} {request.name}"] = inputs
            self.requests[f"{request.type} {request.name}"] = request
        urn = f"urn:pulumi:dev::project::{request.type}::{request.name}"
        outputs = (
            {**inputs, "vpcConfig": {**inputs["vpcConfig"], "clusterSecurityGroupId": UNKNOWN}}
            if "vpcConfig" in inputs
            else inputs
        )
        return resource_pb2.RegisterResourceResponse(urn=urn, object=encode(outputs))

    def RegisterResourceOutputs(self, request: Any, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def GetDeploymentInfo(self, request: Any, context: Any) -> Any:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "an older engine")

    def Invoke(self, request: Any, context: Any) -> provider_pb2.InvokeResponse:
        if request.tok == "pulumi:pulumi:getResource":
            urn = decode(request.args)["urn"]
            return answer({"urn": urn, "id": "0123", "state": {}})
        return answer(ANSWERS[request.tok])


def construct(
    *requests: dict[str, Any], kind: str = "Cluster", providers: dict[str, str] | None = None
) -> tuple[list[dict[str, Any]], Monitor]:
    """Constructs components at the same time; returns their state and what the monitor saw."""
    monitor = Monitor()
    server = grpc.server(futures.ThreadPoolExecutor(8))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    async def run() -> list[Any]:
        eks, eks_port = await start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{eks_port}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            calls = [
                stub.Construct(
                    provider_pb2.ConstructRequest(
                        project="project",
                        stack="dev",
                        dryRun=True,
                        parallel=4,
                        monitorEndpoint=f"127.0.0.1:{port}",
                        type=f"eks:index:{kind}",
                        name=name,
                        inputs=encode(inputs),
                        providers=providers or {},
                    )
                )
                for request in requests
                for name, inputs in request.items()
            ]
            try:
                return await asyncio.gather(*calls)
            finally:
                await eks.stop(None)

    try:
        return [plain(decode(one.state)) for one in asyncio.run(run())], monitor
    finally:
        server.stop(None)


def arguments(**changes: Any) -> dict[str, Any]:
    return {
        "vpcId": "vpc-1",
        "privateSubnetIds": ["subnet-a", "subnet-b"],
        "skipDefaultNodeGroup": True,
        "skipDefaultSecurityGroups": True,
        "authenticationMode": "API",
        "createOidcProvider": True,
        "encryptionConfigKeyArn": "arn:aws:kms:us-east-1:123456789012:key/k",
        "endpointPrivateAccess": True,
        "endpointPublicAccess": True,
        "publicAccessCidrs": ["203.0.113.0/24"],
        "enabledClusterLogTypes": ["api", "audit"],
        "version": "1.35",
        "tags": {"team": "ml"},
        **changes,
    }


def test_a_cluster_has_the_children_that_pulumi_eks_registers():
    _, monitor = construct({"k": arguments()})
    assert sorted(monitor.registered) == [
        "aws:eks/addon:Addon k-kube-proxy",
        "aws:eks/addon:Addon k-vpc-cni",
        "aws:eks/cluster:Cluster k-eksCluster",
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider k-oidcProvider",
        "aws:iam/role:Role k-eksRole-role",
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment k-eksRole-4b490823",
        "eks:index:Cluster k",
        "eks:index:ServiceRole k-eksRole",
        "eks:index:VpcCniAddon k-vpc-cni",
        "pulumi:providers:kubernetes k-eks-k8s",
    ]


def test_the_control_plane_gets_its_inputs():
    _, monitor = construct({"k": arguments()})
    assert monitor.registered["aws:eks/cluster:Cluster k-eksCluster"] == {
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
        "bootstrapSelfManagedAddons": True,
        "enabledClusterLogTypes": ["api", "audit"],
        "encryptionConfig": {
            "provider": {"keyArn": "arn:aws:kms:us-east-1:123456789012:key/k"},
            "resources": ["secrets"],
        },
        "roleArn": UNKNOWN,
        "tags": {"Name": "k-eksCluster", "team": "ml"},
        "version": "1.35",
        "vpcConfig": {
            "endpointPrivateAccess": True,
            "endpointPublicAccess": True,
            "publicAccessCidrs": ["203.0.113.0/24"],
            "subnetIds": ["subnet-a", "subnet-b"],
        },
    }


def test_the_control_plane_waits_for_its_roles_policies():
    _, monitor = construct({"k": arguments()})
    assert "urn:pulumi:dev::project::aws:iam/rolePolicyAttachment:RolePolicyAttachment::k-eksRole-4b490823" in list(
        monitor.requests["aws:eks/cluster:Cluster k-eksCluster"].dependencies
    )


def test_the_network_policy_switch_reaches_the_cni():
    _, monitor = construct({"k": arguments(vpcCniOptions={"enableNetworkPolicy": True, "warmEniTarget": 2})})
    values = json.loads(monitor.registered["aws:eks/addon:Addon k-vpc-cni"]["configurationValues"])
    assert (values["enableNetworkPolicy"], values["env"]["WARM_ENI_TARGET"]) == ("true", "2")


def test_what_only_aws_knows_is_unknown():
    (state,), _ = construct({"k": arguments()})
    for key in (
        "kubeconfig",
        "kubeconfigJson",
        "clusterSecurityGroupId",
        "nodeSecurityGroupId",
        "oidcProviderArn",
        "oidcIssuer",
    ):
        assert state[key] is UNKNOWN, key


def test_without_the_flag_the_clusters_group_is_pulumis_own():
    _, monitor = construct({"k": arguments(skipDefaultSecurityGroups=False)})
    groups = [name for name in monitor.registered if name.startswith("aws:ec2/securityGroup:")]
    assert sorted(groups) == [
        "aws:ec2/securityGroup:SecurityGroup k-eksClusterSecurityGroup",
        "aws:ec2/securityGroup:SecurityGroup k-nodeSecurityGroup",
    ]
    assert monitor.registered["aws:eks/cluster:Cluster k-eksCluster"]["vpcConfig"]["securityGroupIds"] == [UNKNOWN]


def test_without_access_entries_the_config_map_maps_the_roles():
    _, monitor = construct({"k": arguments(authenticationMode=None)})
    assert monitor.registered["kubernetes:core/v1:ConfigMap k-nodeAccess"]["metadata"]["name"] == "aws-auth"
    assert "accessConfig" not in monitor.registered["aws:eks/cluster:Cluster k-eksCluster"]


def test_access_entries_become_resources():
    entries = {
        "me": {
            "principalArn": "arn:aws:iam::123456789012:role/me",
            "accessPolicies": {"admin": {"policyArn": "arn:p", "accessScope": {"type": "cluster"}}},
        }
    }
    _, monitor = construct({"k": arguments(accessEntries=entries)})
    assert monitor.registered["aws:eks/accessEntry:AccessEntry k-me"]["principalArn"].endswith("role/me")
    assert monitor.registered["aws:eks/accessPolicyAssociation:AccessPolicyAssociation k-me-admin"]["accessScope"] == {
        "type": "cluster"
    }


def test_two_clusters_at_once_keep_apart():
    states, monitor = construct({"a": arguments(tags={"of": "a"}), "b": arguments(tags={"of": "b"})})
    assert len(states) == 2
    for name in "ab":
        assert monitor.registered[f"aws:eks/cluster:Cluster {name}-eksCluster"]["tags"] == {
            "Name": f"{name}-eksCluster",
            "of": name,
        }


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        (
            {"publicAccessCidrs": ["203.0.113.0/24"], "endpointPublicAccess": False},
            "publicAccessCidrs can only be set when endpointPublicAccess is true",
        ),
        ({"authenticationMode": "IAM"}, "authenticationMode: IAM is none of CONFIG_MAP, API_AND_CONFIG_MAP, API"),
        (
            {"roleMappings": [{"roleArn": "a", "username": "b", "groups": []}]},
            "roleMappings: must be empty when authenticationMode is API; use accessEntries",
        ),
        (
            {"authenticationMode": None, "accessEntries": {"me": {"principalArn": "a"}}},
            "accessEntries: not supported when authenticationMode is not set; set it to API",
        ),
        ({"subnetIds": ["subnet-a"]}, "subnetIds excludes publicSubnetIds and privateSubnetIds: keep one way"),
        ({"nodeGroupOptions": {"gpu": True}, "minSize": 1}, "nodeGroupOptions excludes minSize: move them into it"),
        ({"versoin": "1.35"}, "versoin is no property that Cluster has there; did you mean 'version'?"),
        (
            {"vpcCniOptions": {"externalSnat": True, "cniExternalSnat": True}},
            "vpcCniOptions: cniExternalSnat and externalSnat exclude each other: keep one",
        ),
        (
            {"skipDefaultNodeGroup": False},
            "not simulated by the sandbox: the default node group of eks.Cluster (set skipDefaultNodeGroup and make the nodes as a node group of their own)",
        ),
        ({"fargate": True}, "not simulated by the sandbox: fargate of eks.Cluster"),
        ({"autoMode": {"enabled": True}}, "not simulated by the sandbox: autoMode of eks.Cluster"),
    ],
)
def test_each_refusal_is_one_line(changes: dict[str, Any], refusal: str):
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        construct({"k": arguments(**changes)})
    assert fault.value.details() == refusal


def test_an_explicit_provider_needs_credential_options():
    reference = "urn:pulumi:dev::project::pulumi:providers:aws::mine::0123"
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        construct({"k": arguments()}, providers={"aws": reference})
    assert (
        fault.value.details()
        == "an explicit AWS provider needs its credentials in providerCredentialOpts too, or the kubeconfig names none"
    )


def test_an_unknown_decision_is_left_to_up():
    _, monitor = construct({"k": arguments(endpointPublicAccess=UNKNOWN, version=UNKNOWN)})
    assert monitor.registered["aws:eks/cluster:Cluster k-eksCluster"]["version"] is UNKNOWN


def test_a_component_that_is_not_simulated_is_named():
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        construct({"k": {}}, kind="NodeGroupV2")
    assert (
        fault.value.details()
        == "eks:index:NodeGroupV2: the sandbox simulates eks:index:Cluster, eks:index:ManagedNodeGroup of pulumi-eks, and not this component"
    )


def node_group(**changes: Any) -> dict[str, Any]:
    return {
        "cluster": {"cluster": UNKNOWN},
        "nodeRoleArn": "arn:aws:iam::123456789012:role/nodes",
        "subnetIds": ["subnet-a"],
        "instanceTypes": ["p5.48xlarge"],
        "amiType": "AL2023_x86_64_NVIDIA",
        "scalingConfig": {"desiredSize": 2, "minSize": 2, "maxSize": 2},
        "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
        **changes,
    }


def test_a_plain_managed_node_group_is_one_resource():
    _, monitor = construct({"gpu": node_group(clusterName="k")}, kind="ManagedNodeGroup")
    assert monitor.registered["aws:eks/nodeGroup:NodeGroup gpu"] == {
        "amiType": "AL2023_x86_64_NVIDIA",
        "clusterName": "k",
        "instanceTypes": ["p5.48xlarge"],
        "nodeRoleArn": "arn:aws:iam::123456789012:role/nodes",
        "scalingConfig": {"desiredSize": 2, "maxSize": 2, "minSize": 2},
        "subnetIds": ["subnet-a"],
        "taints": [{"effect": "NO_SCHEDULE", "key": "nvidia.com/gpu", "value": "true"}],
        "version": UNKNOWN,
    }
    assert sorted(monitor.registered) == ["aws:eks/nodeGroup:NodeGroup gpu", "eks:index:ManagedNodeGroup gpu"]


def test_efa_support_needs_a_zone():
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        construct({"gpu": node_group(enableEfaSupport=True)}, kind="ManagedNodeGroup")
    assert fault.value.details() == "enableEfaSupport: placementGroupAvailabilityZone must be given with it"


def test_the_process_prints_its_port_and_ends_with_its_input():
    process = subprocess.Popen(
        [sys.executable, "-m", "sandbox.eks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    process.stdin.close()
    assert process.wait(timeout=20) == 0
