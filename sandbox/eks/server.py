"""The provider protocol around the eks components: Construct and Call, everything else as little as the engine needs."""

import sys
import traceback
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import grpc
import grpc.aio
import pulumi
from google.protobuf import empty_pb2
from pulumi.errors import InputPropertiesError, InputPropertyError
from pulumi.provider import CallResult, ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from sandbox.eks import cluster, managed_node_group
from sandbox.eks.arguments import GIVEN, plain
from sandbox.standin import StandInError
from sandbox.wire import MAX_MESSAGE_BYTES, decode

_COMPONENTS: Final = {
    "eks:index:Cluster": cluster.Cluster,
    "eks:index:ManagedNodeGroup": managed_node_group.ManagedNodeGroup,
}


class _Eks(Provider):
    def __init__(self) -> None:
        super().__init__(version("pulumi-eks"), "{}")

    def construct(
        self, name: str, resource_type: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        component = _COMPONENTS.get(resource_type)
        if component is None:
            known = ", ".join(sorted(_COMPONENTS))
            raise StandInError(f"{resource_type}: the sandbox simulates {known} of pulumi-eks, and not this component")
        made = component(name, inputs, options or pulumi.ResourceOptions())
        return ConstructResult(made.urn, made.state)

    def call(self, token: str, args: Mapping[str, Any]) -> CallResult:
        if token == "eks:index:Cluster/getKubeconfig":
            return CallResult({"result": cluster.kubeconfig_of(args)})
        raise StandInError(f"{token}: pulumi-eks has no such method")


class _Servicer(ProviderServicer):
    async def Handshake(self, request: Any, context: Any) -> provider_pb2.ProviderHandshakeResponse:
        self.engine_address = request.engine_address
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, accept_resources=True, accept_outputs=True)

    async def Attach(self, request: Any, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    async def Cancel(self, request: Any, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    async def CheckConfig(self, request: Any, context: Any) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: Any, context: Any) -> provider_pb2.DiffResponse:
        changes = provider_pb2.DiffResponse
        return changes(changes=changes.DIFF_NONE if request.news == request.old_inputs else changes.DIFF_SOME)

    async def Construct(self, request: provider_pb2.ConstructRequest, context: Any) -> provider_pb2.ConstructResponse:
        GIVEN.set(plain(decode(request.inputs)))
        try:
            return await self._construct(request, context)
        except (InputPropertyError, InputPropertiesError):
            raise
        except Exception as fault:
            await context.abort(grpc.StatusCode.UNKNOWN, _one_line(request.type, request.name, fault))
            raise

    async def Call(self, request: provider_pb2.CallRequest, context: Any) -> provider_pb2.CallResponse:
        try:
            return await self._call(request, context)
        except Exception as fault:
            await context.abort(grpc.StatusCode.UNKNOWN, _one_line(request.tok, "", fault))
            raise


async def start() -> tuple[grpc.aio.Server, int]:
    """Starts the stand-in on a free port of 127.0.0.1."""
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ]
    server = grpc.aio.server(options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(_Servicer(_Eks(), [], ""), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


def _one_line(subject: str, name: str, fault: Exception) -> str:
    if isinstance(fault, StandInError):
        return str(fault)
    if isinstance(fault, (pulumi.RunError, grpc.RpcError)):
        # The engine has reported the resource that failed; this says what it was a part of.
        return f"{subject} {name}: one of its resources was refused".strip()
    traceback.print_exception(fault, file=sys.stderr)
    return f"the sandbox itself failed in {subject}: {type(fault).__name__}: {fault}"
