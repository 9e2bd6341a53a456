"""nginx between our client and our server: what it lets through as it is, and what it says itself."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    App,
    Context,
    Event,
    HttpFailure,
    Implementation,
    Legacy,
    ListChanged,
    ListKind,
    PeerFault,
    ProgressReported,
    RequestReceived,
    ServerStreamOpened,
)
from sansmcp.http.guard import GuardPolicy
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.revisions import Era
from sansmcp.session.era import Mode
from sansmcp_asyncio import HttpServing
from tests.bindings.support import raised, text_of

from .http_support import HOST, HttpTalk, free_port
from .nginx import nginx
from .support import Json, asynchronous

pytestmark = pytest.mark.interop

ERAS: list[Mode | None] = [None, Legacy()]
HOST_KEPT = "proxy_set_header Host $host;"
"""Or else the name of a group would be sent as Host, and be refused."""
UPSTREAMS: dict[str, Json] = {
    "as nginx is": {},
    "kept connections": {
        "behind": "keepalive 4;",
        "location": f'proxy_http_version 1.1; proxy_set_header Connection ""; {HOST_KEPT}',
    },
}
both_eras = pytest.mark.parametrize("mode", ERAS, ids=["modern", "legacy"])
both_ways = pytest.mark.parametrize("way", UPSTREAMS.values(), ids=UPSTREAMS)


class Desk:
    """A server whose tools wait for the test."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.served: Counter[str] = Counter()
        self.app = app = App("behind", "1.0", list_changed=True)

        @app.tool()
        def echo(text: str) -> str:
            return text

        @app.tool()
        async def report(ctx: Context) -> str:
            ctx.progress(1, 2, "and wait")
            await self.go.wait()
            ctx.progress(2, 2)
            return "done"

        @app.tool()
        async def quiet(seconds: float) -> str:
            await asyncio.sleep(seconds)
            return "after a silence"

        @app.tool()
        def change(ctx: Context) -> str:
            ctx.notify_changed(ListKind.TOOLS)
            return "told"

    def serving(self, **options: Any) -> HttpServing:
        return HttpServing(self.app, on_event=self._on_event, **options)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self.served[event.request.method] += 1


def reach(
    url: str, talk: HttpTalk | None = None, path: str = "/mcp", **options: Any
) -> sansmcp_asyncio.Opening:
    if talk is not None:
        options |= {"on_event": talk.on_event, "on_wire": talk.on_wire}
    return sansmcp_asyncio.connect(url + path, **options)


# what comes through ------------------------------------------------------------------------------


@both_ways
@both_eras
@pytest.mark.req("R8", "R12", "R11")
@pytest.mark.case("H-15")
@asynchronous
async def test_events_arrive_one_by_one(mode: Mode | None, way: Json, tmp_path: Path) -> None:
    """The first is here before the second is made, although nginx buffers what it is not told not to."""
    desk, talk = Desk(), HttpTalk()
    told: list[ProgressReported] = []

    def on_progress(event: ProgressReported) -> None:
        told.append(event)
        desk.go.set()

    async with (
        desk.serving() as serving,
        nginx(serving.port, folder=tmp_path, **way) as url,
        reach(url, talk, mode=mode) as client,
    ):
        assert text_of(await client.call_tool("report", {}, on_progress=on_progress)) == "done"
        big = "ü" * 200_000
        assert text_of(await client.call_tool("echo", {"text": big})) == big
        await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(20)))
    assert [event.progress for event in told] == [1, 2]
    assert b"server: nginx" in talk.raw["received"].lower()
    assert not talk.faults()


@both_ways
@pytest.mark.req("P1", "P5", "P6")
@asynchronous
async def test_a_session_with_its_own_stream(way: Json, tmp_path: Path) -> None:
    desk, talk = Desk(), HttpTalk()
    async with desk.serving() as serving, nginx(serving.port, folder=tmp_path, **way) as url:
        async with reach(url, talk, mode=Legacy()) as client:
            await talk.until(lambda: talk.of(ServerStreamOpened))
            await client.call_tool("change", {})
            await talk.until(lambda: talk.of(ListChanged))
            assert serving.listener.stats()["sessions"] == 1
        assert "DELETE /mcp" in talk.requests()
        assert serving.listener.stats()["sessions"] == 0
    assert not talk.faults()


