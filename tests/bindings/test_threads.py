"""What only threads can show: Ctrl-C, several threads at once, callbacks, and that no loop is loaded."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import sansmcp_threads
from sansmcp import (
    App,
    CallTimeout,
    ConnectionEnded,
    Context,
    Legacy,
    LocalProtocolError,
    McpError,
    ProgressReported,
    ShutdownLadder,
)
from sansmcp.auth.oauth import OAuth
from sansmcp.errors import AuthorizationFailed
from sansmcp.events import AuthorizationRefused, AuthorizationUrlReady
from sansmcp.http.url import parse_url
from sansmcp_threads import Client, _loop, _pipes

from .auth_server import auth_server_beside
from .every_app import app
from .support import PATIENCE, children, descriptors, server, text_of, until


@pytest.fixture(autouse=True)
def leaves_nothing() -> Any:
    before = descriptors(), threading.active_count()
    yield
    # not more: what the test before began may have ended meanwhile
    until(lambda: descriptors() <= before[0], "descriptors")
    until(lambda: threading.active_count() <= before[1], "threads")
    assert not children()


def wire() -> tuple[list[bytes], Callable[[str, bytes], object]]:
    sent: list[bytes] = []
    return sent, lambda side, data: sent.append(data) if side == "sent" else None


def interrupt_after(seconds: float) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def interrupt_when(condition: Callable[[], object]) -> None:
    def work() -> None:
        until(condition, "what to interrupt")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=work).start()


def leads(client: Client) -> int | None:
    """The thread that waits for descriptors."""
    loop = client._threads
    return None if loop._asleep_until is None else loop._leader


@pytest.fixture
def ctrl_c() -> Any:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_nothing_of_a_loop_is_loaded() -> None:
    code = (
        "import sys, sansmcp_threads\n"
        f"with sansmcp_threads.connect({server('good')!r}) as client: client.call_tool('count')\n"
        "print([m for m in sys.modules if m in ('asyncio', 'trio', 'h11', 'ssl')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n", done.stdout


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.req("K1")
@pytest.mark.case("C-01")
def test_ctrl_c_ends_the_wait_at_once_and_cancels_the_call() -> None:
    sent, on_wire = wire()
    with sansmcp_threads.connect(server("good"), on_wire=on_wire) as client:
        client.call_tool("count")
        me = threading.get_ident()
        with pytest.raises(KeyboardInterrupt):
            interrupt_when(lambda: b"forever" in b"".join(sent) and leads(client) == me)
            client.call_tool("forever")
        assert text_of(client.call_tool("echo", {"text": "goes on"})) == "goes on"
        assert b"".join(sent).count(b"notifications/cancelled") == 1
        assert client.engine.stats()["calls"] == 0


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_another_thread_leads() -> None:
    with sansmcp_threads.connect(server("good")) as client:
        ended: list[BaseException] = []

        def wait() -> None:
            try:
                client.call_tool("forever")
            except ConnectionEnded as error:
                ended.append(error)

        other = threading.Thread(target=wait)
        other.start()
        until(lambda: leads(client) == other.ident, "the other one")
        with pytest.raises(KeyboardInterrupt):
            interrupt_when(lambda: client._threads._followers)
            client.call_tool("forever")
        until(lambda: text_of(client.call_tool("count")) == "1", "the cancel")
        assert not ended
        client.close()
        other.join()
        assert ended


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_it_connects_leaves_no_child() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupt_after(0.2)
        sansmcp_threads.connect(server("deaf"))


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_when_it_has_connected_leaves_no_child(monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if thread.name != "sansmcp" or begun:
            start(thread)
        if thread.name == "sansmcp":
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sansmcp_threads.connect(server("good"))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_it_closes_kills_the_child() -> None:
    slow = ShutdownLadder(after_close=2 * PATIENCE, after_terminate=2 * PATIENCE)
    client = sansmcp_threads.connect(server("ignores_term"), ladder=slow)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupt_after(0.2)
        client.close()
    assert time.monotonic() - started < PATIENCE


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_somebody_logs_in_leaves_nobody_who_listens() -> None:
    said: list[object] = []

    def open_url(url: str) -> None:
        interrupt_after(0.1)

    with auth_server_beside() as server:
        options: Any = {"auth": OAuth(), "open_url": open_url, "on_event": said.append, "proxy": False}
        with pytest.raises(KeyboardInterrupt):
            sansmcp_threads.connect(server.url, **options)
        server.open = True
        with sansmcp_threads.connect(server.url, **options) as client:
            with pytest.raises(KeyboardInterrupt):
                sansmcp_threads.log_in(client)
            until(lambda: isinstance(said[-1], AuthorizationRefused), "the end of the attempt")
    for event in said:
        if isinstance(event, AuthorizationUrlReady):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", parse_url(event.redirect_uri).port))


@pytest.mark.parametrize("name", ["open_url", "wait_redirect"])
def test_what_would_have_to_be_awaited_cannot_log_in(name: str) -> None:
    async def awaits(url: str) -> str:
        return url

    auth = OAuth(redirect_uri="https://app.example/cb")
    options: Any = {"open_url": lambda url: None, "wait_redirect": lambda url: url, name: awaits}
    with auth_server_beside() as server, pytest.raises(AuthorizationFailed, match="use a function"):
        sansmcp_threads.connect(server.url, auth=auth, proxy=False, **options)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("kind", ["ws", "tcp", "unix"])
def test_ctrl_c_ends_a_server_of_connections(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    said: list[object] = []

    def visit(where: str) -> None:
        with sansmcp_threads.connect(where) as client:
            said.append(text_of(client.call_tool("echo", {"text": "hi"})))
            try:
                interrupt_after(0.1)
                client.call_tool("sleeps", {"seconds": 60})
            except ConnectionEnded as error:
                said.append(error)

    visitors: list[threading.Thread] = []

    def ready(host: str, port: int) -> None:
        where = f"unix://{host}" if kind == "unix" else f"{kind}://{host}:{port}"
        visitors.append(threading.Thread(target=visit, args=(f"{where}/mcp" if kind == "ws" else where,)))
        visitors[0].start()

    with pytest.raises(KeyboardInterrupt):
        match kind:
            case "ws":
                sansmcp_threads.serve_websocket(app(), ready=ready)
            case "tcp":
                sansmcp_threads.serve_tcp(app(), ready=ready)
            case _:
                sansmcp_threads.serve_unix(app(), path, ready=ready)
    visitors[0].join()
    assert said[0] == "hi"
    assert isinstance(said[1], ConnectionEnded)
    assert not path.exists()


def test_a_server_of_connections_has_a_thread_for_handlers() -> None:
    with pytest.raises(LocalProtocolError, match="need a thread"):
        sansmcp_threads.tcp_serving(app(), threads=0)


def test_being_interrupted_amid_the_work_ends_the_connection_for_all() -> None:
    with sansmcp_threads.connect(server("good")) as client:
        failed: list[BaseException] = []

        def wait() -> None:
            try:
                client.call_tool("forever")
            except ConnectionEnded as error:
                failed.append(error)

        other = threading.Thread(target=wait)
        other.start()
        until(lambda: leads(client) == other.ident, "the other one")

        def interrupted(*arguments: Any, **options: Any) -> Any:
            raise KeyboardInterrupt

        client.engine.call_tool = interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("echo", {"text": "a"})
        other.join()
        assert "interrupted" in str(failed[0])
        with pytest.raises(ConnectionEnded):
            client.list_tools()


@pytest.mark.parametrize("threads", [2, 20])
def test_threads_that_call_at_once_get_their_own_answers(threads: int) -> None:
    with sansmcp_threads.connect(server("good")) as client:
        wrong: list[str] = []

        def work(number: int) -> None:
            for turn in range(30):
                text = f"{number}.{turn}"
                if text_of(client.call_tool("echo", {"text": text})) != text:
                    wrong.append(text)
                if turn % 10 == number % 10:
                    with pytest.raises(CallTimeout):
                        client.call_tool("forever", timeout=0.01)

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not wrong
        assert client.engine.stats()["calls"] == 0


@pytest.mark.parametrize("mode", [None, Legacy()])
def test_a_callback_may_call_and_close(mode: Any) -> None:
    served = app()
    client = sansmcp_threads.connect_memory(served, mode=mode)
    inner: list[str] = []

    def on_progress(event: ProgressReported) -> None:
        inner.append(text_of(client.call_tool("echo", {"text": str(event.progress)})))

    client.call_tool("steps", {"count": 2}, on_progress=on_progress)
    assert sorted(inner) == ["1", "2"]  # the second is reported while the first one calls
    threading.Timer(0.1, client.close).start()
    with pytest.raises(ConnectionEnded):
        client.call_tool("sleeps", {"seconds": 60})
    client.close()
    closes = sansmcp_threads.connect_memory(served, mode=mode)
    with suppress(ConnectionEnded):  # the answer may be there already when the callback closes
        closes.call_tool("steps", {"count": 1}, on_progress=lambda event: closes.close())
    assert closes.engine.stats()["calls"] == 0
    with pytest.raises(LocalProtocolError):
        client.list_tools()


def test_events_come_while_nobody_waits() -> None:
    """The loop's own thread answers pings and tells of changes between calls."""
    seen: list[str] = []
    with sansmcp_threads.connect(
        server("good"), stderr=lambda data: seen.append(data.decode()), mode=Legacy()
    ) as client:
        with pytest.raises(CallTimeout):
            client.call_tool("forever", timeout=0.1)
        until(lambda: "stopped" in "".join(seen), "what the server wrote meanwhile")


