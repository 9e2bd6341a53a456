"""What a server over HTTP is made of, whatever accepts its connections."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from sansmcp.app import App
from sansmcp.auth.resource_server import ResourceServer
from sansmcp.events import Event, VerifyToken
from sansmcp.http.guard import GuardPolicy
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.listener import DEFAULT_CONNECTIONS, ConnectionPolicy, HttpListener, policy_for
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.http.server import HttpServer
from sansmcp.limits import SERVER_LIMITS, Limits
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.wire.jsoncodec import JsonCodec

from .handlers import Handlers
from .listening import ListenerPump
from .pump import OnEvent, OnWire
from .token_checks import TokenChecks

if TYPE_CHECKING:
    import asyncio


class HttpOptions(TypedDict, total=False):
    """What a server over HTTP can be told."""

    path: str | None
    """Where the endpoint is; None for everywhere. **/mcp** unless given."""
    ssl: SSLContext | None
    """Speak TLS with this context."""
    threads: int
    """Threads for handlers that are plain functions, **16** unless given; 0: they run in the loop."""
    limits: Limits
    """Bounds of messages, bodies and tables; `SERVER_LIMITS` unless given."""
    policy: GuardPolicy | None
    """Which hosts and pages are served; None: loopback names, and where it listens (`policy_for`)."""
    sessions: SessionPolicy | None
    """Bounds of the sessions of older clients."""
    connections: ConnectionPolicy
    """Bounds of the connections."""
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
    """Whom it lets in, by their access tokens; None, the default: everybody."""
    strict: bool
    """Turn tolerances into faults."""
    on_event: OnEvent | None
    """Called with every event for the application, before anybody else sees it."""
    on_wire: OnWire | None
    """Sees the bytes of all connections."""


class HttpHandlers(Handlers):
    """All connections of `app`."""

    pump: ListenerPump
    pump_kind: type[ListenerPump] = ListenerPump

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        *,
        policy: GuardPolicy,
        threads: int = 16,
        limits: Limits = SERVER_LIMITS,
        connections: ConnectionPolicy = DEFAULT_CONNECTIONS,
        revisions: Sequence[Revision] = ALL_REVISIONS,
        on_event: OnEvent | None = None,
        on_wire: OnWire | None = None,
        **server_options: Any,
    ) -> None:
        now = loop.time()
        server = HttpServer(
            app.engine,
            now=now,
            entropy=secrets.token_bytes,
            policy=policy,
            limits=limits,
            revisions=revisions,
            input_schema=app.input_schema,
            **server_options,
        )
        super().__init__(app, loop, server, threads=threads, on_event=on_event)
        self._tokens = TokenChecks(server, loop, self.post, threads=threads > 0)
        self.listener = HttpListener(server, now=now, policy=connections)
        self.pump = self.pump_kind(self.listener, loop, self._deliver, on_wire=on_wire)

    def end(self) -> None:
        self._tokens.cancel()
        super().end()

    def _deliver(self, event: Event) -> None:
        if isinstance(event, VerifyToken):
            self._tokens.begin(event, self.pump)
        else:
            super()._deliver(event)


class HttpPlace:
    """Where an app is served over HTTP, and how."""

    def __init__(
        self, app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[HttpOptions]
    ) -> None:
        super().__init__()
        self.host = host
        """Where it listens."""
        self.port = port
        """Where it listens: the real port once the context was entered."""
        self._app = app
        self._options = options
        self._path = options.get("path", "/mcp")

    @property
    def url(self) -> str:
        """Of the endpoint."""
        scheme = "http" if self._options.get("ssl") is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{self._path or '/'}"

    def _given(self) -> tuple[dict[str, Any], SSLContext | None]:
        """What `HttpHandlers` are told, and the TLS."""
        options: dict[str, Any] = dict(self._options)
        tls = options.pop("ssl", None)
        if options.get("policy") is None:
            options["policy"] = policy_for(self.host)
        return options, tls
