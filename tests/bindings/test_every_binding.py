"""Scenarios that every binding passes: asyncio, trio and threads, over every transport, in both eras."""

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import sansmcp_threads
from sansmcp import (
    CallTimeout,
    ConnectionEnded,
    Era,
    Legacy,
    ListChanged,
    McpError,
    Pin,
    ProgressReported,
    RestartPolicy,
    Revision,
    SansmcpError,
    SessionEnded,
    SessionExpired,
    ShutdownLadder,
    SpawnFailed,
)
from sansmcp.errors import NetworkFailure, NetworkProblem
from sansmcp.types.elicitation import ElicitResult

from .every_app import app
from .http_support import closed_port
from .kits import KITS, Kit
from .support import server, text_of
from .test_connect_tls import certificate, contexts

pytestmark = pytest.mark.matrix


__all__ = ["certificate"]

MODES = [
    pytest.param(None, id="auto"),
    pytest.param(Legacy(), id="legacy"),
    pytest.param(Pin(Revision.V2025_11_25), id="pin-2025-11-25"),
    pytest.param(Pin(Revision.V2026_07_28), id="pin-2026-07-28"),
]
ERAS = [pytest.param(None, id="modern"), pytest.param(Legacy(), id="legacy")]
TRANSPORTS = ["stdio", "http", "ws", "tcp", "unix", "memory"]


@pytest.fixture(params=KITS, ids=lambda kit: kit.name)
def kit(request: pytest.FixtureRequest) -> Kit:
    kit: Kit = request.param
    return kit


def serve(name: str) -> list[str]:
    """The same app, as a child process."""
    return server("every", name)


class _Reached:
    """A client over a transport, and the server if that is no other process."""

    def __init__(self, kit: Kit, transport: str, options: dict[str, Any]) -> None:
        self._kit = kit
        self._transport = transport
        self._options = options
        self._serving: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def __aenter__(self) -> Any:
        match self._transport:
            case "stdio":
                self._opening = self._kit.connect(serve(self._kit.name), **self._options)
            case "memory":
                self._opening = self._kit.connect_memory(app(), **self._options)
            case "http":
                self._serving = self._kit.serving(app())
                serving = await self._serving.__aenter__()
                self._opening = self._kit.connect(serving.url, **self._options)
            case "unix":
                self._folder = tempfile.TemporaryDirectory()
                path = f"{self._folder.name}/socket"
                self._serving = self._kit.streaming("unix", app(), path)
                await self._serving.__aenter__()
                self._opening = self._kit.connect(f"unix://{path}", **self._options)
            case kind:
                self._serving = self._kit.streaming(kind, app())
                serving = await self._serving.__aenter__()
                where = f"{kind}://127.0.0.1:{serving.port}{'/mcp' if kind == 'ws' else ''}"
                self._opening = self._kit.connect(where, **self._options)
        try:
            return await self._opening.__aenter__()
        except BaseException:
            await self._unserve(None, None, None)
            raise

    async def __aexit__(self, *error: object) -> None:
        await self._opening.__aexit__(*error)
        await self._unserve(*error)

    async def _unserve(self, *error: object) -> None:
        if self._serving is not None:
            await self._serving.__aexit__(*error)
        if self._folder is not None:
            self._folder.cleanup()


def reached(kit: Kit, transport: str, **options: Any) -> Any:
    return _Reached(kit, transport, options)


@pytest.mark.req("S2")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_connect_and_call(kit: Kit, transport: str, mode: Any) -> None:
    async def main() -> None:
        async with reached(kit, transport, mode=mode) as client:
            modern = mode is None or mode == Pin(Revision.V2026_07_28)
            assert client.era is (Era.MODERN if modern else Era.LEGACY)
            assert text_of(await client.call_tool("echo", {"text": "ü 🐟 \u2028"})) == "ü 🐟 \u2028"
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["echo", "steps", "changes", "who", "sleeps"]
            with pytest.raises(McpError):
                await client.call_tool("nothing")
            assert client.engine.stats()["calls"] == 0

    kit.run(main)


