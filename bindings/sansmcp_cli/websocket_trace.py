"""One direction of a WebSocket, taken apart for the trace: a head of HTTP, and then messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sansmcp.wire.lines import LineFault
from sansmcp.wire.websocket import Closed, Frames, Message

_QUERY: Final = re.compile(r"\?\S+")
_MAX_HEAD: Final = 64 * 1024
_MAX_MESSAGE: Final = 64 * 1024 * 1024


class WebSocketSplitter:
    """Takes what a client sent, or its server; calls `note` with what the connection says of itself, and
    `message` with each message and its size in bytes.

    The bytes may be of `many` connections, if they come in pieces as they were read and written: a piece
    that looks like a head is one, and what begins in one piece and ends in another may be missed.
    """

    def __init__(
        self,
        note: Callable[[str], object],
        message: Callable[[bytes, int], object],
        *,
        of_client: bool,
        many: bool = False,
    ) -> None:
        self._note = note
        self._message = message
        self._many = many
        self._head = bytearray()
        # The frames of a client are read as its server reads them, and the other way round.
        self._new: Callable[[], Frames] = lambda: Frames(_MAX_MESSAGE, of_client=not of_client)
        self._frames: Frames | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes, in whatever pieces."""
        over = self._frames is not None and self._frames.over
        begins = (over or self._many) and data.startswith((b"GET ", b"HTTP/"))
        if over and self._many and not begins:
            self._frames = self._new()
        if self._frames is None or begins:
            self._frames = None
            self._head += data
            head, found, rest = bytes(self._head).partition(b"\r\n\r\n")
            if not found and len(self._head) < _MAX_HEAD:
                return
            self._head.clear()
            self._note(_QUERY.sub("?…", head.partition(b"\r\n")[0].decode("latin-1")))
            self._frames, data = self._new(), rest
        self._frames.receive_data(data)
        while (event := self._frames.next_event()) is not None:
            match event:
                case Message(data=text):
                    self._message(text, len(text))
                case LineFault():
                    self._note("a message that is too large to be shown")
                case Closed():
                    self._note(f"closed: {event.why}")
                case _:
                    pass  # pings and their answers
