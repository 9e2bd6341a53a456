"""A client and a server whose bytes go to each other, in one thread, without an event loop.

    both = link(client, server, app)
    call = both.call(client.engine.call_tool, "echo", {"text": "hi"})
    result = both.end_of(call).result

Time stands still unless the test moves it, bytes travel when `MemoryLink.pump` is called, and the
link can cut them into pieces of any size or break. Handlers run in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from ..app import App
from ..errors import LocalProtocolError
from ..events import Event, RequestFailed, ResultReady
from ..inline import InlineHandlers
from ..line_client import LineClient
from ..line_server import LineServer
from ..ops import Close, Write
from ..session.calls import Call

T = TypeVar("T")
E = TypeVar("E", bound=Event)

Side = Literal["client", "server"]
CONN = 1
"""The name of the one connection, for both ends."""

_MAX_TURNS = 100_000


class MemoryLink:
    """Carries bytes between two transports, and keeps what each says.

    `app` answers the server's requests; without one they are left to the test, which finds them in
    `server_events`. `chunk` cuts everything that crosses into pieces of so many bytes. `trace`
    holds each write that crossed, with who sent it. `entropy` gives random bytes to whatever the
    handlers need them for.
    """

    def __init__(
        self,
        client: LineClient,
        server: LineServer,
        app: App | None = None,
        *,
        now: float = 0.0,
        chunk: int | None = None,
        entropy: Callable[[int], bytes] | None = None,
    ) -> None:
        if chunk is not None and chunk < 1:
            raise LocalProtocolError(f"chunk must be at least 1, got {chunk}")
        self.client = client
        self.server = server
        self.now = now
        self.chunk = chunk
        self.client_events: list[Event] = []
        self.server_events: list[Event] = []
        self.trace: list[tuple[Side, bytes]] = []
        self._handlers = None if app is None else InlineHandlers(app, server.engine, entropy=entropy)
        self._cut = False

    # use -----------------------------------------------------------------------------------------

    def open(self) -> MemoryLink:
        """Connect both ends, and let them talk until there is nothing more to say."""
        self.server.accepted(CONN, self.now)
        self.client.opened(CONN, self.now)
        return self.pump()

    def call(self, verb: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Use a verb of either side now, pump, and return what the verb returned."""
        result = verb(*arguments, now=self.now, **options)
        self.pump()
        return result

    def pump(self) -> MemoryLink:
        """Carry and answer until both ends are quiet.

        Raises LocalProtocolError when they never are, as two ends that answer each other's errors.
        """
        for _ in range(_MAX_TURNS):
            if not (self._drain_client() | self._drain_server()):
                return self
        raise LocalProtocolError(f"the two ends are not quiet after {_MAX_TURNS} turns")

    def advance(self, seconds: float) -> MemoryLink:
        """Let time pass, from deadline to deadline; what each causes is carried before the next."""
        end = self.now + seconds
        for _ in range(_MAX_TURNS):
            due = [t for t in (self.client.next_timeout(), self.server.next_timeout()) if t is not None]
            self.now = max(self.now, min([end, *due]))
            self.client.handle_timeout(self.now)
            self.server.handle_timeout(self.now)
            self.pump()
            if self.now >= end:
                return self
        raise LocalProtocolError(f"deadlines without end before {end:g} s")

    def cut(self, error: str = "the link was cut") -> MemoryLink:
        """Break the link: nothing crosses any more, and both ends are told."""
        self._cut = True
        self.client.failed(CONN, error, self.now)
        self.server.failed(CONN, error, self.now)
        return self.pump()

    def end_of(self, call: Call) -> ResultReady:
        """How `call` ended. Raises its error, or LocalProtocolError while it is open."""
        for event in self.client_events:
            if isinstance(event, (ResultReady, RequestFailed)) and event.call is call:
                if isinstance(event, RequestFailed):
                    raise event.error
                return event
        raise LocalProtocolError(f"{call!r} has not ended")

    def of(self, kind: type[E], side: Side = "client") -> list[E]:
        """What one side said, of one class of events."""
        events = self.client_events if side == "client" else self.server_events
        return [event for event in events if isinstance(event, kind)]

    # inside --------------------------------------------------------------------------------------

    def _drain_client(self) -> bool:
        moved = False
        while (op := self.client.next_op()) is not None:
            moved = True
            match op:
                case Write():
                    self._carry("client", op.data, self.server)
                case Close() if not self._cut:
                    self.server.receive_eof(CONN, self.now)
                case _:
                    pass
        while (event := self.client.next_event()) is not None:
            moved = True
            self.client_events.append(event)
        return moved

    def _drain_server(self) -> bool:
        moved = False
        while (op := self.server.next_op()) is not None:
            moved = True
            match op:
                case Write():
                    self._carry("server", op.data, self.client)
                case Close() if not self._cut:
                    self.client.receive_eof(CONN, self.now)
                case _:
                    pass
        while (event := self.server.next_event()) is not None:
            moved = True
            self.server_events.append(event)
            if self._handlers is not None:
                self._handlers.handle(event, now=self.now)
        return moved

    def _carry(self, sender: Side, data: bytes, receiver: LineClient | LineServer) -> None:
        if self._cut:
            return
        self.trace.append((sender, data))
        step = self.chunk or len(data)
        for start in range(0, len(data), step):
            receiver.receive_data(CONN, data[start : start + step], self.now)


def link(
    client: LineClient,
    server: LineServer,
    app: App | None = None,
    *,
    now: float = 0.0,
    chunk: int | None = None,
    entropy: Callable[[int], bytes] | None = None,
) -> MemoryLink:
    """Connect `client` and `server`, and pump until both are quiet. See `MemoryLink`."""
    return MemoryLink(client, server, app, now=now, chunk=chunk, entropy=entropy).open()
