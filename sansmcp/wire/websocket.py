"""The frames of a WebSocket, over wsproto: bytes in, messages out, and the other way round.

One message is one text message of the WebSocket, in however many fragments and frames it comes. Any
division of the stream into chunks gives the same events, except that a message which is both too large
and no UTF-8 may be told for one of them or for both. What a peer does, and what comes of it:

===================================  ===========================================================
a message larger than allowed        dropped up to its end, and told once, as `LineFault`; the next
                                     one works again
a message of white space             skipped
a message of bytes                   closed with 1003: BINARY_MESSAGE
text that is no UTF-8                closed with 1007: INVALID_UTF8
anything else that is no WebSocket   closed with 1002: INVALID_FRAME
a ping                               told; of several that came together the last one is answered
an end without a closing frame       `Closed` with 1006
===================================  ===========================================================

A message that is too large does not close the connection, as 1009 would: the calls that others wait
for are not to blame. No extension is negotiated: compressed, a few bytes could stand for any number,
and what is secret could be guessed from a length.

wsproto draws the keys of masks itself: the bytes of two runs differ, the events do not.

Specification: RFC 6455, sections 5 (framing), 6 (messages), 7 (closing).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs
from wsproto import events as ws
from wsproto.connection import Connection, ConnectionState, ConnectionType

from ..errors import PeerFault
from .lines import LineFault
from .peek import HEAD_SIZE, TAIL_SIZE, Sighting, excerpt, sight


class CloseCode(IntEnum):
    """Why a WebSocket was closed, as far as the numbers have names."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED_DATA = 1003
    NO_STATUS = 1005
    """A closing frame without a number. Never sent."""
    ABNORMAL = 1006
    """An end without a closing frame. Never sent."""
    INVALID_DATA = 1007
    POLICY_VIOLATION = 1008
    TOO_BIG = 1009
    MANDATORY_EXTENSION = 1010
    INTERNAL_ERROR = 1011
    RESTARTING = 1012
    TRY_AGAIN_LATER = 1013


_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        1000: "done",
        1001: "going away",
        1002: "protocol error",
        1003: "kind of data not accepted",
        1005: "no reason given",
        1006: "no closing frame",
        1007: "data that is not what it is said to be",
        1008: "against its policy",
        1009: "message too big",
        1010: "an extension is missing",
        1011: "internal error",
        1012: "restarting",
        1013: "try again later",
    }
)

_MAX_SHOWN: Final = 512
"""Characters of a reason in a text; a frame has room for 123 bytes, which may have to be escaped."""


@attrs.define(eq=False)
class Message:
    """A message came."""

    data: bytes = attrs.field(repr=False)


@attrs.define(eq=False)
class Pinged:
    """The peer wants to know whether this side is there: send `Frames.pong`, of the last one."""

    payload: bytes = attrs.field(repr=False)


@attrs.define(eq=False)
class Ponged:
    """The peer answered a ping, or says without being asked that it is there."""


@attrs.define(eq=False)
class Closed:
    """No message will come any more. Told once."""

    code: int
    """See `CloseCode`: the peer's, or with a fault the one that it is told."""
    reason: str
    """In the words of whoever closed, which may be empty."""
    fault: PeerFault | None = None
    """What the peer did wrong, if that is why."""

    @property
    def why(self) -> str:
        """The code and the reason, for people."""
        words = _WORDS.get(self.code, "a reason of its own")
        reason = excerpt(self.reason.encode(), _MAX_SHOWN)
        return f"{self.code}, {words}{f': {reason}' if reason else ''}"

    def told(self, peer: str) -> str:
        """Who closed and why, for people; `peer` is the role of the other end."""
        if self.code == CloseCode.ABNORMAL:
            return f"the {peer} closed the connection without a closing frame"
        if self.fault is not None:
            return f"the WebSocket was closed, for what the {peer} sent: {self.why}"
        return f"the {peer} closed the WebSocket: {self.why}"


FrameEvent: TypeAlias = Message | LineFault | Pinged | Ponged | Closed

_FAULTS: Final = {
    CloseCode.INVALID_DATA: (PeerFault.INVALID_UTF8, "text that is no UTF-8"),
    CloseCode.UNSUPPORTED_DATA: (PeerFault.BINARY_MESSAGE, "a message must be text, not bytes"),
}
_BROKEN: Final = (PeerFault.INVALID_FRAME, "this is no proper frame of a WebSocket")


