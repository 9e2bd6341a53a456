"""Serves an `App` in one event loop: carries requests to an `HttpGateway`, which decides everything."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

from sansmcp.app import App
from sansmcp.auth.resource_server import ResourceServer
from sansmcp.context import Answers
from sansmcp.events import Event, VerifyToken
from sansmcp.http.exchange import AbortExchange, EndResponse, HttpRequest, SendBody, StartResponse
from sansmcp.http.gateway import DEFAULT_GATEWAY, GatewayPolicy, HttpGateway
from sansmcp.http.guard import DEFAULT_POLICY, GuardPolicy
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.http.server import HttpServer
from sansmcp.limits import SERVER_LIMITS, Limits
from sansmcp.ops import Op
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.wire.jsoncodec import JsonCodec
from sansmcp_shared.handlers import Handlers
from sansmcp_shared.pump import Channel, OnEvent, Pump, Transport
from sansmcp_shared.token_checks import TokenChecks

from ._loop import Scope

if TYPE_CHECKING:
    import asyncio

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class AsgiOptions(TypedDict, total=False):
    """What an ASGI application can be told."""

    path: str | None
    """Where the endpoint is; None for everywhere. **/mcp** unless given."""
    threads: int
    """Threads for handlers that are plain functions, **16** unless given; 0: they run in the loop."""
    limits: Limits
    """Bounds of messages, bodies and tables; `SERVER_LIMITS` unless given."""
    policy: GuardPolicy
    """Which hosts and pages are served; unless given, those of this machine only."""
    sessions: SessionPolicy | None
    """Bounds of the sessions of older clients."""
    carriage: GatewayPolicy
    """Bounds of slow clients."""
    revisions: Sequence[Revision]
    """What is served, **all** unless given."""
    codec: JsonCodec | None
    """Reads and writes JSON; `default_codec` unless given."""
    keep_alive: float | None
    """Seconds of silence after which a client is sent a comment, **15** unless given; None: never."""
    response_timeout: float | None
    """Seconds after which a request of 2026-07-28 is answered 504; None, the default: never."""
    max_exchanges: int
    """Responses that may be open at once, **16 384** unless given; past it requests are answered 503."""
    legacy: bool
    """Whether clients of the revisions before 2026-07-28 are served. **True** unless given."""
    stateless: bool
    """Whether these are served without sessions, so that any process can. **False** unless given."""
    old_sse: OldSsePaths | None
    """Where HTTP+SSE, the transport of 2024-11-05, is spoken as well; None, the default: nowhere."""
    auth: ResourceServer | None
    """Whom it lets in, by their access tokens; None, the default: everybody. Its metadata has to be where
    the resource is: if the application is mounted below a path, route `ResourceServer.metadata_paths` to
    it as well."""
    strict: bool
    """Turn tolerances into faults."""
    on_event: OnEvent | None
    """Called with every event for the application, before anybody else sees it."""


def make_server(
    app: App,
    *,
    now: float,
    policy: GuardPolicy = DEFAULT_POLICY,
    limits: Limits = SERVER_LIMITS,
    revisions: Sequence[Revision] = ALL_REVISIONS,
    **options: Any,
) -> HttpServer:
    """The server of `app`. Raises LocalProtocolError for options that cannot be."""
    return HttpServer(
        app.engine,
        now=now,
        entropy=secrets.token_bytes,
        policy=policy,
        limits=limits,
        revisions=revisions,
        input_schema=app.input_schema,
        **options,
    )


class Serving(Handlers):
    """All requests of `app` that come in one loop."""

    pump: _GatewayPump

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        scope: Callable[[], Scope],
        *,
        threads: int = 16,
        carriage: GatewayPolicy = DEFAULT_GATEWAY,
        on_event: OnEvent | None = None,
        **options: Any,
    ) -> None:
        now = loop.time()
        server = make_server(app, now=now, **options)
        super().__init__(app, loop, server, threads=threads, on_event=on_event)
        self._tokens = TokenChecks(server, loop, self.post, threads=threads > 0)
        self.gateway = HttpGateway(server, now=now, policy=carriage)
        self.pump = _GatewayPump(self.gateway, loop, self._deliver)
        self.pump.on_failure = self._on_failure
        self._scope = scope

    def _deliver(self, event: Event) -> None:
        if isinstance(event, VerifyToken):
            self._tokens.begin(event, self.pump)
        else:
            super()._deliver(event)

    @property
    def ended(self) -> bool:
        """Whether it is of no more use: the loop is no more, or it failed."""
        return self.pump.failure is not None or self._loop.is_closed()

    def forget(self) -> None:
        """Let go of what would outlive it."""
        self._detach()
        if self.workers is not None:
            self.workers.close()

    def _publish(self, action: Callable[[Answers, float], object]) -> None:
        if self.ended:
            self.forget()
        else:
            super()._publish(action)

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Carry one request and its response."""
        pump, gateway = self.pump, self.gateway
        channel = _Exchange(self._loop, self._scope())
        exchange = pump.enter(channel)
        reader = None
        try:
            pump.input(gateway.head_received, exchange, request)
            if gateway.wants_body(exchange):
                reader = self._loop.create_task(self._read(exchange, channel, receive))
            async with channel.scope:
                await self._write(exchange, channel, send)
        finally:
            if reader is not None:
                reader.cancel()
            pump.lost(exchange)
            if pump.failure is None:
                pump.input(gateway.closed, exchange)
        if pump.failure is not None:
            raise RuntimeError("the server ended for a fault of its own") from pump.failure

    async def _read(self, exchange: int, channel: _Exchange, receive: Receive) -> None:
        """Take the body, then wait for the client to leave."""
        pump, refused = self.pump, False
        try:
            while not refused:
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                body, more = message.get("body", b""), message.get("more_body", False)
                pump.input(self.gateway.body_received, exchange, body, more)
                refused = more and not self.gateway.wants_body(exchange)
        finally:
            if not refused:  # it left, or something broke
                if pump.failure is None:
                    pump.input(self.gateway.closed, exchange)
                channel.end()

    async def _write(self, exchange: int, channel: _Exchange, send: Send) -> None:
        """Send what there is to be sent, as fast as it is taken."""
        while (message := await channel.next()) is not None:
            try:
                await send(message)
            except OSError:  # the client left
                return
            if message["type"] == "http.response.body":
                if not message["more_body"]:
                    return
                if message["body"]:
                    self.pump.input(self.gateway.written, exchange, len(message["body"]))

    async def stop(self) -> None:
        """End every session, response and handler, as far as that takes no time."""
        if self.pump.failure is None:
            self.pump.input(self.gateway.close)
        self._cancel_all()
        self.forget()
        for task in list(self._stopping):
            ended = self._loop.create_future()
            task.add_done_callback(partial(_resolve, ended))
            await ended

    def _on_failure(self, error: Exception) -> None:
        self._cancel_all()
        self.forget()

    def _cancel_all(self) -> None:
        self._tokens.cancel()
        for request in list(self._work):
            self._cancel(request)


