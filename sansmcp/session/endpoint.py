"""What both roles share: decode once, sort by kind, keep calls and requests, queue events.

The engines derive from `Endpoint` and add meaning. An input never raises for what a peer did.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from ..errors import (
    CallCancelled,
    CallTimeout,
    ErrorCode,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    PeerFault,
    RemoteProtocolError,
    SansmcpError,
    may_emit,
)
from ..events import (
    DeviationTolerated,
    Event,
    Harmless,
    LimitHit,
    MessageIgnored,
    ProgressReported,
    RequestCancelled,
    RequestFailed,
    SendNotification,
    SendRequest,
    SendResponse,
    SessionEnded,
)
from ..limits import Limits, Timeouts
from ..revisions import Revision
from ..states import CallInput, RequestInput, RequestState
from ..wire import jsonrpc
from ..wire.jsoncodec import JsonCodec, JsonError, JsonValue, default_codec
from ..wire.jsonrpc import RequestId
from .calls import BatchReply, Call, CallTable, IncomingRequest

if TYPE_CHECKING:
    from .snapshot import Snapshot

_SHOWN: Final = 32
"""Digits of a peer's number that are shown."""
_TIMEOUT_TEXT: Final = {
    "timeout": "no answer for {seconds:g} s",
    "total_timeout": "not finished after {seconds:g} s",
}


