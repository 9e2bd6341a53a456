"""One connection for one command: connect, work, leave; whatever fails becomes a `CommandError`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from sansmcp import __version__
from sansmcp.errors import ConnectionEnded, SansmcpError
from sansmcp.stdio import NO_RESTART
from sansmcp.types import Implementation

from .explain import from_call, from_connect
from .failures import NO_CONNECTION, TIMED_OUT, CommandError
from .redact import Redactor
from .settings import Settings, check_folder
from .targets import Target
from .trace import ServerErrors, Trace

if TYPE_CHECKING:
    from sansmcp_asyncio import Client

T = TypeVar("T")


def run(target: Target, settings: Settings, work: Callable[[Client], Awaitable[T]]) -> T:
    """Connect to `target`, do `work` and disconnect. Raises CommandError for whatever goes wrong."""
    try:
        return asyncio.run(_run(target, settings, work))
    except asyncio.CancelledError:
        raise CommandError(128 + signal.SIGTERM, "terminated", "terminated") from None


def _end_on_sigterm() -> None:
    """Leave through the front door, so that the server is not left behind."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, ValueError, RuntimeError):  # not on Windows, not in a thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _run(target: Target, settings: Settings, work: Callable[[Client], Awaitable[T]]) -> T:
    import sansmcp_asyncio

    _end_on_sigterm()
    mode, timeouts = settings.era_mode(), settings.timeouts()
    cwd = check_folder(settings.cwd, "--cwd") or check_folder(target.cwd, f"{target.name}: cwd")
    env = {**target.env, **settings.env}
    redactor = Redactor(env, os.environ)
    errors = ServerErrors(redactor, show=settings.stderr)
    trace = Trace(redactor) if settings.trace else None
    if trace is not None:
        names = f" with {', '.join(env)} set" if env else ""
        trace.note("·", f"start: {' '.join(redactor.argv(target.argv))}{names}")
    try:
        async with sansmcp_asyncio.connect(
            list(target.argv),
            info=Implementation(name="sansmcp", version=__version__),
            mode=mode,
            timeouts=timeouts,
            env=env,
            inherit_env=settings.inherit_env,
            cwd=cwd,
            restart=NO_RESTART,
            strict=settings.strict,
            on_event=None if trace is None else trace.on_event,
            on_wire=None if trace is None else trace.on_wire,
            stderr=errors,
        ) as client:
            return await work(client)
    except SansmcpError as error:
        failure = from_connect(error, target.name, pinned=settings.mode != "auto")
        cause: BaseException | None = error
    except CommandError as failed:
        failure, cause = failed, failed.__cause__
    errors.flush()
    notes: list[str] = []
    if failure.code in (NO_CONNECTION, TIMED_OUT):
        notes = errors.tail(cause.stderr_tail if isinstance(cause, ConnectionEnded) else "")
    raise failure.with_last_words(notes, redactor.json) from cause


@contextmanager
def asking(subject: str) -> Iterator[None]:
    """Around one request: what goes wrong is told as the failure of `subject`."""
    try:
        yield
    except SansmcpError as error:
        raise from_call(error, subject) from error