@pytest.mark.req("O1", "R8")
@asynchronous
async def test_listening(tmp_path: Path) -> None:
    desk = Desk()
    async with (
        desk.serving() as serving,
        nginx(serving.port, folder=tmp_path) as url,
        reach(url) as client,
        client.listen(tools=True) as changes,
    ):
        await client.call_tool("change", {})
        assert isinstance(await anext(changes), ListChanged)


@pytest.mark.req("P7", "P8")
@asynchronous
async def test_http_sse(tmp_path: Path) -> None:
    desk, talk = Desk(), HttpTalk()
    async with (
        desk.serving(old_sse=OldSsePaths()) as serving,
        nginx(serving.port, folder=tmp_path) as url,
        reach(url, talk, "/sse", mode=Legacy(), old_sse=OldSseUse.ONLY) as client,
    ):
        assert text_of(await client.call_tool("echo", {"text": "ü"})) == "ü"
        await client.call_tool("change", {})
        await talk.until(lambda: talk.of(ListChanged))
    assert not talk.faults()


@both_eras
@pytest.mark.req("R8")
@asynchronous
async def test_a_quiet_stream_lives_by_comments(mode: Mode | None, tmp_path: Path) -> None:
    """A call that says nothing for longer than nginx waits; without comments nginx gives it up."""
    desk, impatient = Desk(), {"location": "proxy_read_timeout 1s;"}
    async with (
        desk.serving(keep_alive=0.25) as serving,
        nginx(serving.port, folder=tmp_path, **impatient) as url,
        reach(url, mode=mode) as client,
    ):
        assert text_of(await client.call_tool("quiet", {"seconds": 2.5})) == "after a silence"
    async with (
        desk.serving(keep_alive=None) as serving,
        nginx(serving.port, folder=tmp_path, **impatient) as url,
        reach(url, mode=mode) as client,
    ):
        failed = await raised(client.call_tool("quiet", {"seconds": 2.5}), HttpFailure)
        assert failed.retryable
        # it was this call that was lost, and nothing else
        assert text_of(await client.call_tool("echo", {"text": "on"})) == "on"


# what nginx says itself --------------------------------------------------------------------------


def told(failed: HttpFailure, status: int, *parts: str) -> None:
    """The error names the status, the page and what to do, and shows the page's beginning."""
    assert failed.status == status
    assert failed.fault is PeerFault.UNEXPECTED_STATUS
    assert failed.excerpt.startswith("<html>")
    assert failed.retryable == (status >= 500)
    for part in (f"HTTP {status} with a web page, as proxies send it", *parts):
        assert part in str(failed)


@both_eras
@pytest.mark.req("R4", "A1")
@pytest.mark.case("H-07", "V-06")
@asynchronous
async def test_a_message_that_is_too_large(mode: Mode | None, tmp_path: Path) -> None:
    desk, small = Desk(), {"server": "client_max_body_size 1k;"}
    async with desk.serving() as serving, nginx(serving.port, folder=tmp_path, **small) as url:
        async with reach(url, mode=mode) as client:
            verdict = client.verdict
            failed = await raised(client.call_tool("echo", {"text": "x" * 2000}), HttpFailure)
            told(failed, 413, "tools/call 'echo'", "the message is too large for it")
            assert client.verdict is verdict
            assert text_of(await client.call_tool("echo", {"text": "less"})) == "less"
        failed = await refused(url, mode=mode, info=Implementation("x" * 2000, "1"))
        told(failed, 413, "the message is too large for it")
    assert desk.served["tools/call"] == 1


@both_eras
@pytest.mark.req("A1", "A15", "R4")
@pytest.mark.case("V-04")
@asynchronous
async def test_headers_that_are_too_large(mode: Mode | None, tmp_path: Path) -> None:
    """400 and a page is what an old server may answer as well; an era is found by an answer only."""
    desk = Desk()
    small = {"http": "client_header_buffer_size 512; large_client_header_buffers 4 1k;"}
    async with desk.serving() as serving, nginx(serving.port, folder=tmp_path, **small) as url:
        failed = await refused(url, mode=mode, headers={"x-large": "x" * 3000})
        told(failed, 400, "initialize", "its headers are too large for it")
        async with reach(url, mode=mode) as client:
            assert client.era is (Era.MODERN if mode is None else Era.LEGACY)
    assert not desk.served


