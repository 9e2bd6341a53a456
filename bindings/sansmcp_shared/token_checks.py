"""Finds out for an `HttpServer` what access tokens say: calls its verifier, and awaits it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sansmcp.auth.principal import Principal
from sansmcp.clock import ClockPair
from sansmcp.events import VerifyToken
from sansmcp.http.server import HttpServer

from .workers import Workers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

    from sansmcp.auth.resource_server import Verifier

    from .pump import Pump

_THREADS: Final = 4
"""For verifiers that are plain functions: they are not to wait for slow handlers."""


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


def _told(error: BaseException) -> str:
    # What it says may quote the token, so only what it is and where is told.
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" in {frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}"
    return f"the verifier raised {type(error).__name__}{where}"


def _awaits(verifier: Verifier) -> bool:
    return inspect.iscoroutinefunction(verifier) or inspect.iscoroutinefunction(type(verifier).__call__)


class TokenChecks:
    """The tokens that are being verified for one server.

    Verifiers that are plain functions run in threads of their own, or in place without `threads`.
    """

    def __init__(
        self,
        server: HttpServer,
        loop: AbstractEventLoop,
        post: Callable[[Callable[[], None]], None],
        *,
        threads: bool,
    ) -> None:
        self._server = server
        self._loop = loop
        self._post = post
        self._workers = Workers(_THREADS) if threads else None
        self._tasks: set[Task[None]] = set()

    def begin(self, event: VerifyToken, pump: Pump) -> None:
        """Find out who is behind a token."""
        if self._workers is not None and not _awaits(event.verifier):
            self._workers.submit(partial(self._work, event, pump))
            return
        found = verify_in_place(self._server, event, self._clock())
        if found is not None:
            self._await(event.exchange, found, pump)

    def cancel(self) -> None:
        """Nobody waits for any of them."""
        for task in list(self._tasks):
            task.cancel()
        if self._workers is not None:
            self._workers.close()

    def _work(self, event: VerifyToken, pump: Pump) -> None:
        """What is done in a thread."""
        try:
            found = event.verifier(event.token)
        except BaseException as error:  # there is nobody above who could take it
            tell = partial(self._failed, event.exchange, error)
        else:
            tell = partial(self._take, event.exchange, found, pump)
        self._post(partial(self._tell, tell, pump))

    def _take(self, exchange: int, found: Any, pump: Pump) -> None:
        if inspect.isawaitable(found):
            self._await(exchange, found, pump)
        else:
            self._found(exchange, found)

    def _await(self, exchange: int, found: Awaitable[Principal | None], pump: Pump) -> None:
        task = self._loop.create_task(self._wait(exchange, found, pump))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait(self, exchange: int, found: Awaitable[Principal | None], pump: Pump) -> None:
        try:
            tell: Any = partial(self._found, exchange, await found)
        except Exception as error:
            tell = partial(self._failed, exchange, error)
        self._tell(tell, pump)

    def _tell(self, tell: Callable[[], None], pump: Pump) -> None:
        if pump.failure is None:
            tell()
            pump.soon()

    def _clock(self) -> ClockPair:
        return ClockPair(now=self._loop.time(), unix=time.time())

    def _found(self, exchange: int, principal: Principal | None) -> None:
        self._server.token_verified(exchange, principal, self._clock())

    def _failed(self, exchange: int, error: BaseException) -> None:
        self._server.verification_failed(exchange, _told(error), self._loop.time())
