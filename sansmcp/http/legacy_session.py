"""One session of the older revisions over HTTP: its bounds, its streams, what was said on them.

What is said on a stream is numbered and kept, in bounds, so that a client whose connection broke can
come back with `Last-Event-ID`. Nothing here sends anything: see `legacy`.

Specification: 2025-11-25, basic/transports (session management, resumability and redelivery).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from ..errors import LocalProtocolError
from ..limits import MIB
from ..revisions import Revision

if TYPE_CHECKING:
    from ..server import ServerEngine
    from ..types.lifecycle import Implementation
    from .responses import Exchange

STANDALONE: Final = 0
"""The number of the stream for what belongs to no request."""

_MAX_EVENT_ID: Final = 40


# what was said -----------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class StoredEvent:
    """A message that was said on a stream."""

    stream: int
    sequence: int
    """Its place on that stream, from 1."""
    data: bytes = attrs.field(repr=False)


class EventStore(Protocol):
    """Keeps what one session was told, in bounds of its own. Does no I/O."""

    def append(self, event: StoredEvent) -> Sequence[StoredEvent]:
        """Keep `event`; return what had to be dropped for it, maybe the event itself."""
        ...

    def since(self, stream: int, sequence: int) -> Sequence[StoredEvent]:
        """Return what is kept of `stream` after `sequence`, in order."""
        ...

    def stats(self) -> dict[str, int]:
        """Return sizes: ``stored_events`` and ``stored_bytes``."""
        ...


class MemoryEventStore:
    """The last `max_events` events, and no more than `max_bytes` of them."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self._max_events: Final = max_events
        self._max_bytes: Final = max_bytes
        self._events: deque[StoredEvent] | tuple[()] = ()  # most sessions never need one
        self._bytes = 0

    def append(self, event: StoredEvent) -> Sequence[StoredEvent]:
        """Keep `event`; return what had to be dropped for it, the oldest first."""
        events = self._events or deque()
        self._events = events
        events.append(event)
        self._bytes += len(event.data)
        dropped = []
        while len(events) > self._max_events or self._bytes > self._max_bytes:
            oldest = events.popleft()
            self._bytes -= len(oldest.data)
            dropped.append(oldest)
        return dropped

    def since(self, stream: int, sequence: int) -> Sequence[StoredEvent]:
        """Return what is kept of `stream` after `sequence`, in order."""
        return [e for e in self._events if e.stream == stream and e.sequence > sequence]

    def stats(self) -> dict[str, int]:
        """Return sizes: ``stored_events`` and ``stored_bytes``."""
        return {"stored_events": len(self._events), "stored_bytes": self._bytes}


def _memory_store(policy: SessionPolicy) -> EventStore:
    return MemoryEventStore(policy.max_stored_events, policy.max_stored_bytes)


@attrs.frozen(kw_only=True)
class SessionPolicy:
    """Bounds of the legacy sessions of one server, and how they are kept. Times are seconds."""

    max_sessions: int = 10_000
    """Past it `initialize`, or the stream of HTTP+SSE, is answered 503 until one ends: a client that
    vanishes costs some kilobytes, a million of them must not cost gigabytes."""

    idle_timeout: float = 1800.0
    """How long a session lives without a request, an open stream or work for it. Past it: it is
    ended and told, its id is answered 404, and a client opens another."""

    confirm_timeout: float = 60.0
    """The same for a session of which nothing was heard after `initialize`, or not even that where
    a stream comes first: most such clients were only looking who is there."""

    max_open_requests: int = 256
    """Requests of one session that are being worked on, those included whose client has left: to
    leave cancels nothing. Past it: a request is answered 429."""

    max_streams: int = 256
    """Complete streams of one session that may still be resumed. Past it: the oldest is forgotten."""

    max_stored_events: int = 1024
    """Messages of one session that are kept for a client that comes back. Past it: the oldest is
    dropped; that is told if nobody was sent it."""

    max_stored_bytes: int = 4 * MIB
    """The same in bytes."""

    reconnect_after: float = 1.0
    """When a client whose connection broke, or was ended by `HttpServer.hang_up`, shall come back."""

    store: Callable[[SessionPolicy], EventStore] = attrs.field(default=_memory_store, repr=False)
    """Makes the place where one session's messages are kept."""

    def __attrs_post_init__(self) -> None:
        for name in ("idle_timeout", "confirm_timeout", "reconnect_after"):
            if getattr(self, name) <= 0:
                raise LocalProtocolError(f"{name} must be positive, not {getattr(self, name)}")


