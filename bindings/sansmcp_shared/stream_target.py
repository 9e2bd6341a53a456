"""What a client over a WebSocket or a socket is made of, whatever waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from sansmcp.client import ClientEngine
from sansmcp.dialing import DialingClient, SocketClient, TcpAddress, UnixAddress
from sansmcp.errors import LocalProtocolError
from sansmcp.stdio import NO_RESTART, RestartPolicy
from sansmcp.types.lifecycle import Implementation
from sansmcp.websocket import DEFAULT_PINGS, PingPolicy
from sansmcp.ws_client import WebSocketClient

from .targets import WEBSOCKET


def stream_client(
    engine: ClientEngine,
    url: str,
    now: float,
    *,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ssl: object = None,
    pings: PingPolicy = DEFAULT_PINGS,
    restart: RestartPolicy = NO_RESTART,
) -> DialingClient:
    """A client of the server at `url`: of ``ws:``, ``wss:``, ``tcp:``, ``tls:`` or ``unix:``.

    Raises LocalProtocolError for one that is none.
    """
    if url.lower().startswith(WEBSOCKET):
        return WebSocketClient(engine, url, now=now, headers=headers, pings=pings, restart=restart)
    return SocketClient(engine, address_of(url), now=now, restart=restart)


def check_stream(url: str, options: Mapping[str, Any]) -> None:
    """Raise LocalProtocolError for what cannot be, before anything is awaited."""
    stream_client(ClientEngine(Implementation("check", "1"), now=0.0), url, 0.0, **options)


def address_of(url: str) -> TcpAddress | UnixAddress:
    """Where ``tcp://host:port``, ``tls://host:port`` or ``unix:/path`` is."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        raise LocalProtocolError("the address is not usable: a host and a port are needed") from None
    if parts.scheme == "unix":
        if parts.netloc:
            raise LocalProtocolError("the address of a unix socket is unix:///path")
        return UnixAddress(unquote(parts.path))
    if parts.path not in ("", "/") or parts.query or parts.username is not None:
        raise LocalProtocolError(f"the address of a socket is {parts.scheme}://host:port, and nothing else")
    return TcpAddress(host, port, host if parts.scheme == "tls" else None)
