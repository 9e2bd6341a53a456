"""Callbacks that answer what a server asks, called for a client."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, cast

from sansmcp.client import ClientEngine
from sansmcp.errors import ErrorCode, LocalProtocolError, McpError
from sansmcp.events import InputRequired, InputWithdrawn
from sansmcp.session.rounds import Round
from sansmcp.types.lifecycle import (
    ClientCapabilities,
    ElicitationCapability,
    RootsCapability,
    SamplingCapability,
)
from sansmcp.types.methods import Method

if TYPE_CHECKING:  # who is asked nothing need not load what can be asked
    import asyncio

    from sansmcp.spans import SpanHook
    from sansmcp.types.elicitation import (
        ElicitRequestFormParams,
        ElicitRequestURLParams,
        ElicitResult,
    )
    from sansmcp.types.roots import ListRootsRequestParams, ListRootsResult
    from sansmcp.types.sampling import CreateMessageRequestParams, CreateMessageResult

    from .pump import Pump

R = TypeVar("R")
Answered: TypeAlias = R | Mapping[str, Any] | Awaitable[R | Mapping[str, Any]]
"""A result as its class or as JSON, at once or awaited."""

OnElicit: TypeAlias = "Callable[[ElicitRequestFormParams | ElicitRequestURLParams], Answered[ElicitResult]]"
OnSample: TypeAlias = "Callable[[CreateMessageRequestParams], Answered[CreateMessageResult]]"
OnRoots: TypeAlias = "Callable[[ListRootsRequestParams], Answered[ListRootsResult]]"


class QuestionOptions(TypedDict, total=False):
    """Who answers when the server asks. What there is a callback for is declared to the server.

    A callback is called with the params as their class, in a task of its own if it is async. What it
    raises is the answer: an `McpError` goes to a legacy server as it is, and fails the call of a modern
    one with `InputRefused`; of anything else a server is told only that there is no answer. It is
    cancelled when nobody waits for the answer any more.
    """

    on_elicit: OnElicit | None
    """Asks the user: by form, or by sending them to a page, which the params' class tells."""
    on_sample: OnSample | None
    """Asks a model. Deprecated in 2026-07-28."""
    on_roots: OnRoots | None
    """Names the places the client works on. Deprecated in 2026-07-28."""
    apply_defaults: bool
    """Whether an accepted form gets the defaults of the fields that it lacks. **False** unless given."""


class Callbacks(ABC):
    """The callbacks of one client. Without one for everything that is asked, it is left to the events."""

    spans: SpanHook | None = None
    """Hears of the client's calls."""

    def __init__(self, options: QuestionOptions) -> None:
        self._by_method: dict[str, Callable[[Any], Any]] = {}
        for method, callback in (
            (Method.ELICIT, options.get("on_elicit")),
            (Method.CREATE_MESSAGE, options.get("on_sample")),
            (Method.LIST_ROOTS, options.get("on_roots")),
        ):
            if callback is not None:
                self._by_method[method] = callback
        for name, method in (("on_sample", Method.CREATE_MESSAGE), ("on_roots", Method.LIST_ROOTS)):
            if method in self._by_method:
                _warn_once(name, method)
        self._defaults = options.get("apply_defaults", False)
        self._tasks: dict[Round, asyncio.Task[None]] = {}

    def declare(self, given: ClientCapabilities | None) -> ClientCapabilities | None:
        """The capabilities with what the callbacks can answer; what is `given` there already stays."""
        if not self._by_method:
            return given
        own = ClientCapabilities() if given is None else copy(given)
        if Method.ELICIT in self._by_method:
            own.elicitation = own.elicitation or ElicitationCapability(form={}, url={})
        if Method.CREATE_MESSAGE in self._by_method:
            own.sampling = own.sampling or SamplingCapability()
        if Method.LIST_ROOTS in self._by_method:
            own.roots = own.roots or RootsCapability()
        return own

    def take(self, event: InputRequired | InputWithdrawn, engine: ClientEngine, pump: Pump) -> bool:
        """Answer a round, or stop. False: that is left to whoever reads the events."""
        if isinstance(event, InputWithdrawn):
            task = self._tasks.get(event.round)
            if task is not None:
                task.cancel()
            return task is not None
        asked, call = event.requests, event.call
        if any(q.method not in self._by_method for q in asked.values()):
            return False
        if call is not None and not call.auto_rounds:
            return False
        self._start(event, engine, pump)
        return True

    @abstractmethod
    def _start(self, event: InputRequired, engine: ClientEngine, pump: Pump) -> None:
        """Answer all that `event` asks."""

    def stop(self) -> None:
        """Look for no more answers."""
        for task in self._tasks.values():
            task.cancel()

    def _refuse(self, round_: Round, cause: Exception, engine: ClientEngine, pump: Pump) -> None:
        now = pump.loop.time()
        try:
            if isinstance(cause, McpError):
                engine.refuse_input(round_, cause, now=now)
                return
        except LocalProtocolError as error:  # a code that may not be sent
            error.__cause__ = cause
            cause = error
        finally:
            pump.soon()
        if round_.request is not None:
            # Nobody else would hear of it: the call, if there is one, goes on.
            told = {"message": f"a callback failed: {cause!r}", "exception": cause}
            pump.loop.call_exception_handler(told)
        refusal = McpError(ErrorCode.INTERNAL_ERROR, "the client could not answer")
        refusal.__cause__ = cause
        engine.refuse_input(round_, refusal, now=now)


def take_callbacks(options: Mapping[str, Any], kind: type[Callbacks]) -> tuple[Callbacks, dict[str, Any]]:
    """What answers questions, and the engine's options: the others, and what is declared by it."""
    rest = {name: value for name, value in options.items() if name not in QuestionOptions.__annotations__}
    callbacks = kind(cast(QuestionOptions, options))
    callbacks.spans = rest.pop("spans", None)
    rest["capabilities"] = callbacks.declare(rest.get("capabilities"))
    return callbacks, rest


_warned: set[str] = set()


def _warn_once(name: str, method: str) -> None:
    if name in _warned:
        return
    _warned.add(name)
    frame, level = sys._getframe(1), 2
    # Where the client is made, through `async with` or `await`: only there Python shows it.
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("sansmcp_"):
        frame, level = frame.f_back, level + 1
    told = f"{name}: {method} is deprecated since revision 2026-07-28 of the protocol"
    warnings.warn(told, DeprecationWarning, stacklevel=level)
