"""The client's Streamable HTTP transport, at the level of exchanges.

Responses in, events and ops out, for whatever can carry HTTP. After every input or verb, in this
order: `next_op` until None, `next_event` until None, then re-arm the timer for `next_timeout`.

    client = HttpClient(engine, "https://example.com/mcp", now=clock())
    client.start(clock())
    while (op := client.next_op()) is not None:
        match op:
            case StartExchange(exchange, request): ...  # then response_started, _data, _ended
            case AbortExchange(exchange): ...

All exchanges are with one origin, `client.url.origin`. The verbs for calls are the engine's.

Specification: 2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports (sessions,
resumability, listening for messages); 2024-11-05, basic/transports (HTTP with SSE).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..client import ClientEngine
from ..errors import (
    ConnectionEnded,
    HttpFailure,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
)
from ..events import (
    AbandonRequest,
    CloseConnection,
    EraDecided,
    Event,
    ListChanged,
    ListKind,
    Reconnect,
    RequestFailed,
    ResultReady,
    SendNotification,
    SendRequest,
    SendResponse,
    SessionStarted,
    SubscriptionClosed,
    SubscriptionInterrupted,
)
from ..revisions import Era
from ..session.calls import Call
from ..session.era import TransportKind, offered_by
from ..states import ClientExchangeState, ClientState, OldSseState
from ..types.methods import Method
from ..wire.sse import ServerSentEvent
from .answer import Answer, Content
from .client_exchanges import ClientExchange, Role
from .client_requests import check_headers
from .client_sessions import Sessions
from .exchange import ExchangeId
from .old_sse import ENDPOINT, OldSse, OldSseUse
from .recovery import Recovery
from .resume import ReconnectPolicy
from .url import Url

CLOSE_WAIT: Final = 5.0
"""Seconds that a close waits for the server to take note of it. Past it: aborted."""

ENDPOINT_WAIT: Final = 5.0
"""Seconds for the `endpoint` event of HTTP+SSE, where the engine has no probe timeout to go by."""

_GOODBYE: Final = "goodbye"
_ENDPOINT: Final = "endpoint"


class HttpClient(Sessions):
    """A client of one server, which speaks HTTP.

    `engine` is one with ``transport=TransportKind.HTTP``. `url` is the server's one address.
    `headers` go along on every request, an ``authorization`` among them, and never to another
    origin. `reconnect` is for broken streams, `recovery` for lost requests; `old_sse` tells when
    HTTP+SSE is spoken, and `listen` whether a legacy server is asked for its own stream.

    Raises LocalProtocolError for an engine of another kind, an engine that would probe although
    `old_sse` is ONLY, an unusable address, and a header that is not the user's to set.
    """

    def __init__(
        self,
        engine: ClientEngine,
        url: str,
        *,
        now: float,
        headers: Iterable[tuple[str, str]] = (),
        reconnect: ReconnectPolicy | None = None,
        recovery: Recovery | None = None,
        old_sse: OldSseUse = OldSseUse.AUTO,
        listen: bool = True,
    ) -> None:
        if engine.transport is not TransportKind.HTTP:
            raise LocalProtocolError("HttpClient needs an engine with transport=TransportKind.HTTP")
        if old_sse is OldSseUse.ONLY and offered_by(engine.mode)[-1].era is Era.MODERN:
            raise LocalProtocolError("HTTP+SSE has no modern revision: make the engine with mode=Legacy()")
        super().__init__(
            engine,
            url,
            now=now,
            headers=headers,
            reconnect=reconnect or ReconnectPolicy(),
            recovery=recovery or Recovery(),
            listen=listen,
        )
        self._closed = False
        self._old_use = old_sse
        self._old = OldSse()
        self._old_stream: ClientExchange | None = None
        self._relisting: Call | None = None
        """Our own call that lists the tools anew."""
        self._mismatched: dict[Call, tuple[ClientExchange, McpError]] = {}
        """Calls refused for their headers, until it is done."""

    def __repr__(self) -> str:
        return f"<HttpClient {self._url} {self.engine.state.name.lower()}>"

    # what is known -------------------------------------------------------------------------------

    @property
    def url(self) -> Url:
        """The server's address. A permanent redirect changes its path."""
        return self._url

    @property
    def sets_authorization(self) -> bool:
        """Whether the user gave a header ``authorization``."""
        return any(name == "authorization" for name, _ in self._headers)

    @property
    def wants_data(self) -> bool:
        """False while reading more would exceed a limit: then stop reading."""
        return self.engine.wants_data and len(self._events) < self._limits.max_buffered_events

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: the conversation has ended, and every exchange with it."""
        return self._closed and not self._exchanges and not self._ops

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        a, b = self.engine.next_timeout(), self._timers.next()
        return b if a is None else a if b is None else min(a, b)

    def stats(self) -> dict[str, int]:
        """Sizes of the transport's tables and queues, by name; in `buffered`, bytes."""
        buffered = 0
        for ex in self._exchanges.values():
            buffered += len(ex.body) + (0 if ex.decoder is None else ex.decoder.stats()["buffered"])
        return {
            "exchanges": len(self._exchanges),
            "awaited_calls": len(self._by_call),
            "paused_streams": len(self._paused),
            "held_messages": len(self._behind),
            "mirrored_tools": len(self._tools),
            "mismatched_calls": len(self._mismatched),
            "repeated_calls": len(self._repeated),
            "timers": len(self._timers),
            "buffered": buffered,
            "ops": len(self._ops),
            "events": len(self._events),
        }

    # verbs and time ------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Connect. Raises LocalProtocolError when that was done before."""
        self._tick(now)
        if self._old_use is not OldSseUse.ONLY:
            self.engine.connect(now=self._now)
        elif self._old.state is OldSseState.IDLE and self.engine.state is ClientState.IDLE:
            self._begin_old()
        else:
            raise LocalProtocolError("start: called already; make a new client to connect again")
        self._pump()

    def close(self, now: float) -> None:
        """End the conversation. Harmless twice.

        A legacy session is ended at the server too, as a best effort: `finished` is True at the
        latest `CLOSE_WAIT` seconds later, whatever the server does.
        """
        self._tick(now)
        self.engine.close(now=self._now)
        self._pump()

    def keep_secret(self, *values: str) -> None:
        """Show these in no error, should a server repeat them. They take the place of earlier ones."""
        self._hidden = values

    def set_headers(self, headers: Iterable[tuple[str, str]]) -> None:
        """Replace the headers given to the constructor, for the requests made from now on.

        For a token that was renewed. Raises LocalProtocolError as the constructor does.
        """
        self._headers = check_headers(headers)

    def exchange_held(self, exchange: ExchangeId, now: float) -> None:
        """`exchange` is not on its way, for somebody has to be authorized first: no deadline of it runs.

        Harmless for one that is over. Then `exchange_released`, or `exchange_failed`.
        """
        super().exchange_held(exchange, now)
        if self._old_stream is not None and exchange == self._old_stream.id:
            self._timers.clear((_ENDPOINT, 0))

    def exchange_released(self, exchange: ExchangeId, now: float) -> None:
        """`exchange` is on its way again: its deadlines start anew. Harmless for one that is over."""
        super().exchange_released(exchange, now)
        if self._old_stream is not None and exchange == self._old_stream.id:
            self._await_endpoint()

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._tick(now)
        self._pump()
        self.engine.handle_timeout(self._now)
        self._pump()
        self._run_timers()
        self._pump()

    def _on_timer(self, kind: str, number: int) -> None:
        match kind:
            case "goodbye":
                for ex in list(self._exchanges.values()):
                    self._abort(ex)
            case "endpoint":
                self._old_failed(HttpFailure("HTTP+SSE: the stream brought no endpoint event in time"))
            case _:
                super()._on_timer(kind, number)

    # the engine's events -------------------------------------------------------------------------

    def _pump(self) -> None:
        engine = self.engine
        self._tick(engine.now)  # its verbs are called past this transport
        while (event := engine.next_event()) is not None:
            self._handle(event)

    def _handle(self, event: Event) -> None:
        """Carry out an event, or see what it means here."""
        match event:
            case SendRequest() | SendNotification():
                if not self._closed:
                    self._send(event)
            case SendResponse():
                if not self._closed:
                    self._post_message(event.data, self._session_headers(), None)
            case AbandonRequest(call=call):
                self._let_go(call)
            case ResultReady(call=call) | RequestFailed(call=call):
                self._let_go(call)
                self._repeated.discard(call.number)
                self._mismatched.pop(call, None)
                if call is self._relisting:
                    self._relisted(event)
                else:
                    self._events.append(event)
            case SubscriptionClosed(call=call) | SubscriptionInterrupted(call=call):
                self._let_go(call)
                self._events.append(event)
            case CloseConnection():
                self._end()
            case Reconnect():
                self._begin_old()
            case _:
                self._events.append(event)
                self._look_at(event)

    def _look_at(self, event: Event) -> None:
        """What the application is told, and what it means here."""
        match event:
            case ListChanged(kind=ListKind.TOOLS):
                self._tools.forget()
            case SessionStarted():
                self._on_new_session()
            case EraDecided():
                # Whoever has not answered the probe by now, need not.
                for ex in list(self._exchanges.values()):
                    if ex.role is Role.REQUEST and ex.call is not None and ex.call.internal:
                        if not ex.awaited and ex.state is not ClientExchangeState.DRAINING:
                            self._abort(ex)
            case _:
                pass

    def _end(self) -> None:
        """The engine has nothing more to say."""
        self._closed = True
        self._timers.clear_all()
        self._gate = self._standing = self._relisting = None
        self._behind.clear()
        self._mismatched.clear()
        self._old.end()
        for ex in [*self._exchanges.values(), *self._paused.values()]:
            # What tells the server of cancelled requests may still arrive.
            if ex.role is not Role.MESSAGE or ex.state is ClientExchangeState.DRAINING:
                self._close_stream(ex)
                self._abort(ex)
        self._by_call.clear()
        if self._session_id is not None:
            headers = [("accept-encoding", "identity"), *self._session_headers(), *self._headers]
            self._start(Role.GOODBYE, "DELETE", headers, b"", "the end of the session", self._url)
        if self._exchanges:
            self._timers.set((_GOODBYE, 0), self._now + CLOSE_WAIT, _GOODBYE)

    def _over(self, ex: ClientExchange) -> ClientExchangeState:
        before = super()._over(ex)
        if self._closed and not self._exchanges:
            self._timers.clear_all()
        return before

    # requests that are made again ----------------------------------------------------------------

    def _reissued(self, ex: ClientExchange) -> bool:
        call = ex.call
        if call is None or call.internal or not ex.modern or not ex.awaited or not self._recovery.reissue:
            return False
        # A tool may do something twice; a subscription is never begun anew in silence.
        if call.method in (Method.CALL_TOOL, Method.LISTEN) or not self._recovery.may_repeat(call):
            return False
        if call.number in self._repeated:
            return False
        self._repeated.add(call.number)
        self.engine.send_again(call, now=self._now)
        return True

    def _recover_headers(self, ex: ClientExchange, error: McpError) -> bool:
        call = ex.call
        if call is None or not ex.modern or ex.message["method"] != Method.CALL_TOOL:
            return False
        if call.number in self._repeated:
            return False
        if self._relisting is None:
            try:
                self._relisting = self.engine.list_all_tools(now=self._now, cache_mode="refresh")
            except LocalProtocolError:
                return False
        self._repeated.add(call.number)
        self._mismatched[call] = (ex, error)
        ex.settled = True
        return True

    def _relisted(self, event: ResultReady | RequestFailed) -> None:
        """The tools were listed anew: call again those that are in the list."""
        self._relisting = None
        listed = event.raw.get("tools") if isinstance(event, ResultReady) else None
        names = {t.get("name") for t in listed if isinstance(t, dict)} if isinstance(listed, list) else set()
        waiting, self._mismatched = self._mismatched, {}
        for call, (ex, error) in waiting.items():
            if call.params.get("name") in names:
                self.engine.send_again(call, now=self._now)
            else:
                self.engine.exchange_refused(ex.message["id"], error, now=self._now)

    # HTTP+SSE ------------------------------------------------------------------------------------

    @property
    def _old_endpoint(self) -> Url | None:
        return self._old.endpoint

    def _begin_old(self) -> None:
        """Ask for the stream of the old transport."""
        if self._old_use is OldSseUse.NEVER or self._old.state is not OldSseState.IDLE:
            self.engine.connection_failed(HttpFailure("HTTP+SSE is switched off"), now=self._now)
            return
        self._old.ask()
        self._old_stream = self._start(
            Role.OLD_STREAM, "GET", self._get_headers(), b"", "HTTP+SSE", self._url
        )
        self._await_endpoint()

    def _await_endpoint(self) -> None:
        wait = self.engine.timeouts.probe or ENDPOINT_WAIT
        self._timers.set((_ENDPOINT, 0), self._now + wait, _ENDPOINT)

    def _on_replaced(self, ex: ClientExchange, again: ClientExchange) -> None:
        super()._on_replaced(ex, again)
        if ex is self._old_stream:
            self._old_stream = again

    def _on_other_head(self, ex: ClientExchange, answer: Answer) -> None:
        if ex.role is Role.OLD_STREAM and answer.content is Content.STREAM:
            self._old.opened()
            self._stream(ex)
        elif ex.role is Role.GOODBYE:
            self._drain(ex)  # whatever the server says of it: it need not let clients end sessions
        else:
            super()._on_other_head(ex, answer)

    def _on_other_event(self, ex: ClientExchange, event: ServerSentEvent) -> None:
        unnamed = self._old.state is OldSseState.UNNAMED
        if not (ex is self._old_stream and event.event == ENDPOINT and unnamed):
            super()._on_other_event(ex, event)
            return
        try:
            self._old.name(ex.url, event.data)
        except RemoteProtocolError as error:
            self._old_failed(HttpFailure(f"HTTP+SSE: {error}", status=200, fault=error.fault))
            return
        self._timers.clear((_ENDPOINT, 0))
        if self.engine.state is ClientState.IDLE:
            self.engine.connect(now=self._now)
        else:
            self.engine.connection_restored(now=self._now)

    def _on_other_failure(self, ex: ClientExchange, error: HttpFailure) -> None:
        if ex.role is not Role.OLD_STREAM:
            super()._on_other_failure(ex, error)
        elif ex is self._old_stream:
            self._old_failed(error)

    def _old_failed(self, error: HttpFailure) -> None:
        """The stream did not come about, or is gone: there is no other way to hear of the server."""
        before = self._old.end()
        self._timers.clear((_ENDPOINT, 0))
        if self._old_stream is not None:
            self._abort(self._old_stream)
            self._old_stream = None
        if before is OldSseState.READY:
            self.engine.connection_lost(now=self._now, error=ConnectionEnded(str(error)))
        else:
            self.engine.connection_failed(error, now=self._now)
