"""A client's legacy sessions over HTTP: opened in order, lost and opened anew, listened to.

Only legacy servers have sessions. A modern client passes through here with what it posts, and
leaves no trace.

Specification: 2025-11-25, basic/transports (session management, listening for messages).
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from ..errors import (
    HttpFailure,
    LocalProtocolError,
    McpError,
    PeerFault,
    SansmcpError,
    SessionExpired,
    StreamLost,
)
from ..events import (
    DeliveryFailed,
    DeviationTolerated,
    SendNotification,
    SendRequest,
    ServerStreamEnded,
    ServerStreamOpened,
)
from ..revisions import Era
from ..session.era import Outcome, ProbeOutcome
from ..states import ClientExchangeState
from ..types.methods import Method
from .answer import Answer, Content
from .client_exchanges import ClientExchange, Role
from .client_requests import Requests
from .exchange import ExchangeId

INITIALIZED_WAIT: Final = 5.0
"""Seconds that requests wait for the server to take `notifications/initialized`: some refuse what
overtakes it. Past it they leave."""

MESSAGE_WAIT: Final = 60.0
"""Seconds that a notification or a response may wait to be acknowledged, where the engine has no
request timeout to go by. Past it: aborted, and told."""

_GATE: Final = "gate"
_MESSAGE: Final = "message"


class Sessions(Requests):
    """Everything of `HttpClient` that concerns sessions, and messages without an answer."""

    def __init__(self, *args: Any, listen: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self._listen = listen
        """Whether a server may be asked for its own stream: not after it refused once."""
        self._repeated: set[int] = set()
        """Numbers of open calls that were made again once."""
        self._gate: int | None = None
        """The exchange of `notifications/initialized`, until it is known to have arrived."""
        self._behind: deque[SendRequest | SendNotification] = deque()
        self._standing: ClientExchange | None = None
        """The exchange of the server's own stream, also between two tries."""

    # what is sent --------------------------------------------------------------------------------

    def _send(self, event: SendRequest | SendNotification) -> None:
        """Post a request or a notification as soon as its turn comes."""
        if self._gate is not None:
            self._behind.append(event)
        elif isinstance(event, SendRequest):
            self._post_request(event)
        else:
            self._post_notification(event)

    def _post_notification(self, event: SendNotification) -> None:
        message = event.message
        method = message["method"]
        verdict = self.engine.verdict
        try:
            if verdict is not None and verdict.era is Era.MODERN:
                headers = self._projected(message)
            else:
                headers = self._session_headers()
        except LocalProtocolError as error:
            self._events.append(DeliveryFailed(method, error))
            return
        ex = self._post_message(event.data, headers, method)
        if method == Method.INITIALIZED:
            self._gate = ex.id
            self._timers.set((_GATE, 0), self._now + INITIALIZED_WAIT, _GATE)

    def _post_message(
        self, data: bytes, headers: list[tuple[str, str]], method: str | None
    ) -> ClientExchange:
        """Post what has no answer. `method` is a notification's; None for a response."""
        ex = self._start(
            Role.MESSAGE,
            "POST",
            self._post_headers(headers),
            data,
            method or "a response",
            self._old_endpoint or self._url,
            method is None or self._recovery.may_repeat_method(method),
            generation=self._generation,
            in_session=self._session_id is not None,
            message={"method": method},
        )
        self._watch(ex)
        return ex

    def _watch(self, ex: ClientExchange) -> None:
        # There is no call behind it, and so no deadline of the engine.
        wait = self.engine.timeouts.request or MESSAGE_WAIT
        self._timers.set((_MESSAGE, ex.id), self._now + wait, _MESSAGE)

    def _on_replaced(self, ex: ClientExchange, again: ClientExchange) -> None:
        super()._on_replaced(ex, again)
        if ex is self._standing:
            self._standing = again
        elif ex.role is Role.MESSAGE:
            self._timers.clear((_MESSAGE, ex.id))
            self._watch(again)
            if ex.id == self._gate:
                self._gate = again.id

    def _over(self, ex: ClientExchange) -> ClientExchangeState:
        self._timers.clear((_MESSAGE, ex.id))
        before = super()._over(ex)
        if ex.id == self._gate:
            self._open_gate()
        return before

    def _open_gate(self) -> None:
        """The server knows that it is initialized, or does not say so: go on."""
        self._gate = None
        self._timers.clear((_GATE, 0))
        if self._standing is None and self._old_endpoint is None:
            if self._listen:
                self._open_standing()
            else:
                self._hears_nothing(HttpFailure("the server's own stream is not asked for"))
        while self._behind and self._gate is None:
            event = self._behind.popleft()
            if isinstance(event, SendNotification):
                self._post_notification(event)
            elif event.call.request_id == event.message["id"]:
                self._post_request(event)

    def exchange_held(self, exchange: ExchangeId, now: float) -> None:
        """`exchange` is not on its way, for somebody has to be authorized first: no deadline of it runs.

        Harmless for one that is over. Then `exchange_released`, or `exchange_failed`.
        """
        self._tick(now)
        ex = self._exchanges.get(exchange)
        if ex is not None:
            self._timers.clear((_MESSAGE, ex.id))
            if ex.id == self._gate:
                self._timers.clear((_GATE, 0))
            if ex.awaited:
                self.engine.exchange_held(ex.message["id"], now=self._now)

    def exchange_released(self, exchange: ExchangeId, now: float) -> None:
        """`exchange` is on its way again: its deadlines start anew. Harmless for one that is over."""
        self._tick(now)
        ex = self._exchanges.get(exchange)
        if ex is not None:
            if ex.role is Role.MESSAGE:
                self._watch(ex)
            if ex.id == self._gate:
                self._timers.set((_GATE, 0), self._now + INITIALIZED_WAIT, _GATE)
            if ex.awaited:
                self.engine.exchange_released(ex.message["id"], now=self._now)

    # how messages are taken ------------------------------------------------------------------------

    def _taken(self, ex: ClientExchange, answer: Answer) -> None:
        """The server took a notification or a response. What else it says means nothing."""
        if answer.status != 202 and self._old_endpoint is None:
            detail = f"{ex.subject}: acknowledged with HTTP {answer.status} instead of 202"
            self._tell(DeviationTolerated(PeerFault.UNEXPECTED_STATUS, detail))
        self._timers.clear((_MESSAGE, ex.id))
        self._drain(ex)
        if ex.id == self._gate:
            self._open_gate()

    def _on_other_head(self, ex: ClientExchange, answer: Answer) -> None:
        match ex.role:
            case Role.STANDING if answer.content is Content.STREAM:
                self._standing_opened(ex)
            case Role.MESSAGE if answer.ok:
                self._taken(ex, answer)
            case _ if answer.content is Content.NONE:
                self._drain(ex)
                self._on_other_body(ex, answer, b"")
            case _:
                self._collect(ex)

    def _on_other_body(self, ex: ClientExchange, answer: Answer, body: bytes | bytearray) -> None:
        error = self._failure(ex, answer, body)
        if ex.role is not Role.MESSAGE:
            self._on_other_failure(ex, error)
            return
        method = ex.message["method"]
        message = self._read_error(body) if answer.content is Content.JSON else None
        lost = (answer.status == 404 and ex.in_session) or self._lost_by_quirk(ex, message)
        if lost and method != Method.INITIALIZED:
            text = f"{ex.subject}: the server forgot the session"
            self._not_taken(ex, SessionExpired(text, status=404, retryable=True))
            self._reopen(ex)
        elif message is not None and not answer.denies:
            data = message.data
            self._not_taken(ex, McpError(message.code, message.message, data, http_status=answer.status))
        else:
            self._not_taken(ex, error)

    def _not_taken(self, ex: ClientExchange, error: SansmcpError) -> None:
        self._tell(DeliveryFailed(ex.message["method"], error))
        if ex.id == self._gate:
            self._open_gate()

    def _on_other_failure(self, ex: ClientExchange, error: HttpFailure) -> None:
        if ex.role is Role.STANDING:
            self._standing_failed(ex, error)
        elif ex.role is Role.MESSAGE:
            self._not_taken(ex, error)

    # sessions that are lost --------------------------------------------------------------------------

    def _session_expired(self, ex: ClientExchange) -> bool:
        call = ex.call
        assert call is not None
        if self._recovery.reopen_session and call.number not in self._repeated:
            self._reopen(ex)
            if self._recovery.may_repeat(call):
                self._repeated.add(call.number)
                self.engine.send_again(call, now=self._now)
                return True
        self._fail_expired(ex)
        return True

    def _reopen(self, ex: ClientExchange) -> None:
        """Open a new session, unless that was done since `ex` was begun."""
        if ex.generation == self._generation and self._recovery.reopen_session:
            self.engine.session_lost(now=self._now)

    def _fail_expired(self, ex: ClientExchange) -> None:
        text = f"{ex.subject}: the server forgot the session"
        told = ProbeOutcome(kind=Outcome.HTTP_STATUS, status=404, detail=text)
        self._fail(ex, SessionExpired(text, status=404, retryable=True), told)

    def _on_new_session(self) -> None:
        """What belonged to an earlier session will not be answered any more."""
        if self._standing is not None:
            self._let_go_of(self._standing)
            self._standing = None
        for ex in list(self._by_call.values()):
            if ex.generation != self._generation and not ex.modern:
                self._fail_expired(ex)

    # the server's own stream -----------------------------------------------------------------------

    def _open_standing(self) -> None:
        self._standing = self._start(
            Role.STANDING,
            "GET",
            self._get_headers(),
            b"",
            "the server's own stream",
            self._url,
            generation=self._generation,
            in_session=self._session_id is not None,
            stream=self._new_stream(standing=True),
        )

    def _standing_opened(self, ex: ClientExchange) -> None:
        stream = ex.stream
        assert stream is not None
        self._open_stream(ex)
        if not stream.opened:
            stream.opened = True
            self._tell(ServerStreamOpened())

    def _standing_failed(self, ex: ClientExchange, error: HttpFailure) -> None:
        """The stream was refused, or is not there any more."""
        stream = ex.stream
        assert stream is not None
        if error.retryable and stream.may_retry(self._reconnect):
            self._pause(ex, stream, error)
            return
        self._close_stream(ex)
        if error.retryable or error.status in (401, 403) or stream.opened:
            if stream.tries:
                text = f"{ex.subject}: gone after {stream.tries} tries; at last: {error}"
                error = StreamLost(text, status=error.status, fault=PeerFault.STREAM_ENDED, retryable=True)
            self._tell(ServerStreamEnded(error))
            self._hears_nothing(error)
            return
        # Such a server has no stream of its own. It is not asked again.
        self._listen = False
        self._hears_nothing(error)
        if error.status != 405:
            detail = f"{ex.subject}: refused with HTTP {error.status} instead of 405"
            self._tell(DeviationTolerated(PeerFault.UNEXPECTED_STATUS, detail))

    def _hears_nothing(self, error: HttpFailure) -> None:
        """What the server has to tell by itself does not come."""
        self.engine.pushes_ended(error, now=self._now)

    # time ----------------------------------------------------------------------------------------

    def _on_timer(self, kind: str, number: int) -> None:
        match kind:
            case "gate":
                self._open_gate()
            case "message":
                ex = self._exchanges[number]
                self._abort(ex)
                text = f"{ex.subject}: not acknowledged in time"
                self._not_taken(ex, HttpFailure(text, retryable=True))
            case _:
                super()._on_timer(kind, number)
