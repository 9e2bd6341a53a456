"""How a client comes to be: of a child process here, of a server over HTTP in `_connect_http`."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

from sansmcp import __version__
from sansmcp.client import ClientEngine
from sansmcp.errors import LocalProtocolError
from sansmcp.limits import Limits, Timeouts
from sansmcp.session.cache import CacheUse
from sansmcp.session.era import Mode, TransportKind, Verdict
from sansmcp.stdio import Command, RestartPolicy, ShutdownLadder, StdioClient, child_environment
from sansmcp.types.lifecycle import ClientCapabilities, Implementation
from sansmcp.wire.jsoncodec import JsonCodec

from ._client import Client, Opening
from ._process import Child
from ._pump import OnEvent, OnWire, Pump
from ._questions import Callbacks, QuestionOptions, take_callbacks

if TYPE_CHECKING:  # who starts a child process need not load what HTTP is made of
    from ssl import SSLContext

    from sansmcp.http.old_sse import OldSseUse
    from sansmcp.http.pool import PoolPolicy
    from sansmcp.http.recovery import Recovery
    from sansmcp.http.resume import ReconnectPolicy


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
    timeouts: Timeouts | None
    limits: Limits
    codec: JsonCodec | None
    """Reads and writes JSON; the fastest there is unless given."""
    strict: bool
    """Whether tolerances are faults. **False** unless given."""
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
    """Whether the child is started again when it ends unasked."""
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


class ConnectOptions(EngineOptions, StdioOptions, HttpClientOptions, total=False):
    """Everything that `connect` can be told. What does not fit its target is refused."""


def connect(
    target: Command | Sequence[str] | str,
    *,
    info: Implementation | None = None,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
    **options: Unpack[ConnectOptions],
) -> Opening:
    """Connect to a server: ``async with connect("https://example.com/mcp") as client``.

    `target` is a URL, or how the server is started: a command line (split as a shell would, never
    given to one), its words, or a `Command`, which is taken as it is. A child runs in a process group
    of its own.

    `on_event` sees every event and `on_wire` every byte, as they come, of all connections. What they
    raise goes to the loop's exception handler. `info` is who this client says it is. The options are
    in `EngineOptions`; for a child process there are those of `StdioOptions` too, over HTTP those of
    `HttpClientOptions`. Raises LocalProtocolError for those of the other kind, and a target that is none.

    Entering raises why there is no connection: `ConnectTimeout`, `NoCommonVersion`, `NetworkFailure`,
    `ConnectionEnded` with exit code and last words, or another `SansmcpError`. Nothing is left behind
    by then.
    """
    url = target if isinstance(target, str) and target.lower().startswith(("http://", "https://")) else None
    common, own = _sort_out(options, "a child process" if url is None else "a URL", url is None)

    async def start(loop: asyncio.AbstractEventLoop) -> Client:
        now, engine, callbacks = client_engine(loop, info, common)
        core = StdioClient(engine, command, now=now, restart=own.get("restart"), ladder=own.get("ladder"))
        client = Client(
            engine,
            lambda deliver: Pump(
                core,
                loop,
                deliver,
                on_wire=on_wire,
                spawn=lambda pump, op: Child(pump, core, op, own.get("stderr")),
            ),
            on_event=on_event,
            callbacks=callbacks,
        )
        await client.open(core.start)
        return client

    async def reach(loop: asyncio.AbstractEventLoop) -> Client:
        from ._connect_http import open_http

        now, engine, callbacks = client_engine(loop, info, common, TransportKind.HTTP)
        return await open_http(
            loop, engine, now, cast(str, url), own, on_event=on_event, on_wire=on_wire, callbacks=callbacks
        )

    if url is not None:
        from sansmcp.http.url import parse_url

        parse_url(url)
        return Opening(reach)
    command = _command(target, own)
    return Opening(start)


_OF_STDIO = frozenset(StdioOptions.__annotations__)
_OF_HTTP = frozenset(HttpClientOptions.__annotations__)


def _sort_out(options: ConnectOptions, kind: str, stdio: bool) -> tuple[EngineOptions, dict[str, Any]]:
    """The options of every client, and those of this kind. Raises LocalProtocolError for others.

    None is not given.
    """
    mine, other = (_OF_STDIO, _OF_HTTP) if stdio else (_OF_HTTP, _OF_STDIO)
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
        target = shlex.split(target, posix=os.name == "posix")
    environment = child_environment(os.environ, own.get("env"), inherit=own.get("inherit_env", False))
    cwd = own.get("cwd")
    return Command(list(target), environment, None if cwd is None else os.fspath(cwd))


def client_engine(
    loop: asyncio.AbstractEventLoop,
    info: Implementation | None,
    options: EngineOptions,
    transport: TransportKind = TransportKind.STREAM,
) -> tuple[float, ClientEngine, Callbacks]:
    """The loop's time, an engine with it, and what answers the questions that the engine tells of."""
    now, me = loop.time(), info or Implementation("sansmcp", __version__)
    callbacks, rest = take_callbacks(options)
    return now, ClientEngine(me, now=now, transport=transport, **rest), callbacks
