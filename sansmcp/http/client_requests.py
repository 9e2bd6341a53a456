"""A client's requests over HTTP: what each of them is answered with, whichever way that comes.

`Requests` posts what the engine sends, reads the answers, and tells the engine what became of each
exchange, once. Sessions, recovery and the verbs are in `client.py`.

Specification: 2026-07-28, basic/transports/streamable-http; 2025-11-25, basic/transports.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from ..client import ClientEngine
from ..errors import AuthorizationFailed, ErrorCode, HttpFailure, LocalProtocolError, McpError, PeerFault
from ..events import DeviationTolerated, LimitHit, QuirkUsed, SendRequest, ToolExcluded
from ..session.calls import Call
from ..session.era import Outcome, ProbeOutcome
from ..session.modern import is_modern
from ..states import ClientExchangeState
from ..types.methods import Method
from ..wire.jsoncodec import JsonError
from ..wire.jsonrpc import ErrorResponse, classify
from ..wire.peek import excerpt
from .answer import Answer, Content, outcome
from .client_exchanges import ClientExchange, Role
from .client_streams import LAST_EVENT_ID, SESSION_ID, Streams
from .exchange import EVENT_STREAM, JSON
from .headers import project_headers
from .recovery import Recovery
from .resume import ReconnectPolicy
from .status import is_modern_error
from .tool_headers import ToolHeaders
from .url import Url

_OURS: Final = frozenset(
    {
        *("accept", "accept-encoding", "content-type", SESSION_ID, LAST_EVENT_ID),
        *("mcp-protocol-version", "mcp-method", "mcp-name"),
        # those of the connection and of the body's framing belong to whoever carries the exchange
        *("connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_ACCEPT: Final = f"{JSON}, {EVENT_STREAM}"
_NAME: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


def check_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The header fields that a user wants on every request, with names in lower case.

    Raises LocalProtocolError, which quotes no value, for one that HTTP does not allow or that is
    this library's to write.
    """
    checked = []
    for name, value in headers:
        key = name.lower()
        if not key or not _NAME.issuperset(key):
            raise LocalProtocolError(f"{name!r} is no name of a header")
        if key in _OURS or key.startswith("mcp-param-"):
            raise LocalProtocolError(f"the header {key} is written by the transport: do not set it")
        if not value.isascii() or not value.replace("\t", " ").isprintable():
            raise LocalProtocolError(f"the value of the header {key} has characters no header can have")
        checked.append((key, value.strip(" \t")))
    return checked


def _same(message_id: object, ex: ClientExchange) -> bool:
    """Whether an answer is the one to `ex`: also under its id as text, which the engine may tolerate."""
    return str(message_id) == str(ex.request_id)


