"""Runs a piece of program against a recording mock engine, as an update or as a first preview."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import pulumi
import pytest
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime import mocks, rpc, settings

from components import cluster, efa_node_group

PROJECT = "ray-llm-eks"
PARTITION_TOKEN = "aws:index/getPartition:getPartition"

Computed = Callable[[str, Mapping[str, Any]], dict[str, Any]]


def _nothing(name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _named(name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": inputs.get("name", f"{name}-0123456")}


def _arn(name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {**_named(name, inputs), "arn": f"arn:aws:::{name}"}


# What each kind of resource computes beside its inputs. A kind that is not here is refused: a test lists it on purpose.
COMPUTED: dict[str, Computed] = {
    "aws:cloudwatch/logGroup:LogGroup": _arn,
    "aws:ec2/eip:Eip": _nothing,
    "aws:ec2/internetGateway:InternetGateway": _nothing,
    "aws:ec2/launchTemplate:LaunchTemplate": lambda name, inputs: {**_arn(name, inputs), "latestVersion": 1},
    "aws:ec2/natGateway:NatGateway": _nothing,
    "aws:ec2/placementGroup:PlacementGroup": _named,
    "aws:ec2/route:Route": _nothing,
    "aws:ec2/routeTable:RouteTable": _nothing,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _nothing,
    "aws:ec2/securityGroup:SecurityGroup": _arn,
    "aws:ec2/subnet:Subnet": _nothing,
    "aws:ec2/vpc:Vpc": _nothing,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _nothing,
    "aws:eks/accessEntry:AccessEntry": _nothing,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _nothing,
    "aws:eks/addon:Addon": _nothing,
    "aws:eks/nodeGroup:NodeGroup": _arn,
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": _arn,
    "aws:iam/role:Role": _arn,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _nothing,
    "aws:kms/key:Key": _arn,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _nothing,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _nothing,
    "eks:index:Cluster": lambda name, inputs: {
        "clusterSecurityGroupId": "sg-not-the-one",
        "kubeconfigJson": '{"kind": "Config"}',
        "oidcProviderUrl": f"https://oidc.example/id/{name.removesuffix('-control-plane')}",
    },
    "kubernetes:core/v1:Namespace": _nothing,
    "kubernetes:core/v1:Secret": _nothing,
    "kubernetes:core/v1:ServiceAccount": _nothing,
    "kubernetes:helm.sh/v3:Release": _nothing,
    "kubernetes:networking.k8s.io/v1:NetworkPolicy": _nothing,
    "kubernetes:ray.io/v1:RayService": _nothing,
    "kubernetes:yaml/v2:ConfigGroup": _nothing,
    "pulumi:providers:kubernetes": _nothing,
}


@dataclass
class Resource:
    """One registration or read, as the engine would have received it."""

    typ: str
    name: str
    urn: str
    parent: str
    inputs: dict[str, Any]
    depends_on: frozenset[str]
    """Names of the resources it waits for, explicit and through inputs."""
    input_dependencies: dict[str, frozenset[str]]
    secret_inputs: frozenset[str]
    provider: str
    delete_before_replace: bool = False
    retain_on_delete: bool = False
    remote: bool = False
    create_timeout: str = ""
    replace_on_changes: tuple[str, ...] = ()
    read_id: str = ""


class InvokeRefused(grpc.RpcError):
    """A provider's refusal as the engine passes it on: the program may catch it."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return str(self)


@dataclass
class Recording(mocks.Mocks):
    """What a piece of program registered, invoked and logged."""

    preview: bool
    invokes: dict[str, Any]
    reads: dict[str, dict[str, Any]]
    resources: list[Resource] = field(default_factory=list)
    invoked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Component name -> the outputs it registered, secrets opened; unknown ones are `pulumi.UNKNOWN`."""
    secrets: dict[str, frozenset[str]] = field(default_factory=dict)
    """Component name -> which of its outputs are secret."""
    result: Any = None

    def listed(self) -> list[tuple[str, str]]:
        """Type and name of every resource, sorted."""
        return sorted((resource.typ, resource.name) for resource in self.resources)

    def of_type(self, typ: str) -> list[Resource]:
        return [resource for resource in self.resources if resource.typ == typ]

    def one(self, typ: str, name: str | None = None) -> Resource:
        """The only resource of a type, or of a type and name."""
        found = [resource for resource in self.of_type(typ) if name in (None, resource.name)]
        assert len(found) == 1, f"{len(found)} resources of {typ} {name or ''} among {self.listed()}"
        return found[0]

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        self.invoked.append((args.token, dict(args.args)))
        if args.token not in self.invokes:
            raise AssertionError(f"the test expects no invoke of {args.token}")
        answer = self.invokes[args.token]
        try:
            result: Any = answer(args.args) if callable(answer) else answer
            return result
        except LookupError as error:
            raise InvokeRefused(str(error)) from error

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.resource_id:
            if args.resource_id not in self.reads:
                raise AssertionError(f"resource '{args.resource_id}' does not exist")
            return args.resource_id, self.reads[args.resource_id]
        if args.typ.startswith(f"{PROJECT}:index:"):
            return "", dict(args.inputs)
        if args.typ not in COMPUTED:
            raise AssertionError(f"the test expects no resource of type {args.typ}")
        if self.preview:
            return "", dict(args.inputs)
        return f"{args.name}-id", {**args.inputs, **COMPUTED[args.typ](args.name, args.inputs)}


def _opened(properties: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Properties as plain values with their unknowns, and the names of those that were secret.

    A resource among them becomes its name: to build it anew would wait for an engine that is not there.
    """
    rest = Struct()
    rest.CopyFrom(properties)
    resources: dict[str, Any] = {}
    for key, value in properties.fields.items():
        members = value.struct_value.fields
        if rpc._special_sig_key in members and members[rpc._special_sig_key].string_value == rpc._special_resource_sig:
            resources[key] = members["urn"].string_value.rpartition("::")[2]
            del rest.fields[key]
    values = rpc.deserialize_properties(rest, keep_unknowns=True)
    secrets = frozenset(key for key, value in values.items() if rpc.is_rpc_secret(value))
    return {**resources, **{key: rpc.unwrap_rpc_secret(value) for key, value in values.items()}}, secrets


