"""A Python language host for a ``pulumi`` that was built from its Go module.

An official CLI brings ``pulumi-language-python`` along and never starts this one; the registries hold no copy of it. This
host does the part of its work that a prepared environment needs: it runs programs and policy packs with Pythons that are
already installed (the sandbox's own, or the ``virtualenv`` that the project or pack names), and installs nothing.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

EXECUTOR_VARIABLE = "RAY_LLM_EKS_PYTHON_EXECUTOR"
VERSION_VARIABLE = "RAY_LLM_EKS_PULUMI_VERSION"

# What pulumi-language-python-exec exits with after it has shown an error that the user can act on.
_ALREADY_SHOWN = 32


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Serves pulumirpc.LanguageRuntime to the engine at ``engine_address``."""

    def __init__(self, engine_address: str, executor: Path) -> None:
        self._engine_address = engine_address
        self._executor = executor
        self._programs: list[subprocess.Popen[bytes]] = []

    def end_programs(self) -> None:
        """Ends what still runs."""
        for process in self._programs:
            _end(process)

    def Handshake(self, request: Any, context: Any) -> language_pb2.LanguageHandshakeResponse:
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=os.environ.get(VERSION_VARIABLE, ""))

    def GetRequiredPlugins(self, request: Any, context: Any) -> language_pb2.GetRequiredPluginsResponse:
        # The sandbox attaches its stand-ins itself; nothing is to be downloaded.
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: Any) -> language_pb2.GetRequiredPackagesResponse:
        return language_pb2.GetRequiredPackagesResponse()

    def InstallDependencies(self, request: Any, context: Any) -> Iterator[language_pb2.InstallDependenciesResponse]:
        return iter(())

    def About(self, request: Any, context: Any) -> language_pb2.AboutResponse:
        return language_pb2.AboutResponse(executable=sys.executable, version=sys.version.split()[0])

    def Run(self, request: Any, context: grpc.ServicerContext) -> language_pb2.RunResponse:
        entry = request.info.entry_point
        program = Path(request.info.program_directory, "" if entry in ("", ".") else entry)
        command = [
            _python(request.info),
            "-u",
            str(self._executor),
            *("--project", request.project),
            *("--stack", request.stack),
            *("--parallel", str(max(request.parallel, 1))),
            *("--dry_run", "true" if request.dryRun else "false"),
            *("--pwd", request.pwd),
            *("--monitor", request.monitor_address),
            *("--engine", self._engine_address),
            *("--organization", request.organization),
            *("--root_directory", request.info.root_directory),
            str(program),
        ]
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        # In a group of its own, as under the official host: the engine interrupts this host's whole group when a resource
        # is refused, and a program that sees that prints a traceback over the engine's message.
        process = subprocess.Popen(command, cwd=request.pwd, env=environment, start_new_session=True)
        self._programs.append(process)
        context.add_callback(lambda: _end(process))
        code = process.wait()
        if code == _ALREADY_SHOWN:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error="" if code == 0 else f"Program exited with non-zero exit code: {code}")

    def RunPlugin(self, request: Any, context: grpc.ServicerContext) -> Iterator[language_pb2.RunPluginResponse]:
        # A policy pack is started as a module of the SDK that loads the pack's folder; any other plugin is a program.
        is_pack = request.kind == "analyzer"
        folder = request.info.program_directory
        target = ["-m", "pulumi.policy", *request.args, folder] if is_pack else [folder, *request.args]
        process = subprocess.Popen(
            [_python(request.info), "-u", *target],
            cwd=folder if is_pack else request.pwd,
            env={**os.environ, **dict(pair.split("=", 1) for pair in request.env)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        context.add_callback(lambda: _end(process))
        for stream, chunk in _chunks(process):
            found: dict[str, Any] = {stream: chunk}
            yield language_pb2.RunPluginResponse(**found)
        yield language_pb2.RunPluginResponse(exitcode=process.wait())


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()


def _python(info: Any) -> str:
    options = json_format.MessageToDict(info.options)
    environment = options.get("virtualenv")
    if environment:
        candidate = Path(info.root_directory, environment, "bin", "python")
        if candidate.exists():
            return str(candidate)
    return sys.executable


def _chunks(process: "subprocess.Popen[bytes]") -> Iterator[tuple[str, bytes]]:
    """Both output streams of a process as they come, until both have ended."""
    found: queue.Queue[tuple[str, bytes]] = queue.Queue()

    def pump(stream: str, pipe: Any) -> None:
        while chunk := os.read(pipe.fileno(), 65536):
            found.put((stream, chunk))
        found.put((stream, b""))

    for stream, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
        threading.Thread(target=pump, args=(stream, pipe), daemon=True).start()
    open_streams = 2
    while open_streams:
        stream, chunk = found.get()
        if chunk:
            yield stream, chunk
        else:
            open_streams -= 1


def main() -> None:
    """Serves until the engine ends it; prints its port first, as the engine expects of a plugin."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    host = LanguageHost(sys.argv[-1], Path(os.environ[EXECUTOR_VARIABLE]))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()

    def leave(*_: object) -> None:
        host.end_programs()
        os._exit(0)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
