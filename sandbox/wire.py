"""Puts a stand-in on 127.0.0.1 for ``PULUMI_DEBUG_PROVIDERS``: Pulumi's provider protocol on one side, plain values on the other."""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from sandbox.calls import OnCall, Watcher
from sandbox.calls import reference as _ref
from sandbox.standin import UNKNOWN, CheckFailure, InitFailed, StandIn, StandInError

MAX_MESSAGE_BYTES: Final = 400 * 1024 * 1024
# What a call to the engine ends with once the engine gives up ("resource monitor shut down"): no fault of anybody's.
_ENGINE_ENDS: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})
# A call may last as long as AWS takes, and the engine has as many in flight as the graph allows.
_CALLS_AT_ONCE: Final = 128

# One sentinel per type of value; sdk/go/common/resource/plugin/rpc.go of pulumi/pulumi.
_UNKNOWN_ON_THE_WIRE: Final = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
_UNKNOWN_STRING: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# A secret is an object that carries this key and value; sdk/go/common/resource/sig of pulumi/pulumi.
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_NOTHING: Final = struct_pb2.Struct()
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"


def decode(value: Any) -> Any:
    """A protobuf value, list or struct as plain Python."""
    if isinstance(value, struct_pb2.Struct):
        if _is_secret(value):
            return decode(value.fields["value"])
        return {key: decode(member) for key, member in value.fields.items()}
    if isinstance(value, struct_pb2.ListValue):
        return [decode(member) for member in value.values]
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return decode(value.struct_value)
    if kind == "list_value":
        return decode(value.list_value)
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWN_ON_THE_WIRE else value.string_value
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    if kind == "bool_value":
        return value.bool_value
    return None


def encode(value: Mapping[str, Any]) -> struct_pb2.Struct:
    """Plain Python as a protobuf struct. Keys without a value (None) are left out, as the bridge does."""
    return struct_pb2.Struct(fields={key: _encode(member) for key, member in value.items() if member is not None})


def _encode(value: Any) -> struct_pb2.Value:
    if value is UNKNOWN:
        return struct_pb2.Value(string_value=_UNKNOWN_STRING)
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, (int, float)):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=encode(value))
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_encode(member) for member in value]))


def _is_secret(value: struct_pb2.Struct) -> bool:
    return _SIGNATURE in value.fields and value.fields[_SIGNATURE].string_value == _SECRET


def _sealed(given: struct_pb2.Struct, answer: struct_pb2.Struct) -> struct_pb2.Struct:
    """Marks as secret what was secret in the request; a stand-in sees and answers plain values."""
    for key, value in answer.fields.items():
        if key in given.fields:
            _seal(given.fields[key], value)
    return answer


def _seal(given: struct_pb2.Value, answer: struct_pb2.Value) -> None:
    kinds = given.WhichOneof("kind"), answer.WhichOneof("kind")
    if kinds[0] == "struct_value" and _is_secret(given.struct_value):
        plain = struct_pb2.Value()
        plain.CopyFrom(answer)
        envelope = struct_pb2.Struct(fields={_SIGNATURE: struct_pb2.Value(string_value=_SECRET), "value": plain})
        answer.struct_value.CopyFrom(envelope)
    elif kinds == ("struct_value", "struct_value"):
        _sealed(given.struct_value, answer.struct_value)
    elif kinds == ("list_value", "list_value"):
        for one, other in zip(given.list_value.values, answer.list_value.values, strict=False):
            _seal(one, other)


