"""The server of Streamable HTTP on its connections: bytes in, ops and events out.

`HttpServer` knows requests and responses; here each connection has an `Http1Server` that reads and
writes them. After every input or verb, in this order: `next_op` until None, `next_event` until None,
then re-arm the timer for `next_timeout`. Requests are answered through `HttpListener.server`.

A connection carries one request at a time; what is sent ahead waits. What a client does, and what
comes of it, beyond what the two layers below say:

=============================================  =================================================
it connects while there are too many           503, and the connection ends
its head takes too long                        the connection ends
its body takes too long                        408, and the connection ends
nothing, between requests                      the connection ends
it waits to be asked for a body                100, unless the head or the length is refused
its head is refused (`HttpServer.              the answer at once; a body is not read, and the
head_received`)                                connection ends
it closes its side, or the connection breaks,  its exchange is closed (`HttpServer.exchange_closed`)
before its response is complete
it does not read                               no request of it is read; past a bound of bytes or of
                                               time the connection ends
=============================================  =================================================

A client that closes its side is taken for gone. It may only have meant that it has nothing more to
ask; but closing is how a client of 2026-07-28 cancels, and most close all at once.

Specification: RFC 9112, section 9 (connection management); 2026-07-28,
basic/transports/streamable-http.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import attrs

from ..clock import Deadlines, earliest
from ..errors import LocalProtocolError
from ..events import Event, LimitHit, MessageIgnored
from ..ops import Close, CloseWrite, ConnectionId, Op, Write
from ..wire.http1 import (
    BodyData,
    BodyEnd,
    ConnectionClosed,
    FieldBlock,
    Http1Server,
    HttpFault,
    RequestHead,
)
from .exchange import EndResponse, ExchangeId, Headers, HttpRequest, SendBody, StartResponse
from .guard import LOOPBACK, Anything, GuardPolicy
from .legacy import SESSION_ID
from .server import HttpServer

_HEAD: Final = "head_timeout"
_BODY: Final = "body_timeout"
_IDLE: Final = "idle_timeout"
_LINGER: Final = "linger_timeout"
_STALL: Final = "stall_timeout"

_EVERYWHERE: Final = ("", "0.0.0.0", "::")

_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 10\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


@attrs.frozen(kw_only=True)
class ConnectionPolicy:
    """How many connections a server has, and how long each of them may be idle or slow, in seconds.

    Raises LocalProtocolError for a value that is not positive.
    """

    max_connections: int = 1000
    """Connections at once; a process commonly may have 1024 files open. Past it: 503, and it is told."""

    head_timeout: float = 30.0
    """For a whole head, from its first byte, or from the begin of the connection. Past it: the end."""

    body_timeout: float = 60.0
    """For a whole body, from the end of its head. Past it: 408."""

    idle_timeout: float = 75.0
    """For the next request to begin. Clients and proxies keep connections for 60 s or less, so that
    it is mostly they who end one: a request that crosses with the end is lost. Clients are told of it, in
    whole seconds. Past it: the end."""

    linger_timeout: float = 2.0
    """For a client that is still sending what nobody reads to take its answer. Past it: the end."""

    stall_timeout: float = 300.0
    """For a client that does not read to take what was written. Past it: the end, and it is told."""

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            if not value > 0:
                raise LocalProtocolError(f"{field.name} must be positive, not {value}")


DEFAULT_CONNECTIONS: Final = ConnectionPolicy()


class _Connection:
    """One connection and the request that is on it."""

    __slots__ = (
        "body",
        "codec",
        "eof",
        "exchange",
        "gone",
        "id",
        "lingering",
        "paused",
        "peer",
        "refused",
        "request",
        "served",
        "unsent",
        "waits_for",
    )

    def __init__(self, id: ConnectionId, peer: str, codec: Http1Server) -> None:
        self.id: Final = id
        self.peer: Final = peer
        self.codec: Final = codec
        self.request: HttpRequest | None = None
        """The one whose body is being read."""
        self.refused = False
        """Whether the request that is being answered was refused by its head, and has a body."""
        self.body: list[bytes] = []
        self.exchange: ExchangeId | None = None
        """The request that waits for its response, or for the rest of it."""
        self.served = False
        """Whether there was a request."""
        self.waits_for: str | None = None
        """For what its deadline is armed."""
        self.paused = False
        self.unsent = 0
        """Bytes written since it was paused."""
        self.eof = False
        self.gone = False
        """Whether the client left."""
        self.lingering = False

    def __repr__(self) -> str:
        return f"a connection from {self.peer}" if self.peer else f"connection {self.id}"


class HttpListener:
    """`server` on any number of connections. Starts with none.

    Whoever drives it chooses the ids of connections. A `Close` that comes while the writing on its
    connection is paused must not wait for what was written: the client does not read.
    """

    def __init__(
        self, server: HttpServer, *, now: float, policy: ConnectionPolicy = DEFAULT_CONNECTIONS
    ) -> None:
        self.server: Final = server
        """Through this one requests are answered; what it says is told here."""
        self._policy = policy
        self._limits = server.limits
        self._now = now
        self._closing = False
        self._conns: dict[ConnectionId, _Connection] = {}
        self._exchanges: dict[ExchangeId, _Connection] = {}
        self._last_exchange = 0
        self._ops: deque[Op] = deque()
        self._events: deque[Event] = deque()
        self._touched: dict[ConnectionId, _Connection] = {}
        """To be settled before the next op is told."""
        self._held: dict[ConnectionId, _Connection] = {}
        """To be read again as soon as requests are taken."""
        self._timers: Deadlines[ConnectionId] = Deadlines()
        self._stalls: Deadlines[ConnectionId] = Deadlines()
        self._deadlines: Final = (self._timers, self._stalls, *server.deadlines)

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> Op | None:
        """The next thing to do, or None. Writes to one connection that came together are one op."""
        if not self._ops:
            self._pump()
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else self.server.next_event()

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return earliest(*self._deadlines)

    def wants_data(self, conn: ConnectionId) -> bool:
        """False while reading more from `conn` would exceed a limit: then stop reading from it."""
        c = self._conns.get(conn)
        return c is None or (c.codec.wants_data and (c.codec.idle or not self._waits(c)))

    @property
    def takes_requests(self) -> bool:
        """False while events pile up: then `wants_data` may change for every connection."""
        return self.server.wants_data and len(self._events) < self._limits.max_buffered_events

    @property
    def finished(self) -> bool:
        """Whether it was closed, and nothing is left to do."""
        return self._closing and not (self._conns or self._ops)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name; those in bytes are ``buffered`` and ``unsent``."""
        inner, conns = self.server.stats(), self._conns.values()
        return {
            **inner,
            "ops": len(self._ops) + inner["ops"],
            "events": len(self._events) + inner["events"],
            "connections": len(self._conns),
            "answering": len(self._exchanges),
            "held": len(self._held),
            "connection_timers": len(self._timers) + len(self._stalls),
            "buffered": sum(c.codec.stats()["buffered"] + sum(map(len, c.body)) for c in conns),
            "unsent": sum(c.unsent for c in conns),
        }

    # inputs --------------------------------------------------------------------------------------

    def accepted(self, conn: ConnectionId, peer: str, now: float) -> None:
        """A client connected. `peer` says who in events: an address, or "".

        Raises LocalProtocolError if `conn` names a connection that is open.
        """
        if conn in self._conns:
            raise LocalProtocolError(f"connection {conn} is open already")
        self._now = max(self._now, now)
        if self._closing or len(self._conns) >= self._policy.max_connections:
            if not self._closing:
                self._ops.append(Write(conn, _TOO_MANY))
                detail = f"a connection was answered 503: {len(self._conns)} are open"
                self._events.append(LimitHit("max_connections", detail))
            self._ops.append(Close(conn))
            return
        codec = Http1Server(self._limits, keep=int(self._policy.idle_timeout))
        c = self._conns[conn] = _Connection(conn, peer, codec)
        self._touched[conn] = c

    def receive_data(self, conn: ConnectionId, data: bytes | bytearray, now: float) -> None:
        """Bytes came, in whatever pieces. Harmless for a connection that has ended."""
        self._now = max(self._now, now)
        c = self._conns.get(conn)
        if c is not None and not c.eof:
            c.codec.receive_data(data)
            self._read(c)

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The client sends nothing more. Harmless for a connection that has ended."""
        self._now = max(self._now, now)
        c = self._conns.get(conn)
        if c is not None and not c.eof:
            c.eof = True
            c.codec.receive_eof()
            self._read(c)

    def failed(self, conn: ConnectionId, error: str, now: float) -> None:
        """The connection broke or is closed. Harmless for one that has ended.

        What `error` says is told nobody: connections break all the time.
        """
        self._now = max(self._now, now)
        c = self._conns.get(conn)
        if c is not None:
            self._close(c)

    def pause_writing(self, conn: ConnectionId) -> None:
        """What was written piles up: the client does not read."""
        c = self._conns.get(conn)
        if c is not None and not c.paused:
            c.paused = True
            self._stalls.set(conn, self._now + self._policy.stall_timeout, _STALL)

    def resume_writing(self, conn: ConnectionId) -> None:
        """The client reads again."""
        c = self._conns.get(conn)
        if c is not None and c.paused:
            c.paused = False
            c.unsent = 0
            self._stalls.clear(conn)
            self._held[conn] = self._touched[conn] = c

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._now = max(self._now, now)
        self.server.handle_timeout(self._now)
        for conn, _ in list(self._stalls.expired(self._now)):
            c = self._conns[conn]
            self._limit_hit(_STALL, f"{c} was ended: it did not read for {self._policy.stall_timeout:g} s")
            self._close(c)
        for conn, reason in list(self._timers.expired(self._now)):
            if conn in self._conns:
                self._on_late(self._conns[conn], reason)

    # verbs ---------------------------------------------------------------------------------------

    def close(self, now: float) -> None:
        """End every session, response and connection, in good order. Harmless a second time."""
        self._now = max(self._now, now)
        self._closing = True
        self.server.close(self._now)
        self._touched.update(self._conns)
        for c in self._conns.values():
            if c.request is not None:
                self._refuse(c, 503)

    # reading -------------------------------------------------------------------------------------

    def _read(self, c: _Connection) -> None:
        """Take what was received, as far as a request may be taken now."""
        codec = c.codec
        self._touched[c.id] = c
        while True:
            if self._waits(c):
                if not c.paused:
                    self._held[c.id] = c
                return
            match codec.next_event():
                case None:
                    break
                case RequestHead() as head:
                    self._on_head(c, head)
                case BodyData(data=data):
                    c.body.append(data)
                case BodyEnd():
                    self._on_request(c)
                case HttpFault(fault=fault, detail=detail):
                    c.request = None
                    c.body.clear()
                    self._events.append(MessageIgnored(fault, f"{c}: {detail}"))
                case ConnectionClosed():
                    c.gone = True
                    self._leave(c)
        if c.request is not None and not c.body:
            codec.send_continue()

    def _waits(self, c: _Connection) -> bool:
        """Whether the next request of `c` has to wait, be it there or not."""
        return c.exchange is None and c.request is None and (c.paused or not self.takes_requests)

    def _on_head(self, c: _Connection, head: RequestHead) -> None:
        headers = head.lines or tuple(head.headers.items())
        request = HttpRequest(
            head.method, head.target, headers, http_version=head.http_version, fields=head.headers
        )
        exchange = self._last_exchange = self._last_exchange + 1
        refusal = self.server.head_received(exchange, request, self._now)
        if refusal is None:
            c.request = request
        else:
            c.refused = head.content_length != 0
            self._begin(c, exchange)

    def _on_request(self, c: _Connection) -> None:
        request, body = c.request, c.body
        if request is None:
            return  # it was refused
        request.body = body[0] if len(body) == 1 else b"".join(body)
        c.request = None
        body.clear()
        exchange = self._last_exchange = self._last_exchange + 1
        self.server.request_received(exchange, request, self._now, screened=True)
        self._begin(c, exchange)

    def _begin(self, c: _Connection, exchange: ExchangeId) -> None:
        """From now on `c` waits for the response to `exchange`."""
        c.waits_for = None
        self._timers.clear(c.id)
        c.served = True
        c.exchange = exchange
        self._exchanges[exchange] = c
        self._answer()

    def _leave(self, c: _Connection) -> None:
        """Nobody waits for the response any more."""
        exchange, c.exchange = c.exchange, None
        if exchange is not None:
            del self._exchanges[exchange]
            self.server.exchange_closed(exchange, self._now)

    # writing -------------------------------------------------------------------------------------

    def _answer(self) -> None:
        """Hand what the server says to the connections."""
        while (op := self.server.next_op()) is not None:
            c = self._exchanges.get(op.exchange)
            if c is None:
                continue
            self._touched[c.id] = c
            match op:
                case StartResponse():
                    block = _block(op.headers)
                    c.codec.start_response(op.status, fixed=block, length=op.length, close=c.refused)
                case SendBody():
                    c.codec.send_data(op.data)
                case EndResponse():
                    c.codec.send_end()
                    c.exchange = None
                    del self._exchanges[op.exchange]
                    if not c.codec.drained:
                        self._held[c.id] = c

    def _pump(self) -> None:
        self._answer()
        while True:
            if self._held and self.takes_requests:
                # those that ended a response, and those that had to wait for others
                held = list(self._held.values())
                self._held.clear()
                for c in held:
                    self._read(c)
            if not self._touched:
                return
            _, c = self._touched.popitem()
            self._settle(c)

    def _settle(self, c: _Connection) -> None:
        """Write what is there to be written on `c`, then see what it waits for."""
        if c.id not in self._conns:
            return  # it has ended
        codec = c.codec
        data = codec.data_to_send()
        if data:
            if c.paused:
                if c.unsent > self._limits.max_outgoing:
                    self._limit_hit("max_outgoing", f"{c} was ended: {c.unsent} bytes wait for it to read")
                    self._close(c)
                    return
                c.unsent += len(data)
            self._ops.append(Write(c.id, data))
        if c.exchange is None and (codec.should_close or c.gone or self._closing):
            self._end(c)
        else:
            self._arm(c)

    def _arm(self, c: _Connection) -> None:
        policy, reason = self._policy, None
        if c.exchange is not None or (self._waits(c) and not c.codec.idle):
            seconds = 0.0  # the client waits for us
        elif c.request is not None:
            reason, seconds = _BODY, policy.body_timeout
        elif c.served and c.codec.idle:
            reason, seconds = _IDLE, policy.idle_timeout
        else:
            reason, seconds = _HEAD, policy.head_timeout
        if reason != c.waits_for:
            c.waits_for = reason
            if reason is None:
                self._timers.clear(c.id)
            else:
                self._timers.set(c.id, self._now + seconds, reason)

    # ends ----------------------------------------------------------------------------------------

    def _end(self, c: _Connection) -> None:
        """All was written on `c`, though maybe not all has left."""
        if c.gone or self._closing:
            self._close(c)
        elif c.lingering:
            pass  # until its deadline
        elif c.paused:
            c.waits_for = None  # until it reads; for how long is bounded elsewhere
            self._timers.clear(c.id)
        elif c.codec.lingers:
            c.lingering = True
            c.waits_for = _LINGER
            self._ops.append(CloseWrite(c.id))
            self._timers.set(c.id, self._now + self._policy.linger_timeout, _LINGER)
        else:
            self._close(c)

    def _close(self, c: _Connection) -> None:
        del self._conns[c.id]
        self._held.pop(c.id, None)
        self._timers.clear(c.id)
        self._stalls.clear(c.id)
        self._leave(c)
        self._ops.append(Close(c.id))

    def _on_late(self, c: _Connection, reason: str) -> None:
        policy = self._policy
        if reason != _BODY:
            if reason == _HEAD and not c.codec.idle:
                self._limit_hit(reason, f"{c} was ended: no whole head within {policy.head_timeout:g} s")
            self._close(c)
            return
        self._limit_hit(reason, f"{c} was answered 408: no whole body within {policy.body_timeout:g} s")
        self._refuse(c, 408)

    def _refuse(self, c: _Connection, status: int) -> None:
        """Answer a request whose body is not here, and read nothing more."""
        c.request = None
        c.body.clear()
        c.codec.send_response(status, close=True)
        self._touched[c.id] = c

    def _limit_hit(self, limit: str, detail: str) -> None:
        self._events.append(LimitHit(limit, detail))


def policy_for(
    host: str, *, hosts: Sequence[str] | Anything = (), origins: Sequence[str] | Anything = ()
) -> GuardPolicy:
    """The policy of a server that listens at `host`: loopback names, and that name or address.

    `hosts` and `origins` are let in as well; they are those of `GuardPolicy`. Where it listens
    everywhere (``0.0.0.0``, ``::`` or nothing), by which names it is reached cannot be told, and they
    have to be listed. Raises LocalProtocolError for a name that is none.
    """
    GuardPolicy(hosts=hosts, origins=origins)  # refuses a text in the place of a list, too
    name = f"[{host.partition('%')[0]}]" if ":" in host else host  # which link it is, is nobody else's affair
    own = LOOPBACK if host in _EVERYWHERE else (*LOOPBACK, name)
    return GuardPolicy(
        hosts=hosts if isinstance(hosts, Anything) else (*own, *hosts),
        origins=origins if isinstance(origins, Anything) else (*own, *origins),
    )


def _block(headers: Headers) -> FieldBlock:
    if any(name == SESSION_ID for name, _ in headers):
        return FieldBlock(headers)  # a secret, and another one each time
    return _shared_block(tuple(headers))


@lru_cache(maxsize=32)
def _shared_block(headers: Headers) -> FieldBlock:
    return FieldBlock(headers)