@pytest.mark.req("Q11")
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_thousand_calls_at_once(kit: Kit, transport: str, mode: Any) -> None:
    async def main() -> None:
        async with reached(kit, transport, mode=mode) as client:

            async def call(number: int) -> str:
                return text_of(await client.call_tool("echo", {"text": str(number)}))

            numbers = range(1000)
            assert await kit.together(*map(call, numbers)) == [str(number) for number in numbers]
            assert client.engine.stats()["calls"] == 0

    kit.run(main)


@pytest.mark.req("K1", "L1")
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_timeout_and_progress(kit: Kit, transport: str, mode: Any) -> None:
    async def main() -> None:
        async with reached(kit, transport, mode=mode) as client:
            with pytest.raises(CallTimeout):
                await client.call_tool("sleeps", {"seconds": 60}, timeout=0.1)
            seen: list[ProgressReported] = []
            done = await client.call_tool("steps", {"count": 3}, on_progress=seen.append)
            assert text_of(done) == "done"
            assert [event.progress for event in seen] == [1, 2, 3]

    kit.run(main)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_elicitation(kit: Kit, transport: str, mode: Any) -> None:
    async def main() -> None:
        def answer(params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"name": "Ada"})

        async with reached(kit, transport, mode=mode, on_elicit=answer) as client:
            assert "accept" in text_of(await client.call_tool("who"))

    kit.run(main)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_subscription(kit: Kit, transport: str, mode: Any) -> None:
    async def main() -> None:
        async with reached(kit, transport, mode=mode) as client, client.listen(tools=True) as changes:
            await client.call_tool("changes")
            async for change in changes:
                assert isinstance(change, ListChanged)
                break

    kit.run(main)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_belongs_to_no_call_is_among_the_events(kit: Kit, transport: str) -> None:
    seen: list[Any] = []

    async def main() -> None:
        async with reached(kit, transport, on_event=seen.append) as client:
            events = client.events()
            await client.call_tool("echo", {"text": "a"})
        left = [event async for event in events]
        assert isinstance(left[-1], SessionEnded)
        assert {type(event) for event in left} <= {type(event) for event in seen}

    kit.run(main)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_close_from_elsewhere(kit: Kit, transport: str) -> None:
    async def main() -> None:
        async with reached(kit, transport) as client:

            async def close() -> None:
                await kit.sleep(0.1)
                await (client.close() if kit.name == "threads" else client.aclose())

            ended, _ = await kit.together(client.call_tool("sleeps", {"seconds": 60}), close())
            assert isinstance(ended, ConnectionEnded)

    kit.run(main)


# child processes ---------------------------------------------------------------------------------

SHORT = ShutdownLadder(after_close=0.2, after_terminate=0.2)


@pytest.mark.req("Q4")
@pytest.mark.case("R-03")
@pytest.mark.parametrize("name", ["ignores_eof", "ignores_term", "goes_deaf"])
def test_a_child_that_does_not_leave(kit: Kit, name: str) -> None:
    async def main() -> None:
        async with kit.connect(server(name), ladder=SHORT):
            started = time.monotonic()
        assert time.monotonic() - started > 0.19

    kit.run(main)


@pytest.mark.req("Q9")
def test_a_child_that_dies(kit: Kit, tmp_path: Path) -> None:
    async def main() -> None:
        async with kit.connect(server("dies_in_call"), restart=RestartPolicy(limit=0)) as client:
            with pytest.raises(ConnectionEnded) as caught:
                await client.call_tool("x")
            assert caught.value.returncode == 3
            assert "boom" in caught.value.stderr_tail
        with pytest.raises(ConnectionEnded) as caught:
            async with kit.connect(server("dies_always")):
                pass
        assert "no such module" in caught.value.stderr_tail
        with pytest.raises(SpawnFailed):
            async with kit.connect("/no/such/program"):
                pass
        argv = server("crashes_once", str(tmp_path / "mark"))
        async with kit.connect(argv, restart=RestartPolicy(delay=0.05)) as client:
            with pytest.raises(ConnectionEnded):
                await client.call_tool("x")
            assert int(text_of(await client.call_tool("x"))) > 0

    kit.run(main)


