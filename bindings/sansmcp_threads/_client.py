"""A connected client whose verbs block."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Any, Self, Unpack, cast

from sansmcp.errors import ConnectionEnded, LocalProtocolError
from sansmcp.events import ProgressReported, RequestFailed, ResultReady
from sansmcp.session.calls import Call
from sansmcp_shared.changes import ListenOptions
from sansmcp_shared.client import BaseClient
from sansmcp_shared.flag import Flag

from ._loop import Future, Loop, Signal
from ._verbs import Verbs
from ._waits import Changes, Events


class Client(BaseClient, Verbs):
    """A connection to one server: ``with connect(…) as client``. Any number of threads may use it at once.

    Each verb blocks the thread that calls it, and no other. Ctrl-C ends the wait at once, and cancels
    the call on the wire. Calls that are open when the connection ends, also by `close` in another
    thread, raise `ConnectionEnded`. A process that was forked must not use the client of its parent.
    """

    _events: Events
    _pid = 0

    @cached_property
    def _threads(self) -> Loop:
        return cast(Loop, self._loop)

    def _make_events(self, arrived: Flag, bound: int) -> Events:
        return Events(self._threads, arrived, bound)

    def events(self) -> Events:
        """What happens and belongs to no call: ``for event in client.events()``."""
        return self._events

    # verbs ---------------------------------------------------------------------------------------

    def listen(self, **options: Unpack[ListenOptions]) -> Changes:
        """Be told of changes on the server, in either era: see `Changes`. Does nothing until entered."""
        return Changes(self, options)

    def _call(
        self,
        verb: Callable[..., Call],
        *arguments: Any,
        on_progress: Callable[[ProgressReported], object] | None = None,
        **options: Any,
    ) -> Any:
        loop = self._threads
        call: Call | None = None
        future: Any = None
        try:
            with loop.lock:
                try:
                    call, future = self._begin(verb, arguments, on_progress, options)
                    self._pump.drain()
                except BaseException as error:
                    loop.interrupted(error)
                    raise
            came = loop.wait(future)
        finally:
            if call is not None and (on_progress is not None or not future.done()):
                with loop.lock:
                    self._forget(call)
        if not came:
            raise ConnectionEnded("the client was closed")
        end = future.result()
        if isinstance(end, RequestFailed):
            raise end.error
        return end.result

    def _do(self, verb: Callable[..., Any], *arguments: Any) -> Any:
        loop = self._threads
        with loop.lock:
            try:
                self._check_open()
                result = verb(*arguments, now=loop.time())
                self._pump.drain()
            except BaseException as error:
                loop.interrupted(error)
                raise
        return result

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise LocalProtocolError("this process was forked from the one whose client this is")
        if self._error is not None:
            super()._check_open()

    def _end_told(self, event: ResultReady | RequestFailed) -> None:
        with self._threads.lock:
            super()._end_told(event)

    # start and end -------------------------------------------------------------------------------

    def open(self, start: Callable[..., object], *arguments: Any) -> Self:
        """Connect; `connect` does it. Raises why that did not succeed, with nothing left behind.

        The notes of what is raised (``__notes__``) tell what was tried, as `evidence` does.
        """
        self._pid = os.getpid()
        ready = cast("Future[None]", self._ready)
        try:
            with self._threads.lock:
                self._pump.input(start, *arguments)
            self._threads.wait(ready)
            ready.result()
            self._threads.keep()
        except BaseException as error:
            self._tell_evidence(error)
            self.close()
            raise
        return self

    def close(self) -> None:
        """End the connection and wait until nothing of it is left, at most as long as the ladder takes.

        When the wait is interrupted, a child process is killed at once. Harmless twice, and in any
        thread and callback.
        """
        loop = self._threads
        if self._pid != os.getpid():
            return
        with loop.lock:
            if self._pump.failure is None:
                self._pump.input(self._pump.transport.close)
        gone = cast(Signal, self._pump.gone)
        try:
            loop.wait(gone)
        except BaseException:
            with loop.lock:
                self._pump.abort()
            loop.wait(gone)
            raise
        finally:
            if gone.is_set():
                loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
