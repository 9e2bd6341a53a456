"""A client with extensions: what they claim of its calls, and what they can do with its engine.

The door itself is `sansmcp.extensions.extension`.

Specification: 2026-07-28, basic/index (result type), basic/versioning (extensions).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..errors import (
    InputRefused,
    InvalidResponse,
    LocalProtocolError,
    PeerFault,
    RemoteProtocolError,
    SansmcpError,
)
from ..events import Event, Harmless
from ..extensions.extension import (
    ClientPart,
    Extension,
    ResultParser,
    check_distinct,
    declares,
    with_extensions,
)
from ..revisions import Era
from ..states import CallInput, RoundInput
from ..types.lifecycle import ClientCapabilities, Implementation
from ..wire import jsonrpc
from ..wire.jsoncodec import JsonValue
from . import modern
from .asking import Asking
from .calls import Call
from .rounds import IncomingQuestion, Round
from .suspended import SuspendedCall

if TYPE_CHECKING:
    from ..client import ClientEngine
    from .snapshot import Snapshot

OnAnswers: TypeAlias = Callable[[Mapping[str, Any]], object]


class Extending(Asking):
    """Everything of `ClientEngine` that concerns extensions."""

    def __init__(
        self,
        info: Implementation,
        *,
        capabilities: ClientCapabilities,
        extensions: Sequence[Extension],
        **options: Any,
    ) -> None:
        check_distinct(extensions)
        known = capabilities.extensions
        declared = with_extensions(known, extensions)
        if declared != known:
            capabilities = capabilities.replace(extensions=declared)
        super().__init__(info, capabilities=capabilities, **options)
        self._methods = {name: e for e in extensions for name in e.methods}
        self._parts: dict[str, ClientPart] = {}
        self._tags: dict[str, ClientPart] = {}
        self._heard: dict[str, ClientPart | None] = {}
        self._on_subscriptions = {name for e in extensions if e.topics for name in e.notifications}
        for extension in extensions:
            part = extension.client_part(_Door(self))
            self._heard.update(dict.fromkeys(extension.notifications, part))
            if part is not None:
                self._parts[extension.id] = part
                self._tags.update(dict.fromkeys(extension.result_types, part))
        self._own: dict[
            Call, tuple[Callable[[dict[str, Any]], object], Callable[[SansmcpError], object]]
        ] = {}
        """What extensions asked, and what becomes of it."""
        self._takers: dict[Round, OnAnswers] = {}
        """Rounds that an extension began, and who is given the answers."""

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        sizes = {**super().stats(), "extension_calls": len(self._own), "extension_rounds": len(self._takers)}
        for part in self._parts.values():
            sizes.update(part.stats())
        return sizes

    def suspend(self, call: Call, *, now: float) -> SuspendedCall:
        if call.round in self._takers:
            raise LocalProtocolError(
                f"{call!r}: not suspended: its server goes on by itself, so it is enough to remember its task"
            )
        return super().suspend(call, now=now)

    def _write_snapshot(self, now: float) -> Snapshot:
        from .snapshot import write_client

        return write_client(cast("ClientEngine", self), now)

    def _read_snapshot(self, snapshot: Mapping[str, JsonValue], now: float) -> None:
        from .snapshot import read_client

        read_client(cast("ClientEngine", self), snapshot, now)

    def extension_part(self, extension: str, *, now: float) -> ClientPart | None:
        """What an extension does in this engine, for verbs of its own; None when it does nothing."""
        self._tick(now)
        return self._parts.get(extension)

    # for the engine ------------------------------------------------------------------------------

    def _check_options(self, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The options that extensions have. Raises TypeError for one that nobody knows, LocalProtocolError
        for a value that it cannot have."""
        for name, value in options.items():
            known = [part.call_options[name] for part in self._parts.values() if name in part.call_options]
            if not known:
                raise TypeError(f"request() got an unexpected keyword argument {name!r}")
            if value not in known[0]:
                raise LocalProtocolError(f"{name} must be one of {', '.join(map(repr, known[0]))}")
        return options or None

    def _check_extension(self, call: Call) -> bool:
        """Whether `call` is of an extension, and may be sent then. Raises as `_check`."""
        extension, verdict = self._methods.get(call.method), self._verdict
        if extension is None or verdict is None or verdict.era is Era.LEGACY:
            return False
        known = self._server_capabilities
        if known is not None and self._check_capabilities and not declares(known, extension.id):
            raise LocalProtocolError(
                f"{call.subject}: the server does not declare the extension {extension.id!r} "
                "(check_capabilities=False asks all the same)"
            )
        return True

    def _parser_of(self, call: Call) -> ResultParser | None:
        """What reads the result of a call of an extension."""
        extension, verdict = self._methods.get(call.method), self._verdict
        if extension is None or verdict is None or verdict.era is Era.LEGACY:
            return None
        method = extension.methods[call.method]
        return None if method.result is None else method.parse

    def _taken(self, call: Call, kind: str | None, result: dict[str, Any]) -> bool:
        """Whether an extension goes on with a call that was answered with its type of result."""
        part = self._tags.get(kind) if kind is not None else None
        return part is not None and part.take_result(call, result)

    def _own_result(self, call: Call, result: dict[str, Any]) -> bool:
        """Whether a result is for an extension, which has it then."""
        asked = self._own.pop(call, None)
        if asked is None:
            return False
        kind, fault = modern.result_type(result)
        if kind != modern.COMPLETE or (fault is not None and self.strict):
            self._calls.end(call, CallInput.FAIL)
            cause = RemoteProtocolError(
                fault or PeerFault.UNKNOWN_RESULT_TYPE,
                f"a result of type {str(kind)[:64]!r} was not expected",
            )
            asked[1](InvalidResponse(f"{call.subject}: {cause}", cause))
        else:
            self._calls.end(call, CallInput.SUCCEED)
            asked[0](result)
        return True

    def _on_topic(self, method: str) -> bool:
        """Whether a modern server may send a notification of an extension on subscriptions only."""
        modern_ = self._verdict is not None and self._verdict.era is Era.MODERN
        return modern_ and method in self._on_subscriptions

    def _tell_parts(self, message: jsonrpc.Notification) -> None:
        part = self._heard.get(message.method)
        if part is not None and self._verdict is not None and self._verdict.era is Era.MODERN:
            part.take_notification(message.method, message.params)

    @abstractmethod
    def _succeed(self, call: Call, result: dict[str, Any], parser: ResultParser | None) -> None:
        """End a call with a result."""

    # ends ----------------------------------------------------------------------------------------

    def _end(self, call: Call, how: CallInput, error: SansmcpError) -> None:
        if call.internal and call.done:
            return  # the end of another call was the end of this one
        asked = self._own.pop(call, None)
        super()._end(call, how, error)
        if asked is not None:
            asked[1](error)
        elif not call.internal:
            self._tell_end(call, cancelled=how is CallInput.CANCEL or isinstance(error, InputRefused))

    def _tell_end(self, call: Call, *, cancelled: bool) -> None:
        for part in self._parts.values():
            part.call_ended(call, cancelled=cancelled)

    def _answered(self, round_: Round) -> None:
        taker = self._takers.get(round_)
        if taker is None:
            super()._answered(round_)
            return
        self._settle(round_, RoundInput.ANSWER)
        if round_.call is not None:
            round_.call.rounds += 1
        taker(round_.answers)

    def _settle(self, round_: Round, how: RoundInput) -> None:
        super()._settle(round_, how)
        if self._takers.pop(round_, None) is not None:
            self._round_timers.clear(round_)
            if round_.call is not None and round_.call.round is round_:
                round_.call.round = None

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._tick(now)
        for part in self._parts.values():
            part.handle_timeout()
        super().handle_timeout(now)