class _GatewayPump(Pump):
    """Drives a gateway; its channels are exchanges."""

    def __init__(
        self, gateway: HttpGateway, loop: asyncio.AbstractEventLoop, deliver: Callable[[Event], None]
    ) -> None:
        super().__init__(cast(Transport, gateway), loop, deliver)
        self._last = 0

    def enter(self, channel: Channel) -> int:
        """A request came."""
        exchange = self._last = self._last + 1
        self.channels[exchange] = channel
        return exchange

    def _execute(self, op: Op | StartResponse | SendBody | EndResponse | AbortExchange) -> None:
        assert isinstance(op, StartResponse | SendBody | EndResponse | AbortExchange)
        channel = self.channels.get(op.exchange)
        if isinstance(channel, _Exchange):
            channel.put(op)

    def _settle(self) -> None:
        self._arm()


class _Exchange(Channel):
    """What is still to be sent of one response."""

    def __init__(self, loop: asyncio.AbstractEventLoop, scope: Scope) -> None:
        self.scope = scope
        self._loop = loop
        self._ops: deque[StartResponse | SendBody | EndResponse] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = self._streams = False

    def put(self, op: StartResponse | SendBody | EndResponse | AbortExchange) -> None:
        """Queue what the gateway says; how much that may be, it counts."""
        if isinstance(op, AbortExchange):
            self.abort()
        else:
            self._ops.append(op)
            self._wake()

    def end(self) -> None:
        """The client left: nothing more is sent."""
        self._ended = True
        self._wake()

    def abort(self) -> None:
        """As `end`, also in the middle of sending."""
        self.end()
        self.scope.cancel()

    def close(self) -> None:
        self.abort()

    def write(self, data: bytes) -> None:
        raise NotImplementedError("a response is made of ops")

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> Message | None:
        """The next message of ASGI; None when nothing more is to be sent."""
        while not (self._ops or self._ended or self._streams):
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._ended:
            return None
        op = self._ops.popleft() if self._ops else None
        if isinstance(op, StartResponse):
            # Some servers send the head of a stream with its first piece, so that one follows at once.
            self._streams = op.length is None
            return {"type": "http.response.start", "status": op.status, "headers": _headers(op)}
        self._streams = False
        parts: list[bytes] = []
        while isinstance(op, SendBody):
            parts.append(op.data)
            op = self._ops.popleft() if self._ops else None
        more = not isinstance(op, EndResponse)
        return {"type": "http.response.body", "body": b"".join(parts), "more_body": more}


def _resolve(future: asyncio.Future[None], task: object) -> None:
    if not future.done():
        future.set_result(None)


def _headers(op: StartResponse) -> list[tuple[bytes, bytes]]:
    headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in op.headers]
    if op.length is not None:
        headers.append((b"content-length", str(op.length).encode()))
    return headers
