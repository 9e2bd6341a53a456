"""``--trace`` and the server's standard error: what goes to our own, line by line, secrets hidden."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sansmcp.errors import PeerFault
from sansmcp.events import Event, MessageIgnored

from .http_trace import HttpSplitter
from .narrate import LineSplitter, tell_event, tell_message
from .redact import Redactor
from .text import one_line, size

if TYPE_CHECKING:  # few servers are at a WebSocket
    from .websocket_trace import WebSocketSplitter

Wire: TypeAlias = Literal["lines", "http", "websocket"]

MAX_SHOWN: Final = 400
"""Characters of one message or event that are shown."""

_TAIL_BYTES: Final = 8 * 1024
_TAIL_LINES: Final = 10


class Trace:
    """Writes every event and every message to standard error, one line each.

    The first column is the time since the start in seconds, the second who speaks: ``→`` we,
    ``←`` the server, ``·`` the engine. `wire` says in what the messages are, and `many` that they
    may be of many connections.
    """

    def __init__(self, redactor: Redactor, *, wire: Wire = "lines", many: bool = False) -> None:
        self._redactor = redactor
        self._many = many
        self._started = time.monotonic()
        self._lines = {"sent": self._splitter("→", wire), "received": self._splitter("←", wire)}

    def _splitter(self, mark: str, wire: Wire) -> LineSplitter | HttpSplitter | WebSocketSplitter:
        def message(line: bytes, whole: int) -> None:
            self._message(mark, line, whole)

        def note(text: str) -> None:
            self.note(mark, text)

        if wire == "websocket":
            from .websocket_trace import WebSocketSplitter

            return WebSocketSplitter(
                note, message, of_client=(mark == "→") is not self._many, many=self._many
            )
        return HttpSplitter(note, message) if wire == "http" else LineSplitter(message)

    def on_wire(self, direction: Literal["sent", "received"], data: bytes) -> None:
        self._lines[direction].feed(data)

    def on_event(self, event: Event) -> None:
        self.note("·", tell_event(event))

    def note(self, mark: str, text: str) -> None:
        self._write(mark, one_line(self._redactor.text(text), MAX_SHOWN))

    def _message(self, mark: str, line: bytes, whole: int) -> None:
        if whole > len(line):
            self._write(mark, f"(a line of {size(whole)}, not shown)")
        else:
            self._write(mark, tell_message(line, self._redactor, MAX_SHOWN))

    def _write(self, mark: str, text: str) -> None:
        print(f"{time.monotonic() - self._started:8.3f} {mark} {text}", file=sys.stderr)


class Garbage:
    """Remembers the first thing on standard output that was no message: often it is all there is to see."""

    def __init__(self) -> None:
        self.found = ""

    def heard(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, MessageIgnored) and isinstance(event.reason, PeerFault) and not self.found:
            self.found = one_line(event.detail, 160)

    def before(self, on_event: Callable[[Event], object]) -> Callable[[Event], None]:
        """Hear of each event before `on_event` does."""

        def both(event: Event) -> None:
            self.heard(event)
            on_event(event)

        return both


class ServerErrors:
    """The server's standard error: shown as it comes, or only its end when something failed."""

    def __init__(self, redactor: Redactor, *, show: bool) -> None:
        self._redactor = redactor
        self._show = show
        self._tail = bytearray()
        self._lines = LineSplitter(lambda line, whole: self._line(line))

    def __call__(self, data: bytes) -> None:
        if self._show:
            self._lines.feed(data)
        else:
            self._tail += data
            if len(self._tail) > _TAIL_BYTES:
                # a line cut in half could show half a secret, which nobody would recognise
                del self._tail[: self._tail.find(b"\n", -_TAIL_BYTES) + 1 or None]

    def flush(self) -> None:
        """Show a last line that has no end."""
        self._lines.flush()

    def _line(self, line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace")
        print(one_line(self._redactor.text(text), 2000), file=sys.stderr)

    def tail(self, last: str = "") -> list[str]:
        """The last lines, for the message about a failure; none when they were shown already.

        `last` is what the last process said, where that is known: a server that dies when it is
        probed is started twice, and would say everything twice.
        """
        if self._show:
            return []
        if len(last.encode("utf-8", "replace")) >= _TAIL_BYTES:
            last = last.partition("\n")[2]
        text = self._redactor.text(last or self._tail.decode("utf-8", "replace"))
        lines = [one_line(line, 300) for line in text.splitlines()]
        return [line for line in lines if line][-_TAIL_LINES:]
