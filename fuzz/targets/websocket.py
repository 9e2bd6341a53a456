"""INVARIANT: whatever a peer sends in place of a WebSocket, and however it comes in pieces, both ends take it
without an error of their own, tell the same as when it comes whole, hold no more than is allowed, and
after the end of the stream have nothing left to do."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from fuzz.steps import Steps
from sansmcp import ClientEngine, Implementation, Legacy, WebSocketClient, WebSocketServer
from sansmcp.limits import Limits
from sansmcp.ops import Close, Op, Write
from sansmcp.server import ServerEngine

LIMITS = Limits(max_message=300, max_head=2000)
ME = Implementation("f", "1")
ASKING = (
    b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-protocol: mcp\r\n\r\n"
)
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def agreeing(request: bytes) -> bytes:
    """What a server answers to the handshake of a client."""
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", request)
    assert key is not None
    accept = base64.b64encode(hashlib.sha1(key[1] + GUID).digest())
    return (
        b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-protocol: mcp\r\nsec-websocket-accept: " + accept + b"\r\n\r\n"
    )


class End:
    """A client or a server, and what it said."""

    def __init__(self, *, of_client: bool) -> None:
        self.said: list[str] = []
        self.closes = 0
        self.written: list[bytes] = []
        self.end: Any
        if of_client:
            engine = ClientEngine(ME, now=0.0, limits=LIMITS, mode=Legacy())
            self.end = WebSocketClient(engine, "ws://localhost/mcp", now=0.0)
            self.end.start(0.0)
            self.drain()
            self.end.opened(1, 0.0)
        else:
            server = ServerEngine(ME, now=0.0, limits=LIMITS)
            self.end = WebSocketServer(server, now=0.0)
            self.end.accepted(1, 0.0)
        self.drain()

    def drain(self) -> None:
        op: Op | None
        while (op := self.end.next_op()) is not None:
            if isinstance(op, Write):
                assert not self.closes, "written after the close"
                self.written.append(op.data)
            elif isinstance(op, Close):
                self.closes += 1
                assert self.closes == 1, "closed twice"
        while (event := self.end.next_event()) is not None:
            self.said.append(repr(event))

    def receive(self, data: bytes) -> None:
        self.end.receive_data(1, data, 0.0)
        self.drain()
        frames = self.end._frames
        if frames is not None:
            assert frames.stats()["buffered"] <= LIMITS.max_message + 6000

    def finish(self) -> None:
        self.end.receive_eof(1, 0.0)
        self.drain()
        self.end.close(0.0)
        self.drain()
        self.end.handle_timeout(100.0)
        self.drain()
        assert self.end.finished, self.end
        assert self.end.next_timeout() is None


def one_input(data: bytes) -> None:
    steps = Steps(data)
    choice = steps.byte()
    of_client, shakes = bool(choice & 1), bool(choice & 2)
    sizes = [1 + steps.byte() % 50 for _ in range(3)]
    rest = data[4:]
    told = []
    for cut in (False, True):
        end = End(of_client=of_client)
        begin = b""
        if shakes:
            begin = agreeing(end.written[0]) if of_client else ASKING
        stream = begin + rest
        at = turn = 0
        while at < len(stream):
            size = sizes[turn % 3] if cut else len(stream)
            end.receive(stream[at : at + size])
            at, turn = at + size, turn + 1
        end.finish()
        said = end.said
        if any("INVALID_UTF8" in event for event in said):
            # a message may be both too large and no text: how much of it is read first depends on the cut
            said = [event for event in said if not event.startswith("LimitHit")]
        told.append(said)
    assert told[0] == told[1], told
