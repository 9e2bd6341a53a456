"""A server as a function: message in, reply out. For hosts that already have a request in hand.

Specification: 2026-07-28, basic/index (statelessness).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from .app import App
from .context import Context
from .errors import LocalProtocolError
from .events import RequestReceived, SendNotification, SendResponse
from .limits import SERVER_LIMITS, Limits
from .session.calls import IncomingRequest
from .wire.jsoncodec import JsonCodec

Reply = dict[str, Any] | list[dict[str, Any]] | None


class Responder:
    """One client of `app`, served without a loop: every handler is called and done at once.

    Modern messages are independent of each other; a legacy client keeps its session in the
    responder, so make one per client. `notifications` collects what handlers reported or logged.
    """

    def __init__(self, app: App, *, limits: Limits = SERVER_LIMITS, codec: JsonCodec | None = None) -> None:
        self._app = app
        self._engine = app.engine(now=0.0, limits=limits, codec=codec)
        self.notifications: list[dict[str, Any]] = []

    def handle(self, message: Mapping[str, Any] | bytes | str, *, now: float = 0.0) -> Reply:
        """Take one message; return the reply, or None when it gets none.

        Raises LocalProtocolError when the handler it needs is a coroutine function.
        """
        raw = message if isinstance(message, (bytes, bytearray, str)) else dict(message)
        self._engine.receive_message(raw, now=now)
        reply: Reply = None
        for event in self._engine.events():
            match event:
                case RequestReceived():
                    self._run(event.request, now)
                case SendResponse():
                    reply = event.message
                case SendNotification():
                    self.notifications.append(event.message)
                case _:
                    pass
        return reply

    def _run(self, request: IncomingRequest, now: float) -> None:
        context = Context(request, self._engine, lambda action: action(now))
        invocation = self._app.begin(self._engine, request, context, now=now)
        if invocation is None:
            return
        if inspect.iscoroutinefunction(invocation.function):
            error = LocalProtocolError(f"{request!r}: its handler is asynchronous; use a binding")
            invocation.fail(error, now=now)
            raise error
        try:
            value = invocation.function(*invocation.arguments, **invocation.keywords)
        except Exception as error:
            invocation.fail(error, now=now)
        else:
            invocation.finish(value, now=now)
