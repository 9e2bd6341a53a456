"""Serves an `App` over HTTP, in threads."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from sansmcp.app import App
from sansmcp.http.listener import HttpListener
from sansmcp_shared.http_server import HttpHandlers, HttpOptions, HttpPlace
from sansmcp_shared.listening import Ready

from ._accept import Listening, ThreadListenerPump, listen_at
from ._server import ThreadHandlers, check_threads


def serve_http(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Ready | None = None,
    **options: Unpack[HttpOptions],
) -> None:
    """Serve `app` over HTTP until Ctrl-C. With `port` 0 the system chooses one; `ready` is told it.

    This thread drives all connections; handlers run as for `serve_stdio`, in up to ``threads`` others.
    Raises OSError if it cannot listen there, and LocalProtocolError for options that cannot be.
    """
    serving = HttpServing(app, host, port, **options)
    serving._start(keep=False)
    try:
        if ready is not None:
            ready(serving.host, serving.port)
        serving.closed()
    finally:
        serving.close()


class HttpServing(HttpPlace, Listening[HttpHandlers]):
    """A server over HTTP for as long as the context lasts, driven by a thread of its own::

        with HttpServing(app) as serving:
            print(serving.url)
            serving.closed()

    The parameters and errors are those of `serve_http`. At its end what is open is answered, as far as
    that takes no time, and connections are closed; handlers that run are left to end.
    """

    def __init__(
        self, app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[HttpOptions]
    ) -> None:
        super().__init__(app, host, port, **options)
        check_threads(options.get("threads", 16))

    @property
    def listener(self) -> HttpListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        return self._started[1].listener

    def _start(self, keep: bool) -> None:
        options, tls = self._given()
        self._listen(
            partial(listen_at, self.host, self.port),
            lambda loop: _ThreadHttpHandlers(self._app, loop.as_asyncio, **options),
            tls,
            keep,
        )
        self.port = self._address[1]


class _ThreadHttpHandlers(ThreadHandlers, HttpHandlers):
    pump_kind = ThreadListenerPump
