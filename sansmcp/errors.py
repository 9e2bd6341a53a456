"""Everything that can go wrong, in three trees that never mix.

* `LocalProtocolError`: this side used the library wrongly. Raised at once, nothing was sent.
* `RemoteProtocolError`: the peer broke the protocol. Never raised out of an input method; it
  travels inside an event, with one `PeerFault` per kind of fault.
* `McpError`: the peer answered a request with a JSON-RPC error. It alone has a numeric code.
* `CallFailure`: a call ended here, without an answer of the peer (timeout, cancel, dead peer).

All of them derive from `SansmcpError`.

Specification: 2026-07-28, basic/index (error responses, error codes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum, auto
from typing import Any, Final

from .revisions import Era, Revision


class ErrorCode(IntEnum):
    """The JSON-RPC error codes that the protocol gives a meaning to."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    RESOURCE_NOT_FOUND = -32002
    """2025-11-25 and earlier; modern peers say `INVALID_PARAMS`."""
    HEADER_MISMATCH = -32020
    """Modern, over HTTP: the headers of a request do not say what its body says."""
    MISSING_CLIENT_CAPABILITY = -32021
    """Modern: the request takes something that its client does not declare."""
    UNSUPPORTED_PROTOCOL_VERSION = -32022
    """Modern: the error's data lists the versions that the server speaks."""
    URL_ELICITATION_REQUIRED = -32042
    """2025-11-25 only: the user has to visit pages first, which the error's data lists."""