def test_a_question_may_take_long_and_others_go_on() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(params: Any) -> dict[str, Any]:
        asked.set()
        go_on.wait(PATIENCE)
        return {"action": "accept", "content": {"name": "Ada"}}

    with sansmcp_threads.connect_memory(app(), on_elicit=answer) as client:
        result: list[str] = []
        other = threading.Thread(target=lambda: result.append(text_of(client.call_tool("who"))))
        other.start()
        assert asked.wait(PATIENCE)
        assert text_of(client.call_tool("echo", {"text": "meanwhile"})) == "meanwhile"
        go_on.set()
        other.join()
        assert "accept" in result[0]


def test_waiting_for_events_and_changes_has_a_timeout() -> None:
    with sansmcp_threads.connect_memory(app()) as client:
        events = client.events()
        while events.take(0.05) is not None:
            pass
        with client.listen(tools=True) as changes:
            assert changes.next(0.05) is None
            client.call_tool("changes")
            assert changes.next(PATIENCE) is not None


def test_a_handler_that_awaits_something_else_is_told_to_use_a_loop() -> None:
    served = App("waits", "1")

    @served.tool()
    async def waits(ctx: Context) -> str:
        import asyncio

        await asyncio.sleep(0)
        return "never"

    with (
        sansmcp_threads.connect_memory(served) as client,
        pytest.raises(McpError, match="failed to carry this out"),
    ):
        client.call_tool("waits")
    with pytest.raises(LocalProtocolError, match="need a thread"):
        sansmcp_threads.connect_memory(served, threads=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_must_not_use_the_client() -> None:
    with sansmcp_threads.connect(server("good")) as client:
        pid = os.fork()
        if not pid:
            try:
                client.call_tool("count")
            except LocalProtocolError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert text_of(client.call_tool("count")) == "0"


def test_pipes_that_no_selector_can_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: threads read and write them."""
    monkeypatch.setattr(_pipes, "_selectable", lambda fd: False)
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    with sansmcp_threads.connect(server("good")) as client:
        for number in range(20):
            assert text_of(client.call_tool("echo", {"text": str(number)})) == str(number)
        big = "x" * 300_000
        assert text_of(client.call_tool("echo", {"text": big})) == big


def test_the_blocking_verbs_are_those_that_are_awaited() -> None:
    root = Path(__file__).resolve().parents[2]
    script = root / "tools" / "derive_bindings.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)
    names = {name for name in dir(Client) if not name.startswith("_")}
    import sansmcp_asyncio

    awaited = {name for name in dir(sansmcp_asyncio.Client) if not name.startswith("_")}
    assert awaited - names == {"aclose"}


@pytest.mark.req("S2")
def test_a_thread_that_calls_alone_waits_for_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[object] = []
    follow = _loop.Loop._follow

    def counted(*arguments: Any) -> None:
        followed.append(None)
        follow(*arguments)

    monkeypatch.setattr(_loop.Loop, "_follow", counted)
    monkeypatch.setattr(_loop, "_QUIET", 0.01)
    with sansmcp_threads.connect(server("good")) as client:
        keeper = client._threads._keeper
        assert keeper is not None
        until(lambda: leads(client) == keeper.ident, "the loop's own thread")
        monkeypatch.setattr(_loop, "_QUIET", PATIENCE)  # however long a call takes
        for _ in range(100):
            client.call_tool("count")
        assert len(followed) < 25  # it yields for good as soon as it sees that others wait
