"""What a server of WebSockets, ports and unix sockets is made of, whatever accepts its connections."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import attrs

from sansmcp.app import App
from sansmcp.http.guard import GuardPolicy
from sansmcp.http.listener import policy_for
from sansmcp.limits import SERVER_LIMITS, Limits, Timeouts
from sansmcp.revisions import Revision
from sansmcp.stream_listener import MAX_CONNECTIONS, StreamListener, StreamServer, lines, websockets
from sansmcp.websocket import PingPolicy
from sansmcp.wire.jsoncodec import JsonCodec

from .handlers import Handlers
from .listening import ListenerPump
from .pump import OnEvent, OnWire

if TYPE_CHECKING:
    import asyncio


class StreamOptions(TypedDict, total=False):
    """What a server of connections can be told."""

    threads: int
    """Threads for handlers that are plain functions, **16** unless given; 0: they run in the loop."""
    limits: Limits
    """Bounds of messages, calls and tables; `SERVER_LIMITS` unless given."""
    timeouts: Timeouts | None
    """How long a client is waited for that is asked something; ``Timeouts()`` unless given."""
    revisions: Sequence[Revision]
    """What is served, **all** unless given."""
    codec: JsonCodec | None
    """Reads and writes JSON; `default_codec` unless given."""
    max_connections: int
    """Connections at once, **1000** unless given; past it others are ended at once."""
    strict: bool
    """Turn tolerances into faults."""
    on_event: OnEvent | None
    """Called with every event for the application, before anybody else sees it."""
    on_wire: OnWire | None
    """Sees the bytes of all connections."""


class SocketOptions(StreamOptions, total=False):
    """What a server of sockets with a line per message can be told."""

    ssl: SSLContext | None
    """Speak TLS with this context."""
    grace: float
    """Seconds in which answers that are owed may still be given after the client ended its side, **10**
    unless given."""


class WebSocketServerOptions(StreamOptions, total=False):
    """What a server of WebSockets can be told."""

    path: str | None
    """Where it is; None for everywhere. **/mcp** unless given."""
    ssl: SSLContext | None
    """Speak TLS with this context."""
    policy: GuardPolicy | None
    """Which hosts and pages are served; None: loopback names, and where it listens (`policy_for`)."""
    pings: PingPolicy
    """When a silent client is asked whether it is there; ``PingPolicy()`` unless given."""


class StreamHandlers(Handlers):
    """All connections of `app`."""

    pump: ListenerPump
    pump_kind: type[ListenerPump] = ListenerPump

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        serve: Callable[[float], StreamServer],
        *,
        threads: int = 16,
        limits: Limits = SERVER_LIMITS,
        max_connections: int = MAX_CONNECTIONS,
        on_event: OnEvent | None = None,
        on_wire: OnWire | None = None,
    ) -> None:
        listener = StreamListener(serve, now=loop.time(), limits=limits, max_connections=max_connections)
        super().__init__(app, loop, listener, threads=threads, on_event=on_event)
        self.listener = listener
        self.pump = self.pump_kind(listener, loop, self._deliver, on_wire=on_wire)


@attrs.frozen(eq=False)
class Plan:
    """What is to be served, and where."""

    app: App
    serve: Callable[[float], StreamServer]
    """Makes what is behind one connection."""
    tls: SSLContext | None
    options: dict[str, Any]
    """Of `StreamHandlers`."""
    host: str = ""
    port: int = 0
    path: str | None = None
    """Of a unix socket: then there is no host and no port."""

    @property
    def where(self) -> str:
        """What `Ready` is told first."""
        return self.host if self.path is None else self.path


_OF_LISTENER: Final[tuple[str, ...]] = ("threads", "max_connections", "on_event", "on_wire")


def plan_websocket(app: App, host: str, port: int, options: WebSocketServerOptions) -> Plan:
    given, tls, mine = _split(options)
    if given.get("policy") is None:
        given["policy"] = policy_for(host)
    return Plan(app, websockets(app, **given), tls, mine, host, port)


def plan_tcp(app: App, host: str, port: int, options: SocketOptions) -> Plan:
    given, tls, mine = _split(options)
    return Plan(app, lines(app, **given), tls, mine, host, port)


def plan_unix(app: App, path: str | os.PathLike[str], options: SocketOptions) -> Plan:
    given, tls, mine = _split(options)
    return Plan(app, lines(app, **given), tls, mine, path=os.fspath(path))


def _split(options: StreamOptions) -> tuple[dict[str, Any], SSLContext | None, dict[str, Any]]:
    """What each connection is told, the TLS, and what the listener is told; the limits are for both."""
    given = cast("dict[str, Any]", dict(options))
    tls = given.pop("ssl", None)
    mine: dict[str, Any] = {name: given.pop(name) for name in _OF_LISTENER if name in given}
    if "limits" in given:
        mine["limits"] = given["limits"]
    return given, tls, mine


def bind_unix(path: str) -> socket.socket:
    """A socket at `path` that does not listen yet; one that is there is replaced. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        remove_unix(path)
        sock.bind(path)
        # Before it listens nobody can connect, so that there is no time in which others could.
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    except BaseException:
        sock.close()
        raise
    return sock


def remove_unix(path: str) -> None:
    """Remove the socket at `path`, if there is one."""
    with suppress(OSError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.remove(path)
