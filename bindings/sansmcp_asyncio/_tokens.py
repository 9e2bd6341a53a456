"""Finds out for an `HttpServer` what access tokens say: calls its verifier, and awaits it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any

from sansmcp.auth.principal import Principal
from sansmcp.clock import ClockPair
from sansmcp.events import VerifyToken
from sansmcp.http.server import HttpServer

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

    from ._pump import Pump


def verify_in_place(server: HttpServer, event: VerifyToken, clock: ClockPair) -> Awaitable[Any] | None:
    """Call the verifier, and tell what it says; returns what has to be awaited first."""
    try:
        found = event.verifier(event.token)
    except Exception as error:
        server.verification_failed(event.exchange, _told(error), clock.now)
        return None
    if inspect.isawaitable(found):
        return found
    server.token_verified(event.exchange, found, clock)
    return None


def _told(error: Exception) -> str:
    # What it says may quote the token, so only what it is and where is told.
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" in {frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}"
    return f"the verifier raised {type(error).__name__}{where}"


class TokenChecks:
    """The tokens that are being verified for one server."""

    def __init__(self, server: HttpServer, loop: AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._tasks: set[Task[None]] = set()

    def begin(self, event: VerifyToken, pump: Pump) -> None:
        """Find out who is behind a token. What is no coroutine is called in place."""
        found = verify_in_place(self._server, event, self._clock())
        if found is not None:
            task = self._loop.create_task(self._wait(event.exchange, found, pump))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Nobody waits for any of them."""
        for task in list(self._tasks):
            task.cancel()

    async def _wait(self, exchange: int, found: Awaitable[Principal | None], pump: Pump) -> None:
        try:
            tell: Any = partial(self._found, exchange, await found)
        except Exception as error:
            tell = partial(self._failed, exchange, error)
        if pump.failure is None:
            tell()
            pump.soon()

    def _clock(self) -> ClockPair:
        return ClockPair(now=self._loop.time(), unix=time.time())

    def _found(self, exchange: int, principal: Principal | None) -> None:
        self._server.token_verified(exchange, principal, self._clock())

    def _failed(self, exchange: int, error: Exception) -> None:
        self._server.verification_failed(exchange, _told(error), self._loop.time())
