"""The user's part of authorization, but for how one waits: who is asked, and what a browser is answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from sansmcp.auth.client import AuthorizedClient
from sansmcp.errors import AuthorizationProblem, ConnectionEnded, LocalProtocolError, SansmcpError
from sansmcp.events import (
    AuthorizationGranted,
    AuthorizationRefused,
    AuthorizationUrlReady,
    Event,
    RedirectNeeded,
    SessionEnded,
)
from sansmcp.http.proxy import is_loopback
from sansmcp.http.url import Url, parse_url
from sansmcp.wire.http1 import Http1Server, RequestHead

if TYPE_CHECKING:
    import asyncio

    from sansmcp.auth.tokens import Tokens
    from sansmcp.http.connector import HttpConnector

    from .client import BaseClient
    from .pump import Pump

OpenUrl = Callable[[str], object]
"""Shows the user an address. May be a coroutine function; what it returns does not matter, unless False."""
WaitRedirect = Callable[[str], Awaitable[str] | str]
"""Given the address at which the browser is to arrive, returns the one at which it did."""

PATH: Final = "/callback"
HOST: Final = "127.0.0.1"

VISIT_WAIT: Final = 5.0
"""Seconds for one visit of a browser."""
MAX_VISITS: Final = 32
"""Visits of one attempt. Past it: nobody listens any more."""
MAX_HEAD: Final = 16 * 1024
"""Bytes that are read at once."""
_PAGE: Final = (
    "<!doctype html><meta charset=utf-8><title>{0}</title>"
    "<body style='font-family:sans-serif;margin:4em'><h1>{0}</h1><p>{1}</p>"
)
_TAKEN: Final = _PAGE.format("Done", "You can close this window.")
_NOT_TAKEN: Final = _PAGE.format(
    "Not what is waited for", "This address belongs to another login, or to none."
)


class Login(ABC):
    """Does for `client` what its events ask for, as long as an attempt lasts.

    Raises LocalProtocolError for a `wait_redirect` that would not know where to wait.
    """

    pump: Pump
    """Set by the client, before the first event."""

    def __init__(
        self, client: AuthorizedClient, open_url: OpenUrl | None, wait_redirect: WaitRedirect | None
    ) -> None:
        if wait_redirect is not None and client.oauth.redirect_uri is None:
            raise LocalProtocolError("wait_redirect needs OAuth.redirect_uri: where the browser arrives")
        self.client: Final = client
        self._open = open_url
        self._wait = wait_redirect
        self._waiting: list[asyncio.Future[None]] = []
        """Awaited by `log_in`."""
        self._over = False

    @classmethod
    def of(cls, core: HttpConnector, options: Mapping[str, Any]) -> Self:
        """For a client with the options ``auth``, ``open_url`` and ``wait_redirect``."""
        assert isinstance(core.client, AuthorizedClient)
        return cls(core.client, options.get("open_url"), options.get("wait_redirect"))

    def take(self, event: Event) -> None:
        """Begin with what `event` asks for."""
        match event:
            case RedirectNeeded(preferred=preferred):
                self._begin_to_listen(None if preferred is None else parse_url(preferred))
            case AuthorizationUrlReady():
                self._begin_to_ask(event)
            case AuthorizationGranted():
                self._end(None)
            case AuthorizationRefused(error=error):
                self._end(error)
            case SessionEnded(error=ended):
                self.fail(ended or ConnectionEnded("the client was closed"))

    def fail(self, error: Exception) -> None:
        """The connection has ended."""
        self._over = True
        self._end(error)

    def ended(self) -> asyncio.Future[None]:
        """For the end of the attempt that is under way, or about to be.

        Raises ConnectionEnded where there will be none.
        """
        if self._over:
            raise ConnectionEnded("the client was closed")
        future: asyncio.Future[None] = self.pump.loop.create_future()
        self._waiting.append(future)
        return future

    def leave(self, ended: asyncio.Future[None]) -> None:
        """Whoever waited for `ended` is cancelled. With the last one the attempt ends."""
        if ended in self._waiting:
            self._waiting.remove(ended)
            if not self._waiting and self.pump.failure is None:
                self.pump.input(self.client.withdraw)

    @abstractmethod
    def _begin_to_listen(self, preferred: Url | None) -> None:
        """Listen for the browser, where one did before if that is possible, and tell the client where."""

    @abstractmethod
    def _begin_to_ask(self, event: AuthorizationUrlReady) -> None:
        """Send the user to the address of `event`, and wait for the way back."""

    @abstractmethod
    def stop(self) -> None:
        """Nobody waits for a browser any more. Harmless twice."""

    def _end(self, error: Exception | None) -> None:
        self.stop()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)

    def _failed(self, error: Exception) -> None:
        """The user could not be asked."""
        # What it says may hold the address, which is a secret.
        told = str(error) if isinstance(error, SansmcpError) else type(error).__name__
        self._decline(f"the user could not be asked: {told}")

    def _strange(self) -> None:
        """What `wait_redirect` brought is not what is waited for."""
        told = "what came back from the browser belongs to another attempt: try again"
        self._decline(told, AuthorizationProblem.WRONG_STATE)

    def _decline(self, reason: str, problem: AuthorizationProblem = AuthorizationProblem.NOT_ASKED) -> None:
        self.pump.input(lambda now: self.client.decline(reason, now, problem))

    def _arrived(self, url: str) -> bool:
        """The browser is at `url`; returns whether it was sent there."""
        taken = False

        def arrive(now: float) -> None:
            nonlocal taken
            taken = self.client.redirect_received(url, now)

        self.pump.input(arrive)
        return taken


def login_of(client: BaseClient) -> Login:
    """Raises LocalProtocolError for a client without ``auth``."""
    if client._login is None:
        raise LocalProtocolError("log_in: this client was connected without auth")
    client._check_open()
    return client._login


def granted(login: Login) -> Tokens:
    """The tokens there are after an attempt that succeeded."""
    tokens = login.client.tokens
    assert tokens is not None
    return tokens


def own_place(event: AuthorizationUrlReady) -> Url:
    """Where the browser comes back to this computer. Raises LocalProtocolError where it does not."""
    place = parse_url(event.redirect_uri)
    if place.scheme != "http" or not is_loopback(place.host):
        raise LocalProtocolError("give wait_redirect: the browser does not come back to this computer")
    return place


def shown(answer: object) -> None:
    """What `open_url` said. Raises LocalProtocolError if the user sees nothing."""
    if answer is False:
        raise LocalProtocolError("there is no browser: give open_url")


def may_be(place: Url | None, path: str) -> bool:
    """Whether one may listen at `place`, where one listened before."""
    return place is not None and (place.scheme, place.host, place.target) == ("http", HOST, path)


def address(host: str, port: int, path: str) -> str:
    """Of who listens there."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"


class Visit:
    """One connection of a browser that comes to `uri`; `arrived` is told the address, and says whether
    that was it."""

    def __init__(self, uri: str, arrived: Callable[[str], bool]) -> None:
        self._uri = uri
        self._arrived = arrived
        self._codec = Http1Server()

    def receive(self, data: bytes) -> bytes | None:
        """What to answer before the connection is closed, ``b""`` for nothing; None: read on."""
        self._codec.receive_data(data)
        event = self._codec.next_event()
        if event is None:
            return None
        if not isinstance(event, RequestHead):
            return b""
        path, _, query = event.target.partition("?")
        status, page = 404, _NOT_TAKEN
        if event.method == "GET" and path == parse_url(self._uri).path and query:
            status, page = (200, _TAKEN) if self._arrived(f"{self._uri}?{query}") else (400, _NOT_TAKEN)
        headers = [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
        ]
        self._codec.send_response(status, headers, page.encode(), close=True)
        return self._codec.data_to_send()
