"""Every bound of the library: its default, why that much, and what happens past it.

Times are seconds, sizes are bytes, the rest are counts. A bound that is reached is always told by
an event (`LimitHit`) or an error; nothing is dropped in silence.
"""

from __future__ import annotations

from .records import frozen

KIB = 1024
MIB = 1024 * KIB


@frozen(kw_only=True, eq=False)
class Limits:
    """Sizes and counts that one engine or transport never exceeds."""

    max_message: int = 64 * MIB
    """Largest single message. Results carry images and documents, so a client is generous; a
    server takes `SERVER_LIMITS`. Past it: one `LimitHit`, the rest of the line is discarded, the
    next line works again, and the call whose id could be read fails."""

    max_event: int = 64 * MIB
    """Largest event of an event stream, all its lines together: it carries one message. Past it:
    the event is dropped and told, the next one works again."""

    max_head: int = 64 * KIB
    """Largest head of an HTTP message, blank line included; also what the chunk extensions and
    trailers of one body may take. Servers commonly allow 8 to 80 KiB. Past it: a server answers
    431, a client fails the exchange, and the connection ends."""

    max_headers: int = 100
    """Header fields of one HTTP message, each of which costs much more than its bytes. Past it: as
    with `max_head`."""

    max_body: int | None = 64 * MIB
    """Largest body of an HTTP message: it carries one message of the protocol. None is no bound.
    Past it: a server answers 413, a client fails the exchange, and the connection ends."""

    max_depth: int = 128
    """Deepest nesting of arrays and objects in one message. Interpreters differ in where they give
    up; 128 is far beyond real schemas and far below any stack. Past it: the message is invalid."""

    max_batch: int = 256
    """Members of one 2025-03-26 batch. Past it: the batch is refused as a whole (-32600)."""

    max_pending_calls: int = 65_536
    """Calls of this side that may be open at once. Past it: the verb raises LocalProtocolError."""

    max_open_requests: int = 64
    """Requests of the peer handled at once on a stream transport. Past it: `wants_data` turns
    False and the binding stops reading; no request is refused."""

    max_remembered_ids: int = 1024
    """Ended ids kept so that a late answer is recognised as late. Past it: the oldest is
    forgotten and its late answer is reported as unknown instead."""

    max_buffered_events: int = 4096
    """Events waiting for the application. Past it: `wants_data` turns False until they are read."""

    max_outgoing: int = 8 * MIB
    """Bytes waiting to be written. Past it: a server transport stops reading requests, and one whose
    handlers tell as much again ends the connection."""

    max_subscriptions: int = 4096
    """Subscriptions that one engine has open; over HTTP one engine has those of all modern clients.
    Past it: a server refuses one more (-32603), a client's verb raises LocalProtocolError."""

    max_subscribed_uris: int = 1024
    """Resources that one subscription, or one legacy session, is about. Past it: as with
    `max_subscriptions`."""

    max_pages: int = 64
    """Pages one list-all verb reads. Past it: PaginationError with what was read."""

    max_rounds: int = 10
    """How many times a client makes one request again because the server wants something first: the
    request and ten retries. Past it: `RoundsExceeded` with what was asked for last. On a server: how many
    times a handler is called for one request. Past it: the request fails as if the handler had."""

    max_questions: int = 64
    """Questions of a server that may be open at once. Past it: a legacy server's is answered with an
    error, and a call whose server asks that many at once fails."""

    max_request_state: int = 256 * KIB
    """Characters of the state that a modern client carries between the rounds of a request: it holds the
    answers so far, and travels with each of them. Past it: the request fails, and one that comes with
    more is refused."""

    max_mirrored_tools: int = 4096
    """Tools of a server whose arguments a client mirrors in headers. Past it: the others are called
    without these headers, which their server may refuse."""

    max_output_schemas: int = 4096
    """Tools of a server whose output schemas a client with a validator keeps. Past it: results of the
    others are not checked."""

    max_session_id: int = 1024
    """Characters of a legacy session's id: it goes into every head. Past it: it is not used."""

    max_evidence: int = 32
    """Entries in the evidence trail of an era decision. Past it: the oldest are dropped."""

    max_stderr_tail: int = 8 * KIB
    """Last bytes of a child's standard error kept for its exit error. Older ones are dropped."""

    max_excerpt: int = 512
    """Characters of a peer's text shown in an event or error. Past it: cut, with an ellipsis."""


CLIENT_LIMITS = Limits()
SERVER_LIMITS = Limits(max_message=16 * MIB, max_body=4 * MIB)


@frozen(kw_only=True, eq=False)
class Timeouts:
    """How long a client waits, in seconds. None means: this deadline is off."""

    probe: float | None = 5.0
    """For the answer to the era probe (`server/discover`)."""

    connect: float | None = 60.0
    """For probe, fallback and handshake together."""

    request: float | None = 60.0
    """For each call while nothing is heard of it; progress starts it anew."""

    total: float | None = None
    """For each call as a whole; progress never extends it. Must be set when `request` is None."""

    round: float | None = 600.0
    """For each round: from a server's question until it has answered the call that was made again with
    the answers (legacy: until the question is answered). While it is open, `request` stands still."""

    rounds: float | None = None
    """For all rounds of a call, from the first question on. Further questions never extend it."""

    ack: float = 5.0
    """For the acknowledgment of a subscription (modern)."""

    ping: float = 10.0
    """For the answer to a ping (legacy)."""

    progress_resets: bool = True
    """Whether a progress notification starts `request` anew."""
