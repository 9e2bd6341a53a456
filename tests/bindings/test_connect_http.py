"""`connect` to URLs, over real sockets."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from sansmcp import (
    CallCancelled,
    ConnectionEnded,
    Era,
    Event,
    HttpFailure,
    Legacy,
    LocalProtocolError,
    McpError,
    OldSseUse,
    ProgressReported,
    RequestCancelled,
    RequestReceived,
    Revision,
    SansmcpError,
    SessionEnded,
)
from sansmcp.errors import NetworkFailure, NetworkProblem
from sansmcp.http.connector import HttpConnector
from sansmcp.http.listener import ConnectionPolicy
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp_asyncio import Client, connect

from ..support import initialize_result
from .http_support import closed_port, fails_with, listening, served, text_of
from .support import run, soon

MODES = [None, *(Legacy((r,)) for r in Revision if r is not Revision.V2026_07_28)]


# every verb, in both eras ------------------------------------------------------------------------


@pytest.mark.req("R11", "R1", "R2", "A1", "A15")
@pytest.mark.parametrize("mode", MODES)
def test_every_verb(mode: Any) -> None:
    async def main() -> None:
        async with served() as serving, connect(serving.url, mode=mode) as client:
            assert client.era is (Era.MODERN if mode is None else Era.LEGACY)
            assert client.server_info is not None
            assert client.server_info.name == "over http"
            assert text_of(await client.call_tool("add", {"a": 2, "b": 40})) == "42"
            told: list[ProgressReported] = []
            assert text_of(await client.call_tool("count", {"upto": 3}, on_progress=told.append)) == "counted"
            assert [event.progress for event in told] == [1, 2, 3]
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["add", "count", "wait", "large"]
            assert (await client.read_resource("file:///a.txt")).contents
            assert (await client.list_resources()).resources
            assert (await client.get_prompt("greet", {"name": "you"})).messages
            assert (await client.list_prompts()).prompts
            if mode is not None:
                await client.ping()
            with pytest.raises(McpError):
                await client.read_resource("file:///none")
            answers = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": n}) for n in range(200)))
            assert [text_of(answer) for answer in answers] == [str(2 * n) for n in range(200)]
            assert len(text_of(await client.call_tool("large", {"size": 3_000_000}))) == 3_000_000

    run(main)


@pytest.mark.req("K1", "K2")
@pytest.mark.case("H-12")
@pytest.mark.parametrize("mode", [None, Legacy()])
def test_a_task_that_is_cancelled_cancels_the_call_at_the_server(mode: Any) -> None:
    heard: list[Event] = []

    async def main() -> None:
        async with served(on_event=heard.append) as serving, connect(serving.url, mode=mode) as client:
            task = asyncio.create_task(client.call_tool("wait"))
            await soon(lambda: serving.listener.stats()["answering"] > (mode is not None), "the request")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await soon(lambda: [e for e in heard if isinstance(e, RequestCancelled)], "the cancel")
            assert text_of(await client.call_tool("add", {"a": 1, "b": 1})) == "2"

    run(main)


def test_connections_are_kept_and_seen() -> None:
    seen: list[tuple[str, bytes]] = []

    async def main() -> None:
        wire = lambda way, data: seen.append((way, data))  # noqa: E731
        async with served() as serving, connect(serving.url, on_wire=wire) as client:
            for _ in range(20):
                await client.call_tool("add", {"a": 1, "b": 2})
            assert serving.listener.stats()["connections"] == 1
        sent = b"".join(data for way, data in seen if way == "sent")
        received = b"".join(data for way, data in seen if way == "received")
        assert sent.count(b"POST /mcp HTTP/1.1\r\n") == 21
        assert received.count(b"HTTP/1.1 200 ") == 21

    run(main)


def test_streams_side_by_side() -> None:
    async def main() -> None:
        async with served() as serving, connect(serving.url) as client:
            results = await asyncio.gather(*(client.call_tool("count", {"upto": 5}) for _ in range(50)))
            assert {text_of(result) for result in results} == {"counted"}

    run(main)


# servers that come and go ------------------------------------------------------------------------


def test_a_server_that_is_started_again_is_found_again() -> None:
    async def main() -> None:
        async with served() as serving:
            port = serving.port
            client = await connect(serving.url)
            await client.call_tool("add", {"a": 1, "b": 2})
        # The first call may cross with the end of the connection: nobody knows whether it was carried out.
        for problems in ({NetworkProblem.LOST, NetworkProblem.REFUSED}, {NetworkProblem.REFUSED}):
            with pytest.raises(NetworkFailure) as caught:
                await client.call_tool("add", {"a": 1, "b": 2})
            assert caught.value.problem in problems
            assert caught.value.retryable
        async with served(port=port):
            assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
            await client.aclose()

    run(main)


def test_a_session_that_is_lost_with_the_server_is_opened_anew() -> None:
    async def main() -> None:
        async with served() as serving:
            port = serving.port
            client = await connect(serving.url, mode=Legacy(), listen=False)
        async with served(port=port):
            with pytest.raises(HttpFailure):  # a tool is not called twice without leave
                await client.call_tool("add", {"a": 1, "b": 2})
            assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
            await client.aclose()

    run(main)


def test_a_kept_connection_that_the_server_ends_is_not_noticed() -> None:
    async def main() -> None:
        policy = ConnectionPolicy(idle_timeout=0.05)
        async with served(connections=policy) as serving, connect(serving.url) as client:
            for _ in range(20):
                await client.call_tool("add", {"a": 1, "b": 2})
                await asyncio.sleep(0.05)

    run(main)


def test_a_server_that_ends_within_a_call() -> None:
    async def main() -> None:
        async with served() as serving:
            client = await connect(serving.url)
            task = asyncio.create_task(client.call_tool("wait"))
            await soon(lambda: serving.listener.stats()["answering"], "the request")
        with pytest.raises(SansmcpError):
            await task
        await client.aclose()
        with pytest.raises(SansmcpError):
            await client.call_tool("wait")

    run(main)


@pytest.mark.req("P7", "P9")
@pytest.mark.parametrize(("path", "use"), [("/sse", OldSseUse.ONLY), ("/sse", OldSseUse.AUTO)])
def test_the_old_transport(path: str, use: OldSseUse) -> None:
    async def main() -> None:
        async with served(old_sse=OldSsePaths("/sse", "/messages")) as serving:
            url = serving.url.replace("/mcp", path)
            async with connect(url, mode=Legacy(), old_sse=use) as client:
                assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
                told: list[ProgressReported] = []
                await client.call_tool("count", {"upto": 3}, on_progress=told.append)
                assert len(told) == 3

    run(main)


# no connection -----------------------------------------------------------------------------------


@pytest.mark.case("R-07")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("mode", [None, Legacy()])
def test_nobody_listens(host: str, mode: Any) -> None:
    async def main() -> None:
        error = await fails_with(NetworkFailure, f"http://{host}:{closed_port()}/mcp", mode=mode)
        assert error.problem is NetworkProblem.REFUSED
        assert "nobody listens there" in str(error)

    run(main)


def test_a_name_without_an_address() -> None:
    async def main() -> None:
        error = await fails_with(NetworkFailure, "http://nowhere.invalid/mcp", proxy=False)
        assert error.problem is NetworkProblem.NAME
        assert "cannot connect to nowhere.invalid:80" in str(error)

    run(main)


def test_a_server_that_resets_or_speaks_something_else() -> None:
    async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async def greets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        await reader.read()

    async def breaks_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")

    async def main() -> None:
        for serve, words in [
            (resets, "the connection was lost"),
            (greets, "is no proper HTTP"),
            (breaks_off, "the connection ended within a body"),
        ]:
            async with listening(serve) as port:
                error = await fails_with(HttpFailure, f"http://127.0.0.1:{port}/mcp", mode=Legacy())
                assert words in str(error)

    run(main)


@pytest.mark.case("R-07")
def test_a_server_that_says_nothing_does_not_hold_up_the_end() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with listening(silent) as port:
            opening = asyncio.create_task(anything(f"http://127.0.0.1:{port}/mcp"))
            await asyncio.sleep(0.1)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening

    run(main)


async def anything(url: str) -> None:
    async with connect(url):
        pass


@pytest.mark.req("P6")
def test_the_end_of_a_session_is_waited_for_but_not_under_a_cancel() -> None:
    """DELETE gets no answer; whoever cancels the close has it at once."""
    asked = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"DELETE"):
                asked.set()
                await asyncio.Event().wait()
            length = re.search(rb"content-length: (\d+)", head)
            assert length is not None
            message = json.loads(await reader.readexactly(int(length[1])))
            if "id" not in message:
                writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                continue
            result = initialize_result("2025-11-25")
            answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            fields = b"content-type: application/json\r\nmcp-session-id: s3ssion\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (fields, len(answer), answer))

    async def main() -> None:
        async with listening(deaf) as port:
            client = await connect(f"http://127.0.0.1:{port}/mcp", mode=Legacy(), listen=False)
            assert "s3ssion" not in f"{client!r}{client.transport!r}{client.engine!r}"
            closing = asyncio.create_task(client.aclose())
            await asked.wait()
            assert not closing.done()
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert client.transport.finished

    run(main)


# options -----------------------------------------------------------------------------------------


def test_headers_go_along_and_are_nobodys_business() -> None:
    seen: list[bytes] = []

    async def main() -> None:
        async with served() as serving:
            for headers in ({"Authorization": "Bearer s3cret"}, [("authorization", "Bearer s3cret")]):
                seen.clear()
                wire = lambda _, data: seen.append(data)  # noqa: E731
                async with connect(serving.url, headers=headers, on_wire=wire) as client:
                    assert "s3cret" not in f"{client!r}{client.transport!r}"
                assert b"\r\nauthorization: Bearer s3cret\r\n" in b"".join(seen)

    run(main)


@pytest.mark.parametrize(
    ("target", "options", "name"),
    [
        ("http://localhost/", {"env": {}}, "env"),
        ("http://localhost/", {"cwd": ".", "inherit_env": True, "env": None}, "cwd, inherit_env"),
        ("https://localhost/", {"stderr": print}, "stderr"),
        ("python server.py", {"headers": {}}, "headers"),
        (["python"], {"ssl": None, "proxy": False, "listen": True}, "listen, proxy"),
    ],
)
def test_options_of_the_other_kind_are_refused_at_once(target: Any, options: Any, name: str) -> None:
    with pytest.raises(LocalProtocolError, match=f"connect: {name}: no option"):
        connect(target, **options)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://", {}),
        ("http://user:s3cret@localhost/", {}),
        ("http://localhost/", {"headers": {"host": "x"}}),
        ("http://localhost/", {"proxy": "socks5://s3cret@x"}),
        ("http://localhost/", {"nonsense": 1}),
    ],
)
def test_what_cannot_be_is_refused_on_entering(url: str, options: Any) -> None:
    async def main() -> None:
        error = await fails_with((LocalProtocolError, TypeError), url, **options)
        assert "s3cret" not in str(error)

    run(main)


def test_who_starts_a_child_process_loads_no_http() -> None:
    script = (
        "import sys, sansmcp_asyncio; sansmcp_asyncio.connect('true'); "
        "print([m for m in sys.modules if m in ('h11', 'ssl') or m.startswith('sansmcp.http')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = done.stdout.strip()
    assert "h11" not in loaded
    assert "sansmcp.http" not in loaded


# nothing is left ---------------------------------------------------------------------------------


@pytest.mark.case("R-06")
@pytest.mark.parametrize("mode", [None, Legacy()])
def test_fifty_clients_leave_nothing(mode: Any) -> None:
    async def main() -> None:
        async with served() as serving:
            for _ in range(50):
                async with connect(serving.url, mode=mode) as client:
                    await asyncio.gather(*(client.call_tool("add", {"a": 1, "b": n}) for n in range(3)))
                assert client.transport.finished
                assert isinstance(client.transport, HttpConnector)
                assert not any(client.transport.stats().values())
            await soon(lambda: not serving.listener.stats()["connections"], "the end of the last")
            assert len(asyncio.all_tasks()) == 1

    run(main)


def test_a_client_that_nobody_closed_is_closed_with_its_loop() -> None:
    kept: list[Client] = []

    async def main() -> None:
        async with served() as serving:
            kept.append(await connect(serving.url))

    run(main)
    assert kept[0].transport.finished


@pytest.mark.case("R-08")
@pytest.mark.parametrize("mode", [None, Legacy()])
def test_a_close_within_the_end(mode: Any) -> None:
    ends: list[Event] = []

    async def main() -> None:
        async with served() as serving:

            def on_event(event: Event) -> None:
                if isinstance(event, SessionEnded):
                    ends.append(event)
                    client.close()

            client = await connect(serving.url, mode=mode, on_event=on_event)
            client.close()
            await asyncio.gather(client.aclose(), client.aclose())
            with pytest.raises(LocalProtocolError, match="has ended"):
                await client.call_tool("wait")
        assert len(ends) == 1

    run(main)


INTERRUPTED = """
import asyncio, sys, sansmcp, sansmcp_asyncio

