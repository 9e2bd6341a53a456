"""What clients and their calls can be told, whatever waits for them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from sansmcp.client import Timeout
from sansmcp.events import ProgressReported
from sansmcp.extensions.extension import Extension
from sansmcp.limits import Limits, Timeouts
from sansmcp.quirks import Quirk
from sansmcp.session.cache import CacheMode, CacheUse
from sansmcp.session.era import Mode, Verdict
from sansmcp.stdio import RestartPolicy, ShutdownLadder
from sansmcp.types.lifecycle import ClientCapabilities
from sansmcp.wire.jsoncodec import JsonCodec, JsonValue

from .questions import QuestionOptions

if TYPE_CHECKING:  # who starts a child process need not load what HTTP is made of
    from ssl import SSLContext

    from sansmcp.auth.oauth import OAuth
    from sansmcp.http.old_sse import OldSseUse
    from sansmcp.http.pool import PoolPolicy
    from sansmcp.http.recovery import Recovery
    from sansmcp.http.resume import ReconnectPolicy
    from sansmcp.spans import SpanHook
    from sansmcp.validation import SchemaValidator
    from sansmcp.websocket import PingPolicy


class Options(TypedDict, total=False):
    """What every call can be told."""

    timeout: Timeout
    """Seconds of silence before the call fails; progress starts them anew. None: no such limit."""
    total_timeout: Timeout
    """Seconds for the whole call, whatever progress is reported. None: no such limit."""
    on_progress: Callable[[ProgressReported], object]
    """Called with each report of progress; without it the server is not asked for any."""
    meta: Mapping[str, JsonValue]
    """Members to add to the request's `_meta`, such as a trace context."""
    log_level: str
    """Ask for the logs of this request, from this level on (from 2026-07-28 on)."""
    cache_mode: CacheMode
    """Where a cache was given: ``"use"`` what is kept, **the default**; ``"refresh"``: ask, and keep the
    answer; ``"bypass"``: ask, and leave what is kept as it is."""
    max_age: float
    """How many seconds ago a kept result may have been received."""
    auto_rounds: bool
    """Whether the call goes on by itself once what its server asks is answered. **True** unless given;
    with False only `provide_input` makes it go on, and callbacks are not called."""
    task: Literal["poll", "handle"]
    """With `ClientTasks`: whether a call that has become a task is waited for, **the default**, or gives the
    task at once."""


class ListOptions(Options, total=False):
    """What a call that reads a list to its end can be told."""

    max_pages: int
    """Pages to read at most; past it the call fails with PaginationError, which holds what was read."""


class EngineOptions(QuestionOptions, total=False):
    """What every client can be told, whatever carries its messages."""

    capabilities: ClientCapabilities | None
    """What it can be asked for."""
    mode: Mode | None
    """``Auto()`` unless given: probe, then the newest version in common. Or ``Legacy()``, ``Pin(…)``."""
    prior: Verdict | None
    """The `Client.verdict` of an earlier connection to this server: then nothing is probed."""
    cache: CacheUse | None
    """Keeps results as long as the server allows it. **None** unless given: every call asks."""
    validator: SchemaValidator | None
    """Checks structured results against the output schemas that the tools were listed with; what does
    not fit is told by events, or fails the call where `strict` is set. **None** unless given: no check."""
    timeouts: Timeouts | None
    """How long it waits for whatever no call says otherwise; ``Timeouts()`` unless given."""
    limits: Limits
    """Bounds of messages, calls and tables; `CLIENT_LIMITS` unless given."""
    codec: JsonCodec | None
    """Reads and writes JSON; `default_codec` unless given."""
    strict: bool
    """Whether tolerances are faults. **False** unless given."""
    extensions: Sequence[Extension]
    """What it knows besides the protocol itself, as ``ClientTasks()``."""
    quirks: Iterable[Quirk | str]
    """Deviations of the server to go along with, as ``["session-lost-400"]``: see `sansmcp.quirks`."""
    spans: SpanHook | None
    """Hears when calls begin and end, and gives the trace context that they carry."""
    check_capabilities: bool
    """Whether to refuse here what the server does not declare. **True** unless given."""


class StdioOptions(TypedDict, total=False):
    """What only a client of a child process can be told."""

    env: Mapping[str, str] | None
    """Variables set for the child beside a harmless part of this process's environment."""
    inherit_env: bool
    """Whether the child gets all of this process's environment. **False** unless given."""
    cwd: str | os.PathLike[str] | None
    """Where the child runs."""
    restart: RestartPolicy | None
    """Whether the child is started again when it ends unasked. For a WebSocket or a socket: whether a
    connection that is lost is made again, **not** unless given."""
    ladder: ShutdownLadder | None
    """How long the child may take to leave."""
    stderr: Callable[[bytes], object] | None
    """Sees each piece of the child's standard error. Its last bytes are in the error when it ends."""


class HttpClientOptions(TypedDict, total=False):
    """What only a client over HTTP can be told."""

    headers: Mapping[str, str] | Iterable[tuple[str, str]]
    """Go along on every request, an ``authorization`` among them, and never to another origin."""
    ssl: SSLContext | None
    """For TLS; what the system trusts unless given."""
    proxy: str | Literal[False] | None
    """The address of a proxy; None: as the environment says (``https_proxy``, ``no_proxy`` and the
    like); False: no proxy."""
    auth: OAuth | None
    """How tokens are come by that the server wants to see. None: not at all."""
    open_url: Callable[[str], object] | None
    """Shows the user an address to log in at; may be a coroutine function. False from it, and the user is
    not asked. **None**: the system's browser."""
    wait_redirect: Callable[[str], Awaitable[str] | str] | None
    """Given `OAuth.redirect_uri`, waits for the browser to come back there, and returns the whole address; a
    coroutine function, where there is a loop. **None**: it comes back to a port of this computer."""
    pool: PoolPolicy | None
    """Bounds of the connections."""
    reconnect: ReconnectPolicy | None
    """How often and how soon a broken event stream is asked for again."""
    recovery: Recovery | None
    """Which lost requests are made again."""
    old_sse: OldSseUse
    """When HTTP+SSE is spoken: where nothing newer is understood, unless given."""
    listen: bool
    """Whether a legacy server is asked for its own stream. **True** unless given."""


class WebSocketOptions(TypedDict, total=False):
    """What only a client over a WebSocket can be told, beside `headers`, `ssl` and `restart`."""

    pings: PingPolicy | None
    """When a silent server is asked whether it is there."""


class ConnectOptions(EngineOptions, StdioOptions, HttpClientOptions, WebSocketOptions, total=False):
    """Everything that `connect` can be told. What does not fit its target is refused."""
