"""The server of Streamable HTTP, at exchange level: HTTP requests in, responses out, no bytes.

Modern requests are independent of each other and share one engine; a client of an older revision has
a session with an engine of its own (`legacy`). Of each POST the body decides which of the two it is,
and where the body does not say, the version header does. An answer is one JSON object, unless
something has to be said before it or it takes long: then it is an event stream (`responses`).

After every input or verb: drain `next_op`, then `next_event`, then re-arm for `next_timeout`.

What a client does, and what comes of it:

==============================================  ================================================
a foreign page, a foreign host                  403, 421
with `auth`: no token, or one that is not       401; 403; see `auth.gate`
valid; one without the rights that it takes
another path; another HTTP method               404; 405
a body that is not said to be JSON; too large   415; 413
it takes neither JSON nor event streams         406
a body that is no JSON                          400, -32700
a message that is none; a batch, except in a    400, -32600
session of 2025-03-26
headers that contradict the body                400, -32020
modern: a request; a notification; a response   its answer; 202; 400
modern: a subscription                          an event stream, from the beginning
modern: the client leaves                       its request is cancelled
a session that is not; no session               404 without JSON-RPC; 400
another version than the session speaks         400
legacy: a request; a notification, a response   its answer; 202
legacy: the client leaves                       nothing, until it comes back or the session ends
==============================================  ================================================

Specification: 2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from ..clock import ClockPair, Deadlines, earliest
from ..errors import ErrorCode, LocalProtocolError, McpError, PeerFault
from ..events import (
    CloseConnection,
    Event,
    Harmless,
    LimitHit,
    MessageIgnored,
    SendNotification,
    SendResponse,
)
from ..limits import SERVER_LIMITS, Limits
from ..revisions import ALL_REVISIONS, Era, Revision
from ..server import EnvelopeCheck, ServerEngine
from ..session import modern
from ..session.calls import Call, IncomingRequest
from ..states import ExchangeState
from ..types.methods import Kind, Method, spec_for
from ..wire import jsonrpc
from ..wire.jsoncodec import JsonCodec, JsonError, JsonValue, default_codec
from ..wire.sse import encode_event
from .engines import EngineFactory
from .era import is_modern
from .exchange import EVENT_STREAM, JSON, ExchangeId, HttpRequest, ServerExchangeOp
from .guard import DEFAULT_POLICY, GuardPolicy, Refusal
from .headers import validate_projection
from .legacy import SESSION_ID, Sessions
from .legacy_session import Session, SessionPolicy
from .mirrored import InputSchema, Mirrored
from .old_sse_server import OldSsePaths, OldSseSession, OldSseSessions
from .responses import Exchange, Responses
from .screen import TOO_LARGE, Place, Screen
from .stateless import Stateless
from .status import status_for_error
from .verbs import EngineVerbs

if TYPE_CHECKING:
    from ..auth.gate import Gate
    from ..auth.principal import Principal
    from ..auth.resource_server import ResourceServer

_ENDS: Final = Refusal(503, "the server ends")
_FAULTS: Final = {
    400: PeerFault.FOREIGN_HOST,
    403: PeerFault.FOREIGN_ORIGIN,
    404: PeerFault.WRONG_ENDPOINT,
    405: PeerFault.WRONG_ENDPOINT,
    413: PeerFault.BODY_TOO_LARGE,
    415: PeerFault.WRONG_MEDIA_TYPE,
    421: PeerFault.FOREIGN_HOST,
}
"""What it tells of a client that it was turned away with a status."""

_OF_MODERN: Final = frozenset({"open_requests", "subscriptions", "listened_uris", "listened_topics"})
"""What `stats` has of the engine of all modern requests."""


class HttpServer(EngineVerbs):
    """A server for any number of clients, over whatever carries HTTP.

    Requests are answered through the methods that `ServerEngine` has as well: `respond`,
    `respond_error`, `report_progress`, `log`. The `origin` of a request is its `Exchange`, with the
    header fields.

    `make_engine` makes the engines; it is `App.engine` for an `App`, and then `input_schema` is
    `App.input_schema`, without which no ``Mcp-Param-`` headers are compared. `entropy` gives random
    bytes, for the ids of sessions. `path` is where the endpoint is, None for everywhere. `policy` says
    which hosts and pages are served: by default those of this machine. `revisions` are served, the
    older ones among them only with `legacy`; `sessions` bounds their sessions, and with `stateless`
    they have none (`http.stateless`). `keep_alive` is the silence in seconds after which a client is
    sent a comment, None for never. `response_timeout` is how long (seconds) a modern request may take
    before it is answered 504 and cancelled, None for ever. `max_exchanges` responses may be open at
    once; past it requests are answered 503, and that is told. With `old_sse`, HTTP+SSE is spoken there
    as well, by sessions that `sessions` bounds too.
    `auth` says whom it lets in; None: everybody. `strict` turns tolerances into faults.

    Raises LocalProtocolError for times that are not positive, and for `old_sse` without an older
    revision, without sessions, or where the endpoint is.
    """

    def __init__(
        self,
        make_engine: EngineFactory,
        *,
        now: float,
        entropy: Callable[[int], bytes],
        path: str | None = "/mcp",
        policy: GuardPolicy = DEFAULT_POLICY,
        limits: Limits = SERVER_LIMITS,
        sessions: SessionPolicy | None = None,
        codec: JsonCodec | None = None,
        revisions: Sequence[Revision] = ALL_REVISIONS,
        keep_alive: float | None = 15.0,
        response_timeout: float | None = None,
        max_exchanges: int = 16_384,
        legacy: bool = True,
        stateless: bool = False,
        old_sse: OldSsePaths | None = None,
        input_schema: InputSchema | None = None,
        auth: ResourceServer | None = None,
        strict: bool = False,
    ) -> None:
        if response_timeout is not None and response_timeout <= 0:
            raise LocalProtocolError(f"response_timeout is a number of seconds, not {response_timeout}")
        served = [r for r in revisions if legacy or r.era is Era.MODERN]
        older = [r for r in served if r.era is Era.LEGACY]
        if old_sse is not None and not older:
            raise LocalProtocolError("HTTP+SSE has no modern revision: none is served that speaks it")
        if old_sse is not None and path in (old_sse.stream, old_sse.messages):
            raise LocalProtocolError(f"{path}: the endpoint and HTTP+SSE cannot be at the same path")
        if old_sse is not None and stateless:
            raise LocalProtocolError("HTTP+SSE needs sessions: it cannot be spoken without")
        self.limits: Final = limits
        self.strict: Final = strict
        self._screen = Screen(
            path=path,
            policy=policy,
            old_sse=old_sse,
            max_body=limits.max_body,
            sessions=bool(older) and not stateless,
            documents=frozenset(() if auth is None else auth.metadata_paths),
        )
        self._codec = codec or default_codec(max_depth=limits.max_depth, reject_duplicate_keys=strict)
        self._response_timeout = response_timeout
        self._mirrored = Mirrored(input_schema)
        self._out = Responses(now=now, keep_alive=keep_alive, max_exchanges=max_exchanges, strict=strict)
        self._late: Deadlines[Exchange] = Deadlines()
        self._gate: Gate | None = None
        if auth is not None:
            from ..auth.gate import Gate

            self._gate = Gate(auth, self._out)
        self._closed = False

        def engine(
            now: float, check: EnvelopeCheck | None = None, revisions: Sequence[Revision] = served
        ) -> ServerEngine:
            alone: dict[str, Any] = {"changes": False} if stateless and check is None else {}
            return make_engine(
                **alone,
                now=now,
                limits=limits,
                codec=self._codec,
                revisions=revisions,
                ids_per_exchange=check is not None,
                check=check,
                strict=strict,
            )

        self._modern = engine(now, self._check_headers)
        shared: dict[str, Any] = {
            "policy": sessions or SessionPolicy(),
            "entropy": entropy,
            "count": lambda: sum(len(keeper) for keeper in self._keepers),
            "codec": self._codec,
            "max_batch": limits.max_batch,
        }
        self._sessions: Sessions | None = None
        self._old: OldSseSessions | None = None
        if older and stateless:
            self._sessions = Stateless(engine, self._out, revisions=older, **shared)
        elif older:
            self._sessions = Sessions(engine, self._out, **shared)
        if old_sse is not None:
            self._old = OldSseSessions(
                lambda now: engine(now, revisions=older), self._out, paths=old_sse, **shared
            )
        self._keepers: tuple[Sessions, ...] = tuple(k for k in (self._sessions, self._old) if k is not None)
        """Who keeps sessions."""
        parts = (self._out, *self._keepers, *(() if self._gate is None else (self._gate,)))
        self.deadlines: Final[tuple[Deadlines[Any], ...]] = (
            self._late,
            *chain.from_iterable(part.deadlines for part in parts),
        )
        """All that there are, for a carrier that has some of its own."""

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> ServerExchangeOp | None:
        """The next thing to do, or None."""
        ops = self._out.ops
        return ops.popleft() if ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        events = self._out.events
        return events.popleft() if events else None

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return earliest(*self.deadlines)

    @property
    def wants_data(self) -> bool:
        """False while events pile up: then stop reading requests until they are read."""
        return len(self._out.events) < self.limits.max_buffered_events

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The legacy sessions that are open."""
        return tuple(chain.from_iterable(self._keepers))

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        kept: Counter[str] = Counter()
        for keeper in self._keepers:
            kept.update(keeper.stats())
        return {
            **self._out.stats(),
            **{name: size for name, size in self._modern.stats().items() if name in _OF_MODERN},
            "response_timers": len(self._late),
            "read_schemas": len(self._mirrored),
            **({} if self._gate is None else self._gate.stats()),
            **kept,
        }

    # inputs --------------------------------------------------------------------------------------

    def head_received(self, exchange: ExchangeId, head: HttpRequest, now: float) -> Refusal | None:
        """The head of a request came, its body did not: say whether that is wanted.

        None if it is: go on with `request_received`, with `screened`. Otherwise the request was
        answered, as `next_op` tells, and nothing more is to be said of it: its body is not read, or
        read and thrown away. To call this is up to the carrier. It saves the memory for bodies that
        are refused anyway, and lets a client that expects ``100 Continue`` keep them to itself.

        Raises LocalProtocolError if `exchange` names one that is open.
        """
        self._begin(exchange, now)
        refusal = self._screen.refusal(head)
        if refusal is None and self._closed:
            refusal = _ENDS
        if refusal is not None:
            self._turn_away(Exchange.of(exchange, head), refusal)
        elif self._gate is not None:
            refusal = self._gate.refusal(head, head.fields)
            if refusal is not None:
                self._gate.turn_away(Exchange.of(exchange, head), refusal)
        return refusal

    def request_received(
        self, exchange: ExchangeId, request: HttpRequest, now: float, *, screened: bool = False
    ) -> None:
        """A request came, whole. Never raises for what the client did.

        `screened` says that `head_received` let it pass. Of a body that is too large it is enough to
        have one byte more than `Limits.max_body` here: the answer is 413 all the same.

        Raises LocalProtocolError if `exchange` names one that is open.
        """
        self._begin(exchange, now)
        body, bound = request.body, self.limits.max_body
        record = Exchange.of(exchange, request)
        refusal = None if screened else self._screen.refusal(request)
        if refusal is None and self._closed:
            refusal = _ENDS
        elif refusal is None and bound is not None and len(body) > bound:
            refusal = TOO_LARGE
        if refusal is not None:
            self._turn_away(record, refusal)
        elif self._gate is None or self._gate.admits(record, request):
            self._serve(record, request)

    def _begin(self, exchange: ExchangeId, now: float) -> None:
        if exchange in self._tick(now) or (self._gate is not None and exchange in self._gate):
            raise LocalProtocolError(f"exchange {exchange} is open already")

    def _serve(self, record: Exchange, request: HttpRequest) -> None:
        place = self._screen.place(request.target)
        if place is Place.OLD_STREAM and self._old is not None:
            self._old.on_get(record)
        elif place is Place.OLD_MESSAGES:
            self._on_old_message(record, request)
        elif request.method == "POST":
            self._on_post(record, request.body)
        elif self._sessions is not None and request.method == "GET":
            self._sessions.on_get(record)
        elif self._sessions is not None:
            self._sessions.on_delete(record)
        if self._gate is not None and record.method == "GET":
            self._gate.lasts(record)

    def exchange_closed(self, exchange: ExchangeId, now: float) -> None:
        """The client went away before its response was complete. Harmless for an unknown exchange.

        That cancels a modern request. It does not cancel a legacy one: what is still said is kept for
        a client that comes back for it.
        """
        record = self._tick(now).leave(exchange)
        if record is None:
            if self._gate is not None:
                self._gate.leave(exchange)
            return
        self._late.clear(record)
        if record.session is None:
            self._modern.exchange_closed(record, now=self._out.now)
            self._pump()
        else:
            self._keeper(record.session).exchange_closed(record)

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        out = self._tick(now)
        for exchange, _ in list(self._late.expired(out.now)):
            self._on_late(exchange)
        if self._gate is not None:
            self._gate.handle_timeout()
            for exchange in self._gate.outlived():
                self._end_listening(exchange)
        for keeper in self._keepers:
            keeper.handle_timeout()
        for exchange in out.silent():
            if exchange.phase is ExchangeState.WAITING:
                self._begin_stream(exchange)
            out.comment(exchange)

    def token_verified(self, exchange: ExchangeId, principal: Principal | None, clock: ClockPair) -> None:
        """Who is behind a token that `VerifyToken` asked about: None if it is not valid.

        `clock` is the present time. Harmless for what is not asked, or not any more.
        """
        self._tick(clock.now)
        if self._gate is not None:
            for record, request in self._gate.token_verified(exchange, principal, clock):
                self._serve(record, request)

    def verification_failed(self, exchange: ExchangeId, detail: str, now: float) -> None:
        """Nobody can tell who is behind a token: 503. Why, `detail` says in an event, not to the client."""
        self._tick(now)
        if self._gate is not None:
            self._gate.verification_failed(exchange, detail)

    # verbs: subscriptions and the end ----------------------------------------------------------------

    @property
    def subscriptions(self) -> tuple[IncomingRequest, ...]:
        """The open ``subscriptions/listen`` requests of all modern clients."""
        return self._modern.subscriptions

    @property
    def watched(self) -> frozenset[str]:
        """URIs of the resources that any client wants to hear of, in whichever era."""
        return self._modern.watched.union(*(session.engine.watched for session in self.sessions))

    def end_subscription(
        self, request: IncomingRequest, *, now: float, graceful: bool = True, reason: str | None = None
    ) -> None:
        """End one of `subscriptions`, and its stream. As `ServerEngine.end_subscription`."""
        now = self._tick(now).now
        self._modern.end_subscription(request, now=now, graceful=graceful, reason=reason)
        self._pump()
        exchange = request.origin
        if isinstance(exchange, Exchange) and exchange.phase is ExchangeState.STREAMING:
            self._out.end(exchange)

    def close(self, now: float) -> None:
        """End every session and every response, subscriptions gracefully. Harmless when it has ended."""
        out = self._tick(now)
        if self._closed:
            return
        self._closed = True
        if self._gate is not None:
            self._gate.close()
        for keeper in self._keepers:
            keeper.close()
        self._modern.close(now=out.now)
        self._pump()
        self._late.clear_all()
        for exchange in out:
            if exchange.phase is ExchangeState.STREAMING:
                out.end(exchange)
            else:
                out.plain(exchange, 503, "the server ends")

    # verbs: legacy sessions ----------------------------------------------------------------------

    def session_of(self, request: IncomingRequest) -> Session | None:
        """The legacy session that a request came in; None for a modern one."""
        origin = request.origin
        return origin.session if isinstance(origin, Exchange) else None

    def request(
        self,
        method: str,
        params: Mapping[str, JsonValue] | None = None,
        *,
        now: float,
        related: IncomingRequest | None = None,
        session: Session | None = None,
        timeout: float | None = None,
        progress: bool = False,
    ) -> Call:
        """Ask a legacy client. As `ServerEngine.request`.

        With `related`, a request of that client, it is asked on the stream of that request; with
        `session` alone on the stream that its GET opened, or will. Also raises LocalProtocolError if
        neither is given, or if the client cannot be asked on that stream since it left or takes no
        event streams.
        """
        self._tick(now)
        if session is None and related is not None:
            session = self.session_of(related)
        if session is None:
            raise LocalProtocolError(f"{method}: only the client of a legacy session can be asked")
        return self._keeper(session).request(
            session, method, params, related=related, timeout=timeout, progress=progress
        )

    def cancel(self, call: Call, *, now: float, reason: str | None = None) -> None:
        """End a call that `request` made, and tell the client. As `ServerEngine.cancel`."""
        self._tick(now)
        found = any(keeper.cancel(call, reason) for keeper in self._keepers)
        if not (found or (self._keepers and call.done)):
            raise LocalProtocolError(f"{call!r} is not a call of this server")

    def hang_up(self, request: IncomingRequest, *, now: float) -> bool:
        """End the connection of a request that takes long, and let its client come back for the rest.

        False, with nothing done, where that is not possible: modern clients and those older than
        2025-11-25 would not come back, and some take no event stream.

        Specification: 2025-11-25, basic/transports (sending messages to the server, item 6).
        """
        self._tick(now)
        return self._sessions is not None and self._sessions.hang_up(request)

    # requests of HTTP ----------------------------------------------------------------------------

    def _tick(self, now: float) -> Responses:
        out = self._out
        out.now = max(out.now, now)
        return out

    def _turn_away(self, exchange: Exchange, refusal: Refusal) -> None:
        out, status = self._out, refusal.status
        fault = _FAULTS.get(status)
        if fault is None:
            out.plain(exchange, status, refusal.reason)
        else:
            out.refuse(exchange, status, fault, refusal.reason, refusal.headers)

    def _on_post(self, exchange: Exchange, body: bytes) -> None:
        out = self._out
        if not (exchange.takes_json and exchange.takes_stream):
            text = f"Accept must allow {JSON} and {EVENT_STREAM}"
            neither = not (exchange.takes_json or exchange.takes_stream)
            if neither or not out.tolerated(PeerFault.WRONG_MEDIA_TYPE, text):
                out.refuse(exchange, 406, PeerFault.WRONG_MEDIA_TYPE, text)
                return
        value = self._read(exchange, body)
        if isinstance(value, JsonError) or not self._permits(exchange, value):
            return
        if self._sessions is None or is_modern(value, exchange.fields):
            self._on_modern(exchange, value)
        else:
            self._sessions.on_post(exchange, value)

    def _on_old_message(self, exchange: Exchange, request: HttpRequest) -> None:
        value = self._read(exchange, request.body)
        if self._old is not None and not isinstance(value, JsonError) and self._permits(exchange, value):
            self._old.on_message(exchange, request.target, value)

    def _permits(self, exchange: Exchange, value: JsonValue) -> bool:
        return self._gate is None or self._gate.permits(exchange, value)

    def _read(self, exchange: Exchange, body: bytes) -> JsonValue | JsonError:
        """The value of a body, or why it is none; then the request was refused."""
        try:
            return self._codec.loads(body)
        except JsonError as error:
            answer = McpError(ErrorCode.PARSE_ERROR, f"not readable: {error}")
            self._refuse(exchange, None, answer, error.fault)
            return error

    def _on_modern(self, exchange: Exchange, value: JsonValue) -> None:
        members = jsonrpc.split_batch(value, False, 0)
        message = members if isinstance(members, jsonrpc.InvalidMessage) else jsonrpc.classify(value)
        match message:
            case jsonrpc.Request():
                self._on_request(exchange, message)
            case jsonrpc.Notification():
                self._on_notification(exchange, message)
            case jsonrpc.InvalidMessage():
                self._on_invalid(exchange, message)
            case _:
                text = "no request was sent that this could answer"
                self._out.refuse(exchange, 400, PeerFault.UNKNOWN_RESPONSE_ID, text)

    def _on_request(self, exchange: Exchange, message: jsonrpc.Request) -> None:
        params, out = message.params, self._out
        exchange.request_id = message.id
        if not modern.is_modern(params) and message.method != "initialize":
            # The engine would take it for the first word of a legacy client.
            key = modern.META_VERSION if isinstance(params.get("_meta"), dict) else "_meta"
            self._refuse(exchange, message.id, modern.missing_meta(key), PeerFault.MISSING_META)
            return
        listens = message.method == Method.LISTEN
        if listens and not exchange.takes_stream:
            text = f"{message.method} is answered with {EVENT_STREAM}"
            out.refuse(exchange, 406, PeerFault.WRONG_MEDIA_TYPE, text)
            return
        if not out.has_room(exchange):
            return
        out.hold(exchange)
        # A subscription is there to last.
        if self._response_timeout is not None and not listens:
            self._late.set(exchange, out.now + self._response_timeout, "response_timeout")
        self._modern.receive_message(message.raw, now=out.now, origin=exchange)
        self._pump()
        if self._gate is not None and listens:
            self._gate.lasts(exchange)

    def _end_listening(self, exchange: Exchange) -> None:
        """End a stream whose token has ended: its client may come back with another one."""
        if exchange.session is not None:
            self._keeper(exchange.session).exchange_closed(exchange)
            self._out.end(exchange)
        for request in self.subscriptions:
            if request.origin is exchange:
                self.end_subscription(request, now=self._out.now, reason="the token has ended")

    def _on_notification(self, exchange: Exchange, message: jsonrpc.Notification) -> None:
        out = self._out
        fault = validate_projection(exchange.headers, message.raw)
        if fault is not None:
            self._refuse(exchange, None, fault.to_error(), PeerFault.HEADER_MISMATCH)
            return
        self._modern.receive_message(message.raw, now=out.now, origin=exchange)
        self._pump()
        spec = spec_for(message.method)
        if spec is not None and spec.kind is Kind.REQUEST:
            out.plain(exchange, 400, "a request without an id is not carried out")
        else:
            out.empty(exchange, 202)

    def _on_invalid(self, exchange: Exchange, message: jsonrpc.InvalidMessage) -> None:
        if message.hint is None:
            self._out.refuse(exchange, 400, message.fault, f"no valid message: {message.detail}")
        else:
            self._refuse(exchange, message.id, McpError(message.hint, message.detail), message.fault)

    def _refuse(self, exchange: Exchange, request_id: Any, error: McpError, fault: PeerFault) -> None:
        """Answer with an error what no engine has seen."""
        body = jsonrpc.error_response(
            request_id,
            error.code,
            error.message,
            jsonrpc.ABSENT if error.data is None else error.data,
            null_id=self._sessions is not None and SESSION_ID in exchange.fields,
        )
        status = status_for_error(error.code, Era.MODERN)
        self._out.json(exchange, status, self._codec.dumps(body))
        self._out.ignored(fault, f"{exchange.method} was answered {status}: {error.message}")

    def _check_headers(self, origin: Hashable, message: Mapping[str, Any]) -> McpError | None:
        """The second rung of the ladder, for the engine of all modern requests."""
        if not isinstance(origin, Exchange):
            return None
        return self._mirrored.check(origin.headers, message)

    # what the engines say ------------------------------------------------------------------------

    def _engine_of(self, request: IncomingRequest, now: float) -> tuple[ServerEngine, Session | None]:
        self._tick(now)
        origin = request.origin
        if not isinstance(origin, Exchange):
            raise LocalProtocolError(f"{request!r} came in no exchange of this server")
        session = origin.session
        return (self._modern if session is None else session.engine), session

    def _keeper(self, session: Session) -> Sessions:
        keeper = self._old if isinstance(session, OldSseSession) else self._sessions
        if keeper is None:
            raise LocalProtocolError(f"{session!r} is not of this server")
        return keeper

    def _pump(self, session: Session | None = None) -> None:
        """Carry out what an engine wants sent; pass the rest on."""
        if session is not None:
            self._keeper(session).pump(session)
            return
        engine, events = self._modern, self._out.events
        while (event := engine.next_event()) is not None:
            match event:
                case SendResponse():
                    self._respond(event)
                case SendNotification():
                    self._carry(event)
                case CloseConnection():
                    pass
                case _:
                    events.append(event)

    def _respond(self, event: SendResponse) -> None:
        exchange, out = event.origin, self._out
        if not isinstance(exchange, Exchange) or exchange.phase is ExchangeState.ENDED:
            return
        self._late.clear(exchange)
        error = event.message.get("error") if isinstance(event.message, dict) else None
        status = 200 if error is None else status_for_error(error["code"], Era.MODERN)
        if exchange.phase is ExchangeState.WAITING:
            if status >= 400 or exchange.takes_json:
                out.json(exchange, status, event.data)
                return
            out.begin_stream(exchange)
        out.say(exchange, encode_event(event.data))
        out.end(exchange)

    def _carry(self, event: SendNotification) -> None:
        related, out = event.related, self._out
        exchange = None if related is None else related.origin
        if isinstance(exchange, Exchange):
            if exchange.can_stream:
                out.begin_stream(exchange)
            if exchange.phase is ExchangeState.STREAMING:
                out.say(exchange, encode_event(event.data))
                return
        detail = f"{event.message['method']} was not sent: no event stream can carry it"
        out.events.append(MessageIgnored(Harmless.UNDELIVERABLE, detail))

    def _begin_stream(self, exchange: Exchange) -> None:
        if exchange.session is not None:
            self._keeper(exchange.session).begin_stream(exchange)
        else:
            self._out.begin_stream(exchange)

    def _on_late(self, exchange: Exchange) -> None:
        """A modern request takes too long: answer for its handler, and stop that."""
        out, seconds = self._out, self._response_timeout
        text = f"no answer within {seconds:g} s"
        body = jsonrpc.error_response(exchange.request_id, ErrorCode.INTERNAL_ERROR, text)
        data = self._codec.dumps(body)
        if exchange.phase is ExchangeState.STREAMING:
            out.say(exchange, encode_event(data))
            out.end(exchange)
        else:
            out.json(exchange, 504, data)
        out.events.append(LimitHit("response_timeout", f"{exchange!r}: {text}"))
        self._modern.exchange_closed(exchange, now=out.now, reason=text)
        self._pump()


__all__ = ["EngineFactory", "HttpServer", "InputSchema"]
