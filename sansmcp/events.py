"""Everything an engine says, one class per thing, complete when published.

Two kinds come out of an engine's pulls, in one order: *to the wire* (`to_wire` is True; a transport
carries and consumes them) and *to the application*. Commands are named as verbs, received things in
the past tense.

Events are slotted and compare by identity; they are made on the path of every message, where a
frozen class would cost twice as much. Treat them as read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from .errors import AuthorizationFailed, CloseReason, PeerFault, RemoteProtocolError, SansmcpError
from .records import record
from .revisions import Era, Revision
from .session.typing import parsed_result, typed_result

if TYPE_CHECKING:
    from .auth.resource_server import Verifier
    from .session.calls import Call, IncomingRequest
    from .session.era import Evidence, Verdict
    from .session.rounds import IncomingQuestion, Round
    from .types.lifecycle import Implementation, ServerCapabilities
    from .types.subscriptions import SubscriptionFilter
    from .wire.jsonrpc import RequestId


class Event:
    """Base of all events."""

    __slots__ = ()
    to_wire: ClassVar[bool] = False


class WireEvent(Event):
    """Base of what a transport has to carry out."""

    __slots__ = ()
    to_wire: ClassVar[bool] = True


# to the wire -------------------------------------------------------------------------------------


@record
class SendRequest(WireEvent):
    """Send a JSON-RPC request and hand back whatever answers it."""

    call: Call
    """The call that this request serves; its later requests (pages, retries) carry other ids."""
    message: dict[str, Any]
    """The envelope, for transports that derive headers from it."""
    data: bytes
    """The same envelope encoded, without a line end."""

    @property
    def related(self) -> IncomingRequest | None:
        """The received request on whose stream it belongs; None: connection-wide."""
        return self.call.related

    def __repr__(self) -> str:
        return f"SendRequest({self.message['method']} id={self.message['id']!r})"


@record
class SendNotification(WireEvent):
    """Send a JSON-RPC notification."""

    message: dict[str, Any]
    data: bytes
    related: IncomingRequest | None = None
    """The received request on whose stream it belongs (progress, logs); None: connection-wide."""

    def __repr__(self) -> str:
        return f"SendNotification({self.message['method']})"


@record
class SendResponse(WireEvent):
    """Send a JSON-RPC response (for a 2025-03-26 batch: the list of its responses)."""

    message: dict[str, Any] | list[dict[str, Any]]
    data: bytes
    request: IncomingRequest | None
    """What it answers; None when the message could not be read far enough to become a request."""
    origin: Hashable = None
    """The exchange it belongs to, where the transport has exchanges."""

    def __repr__(self) -> str:
        if isinstance(self.message, list):
            return f"SendResponse(batch of {len(self.message)})"
        kind = "error" if "error" in self.message else "result"
        return f"SendResponse({kind} id={self.message.get('id')!r})"


@record
class AbandonRequest(WireEvent):
    """Stop waiting for a request's answer: close its exchange, where the transport has one each."""

    call: Call
    request_id: RequestId
    """Of the message to give up: a call may have sent several."""


@record
class Reconnect(WireEvent):
    """Start the peer again, then call the engine's ``connection_restored``."""

    reason: str
    """One line for people."""


@record
class CloseConnection(WireEvent):
    """Nothing more will be said: end the transport, after everything sent before."""


@record
class VerifyToken(WireEvent):
    """Find out who is behind an access token, then call the server's ``token_verified``.

    ``verification_failed`` if nobody can tell.
    """

    exchange: int
    """Names the question: the exchange that brought the token first."""
    token: str
    """A secret."""
    verifier: Verifier
    """What is to be called with it; what it returns may have to be awaited."""

    def __repr__(self) -> str:
        return f"VerifyToken({self.exchange})"


# to the application: both roles ------------------------------------------------------------------


@record
class ResultReady(Event):
    """A call ended with a result. A tool's own failure is a result too: see `is_error`."""

    call: Call
    raw: dict[str, Any]
    """The result exactly as the peer sent it (a list-all verb: its pages put together)."""
    revision: Revision | None
    """The revision under which the result was made, for typing it."""
    parser: Callable[[dict[str, Any]], Any] | None = attrs.field(default=None, repr=False)
    """What an extension reads its own type of result with."""
    age: float | None = None
    """Seconds since it was received, where a cache had it; None: just now."""
    stale: bool = False
    """Whether a cache had it longer than its server allows: asking anew failed."""
    _typed: Any = attrs.field(default=None, init=False)

    @property
    def result(self) -> Any:
        """The result as the class its method prescribes (the raw dict for a custom method).

        Built at the first access. Raises RemoteProtocolError (INVALID_RESULT) when the raw result
        does not have the prescribed shape.
        """
        if self._typed is None and self.parser is not None:
            self._typed = parsed_result(self.call.method, self.raw, self.parser)
        elif self._typed is None:
            self._typed = typed_result(self.call.method, self.raw, self.revision)
        return self._typed

    @property
    def is_error(self) -> bool:
        """Whether a tool reports its own failure (`isError`)."""
        return self.raw.get("isError") is True

    def __repr__(self) -> str:
        return f"ResultReady({self.call!r}{', is_error' if self.is_error else ''})"


@record
class RequestFailed(Event):
    """A call ended without a result."""

    call: Call
    error: SansmcpError
    """`McpError` when the peer answered with an error; a `CallFailure` when the call ended here."""


@record
class RequestReceived(Event):
    """The peer asks for something. Answer once with ``respond`` or ``respond_error``."""

    request: IncomingRequest


@record
class RequestCancelled(Event):
    """The peer no longer wants an answer. Stop the work; an answer would not be sent."""

    request: IncomingRequest
    reason: str | None
    """What the peer says of it, for people."""


@record
class NotificationReceived(Event):
    """A notification that this library gives no meaning of its own."""

    method: str
    params: dict[str, Any] = attrs.field(repr=False)
    session: Hashable = None
    """The session it came in, where the transport has several."""


@record
class ProgressReported(Event):
    """The peer reports progress of a call.

    Specification: 2026-07-28, basic/patterns/progress.
    """

    call: Call
    progress: float
    """How far it is, in whatever the peer counts; more each time."""
    total: float | None
    """How far it will be in the end; None where that is not known."""
    message: str | None
    """For people."""


class Harmless(Enum):
    """Why a message was ignored though nobody did wrong."""

    LATE_RESPONSE = auto()
    """The answer came after its call had ended here."""
    LATE_PROGRESS = auto()
    LATE_CHANGE = auto()
    """Told on a subscription that had ended here."""
    LATE_CANCEL = auto()
    """Cancelled after it was answered."""
    UNKNOWN_NOTIFICATION = auto()
    AFTER_CLOSE = auto()
    UNDELIVERABLE = auto()
    """Ours, and not sent: the client left before, or takes no stream that could carry it."""
    UNKNOWN_ELICITATION = auto()
    """A page is done that nobody was sent to, or that was done before."""
    UNASKED_ANSWER = auto()
    """An answer of a client to what its request was not asked."""
    LATE_REDIRECT = auto()
    """A browser came back, and nobody waited for one."""
    OTHER_EVENT = auto()
    """An event of a stream whose type says that it carries no message: a server's own ping."""


@record
class MessageIgnored(Event):
    """A message, or a line that is none, had no effect."""

    reason: PeerFault | Harmless
    detail: str
    """One line for people. May quote a bounded excerpt of the peer's text."""

    @property
    def error(self) -> RemoteProtocolError | None:
        """The peer's fault as an error, or None when it did nothing wrong."""
        if isinstance(self.reason, PeerFault):
            return RemoteProtocolError(self.reason, self.detail)
        return None


@record
class DeviationTolerated(Event):
    """The peer deviated from the protocol and was understood nevertheless."""

    fault: PeerFault
    detail: str
    """One line for people. May quote a bounded excerpt of the peer's text."""
    call: Call | None = None
    """The one it happened in, where it belongs to one."""


@record
class QuirkUsed(Event):
    """The server deviated from the protocol in a way that the user chose to go along with."""

    name: str
    """The name of the `Quirk`."""
    detail: str
    """One line for people."""
    call: Call | None = None
    """The one it happened in, where it belongs to one."""


@record
class LimitHit(Event):
    """A bound was reached: one of `Limits`, of a policy, or of whoever else has some."""

    limit: str
    """The name of the bound, as ``max_message``."""
    detail: str
    """One line for people."""


@record
class AccessUndecided(Event):
    """Nobody could tell who makes a request, or what he may do: it was answered 503.

    The fault is on the server's side: a verifier that raised or did not answer, a rule that raised.
    """

    detail: str
    """What failed, without anything of the token."""


