"""Speaks to an ASGI application, by hand and under real servers, on asyncio and on trio."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import httpx

from sansmcp import App, Context, ListKind
from sansmcp.session.modern import META_VERSION

from .support import PATIENCE, until
from .test_serve_http import fields_for

BACKENDS = ("asyncio", "trio")
HOSTS = ("uvicorn", "hypercorn-asyncio", "hypercorn-trio")


def make_app() -> App:
    """Handlers that run on either loop."""
    app = App("over asgi", "1.0", list_changed=True)

    @app.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool()
    async def count(upto: int, ctx: Context) -> str:
        for step in range(upto):
            ctx.progress(step + 1, upto)
            await anyio.sleep(0.01)
        return "counted"

    @app.tool()
    async def wait() -> str:
        await anyio.sleep_forever()
        return "never"

    @app.tool()
    async def late(text: str, seconds: float) -> str:
        await anyio.sleep(seconds)
        return text

    @app.tool()
    async def flood(pieces: int, size: int, ctx: Context) -> str:
        for step in range(pieces):
            ctx.progress(step + 1, pieces, "x" * size)
            await anyio.lowlevel.checkpoint()
        return "flooded"

    @app.tool()
    def large(size: int) -> str:
        return "x" * size

    @app.tool()
    def where() -> str:
        return threading.current_thread().name

    @app.tool()
    def change(ctx: Context) -> str:
        ctx.notify_changed(ListKind.TOOLS)
        return "changed"

    return app


# by hand -----------------------------------------------------------------------------------------


def scope_for(body: Any = None, *, path: str = "/mcp", method: str = "POST", **more: Any) -> dict[str, Any]:
    """The scope of a request with `body`; names that begin with ``h_`` are header fields."""
    fields = {n[2:]: more.pop(n) for n in list(more) if n.startswith("h_")}
    given: dict[str, str | None] = {**fields_for(body or {}, **fields)}
    headers = [(n.encode(), v.encode()) for n, v in given.items() if v is not None]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        **more,
    }


def pieces(data: bytes, size: int | None = None) -> list[dict[str, Any]]:
    """The messages that carry a body, in pieces of `size`."""
    parts = [data] if size is None else [data[i : i + size] for i in range(0, len(data), size)]
    return [
        {"type": "http.request", "body": part, "more_body": number < len(parts) - 1}
        for number, part in enumerate(parts)
    ]


LEFT: dict[str, Any] = {"type": "http.disconnect"}


class Script:
    """A carrier: gives what is in `messages`, then nothing until `leave`; keeps what is sent."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = deque(messages)
        self.sent: list[Any] = []
        self.received = 0
        self.reads = anyio.Event()
        self.reads.set()
        self._left = anyio.Event()

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> Any:
        await anyio.lowlevel.checkpoint()
        if not self.messages:
            await self._left.wait()
            return LEFT
        self.received += 1
        return self.messages.popleft()

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.sent.append(dict(message))

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(m["body"] for m in self.sent[1:])

    @property
    def complete(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False

    @property
    def json(self) -> Any:
        assert self.complete
        return json.loads(self.body)

    @property
    def messages_told(self) -> list[Any]:
        """The messages of an event stream."""
        return [json.loads(line[6:]) for line in self.body.split(b"\n") if line.startswith(b"data: {")]


def on_both(main: Callable[[], Awaitable[None]], backend: str) -> None:
    """Run `main` on `backend`, within bounds."""

    async def bounded() -> None:
        with anyio.fail_after(PATIENCE):
            await main()

    anyio.run(bounded, backend=backend)


async def soon(condition: Callable[[], object], what: str) -> None:
    """Wait for what another task does."""
    with anyio.move_on_after(PATIENCE):
        while not condition():  # noqa: ASYNC110  (it is outside of any loop, or does not tell)
            await anyio.sleep(0.005)
        return
    raise AssertionError(f"never came: {what}")


# under real servers ------------------------------------------------------------------------------


@attrs.define(eq=False)
class Hosted:
    """A server that runs in a thread."""

    url: str
    failure: BaseException | None = None


@contextmanager
def hosted(application: Any, host: str, *, lifespan: bool = True) -> Iterator[Hosted]:
    """`application` under the server `host`, until the context ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    run = _uvicorn if host == "uvicorn" else partial(_hypercorn, trio=host.endswith("trio"))
    found = Hosted(f"http://127.0.0.1:{listening.getsockname()[1]}")
    serve, stop = run(application, listening, lifespan)

    def work() -> None:
        try:
            serve()
        except BaseException as error:
            found.failure = error

    thread = threading.Thread(target=work, name=host, daemon=True)
    thread.start()
    try:
        until(lambda: found.failure or _answers(found.url), f"{host} to answer")
        yield found
    finally:
        stop()
        thread.join(PATIENCE)
        listening.close()
    assert not thread.is_alive(), f"{host} does not end"
    if found.failure is not None:
        raise found.failure


def _answers(url: str) -> bool:
    try:
        httpx.get(f"{url}/nothing", timeout=5)
    except httpx.HTTPError:
        return False
    return True


def _uvicorn(application: Any, listening: socket.socket, lifespan: bool) -> Any:
    import uvicorn

    config = uvicorn.Config(
        application,
        log_level="error",
        lifespan="on" if lifespan else "off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)

    def stop() -> None:
        server.should_exit = True

    return lambda: server.run(sockets=[listening]), stop


def _hypercorn(application: Any, listening: socket.socket, lifespan: bool, *, trio: bool) -> Any:
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{listening.detach()}"]  # it closes what it is given
    config.graceful_timeout = 1
    config.loglevel = "ERROR" if lifespan else "CRITICAL"

    async def no_lifespan(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] != "lifespan", "this is how a server is told that there is none"
        await application(scope, receive, send)

    ended = threading.Event()

    async def trigger() -> None:
        while not ended.is_set():  # noqa: ASYNC110  (it comes from another thread)
            await anyio.sleep(0.02)

    async def main() -> None:
        serve: Any = import_module("hypercorn.trio" if trio else "hypercorn.asyncio").serve
        await serve(application if lifespan else no_lifespan, config, shutdown_trigger=trigger)

    return lambda: anyio.run(main, backend="trio" if trio else "asyncio"), ended.set


@contextmanager
def client(hosted: Hosted, **options: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=hosted.url, timeout=10, **options) as session:
        yield session


def headers_for(body: Any, **more: str) -> dict[str, str]:
    """Header fields, as far as httpx does not know better."""
    modern = META_VERSION in body.get("params", {}).get("_meta", {})
    fields = fields_for(body if modern else {}, **more)
    if "host" not in more:
        del fields["host"]
    return fields