class Requests(Streams):
    """Everything of `HttpClient` that concerns one request and its answer."""

    def __init__(
        self,
        engine: ClientEngine,
        url: str,
        *,
        now: float,
        headers: Iterable[tuple[str, str]],
        reconnect: ReconnectPolicy,
        recovery: Recovery,
    ) -> None:
        super().__init__(engine, url, now=now, headers=check_headers(headers), reconnect=reconnect)
        self._recovery = recovery
        self._by_call: dict[int, ClientExchange] = {}
        """The exchange that each open call waits for now, by the call's number."""
        self._tools = ToolHeaders(engine.limits.max_mirrored_tools)
        self._generation = 0
        """How many legacy sessions were opened."""

    # what is sent --------------------------------------------------------------------------------

    def _post_headers(self, about: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [
            ("accept", _ACCEPT),
            ("accept-encoding", "identity"),
            ("content-type", JSON),
            *about,
            *self._headers,
        ]

    def _projected(self, message: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The headers that a modern message is posted with. Raises LocalProtocolError."""
        schema = None
        if message["method"] == Method.CALL_TOOL:
            schema = self._tools.get(message["params"].get("name"))
        return [(name.lower(), value) for name, value in project_headers(message, schema)]

    def _post_request(self, event: SendRequest) -> None:
        """Post a request of the engine."""
        call, message = event.call, event.message
        modern = is_modern(message["params"])
        opening = message["method"] == Method.INITIALIZE
        if opening:
            self._session_id = None
            self._generation += 1
        old = self._old_endpoint
        try:
            if modern:
                about = self._projected(message)
            else:
                about = [] if opening else self._session_headers()
        except LocalProtocolError as error:
            # A value of the caller's, found when everything else of the request was made.
            told = ProbeOutcome(kind=Outcome.NETWORK_ERROR, detail=str(error))
            self.engine.exchange_failed(message["id"], error, told, now=self._now)
            return
        ex = self._start(
            Role.REQUEST if old is None else Role.OLD_REQUEST,
            "POST",
            self._post_headers(about),
            event.data,
            call.subject,
            self._url if old is None else old,
            self._recovery.may_repeat(call),
            generation=self._generation,
            in_session=not modern and not opening and self._session_id is not None,
            call=call,
            message=message,
            modern=modern,
        )
        if not call.internal:  # of others the end is not told
            self._by_call[call.number] = ex

    @property
    @abstractmethod
    def _old_endpoint(self) -> Url | None:
        """Where messages go to while HTTP+SSE is spoken."""

    def _on_replaced(self, ex: ClientExchange, again: ClientExchange) -> None:
        if ex.call is not None and self._by_call.get(ex.call.number) is ex:
            self._by_call[ex.call.number] = again

    # heads ---------------------------------------------------------------------------------------

    def _on_head(self, ex: ClientExchange, answer: Answer) -> None:
        match ex.role:
            case Role.REQUEST:
                self._on_request_head(ex, answer)
            case Role.RESUME if answer.content is Content.STREAM:
                self._open_stream(ex)
            case Role.OLD_REQUEST if answer.ok and answer.content is not Content.JSON:
                self._drain(ex)  # acknowledged: the answer comes on the stream
            case Role.RESUME | Role.OLD_REQUEST if answer.content is not Content.NONE:
                self._collect(ex)
            case Role.RESUME | Role.OLD_REQUEST:
                self._drain(ex)
                self._on_body(ex, b"")
            case _:
                self._on_other_head(ex, answer)

    def _on_request_head(self, ex: ClientExchange, answer: Answer) -> None:
        if answer.ok and ex.message["method"] == Method.INITIALIZE:
            self._take_session_id(answer.session_id)
        match answer.content:
            case Content.STREAM:
                self._open_stream(ex)
            case Content.NONE:
                # No body could make it an answer: there is nothing to wait for.
                self._drain(ex)
                self._no_answer(ex, b"")
            case _:
                self._collect(ex)

    def _take_session_id(self, session_id: str | None) -> None:
        if session_id is None:
            return
        limit = self._limits.max_session_id
        if len(session_id) <= limit and session_id.isascii() and session_id.isprintable() and session_id:
            if " " not in session_id:
                self._session_id = session_id
                return
        fault = PeerFault.INVALID_SESSION_ID
        detail = f"the id of the session has characters it must not have, or more than {limit}"
        self._tell(DeviationTolerated(fault, f"{detail}: it is not used"))

    @abstractmethod
    def _on_other_head(self, ex: ClientExchange, answer: Answer) -> None:
        """A response began that is not about one request."""

    # bodies --------------------------------------------------------------------------------------

    def _on_body(self, ex: ClientExchange, body: bytes | bytearray) -> None:
        answer = ex.answer
        assert answer is not None
        if ex.role is Role.RESUME:
            self._resume_refused(ex, answer, body)
        elif ex.call is None:
            self._on_other_body(ex, answer, body)
        elif answer.content is not Content.JSON:
            self._no_answer(ex, body)
        elif answer.ok:
            self._take_json(ex, body)
        else:
            self._take_error_body(ex, answer, body)

    @abstractmethod
    def _on_other_body(self, ex: ClientExchange, answer: Answer, body: bytes | bytearray) -> None:
        """A body is complete that is not about one request."""

    def _take_json(self, ex: ClientExchange, body: bytes | bytearray) -> None:
        old = ex.role is Role.OLD_REQUEST
        if not body.strip():
            if not old:
                self._no_answer(ex, b"")
            return
        try:
            value = self._codec.loads(body)
        except JsonError as error:
            if not old:
                self._no_answer(ex, body, error.fault)
            return
        if isinstance(value, (dict, list)):
            if old:
                fault, detail = PeerFault.UNEXPECTED_STATUS, "the answer came in the body of its POST"
                self._tell(DeviationTolerated(fault, f"{ex.subject}: {detail}, not on the stream", ex.call))
            self._take_value(ex, value)
        if not old:
            self._no_answer(ex, body)

    def _take_error_body(self, ex: ClientExchange, answer: Answer, body: bytes | bytearray) -> None:
        """The body of an error status: a JSON-RPC error that is about this request, or anything."""
        message = self._read_error(body)
        if ex.awaited and self._lost_by_quirk(ex, message) and self._session_expired(ex):
            return
        if message is None or not ex.awaited or not self._is_about(ex, answer, message):
            self._no_answer(ex, body)
            return
        if message.id is not None and message.id != ex.request_id:
            fault, detail = PeerFault.UNKNOWN_RESPONSE_ID, f"{ex.subject}: refused under another id"
            self._tell(DeviationTolerated(fault, detail, ex.call))
        self._refused(ex, message, answer.status)

    def _read_as(self, ex: ClientExchange, answer: Answer) -> Answer:
        if not ex.awaited or answer.content is not Content.OTHER or answer.redirects:
            return answer
        quirk = self.engine.quirks.reads_as_json(answer.content_type)
        if quirk is None:
            return answer
        kind = f"of type {answer.content_type}" if answer.content_type else "without a content type"
        self._tell(QuirkUsed(quirk.name, f"{ex.subject}: a body {kind} is read as JSON", ex.call))
        return attrs.evolve(answer, content=Content.JSON)

    def _lost_by_quirk(self, ex: ClientExchange, message: ErrorResponse | None) -> bool:
        """Whether an error means, by a quirk, that the server does not know the session."""
        if message is None or not ex.in_session or ex.answer is None:
            return False
        quirk = self.engine.quirks.lost_session(ex.answer.status, message.code, message.message)
        if quirk is not None:
            detail = f"{ex.subject}: HTTP {ex.answer.status} and error {message.code} mean a lost session"
            self._tell(QuirkUsed(quirk.name, detail, ex.call))
        return quirk is not None

    def _read_error(self, body: bytes | bytearray) -> ErrorResponse | None:
        try:
            message = classify(self._codec.loads(body))
        except JsonError:
            return None
        if not isinstance(message, ErrorResponse) or (self.engine.strict and message.repaired):
            return None
        return message

    def _is_about(self, ex: ClientExchange, answer: Answer, message: ErrorResponse) -> bool:
        """Whether an error in the body of an error status is the answer to the request.

        Its own id settles that. With another one, or none, it may be the server's word about who
        asks, about the session, or about messages in general.
        """
        own = type(message.id) is type(ex.request_id) and message.id == ex.request_id
        internal = ex.call is not None and ex.call.internal
        if answer.denies:
            return answer.status == 403 and own and not answer.challenges and not internal
        if own:
            return True
        if answer.status == 404 and ex.in_session:
            return False  # servers say so, with ids of all kinds, that they do not know the session
        if ex.message["method"] == Method.DISCOVER and internal:
            return is_modern_error(message.raw)
        return True

    def _refused(self, ex: ClientExchange, message: ErrorResponse, status: int | None = None) -> None:
        """The request was refused with a JSON-RPC error, which may have no id or another one."""
        if message.repaired:
            detail = f"{ex.subject}: {message.repaired}"
            self._tell(DeviationTolerated(PeerFault.INVALID_RESPONSE, detail, ex.call))
        error = McpError(message.code, message.message, message.data, http_status=status)
        if not (error.code == ErrorCode.HEADER_MISMATCH and self._recover_headers(ex, error)):
            self.engine.exchange_refused(ex.message["id"], error, now=self._now)

    @abstractmethod
    def _recover_headers(self, ex: ClientExchange, error: McpError) -> bool:
        """Whether the call will be made again with headers that suit the server better."""

    # what is no answer ---------------------------------------------------------------------------

    def _no_answer(self, ex: ClientExchange, body: bytes | bytearray, fault: PeerFault | None = None) -> None:
        """The response brought no answer. Harmless when the request has one."""
        answer = ex.answer
        assert answer is not None
        if not ex.awaited or (answer.status == 404 and ex.in_session and self._session_expired(ex)):
            return
        self._fail(ex, self._failure(ex, answer, body, fault), outcome(answer, ex.url))

    @abstractmethod
    def _session_expired(self, ex: ClientExchange) -> bool:
        """The server does not know the session. True: what becomes of the request is settled."""

    def _on_too_large(self, ex: ClientExchange) -> None:
        limit = f"{self._max_body} bytes (max_body)"
        self._tell(LimitHit("max_body", f"{ex.subject}: a body larger than {limit} was discarded"))
        self._abort(ex)
        text = f"{ex.subject}: the answer is larger than {limit}"
        answer = ex.answer
        status = None if answer is None else answer.status
        error = HttpFailure(text, status=status, fault=PeerFault.BODY_TOO_LARGE)
        if ex.call is None:
            self._on_other_failure(ex, error)
        else:
            self._fail(ex, error, ProbeOutcome(kind=Outcome.MALFORMED, detail=text))

    def _on_broken(self, ex: ClientExchange, error: str | HttpFailure) -> None:
        status = None if ex.answer is None else ex.answer.status
        if isinstance(error, HttpFailure):
            failure = error.about(ex.subject, status)
        else:
            text = f"{ex.subject}: {excerpt(error.encode('utf-8', 'replace'), self._limits.max_excerpt)}"
            failure = HttpFailure(text, status=status, retryable=True)
        if ex.role is Role.RESUME:
            self._interrupted(ex, failure)
        elif ex.call is None:
            self._on_other_failure(ex, failure)
        elif isinstance(failure, AuthorizationFailed) or not self._reissued(ex):
            self._fail(ex, failure, ProbeOutcome(kind=Outcome.NETWORK_ERROR, detail=str(failure)))

    # messages ------------------------------------------------------------------------------------

    def _take_value(self, ex: ClientExchange, value: dict[str, Any] | list[Any]) -> None:
        """Take a decoded message that came in `ex`."""
        if ex.awaited and isinstance(value, dict):
            if "error" in value:
                if self._take_error(ex, value):
                    return
            elif ex.modern and ex.message["method"] == Method.LIST_TOOLS and _same(value.get("id"), ex):
                self._look_at_tools(ex, value.get("result"))
        call = ex.call
        # What a legacy server asks on the stream of a call, it asks for that call.
        origin = ex.id if call is None or call.internal else call
        self.engine.receive_message(value, now=self._now, origin=origin)

    def _take_error(self, ex: ClientExchange, value: dict[str, Any]) -> bool:
        """Take an error that the exchange makes part of the request, or that can be recovered from."""
        message = classify(value)
        if not isinstance(message, ErrorResponse) or (self.engine.strict and message.repaired):
            return False
        if self._lost_by_quirk(ex, message) and self._session_expired(ex):
            return True
        probing = ex.call is not None and ex.call.internal and ex.message["method"] == Method.DISCOVER
        if message.id is None and not probing:
            self._refused(ex, message)
            return True
        if message.code == ErrorCode.HEADER_MISMATCH and _same(message.id, ex):
            return self._recover_headers(ex, McpError(message.code, message.message, message.data))
        return False

    def _look_at_tools(self, ex: ClientExchange, result: object) -> None:
        """Learn from a list of tools that passes through, and take out what cannot be called."""
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(tools, list):
            return
        first = "cursor" not in ex.message["params"]
        kept, excluded = self._tools.take(tools, first=first, last="nextCursor" not in result)
        if excluded:
            result["tools"] = kept
            for name, reason in excluded:
                self._tell(ToolExcluded(name[: self._limits.max_excerpt], reason))
        if self._tools.overflowed:
            limit = self._limits.max_mirrored_tools
            text = f"more than {limit} tools want arguments mirrored: the others get no such headers"
            self._tell(LimitHit("max_mirrored_tools", text))

    # calls that ended ----------------------------------------------------------------------------

    def _let_go(self, call: Call) -> None:
        """A call ended, perhaps not by its exchange: nobody waits for that any more."""
        ex = self._by_call.pop(call.number, None)
        if ex is not None:
            self._let_go_of(ex)

    def _let_go_of(self, ex: ClientExchange) -> None:
        self._close_stream(ex)
        if ex.role is Role.OLD_REQUEST and ex.state is ClientExchangeState.WAITING:
            self._linger(ex)  # its acknowledgement was overtaken by the answer
        elif ex.state is not ClientExchangeState.DRAINING:
            self._abort(ex)
