"""The server of Streamable HTTP behind another server of HTTP: heads and pieces of bodies in, responses out.

`HttpServer` wants whole requests and says what to respond at once. Here is what lies between it and a
carrier that reads and writes for it, such as an ASGI server: `HttpGateway` puts bodies together and
counts what the client has not taken. After every input or verb, in this order: `next_op` until None,
`next_event` until None, then re-arm the timer for `next_timeout`. Requests are answered through
`HttpGateway.server`.

What a client does, and what comes of it, beyond what `HttpServer` says:

=============================================  =================================================
its body is not wanted                         as `HttpServer.head_received` says, at once
it sends a body while there are too many       503
its body is too large                          413, as soon as it is
its body takes too long                        408
it leaves                                      its exchange is closed (`HttpServer.exchange_closed`)
it does not read                               past a bound of bytes or of time the exchange is
                                               aborted, and taken for closed
=============================================  =================================================

Specification: RFC 9110, section 15.5 (client errors); RFC 9112, section 9.6 (tear-down); 2026-07-28,
basic/transports/streamable-http.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

import attrs

from ..clock import Deadlines, earliest
from ..errors import LocalProtocolError
from ..events import Event, LimitHit
from .exchange import (
    AbortExchange,
    EndResponse,
    ExchangeId,
    Headers,
    HttpRequest,
    SendBody,
    ServerExchangeOp,
    StartResponse,
    header,
)
from .responses import RETRY_AFTER
from .server import HttpServer

GatewayOp: TypeAlias = ServerExchangeOp | AbortExchange

_BODY: Final = "body_timeout"
_STALL: Final = "stall_timeout"
_CLOSE: Final[Headers] = (("connection", "close"),)


@attrs.frozen(kw_only=True)
class GatewayPolicy:
    """How many bodies are read at once, and how long a client may be slow, in seconds.

    Raises LocalProtocolError for a value that is not positive.
    """

    max_bodies: int = 1000
    """Bodies being read at once: as many as there may be connections to an `HttpListener`. Past it:
    503, and it is told."""

    body_timeout: float = 60.0
    """For a whole body, from the end of its head. Past it: 408, and it is told."""

    stall_timeout: float = 300.0
    """For a client that does not read to take any of what was written. Past it: the end, and it is told."""

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            if not value > 0:
                raise LocalProtocolError(f"{field.name} must be positive, not {value}")


DEFAULT_GATEWAY: Final = GatewayPolicy()


class _Exchange:
    """One request and its response, as far as the carrier has to do with them."""

    __slots__ = ("body", "ended", "id", "request", "unread", "unsent")

    def __init__(self, id: ExchangeId, request: HttpRequest) -> None:
        self.id: Final = id
        self.request: Final = request
        self.body: bytearray | None = None
        """What came of it; None when nothing more is wanted."""
        self.unread = _has_body(request)
        """Whether there is more of the body than was read."""
        self.unsent = 0
        """Bytes of the response that the client has not taken."""
        self.ended = False
        """Whether the response is complete."""


class HttpGateway:
    """`server` behind whatever carries exchanges. Whoever drives it chooses their ids."""

    def __init__(self, server: HttpServer, *, now: float, policy: GatewayPolicy = DEFAULT_GATEWAY) -> None:
        self.server: Final = server
        """Through this one requests are answered; what it says is told here."""
        self._policy = policy
        self._limits = server.limits
        self._now = now
        self._closing = False
        self._exchanges: dict[ExchangeId, _Exchange] = {}
        self._bodies = 0
        self._ops: deque[GatewayOp] = deque()
        self._events: deque[Event] = deque()
        self._timers: Deadlines[ExchangeId] = Deadlines()

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> GatewayOp | None:
        """The next thing to do, or None. Nothing is said of an exchange after its end or abort."""
        while (op := self.server.next_op()) is not None:
            self._take(op)
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else self.server.next_event()

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return earliest(self._timers, *self.server.deadlines)

    def wants_body(self, exchange: ExchangeId) -> bool:
        """Whether more of the body of this request is to be read."""
        e = self._exchanges.get(exchange)
        return e is not None and e.body is not None

    @property
    def finished(self) -> bool:
        """Whether it was closed, and nothing is left to do."""
        return self._closing and not (self._exchanges or self._ops)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name; those in bytes are ``buffered`` and ``unsent``."""
        inner, exchanges = self.server.stats(), self._exchanges.values()
        return {
            **inner,
            "ops": len(self._ops) + inner["ops"],
            "events": len(self._events) + inner["events"],
            "carried": len(self._exchanges),
            "bodies": self._bodies,
            "gateway_timers": len(self._timers),
            "buffered": sum(len(e.body) for e in exchanges if e.body is not None),
            "unsent": sum(e.unsent for e in exchanges),
        }

    # inputs --------------------------------------------------------------------------------------

    def head_received(self, exchange: ExchangeId, request: HttpRequest, now: float) -> None:
        """A request begins; the body of `request` is not looked at.

        Raises LocalProtocolError if `exchange` names one that is open.
        """
        if exchange in self._exchanges:
            raise LocalProtocolError(f"exchange {exchange} is open already")
        self._now = max(self._now, now)
        e = self._exchanges[exchange] = _Exchange(exchange, request)
        if self.server.head_received(exchange, request, self._now) is not None:
            return
        if self._bodies >= self._policy.max_bodies:
            self._limit_hit("max_bodies", f"a request was answered 503: {self._bodies} are being read")
            self._refuse(e, 503)
            return
        e.body = bytearray()
        self._bodies += 1
        self._timers.set(exchange, self._now + self._policy.body_timeout, _BODY)

    def body_received(self, exchange: ExchangeId, data: bytes, more: bool, now: float) -> None:
        """A piece of a body came; `more` says whether it is not the last one.

        Harmless for an exchange whose body is not wanted.
        """
        self._now = max(self._now, now)
        e = self._exchanges.get(exchange)
        if e is None or e.body is None:
            return
        body, bound = e.body, self._limits.max_body
        body += data
        e.unread = more
        if not more or (bound is not None and len(body) > bound):  # then the server refuses it
            self._stop_reading(e)
            whole = attrs.evolve(e.request, body=bytes(body))
            self.server.request_received(exchange, whole, self._now, screened=True)

    def written(self, exchange: ExchangeId, size: int, now: float) -> None:
        """The client, or what stands before it, took `size` more bytes of the response's body."""
        self._now = max(self._now, now)
        e = self._exchanges.get(exchange)
        if e is None:
            return
        e.unsent = max(0, e.unsent - size)
        if e.unsent:
            self._timers.set(exchange, self._now + self._policy.stall_timeout, _STALL)
        elif e.ended:
            self._forget(e)
        elif e.body is None:
            self._timers.clear(exchange)

    def closed(self, exchange: ExchangeId, now: float) -> None:
        """The client left, or the exchange ended otherwise. Harmless for one that has ended."""
        self._now = max(self._now, now)
        e = self._exchanges.get(exchange)
        if e is not None:
            self._forget(e)
            self.server.exchange_closed(exchange, self._now)

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._now = max(self._now, now)
        self.server.handle_timeout(self._now)
        for exchange, reason in list(self._timers.expired(self._now)):
            e, policy = self._exchanges[exchange], self._policy
            if reason == _BODY:
                text = f"{e.request!r} was answered 408: no whole body within {policy.body_timeout:g} s"
                self._limit_hit(reason, text)
                self._refuse(e, 408)
            else:
                text = f"{e.request!r} was aborted: nobody read for {policy.stall_timeout:g} s"
                self._abort(e, reason, text)

    # verbs ---------------------------------------------------------------------------------------

    def close(self, now: float) -> None:
        """End every session and every response. Harmless a second time."""
        self._now = max(self._now, now)
        self._closing = True
        self.server.close(self._now)
        for e in list(self._exchanges.values()):
            if e.body is not None:
                self._refuse(e, 503)

    # responses -----------------------------------------------------------------------------------

    def _take(self, op: ServerExchangeOp) -> None:
        """Pass on what the server says, unless nobody is there for it."""
        e = self._exchanges.get(op.exchange)
        if e is None:
            return
        match op:
            case StartResponse() if e.unread:
                op = attrs.evolve(op, headers=(*op.headers, *_leaving(e.request)))
            case SendBody():
                if e.unsent > self._limits.max_outgoing:
                    text = f"{e.request!r} was aborted: {e.unsent} bytes wait for somebody to read them"
                    self._abort(e, "max_outgoing", text)
                    return
                if not e.unsent:
                    self._timers.set(e.id, self._now + self._policy.stall_timeout, _STALL)
                e.unsent += len(op.data)
            case EndResponse():
                e.ended = True
                if not e.unsent:
                    self._forget(e)
        self._ops.append(op)

    def _refuse(self, e: _Exchange, status: int) -> None:
        """Answer a request that is not here, and want nothing more of it."""
        self._stop_reading(e)
        extra = RETRY_AFTER if status == 503 else ()
        leaving = _leaving(e.request) if e.unread else ()
        self._ops.append(StartResponse(e.id, status, (*extra, *leaving), 0))
        self._ops.append(EndResponse(e.id))
        self._forget(e)

    def _abort(self, e: _Exchange, limit: str, text: str) -> None:
        self._limit_hit(limit, text)
        self._forget(e)
        self._ops.append(AbortExchange(e.id))
        self.server.exchange_closed(e.id, self._now)

    def _stop_reading(self, e: _Exchange) -> None:
        if e.body is not None:
            e.body = None
            self._bodies -= 1
            self._timers.clear(e.id)

    def _forget(self, e: _Exchange) -> None:
        self._stop_reading(e)
        self._timers.clear(e.id)
        del self._exchanges[e.id]

    def _limit_hit(self, limit: str, detail: str) -> None:
        self._events.append(LimitHit(limit, detail))


def _has_body(request: HttpRequest) -> bool:
    """Whether a body comes with `request`, as far as its head tells."""
    length = header(request.headers, "content-length")
    return length not in (None, "0") or header(request.headers, "transfer-encoding") is not None


def _leaving(request: HttpRequest) -> Headers:
    """What goes with the answer to a request that is not read to its end."""
    return _CLOSE if request.http_version.startswith("1") else ()


__all__ = ["DEFAULT_GATEWAY", "GatewayOp", "GatewayPolicy", "HttpGateway"]