async def main():
    mode = sansmcp.Legacy() if sys.argv[2] == "legacy" else None
    async with sansmcp_asyncio.connect(sys.argv[1], mode=mode) as client:
        print("connected", flush=True)
        await client.call_tool("wait")

asyncio.run(main())
"""


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_an_interrupt_ends_it_in_good_order(era: str) -> None:
    heard: list[Event] = []

    async def main() -> None:
        async with served(on_event=heard.append) as serving:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-X", "dev", "-c", INTERRUPTED, serving.url, era),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            assert child.stdout is not None
            assert await child.stdout.readline() == b"connected\n"
            await soon(lambda: len(requests_in(heard)) == 1, "the call")
            child.send_signal(signal.SIGINT)
            _, complaints = await child.communicate()
            last = complaints.decode().strip().splitlines()[-1]
            assert last == "KeyboardInterrupt"
            assert b"never retrieved" not in complaints
            assert b"was destroyed" not in complaints
            assert b"ResourceWarning" not in complaints
            await soon(lambda: not serving.listener.stats()["connections"], "the end of the connections")
            assert not list(serving.listener.server.sessions)
            assert any(isinstance(event, RequestCancelled) for event in heard)

    run(main)


def requests_in(heard: list[Event]) -> list[Event]:
    """The calls of tools among them."""
    return [e for e in heard if isinstance(e, RequestReceived) and e.request.method == "tools/call"]


def test_a_close_in_the_middle_of_calls() -> None:
    async def main() -> None:
        async with served() as serving:
            async with connect(serving.url) as client:
                tasks = [asyncio.create_task(client.call_tool("wait")) for _ in range(40)]
                await soon(lambda: serving.listener.stats()["answering"], "a request")
            for task in tasks:
                with pytest.raises((ConnectionEnded, CallCancelled)):
                    await task

    run(main)
