"""Serves an `App` over HTTP, in threads."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self, Unpack, cast

from sansmcp.app import App
from sansmcp.http.listener import HttpListener, policy_for
from sansmcp_asyncio._http import HttpHandlers, HttpOptions, Ready

from ._accept import Accepted, Acceptor, ThreadListenerPump, listen_at
from ._loop import Loop, Signal
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


class HttpServing:
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
        check_threads(options.get("threads", 16))
        self.host = host
        """Where it listens."""
        self.port = port
        """Where it listens: the real port once the context was entered."""
        self._app = app
        self._options = options
        self._path = options.get("path", "/mcp")
        self._loop: Loop | None = None
        self._handlers: _ThreadHttpHandlers | None = None
        self._acceptors: list[Acceptor] = []

    @property
    def url(self) -> str:
        """Of the endpoint."""
        scheme = "http" if self._options.get("ssl") is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{self._path or '/'}"

    @property
    def listener(self) -> HttpListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        return self._started[1].listener

    def closed(self) -> None:
        """Return when the server has ended; raise what ended it, if that was a fault of this library.

        Raises RuntimeError outside of the context.
        """
        loop, handlers = self._started
        loop.wait(cast(Signal, handlers.pump.gone))
        if handlers.pump.failure is not None:
            raise handlers.pump.failure

    def close(self) -> None:
        """End it. Harmless twice, and in any thread."""
        loop, handlers = self._started
        if not loop.closed:
            with loop.lock:
                for acceptor in self._acceptors:
                    acceptor.close()
            handlers.stop_now()
            loop.close()

    def __enter__(self) -> Self:
        self._start(keep=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _started(self) -> tuple[Loop, _ThreadHttpHandlers]:
        if self._loop is None or self._handlers is None:
            raise RuntimeError("the server was not started")
        return self._loop, self._handlers

    def _start(self, keep: bool) -> None:
        if self._loop is not None:
            raise RuntimeError("a server is started once")
        options: dict[str, Any] = dict(self._options)
        tls = options.pop("ssl", None)
        if options.get("policy") is None:
            options["policy"] = policy_for(self.host)
        with Loop() as loop:
            socks = listen_at(self.host, self.port)
            try:
                handlers = _ThreadHttpHandlers(self._app, loop.as_asyncio, **options)
            except BaseException:
                for sock in socks:
                    sock.close()
                raise
            self.port = socks[0].getsockname()[1]

            def take(sock: socket.socket) -> None:
                try:
                    Accepted(handlers.pump, handlers.listener, sock, tls)
                except OSError:  # it is gone already
                    sock.close()

            self._loop, self._handlers = loop, handlers
            with loop.lock:
                self._acceptors = [Acceptor(loop, sock, take) for sock in socks]
            if keep:
                loop.keep(at_once=True)


class _ThreadHttpHandlers(ThreadHandlers, HttpHandlers):
    pump_kind = ThreadListenerPump
