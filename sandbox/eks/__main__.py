"""Serves the eks stand-in: prints its port on stdout, ends on SIGTERM or when stdin closes (so it outlives nobody)."""

import asyncio
import os
import signal
import sys
import threading
from typing import Any

import grpc
import pulumi

from sandbox.eks.server import start


async def _main() -> None:
    server, port = await start()
    print(port, flush=True)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_report)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    threading.Thread(target=_await_end_of_input, args=(loop, ended), daemon=True).start()
    await ended.wait()
    await server.stop(grace=None)


def _await_end_of_input(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    # Past sys.stdin, whose lock a thread must not hold when the interpreter ends.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    loop.call_soon_threadsafe(ended.set)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # When one resource is refused the engine hangs up on the others; it has said why.
    if not isinstance(context.get("exception"), (grpc.RpcError, pulumi.RunError)):
        loop.default_exception_handler(context)


asyncio.run(_main())
