"""What a handler can do while it works: report progress, log, look at who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

import attrs

from .clock import ClockPair
from .errors import McpError, PeerFault
from .events import Event, Harmless, ListKind
from .limits import Limits
from .records import frozen
from .revisions import Era, Revision
from .session.calls import Call, IncomingRequest
from .wire.jsoncodec import JsonValue

if TYPE_CHECKING:
    from .asks import AnyQuestion, Ask, Question, Waiter
    from .auth.principal import Principal
    from .dialogue import Dialogue
    from .questions import Message
    from .types.elicitation import ElicitResult, RequestedSchema
    from .types.roots import ListRootsResult
    from .types.sampling import CreateMessageResult, ModelPreferences, ToolChoice
    from .types.tools import Tool

A1 = TypeVar("A1")
A2 = TypeVar("A2")
A3 = TypeVar("A3")

Clock = Callable[[], ClockPair]
"""Reads both clocks."""

Submit = Callable[[Callable[[float], object]], object]
"""Runs a function with the present time where the engine may be touched, then sends what came."""


class Answers(Protocol):
    """Through what requests are answered: a `ServerEngine`, or a transport that holds several."""

    @property
    def limits(self) -> Limits:
        """As `ServerEngine.limits`."""
        ...

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        """As `ServerEngine.respond`."""
        ...

    def respond_error(self, request: IncomingRequest, error: McpError, *, now: float) -> bool:
        """As `ServerEngine.respond_error`."""
        ...

    def report_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        *,
        now: float,
    ) -> bool:
        """As `ServerEngine.report_progress`."""
        ...

    def log(
        self,
        level: str,
        data: JsonValue,
        *,
        now: float,
        request: IncomingRequest | None = None,
        logger: str | None = None,
    ) -> bool:
        """As `ServerEngine.log`."""
        ...

    def hang_up(self, request: IncomingRequest, *, now: float) -> bool:
        """As `ServerEngine.hang_up`."""
        ...

    def notify_changed(self, kind: ListKind, *, now: float) -> bool:
        """As `ServerEngine.notify_changed`."""
        ...

    def notify_updated(self, uri: str, *, now: float) -> bool:
        """As `ServerEngine.notify_updated`."""
        ...

    def notify_topic(
        self, topic: str, name: str, method: str, params: Mapping[str, Any], *, now: float
    ) -> bool:
        """As `ServerEngine.notify_topic`."""
        ...

    def request(
        self,
        method: str,
        params: Mapping[str, JsonValue] | None = None,
        *,
        now: float,
        timeout: float | None = None,
        related: IncomingRequest | None = None,
    ) -> Call:
        """As `ServerEngine.request`."""
        ...

    def cancel(self, call: Call, *, now: float) -> None:
        """As `ServerEngine.cancel`."""
        ...

    def elicitation_complete(self, elicitation_id: str, *, now: float, related: IncomingRequest) -> bool:
        """As `ServerEngine.elicitation_complete`."""
        ...

    def report_ignored(
        self, request: IncomingRequest, reason: PeerFault | Harmless, detail: str, *, now: float
    ) -> None:
        """As `ServerEngine.report_ignored`."""
        ...


class AskInCourse(Protocol):
    """Asks the client something under a key; the call that is returned ends with the answer."""

    def __call__(self, key: str, method: str, params: dict[str, Any], *, now: float) -> Call: ...


def _deaf(*told: object) -> None:
    return


@frozen(kw_only=True, eq=False)
class Host:
    """What handlers can have of whoever calls them, beyond being called."""

    asks: bool = False
    """Whether it carries questions to legacy clients, and their answers back."""
    entropy: Callable[[int], bytes] | None = attrs.field(default=None, repr=False)
    """Gives random bytes."""
    clock: Clock | None = None
    """Tells the time of day, anew each time; None: what it passes as ``now`` is the time of day."""
    ask: AskInCourse | None = attrs.field(default=None, repr=False)
    """Asks the client in the course of its request; None: each era in its own way."""
    tell: Callable[[Event], object] = attrs.field(default=_deaf, repr=False)
    """Takes an event about its handlers that no engine says: an answer to a question, or a cancel."""
    moved: Callable[[IncomingRequest, IncomingRequest], object] = attrs.field(default=_deaf, repr=False)
    """Hears that a handler goes on for the sake of the second request, in place of the first."""


_ALONE = Host()


@attrs.define(eq=False)
class Context:
    """Handed to a handler that has a parameter ``ctx``.

    The methods return at once and may be called from any thread that the binding runs handlers
    in; what they send leaves in order.
    """

    request: IncomingRequest
    _engine: Answers
    _submit: Submit
    _host: Host = attrs.field(factory=lambda: _ALONE, repr=False)
    waiter: Waiter | None = attrs.field(default=None, init=False, repr=False)
    """For hosts: lets coroutines wait for answers. None: they are run without a loop."""
    _dialogue: Dialogue | None = attrs.field(default=None, init=False, repr=False)

    @property
    def era(self) -> Era:
        return self.request.era

    @property
    def revision(self) -> Revision:
        return self.request.revision

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client declared: on this request (modern) or for its session (legacy)."""
        return self.request.peer_capabilities

    @property
    def principal(self) -> Principal | None:
        """Who asks, as their access token says; None where the server asks for no tokens."""
        return self.request.principal

    @property
    def cancelled(self) -> bool:
        """Whether the client no longer wants an answer."""
        return not self.request.open

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress. Nothing is sent to a client that did not ask for it."""
        self._submit(
            lambda now: self._engine.report_progress(self.request, progress, total, message, now=now)
        )

    def log(self, level: str, data: JsonValue, *, logger: str | None = None) -> None:
        """Log to the client at `level`. Nothing is sent to a client that did not ask for it."""
        self._submit(lambda now: self._engine.log(level, data, now=now, request=self.request, logger=logger))

    def hang_up(self) -> None:
        """Give up the connection that the client waits on: it comes back for the rest by itself.

        For what takes long over HTTP. Nothing is done where a client would not come back: that is what
        2025-11-25 brought and 2026-07-28 took away again.
        """
        self._submit(lambda now: self._engine.hang_up(self.request, now=now))

    def notify_changed(self, kind: ListKind) -> None:
        """Tell every client that wants to know that a list changed, whoever asked for this.

        Over HTTP all clients of the server, otherwise the one of the connection. The server must
        declare that it tells of changes: ``App(list_changed=True)``.
        """
        self._submit(lambda now: self._engine.notify_changed(kind, now=now))

    def notify_updated(self, uri: str) -> None:
        """Tell every client that subscribed to the resource at `uri` that it changed.

        The server must declare that resources can be subscribed to: ``App(subscribe=True)``.
        """
        self._submit(lambda now: self._engine.notify_updated(uri, now=now))

    # for hosts and extensions --------------------------------------------------------------------

    @property
    def host(self) -> Host:
        """What the caller of the handler lends it."""
        return self._host

    @property
    def answers_to(self) -> Answers:
        """Through what the request is answered."""
        return self._engine

    def submit(self, action: Callable[[float], object]) -> None:
        """Run `action` with the present time where the engine may be touched."""
        self._submit(action)

    def move(self, request: IncomingRequest, engine: Answers, host: Host) -> None:
        """Let the handler go on for the sake of `request`, which `engine` takes the answer to."""
        self.request, self._engine, self._host = request, engine, host
        if self._dialogue is not None:
            self._dialogue.move(request, engine, host)

    @property
    def limits(self) -> Limits:
        """The bounds that hold where the request came in."""
        return self._engine.limits

    @property
    def entropy(self) -> Callable[[int], bytes] | None:
        """What gives random bytes; None where nothing does."""
        return self._host.entropy

    def unix_time(self, now: float) -> float:
        """The time of day at the moment `now`, in seconds since 1970."""
        clock = self._host.clock
        return now if clock is None else clock().unix_at(now)

    def remark(self, reason: PeerFault | Harmless, detail: str, *, now: float) -> None:
        """Let the application see what nothing is made of in the request."""
        self._engine.report_ignored(self.request, reason, detail, now=now)

    @property
    def dialogue(self) -> Dialogue:
        """What was asked and answered for this request. For hosts."""
        if self._dialogue is None:
            from .dialogue import Dialogue

            self._dialogue = Dialogue(self.request, self._engine, self._host)
        return self._dialogue

    # asking the client ---------------------------------------------------------------------------

    @property
    def answers(self) -> Mapping[str, Any]:
        """The answers that are known when the handler is called, by the keys of their questions.

        An answer is an `ElicitResult`, a `CreateMessageResult` or a `ListRootsResult`.
        """
        return self.dialogue.answers

    @property
    def state(self) -> JsonValue:
        """A JSON value of the application's own that goes from one run of the handler to the next.

        None until it is set, here or by `NeedsInput`.
        """
        return self.dialogue.app_state

    @state.setter
    def state(self, value: JsonValue) -> None:
        self.dialogue.app_state = value

    def can(self, *questions: AnyQuestion) -> bool:
        """Whether all of these can be asked: the client declared it, and its revision has it.

        A class stands for its plainest question: ``ctx.can(Sample)``.
        """
        from .asks import askable

        return not any(askable(q, self.revision, self.client_capabilities) for q in questions)

    def elicit(
        self,
        message: str,
        requested_schema: RequestedSchema | Mapping[str, Any],
        *,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Ask[ElicitResult]:
        """Ask the user to fill in a form: see `Elicit`. Await the value, or yield it in a generator."""
        from .questions import Elicit

        return self._ask(Elicit(message, requested_schema, key=key, timeout=timeout))

    def elicit_url(
        self,
        message: str,
        url: str,
        *,
        elicitation_id: str | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Ask[ElicitResult]:
        """Ask the user to go to a web page: see `ElicitUrl`."""
        from .questions import ElicitUrl

        return self._ask(ElicitUrl(message, url, elicitation_id, key=key, timeout=timeout))

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Tell that the user is done on a page. Only clients of 2025-11-25 are told: no other knows it."""
        self._submit(
            lambda now: self._engine.elicitation_complete(elicitation_id, now=now, related=self.request)
        )

    def sample(
        self,
        messages: Sequence[Message] | str,
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: ModelPreferences | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: ToolChoice | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Ask[CreateMessageResult]:
        """Ask the client's model: see `Sample`. Deprecated in 2026-07-28."""
        from .questions import Sample, warn_deprecated

        warn_deprecated(Sample, stacklevel=3)
        question = Sample(
            messages,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            stop_sequences=stop_sequences,
            model_preferences=model_preferences,
            include_context=include_context,
            tools=tools,
            tool_choice=tool_choice,
            metadata=metadata,
            key=key,
            timeout=timeout,
        )
        return self._ask(question)

    def list_roots(self, *, key: str | None = None, timeout: float | None = None) -> Ask[ListRootsResult]:
        """Ask where the client works: see `ListRoots`. Deprecated in 2026-07-28."""
        from .questions import ListRoots, warn_deprecated

        warn_deprecated(ListRoots, stacklevel=3)
        return self._ask(ListRoots(key=key, timeout=timeout))

    @overload
    def ask(self, first: Question[A1] | Ask[A1], /) -> Ask[tuple[A1]]: ...
    @overload
    def ask(self, first: Question[A1] | Ask[A1], second: Question[A2] | Ask[A2], /) -> Ask[tuple[A1, A2]]: ...
    @overload
    def ask(
        self,
        first: Question[A1] | Ask[A1],
        second: Question[A2] | Ask[A2],
        third: Question[A3] | Ask[A3],
        /,
    ) -> Ask[tuple[A1, A2, A3]]: ...
    @overload
    def ask(self, *questions: Question[Any] | Ask[Any]) -> Ask[tuple[Any, ...]]: ...

    def ask(self, *questions: Question[Any] | Ask[Any]) -> Ask[Any]:
        """Ask several things at once. The value is a tuple, also of one answer."""
        from .asks import Ask, as_ask

        return Ask(as_ask(questions).questions, False, self.waiter)

    def _ask(self, question: Question[A1]) -> Ask[A1]:
        from .asks import Ask

        return Ask((question,), True, self.waiter)
