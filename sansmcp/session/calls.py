"""Calls of this side and requests of the other: the handles, and the tables that hold them.

A `Call` is the stable handle of one application request, over whatever JSON-RPC ids it takes. It
ends exactly once; the first cause is kept. Timeouts are deadlines in a table, never tasks.

Specification: 2026-07-28, basic/patterns/cancellation and basic/patterns/progress.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from ..clock import Deadlines
from ..errors import LocalProtocolError
from ..limits import Limits, Timeouts
from ..revisions import Era, Revision
from ..states import CALL, REQUEST, CallInput, CallState, Machine, RequestInput, RequestState
from ..wire.jsonrpc import RequestId
from .pagination import PageWalk

if TYPE_CHECKING:
    from ..auth.principal import Principal
    from .cache import CacheMode, Ticket
    from .rounds import Round

CallMachine = Machine[CallState, CallInput]
RequestMachine = Machine[RequestState, RequestInput]

_ENDED = frozenset({CallState.SUCCEEDED, CallState.FAILED, CallState.CANCELLED, CallState.TIMED_OUT})


@attrs.define(eq=False, repr=False)
class Call:
    """One request of this side: what it asks for and how it stands.

    Identity is the handle: compare with ``is`` or use it as a dictionary key.
    """

    number: int
    """Counts the calls of an engine from 1; never used twice."""
    method: str
    params: dict[str, Any]
    """As the application gave them, without what the era adds."""
    idle_timeout: float | None
    total_timeout: float | None
    wants_progress: bool = False
    meta: Mapping[str, Any] | None = None
    """Members for `_meta`, such as a trace context."""
    log_level: str | None = None
    internal: bool = False
    """Made by the engine itself (probe, handshake): no event tells its end."""
    cancellable: bool = True
    walk: PageWalk | None = None
    """Set when the call reads a list to its end."""
    auto_rounds: bool = True
    """Whether the engine makes the request again as soon as nothing is missing."""
    rounds: int = 0
    """How many times it was made again because the server wanted something first."""
    round: Round | None = None
    """What the server wanted last, until it has answered to that."""
    again: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    """What its params carry besides, after such a round."""
    asked: int = 0
    """Questions of a legacy server that are open and belong to it."""
    cache_mode: CacheMode = "use"
    """Whether what is kept may answer it, and whether its answer is kept."""
    max_age: float | None = None
    """How old (seconds) what is kept may be to answer it."""
    options: Mapping[str, Any] | None = None
    """What it was made with for extensions."""
    cache_ticket: Ticket | None = attrs.field(default=None, repr=False)
    """Set when it asks for what may be kept."""
    related: IncomingRequest | None = None
    """Server: the received request for whose sake it is made, and on whose stream it belongs."""
    request_id: RequestId | None = None
    """The JSON-RPC id under which it waits now; None while it is queued or ended."""
    progress_token: RequestId | None = None
    last_progress: float | None = None
    total_at: float | None = None
    machine: CallMachine = attrs.field(factory=lambda: Machine(CALL), init=False)

    @property
    def state(self) -> CallState:
        """Where it stands: see the table `states.CALL`."""
        return self.machine.state

    @property
    def done(self) -> bool:
        """Whether the call has ended, in whatever way."""
        return self.machine.state in _ENDED

    @property
    def subject(self) -> str:
        """What the call is about, for people: the method and the name or URI it names."""
        name = self.params.get("name", self.params.get("uri"))
        return f"{self.method} {name!r}" if isinstance(name, str) else self.method

    def __repr__(self) -> str:
        return f"<Call #{self.number} {self.subject} {self.machine.state.name.lower()}>"


@attrs.define(eq=False, repr=False)
class IncomingRequest:
    """One request of the peer: answer it once, through the engine that received it."""

    id: RequestId
    method: str
    params: dict[str, Any]
    """As received, `_meta` included."""
    era: Era
    revision: Revision
    peer_info: Any = None
    """`Implementation` of the sender or None: for display, never for decisions."""
    peer_capabilities: Mapping[str, Any] = attrs.field(factory=dict)
    """What the sender declared: on this request (modern) or in its handshake (legacy)."""
    meta: Mapping[str, Any] = attrs.field(factory=dict)
    progress_token: RequestId | None = None
    log_level: str | None = None
    """The least severe level its sender wants logged; None: nothing."""
    origin: Hashable = None
    """The exchange it came in, where the transport has exchanges."""
    key: Hashable = attrs.field(default=None, init=False)
    """Where it is found among those that are owed an answer."""
    batch: BatchReply | None = None
    last_progress: float | None = None
    machine: RequestMachine = attrs.field(factory=lambda: Machine(REQUEST), init=False)

    @property
    def state(self) -> RequestState:
        """Where it stands: see the table `states.REQUEST`."""
        return self.machine.state

    @property
    def open(self) -> bool:
        """Whether an answer is still owed."""
        return self.machine.state is RequestState.OPEN

    @property
    def principal(self) -> Principal | None:
        """Who makes it, where the transport asks for tokens."""
        return getattr(self.origin, "principal", None)

    @property
    def trace_context(self) -> dict[str, str]:
        """`traceparent`, `tracestate` and `baggage`, as far as the sender set them."""
        keys = ("traceparent", "tracestate", "baggage")
        return {k: v for k in keys if isinstance(v := self.meta.get(k), str)}

    def __repr__(self) -> str:
        name = self.params.get("name", self.params.get("uri"))
        subject = f"{self.method} {name!r}" if isinstance(name, str) else self.method
        return f"<IncomingRequest {self.id!r} {subject} {self.machine.state.name.lower()}>"


@attrs.define(eq=False)
class BatchReply:
    """Collects the answers to one 2025-03-26 batch: they leave together, once all are there."""

    origin: Hashable = None
    owed: int = 0
    sealed: bool = False
    """Whether every member of the batch was looked at."""
    messages: list[dict[str, Any]] = attrs.field(factory=list)

    @property
    def complete(self) -> bool:
        return self.sealed and self.owed == 0


class CallTable:
    """The open calls of one endpoint, their ids, tokens and deadlines."""

    def __init__(self, limits: Limits, timeouts: Timeouts) -> None:
        self._limits = limits
        self._timeouts = timeouts
        self._calls: dict[int, Call] = {}
        self._by_id: dict[RequestId, Call] = {}
        self._by_token: dict[RequestId, Call] = {}
        self._ended_ids: dict[RequestId, None] = {}
        self.deadlines: Deadlines[int] = Deadlines()
        """Of calls, by their numbers."""
        self._last_number = 0
        self._last_id = 0
        self._asked = 0
        self._answered_at = -inf

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(list(self._calls.values()))

    def stats(self) -> dict[str, int]:
        """Sizes of all tables."""
        return {
            "calls": len(self._calls),
            "waiting_ids": len(self._by_id),
            "progress_tokens": len(self._by_token),
            "deadlines": len(self.deadlines),
            "ended_ids": len(self._ended_ids),
        }

    def new(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout: float | None,
        total_timeout: float | None,
        **options: Any,
    ) -> Call:
        """Make a call that is not yet registered. Raises LocalProtocolError when it may not be."""
        internal = options.get("internal", False)
        if len(self._calls) >= self._limits.max_pending_calls and not internal:
            raise LocalProtocolError(
                f"{len(self._calls)} calls are open already (limit max_pending_calls): "
                "wait for answers or cancel some"
            )
        if timeout is None and total_timeout is None and not internal:
            raise LocalProtocolError(f"{method}: timeout=None needs total_timeout: a call must end some day")
        return Call(self._last_number + 1, method, params, timeout, total_timeout, **options)

    def next_id(self) -> int:
        """An id never used before on this endpoint."""
        return self._last_id + 1

    def hold(self, call: Call) -> None:
        """Register a call that waits for the connection."""
        self._register(call)
        call.machine.fire(CallInput.QUEUE)

    def sent(self, call: Call, request_id: int, token: RequestId | None, now: float) -> None:
        """Note that `call` left under `request_id`, and arm its deadline."""
        self._register(call)
        self._forget_wire(call)
        call.machine.fire(CallInput.SEND)
        self._last_id = max(self._last_id, request_id)
        call.request_id = request_id
        self._by_id[request_id] = call
        if token is not None:
            call.progress_token = token
            call.last_progress = None  # each token counts on its own
            self._by_token[token] = call
        if call.total_timeout is not None and call.total_at is None:
            call.total_at = now + call.total_timeout
        self._arm(call, now)

    def asking(self, call: Call, now: float, how: CallInput = CallInput.ASK) -> None:
        """The server wants something before it goes on, or goes on by itself: nothing of `call` is on its
        way."""
        self._register(call)
        self._forget_wire(call)
        call.machine.fire(how)
        if call.total_timeout is not None and call.total_at is None:
            call.total_at = now + call.total_timeout
        self.deadlines.clear(call.number)
        if call.total_at is not None:
            self.deadlines.set(call.number, call.total_at, "total_timeout")

    def asked(self, call: Call | None) -> None:
        """The server asks something for `call`, or for any: its silence is ours meanwhile."""
        if call is None:
            self._asked += 1
        else:
            call.asked += 1

    def answered(self, call: Call | None, now: float) -> None:
        """The question is settled: from now on the server is silent by itself."""
        if call is None:
            self._asked -= 1
            self._answered_at = now
        else:
            call.asked -= 1
            if call.request_id is not None:
                self._arm(call, now)

    def pause(self, call: Call) -> None:
        """Nothing of `call` is on its way, for a reason on this side: only its total time runs."""
        self.deadlines.clear(call.number)
        if call.total_at is not None:
            self.deadlines.set(call.number, call.total_at, "total_timeout")

    def unpause(self, call: Call, now: float) -> None:
        """`call` is on its way again: its idle time starts anew."""
        self._arm(call, now)

    def requeue(self, call: Call) -> None:
        """Take a call back: its answer will not come, but it will be sent again."""
        self._forget_wire(call)
        self.deadlines.clear(call.number)
        call.machine.fire(CallInput.QUEUE)

    def end(self, call: Call, how: CallInput) -> None:
        """Let go of a call; late answers to its id are recognised for a while."""
        call.machine.fire(how)
        self._forget_wire(call)
        self.deadlines.clear(call.number)
        self._calls.pop(call.number, None)

    def progressed(self, call: Call, now: float) -> None:
        """Start the idle timeout anew; the total one stays."""
        if self._timeouts.progress_resets:
            self._arm(call, now)

    def lasts(self, call: Call) -> None:
        """Let a call that was sent take as long as it does."""
        call.idle_timeout = call.total_timeout = call.total_at = None
        self.deadlines.clear(call.number)

    def waiting(self, request_id: RequestId) -> Call | None:
        """The call that waits under exactly this id (type included)."""
        return self._by_id.get(request_id)

    def by_token(self, token: RequestId) -> Call | None:
        return self._by_token.get(token)

    def recently_ended(self, request_id: RequestId) -> bool:
        return request_id in self._ended_ids

    def expired(self, now: float) -> Iterator[tuple[Call, str]]:
        """Each call whose deadline passed, with the deadline's name."""
        for number, reason in self.deadlines.expired(now):
            call = self._calls[number]
            if reason != "timeout" or not self._was_asked(call, now):
                yield call, reason

    def _was_asked(self, call: Call, now: float) -> bool:
        """Whether the server was silent because it waits, or waited, for us. Then it has new time."""
        idle = call.idle_timeout
        if call.internal or call.method == "ping" or idle is None or idle <= 0:
            return False  # these it answers whatever it waits for
        since = now if self._asked or call.asked else self._answered_at
        if since + idle <= now:
            return False
        self._arm(call, since)
        return True

    def _register(self, call: Call) -> None:
        if call.number > self._last_number:
            self._last_number = call.number
            self._calls[call.number] = call

    def _arm(self, call: Call, now: float) -> None:
        when, reason = call.total_at, "total_timeout"
        if call.idle_timeout is not None:
            idle_at = now + call.idle_timeout
            if when is None or idle_at < when:
                when, reason = idle_at, "timeout"
        if when is not None:
            self.deadlines.set(call.number, when, reason)

    def _forget_wire(self, call: Call) -> None:
        request_id = call.request_id
        if request_id is not None:
            call.request_id = None
            self._by_id.pop(request_id, None)
            self._ended_ids[request_id] = None
            if len(self._ended_ids) > self._limits.max_remembered_ids:
                del self._ended_ids[next(iter(self._ended_ids))]
        if call.progress_token is not None:
            self._by_token.pop(call.progress_token, None)
            call.progress_token = None


def token_of(meta: Mapping[str, Any]) -> RequestId | None:
    """The progress token in the `_meta` of a request; None for none, and for what is none."""
    token = meta.get("progressToken")
    return token if isinstance(token, (int, str)) and not isinstance(token, bool) else None
