"""The pack as the engine runs it: a process of its own, spoken to over the analyzer protocol.

Resource policies get inputs, stack policies get outputs. As in a first preview, every id is unknown, and so is every output
that the provider computes and the program does not set; which those are, pulumi_aws says by its own annotations.
"""

import os
import subprocess
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import pulumi
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, engine_pb2_grpc
from pulumi_aws import autoscaling, ec2, eks, vpc

PACK_FOLDER = Path(__file__).parents[2] / "policies"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The engine's sentinel for an unknown string; unknown lists and maps arrive as the same kind of text."""

SECRET_KEY = "4dabf18193072939515e22adb298388d"
"""Marks the envelope in which the engine sends a secret."""
_LEVELS = {analyzer_pb2.ADVISORY: "advisory", analyzer_pb2.MANDATORY: "mandatory"}
CLASSES: Mapping[str, Any] = {
    "aws:eks/nodeGroup:NodeGroup": eks.NodeGroup,
    "aws:eks/cluster:Cluster": eks.Cluster,
    "aws:ec2/subnet:Subnet": ec2.Subnet,
    "aws:ec2/launchTemplate:LaunchTemplate": ec2.LaunchTemplate,
    "aws:ec2/securityGroup:SecurityGroup": ec2.SecurityGroup,
    "aws:ec2/securityGroupRule:SecurityGroupRule": ec2.SecurityGroupRule,
    "aws:ec2/networkInterface:NetworkInterface": ec2.NetworkInterface,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": vpc.SecurityGroupIngressRule,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": vpc.SecurityGroupEgressRule,
    "aws:autoscaling/group:Group": autoscaling.Group,
}


def secret(value: object) -> dict[str, object]:
    """A secret as the engine sends it."""
    return {SECRET_KEY: "1b47061264138c4ac30d75fd1eb44270", "value": value}


@dataclass
class Resource:
    """One resource of a program: its inputs, and for each input that holds another's output, that other.

    An object ``in_future_cluster`` has no outputs yet: its kubeconfig is unknown, so the engine asks no provider.
    """

    type: str
    name: str
    props: dict[str, Any]
    sources: dict[str, list["Resource"]] = field(default_factory=dict)
    parent: "Resource | None" = None
    in_future_cluster: bool = False

    @property
    def urn(self) -> str:
        return f"urn:pulumi:dev::foreign::{self.type}::{self.name}"


@dataclass(frozen=True)
class Diagnostic:
    """One violation: which policy, at which level, blaming whom, with the message that follows the description."""

    policy: str
    level: str
    urn: str
    message: str


@cache
def computed(token: str) -> tuple[str, ...]:
    """Outputs that a provider fills in where the program sets nothing: those pulumi_aws does not call Optional."""
    names = ["id"] if token.startswith("aws:") else []
    for member in vars(CLASSES.get(token, object)).values():
        if isinstance(member, property) and member.fget is not None:
            (inner,) = typing.get_args(typing.get_type_hints(member.fget)["return"])
            if type(None) not in typing.get_args(inner):
                names.append(member.fget._pulumi_name)  # type: ignore[attr-defined]
    return tuple(names)


class _Engine(engine_pb2_grpc.EngineServicer):
    def Log(self, request: Any, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()


class Pack:
    """A running pack."""

    def __init__(self, folder: Path = PACK_FOLDER) -> None:
        self._engine = grpc.server(futures.ThreadPoolExecutor(2))
        engine_pb2_grpc.add_EngineServicer_to_server(_Engine(), self._engine)
        address = f"127.0.0.1:{self._engine.add_insecure_port('127.0.0.1:0')}"
        self._engine.start()
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "pulumi.policy", address, str(folder)],
            cwd=folder,
            env={
                **os.environ,
                "PULUMI_PROJECT": "foreign",
                "PULUMI_STACK": "dev",
                "PULUMI_DRY_RUN": "true",
                "PULUMI_ORGANIZATION": "organization",
                "PULUMI_CONFIG": "{}",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        port = self.process.stdout.readline().strip()
        assert port.isdigit(), f"the pack did not start, it said {port!r}"
        self._stub = analyzer_pb2_grpc.AnalyzerStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
        self.info = self._stub.GetAnalyzerInfo(empty_pb2.Empty())

    def configure(self, config: Mapping[str, Mapping[str, Any]]) -> None:
        """Configures policies by name; each keeps its own level."""
        levels = {policy.name: policy.enforcementLevel for policy in self.info.policies}
        request = analyzer_pb2.ConfigureAnalyzerRequest()
        for name, properties in config.items():
            struct = struct_pb2.Struct()
            json_format.ParseDict(dict(properties), struct)
            entry = analyzer_pb2.PolicyConfig(enforcementLevel=levels[name], properties=struct)
            request.policyConfig[name].CopyFrom(entry)
        self._stub.Configure(request)

    def preview(self, resources: Sequence[Resource], analyzed: bool = True) -> list[Diagnostic]:
        """All that the pack has to say in a first preview of a program with these resources.

        Without ``analyzed`` the resource policies are not asked, as where they are all switched off.
        """
        found: list[Diagnostic] = []
        for resource in resources if analyzed else ():
            message = self._message(analyzer_pb2.AnalyzeRequest, resource, resource.props)
            found += self._read(self._stub.Analyze(message).diagnostics, resource.urn)
        request = analyzer_pb2.AnalyzeStackRequest()
        for resource in resources:
            outputs = {**dict.fromkeys(computed(resource.type), UNKNOWN), **resource.props}
            if resource.in_future_cluster:
                outputs = {}
            message = self._message(analyzer_pb2.AnalyzerResource, resource, outputs)
            if resource.parent:
                message.parent = resource.parent.urn
            for name, sources in resource.sources.items():
                message.propertyDependencies[name].urns.extend(source.urn for source in sources)
            request.resources.append(message)
        return found + self._read(self._stub.AnalyzeStack(request).diagnostics, "")

    def not_applicable(self, resource: Resource) -> dict[str, str]:
        """Why which resource policies leave a resource alone."""
        response = self._stub.Analyze(self._message(analyzer_pb2.AnalyzeRequest, resource, resource.props))
        return {item.policy_name: item.reason for item in response.not_applicable}

    def close(self) -> None:
        """Ends the process."""
        self.process.terminate()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._engine.stop(0)

    @staticmethod
    def _message(kind: Any, resource: Resource, props: Mapping[str, Any]) -> Any:
        struct = struct_pb2.Struct()
        json_format.ParseDict(dict(props), struct)
        message = kind(type=resource.type, properties=struct, urn=resource.urn, name=resource.name)
        message.options.CopyFrom(analyzer_pb2.AnalyzerResourceOptions())
        return message

    def _read(self, diagnostics: Iterable[Any], urn: str) -> list[Diagnostic]:
        return [
            Diagnostic(
                item.policyName,
                _LEVELS[item.enforcementLevel],
                item.urn or urn,
                item.message.removeprefix(item.description).removeprefix("\n"),
            )
            for item in diagnostics
        ]


assert pulumi.runtime.rpc.UNKNOWN == UNKNOWN
