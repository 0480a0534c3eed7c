"""Around a stand-in's calls: which connection asks, how long it will wait, and who else wants to know of the call."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import grpc

from sandbox.standin import ResourceRef

OnCall = Callable[[str, ResourceRef], None]
"""Called with ``create``, ``update``, ``delete`` or ``read`` and the resource, in the thread of the call, never in a preview.

It is told before anything happens, and the call goes on when it returns: a pause here is the time that AWS takes, and a
CLI that is killed here never hears of what AWS then does.
"""

_TOLD: Final = frozenset({"create", "update", "delete", "read"})


@dataclass(frozen=True)
class Call:
    """``connection`` tells one provider of the program from another (the engine dials once for each)."""

    connection: str = ""
    timeout_seconds: float = 0
    """From the resource's customTimeouts; 0 is the provider's own default."""


_NO_CALL: Final = Call()
CURRENT: Final[ContextVar[Call]] = ContextVar("the provider call being answered", default=_NO_CALL)


def reference(request: Any) -> ResourceRef:
    """Which resource a request of the provider protocol is about."""
    token, _, name = request.urn.rpartition("::")
    return ResourceRef(token=token.rpartition("::")[2].rpartition("$")[2], urn=request.urn, name=name)


class Watcher(grpc.ServerInterceptor):
    """Sets :data:`CURRENT` for each call, and tells ``on_call``."""

    def __init__(self, on_call: OnCall | None) -> None:
        self._on_call = on_call

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Wraps the handler of one method; streams pass unwatched."""
        handler = continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        operation = handler_call_details.method.rpartition("/")[2].lower()

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            CURRENT.set(Call(context.peer(), getattr(request, "timeout", 0) or 0))
            if self._on_call is not None and operation in _TOLD and not getattr(request, "preview", False):
                self._on_call(operation, reference(request))
            return handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )
