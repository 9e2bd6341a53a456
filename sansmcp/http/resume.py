"""Event streams of a legacy server that break, and how they are asked for again.

A stream is more than the exchange it began in: a server may close the connection and have the
client come back, and says with the ids of its events from where on. `EventStream` keeps what
outlives an exchange; the transport carries out what it says. Only a legacy server has resumable
streams.

Specification: 2025-11-25, basic/transports (resumability and redelivery; sending messages, point 6);
WHATWG HTML, server-sent events (last event ID, reconnection time).
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from ..errors import LocalProtocolError
from ..states import STREAM, Machine, StreamInput, StreamState
from ..wire.sse import SseDecoder

_HEADER_SAFE: Final = re.compile(r"[!-~](?:[ -~]{0,1022}[!-~])?")
"""What an id has to be to go into a header as it is. No hop has to let others through."""


@attrs.frozen(kw_only=True)
class ReconnectPolicy:
    """How often and how soon a broken event stream is asked for again. Times are seconds.

    Raises LocalProtocolError for a negative number.
    """

    limit: int = 5
    """Tries in a row without a new message between them; 0 for none. A server that accepts and
    closes at once would be asked for ever, if an accepted request counted as success."""
    delay: float = 1.0
    """Before the first of them, then twice as long each time. A server's own `retry` rules instead."""
    max_delay: float = 30.0
    """The longest of these delays."""

    def __attrs_post_init__(self) -> None:
        if self.limit < 0 or self.delay < 0 or self.max_delay < 0:
            raise LocalProtocolError("a reconnect policy has no negative numbers")

    def wait(self, tries: int, retry: float | None) -> float:
        """Seconds to wait when `tries` were made in a row; `retry` is what the server asks for."""
        if retry is not None:
            return retry
        # 2.0 ** 1024 is too large for a float, and long before that the bound rules
        return min(self.delay * 2.0 ** min(tries, 64), self.max_delay)


@attrs.define(eq=False)
class EventStream:
    """What is known of one stream, over however many exchanges it takes."""

    number: int
    """Names it among the streams of its transport."""
    standing: bool
    """Whether it is the server's own stream, and not the answer to a request."""
    last_id: str | None = attrs.field(default=None, repr=False)
    """Where to go on; None while the server gave no id."""
    retry: float | None = None
    """Seconds that the server wants between two tries; None if it did not say."""
    tries: int = 0
    """Made since the last message."""
    opened: bool = False
    """Whether it was there once, where that is told."""
    machine: Machine[StreamState, StreamInput] = attrs.field(factory=lambda: Machine(STREAM), init=False)
    """Where it stands: see the table `states.STREAM`."""

    def note(self, decoder: SseDecoder) -> None:
        """Take over what the stream's present exchange says about how to go on."""
        if decoder.last_event_id is not None:
            self.last_id = decoder.last_event_id
        if decoder.retry is not None:
            self.retry = decoder.retry / 1000

    def may_retry(self, policy: ReconnectPolicy) -> bool:
        """Whether to ask for it again: it can be continued, or is one that need not be."""
        if self.tries >= policy.limit:
            return False
        return self.standing or self.resumable

    @property
    def resumable(self) -> bool:
        """Whether there is an id to go on from, and a header can carry it."""
        return self.last_id is not None and _HEADER_SAFE.fullmatch(self.last_id) is not None
