"""Real servers driven with pipes and a selector alone: a transport needs no binding and no event loop."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, assert_never

import pytest

from sansmcp import (
    CallCancelled,
    CallTimeout,
    ClientEngine,
    Close,
    CloseWrite,
    Command,
    Connect,
    ConnectionEnded,
    ConnectUnix,
    EraDecided,
    Event,
    Kill,
    Op,
    ProgressReported,
    RequestFailed,
    ResultReady,
    SessionEnded,
    Spawn,
    StartTls,
    StdioClient,
    Terminate,
    Timeouts,
    Write,
)
from sansmcp.ops import ConnectionId
from sansmcp.session.calls import Call
from sansmcp.types import Implementation
from tests.peers.registry import PEERS, Peer

from .known import KNOWN, MANY, Known
from .support import LIMIT, needs, prepare, text_of

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(os.name != "posix", reason="only sockets can be selected there"),
]

now = time.monotonic
TAIL = 8192
POLL = 0.02
"""Seconds between two looks whether a process ended, which no selector tells."""


class Driver:
    """All that a binding is: carries out ops, gives back what happens, keeps the timer."""

    def __init__(self, core: StdioClient) -> None:
        self.core = core
        self.events: list[Event] = []
        self.ops: list[Op] = []
        self.codes: dict[ConnectionId, int] = {}
        self._selector = selectors.DefaultSelector()
        self._processes: dict[ConnectionId, subprocess.Popen[bytes]] = {}
        self._unsent: dict[ConnectionId, bytearray] = {}
        self._tails: dict[ConnectionId, bytes] = {}
        self._closing: set[ConnectionId] = set()

    def run(self, done: Callable[[], object]) -> None:
        """Turn until `done`; each input is followed by a drain, each wait has an end."""
        limit = now() + LIMIT
        self.drain()
        while not done():
            assert now() < limit, f"still waiting: {self.events}"
            when = self.core.next_timeout()
            wait = POLL if when is None else min(POLL, max(0.0, when - now()))
            for key, _ in self._selector.select(wait):
                self._ready(key.data[0], key.data[1], key.fd)
                self.drain()
            for conn in self._processes.keys() - self.codes.keys():
                if (code := self._processes[conn].poll()) is not None:
                    self.codes[conn] = code
                    self._unsent[conn].clear()
                    self._closing.add(conn)
                    self._send(conn)
                    self.core.exited(conn, code, self._tails[conn].decode("utf-8", "replace"), now())
                    self.drain()
            self.core.handle_timeout(now())
            self.drain()

    def drain(self) -> None:
        while (op := self.core.next_op()) is not None:
            self.ops.append(op)
            self._execute(op)
        while (event := self.core.next_event()) is not None:
            self.events.append(event)

    def _execute(self, op: Op) -> None:
        match op:
            case Spawn(conn, argv, env, cwd):
                self._spawn(conn, argv, env, cwd)
            case Write(conn, data):
                self._unsent[conn] += data
                self._ready(conn, "stdin", -1)
            case CloseWrite(conn):
                self._closing.add(conn)
                self._ready(conn, "stdin", -1)
            case Terminate(conn) | Kill(conn):
                number = signal.SIGKILL if isinstance(op, Kill) else signal.SIGTERM
                with suppress(ProcessLookupError):  # nothing is left of the group
                    os.killpg(self._processes[conn].pid, number)
            case Close() | Connect() | ConnectUnix() | StartTls():
                raise AssertionError("a process is started and ended by other ops")
            case _:
                assert_never(op)

    def _spawn(self, conn: ConnectionId, argv: Any, env: Any, cwd: str | None) -> None:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                argv, 0, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, start_new_session=True
            )
        except OSError as error:
            self.core.failed(conn, str(error), now())
            return
        self._processes[conn], self._unsent[conn], self._tails[conn] = process, bytearray(), b""
        for name in ("stdin", "stdout", "stderr"):
            os.set_blocking(getattr(process, name).fileno(), False)
        for name in ("stdout", "stderr"):
            self._selector.register(getattr(process, name), selectors.EVENT_READ, (conn, name))
        self.core.opened(conn, now())

    def _ready(self, conn: ConnectionId, name: str, fd: int) -> None:
        if name == "stdin":
            self._send(conn)
            return
        data = os.read(fd, 65536)
        if not data:
            self._selector.get_key(fd).fileobj.close()  # type: ignore[union-attr]
            self._selector.unregister(fd)
        if name == "stderr":
            self._tails[conn] = (self._tails[conn] + data)[-TAIL:]
        elif data:
            self.core.receive_data(conn, data, now())
        else:
            self.core.receive_eof(conn, now())

    def _send(self, conn: ConnectionId) -> None:
        stdin, unsent = self._processes[conn].stdin, self._unsent[conn]
        assert stdin is not None
        if stdin.closed:
            return
        registered = stdin.fileno() in self._selector.get_map()
        try:
            while unsent:
                del unsent[: os.write(stdin.fileno(), unsent)]
        except BlockingIOError:
            if not registered:
                self._selector.register(stdin, selectors.EVENT_WRITE, (conn, "stdin"))
            return
        except OSError as error:
            unsent.clear()
            self.core.failed(conn, str(error), now())
        if registered:
            self._selector.unregister(stdin)
        if conn in self._closing:
            stdin.close()

    def close(self) -> None:
        """Let go of the pipes; of a process that is still there too."""
        for process in self._processes.values():
            with process:
                process.kill()
        self._selector.close()

    # for the tests -------------------------------------------------------------------------------

    def end_of(self, call: Call) -> Any:
        """The result of a call, or the error that it ended in."""

        def ended() -> list[Event]:
            ends = (ResultReady, RequestFailed)
            return [e for e in self.events if isinstance(e, ends) and e.call is call]

        self.run(ended)
        (end,) = ended()
        return end.result if isinstance(end, ResultReady) else end.error  # type: ignore[attr-defined]

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@contextmanager
def driving(core: StdioClient) -> Iterator[Driver]:
    driver = Driver(core)
    try:
        core.start(now())
        yield driver
    finally:
        driver.close()


@contextmanager
def connected(name: str, scratch: Path, probe: float) -> Iterator[Driver]:
    """A driver connected to a peer; it ends in order."""
    needs(name)
    prepare(name, scratch)
    launch = PEERS[name].launch(scratch)
    engine = ClientEngine(Implementation("driver", "1"), now=now(), timeouts=Timeouts(probe=probe))
    core = StdioClient(engine, Command(launch.argv, launch.env, str(launch.cwd)), now=now())
    with driving(core) as driver:
        driver.run(lambda: driver.of(EraDecided) or driver.of(SessionEnded))
        yield driver
        core.close(now())
        driver.run(lambda: core.finished)
        assert [event.error for event in driver.of(SessionEnded)] == [None]


@pytest.mark.parametrize("name", ["npm-server-2.4.0", "mcp-1.30.0", "mcp-2.3.0", "everything"])
@pytest.mark.req("AA1", "A1", "J1", "K1", "L4", "Q4", "Q7")
def test_main_job(name: str, tmp_path: Path) -> None:
    peer, known = PEERS[name], KNOWN[name]
    with connected(name, tmp_path, probe=20.0) as driver:
        use(driver, peer, known)


def use(driver: Driver, peer: Peer, known: Known) -> None:
    engine = driver.core.engine
    (decided,) = driver.of(EraDecided)
    assert decided.era.value == peer.era
    assert decided.server_info.name == known.server

    listed = driver.end_of(engine.list_all_tools(now=now()))
    assert set(peer.tools) <= {tool.name for tool in listed.tools}
    for ask in known.good:
        result = driver.end_of(engine.call_tool(ask.tool, ask.arguments, now=now()))
        assert ask.text in text_of(result)
        assert result.structured_content == ask.structured
    failing = driver.end_of(engine.call_tool(known.failing.tool, known.failing.arguments, now=now()))
    assert failing.is_error
    for uri, text in known.resources.items():
        found = driver.end_of(engine.read_resource(uri, now=now())).contents[0]
        assert getattr(found, "text", getattr(found, "blob", "")).startswith(text)
    for prompt in known.prompts:
        filled = driver.end_of(engine.get_prompt(prompt.name, prompt.arguments, now=now()))
        assert filled.messages[0].content.text == prompt.text

    slow = known.slow
    assert slow is not None
    call = engine.call_tool(slow.tool, slow.lasting(0.2), now=now(), progress=True)
    assert slow.text in text_of(driver.end_of(call))
    assert [(e.progress, e.total) for e in driver.of(ProgressReported) if e.call is call] == [
        (1, 4), (2, 4), (3, 4), (4, 4)
    ]  # fmt: skip

    call = engine.call_tool(slow.tool, slow.lasting(0.5), now=now())
    driver.drain()
    engine.cancel(call, now=now())
    assert isinstance(driver.end_of(call), CallCancelled)
    call = engine.call_tool(slow.tool, slow.lasting(2.0), now=now(), timeout=0.1)
    assert isinstance(driver.end_of(call), CallTimeout)

    writes = len([op for op in driver.ops if isinstance(op, Write)])
    asks = [known.many(number) for number in range(MANY)]
    calls = [engine.call_tool(ask.tool, ask.arguments, now=now()) for ask in asks]
    driver.drain()
    assert len([op for op in driver.ops if isinstance(op, Write)]) == writes + 1
    for call, ask in zip(calls, asks, strict=True):
        assert ask.text in text_of(driver.end_of(call))
    assert engine.stats()["calls"] == 0


@pytest.mark.req("A13", "Q4")
@pytest.mark.case("V-03")
def test_server_that_dies_of_the_probe(tmp_path: Path) -> None:
    name = "mcp-1.8.1"
    with connected(name, tmp_path, probe=0.5) as driver:
        (decided,) = driver.of(EraDecided)
        assert decided.revision == PEERS[name].legacy_revision
        assert [op.conn for op in driver.ops if isinstance(op, Spawn)] == [1, 2]
        assert driver.codes == {1: 1}
        ask = KNOWN[name].good[0]
        call = driver.core.engine.call_tool(ask.tool, ask.arguments, now=now())
        assert ask.text in text_of(driver.end_of(call))
    assert driver.codes == {1: 1, 2: 0}
    assert not any(isinstance(op, Terminate) for op in driver.ops)


@pytest.mark.req("Q6", "Q7", "A13")
@pytest.mark.case("R-07")
@pytest.mark.parametrize(
    ("argv", "told", "spawned"),
    [
        (["no-such-program"], "cannot start no-such-program", 1),
        ([sys.executable, "-c", "import sys; sys.exit('last words')"], "exit code 1", 2),
    ],
    ids=["missing", "dies at once"],
)
def test_program_that_is_no_server(argv: list[str], told: str, spawned: int) -> None:
    engine = ClientEngine(Implementation("driver", "1"), now=now())
    core = StdioClient(engine, Command(argv, dict(os.environ)), now=now())
    with driving(core) as driver:
        driver.run(lambda: core.finished)
    (ended,) = driver.of(SessionEnded)
    assert isinstance(ended.error, ConnectionEnded)
    assert told in str(ended.error)
    assert len([op for op in driver.ops if isinstance(op, Spawn)]) == spawned
    if spawned == 2:
        assert (ended.error.returncode, ended.error.stderr_tail) == (1, "last words\n")
