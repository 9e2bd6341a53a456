"""What an HTTP server has still to say: open exchanges, one JSON object or a stream, keep-alive.

A response is decided late. It is one JSON object if the answer is the first thing to be said, and an
event stream from the moment that something else has to be said before, if only that the server is
alive. `Responses` turns what is said into ops; it knows neither messages nor sessions.

Specification: 2026-07-28, basic/transports/streamable-http (receiving messages); 2025-11-25,
basic/transports (sending messages to the server).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import attrs

from ..clock import Deadlines
from ..errors import LocalProtocolError, PeerFault
from ..events import DeviationTolerated, Event, LimitHit, MessageIgnored
from ..states import EXCHANGE, ExchangeInput, ExchangeState, Machine
from ..wire.sse import encode_comment
from .exchange import (
    EVENT_STREAM,
    JSON,
    EndResponse,
    ExchangeId,
    Headers,
    HttpRequest,
    SendBody,
    ServerExchangeOp,
    StartResponse,
    accepts,
)

if TYPE_CHECKING:
    from ..auth.principal import Principal
    from ..wire.jsonrpc import RequestId
    from .legacy_session import Session, Stream

RETRY_AFTER: Final[Headers] = (("retry-after", "10"),)
"""What goes with a refusal that is for now: ask again after so many seconds."""

# Parameters are left out: some clients compare the whole value.
_JSON: Final[Headers] = (("content-type", JSON),)
_PLAIN: Final[Headers] = (("content-type", "text/plain; charset=utf-8"),)
_STREAM: Final[Headers] = (
    ("content-type", EVENT_STREAM),
    # Proxies would hold events back, to compress them or to fill a buffer.
    ("cache-control", "no-cache, no-transform"),
    ("x-accel-buffering", "no"),
)
_COMMENT: Final = encode_comment()
_MAX_CACHED: Final = 128
"""Characters of an Accept header whose meaning is remembered; nobody needs more."""


@attrs.define(eq=False, repr=False)
class Exchange:
    """A request and how far its response is: the `origin` of the messages that came in it."""

    id: ExchangeId
    method: str
    headers: Headers
    fields: dict[str, str]
    """The same by name."""
    takes_json: bool
    takes_stream: bool
    request_id: RequestId | None = None
    """The id of the modern request in it."""
    session: Session | None = None
    """None for everything modern."""
    stream: Stream | None = None
    """Where in its session the answer goes."""
    principal: Principal | None = None
    """Who makes it, where that is asked."""
    extra: Headers = ()
    """Fields that the response also has."""
    owed: int = 0
    """How many requests in it are with the application."""
    said_at: float = 0.0
    machine: Machine[ExchangeState, ExchangeInput] = attrs.field(
        factory=lambda: Machine(EXCHANGE), init=False
    )

    def __repr__(self) -> str:
        # Header fields are full of secrets.
        return f"<Exchange {self.id} {self.method} {self.phase.name.lower()}>"

    @property
    def phase(self) -> ExchangeState:
        """How far its response is: see the table `states.EXCHANGE`."""
        return self.machine.state

    @property
    def owner(self) -> str | None:
        """Names who makes it; None for nobody in particular."""
        return None if self.principal is None else self.principal.identity

    @property
    def can_stream(self) -> bool:
        """Whether its response can still become an event stream."""
        return self.phase is ExchangeState.WAITING and self.takes_stream

    @classmethod
    def of(cls, id: ExchangeId, request: HttpRequest) -> Exchange:
        """The exchange that `request` begins."""
        fields = request.fields
        accept = fields.get("accept")
        takes = _takes if accept is None or len(accept) <= _MAX_CACHED else _takes.__wrapped__
        return cls(id, request.method, request.headers, fields, *takes(accept))


@lru_cache(maxsize=64)
def _takes(accept: str | None) -> tuple[bool, bool]:
    """Whether JSON, and whether event streams. Clients say the same each time."""
    return accepts(accept, JSON), accepts(accept, EVENT_STREAM)


class Responses:
    """The open exchanges of a server, what is to be sent on them, and what is to be told.

        `keep_alive` is the silence in seconds after which a client that takes event streams is sent
    something, None for never. No more than `max_exchanges` are held. `strict` turns tolerances into
        faults.
    """

    def __init__(self, *, now: float, keep_alive: float | None, max_exchanges: int, strict: bool) -> None:
        if keep_alive is not None and keep_alive <= 0:
            raise LocalProtocolError(f"keep_alive is a number of seconds, not {keep_alive}")
        self.now = now
        self.strict: Final = strict
        self.ops: Final[deque[ServerExchangeOp]] = deque()
        self.events: Final[deque[Event]] = deque()
        self._keep_alive: Final = keep_alive
        self._max_exchanges: Final = max_exchanges
        self._held: Final[dict[ExchangeId, Exchange]] = {}
        self._silences: Final[Deadlines[Exchange]] = Deadlines()
        self.deadlines: Final = (self._silences,)
        """Of exchanges that have been silent for too long."""

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Exchange]:
        return iter(list(self._held.values()))

    def __contains__(self, id: ExchangeId) -> bool:
        return id in self._held

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues."""
        return {
            "exchanges": len(self._held),
            "keep_alives": len(self._silences),
            "ops": len(self.ops),
            "events": len(self.events),
        }

    # telling the application ---------------------------------------------------------------------

    def ignored(self, fault: PeerFault, detail: str) -> None:
        """A request had no effect, through the client's fault."""
        self.events.append(MessageIgnored(fault, detail))

    def tolerated(self, fault: PeerFault, detail: str) -> bool:
        """A deviation is let pass, and told. False in strict mode: then it is not let pass."""
        if not self.strict:
            self.events.append(DeviationTolerated(fault, detail))
        return not self.strict

    # whole responses -----------------------------------------------------------------------------

    def json(self, exchange: Exchange, status: int, data: bytes) -> None:
        """Respond with one JSON value and be done."""
        self._whole(exchange, status, _JSON, data)

    def plain(self, exchange: Exchange, status: int, text: str, extra: Headers = ()) -> None:
        """Respond with a line for people and be done."""
        self._whole(exchange, status, _joined(_PLAIN, extra), text.encode() + b"\n")

    def empty(self, exchange: Exchange, status: int) -> None:
        """Respond without a body and be done."""
        self._whole(exchange, status, (), b"")

    def refuse(
        self, exchange: Exchange, status: int, fault: PeerFault, text: str, extra: Headers = ()
    ) -> None:
        """Turn a request away that is none of the protocol's, and tell of it."""
        self.plain(exchange, status, text, extra)
        self.ignored(fault, f"{exchange.method} was answered {status}: {text}")

    def _whole(self, exchange: Exchange, status: int, headers: Headers, body: bytes) -> None:
        self._release(exchange)
        ops, id_ = self.ops, exchange.id
        ops.append(StartResponse(id_, status, _joined(headers, exchange.extra), len(body)))
        if body:
            ops.append(SendBody(id_, body))
        ops.append(EndResponse(id_))

    # responses that take their time --------------------------------------------------------------

    def has_room(self, exchange: Exchange) -> bool:
        """Whether one more exchange can be held. If not, `exchange` is answered 503, and that is told.

        What needs no room is taken all the same: a cancel, or an answer that others wait for.
        """
        if len(self._held) < self._max_exchanges:
            return True
        self.plain(exchange, 503, "too many open requests", RETRY_AFTER)
        detail = f"a request was answered 503: {len(self._held)} are open"
        self.events.append(LimitHit("max_exchanges", detail))
        return False

    def hold(self, exchange: Exchange) -> None:
        """Keep an exchange whose response will come later."""
        self._held[exchange.id] = exchange
        exchange.said_at = self.now
        if self._keep_alive is not None and exchange.takes_stream:
            self._silences.set(exchange, self.now + self._keep_alive, "keep_alive")

    def begin_stream(self, exchange: Exchange) -> None:
        """Send the head of an event stream. Nothing else must have been sent."""
        exchange.machine.fire(ExchangeInput.STREAM)
        exchange.said_at = self.now
        self.ops.append(StartResponse(exchange.id, 200, _joined(_STREAM, exchange.extra)))

    def say(self, exchange: Exchange, event: bytes) -> None:
        """Send an event, or a comment, on a stream that was begun."""
        exchange.said_at = self.now
        self.ops.append(SendBody(exchange.id, event))

    def end(self, exchange: Exchange) -> None:
        """A stream is complete."""
        self._release(exchange)
        self.ops.append(EndResponse(exchange.id))

    def leave(self, id: ExchangeId) -> Exchange | None:
        """The client is gone: forget its exchange and return it; None if there was none."""
        exchange = self._held.get(id)
        if exchange is not None:
            self._release(exchange)
        return exchange

    def _release(self, exchange: Exchange) -> None:
        if exchange.phase is not ExchangeState.ENDED:
            exchange.machine.fire(ExchangeInput.END)
        if self._held.pop(exchange.id, None) is not None:
            self._silences.clear(exchange)

    # keep-alive ----------------------------------------------------------------------------------

    def silent(self) -> Iterator[Exchange]:
        """Each exchange that has been silent for too long: begin its stream, then `comment`."""
        keep_alive = self._keep_alive
        if keep_alive is None:
            return
        for exchange, reason in list(self._silences.expired(self.now)):
            # Only looked at when it is due, for what is said in between is the hot path.
            due = exchange.said_at + keep_alive
            if due <= self.now:
                yield exchange
                due = self.now + keep_alive
            if exchange.phase is not ExchangeState.ENDED:
                self._silences.set(exchange, due, reason)

    def comment(self, exchange: Exchange) -> None:
        """Show that the server is alive."""
        self.say(exchange, _COMMENT)


def _joined(headers: Headers, extra: Headers) -> Headers:
    # The usual ones are always the same object: a carrier may keep them encoded.
    return (*headers, *extra) if extra else headers