class _Monitor(mocks.MockMonitor):
    """A mock engine that keeps the whole request, not only what Pulumi hands to `Mocks`."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self._recording = recording

    def RegisterResource(self, request: Any) -> Any:
        response = super().RegisterResource(request)
        if request.type == "pulumi:pulumi:Stack":
            return response
        self._record(request, response.urn)
        if request.type == "eks:index:Cluster":
            response = self._with_control_plane(request, response)
        return response

    def ReadResource(self, request: Any) -> Any:
        response = super().ReadResource(request)
        self._record(request, response.urn, read_id=request.id)
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:
        name = request.urn.rpartition("::")[2]
        self._recording.outputs[name], self._recording.secrets[name] = _opened(request.outputs)
        return super().RegisterResourceOutputs(request)

    def _record(self, request: Any, urn: str, read_id: str = "") -> None:
        def names(urns: Any) -> frozenset[str]:
            return frozenset(one.rpartition("::")[2] for one in urns)

        read = bool(read_id)
        inputs, secrets = _opened(request.properties if read else request.object)
        self._recording.resources.append(
            Resource(
                typ=request.type,
                name=request.name,
                urn=urn,
                parent=request.parent.rpartition("::")[2],
                inputs=inputs,
                secret_inputs=secrets,
                depends_on=names(request.dependencies),
                input_dependencies={}
                if read
                else {key: names(value.urns) for key, value in request.propertyDependencies.items()},
                provider=request.provider,
                delete_before_replace=not read and request.deleteBeforeReplace,
                retain_on_delete=not read and request.retainOnDelete,
                remote=not read and request.remote,
                create_timeout="" if read else request.customTimeouts.create,
                replace_on_changes=() if read else tuple(request.replaceOnChanges),
                read_id=read_id,
            )
        )

    def _with_control_plane(self, request: Any, response: Any) -> Any:
        """Adds the aws.eks.Cluster that pulumi-eks makes and hands out as a resource reference."""
        name = f"{request.name}-eksCluster"
        urn = self.make_urn(response.urn, "aws:eks/cluster:Cluster", name)
        state: dict[str, Any] = {}
        if not self._recording.preview:
            cluster = rpc.deserialize_properties(request.object)
            state = {
                "name": cluster["name"],
                "arn": f"arn:aws:::cluster/{name}",
                "endpoint": "https://cluster.example",
                "vpcConfig": {"clusterSecurityGroupId": "sg-eks-own", "subnetIds": cluster["privateSubnetIds"]},
            }
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(
            urn, "" if self._recording.preview else name, state
        )
        response.object["eksCluster"] = {
            rpc._special_sig_key: rpc._special_resource_sig,
            "urn": urn,
            "id": self.resources[urn].id,
        }
        return response


Deploy = Callable[..., Recording]


def _refuse(error: Exception) -> None:
    raise error


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deploy]:
    """Runs a function as a Pulumi program; see `run` for its arguments."""

    def run(
        program: Callable[[], Any],
        *,
        preview: bool = False,
        stack: str = "dev",
        invokes: Mapping[str, Any] | None = None,
        reads: Mapping[str, dict[str, Any]] | None = None,
    ) -> Recording:
        """Runs ``program`` and returns what it did.

        Args:
            program: Makes the resources; its return value is kept as `Recording.result`.
            preview: As a first preview: every computed output is unknown.
            stack: Name of the stack.
            invokes: Token -> answer, or a function of the arguments that raises LookupError where the provider would
                refuse. Any other invoke is an error.
            reads: Id -> state of what exists already. Any other id does not exist.
        """
        answers = {PARTITION_TOKEN: {"partition": "aws", "dnsSuffix": "amazonaws.com"}, **(invokes or {})}
        recording = Recording(preview=preview, invokes=answers, reads=dict(reads or {}))
        mocks.set_mocks(recording, project=PROJECT, stack=stack, preview=preview, monitor=_Monitor(recording))

        @pulumi.runtime.test
        def body() -> None:
            recording.result = program()

        body()
        return recording

    # A program that ends in an apply would take the test's event loop with it.
    for module in (cluster, efa_node_group):
        monkeypatch.setattr(module, "end_program", _refuse)
    # Pulumi's test runner takes the thread's loop, which any asyncio.run before it has closed and taken away.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield run
    settings.reset_options()
    loop.close()
