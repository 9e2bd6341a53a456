"""The server's side of HTTP+SSE, the transport of 2024-11-05: everything to delete one day.

A GET opens a session and its stream, on which the server says everything. The first event names the
address for the client's messages; each comes in a POST of its own that is only acknowledged. The
session ends with the stream, and nothing of it can be resumed.

Clients of this transport negotiate newer revisions over it as well, and are served each that has
`initialize`. The modern one has no such transport.

What a client does, beside what `server` says, and what comes of it:

==============================================  ================================================
GET without `Accept` for event streams           406
GET while there are too many sessions           503, and that is told
a message without a session; of none that is    400; 404
a message                                       202; answers, and errors too, go on the stream
a body that is no JSON                          400, -32700
a request while too many are open               429, and that is told
it opens a stream and no session in time        the stream ends, and that is told
it leaves                                       its session ends, its requests are cancelled
==============================================  ================================================

Specification: 2024-11-05, basic/transports (HTTP with SSE); 2026-07-28,
basic/transports/streamable-http (backward compatibility).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..errors import LocalProtocolError, PeerFault
from ..events import LimitHit, SendResponse
from ..wire import jsonrpc
from ..wire.jsoncodec import JsonValue
from ..wire.sse import MESSAGE, encode_event
from .exchange import EVENT_STREAM
from .legacy import Sessions
from .legacy_session import Session, Stream
from .old_sse import ENDPOINT
from .responses import RETRY_AFTER, Exchange

_SESSION: Final = "sessionId"
"""The parameter of the address for messages that names the session."""


@attrs.frozen
class OldSsePaths:
    """Where a server speaks HTTP+SSE. Raises LocalProtocolError for what are not two paths."""

    stream: str = "/sse"
    """The address that clients are given."""
    messages: str = "/messages"
    """Where their messages go to: they are told."""

    def __attrs_post_init__(self) -> None:
        for path in (self.stream, self.messages):
            plain = path.isascii() and path.isprintable()
            if not plain or not path.startswith("/") or any(c in path for c in " ?#"):
                raise LocalProtocolError(f"{path!r} is no path: it begins with a slash and has no query")
        if self.stream == self.messages:
            raise LocalProtocolError(f"HTTP+SSE needs two paths, not {self.stream!r} twice")


class OldSseSession(Session):
    """A client of HTTP+SSE. Its standalone stream is the only one."""

    @property
    def busy(self) -> bool:
        """Whether it is not idle though nothing comes: to listen is enough, once it was opened."""
        return self.confirmed


class OldSseSessions(Sessions):
    """All sessions of HTTP+SSE of a server. `paths` is where; the rest is as in `Sessions`."""

    def __init__(self, *args: Any, paths: OldSsePaths, **options: Any) -> None:
        super().__init__(*args, **options)
        self._paths: Final = paths

    # requests of HTTP ----------------------------------------------------------------------------

    def on_get(self, exchange: Exchange) -> None:
        """Open a session and its stream, and say where messages go to."""
        out, policy = self._out, self._policy
        if not exchange.takes_stream:
            out.refuse(exchange, 406, PeerFault.WRONG_MEDIA_TYPE, f"Accept must allow {EVENT_STREAM}")
            return
        if not (self.has_room(exchange, "a stream") and out.has_room(exchange)):
            return
        session_id = self.new_id()
        session = OldSseSession(session_id, self._make_engine(out.now), policy, policy.store(policy), out.now)
        session.owner = exchange.owner
        self._sessions[session_id] = session
        self._idle.set(session, out.now + policy.confirm_timeout, "confirm_timeout")
        exchange.session, exchange.stream = session, session.standalone
        session.standalone.exchange = exchange
        out.hold(exchange)
        out.begin_stream(exchange)
        address = f"{self._paths.messages}?{_SESSION}={session_id}"
        out.say(exchange, encode_event(address.encode(), event=ENDPOINT))

    def on_message(self, exchange: Exchange, target: str, value: JsonValue) -> None:
        """A decoded body that was posted to the address `target`."""
        out, session_id = self._out, _session_id(target)
        if session_id is None:
            text = f"{_SESSION} is missing: messages go to the address that the stream names"
            out.refuse(exchange, 400, PeerFault.UNKNOWN_SESSION, text)
            return
        session = self._sessions.get(session_id)
        if session is None or session.owner != exchange.owner:
            out.refuse(exchange, 404, PeerFault.UNKNOWN_SESSION, "there is no such session")
            return
        asks = isinstance(value, list) or isinstance(jsonrpc.classify(value), jsonrpc.Request)
        if asks and session.working >= self._policy.max_open_requests:
            out.plain(exchange, 429, "too many open requests", RETRY_AFTER)
            detail = f"a request was answered 429: {session.working} of its session are open"
            out.events.append(LimitHit("max_open_requests", detail))
            return
        exchange.session = session
        out.empty(exchange, 202)
        session.engine.receive_message(value, now=out.now, origin=exchange)
        self.pump(session)
        if session.revision is not None:
            session.confirmed = True
            session.used_at = out.now

    def exchange_closed(self, exchange: Exchange) -> None:
        """The client left, and its session ends."""
        session = exchange.session
        if session is not None and session.standalone.exchange is exchange:
            session.standalone.exchange = None
            session.engine.connection_lost(now=self._out.now)
            self._end(session)

    # what the engines say ------------------------------------------------------------------------

    def pump(self, session: Session) -> None:
        """Carry out what the engine of `session` wants sent; pass the rest on."""
        super().pump(session)
        session.working = session.engine.stats()["open_requests"]

    def _respond(self, session: Session, event: SendResponse) -> None:
        self._say(session, session.standalone, event.data)

    def _say(self, session: Session, stream: Stream, data: bytes) -> None:
        # Nobody can come back for it, so nothing is numbered or kept. The type is told though it is
        # the usual one: clients were written against servers that did.
        if stream.exchange is not None:
            self._out.say(stream.exchange, encode_event(data, event=MESSAGE))


def _session_id(target: str) -> str | None:
    """The session that an address for messages names."""
    for part in target.partition("?")[2].split("&"):
        name, _, value = part.partition("=")
        if name == _SESSION:
            return value
    return None
