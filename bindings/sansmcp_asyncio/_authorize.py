"""The user's part of authorization: a browser is opened, and its way back is awaited."""

from __future__ import annotations

import asyncio
import inspect
import webbrowser
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from sansmcp.auth.client import AuthorizedClient
from sansmcp.errors import AuthorizationProblem, LocalProtocolError, SansmcpError
from sansmcp.events import (
    AuthorizationGranted,
    AuthorizationRefused,
    AuthorizationUrlReady,
    Event,
    RedirectNeeded,
)
from sansmcp.http.proxy import is_loopback
from sansmcp.http.url import Url, parse_url
from sansmcp.wire.http1 import Http1Server, RequestHead

if TYPE_CHECKING:
    from sansmcp.auth.tokens import Tokens

    from ._client import Client

OpenUrl = Callable[[str], object]
"""Shows the user an address. May be a coroutine function; what it returns does not matter, unless False."""
WaitRedirect = Callable[[str], Awaitable[str]]
"""Given the address at which the browser is to arrive, returns the one at which it did."""

PATH: Final = "/callback"

_VISIT_WAIT: Final = 5.0
"""Seconds for one visit of a browser."""
_MAX_VISITS: Final = 32
"""Visits of one attempt. Past it: nobody listens any more."""
_MAX_HEAD: Final = 16 * 1024
_PAGE: Final = (
    "<!doctype html><meta charset=utf-8><title>{0}</title>"
    "<body style='font-family:sans-serif;margin:4em'><h1>{0}</h1><p>{1}</p>"
)
_TAKEN: Final = _PAGE.format("Done", "You can close this window.")
_NOT_TAKEN: Final = _PAGE.format(
    "Not what is waited for", "This address belongs to another login, or to none."
)


class _Pump(Protocol):
    loop: asyncio.AbstractEventLoop

    def input(self, method: Callable[..., object], *arguments: Any) -> None: ...