@record
class SessionStarted(Event):
    """Server: a legacy client opened its session. Client: the handshake is complete."""

    revision: Revision
    peer: Implementation | None
    """As it says of itself: for display, never for decisions."""
    session: Hashable = None
    """Which one, where the transport has several."""


@record
class SessionEnded(Event):
    """The engine is closed; it comes once. `error` is None after an orderly end."""

    error: SansmcpError | None
    session: Hashable = None
    """Which one, where the transport has several; None for the transport as a whole."""


# to the application: server ----------------------------------------------------------------------


@record
class ResourceWatched(Event):
    """Server: a client wants to hear of changes of a resource, and none did before (either era)."""

    uri: str


@record
class ResourceUnwatched(Event):
    """Server: no client of this engine wants to hear of changes of a resource any more.

    A server over HTTP has several engines: its `watched` tells whether another one still does.
    """

    uri: str


# to the application: client ----------------------------------------------------------------------


@record
class EraDecided(Event):
    """It is known how the server speaks; queued calls leave now."""

    verdict: Verdict
    """What to remember: give it to the next connection as ``prior``."""
    server_info: Implementation | None
    """As the server says of itself: for display, never for decisions."""
    capabilities: ServerCapabilities | None
    """None where nothing was asked (a pinned or remembered modern version)."""
    instructions: str | None
    """What the server has to say to a model that uses it."""
    evidence: Sequence[Evidence]
    """What was tried and what came of it, in order."""

    @property
    def era(self) -> Era:
        """That of the verdict."""
        return self.verdict.era

    @property
    def revision(self) -> Revision:
        """That of the verdict."""
        return self.verdict.revision


@record
class InputRequired(Event):
    """The server wants to know something before it goes on. Answer with ``provide_input``.

    In both eras, whether it asked by a request of its own or by its answer to a call.

    Specification: 2026-07-28, basic/patterns/mrtr.
    """

    call: Call | None
    """The call that it is for; None where a legacy server does not say. It stays open meanwhile."""
    requests: Mapping[str, IncomingQuestion]
    """What is asked for, by the keys to answer under. Empty only for a call with ``auto_rounds=False``."""
    round: Round
    """The handle to answer by."""


@record
class InputWithdrawn(Event):
    """Nobody waits any more for what an `InputRequired` asked for: take the question off the screen."""

    round: Round
    reason: str
    """One line for people."""


@record
class ElicitationCompleted(Event):
    """What the user had to do on a page that a server sent them to is done (2025-11-25).

    Specification: 2025-11-25, client/elicitation (completion notifications).
    """

    elicitation_id: str
    """That of the question's params."""


@record
class LogReceived(Event):
    """The server logged something.

    Specification: 2026-07-28, server/utilities/logging.
    """

    level: str
    """One of the eight of syslog, from ``debug`` to ``emergency``."""
    logger: str | None
    """Who in the server says it."""
    data: Any
    """Any JSON value, commonly text."""


class ListKind(Enum):
    """The lists that a server may announce changes of; the value is the wire's name for it."""

    TOOLS = "tools"
    RESOURCES = "resources"
    PROMPTS = "prompts"


@record
class ListChanged(Event):
    """A list of the server changed; read it again.

    Specification: 2026-07-28, basic/patterns/subscriptions.
    """

    kind: ListKind
    call: Call | None = None
    """The `listen` on which it was told; None for a legacy session where nobody listens."""


@record
class ResourceUpdated(Event):
    """A resource that was subscribed to changed, or one that lies inside it.

    Specification: 2026-07-28, server/resources, basic/patterns/subscriptions.
    """

    uri: str
    """Of what changed."""
    call: Call | None = None
    """The `listen` on which it was told; None for a legacy session where nobody listens."""


@record
class SubscriptionOpened(Event):
    """From now on the server tells of changes: what was read before may be out of date."""

    call: Call
    honored: SubscriptionFilter
    """What it will tell of: all that was asked for, or less."""
    refused: SubscriptionFilter
    """What was asked for and will not be told."""


@record
class SubscriptionInterrupted(Event):
    """A subscription was lost and will be asked for again; until then changes are missed."""

    call: Call
    error: SansmcpError
    """How it was lost."""
    attempt: int
    """How often it will have been asked for again, counted from 1."""
    retry_at: float
    """When, in the seconds of ``now``."""