class _Servicer(provider_pb2_grpc.ResourceProviderServicer):
    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ProviderHandshakeResponse:
        # Resource references and outputs are left to the engine; secrets cannot be where a stand-in has components.
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def Attach(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self._stand_in.version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema="{}")

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        with _refusals(context):
            inputs = decode(request.news)
            settled = self._stand_in.settle_config(dict(inputs))
            kept = request.news if settled == inputs else _sealed(request.news, encode(settled))
            return provider_pb2.CheckResponse(inputs=kept, failures=_failures(self._stand_in.check_config(inputs)))

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        changed = decode(request.old_inputs) != decode(request.news)
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        )

    def Configure(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ConfigureResponse:
        with _refusals(context):
            self._stand_in.configure(decode(request.args))
            return provider_pb2.ConfigureResponse(supportsPreview=True, acceptSecrets=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        with _refusals(context):
            old = decode(request.olds) if request.HasField("olds") else None
            checked = self._stand_in.check(_ref(request), decode(request.news), old or None, request.randomSeed)
            return provider_pb2.CheckResponse(
                inputs=_sealed(request.news, encode(checked.inputs)), failures=_failures(checked.failures)
            )

    def Diff(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        with _refusals(context):
            old_inputs, news = decode(request.old_inputs), decode(request.news)
            found = self._stand_in.diff(_ref(request), request.id, old_inputs, decode(request.olds), news)
            ignored = set(request.ignoreChanges)
            changed = [path for path in found.changed if path not in ignored]
            kinds = provider_pb2.PropertyDiff
            detailed = {
                path: kinds(
                    kind=kinds.UPDATE_REPLACE if path in found.replaces else kinds.UPDATE,
                    inputDiff=True,
                )
                for path in changed
            }
            return provider_pb2.DiffResponse(
                changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE,
                diffs=sorted({path.partition(".")[0].partition("[")[0] for path in changed}),
                replaces=[path for path in found.replaces if path not in ignored],
                deleteBeforeReplace=found.delete_before_replace,
                detailedDiff=detailed,
                hasDetailedDiff=True,
            )

    def Create(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        with _refusals(context, request.properties):
            id, outputs = self._stand_in.create(_ref(request), decode(request.properties), request.preview)
            return provider_pb2.CreateResponse(id=id, properties=_sealed(request.properties, encode(outputs)))

    def Read(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        with _refusals(context, request.properties):
            found = self._stand_in.read(_ref(request), request.id, decode(request.inputs), decode(request.properties))
            if found is None:
                return provider_pb2.ReadResponse()
            id, inputs, outputs = found
            return provider_pb2.ReadResponse(
                id=id,
                inputs=_sealed(request.inputs, encode(inputs)),
                properties=_sealed(request.properties, encode(outputs)),
            )

    def Update(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        with _refusals(context, request.news):
            outputs = self._stand_in.update(
                _ref(request),
                request.id,
                decode(request.old_inputs),
                decode(request.olds),
                decode(request.news),
                request.preview,
            )
            return provider_pb2.UpdateResponse(properties=_sealed(request.news, encode(outputs)))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        with _refusals(context):
            self._stand_in.delete(_ref(request), request.id, decode(request.old_inputs), decode(request.properties))
            return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        with _refusals(context):
            # `return` is a word of Python's, so it cannot be written as a name.
            answer: dict[str, Any] = {"return": encode(self._stand_in.invoke(request.tok, decode(request.args)))}
            return provider_pb2.InvokeResponse(**answer)

    def Construct(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ConstructResponse:
        with _refusals(context):
            return self._stand_in.construct(request)


def _failures(failures: Sequence[CheckFailure]) -> list[provider_pb2.CheckFailure]:
    # A failure with a property makes the engine print that property's value, which may be a secret, or `{<nil>}`
    # where the path is nested: the path goes into the text instead, as the bridge does it.
    return [
        provider_pb2.CheckFailure(reason=f"{one.property}: {one.reason}" if one.property else one.reason)
        for one in failures
    ]


class _Status(NamedTuple):
    code: grpc.StatusCode
    details: str
    trailing_metadata: Sequence[tuple[str, bytes]]


def _init_failed(failure: InitFailed, given: struct_pb2.Struct) -> Any:
    """The status that google.rpc.Status travels in, with the resource as its detail."""
    detail = provider_pb2.ErrorResourceInitFailed(
        id=failure.id,
        properties=_sealed(given, encode(failure.outputs)),
        inputs=_sealed(given, encode(failure.inputs)),
        reasons=failure.reasons,
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(failure))
    status.details.add().Pack(detail)
    return _Status(grpc.StatusCode.UNKNOWN, str(failure), [("grpc-status-details-bin", status.SerializeToString())])


@contextmanager
def _refusals(context: grpc.ServicerContext, given: struct_pb2.Struct = _NOTHING) -> Iterator[None]:
    try:
        yield
    except InitFailed as failure:
        context.abort_with_status(_init_failed(failure, given))
    except StandInError as refusal:
        context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
    except Exception as fault:
        if isinstance(fault, grpc.RpcError) and isinstance(fault, grpc.Call) and fault.code() in _ENGINE_ENDS:
            context.abort(fault.code(), fault.details() or "the engine has ended")
        traceback.print_exc()
        context.abort(grpc.StatusCode.INTERNAL, f"the sandbox itself failed: {type(fault).__name__}: {fault}")


@dataclass(frozen=True)
class Server:
    """A running stand-in."""

    package: str
    port: int
    _grpc: grpc.Server

    def stop(self) -> None:
        """Ends the server at once."""
        self._grpc.stop(grace=None).wait()


def serve(stand_in: StandIn, on_call: OnCall | None = None) -> Server:
    """Starts a stand-in on a free port of 127.0.0.1; ``on_call`` hears of what it is asked to do."""
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=_CALLS_AT_ONCE),
        interceptors=[Watcher(on_call)],
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(_Servicer(stand_in), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return Server(stand_in.package, port, server)
