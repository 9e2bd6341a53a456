"""Serves an `App` in threads: one drives the connections, the others run the handlers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from sansmcp.errors import LocalProtocolError
from sansmcp.invocation import Invocation, NeedsLoop, Raised
from sansmcp_shared.handlers import Handlers, Serving

from ._loop import Loop, Signal
from ._pump import ThreadPump


class ThreadHandlers(Handlers):
    """Runs every handler in one of the threads, coroutine functions too."""

    inline = True

    def stop_now(self) -> None:
        """End every connection, and wait until they are closed. Without the lock."""
        loop = cast(Loop, self._loop)
        with loop.lock:
            self.end()
        loop.wait(cast(Signal, self.pump.gone))

    def start_task(self, invocation: Invocation, awaitable: Any) -> None:
        if hasattr(awaitable, "close"):
            awaitable.close()
        told = f"{invocation.request!r}: its handler returned something to await, and here is no loop"
        self.take(invocation, Raised(NeedsLoop(told)))

    def post(self, action: Callable[[], None]) -> None:
        """A handler has ended, or asks something: its thread sees to that itself, and wakes no other one."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            cast(Loop, self._loop).call_now(action)

    def _submit(self, action: Callable[[float], object]) -> None:
        # Perhaps with the lock held: whoever changes what an app offers may do so anywhere.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._act, action)

    def _act(self, action: Callable[[float], object]) -> None:
        action(self._loop.time())
        self.pump.soon()


class ThreadServing(ThreadHandlers, Serving):
    """One connection of `app`."""

    pump_kind = ThreadPump


def check_threads(threads: int) -> None:
    """Raise LocalProtocolError for a number of threads that cannot be."""
    if threads < 1:
        raise LocalProtocolError(f"handlers need a thread to run in, not {threads}")
