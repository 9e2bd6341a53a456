"""The user's part of authorization: a thread asks the user, and whoever drives the connection listens too."""

from __future__ import annotations

import inspect
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from sansmcp.errors import ConnectionEnded, LocalProtocolError
from sansmcp.events import AuthorizationUrlReady
from sansmcp.http.url import Url
from sansmcp_shared.login import (
    HOST,
    MAX_VISITS,
    PATH,
    VISIT_WAIT,
    Login,
    Visit,
    address,
    granted,
    login_of,
    may_be,
    own_place,
    shown,
)

from ._accept import Acceptor, listen_at
from ._loop import Loop, Signal
from ._sockets import Stream

if TYPE_CHECKING:
    from sansmcp.auth.tokens import Tokens

    from ._client import Client


class ThreadLogin(Login):
    """What is not said to be otherwise is called with the lock of the loop held."""

    _catcher: Catcher | None = None
    _asking: _Asking | None = None

    @property
    def threads(self) -> Loop:
        """The loop, as what it is."""
        return cast(Loop, self.pump.loop)

    def stop(self) -> None:
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.unwanted = True
        catcher, self._catcher = self._catcher, None
        if catcher is not None:
            catcher.close()

    def _begin_to_listen(self, preferred: Url | None) -> None:
        try:
            self._catcher = catcher = Catcher(self.threads, PATH, self._arrived)
            if preferred is None or not may_be(preferred, PATH) or not _free(catcher, preferred):
                catcher.listen(HOST, 0)
        except OSError as error:
            self._failed(error)
        else:
            self.pump.input(self.client.redirect_ready, catcher.uri)

    def _begin_to_ask(self, event: AuthorizationUrlReady) -> None:
        try:
            if self._wait is None and self._catcher is None:
                place = own_place(event)
                self._catcher = Catcher(self.threads, place.path, self._arrived)
                self._catcher.listen(place.host, place.port)
        except (OSError, LocalProtocolError) as error:
            self._failed(error)
        else:
            self._asking = _Asking(self, event)

    def show(self, url: str) -> None:
        """Send the user there. Without the lock."""
        shown(webbrowser.open(url) if self._open is None else _value(self._open, url))

    def back(self, uri: str) -> str | None:
        """Where the browser arrived; None: that is told by others. Without the lock."""
        return None if self._wait is None else cast(str, _value(self._wait, uri))

    def came(self, url: str) -> None:
        """The browser is there."""
        if not self._arrived(url):
            self._strange()

    def could_not(self, error: Exception) -> None:
        """The user could not be asked."""
        self._failed(error)


class _Asking:
    """A thread that asks the user, who may take long."""

    def __init__(self, login: ThreadLogin, event: AuthorizationUrlReady) -> None:
        self._login = login
        self._event = event
        self.unwanted = False
        """Whether nobody waits for it any more: what it calls is left alone, and what comes of it too."""
        threading.Thread(target=self._work, name="sansmcp login", daemon=True).start()

    def _work(self) -> None:
        try:
            self._login.show(self._event.url)
            url = None if self.unwanted else self._login.back(self._event.redirect_uri)
        except Exception as error:
            self._then(self._login.could_not, error)
        else:
            if url is not None:
                self._then(self._login.came, url)

    def _then(self, tell: Callable[..., None], outcome: object) -> None:
        with self._login.threads.lock:
            if not self.unwanted and self._login.pump.failure is None:
                tell(outcome)


def _value(callback: Callable[[str], object], argument: str) -> object:
    value = callback(argument)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise LocalProtocolError(f"{callback!r} has to be awaited, and here is no loop: use a function")
    return value


def _free(catcher: Catcher, place: Url) -> bool:
    """Listen where one listened before; returns whether that is possible."""
    try:
        catcher.listen(place.host, place.port)
    except OSError:
        return False
    return True


class Catcher:
    """Listens on this computer for a browser that comes back; `arrived` gets the address, and says whether
    that was it."""

    def __init__(self, loop: Loop, path: str, arrived: Callable[[str], bool]) -> None:
        self._loop = loop
        self._path = path
        self._arrived = arrived
        self._acceptors: list[Acceptor] = []
        self._visits = 0
        self.visitors: set[_Visitor] = set()
        self.uri = ""
        """Where it listens."""

    def listen(self, host: str, port: int) -> None:
        """Listen there; port 0 is any that is free. Raises OSError."""
        socks = listen_at(host, port)
        self.uri = address(host, socks[0].getsockname()[1], self._path)
        self._acceptors = [Acceptor(self._loop, sock, self._visited) for sock in socks]

    def close(self) -> None:
        """Listen no more, and turn away who is there. An answer that was begun leaves all the same."""
        for acceptor in self._acceptors:
            acceptor.close()
        for visitor in list(self.visitors):
            visitor.turn_away()

    def _visited(self, sock: socket.socket) -> None:
        self._visits += 1
        _Visitor(self._loop, self, Visit(self.uri, self._arrived), sock)
        if self._visits >= MAX_VISITS:
            for acceptor in self._acceptors:
                acceptor.close()


class _Visitor(Stream):
    """One connection of a browser."""

    def __init__(self, loop: Loop, catcher: Catcher, visit: Visit, sock: socket.socket) -> None:
        super().__init__(loop)
        self._catcher = catcher
        self._visit = visit
        self._answering = False
        self._timer = loop.call_at(loop.time() + VISIT_WAIT, self.abort)
        catcher.visitors.add(self)
        self._use(sock)

    def turn_away(self) -> None:
        """Close it, unless it is being answered, after which that is done."""
        if not self._answering:
            self.close()

    def on_open(self) -> None:
        pass

    def on_data(self, data: bytes) -> None:
        if self._answering:
            return
        self._answering = True
        answer = self._visit.receive(data)
        self._answering = answer is not None
        if answer is not None:
            self.write(answer)
            self.close()

    def on_eof(self) -> None:
        self.close()

    def on_lost(self, error: BaseException | None) -> None:
        self._timer.cancel()
        self._catcher.visitors.discard(self)

    def on_paused(self, paused: bool) -> None:
        pass


def log_in(client: Client) -> Tokens:
    """Come by a token for the server of `client`, which was connected with ``auth``, if it has none yet.

    Ctrl-C ends the attempt, unless another thread waits for it. Raises `AuthorizationFailed`, and what a
    call would raise after the end of the connection; and LocalProtocolError for a client without ``auth``.
    """
    login = login_of(client)
    loop = client._threads
    if login.client.tokens is None:
        with loop.lock:
            ended = login.ended()
        try:
            client._do(login.client.authorize)
            loop.wait(cast(Signal, ended))
        except BaseException:
            with loop.lock:
                login.leave(ended)
            raise
        if not ended.done():
            raise ConnectionEnded("the client was closed")
        ended.result()
    return granted(login)
