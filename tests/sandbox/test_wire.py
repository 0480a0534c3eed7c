"""The plumbing between plain values and Pulumi's provider protocol, over a real gRPC connection."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from sandbox.standin import (
    UNKNOWN,
    Checked,
    CheckFailure,
    Difference,
    ResourceRef,
    StandIn,
    StandInError,
    contains_unknown,
)
from sandbox.wire import decode, encode, serve

URN = "urn:pulumi:dev::shop::acme:index:Shop$aws:ec2/vpc:Vpc::main"


class Recorder(StandIn):
    """Answers with what it was asked, so that a test sees what crosses the wire."""

    package = "aws"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def configure(self, config: Any) -> None:
        self.seen.append(config)

    def check(self, ref: ResourceRef, inputs: Any, old_inputs: Any, random_seed: bytes) -> Checked:
        self.seen.append((ref, inputs, old_inputs, random_seed))
        failures = [CheckFailure("cidrBlock", "it is not a CIDR block")] if inputs.get("cidrBlock") == "x" else []
        return Checked({**inputs, "name": "main-1234567"}, failures)

    def diff(self, ref: ResourceRef, id: str, old_inputs: Any, old_outputs: Any, new_inputs: Any) -> Difference:
        changed = [key for key in new_inputs if new_inputs[key] != old_inputs.get(key)]
        return Difference(changed, [key for key in changed if key == "cidrBlock"], delete_before_replace=True)

    def create(self, ref: ResourceRef, inputs: Any, preview: bool) -> tuple[str, dict[str, Any]]:
        return "", {**inputs, "arn": UNKNOWN}

    def read(self, ref: ResourceRef, id: str, inputs: Any, outputs: Any) -> Any:
        return None if id == "vpc-gone" else (id, inputs, {"arn": "arn:aws:x"})

    def update(self, *arguments: Any) -> dict[str, Any]:
        raise ValueError("a fault of the stand-in itself")

    def delete(self, *arguments: Any) -> None:
        raise StandInError("DependencyViolation: vpc-1 has dependencies")

    def invoke(self, token: str, args: dict[str, Any]) -> dict[str, Any]:
        if "engine" in args:
            # What a call to an engine that has gone away ends with.
            with grpc.insecure_channel(args["engine"]) as channel:
                provider_pb2_grpc.ResourceProviderStub(channel).Invoke(provider_pb2.InvokeRequest(), timeout=5)
        return {"token": token, "args": args}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def stub(recorder: Recorder) -> Iterator[Any]:
    server = serve(recorder)
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)
    server.stop()


def test_values_cross_the_wire_unchanged() -> None:
    value = {"number": 3, "share": 0.5, "flag": True, "none in a list": [None, "x"], "deep": {"unknown": UNKNOWN}}
    assert decode(encode(value)) == value


def test_every_kind_of_unknown_is_the_one_sentinel() -> None:
    sentinels = ["1c4a061d-8072-4f0a-a4cb-0ff528b18fe7", "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2"]
    wire = struct_pb2.Struct()
    wire.update({str(index): sentinel for index, sentinel in enumerate(sentinels)})
    assert decode(wire) == {"0": UNKNOWN, "1": UNKNOWN}


def test_a_key_without_a_value_is_left_out() -> None:
    assert decode(encode({"gone": None, "kept": ""})) == {"kept": ""}


def test_an_unknown_is_found_at_any_depth() -> None:
    assert contains_unknown({"a": [{"b": UNKNOWN}]})
    assert not contains_unknown({"a": [{"b": "known"}]})


def test_an_unknown_refuses_to_be_a_decision() -> None:
    with pytest.raises(TypeError, match="an unknown value was used as a decision"):
        bool(UNKNOWN)


def test_check_passes_the_resource_and_its_failures(stub: Any, recorder: Recorder) -> None:
    answer = stub.Check(
        provider_pb2.CheckRequest(urn=URN, news=encode({"cidrBlock": "x"}), olds=encode({}), randomSeed=b"seed")
    )
    assert recorder.seen == [(ResourceRef("aws:ec2/vpc:Vpc", URN, "main"), {"cidrBlock": "x"}, None, b"seed")]
    assert decode(answer.inputs)["name"] == "main-1234567"
    assert [(one.property, one.reason) for one in answer.failures] == [("", "cidrBlock: it is not a CIDR block")]


def test_diff_tells_a_replacement_from_an_update(stub: Any) -> None:
    answer = stub.Diff(
        provider_pb2.DiffRequest(
            urn=URN,
            id="vpc-1",
            old_inputs=encode({"cidrBlock": "10.0.0.0/16", "tags": {"a": "b"}}),
            news=encode({"cidrBlock": "10.1.0.0/16", "tags": {"a": "c"}}),
        )
    )
    assert list(answer.replaces) == ["cidrBlock"]
    assert answer.deleteBeforeReplace
    assert answer.detailedDiff["cidrBlock"].kind == provider_pb2.PropertyDiff.UPDATE_REPLACE
    assert answer.detailedDiff["tags"].kind == provider_pb2.PropertyDiff.UPDATE


def test_ignored_changes_are_no_changes(stub: Any) -> None:
    answer = stub.Diff(
        provider_pb2.DiffRequest(urn=URN, id="vpc-1", news=encode({"tags": "new"}), ignoreChanges=["tags"])
    )
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_what_only_aws_knows_is_unknown_in_a_preview(stub: Any) -> None:
    answer = stub.Create(provider_pb2.CreateRequest(urn=URN, properties=encode({"cidrBlock": "x"}), preview=True))
    assert decode(answer.properties) == {"cidrBlock": "x", "arn": UNKNOWN}


def test_a_resource_that_is_gone_has_no_id(stub: Any) -> None:
    assert stub.Read(provider_pb2.ReadRequest(urn=URN, id="vpc-gone")).id == ""
    assert stub.Read(provider_pb2.ReadRequest(urn=URN, id="vpc-1")).id == "vpc-1"


def test_an_invoke_returns_the_answer(stub: Any) -> None:
    answer = stub.Invoke(provider_pb2.InvokeRequest(tok="aws:index/getRegion:getRegion", args=encode({"a": 1})))
    assert decode(getattr(answer, "return")) == {"token": "aws:index/getRegion:getRegion", "args": {"a": 1}}


def test_a_refusal_reaches_the_engine_as_one_line(stub: Any) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        stub.Delete(provider_pb2.DeleteRequest(urn=URN, id="vpc-1"))
    assert refusal.value.details() == "DependencyViolation: vpc-1 has dependencies"


def test_a_fault_of_the_stand_in_says_that_it_is_the_sandbox(stub: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(grpc.RpcError) as fault:
        stub.Update(provider_pb2.UpdateRequest(urn=URN, id="vpc-1"))
    assert fault.value.details() == "the sandbox itself failed: ValueError: a fault of the stand-in itself"


def test_an_engine_that_has_ended_is_no_fault_of_the_sandbox(stub: Any, capfd: pytest.CaptureFixture[str]) -> None:
    args = struct_pb2.Struct()
    args.update({"engine": "127.0.0.1:1"})
    with pytest.raises(grpc.RpcError) as ended:
        stub.Invoke(provider_pb2.InvokeRequest(tok="aws:x:y", args=args))
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert capfd.readouterr().err == ""


def test_a_component_that_it_does_not_have_is_refused_by_name(stub: Any) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        stub.Construct(provider_pb2.ConstructRequest(type="aws:x:Y"))
    assert refusal.value.details() == "the aws stand-in has no component aws:x:Y"


def test_it_names_the_version_that_the_sdk_asks_for(stub: Any) -> None:
    from importlib.metadata import version

    from google.protobuf import empty_pb2

    assert stub.GetPluginInfo(empty_pb2.Empty()).version == version("pulumi-aws")
