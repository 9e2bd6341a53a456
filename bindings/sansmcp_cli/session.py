"""One connection for one command: connect, work, leave; whatever fails becomes a `CommandError`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from sansmcp.errors import ConnectionEnded, SansmcpError

from .explain import from_call, from_connect
from .failures import NO_CONNECTION, TIMED_OUT, CommandError
from .reach import AuthOptions, announcement, opening, secrets_of
from .redact import Redactor
from .settings import Settings
from .signals import end_on_sigterm
from .targets import HttpTarget, StreamTarget, Target
from .trace import Garbage, ServerErrors, Trace, Wire

if TYPE_CHECKING:
    from sansmcp_asyncio import Client

    from .bridging import Bridged
    from .questions import Questions

T = TypeVar("T")


def run(
    target: Target,
    settings: Settings,
    work: Callable[[Client], Awaitable[T]],
    *,
    trail: bool = False,
    auth: AuthOptions | None = None,
    bridged: Bridged | None = None,
    questions: Questions | None = None,
) -> T:
    """Connect to `target`, do `work` and disconnect. Raises CommandError for whatever goes wrong.

    With `trail` it also tells what was tried to connect. `auth` is how tokens are come by, where that is not
    by what is kept. `bridged` is for clients of others. `questions` answers what the server asks.
    """
    try:
        return asyncio.run(_run(target, settings, work, trail, auth, bridged, questions))
    except asyncio.CancelledError:
        raise CommandError(128 + signal.SIGTERM, "terminated", "terminated") from None


async def _run(
    target: Target,
    settings: Settings,
    work: Callable[[Client], Awaitable[T]],
    trail: bool,
    auth: AuthOptions | None,
    bridged: Bridged | None,
    questions: Questions | None,
) -> T:
    end_on_sigterm()  # the server must not be left behind
    secrets = {} if questions is None else questions.secrets()
    redactor = Redactor({**secrets, **secrets_of(target, settings)}, os.environ)
    errors = ServerErrors(redactor, show=settings.stderr)
    trace = Trace(redactor, wire=_wire(target)) if settings.trace else None
    if trace is not None:
        trace.note("·", announcement(target, settings, redactor))
    garbage = Garbage()
    cause: BaseException | None
    try:
        on_event = garbage.heard if trace is None else garbage.before(trace.on_event)
        on_wire = None if trace is None else trace.on_wire
        made = opening(target, settings, on_event, on_wire, errors, auth, bridged, questions)
        async with made as client:
            result = await work(client)
        if questions is None or questions.failure is None:
            _tell_unused(questions)
            return result
        failure, cause = questions.failure, None
    except SansmcpError as error:
        failure = from_connect(error, target.name, pinned=settings.mode != "auto")
        if failure.kind in ("server_gone", "timeout") and garbage.found:
            glue = " It" if failure.message.endswith("?") else "; it"
            failure = failure.saying(f"{failure.message}{glue} wrote what is no message: {garbage.found}")
        cause = error
    except CommandError as failed:
        failure, cause = failed, failed.__cause__
    if questions is not None and questions.failure is not None:
        failure = questions.failure
    errors.flush()
    notes: list[str] = []
    if failure.code in (NO_CONNECTION, TIMED_OUT):
        notes = errors.tail(cause.stderr_tail if isinstance(cause, ConnectionEnded) else "")
    told = _trail(cause) if trail else []
    raise failure.with_last_words(notes, redactor.json, told) from cause


def _tell_unused(questions: Questions | None) -> None:
    for told in () if questions is None else questions.unused():
        print(f"sansmcp: nobody asked for the answer {told}", file=sys.stderr)


def _wire(target: Target) -> Wire:
    """In what the messages are, for the trace."""
    if isinstance(target, HttpTarget):
        return "http"
    return "websocket" if isinstance(target, StreamTarget) and target.websocket else "lines"


def _trail(error: BaseException | None) -> list[tuple[str, str]]:
    """What was tried to connect: the client notes it on the error."""
    parts = (note.partition(": ") for note in getattr(error, "__notes__", ()))
    return [(step, outcome.removeprefix(f"{step}: ").removesuffix("\\n")) for step, _, outcome in parts]


@contextmanager
def asking(subject: str) -> Iterator[None]:
    """Around one request: what goes wrong is told as the failure of `subject`."""
    try:
        yield
    except SansmcpError as error:
        raise from_call(error, subject) from error
