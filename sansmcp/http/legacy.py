"""Sessions of the older revisions over HTTP: everything here goes the day they are no longer served.

`initialize` makes a session with an engine of its own; `Mcp-Session-Id` names it; DELETE, idleness
or the server end it. Every answer that takes more than one JSON object is a numbered stream, and
what is said on a stream is numbered and kept, in bounds: a client whose connection broke comes back
with `Last-Event-ID` and hears the rest. A client that left has not cancelled anything.

Messages that belong to no request go on the stream that a GET opens, and wait for it.

Specification: 2025-11-25, basic/transports (session management, listening, resumability and
redelivery); 2025-03-26, basic/transports (batches).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..clock import Deadlines
from ..errors import ErrorCode, LocalProtocolError, McpError, PeerFault
from ..events import (
    CloseConnection,
    Harmless,
    LimitHit,
    MessageIgnored,
    NotificationReceived,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResultReady,
    SendNotification,
    SendRequest,
    SendResponse,
    SessionEnded,
    SessionStarted,
)
from ..revisions import Era, Revision, known_revision
from ..server import ServerEngine
from ..session.calls import Call, IncomingRequest
from ..session.subscriptions import CHANGES, UPDATED
from ..states import ExchangeState
from ..wire import jsonrpc
from ..wire.jsoncodec import JsonCodec, JsonValue
from ..wire.sse import encode_event
from .exchange import EVENT_STREAM
from .legacy_session import (
    STANDALONE,
    Session,
    SessionPolicy,
    StoredEvent,
    Stream,
    read_event_id,
    write_event_id,
)
from .responses import RETRY_AFTER, Exchange, Responses
from .status import status_for_error

SESSION_ID: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
LAST_EVENT_ID: Final = "last-event-id"

_TOLD_ONCE: Final = frozenset({*CHANGES.values(), UPDATED})
_UNANSWERED: Final = (jsonrpc.Notification, jsonrpc.ResultResponse, jsonrpc.ErrorResponse)


class Sessions:
    """All legacy sessions of a server: who they are, what they are sent, when they end.

    `make_engine` makes the engine of one session. What is to be sent and told goes to `responses`.
    `entropy` gives random bytes for the ids. `count` tells how many sessions the server has, here and
    elsewhere.
    """

    def __init__(
        self,
        make_engine: Callable[[float], ServerEngine],
        responses: Responses,
        *,
        policy: SessionPolicy,
        entropy: Callable[[int], bytes],
        count: Callable[[], int],
        codec: JsonCodec,
        max_batch: int,
    ) -> None:
        self._make_engine: Final = make_engine
        self._out: Final = responses
        self._policy: Final = policy
        self._entropy: Final = entropy
        self._count: Final = count
        self._codec: Final = codec
        self._max_batch: Final = max_batch
        self._sessions: Final[dict[str, Session]] = {}
        self._calls: Final[dict[Call, Session]] = {}
        self._idle: Final[Deadlines[Session]] = Deadlines()
        self._due: Final[Deadlines[Session]] = Deadlines()
        """When an engine wants to be called, for the calls that it waits for."""
        self.deadlines: Final = (self._idle, self._due)
        self._closed = False

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables, those of the sessions added up."""
        total = {"streams": 0, "working": 0, "stored_events": 0, "stored_bytes": 0}
        for session in self._sessions.values():
            for name, size in session.stats().items():
                total[name] = total.get(name, 0) + size
        return {
            "sessions": len(self._sessions),
            "session_calls": len(self._calls),
            "session_timers": len(self._idle) + len(self._due),
            **total,
        }

    # requests of HTTP ----------------------------------------------------------------------------

    def on_post(self, exchange: Exchange, value: JsonValue) -> None:
        """A decoded body that is no modern message."""
        opens = isinstance(value, dict) and value.get("method") == "initialize"
        if opens and SESSION_ID not in exchange.fields:
            self._on_initialize(exchange, value)
            return
        session = self._find(exchange, value)
        if session is None:
            return
        if isinstance(value, list):
            self._on_batch(session, exchange, value)
            return
        message = jsonrpc.classify(value)
        match message:
            case jsonrpc.Request():
                self._on_request(session, exchange, value)
            case jsonrpc.InvalidMessage():
                if message.like_response:
                    # The call that it was to answer fails by it.
                    self._receive(session, exchange, value)
                    self._out.plain(exchange, 400, f"no valid message: {message.detail}")
                else:
                    self._refuse_message(exchange, message)
            case jsonrpc.Notification() if not message.method.startswith(jsonrpc.NOTIFICATION_PREFIX):
                self._receive(session, exchange, value)
                self._out.plain(exchange, 400, "a request without an id is not carried out")
            case _:
                self._receive(session, exchange, value)
                self._out.empty(exchange, 202)

    def on_get(self, exchange: Exchange) -> None:
        """Open the standalone stream, or resume the stream that `Last-Event-ID` names."""
        session = self._find(exchange, None)
        if session is None:
            return
        if not exchange.takes_stream:
            self._out.refuse(exchange, 406, PeerFault.WRONG_MEDIA_TYPE, f"Accept must allow {EVENT_STREAM}")
            return
        resumed = exchange.fields.get(LAST_EVENT_ID)
        if not resumed:
            stream = session.standalone
            self._attach(session, stream, exchange, stream.delivered, primes=True)
            return
        place = read_event_id(resumed)
        found = None if place is None else session.stream(place[0])
        if place is None or found is None or not found.opened or place[1] > found.sent:
            # Not 404, at which a client would give up its session.
            text = "no stream can be resumed after this event"
            self._out.refuse(exchange, 400, PeerFault.UNKNOWN_EVENT_ID, text)
            return
        self._attach(session, found, exchange, place[1], primes=False)

    def on_delete(self, exchange: Exchange) -> None:
        """End the session."""
        session = self._find(exchange, None)
        if session is not None:
            self._end(session)
            self._out.empty(exchange, 204)

    def _find(self, exchange: Exchange, value: JsonValue) -> Session | None:
        """The session of a request; None when the request was turned away."""
        fields = exchange.fields
        session_id = fields.get(SESSION_ID)
        if session_id is None:
            text = "Mcp-Session-Id is missing: a session is opened by initialize"
            self._refuse(exchange, value, PeerFault.MISSING_HEADER, text)
            return None
        session = self._sessions.get(session_id)
        if session is None or session.owner != exchange.owner:
            # No JSON-RPC error: by the bare status a client knows that it has to open another.
            self._out.refuse(exchange, 404, PeerFault.UNKNOWN_SESSION, "there is no such session")
            return None
        version, agreed = fields.get(VERSION), session.revision
        if version is None:
            if agreed is not None and agreed >= Revision.V2025_06_18:
                text = f"MCP-Protocol-Version is missing: the session speaks {agreed}"
                if not self._out.tolerated(PeerFault.MISSING_HEADER, text):
                    self._refuse(exchange, value, PeerFault.MISSING_HEADER, text)
                    return None
        elif version != agreed:
            text = f"MCP-Protocol-Version is {version[:32]!a}, but the session speaks {agreed}"
            self._refuse(exchange, value, PeerFault.UNSUPPORTED_VERSION, text)
            return None
        session.used_at = self._out.now
        session.confirmed = True
        return session

    def _refuse(self, exchange: Exchange, value: JsonValue, fault: PeerFault, text: str) -> None:
        """Answer 400: a JSON-RPC error where there is a message to answer, else a line of text."""
        if exchange.method != "POST" or (isinstance(value, dict) and "method" not in value):
            self._out.refuse(exchange, 400, fault, text)
            return
        request_id = value.get("id") if isinstance(value, dict) else None
        self._send_error(
            exchange,
            request_id if jsonrpc.is_request_id(request_id) else None,
            McpError(ErrorCode.INVALID_REQUEST, text),
        )
        self._out.ignored(fault, text)

    def _refuse_message(self, exchange: Exchange, message: jsonrpc.InvalidMessage) -> None:
        code = message.hint
        if code is None:
            self._out.plain(exchange, 400, f"no valid message: {message.detail}")
        else:
            self._send_error(exchange, message.id, McpError(code, message.detail))
        self._out.ignored(message.fault, message.detail)

    def _send_error(self, exchange: Exchange, request_id: Any, error: McpError) -> None:
        body = jsonrpc.error_response(request_id, error.code, error.message, null_id=True)
        self._out.json(exchange, status_for_error(error.code, Era.LEGACY), self._codec.dumps(body))

    # messages of a client ------------------------------------------------------------------------

    def _on_initialize(self, exchange: Exchange, value: JsonValue) -> None:
        version = exchange.fields.get(VERSION)
        message = jsonrpc.classify(value)
        if version is not None and known_revision(version) is None:
            text = f"MCP-Protocol-Version {version[:32]!a} is not served here"
            self._refuse(exchange, value, PeerFault.UNSUPPORTED_VERSION, text)
        elif isinstance(message, jsonrpc.InvalidMessage):
            self._refuse_message(exchange, message)
        elif not isinstance(message, jsonrpc.Request):
            self._out.refuse(exchange, 400, PeerFault.REQUEST_WITHOUT_ID, "initialize without an id")
        elif self.has_room(exchange, "initialize"):
            self._open(exchange, value)

    def has_room(self, exchange: Exchange, what: str) -> bool:
        """Whether one more session may be opened. If not, `exchange` is answered 503, and that is told."""
        count = self._count()
        if count < self._policy.max_sessions:
            return True
        self._out.plain(exchange, 503, "too many sessions", RETRY_AFTER)
        detail = f"{what} was answered 503: {count} sessions are open"
        self._out.events.append(LimitHit("max_sessions", detail))
        return False

    def new_id(self) -> str:
        """An id that nobody can guess."""
        session_id = self._entropy(24).hex()
        if session_id in self._sessions:
            raise LocalProtocolError("entropy gave the same bytes twice")
        return session_id

    def _open(self, exchange: Exchange, value: JsonValue) -> None:
        out, policy = self._out, self._policy
        session_id = self.new_id()
        engine = self._make_engine(out.now)
        session = Session(session_id, engine, policy, policy.store(policy), out.now)
        session.owner = exchange.owner
        exchange.session, exchange.stream = session, session.new_stream()
        out.hold(exchange)
        engine.receive_message(value, now=out.now, origin=exchange)
        if engine.session_revision is not None:
            exchange.extra = ((SESSION_ID, session_id),)
            self._sessions[session_id] = session
            self._idle.set(session, out.now + policy.confirm_timeout, "confirm_timeout")
        self.pump(session)

    def _on_request(self, session: Session, exchange: Exchange, value: JsonValue) -> None:
        if session.working >= self._policy.max_open_requests:
            self._out.plain(exchange, 429, "too many open requests", RETRY_AFTER)
            detail = f"a request was answered 429: {session.working} of its session are open"
            self._out.events.append(LimitHit("max_open_requests", detail))
            return
        if not self._out.has_room(exchange):
            return
        exchange.session, exchange.stream = session, session.new_stream()
        self._out.hold(exchange)
        self._receive(session, exchange, value)

    def _on_batch(self, session: Session, exchange: Exchange, value: list[JsonValue]) -> None:
        members = jsonrpc.split_batch(value, session.revision is Revision.V2025_03_26, self._max_batch)
        if isinstance(members, jsonrpc.InvalidMessage):
            self._refuse_message(exchange, members)
        elif all(isinstance(jsonrpc.classify(member), _UNANSWERED) for member in members):
            self._receive(session, exchange, value)
            self._out.empty(exchange, 202)
        else:
            self._on_request(session, exchange, value)
            if exchange.phase is ExchangeState.WAITING and exchange.owed == 0:
                # Not even the refusals of what is wrong with it are for the client to hear.
                self._close_stream(session, exchange, 400, "no valid message")

    def _receive(self, session: Session, exchange: Exchange, value: JsonValue) -> None:
        session.engine.receive_message(value, now=self._out.now, origin=exchange)
        self.pump(session)

    # what the engines say ------------------------------------------------------------------------

    def pump(self, session: Session) -> None:
        """Carry out what the engine of `session` wants sent; pass the rest on."""
        engine, events = session.engine, self._out.events
        while (event := engine.next_event()) is not None:
            match event:
                case SendResponse():
                    self._respond(session, event)
                case SendNotification() | SendRequest():
                    self._carry(session, event)
                case CloseConnection():
                    pass
                case RequestReceived():
                    _exchange(event.request.origin).owed += 1
                    events.append(event)
                case RequestCancelled():
                    events.append(event)
                    self._on_cancelled(session, event.request)
                case SessionEnded() if session.revision is None:
                    pass  # it never started
                case SessionStarted() | SessionEnded():
                    self._tell(session, event)
                case NotificationReceived():
                    event.session = session
                    events.append(event)
                case ResultReady() | RequestFailed():
                    self._calls.pop(event.call, None)
                    events.append(event)
                case _:
                    events.append(event)
        when = engine.next_timeout()
        if when != session.calls_at:
            session.calls_at = when
            if when is None:
                self._due.clear(session)
            else:
                self._due.set(session, when, "calls")

    def _tell(self, session: Session, event: SessionStarted | SessionEnded) -> None:
        event.session = session
        self._out.events.append(event)

    def _respond(self, session: Session, event: SendResponse) -> None:
        exchange = _exchange(event.origin)
        stream = exchange.stream
        if stream is None:
            return  # never: what wants an answer has a stream
        if not stream.opened and exchange.phase is ExchangeState.WAITING:
            status = _status(event.message)
            if status >= 400 or exchange.takes_json:
                self._out.json(exchange, status, event.data)
                session.complete(stream, self._out.now)
                return
            self.begin_stream(exchange)
        if stream.opened:
            self._say(session, stream, event.data)
            self._finish(session, stream)
        else:
            session.complete(stream, self._out.now)
            self._undeliverable("an answer", "its client left before a stream was begun")

    def _carry(self, session: Session, event: SendNotification | SendRequest) -> None:
        """Send what is no answer: on the stream of its request, or on the standalone one."""
        stream, related = session.standalone, event.related
        if related is not None:
            exchange = _exchange(related.origin)
            own = exchange.stream
            if own is not None and not own.ended:
                if not own.opened:
                    if not exchange.can_stream:
                        why = "its client left, or takes no event stream"
                        self._undeliverable(event.message["method"], why)
                        return
                    self.begin_stream(exchange)
                stream = own
        once = event.message["method"] in _TOLD_ONCE
        if once and stream.exchange is None and stream is session.standalone:
            # That something changed is worth telling once, however often it did while nobody listened.
            kept = session.store.since(STANDALONE, stream.delivered)
            if any(e.data == event.data for e in kept):
                return
        self._say(session, stream, event.data)

    def _undeliverable(self, what: str, why: str) -> None:
        self._out.events.append(MessageIgnored(Harmless.UNDELIVERABLE, f"{what} was not sent: {why}"))

    def _on_cancelled(self, session: Session, request: IncomingRequest) -> None:
        exchange = _exchange(request.origin)
        exchange.owed -= 1
        batch = request.batch
        if exchange.owed == 0 and (batch is None or not batch.messages):
            # There will be no answer, and HTTP wants a response nevertheless.
            self._close_stream(session, exchange, 204, "")

    # streams -------------------------------------------------------------------------------------

    def begin_stream(self, exchange: Exchange) -> None:
        """Turn the response that is waited for into an event stream."""
        session, stream = exchange.session, exchange.stream
        if session is None or stream is None:
            raise LocalProtocolError(f"{exchange!r} belongs to no session")
        self._out.begin_stream(exchange)
        stream.exchange = exchange
        stream.opened = True
        if session.primes:
            self._prime(session, stream, exchange, 0)

    def _prime(self, session: Session, stream: Stream, exchange: Exchange, sequence: int) -> None:
        """Hand out an id before there is anything to hear, and say when to come back."""
        retry = int(session.policy.reconnect_after * 1000)
        event = encode_event(b"", id=write_event_id(stream.number, sequence), retry=retry)
        self._out.say(exchange, event)

    def _say(self, session: Session, stream: Stream, data: bytes) -> None:
        stream.sent += 1
        exchange = stream.exchange
        if exchange is not None:
            self._out.say(exchange, encode_event(data, id=write_event_id(stream.number, stream.sent)))
            stream.delivered = stream.sent
        for dropped in session.store.append(StoredEvent(stream.number, stream.sent, data)):
            self._on_dropped(session, dropped)

    def _on_dropped(self, session: Session, event: StoredEvent) -> None:
        stream = session.stream(event.stream)
        if stream is None or event.sequence <= stream.delivered or stream.lossy:
            return
        stream.lossy = True
        detail = f"{session!r}: messages that wait for its client are dropped"
        self._out.events.append(LimitHit("max_stored_events", detail))

    def _attach(
        self, session: Session, stream: Stream, exchange: Exchange, after: int, *, primes: bool
    ) -> None:
        """Let `exchange` carry `stream` from now on, beginning after the event `after`."""
        out = self._out
        if stream.exchange is None and not out.has_room(exchange):
            return
        if stream.exchange is not None:
            # The client came back before its loss was noticed. A message goes to one stream only.
            out.end(stream.exchange)
        kept = session.store.since(stream.number, after)
        lost = stream.sent - after - len(kept)
        if lost > 0:
            detail = f"{session!r}: {lost} messages of a resumed stream are not kept any more"
            out.events.append(LimitHit("max_stored_events", detail))
        exchange.session, exchange.stream = session, stream
        stream.exchange = exchange
        out.hold(exchange)
        out.begin_stream(exchange)
        if primes and session.primes:
            self._prime(session, stream, exchange, after)
        for event in kept:
            event_id = write_event_id(event.stream, event.sequence)
            out.say(exchange, encode_event(event.data, id=event_id))
        stream.delivered = stream.sent
        stream.lossy = False
        if stream.ended:
            self._detach(stream)

    def _detach(self, stream: Stream) -> None:
        """End the exchange that carries `stream`, if there is one."""
        exchange, stream.exchange = stream.exchange, None
        if exchange is not None:
            self._out.end(exchange)

    def _finish(self, session: Session, stream: Stream) -> None:
        """All was said on `stream`."""
        session.complete(stream, self._out.now)
        self._detach(stream)

    def _close_stream(self, session: Session, exchange: Exchange, status: int, text: str) -> None:
        """End the response to a request that gets no answer."""
        stream, out = exchange.stream, self._out
        if stream is None or stream.ended:
            return
        if exchange.phase is ExchangeState.WAITING:
            if session.id not in self._sessions:
                status, text = (503, "the server ends") if self._closed else (404, "the session has ended")
            if text:
                out.plain(exchange, status, text)
            else:
                out.empty(exchange, status)
        self._finish(session, stream)

    def exchange_closed(self, exchange: Exchange) -> None:
        """The client left. Nothing is cancelled: what is said from now on is kept for it."""
        session, stream = exchange.session, exchange.stream
        if session is not None and stream is not None and stream.exchange is exchange:
            stream.exchange = None
            session.used_at = self._out.now

    # verbs ---------------------------------------------------------------------------------------

    def request(
        self,
        session: Session,
        method: str,
        params: Mapping[str, JsonValue] | None,
        *,
        related: IncomingRequest | None,
        timeout: float | None,
        progress: bool,
    ) -> Call:
        """Ask the client of `session`; see `HttpServer.request`."""
        if related is not None and related.open:
            exchange = _exchange(related.origin)
            stream = exchange.stream
            if stream is not None and not stream.opened and not exchange.can_stream:
                raise LocalProtocolError(
                    f"{method}: the client of {related!r} left, or takes no event stream that could ask it"
                )
        call = session.engine.request(
            method, params, now=self._out.now, timeout=timeout, progress=progress, related=related
        )
        self._calls[call] = session
        self.pump(session)
        return call

    def cancel(self, call: Call, reason: str | None) -> bool:
        """End a call; see `HttpServer.cancel`. False for one of none of these sessions."""
        session = self._calls.get(call)
        if session is not None:
            session.engine.cancel(call, now=self._out.now, reason=reason)
            self.pump(session)
        return session is not None

    def hang_up(self, request: IncomingRequest) -> bool:
        """End the connection of a request, not its stream; see `HttpServer.hang_up`."""
        exchange = _exchange(request.origin)
        session, stream = exchange.session, exchange.stream
        if session is None or stream is None or stream.ended or not session.primes:
            return False
        if not stream.opened and exchange.can_stream:
            self.begin_stream(exchange)
        elif stream.exchange is not None:
            # Its retry may be long past, or have been meant for another exchange.
            self._prime(session, stream, stream.exchange, stream.sent)
        if stream.exchange is None:
            return False
        self._detach(stream)
        return True

    def close(self) -> None:
        """End all sessions."""
        self._closed = True
        for session in self:
            self._end(session)

    # ends ----------------------------------------------------------------------------------------

    def handle_timeout(self) -> None:
        """Let every deadline that has passed take effect."""
        now = self._out.now
        for session, _ in list(self._due.expired(now)):
            session.calls_at = None
            session.engine.handle_timeout(now)
            self.pump(session)
        for session, _ in list(self._idle.expired(now)):
            name = "idle_timeout" if session.confirmed else "confirm_timeout"
            limit: float = getattr(self._policy, name)
            due = (now if session.busy else session.used_at) + limit
            if due > now:
                self._idle.set(session, due, name)
            else:
                detail = f"{session!r} was ended: nothing was heard of it for {limit:g} s"
                self._out.events.append(LimitHit(name, detail))
                self._end(session)

    def _end(self, session: Session) -> None:
        del self._sessions[session.id]
        self._idle.clear(session)
        session.engine.close(now=self._out.now)
        self.pump(session)
        for stream in list(session.attached()):
            self._detach(stream)


def _exchange(origin: Hashable) -> Exchange:
    if not isinstance(origin, Exchange):
        raise LocalProtocolError("a request that came in no exchange of this server")
    return origin


def _status(message: Mapping[str, Any] | Sequence[Any]) -> int:
    error = message.get("error") if isinstance(message, Mapping) else None
    return 200 if error is None else status_for_error(error["code"], Era.LEGACY)
