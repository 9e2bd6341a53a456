"""A server as a function: message in, reply out. For hosts that already have a request in hand.

Specification: 2026-07-28, basic/index (statelessness).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .app import App
from .context import Clock
from .errors import McpError
from .events import SendNotification, SendRequest, SendResponse
from .inline import InlineHandlers
from .limits import SERVER_LIMITS, Limits
from .wire.jsoncodec import JsonCodec

if TYPE_CHECKING:  # a responder need not have to do with HTTP
    from .http.mirrored import Mirrored

Reply = dict[str, Any] | list[dict[str, Any]] | None


class Responder:
    """One client of `app`, served without a loop: every handler is called at once.

    Modern messages are independent of each other; a legacy client keeps its session in the
    responder, so make one per client. `notifications` collects what handlers reported or logged,
    `questions` what they ask a legacy client: take them out and send them, and hand its answers to
    `handle`, which then returns the reply that was due.

    `entropy` gives random bytes, and `clock` tells the time of day: both are for the state that a
    modern client carries from one round to the next (`App`), which without them needs `state_keys`
    and is as old as ``now`` says.
    """

    def __init__(
        self,
        app: App,
        *,
        limits: Limits = SERVER_LIMITS,
        codec: JsonCodec | None = None,
        entropy: Callable[[int], bytes] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._app = app
        self._mirrored: Mirrored | None = None
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._engine = app.engine(now=0.0, limits=limits, codec=codec, check=self._check)
        self._handlers = InlineHandlers(app, self._engine, entropy=entropy, clock=clock)
        self.notifications: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []

    def handle(
        self,
        message: Mapping[str, Any] | bytes | str,
        headers: Iterable[tuple[str, str]] | None = None,
        *,
        now: float = 0.0,
    ) -> Reply:
        """Take one message; return the reply, or None when it gets none, or none yet.

        `headers` are those that it came with over HTTP: a modern request that says other than they is
        refused with -32020.

        Raises LocalProtocolError when the handler it needs is a coroutine that waits for something else
        than answers.
        """
        raw = message if isinstance(message, (bytes, bytearray, str)) else dict(message)
        self._headers = None if headers is None else tuple(headers)
        self._engine.receive_message(raw, now=now)
        reply: Reply = None
        failed = None
        for event in self._engine.events():
            match event:
                case SendResponse():
                    reply = event.message
                case SendNotification():
                    self.notifications.append(event.message)
                case SendRequest():
                    self.questions.append(event.message)
                case _:
                    failed = self._handlers.handle(event, now=now) or failed
        if failed is not None:
            raise failed
        return reply

    def _check(self, origin: Hashable, message: Mapping[str, Any]) -> McpError | None:
        if self._headers is None:
            return None
        if self._mirrored is None:
            from .http.mirrored import Mirrored

            self._mirrored = Mirrored(self._app.input_schema)
        return self._mirrored.check(self._headers, message)
