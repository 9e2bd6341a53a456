"""A client's event streams: their events, their ends, and how a legacy one is asked for again.

Specification: 2026-07-28, basic/transports/streamable-http (receiving messages); 2025-11-25,
basic/transports (sending messages, resumability and redelivery).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Final

from ..client import ClientEngine
from ..errors import HttpFailure, PeerFault, SansmcpError, StreamLost
from ..events import Event, Harmless, LimitHit, MessageIgnored
from ..revisions import Era
from ..session.era import Outcome, ProbeOutcome
from ..states import ClientExchangeState, StreamInput
from ..wire.jsoncodec import JsonError
from ..wire.peek import excerpt, sight
from ..wire.sse import MESSAGE, ServerSentEvent, SseFault
from .answer import Answer, failure
from .client_exchanges import Carrier, ClientExchange, Role
from .exchange import EVENT_STREAM
from .headers import legacy_headers
from .resume import EventStream, ReconnectPolicy
from .url import parse_url

SESSION_ID: Final = "mcp-session-id"
LAST_EVENT_ID: Final = "last-event-id"

_RESUME: Final = "resume"
_SHORTEST_SECRET: Final = 6


class Streams(Carrier):
    """Everything of `HttpClient` that concerns event streams."""

    def __init__(
        self,
        engine: ClientEngine,
        url: str,
        *,
        now: float,
        headers: list[tuple[str, str]],
        reconnect: ReconnectPolicy,
    ) -> None:
        super().__init__(parse_url(url), now=now, limits=engine.limits)
        self.engine: Final = engine
        self._codec: Final = engine.codec
        self._reconnect = reconnect
        self._headers = headers
        self._session_id: str | None = None
        self._paused: dict[int, ClientExchange] = {}
        """Exchanges whose streams broke and wait to be asked for again, by the stream's number."""
        self._last_stream = 0
        self._hidden: tuple[str, ...] = ()
        """What goes along on requests besides and is not shown."""

    # what is sent --------------------------------------------------------------------------------

    def _session_headers(self) -> list[tuple[str, str]]:
        """By what a legacy server knows the session and its revision."""
        verdict = self.engine.verdict
        headers = []
        if verdict is not None and verdict.era is Era.LEGACY:
            headers = [(name.lower(), value) for name, value in legacy_headers(verdict.revision)]
        if self._session_id is not None:
            headers.append((SESSION_ID, self._session_id))
        return headers

    def _get_headers(self, last_id: str | None = None) -> list[tuple[str, str]]:
        headers = [
            ("accept", EVENT_STREAM),
            ("accept-encoding", "identity"),
            ("cache-control", "no-store"),
            *self._session_headers(),
            *self._headers,
        ]
        if last_id is not None:
            headers.append((LAST_EVENT_ID, last_id))
        return headers

    # events --------------------------------------------------------------------------------------

    def _new_stream(self, *, standing: bool) -> EventStream:
        self._last_stream += 1
        return EventStream(self._last_stream, standing)

    def _open_stream(self, ex: ClientExchange) -> None:
        """The response of `ex` is the stream, or goes on with it."""
        stream = ex.stream = ex.stream or self._new_stream(standing=False)
        stream.machine.fire(StreamInput.OPEN)
        self._stream(ex)

    def _read_stream(self, ex: ClientExchange) -> None:
        stream, decoder = ex.stream, ex.decoder
        if decoder is None:
            return
        done = False
        while not done and (found := decoder.next_data()) is not None:
            if isinstance(found, list):
                for data in found:
                    self._take_data(ex, data)
                    if self._is_done(ex):
                        break
            elif isinstance(found, SseFault):
                self._on_stream_fault(ex, found)
            elif found.event == MESSAGE:
                self._take_data(ex, found.data)
            else:
                self._on_other_event(ex, found)
            done = self._is_done(ex)
        if stream is not None and not ex.modern:  # a modern one cannot be resumed
            stream.note(decoder)

    def _is_done(self, ex: ClientExchange) -> bool:
        """Whether nothing of a stream is wanted any more, for its request has ended."""
        if ex.call is not None and not ex.awaited and ex.state is ClientExchangeState.STREAMING:
            self._close_stream(ex)
            self._drain(ex)
        return ex.decoder is None

    def _take_data(self, ex: ClientExchange, data: bytes) -> None:
        try:
            value = self._codec.loads(data)
        except JsonError:
            value = None
        if isinstance(value, (dict, list)):
            if ex.stream is not None:
                ex.stream.tries = 0
            self._take_value(ex, value)
        else:
            self.engine.receive_message(data, now=self._now, origin=ex.id)  # which tells what it is

    @abstractmethod
    def _take_value(self, ex: ClientExchange, value: dict[str, Any] | list[Any]) -> None:
        """Take a decoded message that came in `ex`."""

    def _on_other_event(self, ex: ClientExchange, event: ServerSentEvent) -> None:
        """An event that says it is no message."""
        kind = excerpt(event.event.encode(), 64)
        self._tell(MessageIgnored(Harmless.OTHER_EVENT, f"{ex.subject}: an event of type {kind}"))

    def _on_stream_fault(self, ex: ClientExchange, fault: SseFault) -> None:
        if fault.fault is not PeerFault.EVENT_TOO_LARGE:
            shown = excerpt(fault.head, self._limits.max_excerpt)
            self._tell(MessageIgnored(fault.fault, f"{ex.subject}: {shown}"))
            return
        limit = f"{self._limits.max_event} bytes (max_event)"
        self._tell(LimitHit("max_event", f"{ex.subject}: an event larger than {limit} was discarded"))
        seen = sight(fault.head)
        request_id = ex.request_id if seen.id is None and ex.awaited else seen.id
        if seen.like_response and request_id is not None:
            text = f"{ex.subject}: the answer is larger than {limit}"
            error = HttpFailure(text, status=200, fault=PeerFault.EVENT_TOO_LARGE)
            told = ProbeOutcome(kind=Outcome.MALFORMED, detail=text)
            self.engine.exchange_failed(request_id, error, told, now=self._now)

    # ends ----------------------------------------------------------------------------------------

    def _on_stream_end(self, ex: ClientExchange, error: str | None) -> None:
        why = "the stream ended"
        if error is not None:
            why = f"the stream broke: {excerpt(error.encode('utf-8', 'replace'), self._limits.max_excerpt)}"
        if ex.call is None:
            self._on_other_failure(ex, self._lost(ex, why))
        elif not ex.awaited:
            self._close_stream(ex)
        elif ex.modern:
            self._close_stream(ex)
            if not self._reissued(ex):
                kind = Outcome.MALFORMED if error is None else Outcome.NETWORK_ERROR
                self._fail(ex, self._lost(ex, why), ProbeOutcome(kind=kind, detail=why))
        else:
            self._interrupted(ex, self._lost(ex, why))

    def _lost(self, ex: ClientExchange, why: str) -> StreamLost:
        before = " before the answer" if ex.call is not None else ""
        status = None if ex.answer is None else ex.answer.status
        return StreamLost(
            f"{ex.subject}: {why}{before}", status=status, fault=PeerFault.STREAM_ENDED, retryable=True
        )

    def _interrupted(self, ex: ClientExchange, error: HttpFailure) -> None:
        """The stream of a legacy request is not there: ask for it again later, or give up."""
        stream = ex.stream
        if stream is not None and ex.awaited and stream.may_retry(self._reconnect):
            self._pause(ex, stream, error)
        else:
            tries = 0 if stream is None else stream.tries
            self._close_stream(ex)
            if tries:
                why = f"the stream could not be resumed in {tries} tries; at last: {error}"
                error = self._lost(ex, why)
            self._fail(ex, error, ProbeOutcome(kind=Outcome.NETWORK_ERROR, detail=str(error)))

    def _pause(self, ex: ClientExchange, stream: EventStream, error: HttpFailure) -> None:
        stream.machine.fire(StreamInput.LOSE)
        self._paused[stream.number] = ex
        wait = max(self._reconnect.wait(stream.tries, stream.retry), error.retry_after or 0.0)
        self._timers.set((_RESUME, stream.number), self._now + wait, _RESUME)

    def _resume(self, number: int) -> None:
        """The wait is over: ask for the stream again."""
        ex = self._paused.pop(number)
        stream = ex.stream
        assert stream is not None
        stream.machine.fire(StreamInput.RETRY)
        stream.tries += 1
        again = self._start(
            Role.STANDING if stream.standing else Role.RESUME,
            "GET",
            self._get_headers(stream.last_id if stream.resumable else None),
            b"",
            ex.subject,
            self._url,
            generation=ex.generation,
            in_session=self._session_id is not None,
            call=ex.call,
            message=ex.message,
            stream=stream,
        )
        self._on_replaced(ex, again)

    def _resume_refused(self, ex: ClientExchange, answer: Answer, body: bytes | bytearray) -> None:
        """The stream that was asked for again is none."""
        error = self._failure(ex, answer, body)
        if error.retryable:
            self._interrupted(ex, error)
            return
        self._close_stream(ex)
        if not answer.denies:
            error = self._lost(ex, f"the stream could not be resumed (HTTP {answer.status})")
        self._fail(ex, error, ProbeOutcome(kind=Outcome.NETWORK_ERROR, detail=str(error)))

    def _close_stream(self, ex: ClientExchange) -> None:
        """Nothing of the stream is wanted any more."""
        stream = ex.stream
        if stream is not None and stream.machine.allows(StreamInput.END):
            stream.machine.fire(StreamInput.END)
            self._paused.pop(stream.number, None)
            self._timers.clear((_RESUME, stream.number))

    def _on_timer(self, kind: str, number: int) -> None:
        if kind == _RESUME:
            self._resume(number)

    # failures ------------------------------------------------------------------------------------

    def _fail(self, ex: ClientExchange, error: SansmcpError, told: ProbeOutcome) -> None:
        """The request of `ex` ends without an answer. Harmless when nobody waits for one."""
        if ex.awaited:
            self.engine.exchange_failed(ex.message["id"], error, told, now=self._now)

    def _failure(
        self,
        ex: ClientExchange,
        answer: Answer,
        body: bytes | bytearray = b"",
        fault: PeerFault | None = None,
    ) -> HttpFailure:
        """Why `answer` is none."""
        shown = self._without_secrets(bytes(body[: self._max_shown]))
        return failure(answer, ex.subject, ex.url, shown, self._limits.max_excerpt, fault)

    def _without_secrets(self, body: bytes) -> bytes:
        """`body` without what a page that repeats the request would give away of it."""
        own = (value for _, value in self._headers)
        secrets: Iterable[str] = (self._session_id or "", *own, *self._hidden)
        for secret in secrets:
            for part in (secret, secret.rpartition(" ")[2]):
                if len(part) >= _SHORTEST_SECRET:
                    body = body.replace(part.encode(), b"***")
        return body

    @abstractmethod
    def _on_other_failure(self, ex: ClientExchange, error: HttpFailure) -> None:
        """An exchange that is not about one request came to nothing. It is over."""

    @abstractmethod
    def _reissued(self, ex: ClientExchange) -> bool:
        """Whether the request was made again, since its answer is lost."""

    def _tell(self, event: Event) -> None:
        self._pump()
        self._events.append(event)
