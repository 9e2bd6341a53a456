"""`serve_http` over real sockets, spoken to by hand and by the standard library."""

import asyncio
import http.client
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import App, Context, Event, LimitHit, LocalProtocolError, RequestCancelled, RequestReceived
from sansmcp.http.guard import ANY
from sansmcp.http.headers import project_headers
from sansmcp.http.listener import ConnectionPolicy, policy_for
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.limits import Limits
from sansmcp_asyncio import HttpServing

from ..http_support import BOTH, INITIALIZED, call, initialize
from ..support import meta
from .support import PATIENCE, run, soon


def make_app() -> App:
    app = App("over http", "1.0")

    @app.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool()
    async def count(upto: int, ctx: Context) -> str:
        for step in range(upto):
            ctx.progress(step + 1, upto)
            await asyncio.sleep(0.01)
        return "counted"

    @app.tool()
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    @app.tool()
    def large(size: int) -> str:
        return "x" * size

    @app.tool()
    def where() -> str:
        return threading.current_thread().name

    return app


# by hand -----------------------------------------------------------------------------------------


def message(method: str, params: dict[str, Any] | None = None, *, id: Any = 1, token: Any = None) -> Any:
    extra = {} if token is None else {"progressToken": token}
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": method,
        "params": {**(params or {}), "_meta": {**meta(), **extra}},
    }


def tool(name: str, arguments: Any = None, *, id: Any = 1, token: Any = None) -> Any:
    return message("tools/call", {"name": name, "arguments": arguments or {}}, id=id, token=token)


def fields_for(body: Any, **more: str) -> dict[str, str]:
    fields = {"host": "localhost", "content-type": "application/json", "accept": BOTH}
    if "_meta" in body.get("params", {}):
        fields |= {name.lower(): value for name, value in project_headers(body)}
    return {**fields, **{name.replace("_", "-"): value for name, value in more.items()}}


def post(body: Any, **more: str) -> bytes:
    data = json.dumps(body).encode()
    fields = {**fields_for(body, **more), "content-length": str(len(data))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + data


class Talk:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def head(self) -> tuple[int, dict[str, str]]:
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line)
        return int(first.split()[1]), fields

    async def ask(self, body: Any, **more: str) -> tuple[int, dict[str, str], Any]:
        """Send a request whose response is one JSON value, or nothing."""
        self.writer.write(post(body, **more))
        status, fields = await self.head()
        data = await self.reader.readexactly(int(fields["content-length"]))
        return status, fields, json.loads(data) if data.startswith(b"{") else data

    async def event(self) -> Any:
        """The next message of an event stream; None at its end."""
        while True:
            size = int(await self.reader.readline(), 16)
            data = (await self.reader.readexactly(size + 2))[:-2]
            if not size:
                return None
            for line in data.splitlines():
                if line.startswith(b"data: {"):
                    return json.loads(line[6:])

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[HttpServing, Callable[..., Awaitable[Talk]]]]:
    """A server, and what connects to it."""
    talks: list[Talk] = []
    async with asyncio.timeout(30), HttpServing(make_app(), **options) as serving:

        async def connect(tls: ssl.SSLContext | None = None) -> Talk:
            name = None if tls is None else "localhost"
            talk = Talk(
                *await asyncio.open_connection(serving.host, serving.port, ssl=tls, server_hostname=name)
            )
            talks.append(talk)
            return talk

        try:
            yield serving, connect
        finally:
            for talk in talks:
                talk.close()


