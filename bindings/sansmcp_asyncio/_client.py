"""A connected client: futures for the ends of calls, a queue for everything else that happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Unpack

from sansmcp.events import ProgressReported, RequestFailed, ResultReady
from sansmcp.session.calls import Call

from ._base import BaseClient
from ._events import Events
from ._listen import Changes, ListenOptions
from ._verbs import Verbs
from ._waiting import Flag

if TYPE_CHECKING:
    import asyncio


class Client(BaseClient, Verbs):
    """A connection to one server. Made by `connect` and `connect_memory`; not to be shared by threads.

    Cancelling the task that waits in a verb cancels the call on the wire. Calls that are open when
    the connection ends raise `ConnectionEnded`.
    """

    _events: Events
    _guard: AsyncGenerator[None, None] | None = None

    def _make_events(self, arrived: Flag, bound: int) -> Events:
        return Events(arrived, bound)

    def events(self) -> Events:
        """What happens and belongs to no call: ``async for event in client.events()``."""
        return self._events

    # verbs ---------------------------------------------------------------------------------------

    def listen(self, **options: Unpack[ListenOptions]) -> Changes:
        """Be told of changes on the server, in either era: see `Changes`. Does nothing until entered."""
        return Changes(self, options)

    async def _call(
        self,
        verb: Callable[..., Call],
        *arguments: Any,
        on_progress: Callable[[ProgressReported], object] | None = None,
        **options: Any,
    ) -> Any:
        call, future = self._begin(verb, arguments, on_progress, options)
        # Alone, a call leaves at once; among many, with those that other tasks make in this turn.
        if len(self._waiting) == 1:
            self._pump.drain()
        else:
            self._pump.soon()
        try:
            end: ResultReady | RequestFailed = await future
        finally:
            self._forget(call)
        if isinstance(end, RequestFailed):
            raise end.error
        return end.result

    async def _do(self, verb: Callable[..., Any], *arguments: Any) -> Any:
        self._check_open()
        result = verb(*arguments, now=self._loop.time())
        self._pump.soon()
        return result

    # start and end -------------------------------------------------------------------------------

    async def open(self, start: Callable[..., object], *arguments: Any) -> None:
        """Connect; `connect` has done it. Raises why that did not succeed, with nothing left behind.

        The notes of what is raised (``__notes__``) tell what was tried, as `evidence` does.
        """
        await self._set_guard()
        self._pump.input(start, *arguments)
        try:
            await self._ready
        except BaseException as error:
            self._tell_evidence(error)
            await self.aclose()
            raise

    def close(self) -> None:
        """Begin to end the connection, and return at once. Harmless twice, and in any callback."""
        if self._pump.failure is None:
            self._pump.input(self._pump.transport.close)

    async def aclose(self) -> None:
        """End the connection and wait until nothing of it is left, at most as long as the ladder takes.

        When the task that waits is cancelled, a child process is killed at once. Harmless twice,
        and from several tasks.
        """
        self.close()
        try:
            await self._pump.gone.wait()
        except BaseException:  # whatever the loop cancels with
            self._pump.abort()
            await self._wait_gone()
            raise
        finally:
            if self._pump.gone.is_set() and self._guard is not None:
                guard, self._guard = self._guard, None
                await guard.aclose()

    async def _wait_gone(self) -> None:
        """Wait for the end, also in a task that was cancelled."""
        await self._pump.gone.wait()

    async def _set_guard(self) -> None:
        self._guard = self._close_with_loop()
        await anext(self._guard)

    async def _close_with_loop(self) -> AsyncGenerator[None, None]:
        """A loop that ends lets its generators end first: so a client that nobody closed is closed."""
        try:
            yield
        finally:
            self._guard = None
            if not self._pump.gone.is_set():
                await self.aclose()


class Opening:
    """A connection to be: ``async with opening as client``, or ``client = await opening``.

    The first closes the client at its end; after the second, call `Client.aclose`. Once each.
    """

    def __init__(self, connected: Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, Client]]) -> None:
        self.connected = connected
        """Connects on a loop."""
        self._client: Client | None = None

    async def _enter(self) -> Client:
        import asyncio

        self._client = client = await self.connected(asyncio.get_running_loop())
        return client

    def __await__(self) -> Generator[Any, None, Client]:
        return self._enter().__await__()

    async def __aenter__(self) -> Client:
        return await self._enter()

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._client is not None
        await self._client.aclose()
