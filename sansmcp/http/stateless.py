"""Clients of the older revisions over HTTP without sessions: each request stands for itself.

The older revisions let a server do without: it names no session when it answers `initialize`, and
then a client names none either. Nothing is remembered of it, so that any process can answer the next
request. What that leaves of these revisions:

==============================================  ================================================
`initialize`                                    its answer, without `Mcp-Session-Id`
another request                                 its answer, as the revision has it that
                                                `MCP-Protocol-Version` names
the same without that header                    as 2025-03-26 has it, which had no such header
`Mcp-Session-Id`                                404: a client that knows another server's session
                                                opens a new one at that
GET, DELETE                                     405
questions to the client                         none: no handler can ask (`Context.can` is False)
changes of lists and of resources               not offered, and refused
`logging/setLevel`                              answered, and forgotten with it: "info" holds
a notification, a response                      202; nothing that was asked before is affected
the client leaves                               its request is cancelled: nobody comes back for it
==============================================  ================================================

Specification: 2025-11-25, basic/transports (session management, protocol version header); 2025-03-26,
basic/transports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from ..errors import LocalProtocolError, PeerFault
from ..events import SessionEnded, SessionStarted
from ..revisions import Revision, known_revision
from ..session.calls import IncomingRequest
from ..wire.jsoncodec import JsonValue
from ..wire.sse import encode_event
from .legacy import SESSION_ID, VERSION, Sessions
from .legacy_session import Session, Stream
from .responses import Exchange

_HEADERLESS: Final = Revision.V2025_03_26
"""What a request without a version header speaks: the last revision that has none."""


class Alone(Session):
    """A client for as long as one request of it takes."""

    @property
    def primes(self) -> bool:
        """Never: nobody can come back to it."""
        return False


class Stateless(Sessions):
    """Serves requests that belong to no session. `revisions` are the older ones that are served."""

    def __init__(self, *args: Any, revisions: Sequence[Revision], **options: Any) -> None:
        super().__init__(*args, **options)
        self._revisions: Final = frozenset(revisions)

    # requests of HTTP ----------------------------------------------------------------------------

    def _find(self, exchange: Exchange, value: JsonValue) -> Session | None:
        fields = exchange.fields
        if SESSION_ID in fields:
            # It expects what only a session has, and at this status it begins anew.
            self._out.refuse(exchange, 404, PeerFault.UNKNOWN_SESSION, "there are no sessions here")
            return None
        version = fields.get(VERSION)
        revision = known_revision(version)
        if version is None:
            revision = max((r for r in self._revisions if r <= _HEADERLESS), default=None)
        if revision is None or revision not in self._revisions:
            missing = version is None
            fault = PeerFault.MISSING_HEADER if missing else PeerFault.UNSUPPORTED_VERSION
            said = "is missing" if version is None else f"is {version[:32]!a}"
            served = ", ".join(sorted(r.value for r in self._revisions))
            self._refuse(exchange, value, fault, f"MCP-Protocol-Version {said}: served are {served}")
            return None
        session = self._new()
        session.engine.assume_session(revision, now=self._out.now)
        return session

    def _open(self, exchange: Exchange, value: JsonValue) -> None:
        session = self._new()
        exchange.session, exchange.stream = session, session.new_stream()
        self._out.hold(exchange)
        self._receive(session, exchange, value)

    def _new(self) -> Session:
        out, policy = self._out, self._policy
        return Alone("", self._make_engine(out.now), policy, policy.store(policy), out.now)

    def exchange_closed(self, exchange: Exchange) -> None:
        """The client left."""
        session = exchange.session
        if session is not None:
            super().exchange_closed(exchange)
            session.engine.exchange_closed(exchange, now=self._out.now)
            self.pump(session)

    # what the engines say ------------------------------------------------------------------------

    def _tell(self, session: Session, event: SessionStarted | SessionEnded) -> None:
        """Nothing: what begins and ends with a request is no session."""

    def _say(self, session: Session, stream: Stream, data: bytes) -> None:
        if stream.exchange is None:
            self._undeliverable("a message", "its client left, or has no stream for it")
        else:
            self._out.say(stream.exchange, encode_event(data))

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
    ) -> NoReturn:
        """Raises LocalProtocolError: an answer would come in a request of its own."""
        raise LocalProtocolError(f"{method}: a client without a session cannot be asked")


__all__ = ["Alone", "Stateless"]