def text_of(answer: Any) -> str:
    text = answer["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


# both eras ---------------------------------------------------------------------------------------


@pytest.mark.req("R11")
def test_a_modern_client() -> None:
    async def main() -> None:
        async with served() as (serving, connect):
            assert serving.url == f"http://127.0.0.1:{serving.port}/mcp"
            talk = await connect()
            status, _, answer = await talk.ask(message("server/discover"))
            assert status == 200
            assert "2026-07-28" in answer["result"]["supportedVersions"]
            status, fields, answer = await talk.ask(tool("add", {"a": 2, "b": 40}))
            assert (status, text_of(answer)) == (200, "42")
            assert "date" not in fields
            status, _, answer = await talk.ask(message("no/such"))
            assert (status, answer["error"]["code"]) == (404, -32601)
            assert serving.listener.stats()["connections"] == 1

    run(main)


@pytest.mark.req("P8")
def test_a_client_of_http_with_sse() -> None:
    async def main() -> None:
        async with served(old_sse=OldSsePaths()) as (serving, connect):
            stream, talk = await connect(), await connect()
            stream.writer.write(b"GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
            assert (await stream.head())[0] == 200
            named = (await stream.reader.readuntil(b"\n\n")).splitlines()
            assert named[1] == b"event: endpoint"
            place = named[2].removeprefix(b"data: ")
            for body in (
                initialize("2024-11-05"),
                INITIALIZED,
                call("tools/call", {"name": "count", "arguments": {"upto": 2}}),
            ):
                talk.writer.write(post(body).replace(b"/mcp", place, 1))
                assert (await talk.head())[0] == 202
            await stream.reader.readline()
            assert (await stream.event())["result"]["protocolVersion"] == "2024-11-05"
            assert text_of(await stream.event()) == "counted"
            assert serving.listener.stats()["sessions"] == 1
            stream.close()
            await soon(lambda: not serving.listener.stats()["sessions"], "the end of the session")

    run(main)


@pytest.mark.req("R11")
def test_a_legacy_client() -> None:
    async def main() -> None:
        async with served() as (_, connect):
            talk = await connect()
            status, fields, answer = await talk.ask(initialize())
            assert (status, answer["result"]["protocolVersion"]) == (200, "2025-11-25")
            named = {"mcp_session_id": fields["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
            status, _, _ = await talk.ask(INITIALIZED, **named)
            assert status == 202
            asked = call("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
            _, _, answer = await talk.ask(asked, **named)
            assert text_of(answer) == "3"
            other = await connect()
            _, _, answer = await other.ask(call(), **named)
            assert len(answer["result"]["tools"]) == 5

    run(main)


def test_without_legacy_nobody_shakes_hands() -> None:
    async def main() -> None:
        async with served(legacy=False) as (_, connect):
            talk = await connect()
            status, _, answer = await talk.ask(initialize())
            assert (status, answer["error"]["code"]) == (400, -32022)

    run(main)


def test_progress_comes_as_it_is_made() -> None:
    async def main() -> None:
        async with served() as (_, connect):
            talk = await connect()
            talk.writer.write(post(tool("count", {"upto": 3}, token="t")))
            status, fields = await talk.head()
            assert (status, fields["content-type"]) == (200, "text/event-stream")
            for step in (1, 2, 3):
                told = await talk.event()
                assert told["params"] == {"progressToken": "t", "progress": step, "total": 3}
            assert text_of(await talk.event()) == "counted"
            assert await talk.event() is None
            status, _, _ = await talk.ask(tool("add", {"a": 1, "b": 1}))
            assert status == 200

    run(main)


@pytest.mark.parametrize("how", ["close", "abort", "half"])
def test_to_leave_cancels_the_handler(how: str) -> None:
    told: list[Event] = []

    async def main() -> None:
        async with served(on_event=told.append) as (serving, connect):
            talk = await connect()
            talk.writer.write(post(tool("wait", token="t")))
            await soon(lambda: serving.listener.stats()["answering"], "the request")
            if how == "close":
                talk.close()
            elif how == "half":
                talk.writer.write_eof()
            else:
                talk.writer.transport.abort()
            await soon(lambda: [e for e in told if isinstance(e, RequestCancelled)], "the cancel")
            await soon(lambda: not serving.listener.stats()["connections"], "the end")
            assert serving.listener.stats()["open_requests"] == 0

    run(main)


def test_to_leave_a_session_cancels_nothing() -> None:
    told: list[Event] = []

    async def main() -> None:
        async with served(on_event=told.append) as (serving, connect):
            talk = await connect()
            _, fields, _ = await talk.ask(initialize())
            named = {"mcp_session_id": fields["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
            await talk.ask(INITIALIZED, **named)
            talk.writer.write(post(call("tools/call", {"name": "wait", "arguments": {}}), **named))
            await soon(lambda: serving.listener.stats()["answering"], "the request")
            talk.close()
            await soon(lambda: not serving.listener.stats()["connections"], "the end")
            assert not [e for e in told if isinstance(e, RequestCancelled)]

    run(main)


# the standard library as a client ----------------------------------------------------------------


def test_http_client_keeps_its_connection() -> None:
    def talk(port: int) -> list[Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        found = []
        for number in range(20):
            body = tool("add", {"a": number, "b": 1}, id=number)
            fields = {name: value for name, value in fields_for(body).items() if name != "host"}
            connection.request("POST", "/mcp", json.dumps(body), fields)
            response = connection.getresponse()
            found.append((response.status, text_of(json.loads(response.read()))))
        connection.close()
        return found

    async def main() -> None:
        async with served() as (serving, _):
            found = await asyncio.to_thread(talk, serving.port)
            assert found == [(200, str(number + 1)) for number in range(20)]

    run(main)


# load --------------------------------------------------------------------------------------------


def test_many_clients_at_once() -> None:
    async def main() -> None:
        async with served() as (serving, connect):

            async def client(number: int) -> None:
                talk = await connect()
                for step in range(5):
                    _, _, answer = await talk.ask(tool("add", {"a": number, "b": step}))
                    assert text_of(answer) == str(number + step)

            await asyncio.gather(*(client(number) for number in range(40)))
            assert serving.listener.stats()["connections"] == 40

    run(main)


def test_pipelined_requests_are_answered_in_order() -> None:
    async def main() -> None:
        async with served() as (_, connect):
            talk = await connect()
            talk.writer.write(b"".join(post(tool("add", {"a": n, "b": 0}, id=n)) for n in range(100)))
            for number in range(100):
                _, fields = await talk.head()
                answer = json.loads(await talk.reader.readexactly(int(fields["content-length"])))
                assert answer["id"] == number

    run(main)


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    told: list[Event] = []

    def requests() -> int:
        return sum(isinstance(event, RequestReceived) for event in told)

    async def main() -> None:
        async with served(on_event=told.append) as (serving, connect):
            talk = await connect()
            talk.writer.transport.pause_reading()  # type: ignore[attr-defined]
            size = 32 << 20  # more than the system takes from one and keeps for the other
            body = post(tool("large", {"size": size}))
            talk.writer.write(body)
            await soon(lambda: requests() and not serving.listener.stats()["answering"], "an answer")
            talk.writer.write(body)
            await asyncio.sleep(0.1)
            assert requests() == 1
            talk.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(2):
                _, fields = await talk.head()
                assert len(await talk.reader.readexactly(int(fields["content-length"]))) > size
            assert requests() == 2

    run(main)


@pytest.mark.parametrize("threads", [0, 2])
def test_functions_run_in_threads_or_in_the_loop(threads: int) -> None:
    async def main() -> None:
        async with served(threads=threads) as (_, connect):
            talk = await connect()
            _, _, answer = await talk.ask(tool("where"))
            assert text_of(answer) == ("sansmcp handler" if threads else "MainThread")

    run(main)


# bounds and refusals -----------------------------------------------------------------------------


@pytest.mark.req("R6")
def test_a_foreign_page_is_refused_before_it_sends_its_body() -> None:
    async def main() -> None:
        async with served() as (_, connect):
            for origin, expected in [("http://localhost", 100), ("https://evil.example", 403)]:
                talk = await connect()
                begin, _, _ = post(message("ping"), origin=origin, expect="100-continue").partition(
                    b"\r\n\r\n"
                )
                talk.writer.write(begin + b"\r\n\r\n")
                status, _ = await talk.head()
                assert status == expected

    run(main)


@pytest.mark.req("R7")
def test_a_body_that_is_too_large_is_refused_before_it_is_sent() -> None:
    async def main() -> None:
        async with served(limits=Limits(max_body=1000)) as (_, connect):
            talk = await connect()
            talk.writer.write(post({"jsonrpc": "2.0", "text": "x" * 100_000}))
            status, fields = await talk.head()
            assert (status, fields["connection"]) == (413, "close")
            assert await talk.reader.read() == b"the body is too large\n"

    run(main)


def test_too_many_connections_and_slow_ones() -> None:
    told: list[Event] = []

    async def main() -> None:
        one, soon_over = ConnectionPolicy(max_connections=1), ConnectionPolicy(head_timeout=0.2)
        async with served(connections=one, on_event=told.append) as (_, connect):
            first = await connect()
            assert (await first.ask(message("tools/list")))[0] == 200
            second = await connect()
            assert (await second.head())[0] == 503
        async with served(connections=soon_over, on_event=told.append) as (_, connect):
            slow = await connect()
            slow.writer.write(b"POST")
            assert await slow.reader.read() == b""
            third = await connect()
            assert (await third.ask(message("tools/list")))[0] == 200
        limits = [e.limit for e in told if isinstance(e, LimitHit)]
        assert limits == ["max_connections", "head_timeout"]

    run(main)


@pytest.mark.req("R6")
def test_foreign_pages_and_hosts_are_turned_away() -> None:
    async def main() -> None:
        async with served() as (serving, connect):
            asked = message("tools/list")
            for fields, status in [
                ({"host": f"127.0.0.1:{serving.port}"}, 200),
                ({"host": "evil.example"}, 421),
                ({"origin": "https://evil.example"}, 403),
            ]:
                talk = await connect()
                assert (await talk.ask(asked, **fields))[0] == status

    run(main)


def test_a_server_is_reached_by_where_it_listens() -> None:
    for host, name in [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "[2001:db8::1]"),
        ("fe80::1%eth0", "[fe80::1]"),
        ("a.example", "a.example"),
    ]:
        allowed = policy_for(host).hosts
        assert isinstance(allowed, frozenset)
        assert (name, None) in allowed
        assert ("localhost", None) in allowed
    for host in ("", "::", "0.0.0.0"):
        assert policy_for(host) == policy_for("localhost")
    wider = policy_for("a.example", hosts=["b.example:80"], origins=ANY)
    assert isinstance(wider.hosts, frozenset)
    assert {("a.example", None), ("b.example", 80), ("localhost", None)} <= wider.hosts
    assert wider.origins is ANY
    for wrong in ({"hosts": "b.example"}, {"origins": "b.example"}, {"hosts": ["b example"]}):
        with pytest.raises(LocalProtocolError):
            policy_for("a.example", **wrong)


# begin and end -----------------------------------------------------------------------------------


def test_serve_http_until_cancelled() -> None:
    async def main() -> None:
        places: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        told: list[Event] = []
        task = asyncio.create_task(
            sansmcp_asyncio.serve_http(
                make_app(), ready=lambda host, port: places.put_nowait((host, port)), on_event=told.append
            )
        )
        async with asyncio.timeout(PATIENCE):
            talk = Talk(*await asyncio.open_connection(*await places.get()))
            assert (await talk.ask(message("tools/list")))[0] == 200
            told.clear()
            talk.writer.write(post(tool("wait", token="t")))
            await soon(lambda: [e for e in told if isinstance(e, RequestReceived)], "the request")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            status, _ = await talk.head()
            assert status in (200, 503)
            await talk.reader.read()
            talk.close()

    run(main)


def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    async def main() -> None:
        async with served() as (serving, _):
            with pytest.raises(OSError, match="address"):
                async with HttpServing(make_app(), port=serving.port):
                    pass

    run(main)


def test_a_serving_is_used_once_and_inside_its_context() -> None:
    async def main() -> None:
        serving = HttpServing(make_app())
        with pytest.raises(RuntimeError):
            serving.listener  # noqa: B018
        with pytest.raises(RuntimeError):
            await serving.closed()
        async with serving:
            with pytest.raises(RuntimeError):
                await serving.__aenter__()

    run(main)


def test_the_url_of_an_address() -> None:
    serving = HttpServing(make_app(), "::1", 8443, ssl=ssl.create_default_context(), path=None)
    assert serving.url == "https://[::1]:8443/"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is nothing to make a certificate with")
def test_tls(tmp_path: Path) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    argv = [*make.split(), *names, "-keyout", key, "-out", certificate]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(certificate, key)
    ours = ssl.create_default_context(cafile=certificate)
    told: list[Event] = []

    async def main() -> None:
        async with served(ssl=theirs, on_event=told.append) as (serving, connect):
            first, second, third = [await connect(ours) for _ in range(3)]
            assert (await first.ask(tool("add", {"a": 1, "b": 2})))[0] == 200
            first.writer.write(post(tool("wait", token="t")))
            await soon(lambda: serving.listener.stats()["answering"], "the request")
            first.close()
            await soon(lambda: [e for e in told if isinstance(e, RequestCancelled)], "the cancel")
            second.writer.write(b"nonsense\r\n\r\n")
            assert (await second.head())[0] == 400
            second.close()
            assert (await third.ask(tool("add", {"a": 1, "b": 2})))[0] == 200

    run(main)