@both_eras
@pytest.mark.req("R4", "A1")
@pytest.mark.case("H-07", "V-06")
@asynchronous
async def test_a_server_that_is_not_there(mode: Mode | None, tmp_path: Path) -> None:
    desk, port = Desk(), free_port()
    async with nginx(port, folder=tmp_path) as url:
        told(await refused(url, mode=mode), 502, "does not reach it: try again later")
        async with AsyncExitStack() as stack:
            serving = desk.serving(port=port)
            await serving.__aenter__()
            client = await stack.enter_async_context(reach(url, mode=mode))
            assert client.era is (Era.MODERN if mode is None else Era.LEGACY)
            await serving.__aexit__(None, None, None)
            failed = await raised(client.call_tool("echo", {"text": "x"}), HttpFailure)
            told(failed, 502, "tools/call 'echo'")
            verdict = client.verdict
            async with desk.serving(port=port):
                await client.list_tools()
            assert client.verdict == verdict


@both_eras
@pytest.mark.req("R4", "A1")
@pytest.mark.case("V-06")
@asynchronous
async def test_a_server_that_says_nothing(mode: Mode | None, tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with nginx(port, folder=tmp_path, location="proxy_read_timeout 1s;") as url:
            told(await refused(url, mode=mode), 504, "too long for what is before it")


# what the guide says -----------------------------------------------------------------------------

GUIDE = Path(__file__).parents[2] / "docs" / "http.md"


def configurations() -> tuple[str, str]:
    """The two of the guide: a location, and what stands around locations."""
    location, around = re.findall(
        r"^```nginx\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return location, around


@both_eras
@pytest.mark.req("R6", "R8")
@asynchronous
async def test_the_configuration_of_the_guide(mode: Mode | None, tmp_path: Path) -> None:
    desk, large = Desk(), "x" * 2_000_000
    policy = GuardPolicy(hosts=["mcp.example.com"])
    async with desk.serving(policy=policy) as serving:
        location = configurations()[0].replace("127.0.0.1:8000", f"{HOST}:{serving.port}")
        # Only the name is another than that of an address that can be reached here.
        location = location.replace("Host $host;", "Host mcp.example.com;")
        async with (
            nginx(serving.port, folder=tmp_path, server=location) as url,
            reach(url, mode=mode) as client,
        ):
            desk.go.set()
            steps: list[ProgressReported] = []
            await client.call_tool("report", {}, on_progress=steps.append)
            assert len(steps) == 2
            assert text_of(await client.call_tool("echo", {"text": large})) == large


@pytest.mark.req("P1", "W11")
@asynchronous
async def test_the_configuration_for_two_machines(tmp_path: Path) -> None:
    """Modern requests go anywhere. A session is in one place, and what begins one goes there, too."""
    one, two, port = Desk(), Desk(), free_port()
    async with one.serving() as first, two.serving() as second:
        around = configurations()[1].replace("listen 80;", f"listen {HOST}:{port};")
        for address, serving in (("10.0.0.1:8000", first), ("10.0.0.2:8000", second)):
            around = around.replace(address, f"{HOST}:{serving.port}")
        async with nginx(first.port, folder=tmp_path, http=around):
            url = f"http://{HOST}:{port}"
            async with reach(url) as client:
                assert client.era is Era.MODERN
                for _ in range(10):
                    await client.call_tool("echo", {"text": "x"})
            shared = [desk.served["tools/call"] for desk in (one, two)]
            assert sum(shared) == 10
            assert min(shared) > 0
            async with reach(url, mode=Legacy()) as client:
                for _ in range(10):
                    await client.call_tool("echo", {"text": "x"})
            assert one.served["tools/call"] == shared[0] + 10
            assert two.served["tools/call"] == shared[1]


async def refused(url: str, **options: Any) -> HttpFailure:
    """Why it is not possible to connect."""
    with pytest.raises(HttpFailure) as caught:
        async with reach(url, **options):
            pass
    return caught.value
