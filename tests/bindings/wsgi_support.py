"""Speaks to a WSGI application by hand: what a server would give it, and what it gives back."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import attrs

from sansmcp import App, Context, Event, ListKind

from .asgi_support import headers_for

COLOUR = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


def make_app(**options: Any) -> App:
    """Handlers of each kind that runs without a loop, and one that does not."""
    app = App("over wsgi", "1.0", list_changed=True, subscribe=True, logging=True, **options)

    @app.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool()
    def count(upto: int, ctx: Context) -> str:
        for step in range(upto):
            ctx.progress(step + 1, upto)
        return "counted"

    @app.tool()
    def hold(until: str, ctx: Context) -> str:
        """Say something, then wait for a file."""
        ctx.progress(1)
        while not Path(until).exists():
            time.sleep(0.01)
        return "held"

    @app.tool()
    async def paint(ctx: Context) -> str:
        answer = await ctx.elicit("Which colour?", COLOUR)
        return f"painted {(answer.content or {})['colour']}"

    @app.tool()
    async def paint_twice(ctx: Context) -> str:
        ctx.state = "begun"
        first = await ctx.elicit("Which colour?", COLOUR)
        second = await ctx.elicit("And then?", COLOUR)
        return f"painted {first.content} and {second.content}"

    @app.tool()
    def paint_in_steps(ctx: Context) -> Any:
        answer = yield ctx.elicit("Which colour?", COLOUR)
        return f"painted {answer.content['colour']}"

    @app.tool()
    async def sleep() -> str:
        import asyncio

        await asyncio.sleep(0)
        return "slept"

    @app.tool()
    def change(ctx: Context) -> str:
        ctx.notify_changed(ListKind.TOOLS)
        return "changed"

    @app.tool()
    def crash() -> str:
        raise SystemExit(3)

    @app.resource("test://here", name="here")
    def here() -> str:
        return "here"

    return app


class Source:
    """The body as a server gives it: `size` bytes at most at a time, then the end or a failure."""

    def __init__(self, data: bytes, size: int = 1 << 20, fails: Exception | None = None) -> None:
        self._data = io.BytesIO(data)
        self._size = size
        self._fails = fails
        self.taken = 0

    def read(self, size: int) -> bytes:
        data = self._data.read(min(size, self._size))
        self.taken += len(data)
        if not data and self._fails is not None:
            raise self._fails
        return data


@attrs.define(eq=False)
class Answered:
    """A response, as a server saw it come."""

    status: int = 0
    headers: dict[str, str] = attrs.field(factory=dict)
    written: list[bytes] = attrs.field(factory=list)
    """What was given to ``write``, before the application returned."""
    returned: bytes = b""

    @property
    def json(self) -> Any:
        assert int(self.headers["content-length"]) == len(self.returned)
        return json.loads(self.returned)

    @property
    def messages(self) -> list[Any]:
        """The messages of an event stream."""
        assert self.headers["content-type"] == "text/event-stream"
        lines = b"".join([*self.written, self.returned]).split(b"\n")
        return [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


def environ_for(body: Any = None, **more: Any) -> dict[str, Any]:
    """The environment of a POST of `body`; names that begin with ``h_`` are header fields."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {n[2:]: more.pop(n) for n in list(more) if n.startswith("h_")}
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/mcp",
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(data)),
        "wsgi.input": io.BytesIO(data),
    }
    fields.setdefault("host", "localhost")
    for name, value in headers_for(body if isinstance(body, dict) else {}, **fields).items():
        key = name.upper().replace("-", "_")
        environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
    environ |= {name.replace("__", "."): value for name, value in more.items()}
    environ = {name: value for name, value in environ.items() if value is not None}
    setup_testing_defaults(environ)
    return environ


def serve(
    application: Any,
    environ: dict[str, Any],
    *,
    on_write: Callable[[bytes], object] | None = None,
    checked: bool = True,
) -> Answered:
    """One request, with what PEP 3333 says checked on both sides."""
    answered = Answered()

    def write(data: bytes) -> None:
        answered.written.append(data)
        if on_write is not None:
            on_write(data)

    def start_response(status: str, headers: Sequence[tuple[str, str]], exc_info: Any = None) -> Any:
        assert answered.status == 0, "begun twice"
        answered.status = int(status.partition(" ")[0])
        answered.headers = dict(headers)
        return write

    body = (validator(application) if checked else application)(environ, start_response)
    try:
        answered.returned = b"".join(body)
    finally:
        if hasattr(body, "close"):
            body.close()
    return answered


def ask(application: Any, body: Any, **more: Any) -> Answered:
    """One POST and its whole response."""
    return serve(application, environ_for(body, **more))


def kinds(told: list[Event]) -> list[str]:
    return [type(event).__name__ for event in told]
