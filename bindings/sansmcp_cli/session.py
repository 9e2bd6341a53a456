"""One connection for one command: connect, work, leave; whatever fails becomes a `CommandError`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sansmcp.errors import ConnectionEnded, ErrorCode, SansmcpError
from sansmcp.types.lifecycle import declares

from . import documents
from .explain import from_call, from_connect
from .failures import ANSWERED_ERROR, NO_CONNECTION, TIMED_OUT, CommandError
from .reach import AuthOptions, announcement, opening, secrets_of
from .redact import Redactor
from .settings import Settings
from .signals import end_on_sigterm
from .targets import HttpTarget, StreamTarget, Target
from .text import likely
from .trace import Garbage, ServerErrors, Trace, Wire

if TYPE_CHECKING:
    from sansmcp.types.tools import ListToolsResult
    from sansmcp_asyncio import Client

    from .bridging import Bridged
    from .questions import Questions

T = TypeVar("T")

_UNKNOWN = (ErrorCode.INVALID_PARAMS, ErrorCode.METHOD_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND)
"""What servers answer to a name that they do not know."""


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


def answer_from(
    target: Target,
    settings: Settings,
    work: Callable[[Client], Awaitable[T]],
    *,
    trail: bool = False,
    questions: Questions | None = None,
) -> tuple[T, dict[str, Any]]:
    """What `work` gets from the server, and whom it is from."""

    async def both(client: Client) -> tuple[T, dict[str, Any]]:
        found = await work(client)
        return found, documents.connection(client)

    return run(target, settings, both, trail=trail, questions=questions)


def offers(client: Client, capability: str) -> bool:
    """Whether the server may be asked for these things; one that was not asked yet may."""
    known = client.server_capabilities
    return known is None or declares(known, capability)


def require(client: Client, capability: str, subject: str) -> None:
    """Raise CommandError for what the server does not offer."""
    if not offers(client, capability):
        message = f"{subject}: the server offers no {capability} (it does not declare the capability)"
        raise CommandError(ANSWERED_ERROR, "not_offered", message)


@asynccontextmanager
async def suggesting(client: Client, kind: str, name: str) -> AsyncIterator[None]:
    """Around a request for something by its name: an error of the server names what is like it."""
    try:
        yield
    except CommandError as failure:
        unknown = failure.kind == "server_error" and failure.details.get("code") in _UNKNOWN
        hint = await like_it(client, kind, name) if unknown else ""
        if not hint:
            raise
        raise failure.saying(f"{failure.message}; {hint}") from failure.__cause__


async def like_it(client: Client, kind: str, name: str) -> str:
    """Which of the server's names this may be a slip of; empty if it is one of them."""
    known: list[str] = []
    with suppress(SansmcpError):
        match kind:
            case "tools":
                known = [tool.name for tool in (await client.list_tools()).tools]
            case "prompts":
                known = [prompt.name for prompt in (await client.list_prompts()).prompts]
            case _:
                known = [resource.uri for resource in (await client.list_resources()).resources]
    return "" if name in known else likely(name, known)


async def list_tools(client: Client) -> ListToolsResult:
    """All tools. Raises CommandError."""
    with asking("tools/list"):
        return await client.list_tools()
