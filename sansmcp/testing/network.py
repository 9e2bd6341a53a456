"""A network in memory: clients that connect, a server that listens, and whatever happens in between.

    net = Network(StreamListener(lines(app), now=0.0), app, seed=7, max_chunk=5, max_delay=0.2)
    client = net.add(SocketClient(engine, TcpAddress("server", 1), now=0.0))
    net.advance(1.0)
    call = net.call(engine.call_tool, "echo", {"text": "hi"})
    net.advance(1.0)
    print(net.end_of(call).result)

Any transport of this library can be at either end: its driver is this class. What is written is cut
into pieces, or joined; each piece takes its time. On one connection everything stays in order; between
connections it does not. A reader that wants no data lets the other side's writes pile up. A connection
can be cut, closed in one direction, or left unread. All of it depends on `seed` alone, and time moves only
by `advance`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, TypeVar

import attrs

from ..app import App
from ..context import Answers
from ..errors import LocalProtocolError, NetworkProblem
from ..events import Event, RequestFailed, ResultReady
from ..inline import InlineHandlers
from ..ops import Close, CloseWrite, Connect, ConnectionId, ConnectUnix, Op, StartTls, Write
from ..session.calls import Call
from .clock import Dice, VirtualClock

T = TypeVar("T")
E = TypeVar("E", bound=Event)
C = TypeVar("C", bound="ClientTransport")

Side = Literal["client", "server"]

_MAX_TURNS: Final = 200_000
_HIGH_WATER: Final = 64 * 1024
"""Bytes on their way in one direction, past which their writer is told to pause."""


class Transport(Protocol):
    """What both ends have in common."""

    def next_op(self) -> Op | None: ...
    def next_event(self) -> Event | None: ...
    def next_timeout(self) -> float | None: ...
    def handle_timeout(self, now: float) -> None: ...
    def receive_data(self, conn: ConnectionId, data: bytes, now: float) -> None: ...
    def receive_eof(self, conn: ConnectionId, now: float) -> None: ...


class ClientTransport(Transport, Protocol):
    """A client that connects by itself: `SocketClient`, `WebSocketClient`, `HttpConnector`."""

    def start(self, now: float) -> None: ...
    def opened(self, conn: ConnectionId, now: float) -> None: ...
    def failed(
        self, conn: ConnectionId, error: str, now: float, problem: NetworkProblem = NetworkProblem.LOST
    ) -> None: ...


class ServerTransport(Transport, Protocol):
    """A server of many connections: `StreamListener`, `HttpListener`."""

    def accepted(self, conn: ConnectionId, peer: str, now: float) -> None: ...
    def failed(self, conn: ConnectionId, error: str, now: float) -> None: ...


@attrs.define(eq=False)
class _Way:
    """One direction of a connection."""

    pieces: deque[tuple[float, bytes | None]] = attrs.field(factory=deque)
    """When each is there; None is the end."""
    last: float = 0.0
    size: int = 0
    paused: bool = False
    """Whether the writer was told to pause."""
    unread: bool = False
    """Whether the test keeps the reader from reading."""
    closed: bool = False


@attrs.define(eq=False)
class Link:
    """A connection: of which client, and its two names."""

    client: ClientTransport
    conn: ConnectionId
    """What the client calls it."""
    server_conn: ConnectionId
    up: _Way = attrs.field(factory=_Way)
    """From the client to the server."""
    down: _Way = attrs.field(factory=_Way)
    gone: bool = False


class Network:
    """Connects `server` with any number of clients, and answers its requests with `app`.

    `answers` is through what requests are answered: the server itself unless given. `max_chunk` is the
    largest piece in bytes, 0 for writes as they are; `max_delay` how long (seconds) a piece takes at most.
    With `refuse`, connections are refused, until it is set to False.
    """

    def __init__(
        self,
        server: Any,
        app: App | None = None,
        *,
        answers: Answers | None = None,
        clock: VirtualClock | None = None,
        seed: int = 0,
        max_chunk: int = 0,
        max_delay: float = 0.0,
        refuse: bool = False,
    ) -> None:
        self.server: ServerTransport = server
        self.clock = clock or VirtualClock()
        self.dice = Dice(seed)
        self.max_chunk = max_chunk
        self.max_delay = max_delay
        self.refuse = refuse
        self.clients: list[ClientTransport] = []
        self.links: list[Link] = []
        """Connections that are there, oldest first."""
        self.client_events: list[Event] = []
        self.server_events: list[Event] = []
        self._last_conn = 0
        self._handlers = (
            None
            if app is None
            else InlineHandlers(app, answers or server, entropy=self.dice.entropy, clock=self.clock.pair)
        )

    # use -----------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The time."""
        return self.clock.now

    def add(self, client: C, *, start: bool = True) -> C:
        """Add a client, and let it connect unless told not to."""
        self.clients.append(client)
        if start:
            client.start(self.now)
        self.run()
        return client

    def call(self, verb: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Use a verb of either side now, run, and return what the verb returned."""
        result = verb(*arguments, now=self.now, **options)
        self.run()
        return result

    def run(self) -> Network:
        """Do everything that happens now. Raises LocalProtocolError if there is no end to it."""
        for _ in range(_MAX_TURNS):
            moved = self._drain_server()
            for client in self.clients:
                moved |= self._drain_client(client)
            for link in list(self.links):
                moved |= self._deliver(link)
            if not moved:
                return self
        raise LocalProtocolError(f"no quiet after {_MAX_TURNS} turns")

    def advance(self, seconds: float) -> Network:
        """Let time pass, from one thing that happens to the next."""
        end = self.now + seconds
        self.run()
        for _ in range(_MAX_TURNS):
            due = [end, *self._dues()]
            self.clock.now = max(self.now, min(due))
            for end_point in (self.server, *self.clients):
                end_point.handle_timeout(self.now)
            self.run()
            if self.now >= end:
                return self
        raise LocalProtocolError(f"deadlines without end before {end:g} s")

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

    # faults --------------------------------------------------------------------------------------

    def cut(self, link: Link | None = None, error: str = "the network was cut") -> Network:
        """Break a connection, the newest unless given: what is on its way is lost, both ends are told."""
        link = self._pick(link)
        self._remove(link)
        link.client.failed(link.conn, error, self.now)
        self.server.failed(link.server_conn, error, self.now)
        return self.run()

    def half_close(self, side: Side, link: Link | None = None) -> Network:
        """Close what `side` writes, after what it wrote."""
        link = self._pick(link)
        self._send(link.up if side == "client" else link.down, None)
        return self.run()

    def hold(self, side: Side, link: Link | None = None) -> Network:
        """Keep `side` from reading, until `release`."""
        link = self._pick(link)
        (link.down if side == "client" else link.up).unread = True
        return self

    def release(self, side: Side, link: Link | None = None) -> Network:
        """Let `side` read again."""
        link = self._pick(link)
        (link.down if side == "client" else link.up).unread = False
        return self.run()

    # inside --------------------------------------------------------------------------------------

    def _pick(self, link: Link | None) -> Link:
        if link is not None:
            return link
        if not self.links:
            raise LocalProtocolError("there is no connection")
        return self.links[-1]

    def _dues(self) -> list[float]:
        ends = (self.server, *self.clients)
        found = [when for e in ends if (when := e.next_timeout()) is not None]
        for link in self.links:
            for way in (link.up, link.down):
                if way.pieces and not way.unread and way.pieces[0][0] > self.now:
                    found.append(way.pieces[0][0])  # noqa: PERF401
        return found

    def _drain_client(self, client: ClientTransport) -> bool:
        moved = False
        while (op := client.next_op()) is not None:
            moved = True
            link = self._find(client, op.conn)
            match op:
                case Connect() | ConnectUnix():
                    self._connect(client, op.conn)
                case StartTls():
                    client.opened(op.conn, self.now)
                case Write() if link is not None:
                    self._send(link.up, op.data)
                case CloseWrite() if link is not None:
                    self._send(link.up, None)
                case Close() if link is not None:
                    # what the other side wrote reaches nobody
                    link.gone = True
                    self._send(link.up, None)
                case _:
                    pass
        while (event := client.next_event()) is not None:
            moved = True
            self.client_events.append(event)
        return moved

    def _drain_server(self) -> bool:
        moved = False
        while (op := self.server.next_op()) is not None:
            moved = True
            link = next((x for x in self.links if x.server_conn == op.conn), None)
            match op:
                case Write() if link is not None:
                    self._send(link.down, op.data)
                case Close() | CloseWrite() if link is not None:
                    self._send(link.down, None)
                case _:
                    pass
        while (event := self.server.next_event()) is not None:
            moved = True
            self.server_events.append(event)
            if self._handlers is not None:
                self._handlers.handle(event, now=self.now)
        return moved

    def _connect(self, client: ClientTransport, conn: ConnectionId) -> None:
        if self.refuse:
            client.failed(conn, "connection refused", self.now, NetworkProblem.REFUSED)
            return
        self._last_conn += 1
        self.links.append(Link(client, conn, self._last_conn))
        self.server.accepted(self._last_conn, "client:1", self.now)
        client.opened(conn, self.now)

    def _find(self, client: ClientTransport, conn: ConnectionId) -> Link | None:
        return next((x for x in self.links if x.client is client and x.conn == conn), None)

    def _remove(self, link: Link) -> None:
        if link in self.links:
            self.links.remove(link)

    def _send(self, way: _Way, data: bytes | None) -> None:
        if way.closed:
            return
        way.closed = data is None
        for piece in [None] if data is None else self._cut_up(data):
            way.last = max(way.last, self.now + self.dice.fraction() * self.max_delay)
            way.pieces.append((way.last, piece))
            way.size += len(piece or b"")

    def _cut_up(self, data: bytes) -> list[bytes]:
        if not self.max_chunk:
            return [data]
        pieces, at = [], 0
        while at < len(data):
            size = 1 + self.dice.roll(self.max_chunk)
            pieces.append(data[at : at + size])
            at += size
        return pieces

    def _deliver(self, link: Link) -> bool:
        up = self._carry(link.up, self.server, link.server_conn, link.client, link.conn, dead=False)
        down = self._carry(link.down, link.client, link.conn, self.server, link.server_conn, dead=link.gone)
        if link.up.closed and link.down.closed and not (link.up.pieces or link.down.pieces):
            self._remove(link)
            self.server.failed(link.server_conn, "closed", self.now)
            link.client.failed(link.conn, "closed", self.now)
        return up or down

    def _carry(
        self,
        way: _Way,
        reader: Transport,
        conn: ConnectionId,
        writer: Transport,
        writer_conn: ConnectionId,
        *,
        dead: bool,
    ) -> bool:
        """Hand over what is due, one piece or several as one."""
        moved = False
        while way.pieces and way.pieces[0][0] <= self.now and (dead or not way.unread):
            if not dead and not _reads(reader, conn):
                break
            moved = True
            _, piece = way.pieces.popleft()
            if piece is None:
                if not dead:
                    reader.receive_eof(conn, self.now)
                continue
            # pieces that are there together may be read as one
            while self.max_chunk and self._is_next(way) and self.dice.roll(3) == 0:
                piece += way.pieces.popleft()[1] or b""
            way.size -= len(piece)
            if not dead:
                reader.receive_data(conn, piece, self.now)
        self._press(way, writer, writer_conn)
        return moved

    def _is_next(self, way: _Way) -> bool:
        return bool(way.pieces) and way.pieces[0][0] <= self.now and way.pieces[0][1] is not None

    @staticmethod
    def _press(way: _Way, writer: Transport, conn: ConnectionId) -> None:
        full = way.size > (0 if way.paused else _HIGH_WATER)
        if full is not way.paused:
            way.paused = full
            tell = getattr(writer, "pause_writing" if full else "resume_writing", None)
            if tell is not None:
                tell(conn)


def _reads(end: Any, conn: ConnectionId) -> bool:
    wants = end.wants_data
    return bool(wants(conn) if callable(wants) else wants)
