"""The exchanges of a client: begun, followed through redirects, collected or streamed, drained, ended.

What a response means is the business of the files beside; here is what every exchange has in common. An
exchange is in exactly one state of the table `states.CLIENT_EXCHANGE`, and is forgotten when it is over.
Whatever is reported of an exchange that is forgotten is too late and has no effect.

Specification: RFC 9110, section 15.4 (redirects); 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Any, Final

import attrs

from ..clock import Deadlines
from ..errors import HttpFailure
from ..events import Event
from ..limits import Limits
from ..session.calls import Call
from ..states import CLIENT_EXCHANGE, ClientExchangeInput, ClientExchangeState, Machine
from ..wire.jsonrpc import RequestId
from ..wire.sse import SseDecoder
from .answer import Answer, Content, follow, read_answer
from .exchange import AbortExchange, ClientExchangeOp, ExchangeId, Headers, HttpRequest, StartExchange
from .resume import EventStream
from .url import Url

MAX_REDIRECTS: Final = 5
"""Followed in a row. Past it: the request fails. Nobody needs more than one or two."""

LINGER: Final = 5.0
"""Seconds for a server to end a response in which nothing is wanted any more, or that is a failure by its
head alone. Past it: aborted, at the price of a connection; what came of the body will do."""

_LINGER: Final = "linger"


class Role(Enum):
    """What an exchange is for."""

    REQUEST = auto()
    """Brings a request of ours, and its answer back."""
    MESSAGE = auto()
    """Brings a notification or a response of ours."""
    STANDING = auto()
    """The own stream of a legacy server."""
    RESUME = auto()
    """Goes on with the broken stream of a request."""
    OLD_STREAM = auto()
    """The one stream of HTTP+SSE."""
    OLD_REQUEST = auto()
    """Brings a request over HTTP+SSE: its answer comes on the stream."""
    GOODBYE = auto()
    """Ends a legacy session."""


@attrs.define(eq=False, repr=False)
class ClientExchange:
    """One exchange, and what it is about."""

    id: ExchangeId
    role: Role
    url: Url
    request: HttpRequest | None
    """Kept until the response begins: a redirect wants it once more."""
    subject: str
    """What it is about, for people."""
    generation: int = 0
    """Counts the legacy sessions; it was begun in this one."""
    in_session: bool = False
    """Whether it carried the id of a session."""
    call: Call | None = None
    message: Mapping[str, Any] = attrs.field(factory=dict)
    """The envelope that it brings."""
    modern: bool = False
    stream: EventStream | None = None
    redirects: int = 0
    settled: bool = False
    """Whether it was decided without an answer what becomes of the call."""
    answer: Answer | None = None
    decoder: SseDecoder | None = None
    body: bytes | bytearray = attrs.field(default=b"", init=False)
    """What is kept of a body that is collected."""
    machine: Machine[ClientExchangeState, ClientExchangeInput] = attrs.field(
        factory=lambda: Machine(CLIENT_EXCHANGE), init=False
    )

    @property
    def state(self) -> ClientExchangeState:
        """Where it stands: see the table `states.CLIENT_EXCHANGE`."""
        return self.machine.state

    @property
    def request_id(self) -> RequestId | None:
        """The id of the request that it brings or whose stream it goes on with."""
        return self.message["id"] if self.call is not None else None

    @property
    def awaited(self) -> bool:
        """Whether somebody still waits for the answer that this exchange is to bring."""
        call = self.call
        return call is not None and not self.settled and call.request_id == self.message["id"]


class Carrier(ABC):
    """The table of open exchanges, the ops that begin and abort them, and the time."""

    def __init__(self, url: Url, *, now: float, limits: Limits) -> None:
        self._url = url
        self._now = now
        self._limits = limits
        self._ops: deque[ClientExchangeOp] = deque()
        self._events: deque[Event] = deque()
        self._timers: Deadlines[tuple[str, int]] = Deadlines()
        self._exchanges: dict[ExchangeId, ClientExchange] = {}
        self._last_exchange = 0
        self._max_body: Final = limits.max_message if limits.max_body is None else limits.max_body
        # Far more than is ever shown, so that nothing secret is cut in two where the rest begins.
        self._max_shown: Final = 8 * limits.max_excerpt

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> ClientExchangeOp | None:
        """The next thing to do, or None."""
        if not self._ops:
            self._pump()
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else None

    # inputs --------------------------------------------------------------------------------------

    def response_started(
        self, exchange: ExchangeId, status: int, headers: Iterable[tuple[str, str]], now: float
    ) -> None:
        """The head of a response came. Its body follows in pieces, then its end.

        Informational responses (1xx) need not be told.
        """
        self._tick(now)
        self._pump()
        ex = self._exchanges.get(exchange)
        if ex is None or ex.state is not ClientExchangeState.WAITING or status < 200:
            return
        answer = read_answer(status, headers)
        target = follow(answer, ex.url) if answer.redirects else None
        if target is not None and ex.redirects < MAX_REDIRECTS:
            self._redirect(ex, answer, target)
        else:
            ex.answer = answer = self._read_as(ex, answer)
            ex.request = None
            self._on_head(ex, answer)
        self._pump()

    def response_data(self, exchange: ExchangeId, data: bytes, now: float) -> None:
        """A piece of a response's body came, however it was cut."""
        self._tick(now)
        self._pump()
        ex = self._exchanges.get(exchange)
        if ex is None:
            return
        if ex.decoder is not None:
            ex.decoder.receive_data(data)
            self._read_stream(ex)
        elif ex.state is ClientExchangeState.COLLECTING:
            self._keep(ex, data)
        self._pump()

    def response_ended(self, exchange: ExchangeId, now: float) -> None:
        """A response is complete."""
        self._tick(now)
        self._pump()
        ex = self._exchanges.get(exchange)
        if ex is None:
            return
        if ex.decoder is not None:
            ex.decoder.receive_eof()
            self._read_stream(ex)
        before = self._over(ex)
        match before:
            case ClientExchangeState.WAITING:
                self._on_broken(ex, "it ended without a response")
            case ClientExchangeState.COLLECTING:
                body, ex.body = ex.body, b""
                self._on_body(ex, body)
            case ClientExchangeState.STREAMING:
                self._on_stream_end(ex, None)
            case _:
                pass
        self._pump()

    def exchange_failed(self, exchange: ExchangeId, error: str | HttpFailure, now: float) -> None:
        """An exchange broke: the connection could not be made, or was lost before the end.

        `error` says why, for people; as an error it goes to whoever waits, with what it is about.
        """
        self._tick(now)
        self._pump()
        ex = self._exchanges.get(exchange)
        if ex is None:
            return
        before = self._over(ex)
        if before is ClientExchangeState.STREAMING:
            self._on_stream_end(ex, str(error))
        elif before in (ClientExchangeState.WAITING, ClientExchangeState.COLLECTING):
            self._on_broken(ex, error)
        self._pump()

    # for those who give it meaning ---------------------------------------------------------------

    @abstractmethod
    def _pump(self) -> None:
        """Carry out what the engine wants; pass on what it says."""

    @abstractmethod
    def _on_head(self, ex: ClientExchange, answer: Answer) -> None:
        """A response began: collect it, stream it, or drain it."""

    def _read_as(self, ex: ClientExchange, answer: Answer) -> Answer:
        """The answer as it is to be read."""
        return answer

    @abstractmethod
    def _read_stream(self, ex: ClientExchange) -> None:
        """Take the events that are there."""

    @abstractmethod
    def _on_body(self, ex: ClientExchange, body: bytes | bytearray) -> None:
        """A collected body is complete. The exchange is over."""

    @abstractmethod
    def _on_too_large(self, ex: ClientExchange) -> None:
        """A body that has to be read whole is larger than allowed."""

    @abstractmethod
    def _on_stream_end(self, ex: ClientExchange, error: str | None) -> None:
        """A stream ended, or broke with `error`. The exchange is over."""

    @abstractmethod
    def _on_broken(self, ex: ClientExchange, error: str | HttpFailure) -> None:
        """An exchange broke before its body meant anything. It is over."""

    # exchanges -----------------------------------------------------------------------------------

    def _start(
        self,
        role: Role,
        method: str,
        headers: Headers,
        body: bytes,
        subject: str,
        url: Url,
        repeatable: bool = True,
        **about: Any,
    ) -> ClientExchange:
        self._last_exchange += 1
        request = HttpRequest(method, url.target, headers, body, repeatable=repeatable)
        ex = ClientExchange(self._last_exchange, role, url, request, subject, **about)
        self._exchanges[ex.id] = ex
        self._ops.append(StartExchange(ex.id, request))
        return ex

    def _redirect(self, ex: ClientExchange, answer: Answer, target: Url) -> None:
        """Make the same request again where the server points to."""
        old = ex.request
        assert old is not None
        if answer.status == 308 and ex.url == self._url:
            self._url = target  # for good, as the status says
        again = self._start(
            ex.role,
            old.method,
            old.headers,
            old.body,
            ex.subject,
            target,
            old.repeatable,
            generation=ex.generation,
            in_session=ex.in_session,
            call=ex.call,
            message=ex.message,
            modern=ex.modern,
            stream=ex.stream,
            redirects=ex.redirects + 1,
        )
        self._drain(ex)
        self._on_replaced(ex, again)

    @abstractmethod
    def _on_replaced(self, ex: ClientExchange, again: ClientExchange) -> None:
        """`again` takes the place of `ex`."""

    def _collect(self, ex: ClientExchange) -> None:
        ex.machine.fire(ClientExchangeInput.COLLECT)
        if ex.answer is not None and not (ex.answer.ok and ex.answer.content is Content.JSON):
            self._linger(ex)

    def _stream(self, ex: ClientExchange) -> None:
        ex.machine.fire(ClientExchangeInput.STREAM)
        ex.decoder = SseDecoder(self._limits.max_event)

    def _keep(self, ex: ClientExchange, data: bytes) -> None:
        whole = ex.answer is not None and ex.answer.content is Content.JSON
        if not whole:
            data = data[: self._max_shown - len(ex.body)]
        if not ex.body:
            ex.body = bytes(data)
        elif isinstance(ex.body, bytearray):
            ex.body += data
        else:
            # Grows in place: a list would let many small pieces weigh many times their size.
            ex.body = bytearray(ex.body)
            ex.body += data
        if whole and len(ex.body) > self._max_body:
            ex.body = b""
            self._on_too_large(ex)

    def _drain(self, ex: ClientExchange) -> None:
        """Nothing in `ex` is wanted any more."""
        ex.machine.fire(ClientExchangeInput.DRAIN)
        ex.decoder = ex.request = None
        ex.body = b""
        self._linger(ex)

    def _linger(self, ex: ClientExchange) -> None:
        """Give the server a while to end `ex` by itself."""
        self._timers.set((_LINGER, ex.id), self._now + LINGER, _LINGER)

    def _over(self, ex: ClientExchange) -> ClientExchangeState:
        """Forget `ex`; returns the state it was in."""
        before = ex.state
        if before is ClientExchangeState.OVER:
            return before
        ex.machine.fire(ClientExchangeInput.END)
        ex.request = None
        ex.decoder = None
        del self._exchanges[ex.id]
        self._timers.clear((_LINGER, ex.id))
        return before

    def _abort(self, ex: ClientExchange) -> None:
        if ex.state is not ClientExchangeState.OVER:
            self._over(ex)
            ex.body = b""
            self._ops.append(AbortExchange(ex.id))

    def _cut(self, ex: ClientExchange) -> None:
        """The server does not end `ex`."""
        before, body = ex.state, ex.body
        self._abort(ex)
        if before is ClientExchangeState.COLLECTING:
            self._on_body(ex, body)

    # time ----------------------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        self._now = max(self._now, now)

    def _run_timers(self) -> None:
        for (kind, number), _ in self._timers.expired(self._now):
            if kind == _LINGER:
                self._cut(self._exchanges[number])
            else:
                self._on_timer(kind, number)

    @abstractmethod
    def _on_timer(self, kind: str, number: int) -> None:
        """A deadline other than that for draining has passed."""
