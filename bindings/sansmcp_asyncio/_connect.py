"""How a client comes to be whose server is a child process."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, Unpack

from sansmcp import __version__
from sansmcp.client import ClientEngine
from sansmcp.errors import LocalProtocolError
from sansmcp.limits import Limits, Timeouts
from sansmcp.session.era import Mode, Verdict
from sansmcp.stdio import Command, RestartPolicy, ShutdownLadder, StdioClient, child_environment
from sansmcp.types.lifecycle import ClientCapabilities, Implementation
from sansmcp.wire.jsoncodec import JsonCodec

from ._client import Client, Opening
from ._process import Child
from ._pump import OnEvent, OnWire, Pump

_CONN = 1


class EngineOptions(TypedDict, total=False):
    """What every client can be told, whatever carries its messages."""

    capabilities: ClientCapabilities | None
    """What it can be asked for."""
    mode: Mode | None
    """``Auto()`` unless given: probe, then the newest version in common. Or ``Legacy()``, ``Pin(…)``."""
    prior: Verdict | None
    """The `Client.verdict` of an earlier connection to this server: then nothing is probed."""
    timeouts: Timeouts | None
    limits: Limits
    codec: JsonCodec | None
    """Reads and writes JSON; the fastest there is unless given."""
    strict: bool
    """Whether tolerances are faults. **False** unless given."""
    check_capabilities: bool
    """Whether to refuse here what the server does not declare. **True** unless given."""


def connect(
    target: Command | Sequence[str] | str,
    *,
    info: Implementation | None = None,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    restart: RestartPolicy | None = None,
    ladder: ShutdownLadder | None = None,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
    stderr: Callable[[bytes], object] | None = None,
    **options: Unpack[EngineOptions],
) -> Opening:
    """Start a server and connect to it: ``async with connect("python server.py") as client``.

    `target` is a command line (split as a shell would, never given to one), its words, or a
    `Command`, which is taken as it is. The child gets a harmless part of this process's environment
    (all of it with `inherit_env`) and `env`, and runs in `cwd`. It runs in a process group of its
    own; `ladder` says how long it may take to leave, `restart` whether it is started again when it
    ends unasked.

    `on_event` sees every event and `on_wire` every byte, as they come. The last bytes of the
    child's standard error are in the error when it ends; `stderr` sees each piece of it. What these
    callbacks raise goes to the loop's exception handler. `info` is who this client says it is; the
    other options are in `EngineOptions`.

    Entering raises why there is no connection: `ConnectTimeout`, `NoCommonVersion`,
    `ConnectionEnded` with exit code and last words, or another `SansmcpError`. The child is gone
    by then.
    """
    command = _command(target, env, inherit_env, cwd)

    async def open_on(loop: asyncio.AbstractEventLoop) -> Client:
        now, engine = client_engine(loop, info, options)
        core = StdioClient(engine, command, now=now, restart=restart, ladder=ladder)
        client = Client(
            engine,
            lambda deliver: Pump(
                core,
                loop,
                deliver,
                on_wire=on_wire,
                spawn=lambda pump, op: Child(pump, core, op, stderr),
            ),
            on_event=on_event,
        )
        await client.open(core.start)
        return client

    return Opening(open_on)


def _command(
    target: Command | Sequence[str] | str,
    env: Mapping[str, str] | None,
    inherit: bool,
    cwd: str | os.PathLike[str] | None,
) -> Command:
    if isinstance(target, Command):
        return target
    if isinstance(target, str):
        if target.startswith(("http://", "https://")):
            raise LocalProtocolError(f"connect: {target}: only commands can be connected to as yet")
        target = shlex.split(target, posix=os.name == "posix")
    environment = child_environment(os.environ, env, inherit=inherit)
    return Command(list(target), environment, None if cwd is None else os.fspath(cwd))


def client_engine(
    loop: asyncio.AbstractEventLoop, info: Implementation | None, options: EngineOptions
) -> tuple[float, ClientEngine]:
    """An engine with the loop's time, and that time."""
    now = loop.time()
    return now, ClientEngine(info or Implementation("sansmcp", __version__), now=now, **options)