class _Door:
    """The engine, as an extension sees it: see `ClientDoor`."""

    def __init__(self, engine: Extending) -> None:
        self._engine = engine

    @property
    def now(self) -> float:
        return self._engine._now

    def ask(
        self,
        method: str,
        params: Mapping[str, JsonValue],
        *,
        like: Call,
        on_result: Callable[[dict[str, Any]], object],
        on_error: Callable[[SansmcpError], object],
    ) -> Call:
        engine = self._engine
        timeout = like.idle_timeout or engine.timeouts.request or engine.timeouts.ping
        request = engine._calls.new(
            method, dict(params), timeout=timeout, total_timeout=None, internal=True, meta=like.meta
        )
        engine._own[request] = (on_result, on_error)
        try:
            engine._submit(request)
        except LocalProtocolError:
            del engine._own[request]
            raise
        return request

    def drop(self, request: Call) -> None:
        engine = self._engine
        if engine._own.pop(request, None) is not None:
            engine._tell_cancelled(request, None)
            engine._calls.end(request, CallInput.CANCEL)

    def put_aside(self, call: Call) -> None:
        self._engine._calls.asking(call, self.now, CallInput.DEFER)

    def new_call(self, method: str, params: dict[str, Any], *, timeout: float | None) -> Call:
        engine = self._engine
        call = engine._calls.new(
            method, params, timeout=engine.timeouts.request or engine.timeouts.ping, total_timeout=timeout
        )
        self.put_aside(call)
        return call

    def succeed(self, call: Call, raw: dict[str, Any], parser: ResultParser | None = None) -> None:
        self._engine._succeed(call, raw, parser)

    def fail(self, call: Call, error: SansmcpError) -> None:
        self._engine._fail(call, error)

    def violated(self, call: Call, fault: PeerFault, detail: str) -> None:
        cause = RemoteProtocolError(fault, detail)
        self._engine._fail(call, InvalidResponse(f"{call.subject}: {cause}", cause))

    def read_questions(self, raw: Mapping[str, Any]) -> dict[str, IncomingQuestion]:
        engine = self._engine
        if engine._no_room(len(raw)):
            raise RemoteProtocolError(PeerFault.INVALID_INPUT_REQUIRED, "too many questions are open")
        return engine._read_questions(raw)

    def ask_application(
        self, call: Call, questions: dict[str, IncomingQuestion], on_answers: OnAnswers
    ) -> Round:
        engine = self._engine
        round_ = Round(call, questions, call.rounds + 1, engine._revision)
        engine._takers[round_] = on_answers
        engine._begin(round_)
        return round_

    def withdraw(self, round_: Round, reason: str) -> None:
        if round_.open and round_ in self._engine._takers:
            self._engine._withdraw(round_, reason)

    def emit(self, event: Event) -> None:
        self._engine._emit(event)

    def ignore(self, reason: PeerFault | Harmless, detail: str) -> None:
        self._engine._ignore(reason, detail)