class Login:
    """Does for `client` what its events ask for, as long as an attempt lasts."""

    def __init__(
        self, client: AuthorizedClient, open_url: OpenUrl | None, wait_redirect: WaitRedirect | None
    ) -> None:
        if wait_redirect is not None and client.oauth.redirect_uri is None:
            raise LocalProtocolError("wait_redirect needs OAuth.redirect_uri: where the browser arrives")
        self.pump: _Pump | None = None
        """Set by who makes it, before the first event."""
        self._client = client
        self._open = open_url
        self._wait = wait_redirect
        self._catcher: Catcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        """Awaited by `log_in`."""
        _LOGINS[client] = self

    def take(self, event: Event) -> None:
        """Begin with what `event` asks for."""
        match event:
            case RedirectNeeded(preferred=preferred):
                self._do(self._listen(preferred))
            case AuthorizationUrlReady():
                self._do(self._ask(event))
            case AuthorizationGranted():
                self.stop()
                if self._ended is not None and not self._ended.done():
                    self._ended.set_result(None)
            case AuthorizationRefused(error=error):
                self.stop()
                if self._ended is not None and not self._ended.done():
                    self._ended.set_exception(error)

    async def log_in(self) -> Tokens:
        """Come by a token, if there is none. Raises `AuthorizationFailed`."""
        assert self.pump is not None
        if self._client.tokens is None:
            self._ended = self.pump.loop.create_future()
            self.pump.input(self._client.authorize)
            await self._ended
        tokens = self._client.tokens
        assert tokens is not None
        return tokens

    def stop(self) -> None:
        """Nobody waits for a browser any more. Harmless twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        catcher, self._catcher = self._catcher, None
        if catcher is not None:
            catcher.close()

    def _do(self, step: Coroutine[Any, Any, None]) -> None:
        assert self.pump is not None
        self._task = self.pump.loop.create_task(self._guarded(step))

    async def _guarded(self, step: Coroutine[Any, Any, None]) -> None:
        try:
            await step
        except Exception as error:
            # What it says may hold the address, which is a secret.
            told = str(error) if isinstance(error, SansmcpError) else type(error).__name__
            self._decline(f"the user could not be asked: {told}")

    def _decline(self, reason: str, problem: AuthorizationProblem = AuthorizationProblem.NOT_ASKED) -> None:
        assert self.pump is not None
        self._task = None
        self.pump.input(lambda now: self._client.decline(reason, now, problem))

    async def _listen(self, preferred: str | None) -> None:
        assert self.pump is not None
        known = None if preferred is None else parse_url(preferred)
        self._catcher = Catcher(self._arrived)
        if known is None or not await self._catcher.listen_again(known):
            await self._catcher.listen("127.0.0.1", 0)
        self.pump.input(self._client.redirect_ready, self._catcher.uri)

    async def _ask(self, event: AuthorizationUrlReady) -> None:
        if self._wait is None and self._catcher is None:
            place = parse_url(event.redirect_uri)
            if place.scheme != "http" or not is_loopback(place.host):
                raise LocalProtocolError(
                    "give wait_redirect: the browser does not come back to this computer"
                )
            self._catcher = Catcher(self._arrived, place.path)
            await self._catcher.listen(place.host, place.port)
        await self._show(event.url)
        if self._wait is not None:
            url = await self._wait(event.redirect_uri)
            if not self._arrived(url):
                told = "what came back from the browser belongs to another attempt: try again"
                self._decline(told, AuthorizationProblem.WRONG_STATE)

    async def _show(self, url: str) -> None:
        loop = asyncio.get_running_loop()
        if self._open is None:
            shown: object = await loop.run_in_executor(None, webbrowser.open, url)
        else:
            shown = self._open(url)
            if inspect.isawaitable(shown):
                shown = await shown
        if shown is False:
            raise LocalProtocolError("there is no browser: give open_url")

    def _arrived(self, url: str) -> bool:
        assert self.pump is not None
        taken = False

        def arrive(now: float) -> None:
            nonlocal taken
            taken = self._client.redirect_received(url, now)

        self.pump.input(arrive)
        return taken


async def log_in(client: Client) -> Tokens:
    """Come by a token for the server of `client`, which was connected with ``auth``, if it has none yet.

    Raises `AuthorizationFailed`; and LocalProtocolError for a client without ``auth``.
    """
    authorized = getattr(client.transport, "client", None)
    login = _LOGINS.get(authorized) if isinstance(authorized, AuthorizedClient) else None
    if login is None:
        raise LocalProtocolError("log_in: this client was connected without auth")
    return await login.log_in()


_LOGINS: Final[WeakKeyDictionary[AuthorizedClient, Login]] = WeakKeyDictionary()
"""Who does it for which client."""


class Catcher:
    """Listens on this computer for a browser that comes back; `arrived` gets the address, and says whether
    that was it."""

    def __init__(self, arrived: Callable[[str], bool], path: str = PATH) -> None:
        self._arrived = arrived
        self._path = path
        self._server: asyncio.Server | None = None
        self._visits = 0
        self._visitors: set[asyncio.Task[Any]] = set()
        self.uri = ""
        """Where it listens."""

    async def listen(self, host: str, port: int) -> None:
        """Listen there; port 0 is any that is free. Raises OSError."""
        # In two steps: who is cancelled within one would leave it listening.
        self._server = await asyncio.start_server(
            self._visited, host, port, limit=_MAX_HEAD, start_serving=False
        )
        await self._server.start_serving()
        port = self._server.sockets[0].getsockname()[1]
        self.uri = f"http://{f'[{host}]' if ':' in host else host}:{port}{self._path}"

    async def listen_again(self, place: Url) -> bool:
        """Listen where one listened before; returns whether that is possible."""
        if place.scheme != "http" or place.host != "127.0.0.1" or place.target != self._path:
            return False
        try:
            await self.listen(place.host, place.port)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Listen no more, and turn away who is there. An answer that was written leaves all the same."""
        if self._server is not None:
            self._server.close()
        for visitor in self._visitors:
            visitor.cancel()

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitor = asyncio.current_task()
        assert visitor is not None
        self._visitors.add(visitor)
        self._visits += 1
        if self._visits > _MAX_VISITS:
            self.close()
        try:
            async with asyncio.timeout(_VISIT_WAIT):
                writer.write(await self._answer(reader))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            self._visitors.discard(visitor)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        codec = Http1Server()
        while True:
            data = await reader.read(_MAX_HEAD)
            if not data:
                return b""
            codec.receive_data(data)
            while (event := codec.next_event()) is not None:
                if not isinstance(event, RequestHead):
                    return b""
                path, _, query = event.target.partition("?")
                status, page = 404, _NOT_TAKEN
                if event.method == "GET" and path == self._path and query:
                    taken = self._arrived(f"{self.uri}?{query}")
                    status, page = (200, _TAKEN) if taken else (400, _NOT_TAKEN)
                headers = [
                    ("content-type", "text/html; charset=utf-8"),
                    ("cache-control", "no-store"),
                    ("referrer-policy", "no-referrer"),
                ]
                codec.send_response(status, headers, page.encode(), close=True)
                return codec.data_to_send()
