"""A connected client whose verbs are awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from sansmcp.events import ProgressReported, RequestFailed, ResultReady
from sansmcp.session.calls import Call

from .changes import Changes, ListenOptions
from .client import BaseClient
from .events import Events
from .flag import Flag
from .verbs import Verbs


class AwaitingClient(BaseClient, Verbs):
    """A connection to one server, but for what the loop's own rules ask of it."""

    _events: Events

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
            if self._pump.gone.is_set():
                await self._drop_guard()

    async def _wait_gone(self) -> None:
        """Wait for the end, also in a task that was cancelled."""
        await self._pump.gone.wait()

    async def _set_guard(self) -> None:
        """See to it that the client is closed with its loop, where nothing else does."""

    async def _drop_guard(self) -> None:
        """It is closed."""
