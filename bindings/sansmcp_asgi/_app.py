"""The ASGI application: what comes in a scope goes to the `Serving` of the loop it comes in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Unpack

from sansmcp.app import App
from sansmcp.http.exchange import HttpRequest
from sansmcp.http.gateway import HttpGateway

from ._loop import running_loop
from ._places import target
from ._serving import AsgiOptions, Message, Receive, Send, Serving, make_server

_NOT_FOUND: Final = 404
_POLICY_VIOLATION: Final = 1008


def asgi_app(app: App, **options: Unpack[AsgiOptions]) -> AsgiApp:
    """`app` as an ASGI 3 application, to be served or mounted.

    Handlers are called as by `sansmcp_asyncio.serve_http`; under trio coroutine functions run on trio.
    Raises LocalProtocolError for options that cannot be.
    """
    return AsgiApp(app, **options)


class AsgiApp:
    """An ASGI 3 application. The parameters and errors are those of `asgi_app`.

    Each event loop that it is called in has clients and sessions of its own. They begin with the first
    request; the lifespan protocol is not needed, but ends them in good order. A framework that it is
    mounted in commonly keeps that to itself: then give it `lifespan`.
    """

    def __init__(self, app: App, **options: Unpack[AsgiOptions]) -> None:
        self._app = app
        self._options: dict[str, Any] = dict(options)
        self._path = options.get("path", "/mcp")
        old = options.get("old_sse")
        auth = options.get("auth")
        self._paths = [self._path, *([] if old is None else [old.stream, old.messages])]
        self._paths += () if auth is None else auth.metadata_paths
        self._servings: dict[object, Serving] = {}
        own = ("threads", "carriage", "on_event")
        make_server(app, now=0.0, **{k: v for k, v in self._options.items() if k not in own})

    @property
    def gateways(self) -> tuple[HttpGateway, ...]:
        """The machines behind it, one for each event loop, for their `stats`."""
        return tuple(serving.gateway for serving in self._servings.values())

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one connection of ASGI. Raises ValueError for one of an unknown type."""
        match scope["type"]:
            case "http":
                await self._serving().serve(self._request(scope), receive, send)
            case "lifespan":
                await self._live(receive, send)
            case "websocket":
                await _refuse_websocket(scope, receive, send)
            case other:
                raise ValueError(f"connections of type {other!r} are not served")

    @asynccontextmanager
    async def lifespan(self, application: object = None) -> AsyncIterator[None]:
        """For as long as it is served: for an application that this one is mounted in.

        At the end sessions and responses are ended and handlers cancelled. To be used as
        ``Starlette(..., lifespan=mounted.lifespan)`` and likewise for FastAPI.
        """
        self._serving()
        try:
            yield
        finally:
            loop, _ = running_loop()
            serving = self._servings.pop(loop, None)
            if serving is not None:
                await serving.stop()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def _serving(self) -> Serving:
        loop, scope = running_loop()
        serving = self._servings.get(loop)
        if serving is None or serving.pump.failure is not None:
            for other, ended in list(self._servings.items()):
                if ended.ended:
                    self._servings.pop(other, None)
                    ended.forget()
            options = {"path": self._path, **self._options}
            serving = self._servings[loop] = Serving(self._app, loop, scope, **options)
        return serving

    def _request(self, scope: Mapping[str, Any]) -> HttpRequest:
        headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        query = scope.get("query_string", b"").decode("latin-1")
        place = target(scope["path"], scope.get("root_path", ""), query, self._paths)
        return HttpRequest(scope["method"], place, headers, http_version=scope.get("http_version", "1.1"))


async def _refuse_websocket(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    await receive()
    messages: list[Message]
    if "websocket.http.response" in (scope.get("extensions") or {}):
        messages = [
            {
                "type": "websocket.http.response.start",
                "status": _NOT_FOUND,
                "headers": [(b"content-length", b"0")],
            },
            {"type": "websocket.http.response.body", "body": b""},
        ]
    else:
        messages = [{"type": "websocket.close", "code": _POLICY_VIOLATION}]
    for message in messages:
        await send(message)
