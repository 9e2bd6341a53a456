"""The user's part of authorization where one awaits: a browser is opened, and its way back is awaited."""

from __future__ import annotations

import inspect
import webbrowser
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from sansmcp.events import AuthorizationUrlReady
from sansmcp.http.url import Url

from .login import HOST, PATH, Login, granted, login_of, may_be, own_place, shown

if TYPE_CHECKING:
    import asyncio

    from sansmcp.auth.tokens import Tokens

    from .awaiting_client import AwaitingClient as Client  # its name where it is public


class Catches(Protocol):
    """Listens on this computer for a browser that comes back."""

    uri: str
    """Where it listens."""

    async def listen(self, host: str, port: int) -> None:
        """Listen there; port 0 is any that is free. Raises OSError."""

    def close(self) -> None:
        """Listen no more, and turn away who is there. An answer that was begun leaves all the same."""


class AwaitingLogin(Login):
    """In tasks of the loop, one at a time."""

    _catcher: Catches | None = None
    _task: asyncio.Task[None] | None = None

    @abstractmethod
    def _catches(self, path: str, arrived: Callable[[str], bool]) -> Catches:
        """One that does not listen yet; `arrived` gets the address, and says whether that was it."""

    def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        catcher, self._catcher = self._catcher, None
        if catcher is not None:
            catcher.close()

    def _begin_to_listen(self, preferred: Url | None) -> None:
        self._do(self._listen(preferred))

    def _begin_to_ask(self, event: AuthorizationUrlReady) -> None:
        self._do(self._ask(event))

    def _do(self, step: Coroutine[Any, Any, None]) -> None:
        self._task = self.pump.loop.create_task(self._guarded(step))

    async def _guarded(self, step: Coroutine[Any, Any, None]) -> None:
        try:
            await step
        except Exception as error:
            self._task = None
            self._failed(error)

    async def _listen(self, preferred: Url | None) -> None:
        self._catcher = catcher = self._catches(PATH, self._arrived)
        if preferred is None or not may_be(preferred, PATH) or not await _free(catcher, preferred):
            await catcher.listen(HOST, 0)
        self.pump.input(self.client.redirect_ready, catcher.uri)

    async def _ask(self, event: AuthorizationUrlReady) -> None:
        if self._wait is None and self._catcher is None:
            place = own_place(event)
            self._catcher = self._catches(place.path, self._arrived)
            await self._catcher.listen(place.host, place.port)
        await self._show(event.url)
        if self._wait is not None:
            url = self._wait(event.redirect_uri)
            if not self._arrived(url if isinstance(url, str) else await url):
                self._task = None
                self._strange()

    async def _show(self, url: str) -> None:
        if self._open is None:
            answer: object = await self.pump.loop.run_in_executor(None, webbrowser.open, url)
        else:
            answer = self._open(url)
            if inspect.isawaitable(answer):
                answer = await answer
        shown(answer)


async def _free(catcher: Catches, place: Url) -> bool:
    """Listen where one listened before; returns whether that is possible."""
    try:
        await catcher.listen(place.host, place.port)
    except OSError:
        return False
    return True


async def log_in(client: Client) -> Tokens:
    """Come by a token for the server of `client`, which was connected with ``auth``, if it has none yet.

    Cancelling it ends the attempt, unless somebody else waits for it. Raises `AuthorizationFailed`, and
    what a call would raise after the end of the connection; and LocalProtocolError for a client without
    ``auth``.
    """
    login = login_of(client)
    if login.client.tokens is None:
        ended = login.ended()
        try:
            await client._do(login.client.authorize)
            await ended
        except BaseException:
            login.leave(ended)
            raise
    return granted(login)