class Frames:
    """One end of an open WebSocket.

    After `receive_data` or `receive_eof`, pull `next_event` until None. What the other methods return
    is to be written. No message has more than `max_message` bytes, and no more than that is held,
    beside what was received last.
    """

    __slots__ = ("_closing", "_events", "_max_message", "_over", "_parts", "_skipped", "_wire")

    def __init__(self, max_message: int, *, of_client: bool) -> None:
        self._max_message: Final = max_message
        self._wire: Final = Connection(ConnectionType.CLIENT if of_client else ConnectionType.SERVER)
        self._events: Final[deque[FrameEvent]] = deque()
        self._parts = bytearray()
        self._skipped: _Skipped | None = None
        self._closing = False
        """Whether this side sent its closing frame."""
        self._over = False
        """Whether `Closed` was told."""

    @property
    def open(self) -> bool:
        """Whether messages may be sent."""
        return not (self._closing or self._over)

    @property
    def over(self) -> bool:
        """Whether nothing more will come: `Closed` was told, or will be next."""
        return self._over

    # inputs and pulls ----------------------------------------------------------------------------

    def receive_data(self, data: bytes | bytearray) -> bytes:
        """Take the next bytes of the stream. Returns a closing frame if one is due, else nothing."""
        if self._over:
            return b""
        self._wire.receive_data(bytes(data))
        for event in self._wire.events():
            match event:
                case ws.TextMessage():
                    self._on_part(event.data.encode(), event.message_finished)
                case ws.Ping():
                    self._events.append(Pinged(bytes(event.payload)))
                case ws.Pong():
                    self._events.append(Ponged())
                case ws.BytesMessage():
                    return self._fail(CloseCode.UNSUPPORTED_DATA)
                case ws.CloseConnection():
                    return self._on_close(event)
        return b""

    def receive_eof(self) -> None:
        """Take the end of the stream. A second time does nothing."""
        self._end(Closed(CloseCode.ABNORMAL, ""))

    def next_event(self) -> FrameEvent | None:
        """The next event, or None when more data is needed."""
        return self._events.popleft() if self._events else None

    def stats(self) -> dict[str, int]:
        """Sizes: ``buffered`` bytes of a message that is not whole, ``events`` not pulled yet."""
        skipped = self._skipped.held if self._skipped is not None else 0
        return {"buffered": len(self._parts) + skipped, "events": len(self._events)}

    # out -----------------------------------------------------------------------------------------

    def message(self, data: bytes) -> bytes:
        """The frame of a message, which is UTF-8. Only while `open`."""
        return bytes(self._wire.send(ws.TextMessage(data.decode())))

    def ping(self) -> bytes:
        """The frame that asks whether the peer is there. Only while `open`."""
        return bytes(self._wire.send(ws.Ping()))

    def pong(self, payload: bytes) -> bytes:
        """The answer to a ping. Only while `open`."""
        return bytes(self._wire.send(ws.Pong(payload)))

    def close(self, code: int = CloseCode.NORMAL, reason: str = "") -> bytes:
        """The closing frame; nothing once it was sent. What comes after it is dropped, but the end."""
        if not self.open:
            return b""
        self._closing = True
        return bytes(self._wire.send(ws.CloseConnection(code, reason or None)))

    # inside --------------------------------------------------------------------------------------

    def _on_part(self, data: bytes, finished: bool) -> None:
        if self._closing:
            return
        if self._skipped is not None:
            fault = self._skipped.take(data, finished)
            if fault is not None:
                self._events.append(fault)
            if finished:
                self._skipped = None
            return
        if len(self._parts) + len(data) > self._max_message:
            self._parts += data
            self._skipped = _Skipped(self._max_message)
            whole, self._parts = self._parts, bytearray()
            self._on_part(bytes(whole), finished)
        elif not finished:
            self._parts += data
        else:
            if self._parts:
                self._parts += data
                data = bytes(self._parts)
                self._parts.clear()
            if data and not data.isspace():
                self._events.append(Message(data))

    def _on_close(self, event: ws.CloseConnection) -> bytes:
        if self._wire.state not in (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED):
            return self._fail(event.code)
        answer = b"" if self._closing else bytes(self._wire.send(event.response()))
        self._end(Closed(int(event.code), event.reason or ""))
        return answer

    def _fail(self, code: int) -> bytes:
        fault, reason = _FAULTS.get(CloseCode(code), _BROKEN)
        farewell = self.close(code, reason)
        self._end(Closed(code, reason, fault))
        return farewell

    def _end(self, event: Closed) -> None:
        if not self._over:
            self._over = True
            self._parts.clear()
            self._skipped = None
            self._events.append(event)


class _Skipped:
    """A message that is too large, of which only its two ends are kept, to see its id in them.

    It is told of once: at once if the id is at its begin, else when it has ended, or is twice as large
    as is allowed.
    """

    __slots__ = ("_dropped", "_head", "_max_message", "_tail", "_told")

    def __init__(self, max_message: int) -> None:
        self._max_message = max_message
        self._head = b""
        self._tail = b""
        self._dropped = 0
        self._told = False

    @property
    def held(self) -> int:
        return len(self._head) + len(self._tail)

    def take(self, data: bytes | bytearray, finished: bool) -> LineFault | None:
        first = not self._dropped
        self._dropped += len(data)
        self._tail = (self._tail + bytes(data[-TAIL_SIZE:]))[-TAIL_SIZE:]
        if first:
            self._head = bytes(data[: min(HEAD_SIZE, self._max_message)])
            seen = sight(self._head)
            if seen.id is not None or not self._head.lstrip(b" \t\r\n").startswith(b"{"):
                return self._tell(seen)
        endless = self._dropped > 2 * self._max_message
        if self._told or not (finished or endless):
            return None
        return self._tell(sight(self._head, b"" if endless else self._tail))

    def _tell(self, seen: Sighting) -> LineFault:
        self._told = True
        return LineFault(PeerFault.MESSAGE_TOO_LARGE, self._head, seen.id, seen.like_response)