class Endpoint(ABC):
    """One end of a conversation: base of `ClientEngine` and `ServerEngine`.

    After every input or verb: drain the events, then re-arm the timer for `next_timeout()`. Early,
    late and repeated timeouts are harmless; a `now` that goes back is taken as the last one.
    """

    def __init__(
        self,
        *,
        now: float,
        limits: Limits,
        timeouts: Timeouts,
        codec: JsonCodec | None,
        strict: bool,
    ) -> None:
        self.limits: Final = limits
        self.timeouts: Final = timeouts
        self.strict: Final = strict
        self._codec: Final = codec or default_codec(max_depth=limits.max_depth, reject_duplicate_keys=strict)
        self._now = now
        self._events: deque[Event] = deque()
        self._calls = CallTable(limits, timeouts)
        self._requests: dict[Hashable, IncomingRequest] = {}
        self._origin: Hashable = None
        """The exchange of the message that is being taken."""
        self._answered_garbage = False

    # pulls ---------------------------------------------------------------------------------------

    def next_event(self) -> Event | None:
        """The next event, or None when there is none for now."""
        return self._events.popleft() if self._events else None

    def events(self) -> Iterator[Event]:
        """Every event that is there, also those that verbs called meanwhile add."""
        while self._events:
            yield self._events.popleft()

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return self._calls.deadlines.next()

    @property
    def wants_data(self) -> bool:
        """False while reading more from the peer would exceed a limit (back-pressure)."""
        return len(self._events) < self.limits.max_buffered_events

    @property
    def now(self) -> float:
        """The time of the last input or verb."""
        return self._now

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        return {
            **self._calls.stats(),
            "events": len(self._events),
            "open_requests": len(self._requests),
        }

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """The calls of the application that have not ended, oldest first."""
        return tuple(call for call in self._calls if not call.internal)

    @property
    def open_requests(self) -> tuple[IncomingRequest, ...]:
        """What the peer asked and is owed an answer to, oldest first."""
        return tuple(self._requests.values())

    # a conversation that is put aside ------------------------------------------------------------

    def snapshot(self, *, now: float) -> Snapshot:
        """Where the conversation stands, as plain JSON: a new engine made alike goes on by `restore`.

        It holds what goes back to the peer unchanged (`requestState`), the params of calls and the answers
        given so far: keep it as you keep a secret. This engine is left as it is.

        Raises LocalProtocolError while events wait to be drained, after the end, and for what cannot be
        taken along: an open exchange of HTTP, a call of an extension.
        """
        now = self._tick(now)
        if self._events:
            raise LocalProtocolError("snapshot: drain the events first")
        check_open(self._closed, "snapshot")
        return self._write_snapshot(now)

    def restore(self, snapshot: Mapping[str, JsonValue], *, now: float) -> None:
        """Take up the conversation of `snapshot`, on a connection where it can go on.

        `open_calls` and `open_requests` have its handles; deadlines have the time that they had left. What
        handlers were at is not in it: answer its requests, or run them again.

        Raises LocalProtocolError, with nothing changed, for anything but a snapshot of such an engine, and
        when this one was used.
        """
        self._read_snapshot(snapshot, self._tick(now))

    @abstractmethod
    def _write_snapshot(self, now: float) -> Snapshot: ...

    @abstractmethod
    def _read_snapshot(self, snapshot: Mapping[str, JsonValue], now: float) -> None: ...

    # inputs --------------------------------------------------------------------------------------

    def receive_message(
        self, raw: bytes | bytearray | str | JsonValue, *, now: float, origin: Hashable = None
    ) -> None:
        """Take one message of the peer: its JSON text as bytes or str, or the decoded value.

        `origin` names the exchange it came in, where the transport has exchanges; what is sent
        about it carries the name too. Never raises for what the peer did.
        """
        self._tick(now)
        self._origin = origin
        self._take_message(raw)
        self._origin = None  # an exchange has much in it that need not outlive it

    def _take_message(self, raw: bytes | bytearray | str | JsonValue) -> None:
        if self._closed or self._input_ended:
            self._ignore(Harmless.AFTER_CLOSE, "received after the end of the connection")
            return
        if isinstance(raw, (bytes, bytearray, memoryview, str)):
            try:
                value = self._codec.loads(raw)
            except JsonError as error:
                self._on_unreadable(raw, error)
                return
        else:
            value = raw
        if type(value) is list:
            self._on_batch(value)
        else:
            self._dispatch(jsonrpc.classify(value), None)

    def receive_oversize(self, request_id: RequestId | None, *, like_response: bool, now: float) -> None:
        """A transport discarded a message over `max_message`.

        `request_id` is its id, where that could be read: the call that it answered fails, the
        request that it was is refused.
        """
        self._tick(now)
        limit = self.limits.max_message
        text = f"larger than {limit} bytes (max_message)"
        self._emit(LimitHit("max_message", f"a message was discarded: {text}"))
        if request_id is None or self._closed:
            return
        if not like_response:
            self._refuse_oversize(request_id, text)
            return
        call = self._calls.waiting(request_id)
        if call is not None:
            cause = RemoteProtocolError(PeerFault.MESSAGE_TOO_LARGE, f"the answer is {text}")
            self._on_invalid_result(call, cause)

    @abstractmethod
    def connection_lost(self, *, now: float, detail: str) -> None:
        """Nothing can be sent or received any more; `detail` says why, for people."""

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        now = self._tick(now)
        for call, reason in self._calls.expired(now):
            seconds = call.total_timeout if reason == "total_timeout" else call.idle_timeout
            text = _TIMEOUT_TEXT[reason].format(seconds=seconds)
            self._on_call_timeout(call, CallTimeout(f"{call.subject}: {text}", reason=reason))

    # verbs ---------------------------------------------------------------------------------------

    def cancel(self, call: Call, *, now: float, reason: str | None = None) -> None:
        """End a call here and tell the peer. Harmless when the call has ended.

        The call fails with CallCancelled; a late answer is ignored.
        """
        self._tick(now)
        if call.done:
            return
        self._tell_cancelled(call, reason)
        self._end(call, CallInput.CANCEL, CallCancelled(f"{call.subject}: cancelled"))

    def respond_error(self, request: IncomingRequest, error: McpError, *, now: float) -> bool:
        """Refuse a request of the peer with a JSON-RPC error.

        Returns False, with nothing sent, when the peer cancelled the request meanwhile. Raises
        LocalProtocolError for a second answer, data that is no JSON, or a code that the protocol
        forbids to send.
        """
        self._tick(now)
        if not self._still_owed(request):
            return False
        if not may_emit(error.code, request.era):
            raise LocalProtocolError(
                f"error code {error.code} is reserved and may not be sent to a {request.era} peer"
            )
        self._send_answer(request, self._error_message(request.id, error))
        return True

    # for the engines -----------------------------------------------------------------------------

    _closed = False
    _input_ended = False
    """Whether the peer said that it sends nothing more."""

    def _tick(self, now: float) -> float:
        if now > self._now:  # noqa: PLR1730  (`max` is a call, on the path of every message)
            self._now = now
        return self._now

    def _emit(self, event: Event) -> None:
        self._events.append(event)

    def _ignore(self, reason: PeerFault | Harmless, detail: str) -> None:
        self._emit(MessageIgnored(reason, detail))

    def _tolerate(self, fault: PeerFault, detail: str, call: Call | None = None) -> bool:
        """Report a tolerated deviation. False in strict mode: then it is not tolerated."""
        if self.strict:
            return False
        self._emit(DeviationTolerated(fault, detail, call))
        return True

    def _excerpt(self, text: bytes | bytearray | str) -> str:
        bound = self.limits.max_excerpt
        head = text[: bound + 1]
        shown = head if isinstance(head, str) else bytes(head).decode("utf-8", "replace")
        return repr(shown[:bound]) + ("…" if len(text) > bound else "")

    def _encode(self, message: Any) -> bytes:
        """The only place that encodes. Raises LocalProtocolError for a non-JSON value."""
        return self._codec.dumps(message)

    # sending

    @abstractmethod
    def _stamp(self, call: Call, params: dict[str, Any], token: RequestId | None) -> dict[str, Any]:
        """The params as the era wants them on the wire."""

    def _send_call(self, call: Call) -> None:
        """Put a call on the wire, for the first time or again. Raises before any change."""
        request_id = self._calls.next_id()
        token = request_id if call.wants_progress else None
        params = call.params if call.walk is None else call.walk.params(call.params)
        message = jsonrpc.request(request_id, call.method, self._stamp(call, params, token))
        data = self._encode(message)
        self._calls.sent(call, request_id, token, self._now)
        self._emit(SendRequest(call, message, data))

    def _send_notification(
        self, method: str, params: dict[str, Any] | None, related: IncomingRequest | None = None
    ) -> None:
        message = jsonrpc.notification(method, params)
        self._emit(SendNotification(message, self._encode(message), related))

    def _send_answer(self, request: IncomingRequest, message: dict[str, Any]) -> None:
        """Send the one response to `request`, alone or with the rest of its batch."""
        data = self._encode(message)
        request.machine.fire(RequestInput.ANSWER)
        self._requests.pop(request.key, None)
        batch = request.batch
        if batch is None:
            self._emit(SendResponse(message, data, request, request.origin))
            return
        batch.messages.append(message)
        batch.owed -= 1
        self._flush_batch(batch)

    _ids_per_origin = False
    """Whether request ids are unique within an exchange only, not on the whole connection."""

    def _key(self, request_id: RequestId, origin: Hashable) -> Hashable:
        """Where a request is found in the table."""
        return (origin, request_id) if self._ids_per_origin else request_id

    def _still_owed(self, request: IncomingRequest) -> bool:
        """Whether an answer may be sent; False after the peer's cancel (or its end)."""
        if request.machine.state is RequestState.CANCELLED:
            return False
        if self._requests.get(request.key) is not request:
            raise LocalProtocolError(f"{request!r}: answered already, or not of this connection")
        return True

    def _send_error(
        self, request_id: RequestId | None, error: McpError, batch: BatchReply | None = None
    ) -> None:
        """Answer something that did not become a request."""
        message = self._error_message(request_id, error)
        if batch is None:
            self._emit(SendResponse(message, self._encode(message), None, self._origin))
        else:
            batch.messages.append(message)

    def _error_message(self, request_id: RequestId | None, error: McpError) -> dict[str, Any]:
        return jsonrpc.error_response(
            request_id,
            error.code,
            error.message,
            jsonrpc.ABSENT if error.data is None else error.data,
            null_id=self._null_error_ids,
        )

    @property
    def _null_error_ids(self) -> bool:
        """Whether an error without a known id says ``id: null`` (legacy) or has no id (modern)."""
        return False

    def _flush_batch(self, batch: BatchReply) -> None:
        if batch.complete and batch.messages:
            self._emit(SendResponse(batch.messages, self._encode(batch.messages), None, batch.origin))

    # ends of calls

    def _end(self, call: Call, how: CallInput, error: SansmcpError) -> None:
        self._calls.end(call, how)
        if not call.internal:
            self._emit(RequestFailed(call, error))

    def _fail(self, call: Call, error: SansmcpError) -> None:
        self._end(call, CallInput.FAIL, error)

    def _on_call_timeout(self, call: Call, error: CallTimeout) -> None:
        self._tell_cancelled(call, str(error))
        self._end(call, CallInput.TIME_OUT, error)

    @abstractmethod
    def _tell_cancelled(self, call: Call, reason: str | None) -> None:
        """Let the peer know that nobody waits any more, the way the transport has for it."""

    # receiving

    def _dispatch(self, message: jsonrpc.Message, batch: BatchReply | None) -> None:
        self._answered_garbage = self._answered_garbage and type(message) is jsonrpc.InvalidMessage
        match message:
            case jsonrpc.ResultResponse():
                call = self._find_call(message.id)
                if call is not None:
                    self._on_result(call, message.result)
            case jsonrpc.Notification():
                self._on_notification(message)
            case jsonrpc.Request():
                if self._key(message.id, self._origin) in self._requests:
                    self._send_error(
                        message.id,
                        McpError(ErrorCode.INVALID_REQUEST, "a request with this id is still open"),
                        batch,
                    )
                    self._ignore(
                        PeerFault.DUPLICATE_REQUEST_ID,
                        f"request id {message.id!r} is in use; {message.method} was refused",
                    )
                else:
                    self._on_request(message, batch)
            case jsonrpc.ErrorResponse():
                if message.id is None:
                    self._on_unanswerable(message)
                else:
                    call = self._find_call(message.id)
                    if call is not None:
                        if message.repaired is not None and not self._tolerate(
                            PeerFault.INVALID_RESPONSE, message.repaired, call
                        ):
                            fault = PeerFault.INVALID_RESPONSE
                            self._on_invalid_result(call, RemoteProtocolError(fault, message.repaired))
                            return
                        self._on_error(call, McpError(message.code, message.message, message.data))
            case jsonrpc.InvalidMessage():
                self._on_invalid(message, batch)

    def _on_batch(self, value: list[JsonValue]) -> None:
        members = jsonrpc.split_batch(value, self._allows_batch(value), self.limits.max_batch)
        if isinstance(members, jsonrpc.InvalidMessage):
            self._on_invalid(members, None)
            return
        batch = BatchReply(self._origin)
        for member in members:
            self._dispatch(jsonrpc.classify(member), batch)
        batch.sealed = True
        self._flush_batch(batch)

    @abstractmethod
    def _allows_batch(self, value: list[JsonValue]) -> bool:
        """Whether the revision spoken has batches."""

    def _find_call(self, request_id: RequestId) -> Call | None:
        """The call that a response belongs to; anything else is ignored and told."""
        return self._calls.waiting(request_id) or self._on_stray_response(request_id)

    def _on_stray_response(self, request_id: RequestId) -> Call | None:
        """No call waits under this id: the one that is meant all the same, if that is tolerated."""
        if self._calls.recently_ended(request_id):
            self._ignore(Harmless.LATE_RESPONSE, f"response {request_id!r} came after its call ended")
            return None
        if isinstance(request_id, str) and request_id.isdecimal() and len(request_id) < 20:
            call = self._calls.waiting(int(request_id))
            if (
                call is not None
                and str(call.request_id) == request_id
                and self._tolerate(
                    PeerFault.RESPONSE_ID_TYPE,
                    f"request id {call.request_id} came back as the string {request_id!r}",
                    call,
                )
            ):
                return call
        self._ignore(PeerFault.UNKNOWN_RESPONSE_ID, f"response to {request_id!r}, which nobody asked")
        return None

    def _take_progress(self, params: Mapping[str, Any]) -> None:
        """`notifications/progress` about a call of ours."""
        token, progress = params.get("progressToken"), params.get("progress")
        total, text = params.get("total"), params.get("message")
        if not _is_number(progress) or isinstance(token, bool) or not isinstance(token, (int, str)):
            self._ignore(PeerFault.MALFORMED_NOTIFICATION, "progress without token or number")
            return
        call = self._calls.by_token(token)
        if call is None:
            if self._calls.recently_ended(token):
                self._ignore(Harmless.LATE_PROGRESS, f"progress {token!r} after its call ended")
            else:
                self._ignore(PeerFault.UNKNOWN_PROGRESS_TOKEN, f"no call has the token {token!r}")
            return
        if call.last_progress is not None and progress <= call.last_progress:
            before, after = (repr(number)[:_SHOWN] for number in (call.last_progress, progress))
            detail = f"{call.subject}: progress went from {before} to {after}"
            if not self._tolerate(PeerFault.PROGRESS_NOT_INCREASING, detail, call):
                self._ignore(PeerFault.PROGRESS_NOT_INCREASING, detail)
                return
        call.last_progress = progress
        self._calls.progressed(call, self._now)
        self._emit(
            ProgressReported(
                call,
                progress,
                total if _is_number(total) else None,
                text if isinstance(text, str) else None,
            )
        )

    def _take_cancelled(self, params: Mapping[str, Any]) -> None:
        """`notifications/cancelled` about a request of the peer."""
        target = params.get("requestId")
        if isinstance(target, bool) or not isinstance(target, (int, str)):
            self._ignore(PeerFault.MALFORMED_CANCEL, "a cancel that names no request")
            return
        request = self._requests.get(self._key(target, self._origin))
        if request is None:
            self._ignore(Harmless.LATE_CANCEL, f"request {target!r} is not open: answered, or never made")
            return
        reason = params.get("reason")
        self._cancel_request(request, reason if isinstance(reason, str) else None)

    def _cancel_request(self, request: IncomingRequest, reason: str | None) -> None:
        request.machine.fire(RequestInput.CANCEL)
        self._requests.pop(request.key, None)
        self._tell_request_cancelled(request, reason)
        if request.batch is not None:
            request.batch.owed -= 1
            self._flush_batch(request.batch)

    def _tell_request_cancelled(self, request: IncomingRequest, reason: str | None) -> None:
        self._emit(RequestCancelled(request, reason))

    def _accept(self, request: IncomingRequest, batch: BatchReply | None) -> None:
        """Enter a request into the table of those that are owed an answer."""
        request.origin = self._origin
        request.key = self._key(request.id, request.origin)
        self._requests[request.key] = request
        if batch is not None:
            batch.owed += 1
            request.batch = batch

    def _fail_invalid_response(self, message: jsonrpc.InvalidMessage) -> bool:
        """A malformed response whose id could be read ends that call at once (True)."""
        raw = message.raw
        if message.id is None or not isinstance(raw, dict) or "method" in raw:
            return False
        call = self._calls.waiting(message.id)
        if call is None:
            return False
        cause = RemoteProtocolError(message.fault, message.detail)
        self._on_invalid_result(call, cause)
        return True

    def _on_invalid_result(self, call: Call, cause: RemoteProtocolError) -> None:
        self._fail(call, InvalidResponse(f"{call.subject}: {cause}", cause))

    def _refuse_oversize(self, request_id: RequestId, text: str) -> None:
        """Answer a request that was too large to be read, where such an answer is allowed."""
        return

    def _end_session(self, error: SansmcpError | None) -> None:
        self._closed = True
        self._emit(SessionEnded(error))

    # what each role answers for itself

    @abstractmethod
    def _on_unreadable(self, raw: bytes | bytearray | str, error: JsonError) -> None: ...

    @abstractmethod
    def _on_invalid(self, message: jsonrpc.InvalidMessage, batch: BatchReply | None) -> None: ...

    @abstractmethod
    def _on_request(self, message: jsonrpc.Request, batch: BatchReply | None) -> None: ...

    @abstractmethod
    def _on_notification(self, message: jsonrpc.Notification) -> None: ...

    @abstractmethod
    def _on_result(self, call: Call, result: dict[str, Any]) -> None: ...

    @abstractmethod
    def _on_error(self, call: Call, error: McpError) -> None: ...

    @abstractmethod
    def _on_unanswerable(self, message: jsonrpc.ErrorResponse) -> None: ...


def progress_params(
    request: IncomingRequest, progress: float, total: float | None, message: str | None
) -> dict[str, Any]:
    """What is said of how far `request` is. Raises LocalProtocolError for what is no number, or no text."""
    if not _is_number(progress) or not (total is None or _is_number(total)):
        raise LocalProtocolError(f"{request!r}: progress and total are numbers")
    if not (message is None or isinstance(message, str)):
        raise LocalProtocolError(f"{request!r}: the message of progress is text")
    params: dict[str, Any] = {"progressToken": request.progress_token, "progress": progress}
    if total is not None:
        params["total"] = total
    if message is not None and request.revision >= Revision.V2025_03_26:
        params["message"] = message
    return params


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_open(closed: bool, verb: str) -> None:
    """Raise LocalProtocolError when `verb` is called after the end."""
    if closed:
        raise LocalProtocolError(f"{verb}: the connection has ended; make a new engine")