@record
class ChangesMissed(Event):
    """A subscription that was interrupted is open again: read again what you rely on.

    It comes right after the `SubscriptionOpened`.
    """

    call: Call


@record
class SubscriptionClosed(Event):
    """A subscription that was open has ended. It is the end of its call."""

    call: Call
    reason: CloseReason
    error: SansmcpError | None = None
    """What ended it, unless that was this side or the server's result."""


@record
class ToolExcluded(Event):
    """A tool was left out of a list, because it cannot be called over HTTP as it is defined."""

    name: str
    """Empty where the definition has none."""
    reason: str
    """One line for people: where in its input schema, and what is wrong."""


@record
class DeliveryFailed(Event):
    """The server did not take a notification or a response; nobody will send it again."""

    method: str | None
    """The notification's method; None for a response."""
    error: SansmcpError
    """Why it was not taken."""


@record
class ServerStreamOpened(Event):
    """A legacy server's own stream is open: it can send requests and notifications at any time.

    Specification: 2025-11-25, basic/transports (listening for messages from the server).
    """


@record
class ServerStreamEnded(Event):
    """A legacy server's own stream is gone, and will not be asked for again in this session.

    Changes may have been missed, and will not be told. `error` says why.
    """

    error: SansmcpError


@record
class RedirectNeeded(Event):
    """An authorization server sends the user's browser back to an address on this side: which one?

    Answer with ``redirect_ready``, once requests to it are heard.
    """

    preferred: str | None
    """The one that the authorization server knows from earlier. With another one, this client makes
    itself known anew."""


@record
class AuthorizationUrlReady(Event):
    """The user is to open `url` in a browser, and log in.

    Hand the address at which the browser arrives in the end to ``redirect_received``.
    """

    url: str
    """A secret until it was used."""
    redirect_uri: str
    """Where the browser arrives, with a query."""
    issuer: str
    """The authorization server: for display."""
    scopes: tuple[str, ...]
    """What is asked for; empty: what the authorization server thinks fit."""

    def __repr__(self) -> str:
        return f"AuthorizationUrlReady(issuer={self.issuer!r}, scopes={self.scopes!r})"


@record
class AuthorizationGranted(Event):
    """There is a token. What waited for it goes on."""

    issuer: str
    """The authorization server."""
    scopes: tuple[str, ...]
    """What was granted, as far as the authorization server says it."""
    refreshed: bool
    """Whether it was had without anybody being asked, for one that is not valid any more."""


@record
class AuthorizationRefused(Event):
    """There is no token, and what waited for it has failed with `error`."""

    error: AuthorizationFailed


@record
class TokensNotKept(Event):
    """A `TokenStore` could not keep what it was given, which is used as long as this client lives; or it
    could not say what it has.

    `error` says why.
    """

    error: OSError


@record
class PeerGone(Event):
    """The server ended or the connection broke; each open call has failed."""

    returncode: int | None
    """The exit status of the process, negative for a signal; None where there is none, or none is known."""
    stderr_tail: str
    """Its last words on standard error, at most `Limits.max_stderr_tail` bytes."""
    restarting: bool
    """Whether the transport starts it again. Calls made meanwhile wait."""


__all__ = [
    "AbandonRequest",
    "AccessUndecided",
    "AuthorizationGranted",
    "AuthorizationRefused",
    "AuthorizationUrlReady",
    "ChangesMissed",
    "CloseConnection",
    "DeliveryFailed",
    "DeviationTolerated",
    "ElicitationCompleted",
    "EraDecided",
    "Event",
    "Harmless",
    "InputRequired",
    "InputWithdrawn",
    "LimitHit",
    "ListChanged",
    "ListKind",
    "LogReceived",
    "MessageIgnored",
    "NotificationReceived",
    "PeerGone",
    "ProgressReported",
    "Reconnect",
    "RedirectNeeded",
    "RequestCancelled",
    "RequestFailed",
    "RequestReceived",
    "ResourceUnwatched",
    "ResourceUpdated",
    "ResourceWatched",
    "ResultReady",
    "SendNotification",
    "SendRequest",
    "SendResponse",
    "ServerStreamEnded",
    "ServerStreamOpened",
    "SessionEnded",
    "SessionStarted",
    "SubscriptionClosed",
    "SubscriptionInterrupted",
    "SubscriptionOpened",
    "TokensNotKept",
    "ToolExcluded",
    "VerifyToken",
    "WireEvent",
]