# sessions ----------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Stream:
    """One numbered event stream: where it goes now, and how far it is."""

    number: int
    exchange: Exchange | None = None
    """The exchange that carries it; None while there is none, or before it is an event stream."""
    opened: bool = False
    """Whether any client has been told of it: only then can it be resumed."""
    sent: int = 0
    """Events numbered so far."""
    delivered: int = 0
    """How many of them left on some connection."""
    ended: bool = False
    """Whether all was said."""
    lossy: bool = False
    """Whether it was told that an undelivered event is lost."""


@attrs.define(eq=False, repr=False)
class Session:
    """One legacy client. Compares by identity; its repr shows nothing secret."""

    id: str
    engine: ServerEngine
    policy: SessionPolicy
    store: EventStore
    used_at: float
    standalone: Stream = attrs.field(factory=lambda: Stream(STANDALONE, opened=True))
    streams: dict[int, Stream] = attrs.field(factory=dict)
    """Those that belong to a request, by number."""
    working: int = 0
    """How many of them belong to a request that is not answered yet."""
    owner: str | None = None
    """Who opened it, where that is asked: nobody else may use it."""
    confirmed: bool = False
    """Whether anything came after `initialize`."""
    calls_at: float | None = None
    """When the engine wants to be called next."""
    _last_stream: int = STANDALONE
    _complete: list[int] = attrs.field(factory=list)

    def __repr__(self) -> str:
        # Whoever knows the id can speak for the client.
        return f"<Session {self.revision} {self.working} open>"

    @property
    def revision(self) -> Revision | None:
        """The revision that was agreed."""
        return self.engine.session_revision

    @property
    def client_info(self) -> Implementation | None:
        """Who the client says it is."""
        return self.engine.client_info

    @property
    def primes(self) -> bool:
        """Whether its client understands an event without data that only hands out an id."""
        revision = self.revision
        return revision is not None and revision >= Revision.V2025_11_25

    @property
    def busy(self) -> bool:
        """Whether it is not idle though nothing comes."""
        return self.working > 0 or self.standalone.exchange is not None

    def new_stream(self) -> Stream:
        """A stream for the answer to a request."""
        self._last_stream += 1
        self.working += 1
        stream = self.streams[self._last_stream] = Stream(self._last_stream)
        return stream

    def stream(self, number: int) -> Stream | None:
        """The stream with this number, if it can still be resumed."""
        return self.standalone if number == STANDALONE else self.streams.get(number)

    def complete(self, stream: Stream, now: float) -> None:
        """The request of `stream` is answered, or will not be."""
        if stream.ended:
            return
        stream.ended = True
        self.used_at = now
        self.working -= 1
        if not stream.opened:
            del self.streams[stream.number]
            return
        self._complete.append(stream.number)
        if len(self._complete) > self.policy.max_streams:
            del self.streams[self._complete.pop(0)]

    def attached(self) -> Iterator[Stream]:
        """The streams that some exchange carries now."""
        return (s for s in (self.standalone, *self.streams.values()) if s.exchange is not None)

    def stats(self) -> dict[str, int]:
        """Sizes of its tables."""
        return {"streams": len(self.streams), "working": self.working, **self.store.stats()}


def write_event_id(stream: int, sequence: int) -> str:
    """The id of an event: its stream and its place there, as in ``3-2``."""
    return f"{stream}-{sequence}"


def read_event_id(value: str) -> tuple[int, int] | None:
    """Stream and place that an event id names; None for what is none of ours."""
    stream, _, sequence = value.partition("-")
    if len(value) > _MAX_EVENT_ID or not value.isascii():
        return None
    return (int(stream), int(sequence)) if stream.isdecimal() and sequence.isdecimal() else None