@pytest.mark.parametrize("name", ["loud", "floods", "banner", "closes_stdin", "closes_stdout", "holds_pipes"])
def test_a_child_that_behaves_oddly(kit: Kit, name: str) -> None:
    async def main() -> None:
        pieces: list[bytes] = []
        options: dict[str, Any] = {"ladder": SHORT, "restart": RestartPolicy(limit=0)}
        async with kit.connect(server(name), stderr=pieces.append, **options) as client:
            try:
                assert text_of(await client.call_tool("x"))
            except ConnectionEnded:
                assert name in {"closes_stdin", "closes_stdout", "holds_pipes"}
        for words in b"".join(pieces).split(b"\n"):
            if words.startswith(b"grandchild"):
                os.kill(int(words.split()[1]), signal.SIGKILL)

    kit.run(main)


# sockets -----------------------------------------------------------------------------------------


@pytest.mark.case("W-01")
def test_nobody_is_there(kit: Kit, certificate: Any) -> None:
    theirs, ours = contexts(certificate)

    async def problem(url: str, **options: Any) -> NetworkProblem:
        with pytest.raises(NetworkFailure) as caught:
            async with kit.connect(url, proxy=False, **options):
                pass
        return caught.value.problem

    async def main() -> None:
        assert await problem(f"http://127.0.0.1:{closed_port()}/mcp") is NetworkProblem.REFUSED
        assert await problem("http://no-such-host.invalid/mcp") is NetworkProblem.NAME
        async with kit.serving(app(), ssl=theirs) as serving:
            url = serving.url.replace("127.0.0.1", "localhost")
            assert await problem(url) is NetworkProblem.TLS
            async with kit.connect(url, ssl=ours, proxy=False) as client:
                assert text_of(await client.call_tool("echo", {"text": "x" * 200_000})) == "x" * 200_000
        async with kit.serving(app()) as serving:
            assert await problem(serving.url.replace("http", "https")) is NetworkProblem.TLS

    kit.run(main)


@pytest.mark.parametrize("mode", ERAS)
def test_a_server_that_is_started_again(kit: Kit, mode: Any) -> None:
    async def main() -> None:
        first = sansmcp_threads.HttpServing(app())
        first.__enter__()
        async with kit.connect(first.url, mode=mode) as client:
            assert text_of(await client.call_tool("echo", {"text": "a"})) == "a"
            first.close()
            with pytest.raises(SansmcpError):
                await client.call_tool("echo", {"text": "a"})
            with sansmcp_threads.HttpServing(app(), port=first.port):
                lost: list[SansmcpError] = []
                while len(lost) < 3:
                    try:
                        assert text_of(await client.call_tool("echo", {"text": "b"})) == "b"
                        break
                    except SansmcpError as error:
                        lost.append(error)
                # Of the older one's connections the one that was a stream may seem to be kept.
                expired = [error for error in lost if isinstance(error, SessionExpired)]
                assert len(expired) == (mode is not None)
                assert len(lost) <= len(expired) + 1

    kit.run(main)


# again and again ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "times"), [("memory", 100), ("http", 100), ("stdio", 10)])
def test_connecting_again_and_again_leaves_nothing(kit: Kit, transport: str, times: int) -> None:
    async def main() -> None:
        for _ in range(times):
            async with reached(kit, transport) as client:
                assert text_of(await client.call_tool("echo", {"text": "a"})) == "a"

    kit.run(main)


def test_many_servers(kit: Kit) -> None:
    async def main() -> None:
        async with kit.serving(app()) as serving:
            targets = {"a": serving.url, "b": serve(kit.name), "c": "/no/such/program"}
            async with kit.connect_many(targets) as many:
                assert sorted(many.clients) == ["a", "b"]
                assert isinstance(many.failures["c"], SpawnFailed)
                assert (await many.call("b_echo", {"text": "hi"})).content == "hi"

    kit.run(main)
