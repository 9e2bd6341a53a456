"""A client of Streamable HTTP on its connections: bytes in, ops and events out.

`HttpClient` knows requests and responses; here each connection has an `Http1Client` that writes and
reads them, and a `Pool` decides which connection carries what. After every input or verb, in this
order: `next_op` until None, `next_event` until None, then re-arm the timer for `next_timeout`. The
verbs for calls are the engine's.

    connector = HttpConnector(HttpClient(engine, "https://example.com/mcp", now=clock()), now=clock())
    connector.start(clock())
    while (op := connector.next_op()) is not None:
        match op:
            case Connect(conn, host, port, tls): ...  # then opened or failed
            case StartTls(conn, host): ...            # behind a proxy: then opened or failed
            case Write(conn, data): ...
            case Close(conn): ...

What a server does, and what comes of it, beyond what the two layers below say:

=============================================  =================================================
it ends a connection that is idle              the connection is forgotten
it ends one on which a request was just sent,  the request is sent once more, on a new connection,
after others, before a byte of its response    if it is `repeatable`: most likely it crossed with the end
the connection ends at any other time          the exchange fails (`NetworkProblem.LOST`)
it breaks HTTP/1.1                             the exchange fails with the fault; the connection ends
it sends what nobody asked for                 the connection ends, and it is told
=============================================  =================================================

Specification: RFC 9112, section 9 (connection management); RFC 9110, section 9.3.6 (CONNECT);
2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final

import attrs

from ..auth.addresses import reach_of
from ..errors import HttpFailure, NetworkFailure, NetworkProblem, PeerFault
from ..events import DeviationTolerated, Event, LimitHit, MessageIgnored
from ..ops import Close, Connect, ConnectionId, Op, StartTls, Write
from ..wire.http1 import (
    BodyData,
    BodyEnd,
    ConnectionClosed,
    Http1Client,
    HttpFault,
    ResponseHead,
)
from .client import HttpClient
from .exchange import (
    EVENT_STREAM,
    AbortExchange,
    ExchangeId,
    HttpRequest,
    StartExchange,
    StartFetch,
    media_type,
)
from .place import MAX_PLACES, Place, credentials, elsewhere
from .pool import CONNECT, DEFAULT_POOL, Carry, Dial, Drop, PoolPolicy, Refuse
from .proxy import Proxy
from .url import Origin, Url

if TYPE_CHECKING:
    from ..auth.client import AuthorizedClient

STALE_WITHIN: Final = 2.0
"""Seconds within which a connection that was kept must end for it to be believed that the end crossed
with the request. A server that takes longer has most likely begun with the request; one that does not
may have, too, so that only what may be carried out twice is sent again."""

_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "DELETE"})
"""The methods of HTTP whose requests may always be sent again."""

_KEEP: Final = re.compile(r"(?:^|[\s,;])timeout=(\d{1,6})\b", re.IGNORECASE)
_KEEP_MARGIN: Final = 1.0
"""Seconds before the server's own time at which an idle connection is not used any more."""

_HINTS: Final = {
    NetworkProblem.NAME: "the name has no address: check the host in the URL",
    NetworkProblem.REFUSED: "nobody listens there: is the server running, and is the port right?",
    NetworkProblem.UNREACHABLE: "there is no way to it: check the network",
    NetworkProblem.TLS: "there is no secure connection: check the certificate, or what is given as `ssl`",
}
_RETRYABLE: Final = (NetworkProblem.REFUSED, NetworkProblem.UNREACHABLE, NetworkProblem.LOST)


