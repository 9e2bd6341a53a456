"""What a client is made of, by its target and options, whatever waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from sansmcp import __version__
from sansmcp.client import ClientEngine
from sansmcp.errors import LocalProtocolError
from sansmcp.records import frozen
from sansmcp.session.era import TransportKind
from sansmcp.stdio import Command, StdioClient, child_environment
from sansmcp.types.lifecycle import Implementation

from .options import ConnectOptions, EngineOptions, HttpClientOptions, StdioOptions
from .questions import Callbacks, take_callbacks

if TYPE_CHECKING:  # who starts a child process need not load what a network is for
    import asyncio
    import ssl

    from sansmcp.dialing import DialingClient
    from sansmcp.http.connector import HttpConnector

Core: TypeAlias = "StdioClient | HttpConnector | DialingClient"

_OF_STDIO: Final = frozenset(StdioOptions.__annotations__)
_OF_HTTP: Final = frozenset(HttpClientOptions.__annotations__)
_OF_WEBSOCKET: Final = frozenset({"headers", "ssl", "pings", "restart"})
_OF_SOCKET: Final = frozenset({"ssl", "restart"})
WEBSOCKET: Final = ("ws://", "wss://")
_SOCKET: Final = ("tcp://", "tls://", "unix:")
_HTTP: Final = ("http://", "https://")


@frozen(eq=False)
class Target:
    """What to connect to."""

    common: EngineOptions
    """The options of every client."""
    own: Mapping[str, Any]
    """Those of this kind, but for None."""
    core: Callable[[ClientEngine, float], Core]
    """Makes the transport, at a time."""
    kind: TransportKind = TransportKind.STREAM

    @property
    def tls(self) -> Callable[[], ssl.SSLContext]:
        """Makes what TLS is spoken with."""
        from .network import default_tls

        context: ssl.SSLContext | None = self.own.get("ssl")
        return default_tls if context is None else lambda: context


def target_of(target: Command | Sequence[str] | str, options: ConnectOptions) -> Target:
    """What `connect` is to connect to. Raises LocalProtocolError for what is none, and its options."""
    address = target.lower() if isinstance(target, str) else ""
    if address.startswith((*WEBSOCKET, *_SOCKET)):
        return _stream(cast(str, target), options, address.startswith(WEBSOCKET))
    if address.startswith(_HTTP):
        return _http(cast(str, target), options)
    common, own = _sort_out(options, "a child process", _OF_STDIO)
    command = _command(target, own)
    return Target(
        common,
        own,
        lambda engine, now: StdioClient(
            engine, command, now=now, restart=own.get("restart"), ladder=own.get("ladder")
        ),
    )


def _http(url: str, options: ConnectOptions) -> Target:
    from sansmcp.http.url import parse_url

    from .http_target import http_connector

    common, own = _sort_out(options, "a URL", _OF_HTTP)
    parse_url(url)
    return Target(
        common, own, lambda engine, now: http_connector(engine, url, now, **own), TransportKind.HTTP
    )


def _stream(url: str, options: ConnectOptions, websocket: bool) -> Target:
    from .stream_target import check_stream, stream_client

    kind, mine = ("a WebSocket", _OF_WEBSOCKET) if websocket else ("a socket", _OF_SOCKET)
    common, own = _sort_out(options, kind, mine)
    check_stream(url, own)
    return Target(common, own, lambda engine, now: stream_client(engine, url, now, **own))


def _sort_out(
    options: ConnectOptions, kind: str, mine: frozenset[str]
) -> tuple[EngineOptions, dict[str, Any]]:
    """The options of every client, and those of this kind. Raises LocalProtocolError for others.

    None is not given.
    """
    other = (_OF_STDIO | _OF_HTTP | _OF_WEBSOCKET) - mine
    wrong = sorted(name for name, value in options.items() if name in other and value is not None)
    if wrong:
        raise LocalProtocolError(f"connect: {', '.join(wrong)}: no option for {kind}")
    own = {name: value for name, value in options.items() if name in mine and value is not None}
    common = {name: value for name, value in options.items() if name not in mine | other}
    return cast(EngineOptions, common), own


def _command(target: Command | Sequence[str] | str, own: Mapping[str, Any]) -> Command:
    if isinstance(target, Command):
        return target
    if isinstance(target, str):
        import shlex

        target = shlex.split(target, posix=os.name == "posix")
    environment = child_environment(os.environ, own.get("env"), inherit=own.get("inherit_env", False))
    cwd = own.get("cwd")
    return Command(list(target), environment, None if cwd is None else os.fspath(cwd))


def client_engine(
    loop: asyncio.AbstractEventLoop,
    info: Implementation | None,
    options: EngineOptions,
    kind: type[Callbacks],
    transport: TransportKind = TransportKind.STREAM,
) -> tuple[float, ClientEngine, Callbacks]:
    """The loop's time, an engine with it, and what answers the questions that the engine tells of."""
    now, me = loop.time(), info or Implementation("sansmcp", __version__)
    callbacks, rest = take_callbacks(options, kind)
    return now, ClientEngine(me, now=now, transport=transport, **rest), callbacks
