"""What a client is made of, by its target and options, whatever waits for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from sansmcp import __version__
from sansmcp.client import ClientEngine
from sansmcp.errors import LocalProtocolError
from sansmcp.session.era import TransportKind
from sansmcp.stdio import Command, child_environment
from sansmcp.types.lifecycle import Implementation

from .options import ConnectOptions, EngineOptions, HttpClientOptions, StdioOptions
from .questions import Callbacks, take_callbacks

if TYPE_CHECKING:
    import asyncio

_OF_STDIO = frozenset(StdioOptions.__annotations__)
_OF_HTTP = frozenset(HttpClientOptions.__annotations__)
OF_WEBSOCKET = frozenset({"headers", "ssl", "pings", "restart"})
OF_SOCKET = frozenset({"ssl", "restart"})
WEBSOCKET = ("ws://", "wss://")
SOCKET = ("tcp://", "tls://", "unix:")


def sort_out(options: ConnectOptions, kind: str, stdio: bool) -> tuple[EngineOptions, dict[str, Any]]:
    """`sort_out_by` for a child process or for HTTP."""
    return sort_out_by(options, kind, _OF_STDIO if stdio else _OF_HTTP)


def sort_out_by(
    options: ConnectOptions, kind: str, mine: frozenset[str]
) -> tuple[EngineOptions, dict[str, Any]]:
    """The options of every client, and those of this kind. Raises LocalProtocolError for others.

    None is not given.
    """
    other = (_OF_STDIO | _OF_HTTP | OF_WEBSOCKET) - mine
    wrong = sorted(name for name, value in options.items() if name in other and value is not None)
    if wrong:
        raise LocalProtocolError(f"connect: {', '.join(wrong)}: no option for {kind}")
    own = {name: value for name, value in options.items() if name in mine and value is not None}
    common = {name: value for name, value in options.items() if name not in mine | other}
    return cast(EngineOptions, common), own


def command_of(target: Command | Sequence[str] | str, own: Mapping[str, Any]) -> Command:
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