MODERN_ONLY_CODES: Final = frozenset(
    {
        ErrorCode.HEADER_MISMATCH,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
"""Codes that only a modern peer sends: an answer with one of them settles the era."""


def known_code(code: int) -> ErrorCode | None:
    """Return the code's name in the table, or None for a code without a defined meaning."""
    try:
        return ErrorCode(code)
    except ValueError:
        return None


def may_emit(code: int, era: Era) -> bool:
    """Whether a peer of `era` may be sent `code`.

    Modern peers are never sent the retired range -32000…-32019 nor an undefined code out of the
    range reserved for the specification (-32020…-32099); legacy peers never see modern codes.
    """
    if -32019 <= code <= -32000:
        return era is Era.LEGACY and code == ErrorCode.RESOURCE_NOT_FOUND
    if -32099 <= code <= -32020:
        if code == ErrorCode.URL_ELICITATION_REQUIRED:
            return era is Era.LEGACY
        return era is Era.MODERN and code in MODERN_ONLY_CODES
    return True


class PeerFault(Enum):
    """What a peer did wrong: one member per kind, so that a test or a metric can count them."""

    # bytes and JSON
    INVALID_UTF8 = auto()
    INVALID_JSON = auto()
    JSON_TOO_DEEP = auto()
    DUPLICATE_KEY = auto()
    MESSAGE_TOO_LARGE = auto()
    TRUNCATED_MESSAGE = auto()
    HEADER_FRAMING = auto()
    """The peer speaks the `Content-Length` framing of the Language Server Protocol."""
    BYTE_ORDER_MARK = auto()

    # event streams
    EVENT_TOO_LARGE = auto()
    TRUNCATED_EVENT = auto()

    # HTTP/1.1
    INVALID_HTTP_HEAD = auto()
    HEAD_TOO_LARGE = auto()
    NON_ASCII_HEADER = auto()
    BARE_LINE_FEED = auto()
    FOLDED_HEADER = auto()
    """A header field continued on a line of its own, which was abolished."""
    AMBIGUOUS_LENGTH = auto()
    """A head from which two readers may see two lengths of the body."""
    UNSUPPORTED_TRANSFER_CODING = auto()
    UNSUPPORTED_HTTP_VERSION = auto()
    BODY_TOO_LARGE = auto()
    INVALID_CHUNK = auto()
    TRUNCATED_HTTP = auto()
    """The connection ended within a head or a body."""
    UNSOLICITED_DATA = auto()
    """A server sent what no request asked for."""
    SENT_TOO_FAR_AHEAD = auto()
    """A client sent more than is kept for it until its last request is answered."""

    # HTTP exchanges
    FOREIGN_HOST = auto()
    """A request for another host than is served here, or for none."""
    FOREIGN_ORIGIN = auto()
    """A request of a page from elsewhere."""
    WRONG_ENDPOINT = auto()
    """A path, or a method of HTTP, that is not served."""
    WRONG_MEDIA_TYPE = auto()
    """A body that is not said to be JSON, or a client that does not take what it has to."""
    MISSING_HEADER = auto()
    """A header that the revision requires is not there."""
    UNKNOWN_SESSION = auto()
    """A session that has ended, or never was."""
    UNKNOWN_EVENT_ID = auto()
    """`Last-Event-ID` names nothing that can be resumed."""

    # exchanges of HTTP
    UNEXPECTED_STATUS = auto()
    UNEXPECTED_CONTENT_TYPE = auto()
    """An answer that is neither JSON nor an event stream: a login page, a proxy's apology."""
    CONTENT_CODING = auto()
    """A compressed body, which nobody asked for."""
    EMPTY_ANSWER = auto()
    """A request was acknowledged instead of answered."""
    STREAM_ENDED = auto()
    """An event stream ended without the response it was for."""
    INVALID_SESSION_ID = auto()
    INVALID_ENDPOINT = auto()
    """The address to send messages to is none, or is at another origin."""

    # authorization
    INVALID_CHALLENGE = auto()
    """A ``WWW-Authenticate`` header that is no list of challenges, or names an unusable address."""
    UNUSABLE_METADATA = auto()
    """A document about authorization that is none, or is about somebody else."""
    FOREIGN_REDIRECT = auto()
    """What came back from the browser was not asked for."""
    UNAUTHORIZED = auto()
    """A request without a token, or with one that is not valid here."""
    INVALID_CREDENTIALS = auto()
    """An ``Authorization`` header that cannot be read."""
    INSUFFICIENT_SCOPE = auto()
    """A request whose token gives fewer rights than it needs."""

    # WebSocket
    INVALID_UPGRADE = auto()
    """An opening handshake that is none, or is not to be accepted."""
    MISSING_SUBPROTOCOL = auto()
    """The subprotocol `mcp` was not offered, or not selected."""
    UNKNOWN_SUBPROTOCOL = auto()
    """A server selected a subprotocol that was not offered."""
    INVALID_FRAME = auto()
    BINARY_MESSAGE = auto()
    """A message of bytes, where each message is text."""

    # JSON-RPC envelope
    NOT_A_MESSAGE = auto()
    """JSON, but no JSON-RPC message: not an object, or without a ``jsonrpc: "2.0"`` member."""
    INVALID_ID = auto()
    INVALID_METHOD = auto()
    INVALID_PARAMS = auto()
    INVALID_RESPONSE = auto()
    """Both of result and error, neither, or a malformed one."""
    NOTIFICATION_WITH_ID = auto()
    REQUEST_WITHOUT_ID = auto()
    BATCH_NOT_ALLOWED = auto()
    EMPTY_BATCH = auto()
    BATCH_TOO_LARGE = auto()
    DUPLICATE_REQUEST_ID = auto()
    UNKNOWN_RESPONSE_ID = auto()
    RESPONSE_ID_TYPE = auto()
    """A response whose id equals the request's only after conversion (``"1"`` for ``1``)."""
    UNANSWERABLE_ERROR = auto()
    """An error response without an id: the peer could not read something we sent."""

    # meaning
    UNKNOWN_METHOD = auto()
    UNEXPECTED_REQUEST = auto()
    """A server request where the revision has none, or one the client did not declare."""
    MALFORMED_NOTIFICATION = auto()
    MISSING_META = auto()
    INVALID_META = auto()
    HEADER_MISMATCH = auto()
    """A header says other than the body that it repeats."""
    UNSUPPORTED_VERSION = auto()
    NOT_INITIALIZED = auto()
    ALREADY_INITIALIZED = auto()
    INVALID_INITIALIZE_RESULT = auto()
    INVALID_DISCOVER_RESULT = auto()
    INVALID_RESULT = auto()
    """A result that does not have the shape its method prescribes."""
    UNKNOWN_RESULT_TYPE = auto()
    INVALID_CACHE_HINT = auto()
    MISSING_RESULT_TYPE = auto()
    MISSING_CONTENT = auto()
    INVALID_TOOL_NAME = auto()
    """A tool is called what no tool should be called; it can be called nevertheless."""
    INVALID_OUTPUT = auto()
    """Structured content that is not what the tool's output schema promises."""
    UNUSABLE_OUTPUT_SCHEMA = auto()
    """An output schema against which nothing can be checked: the tool's results are not."""
    INPUT_NOT_ALLOWED = auto()
    """Input is required for a request that has to be answered at once."""
    INVALID_INPUT_REQUIRED = auto()
    """Input is required, and neither a question nor a state says which; or they are malformed."""
    UNDECLARED_INPUT = auto()
    """A question that the client did not say it can answer."""
    UNDECLARED_EXTENSION = auto()
    """A request of an extension that its sender did not declare on it."""
    INVALID_QUESTION = auto()
    """A question whose params are not those of its method."""
    INVALID_ANSWER = auto()
    """An answer to a question is not what was asked for."""
    INVALID_STATE = auto()
    """A request is made again with a state that was not given for it, or too long ago."""
    UNKNOWN_PROGRESS_TOKEN = auto()
    PROGRESS_NOT_INCREASING = auto()
    MALFORMED_CANCEL = auto()
    NOT_ACKNOWLEDGED = auto()
    """Something of a subscription came before its acknowledgment."""
    ALREADY_ACKNOWLEDGED = auto()
    UNKNOWN_SUBSCRIPTION = auto()
    """A change that was told on a subscription which nobody has."""
    NOT_SUBSCRIBED = auto()
    """A change that was told, or granted, without having been asked for."""
    CURSOR_LOOP = auto()
    WRITE_CLOSED = auto()
    """The peer stopped reading what we write."""


class SansmcpError(Exception):
    """Base of every error of this library."""


class LocalProtocolError(SansmcpError):
    """The library was used in a way the protocol or the current state does not allow.

    Raised before anything is sent; the engine's state is unchanged.
    """


class InvalidAnswer(LocalProtocolError):  # noqa: N818  (an answer is invalid, not the library)
    """An answer to a server's question is not what was asked for. Nothing was sent; answer again.

    `key` names the question. `problems` has one line for each thing that is wrong, none of which
    quotes the answer.
    """

    def __init__(self, message: str, *, key: str, problems: Sequence[str]) -> None:
        super().__init__(message)
        self.key: Final = key
        self.problems: Final = tuple(problems)


class RemoteProtocolError(SansmcpError):
    """The peer broke the protocol.

    `fault` names the kind. `hint` is the JSON-RPC error code with which a peer that still listens
    should be told, or None when it should not be answered.
    """

    def __init__(self, fault: PeerFault, message: str, *, hint: ErrorCode | None = None) -> None:
        super().__init__(message)
        self.fault: Final = fault
        self.hint: Final = hint

    def __repr__(self) -> str:
        return f"RemoteProtocolError({self.fault.name}, {str(self)!r})"


class McpError(SansmcpError):
    """A JSON-RPC error: as the peer sent it, or as a handler wants it sent.

    `code` is an integer, `message` one line for people, `data` any JSON value or None. Data that
    came from a peer is kept verbatim. `http_status` is the status it came with where that was an
    error of HTTP too, else None.
    """

    def __init__(self, code: int, message: str, data: Any = None, *, http_status: int | None = None) -> None:
        super().__init__(message)
        self.code: Final = int(code)
        self.message: Final = message
        self.data: Final = data
        self.http_status: Final = http_status

    def __str__(self) -> str:
        name = known_code(self.code)
        label = f"{self.code} {name.name}" if name is not None else str(self.code)
        return f"{self.message} ({label})"

    def __repr__(self) -> str:
        return f"McpError({self.code}, {self.message!r})"


class CapabilityMissing(McpError):  # noqa: N818  (a kind of McpError)
    """The client did not declare what is needed of it, on this request or for its session.

    Raised in a handler that asks all the same, in both eras. A modern client that was not spared it
    gets -32021, with what it would have to declare.

    Specification: 2026-07-28, basic/index (error codes), basic/patterns/mrtr (server requirements).
    """

    def __init__(self, required: Mapping[str, Any]) -> None:
        super().__init__(
            ErrorCode.MISSING_CLIENT_CAPABILITY,
            f"the client did not declare: {', '.join(_paths(required))}",
            {"requiredCapabilities": dict(required)},
        )
        self.required: Final = dict(required)


def _paths(tree: Mapping[str, Any]) -> list[str]:
    """The dotted names of the leaves."""
    paths: list[str] = []
    for name, inner in tree.items():
        below = _paths(inner) if isinstance(inner, Mapping) else []
        paths += [f"{name}.{path}" for path in below] or [name]
    return paths


class CallFailure(SansmcpError):  # noqa: N818  (an end of a call, like McpError, not a kind of bug)
    """A call ended without an answer of the peer. Has no code: it never came over the wire."""


class CallTimeout(CallFailure):
    """No answer within the allowed time; `reason` is the name of the deadline that passed.

    ``timeout``, ``total_timeout``, ``ack_timeout``, ``round_timeout`` or ``rounds_timeout``, which
    `Timeouts` sets, or ``task_timeout``, which `ClientTasks` does.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason: Final = reason


class CallCancelled(CallFailure):
    """The call was cancelled on this side."""


class QuestionFailed(CallFailure):
    """A question to a legacy client was not answered.

    `error` says why: what the client answered instead (`McpError`, `InvalidResponse`), that it said
    nothing in time (`CallTimeout`), or that it is gone (`ConnectionEnded`).
    """

    def __init__(self, error: SansmcpError) -> None:
        super().__init__(f"the client did not answer: {error}")
        self.error: Final = error


class InvalidResponse(CallFailure):
    """The peer answered the call with something that is no valid response to it."""

    def __init__(self, message: str, cause: RemoteProtocolError) -> None:
        super().__init__(message)
        self.fault: Final = cause.fault
        self.__cause__ = cause


class OutputMismatch(InvalidResponse):
    """The structured content of a tool's result is not what the tool's output schema promises.

    Only where results are checked and nothing is tolerated. `result` is what the server answered, as it
    sent it.
    """

    def __init__(self, message: str, cause: RemoteProtocolError, result: Mapping[str, Any]) -> None:
        super().__init__(message, cause)
        self.result: Final = result


class HttpFailure(CallFailure):
    """An HTTP exchange brought no answer: a wrong status or content, or the connection broke.

    `status` is the response's, None when there was none. `fault` names what the server did wrong,
    None when it did nothing wrong. `excerpt` is the begin of what it sent instead, as text of
    bounded length. `retryable` tells that the same request may succeed if it is made again, be it
    that a tool may then run twice; `retry_after` is how long (seconds) the server asks to wait.

    Specification: 2026-07-28, basic/transports/streamable-http.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        fault: PeerFault | None = None,
        excerpt: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status: Final = status
        self.fault: Final = fault
        self.excerpt: Final = excerpt
        self.retryable: Final = retryable
        self.retry_after: Final = retry_after

    def about(self, subject: str, status: int | None = None) -> HttpFailure:
        """The same failure, told of `subject`; `status` is the response's where that is not told yet."""
        return HttpFailure(
            f"{subject}: {self}",
            status=self.status or status,
            fault=self.fault,
            excerpt=self.excerpt,
            retryable=self.retryable,
            retry_after=self.retry_after,
        )


class NetworkProblem(Enum):
    """Where an exchange came to nothing, on the way to its server."""

    NAME = auto()
    """The host's name has no address."""
    REFUSED = auto()
    """Nobody listens there."""
    UNREACHABLE = auto()
    """No way leads there."""
    TIMEOUT = auto()
    """The connection was not made in time."""
    TLS = auto()
    """There was no secure connection: the certificate, for example, is not trusted."""
    PROXY = auto()
    """The proxy did not let it through."""
    FORBIDDEN = auto()
    """It is at an address that a server must not send its client to."""
    LOST = auto()
    """The connection ended too early."""
    NO_ROOM = auto()
    """Too many exchanges were waiting for a connection."""


class NetworkFailure(HttpFailure):
    """An HTTP exchange brought no answer since there was no connection, or it was lost.

    `problem` tells what was in the way. `status` is the response's where that had begun, or the proxy's
    where that refused.
    """

    def __init__(
        self,
        message: str,
        problem: NetworkProblem,
        *,
        status: int | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, status=status, retryable=retryable)
        self.problem: Final = problem

    def about(self, subject: str, status: int | None = None) -> NetworkFailure:
        """The same failure, told of `subject`; `status` is the response's where that is not told yet."""
        message, status = f"{subject}: {self}", self.status or status
        return NetworkFailure(message, self.problem, status=status, retryable=self.retryable)


class AuthorizationRequired(HttpFailure):
    """The server wants to know who asks (401), or does not let them (403).

    `challenges` are the values of its ``WWW-Authenticate`` headers, verbatim.

    Specification: 2026-07-28, basic/authorization.
    """

    def __init__(self, message: str, *, status: int, challenges: Sequence[str], excerpt: str = "") -> None:
        super().__init__(message, status=status, excerpt=excerpt)
        self.challenges: Final = tuple(challenges)


class AuthorizationProblem(Enum):
    """Where an attempt to be authorized came to nothing."""

    FORBIDDEN_ADDRESS = auto()
    """A server names an address that must not be asked: not ``https``, or within a private network."""
    NO_METADATA = auto()
    """Neither the server nor its authorization server says how one is authorized."""
    WRONG_RESOURCE = auto()
    """The metadata is about another server."""
    WRONG_ISSUER = auto()
    """The authorization server says that it is another one: in its metadata, or in its answer."""
    UNSUPPORTED = auto()
    """The authorization server lacks what is needed, PKCE with S256 for example."""
    NO_CLIENT = auto()
    """This client is not known to the authorization server, and cannot make itself known."""
    NOT_ASKED = auto()
    """The user was not asked, or whoever asks gave up; or the application has no assertion to show."""
    WRONG_STATE = auto()
    """What came back from the browser belongs to no question of ours."""
    DENIED = auto()
    """The user or the authorization server says no."""
    INVALID_ANSWER = auto()
    """The authorization server answered with something that means nothing."""
    TOKEN_REFUSED = auto()
    """The authorization server gives no token."""
    TOKEN_REJECTED = auto()
    """The server does not take a token that was made for it just now."""
    INSUFFICIENT_SCOPE = auto()
    """More rights were asked for, and the server still wants more."""
    TIMEOUT = auto()
    """Nobody answered in time."""
    UNREACHABLE = auto()
    """There was no connection to the authorization server, or to where the metadata is."""
    CANCELLED = auto()
    """Nobody waits for it any more."""


class AuthorizationFailed(HttpFailure):
    """The server wants to be sent a token, and none was to be had.

    `problem` tells where that ended. `code` is the error that the authorization server named, as in
    ``access_denied``; empty where it named none. `status` is that of the server's answer.

    Specification: 2026-07-28, basic/authorization.
    """

    def __init__(
        self,
        message: str,
        problem: AuthorizationProblem,
        *,
        code: str = "",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, retryable=retryable, retry_after=retry_after)
        self.problem: Final = problem
        self.code: Final = code

    def about(self, subject: str, status: int | None = None) -> AuthorizationFailed:
        """The same failure, told of `subject`; `status` is the response's where that is not told yet."""
        message, status = f"{subject}: {self}", self.status or status
        return AuthorizationFailed(
            message,
            self.problem,
            code=self.code,
            status=status,
            retryable=self.retryable,
            retry_after=self.retry_after,
        )


class RedirectRefused(HttpFailure):
    """The server points elsewhere, and the request does not follow.

    A request goes on with method, body and headers, so only 307 and 308 are followed, and only
    within the origin. `location` is where it points, without query.
    """

    def __init__(self, message: str, *, status: int, location: str) -> None:
        super().__init__(message, status=status)
        self.location: Final = location


class StreamLost(HttpFailure):
    """An event stream ended or broke before it brought the response, and could not be resumed."""


class SessionExpired(HttpFailure):
    """The server forgot the legacy session in which the request was made.

    A new session is opened; this request was not repeated, because it must not be without leave, or
    because it was repeated before.

    Specification: 2025-11-25, basic/transports (session management).
    """


class RoundsExceeded(CallFailure):
    """The server asked for more input more often than `Limits.max_rounds` allows.

    `rounds` is how many times the call was made again; `result` is what the server answered last, as
    it sent it.
    """

    def __init__(self, message: str, rounds: int, result: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.rounds: Final = rounds
        self.result: Final = result


class InputRefused(CallFailure):
    """This side does not answer what the server asked before it would go on; the cause says why."""


class CallSuspended(CallFailure):
    """The call was put aside with ``suspend``: it goes on where ``resume`` is given what that returned."""


class CloseReason(Enum):
    """Why a subscription ended."""

    LOCAL = "local"
    """By this side."""
    GRACEFUL = "graceful"
    """By the server, which said so."""
    LOST = "lost"
    """Without a word: changes may have been missed."""
    LAGGED = "lagged"
    """By this side, because changes were not read as fast as they came."""


class SubscriptionLost(CallFailure):
    """A subscription ended in a way that changes may have been missed: read again what matters.

    `reason` is LOST or LAGGED; the cause is the error that ended it, if there was one.
    """

    def __init__(self, message: str, *, reason: CloseReason) -> None:
        super().__init__(message)
        self.reason: Final = reason


class PaginationError(CallFailure):
    """A list could not be read to its end; `items` holds what was read.

    `looped` says that the server gave a cursor a second time.
    """

    def __init__(self, message: str, items: Sequence[Any], *, looped: bool = False) -> None:
        super().__init__(message)
        self.looped: Final = looped
        self.items: Final = tuple(items)


class ConnectionEnded(CallFailure):
    """The connection ended before the answer came.

    `returncode` and `stderr_tail` are known for a child process: its exit status (negative for a
    signal) and the last bytes it wrote to standard error, decoded.
    """

    def __init__(self, message: str, *, returncode: int | None = None, stderr_tail: str = "") -> None:
        super().__init__(message)
        self.returncode: Final = returncode
        self.stderr_tail: Final = stderr_tail

    def about(self, subject: str) -> ConnectionEnded:
        """The same end, as told to the call `subject` that was open."""
        text = f"{subject}: {self}"
        return type(self)(text, returncode=self.returncode, stderr_tail=self.stderr_tail)


class SpawnFailed(ConnectionEnded):
    """The server's process could not be started at all."""


class ConnectFailure(CallFailure):
    """The connection could not be brought into use. Base of the errors below."""


class ConnectTimeout(ConnectFailure):
    """Probe, fallback and handshake together took longer than allowed."""


class NoCommonVersion(ConnectFailure):
    """Client and server have no protocol version in common."""

    def __init__(self, requested: Sequence[str], supported: Sequence[str]) -> None:
        super().__init__(
            f"no protocol version in common: we speak {', '.join(requested) or 'none'}; "
            f"the server offers {', '.join(supported) or 'none'}"
        )
        self.requested: Final = tuple(requested)
        self.supported: Final = tuple(supported)


class UnsupportedProtocolVersion(ConnectFailure):
    """The server answered `initialize` with a version that this client does not know."""

    def __init__(self, requested: Revision, answered: str) -> None:
        super().__init__(
            f"asked for protocol version {requested}, the server answered {answered!r}, "
            "which this client does not accept"
        )
        self.requested: Final = requested
        self.answered: Final = answered


class HandshakeFailed(ConnectFailure):
    """The server refused the connection or answered the handshake with an unusable message."""