@attrs.define(eq=False)
class _Job:
    """One exchange, from when it was asked for until it is over."""

    place: Place
    request: HttpRequest
    conn: ConnectionId | None = None
    sent_at: float = 0.0
    repeated: bool = False
    """Whether it was sent a second time."""

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent a second time when nobody knows whether the first one was carried out."""
        return self.request.repeatable or self.request.method in _IDEMPOTENT


class _Connection:
    """One connection and the exchange that is on it."""

    __slots__ = ("codec", "exchange", "id", "keep", "keeps", "open", "place", "reused", "tunnel")

    def __init__(self, id: ConnectionId, place: Place, codec: Http1Client) -> None:
        self.id: Final = id
        self.place: Final = place
        self.codec = codec
        self.exchange: ExchangeId | None = None
        self.open = False
        """Whether requests can be sent."""
        self.tunnel = False
        """Whether the proxy was asked to let it through."""
        self.reused = False
        self.keep: float | None = None
        """How long the server keeps it idle, as far as it said."""
        self.keeps = False
        """Whether it said that it keeps it."""


class HttpConnector:
    """`client` on any number of connections. Starts with none.

    `pool` bounds them. `proxy` is where they go instead of to the server itself; see `proxy_for`. For
    what an `AuthorizedClient` asks of others, `proxy_of` says by which proxy each of them is reached.
    Whoever drives it may carry out a `Close` without waiting for what was written: nobody wants the
    rest of that request.
    """

    def __init__(
        self,
        client: HttpClient | AuthorizedClient,
        *,
        now: float,
        pool: PoolPolicy = DEFAULT_POOL,
        proxy: Proxy | None = None,
        proxy_of: Callable[[Url], Proxy | None] = lambda _: None,
    ) -> None:
        self.client: Final = client
        self.engine: Final = client.engine
        """Through this one calls are made; what it says is told here."""
        url = client.url
        self._now = now
        self._limits = client.engine.limits
        self._numbers = count(1)
        self._home = Place(url, pool, proxy, self._numbers)
        """The server's own."""
        self._proxy_of = proxy_of
        self._away: dict[tuple[Origin, bool], Place] = {}
        """Others, as long as something is asked of them or they have a connection; also by whether they
        are guarded."""
        self._reach = reach_of(url.host)
        """How far inside the server is, as far as that is known."""
        self._conns: dict[ConnectionId, _Connection] = {}
        self._jobs: dict[ExchangeId, _Job] = {}
        self._ops: deque[Op] = deque()
        self._events: deque[Event] = deque()
        self._waited = False
        """Whether it was told that exchanges wait for room: once is enough."""
        self._aborted = False

    def __repr__(self) -> str:
        through = "" if self._home.proxy is None else f" through {self._home.proxy}"
        return f"<HttpConnector {self.client.url}{through}, {len(self._conns)} connections>"

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> Op | None:
        """The next thing to do, or None."""
        if not self._ops:
            self._pump()
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else self.client.next_event()

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        a, b = self.client.next_timeout(), self._home.pool.next_timeout()
        first = b if a is None else a if b is None else min(a, b)
        for place in self._away.values():
            when = place.pool.next_timeout()
            first = when if first is None or (when is not None and when < first) else first
        return first

    def wants_data(self, conn: ConnectionId) -> bool:
        """False while reading more from `conn` would exceed a limit: then stop reading from it."""
        c = self._conns.get(conn)
        return c is None or c.exchange is None or self.takes_data

    @property
    def takes_data(self) -> bool:
        """False while events pile up: then `wants_data` may change for every connection."""
        return self.client.wants_data and len(self._events) < self._limits.max_buffered_events

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: the conversation has ended, and every connection with it."""
        return self.client.finished and not self._conns and not self._ops

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name; in `buffered`, bytes."""
        inner = self.client.stats()
        held = sum(c.codec.stats()["buffered"] for c in self._conns.values())
        return {
            **inner,
            **self._home.pool.stats(),
            "other_places": len(self._away),
            "connections": len(self._conns),
            "jobs": len(self._jobs),
            "buffered": inner["buffered"] + held,
            "ops": len(self._ops) + inner["ops"],
            "events": len(self._events) + inner["events"],
        }

    # verbs and time ------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Connect. Raises LocalProtocolError when that was done before."""
        self._tick(now)
        self.client.start(self._now)

    def close(self, now: float) -> None:
        """End the conversation and every connection, as `HttpClient.close` does. Harmless twice."""
        self._tick(now)
        self.client.close(self._now)

    def abort(self, now: float) -> None:
        """End everything at once: what is under way is lost. Harmless twice."""
        self._aborted = True
        self.close(now)

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._tick(now)
        self.client.handle_timeout(self._now)
        for place in (self._home, *self._away.values()):
            place.pool.handle_timeout(self._now)
            self._decide(place)
        self._leave()

    # inputs --------------------------------------------------------------------------------------

    def opened(self, conn: ConnectionId, now: float, peer: str | None = None) -> None:
        """A connection is there, or speaks TLS now. Harmless for one that was closed meanwhile.

        `peer` is the address to which it leads, as a number, where that is known.
        """
        self._tick(now)
        c = self._conns.get(conn)
        if c is None or c.open:
            return
        place = c.place
        if peer is not None and place is self._home and place.proxy is None:
            self._reach = max(self._reach, reach_of(peer))
        elif peer is not None and place.guarded and reach_of(peer) > self._reach:
            text = f"{place.host} is at {peer}, where only a server within the same network may send to"
            self._close(c, NetworkFailure(f"{text} (AddressPolicy.private)", NetworkProblem.FORBIDDEN))
            return
        if place.proxy is not None and place.tls and not c.tunnel:
            c.tunnel = True
            where = place.authority
            c.codec.send_request("CONNECT", where, [("host", where), *credentials(place.proxy)])
            self._write(c)
        else:
            c.open = True
            place.pool.opened(conn, self._now)
            self._decide(place)

    def failed(
        self,
        conn: ConnectionId,
        error: str,
        now: float,
        problem: NetworkProblem = NetworkProblem.LOST,
    ) -> None:
        """A connection could not be made, or broke. Harmless for one that has ended.

        `error` says why, for people; `problem` is what kind that is, as far as one knows.
        """
        self._tick(now)
        c = self._conns.pop(conn, None)
        if c is not None:
            c.place.connections -= 1
            self._lost(c, self._end_of(c, error, problem))

    def receive_data(self, conn: ConnectionId, data: bytes | bytearray, now: float) -> None:
        """Bytes came, in whatever pieces. Harmless for a connection that has ended."""
        self._tick(now)
        c = self._conns.get(conn)
        if c is not None:
            c.codec.receive_data(data)
            self._read(c)

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The server sends nothing more. Harmless for a connection that has ended."""
        self._tick(now)
        c = self._conns.get(conn)
        if c is not None:
            c.codec.receive_eof()
            self._read(c)

    # reading -------------------------------------------------------------------------------------

    def _read(self, c: _Connection) -> None:
        """Take what was received on `c`."""
        while c.id in self._conns and (event := c.codec.next_event()) is not None:
            exchange = c.exchange
            match event:
                case ResponseHead() if not c.open:
                    self._on_proxy_head(c, event)
                case ResponseHead() if exchange is not None:
                    self._on_head(c, exchange, event)
                case BodyData(data=data) if exchange is not None:
                    self.client.response_data(exchange, data, self._now)
                case BodyEnd() if exchange is not None:
                    self._done(exchange)
                    c.exchange = None
                    self.client.response_ended(exchange, self._now)
                    if c.codec.reusable:
                        c.place.pool.freed(c.id, self._now, c.keep, keeps=c.keeps)
                        self._decide(c.place)
                    elif c.codec.should_close:
                        self._close(c)
                    # else something came after it, which is told next
                case HttpFault(fault=fault, detail=detail):
                    self._on_fault(c, fault, detail)
                case ConnectionClosed():
                    self._close(c, self._end_of(c, "it was ended"))
                case _:
                    pass

    def _on_head(self, c: _Connection, exchange: ExchangeId, head: ResponseHead) -> None:
        if head.status == 407 and c.place.prefix:
            self._close(c, self._proxy_refused(c.place, 407))
            return
        for fault in head.deviations:
            if self.engine.strict:
                self._on_fault(c, fault, "the head of the response is malformed")
                return
            self._events.append(DeviationTolerated(fault, "the head of a response was read all the same"))
        said = head.headers.get("keep-alive")
        seconds = None if said is None else _KEEP.search(said)
        c.keep = None if seconds is None else max(int(seconds[1]) - _KEEP_MARGIN, 0.0)
        c.keeps = said is not None or head.headers.get("connection", "").lower() == "keep-alive"
        if media_type(head.headers.get("content-type")) == EVENT_STREAM:
            c.codec.set_max_body(None)
            c.place.pool.streams(c.id, self._now)
            self._decide(c.place)
        self.client.response_started(exchange, head.status, head.headers.items(), self._now)

    def _on_fault(self, c: _Connection, fault: PeerFault, detail: str) -> None:
        if c.exchange is None and c.open:
            self._events.append(MessageIgnored(fault, f"on an idle connection: {detail}"))
        text = f"the response is no proper HTTP: {detail}"
        if fault is PeerFault.BODY_TOO_LARGE:
            text = f"the answer is larger than {self._limits.max_body} bytes (max_body)"
        if fault is PeerFault.TRUNCATED_HTTP or not c.open:
            self._close(c, self._end_of(c, detail if c.open else text))
        else:
            self._close(c, HttpFailure(text, fault=fault))

    # proxies -------------------------------------------------------------------------------------

    def _on_proxy_head(self, c: _Connection, head: ResponseHead) -> None:
        if not 200 <= head.status < 300:
            self._close(c, self._proxy_refused(c.place, head.status))
        elif c.codec.take_tunnel_data():
            text = f"the proxy {c.place.proxy} sent data of its own into the tunnel"
            self._close(c, NetworkFailure(text, NetworkProblem.PROXY))
        else:
            c.codec = Http1Client(self._limits)
            self._ops.append(StartTls(c.id, c.place.host))

    @staticmethod
    def _proxy_refused(place: Place, status: int) -> NetworkFailure:
        hint = "check the proxy's URL and whether it may be used for this host"
        if status == 407:
            hint = "it wants to know who asks: put user and password into the proxy's URL"
        text = f"the proxy {place.proxy} refused the connection to {place.host} with HTTP {status}: {hint}"
        return NetworkFailure(text, NetworkProblem.PROXY, status=status, retryable=status >= 500)

    # out -----------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Carry out what the client wants."""
        client = self.client
        while True:
            starts: dict[ExchangeId, tuple[Url | None, bool, HttpRequest]] = {}
            aborts: list[ExchangeId] = []
            while (op := client.next_op()) is not None:
                match op:
                    case StartExchange(exchange=exchange, request=request):
                        starts[exchange] = None, False, request
                    case StartFetch(exchange=exchange, url=url, request=request, guarded=guarded):
                        starts[exchange] = url, guarded, request
                    case AbortExchange(exchange=exchange):
                        if starts.pop(exchange, None) is None:
                            aborts.append(exchange)
            if self._aborted:
                aborts = [*self._jobs, *starts]
                starts.clear()
            if not starts and not aborts:
                break
            self._tick(self.engine.now)  # its verbs are called past this transport
            # Those that wait go first, so that nothing is opened for them in the place of others.
            for exchange in sorted(aborts, key=self._is_sent):
                self._abort(exchange)
                if self._aborted:
                    client.exchange_failed(exchange, "it was given up", self._now)
            for exchange, (where, guarded, request) in starts.items():
                place = self._place_of(where, guarded)
                if place is None:
                    text = f"{MAX_PLACES} other servers are asked already"
                    failure = NetworkFailure(text, NetworkProblem.NO_ROOM, retryable=True)
                    client.exchange_failed(exchange, failure, self._now)
                    continue
                job = self._jobs[exchange] = _Job(place, request)
                place.jobs += 1
                place.pool.ask(exchange, self._now, once=not job.repeatable)
                self._decide(place)
        if client.finished:
            for c in list(self._conns.values()):
                self._close(c)
        self._leave()

    def _place_of(self, url: Url | None, guarded: bool) -> Place | None:
        """Where `url` is, None: the server itself. None for one place too many."""
        if url is None or url.origin == self._home.origin:
            return self._home
        key = url.origin, guarded
        place = self._away.get(key)
        if place is None and len(self._away) < MAX_PLACES:
            policy, proxy = elsewhere(self._home.policy), self._proxy_of(url)
            place = self._away[key] = Place(url, policy, proxy, self._numbers, guarded=guarded)
        return place

    def _leave(self) -> None:
        """Forget places where nothing is wanted any more."""
        for key, place in list(self._away.items()):
            if not place.jobs and not place.connections:
                del self._away[key]

    def _done(self, exchange: ExchangeId) -> _Job | None:
        """Forget an exchange."""
        job = self._jobs.pop(exchange, None)
        if job is not None:
            job.place.jobs -= 1
        return job

    def _decide(self, place: Place) -> None:
        """Carry out what a pool decides, at once: what it knows must not become old."""
        while (decision := place.pool.next_decision()) is not None:
            match decision:
                case Dial(conn=conn):
                    self._dial(place, conn)
                case Carry(conn=conn, exchange=exchange, reused=reused):
                    self._carry(self._conns[conn], exchange, reused)
                case Drop(conn=conn, reason=reason, exchange=waiting):
                    self._drop(self._conns[conn], reason, waiting)
                case Refuse(exchange=exchange):
                    self._refuse(place, exchange)
        if place.pool.waits and not self._waited:
            self._waited = True
            limit = place.policy.max_requests
            detail = f"{limit} requests are without an answer: others wait until one of them has it"
            self._events.append(LimitHit("max_requests", detail))

    def _is_sent(self, exchange: ExchangeId) -> bool:
        job = self._jobs.get(exchange)
        return job is not None and job.conn is not None

    def _dial(self, place: Place, conn: ConnectionId) -> None:
        self._conns[conn] = _Connection(conn, place, Http1Client(self._limits))
        place.connections += 1
        proxy = place.proxy
        if proxy is None:
            self._ops.append(Connect(conn, place.host, place.port, place.host if place.tls else None))
        else:
            tls = proxy.host if proxy.scheme == "https" else None
            self._ops.append(Connect(conn, proxy.host, proxy.port, tls))

    def _carry(self, c: _Connection, exchange: ExchangeId, reused: bool) -> None:
        job = self._jobs[exchange]
        request = job.request
        job.conn, job.sent_at = c.id, self._now
        c.exchange, c.reused, c.keep = exchange, reused, None
        place = c.place
        target, fields = place.prefix + request.target, place.fields(request.headers)
        c.codec.send_request(request.method, target, body=request.body, fixed=fields)
        self._write(c)

    def _write(self, c: _Connection) -> None:
        self._ops.append(Write(c.id, c.codec.data_to_send()))

    def _drop(self, c: _Connection, reason: str, waiting: ExchangeId | None) -> None:
        del self._conns[c.id]
        c.place.connections -= 1
        self._ops.append(Close(c.id))
        if waiting is not None:
            assert reason == CONNECT
            why = f"there was none within {c.place.policy.connect_timeout:g} s"
            self._fail(waiting, self._not_made(c, why, NetworkProblem.TIMEOUT))

    def _refuse(self, place: Place, exchange: ExchangeId) -> None:
        text = f"{place.policy.max_waiting} exchanges wait for a connection already (max_waiting)"
        self._fail(exchange, NetworkFailure(text, NetworkProblem.NO_ROOM, retryable=True))

    # ends ----------------------------------------------------------------------------------------

    def _end_of(
        self, c: _Connection, why: str, problem: NetworkProblem = NetworkProblem.LOST
    ) -> NetworkFailure:
        """What the end of `c` means to who is on it."""
        if not c.open:
            return self._not_made(c, why, problem)
        return NetworkFailure(f"the connection was lost: {why}", NetworkProblem.LOST, retryable=True)

    def _not_made(self, c: _Connection, why: str, problem: NetworkProblem) -> NetworkFailure:
        place = c.place
        where, retryable = f"{place.host}:{place.port}", problem in _RETRYABLE
        hint = f": {_HINTS[problem]}" if problem in _HINTS else ""
        if c.tunnel:
            where = f"{where} through the proxy {place.proxy}"
        elif place.proxy is not None:
            where, problem = f"the proxy {place.proxy}", NetworkProblem.PROXY
        return NetworkFailure(f"cannot connect to {where}{hint} ({why})", problem, retryable=retryable)

    def _close(self, c: _Connection, failure: HttpFailure | None = None) -> None:
        """End `c`; whoever is on it, or waits for it, fails with `failure`."""
        del self._conns[c.id]
        c.place.connections -= 1
        self._ops.append(Close(c.id))
        self._lost(c, failure)

    def _lost(self, c: _Connection, failure: HttpFailure | None) -> None:
        """`c` is gone."""
        pool = c.place.pool
        exchange = pool.ended(c.id, self._now)
        job = None if exchange is None else self._jobs.get(exchange)
        if exchange is None or job is None:
            self._decide(c.place)
            return
        stale = c.reused and c.codec.unanswered and self._now - job.sent_at <= STALE_WITHIN
        if stale:
            pool.doubt(self._now)
        if stale and job.repeatable and not job.repeated:
            job.repeated = True
            job.conn = None
            pool.ask_again(exchange, self._now)
        elif failure is not None:
            self._fail(exchange, failure)
        self._decide(c.place)

    def _fail(self, exchange: ExchangeId, failure: HttpFailure) -> None:
        self._done(exchange)
        self.client.exchange_failed(exchange, failure, self._now)

    def _abort(self, exchange: ExchangeId) -> None:
        """Nobody wants `exchange` any more. A connection that it is on cannot be used any more."""
        job = self._done(exchange)
        if job is None:
            return
        if job.conn is None:
            job.place.pool.forget(exchange, self._now)
            self._decide(job.place)
        else:
            self._close(self._conns[job.conn])

    def _tick(self, now: float) -> None:
        self._now = max(self._now, now)
