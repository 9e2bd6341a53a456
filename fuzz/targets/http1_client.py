"""INVARIANT: whatever a server sends and however it is cut, the client tells the same events and holds
no more than a head of it; a response that it lets through is one that h11 reads as well, and as the
same; and it is reusable only when nothing was left over."""

from __future__ import annotations

import h11

from fuzz.steps import Steps
from sansmcp.limits import Limits
from sansmcp.wire.http1 import (
    BodyData,
    BodyEnd,
    ConnectionClosed,
    Http1Client,
    HttpFault,
    InformationalHead,
    RequestHead,
    ResponseHead,
)

LIMITS = [
    Limits(max_head=200, max_headers=5, max_body=20),
    Limits(max_head=4096, max_headers=20, max_body=2000),
]
METHODS = ["GET", "POST", "HEAD"]

Found = tuple[object, ...]


def ask(chunks: list[bytes], method: str, limits: Limits) -> list[Found]:
    client = Http1Client(limits)
    client.send_request(method, "/", {"host": "x"})
    found: list[Found] = []
    body = b""
    complete = False

    def run() -> None:
        nonlocal body, complete
        while (event := client.next_event()) is not None:
            match event:
                case ResponseHead():
                    found.append((event.status, event.headers))
                case InformationalHead():
                    found.append(("interim", event.status))
                case BodyData():
                    body += event.data
                case BodyEnd():
                    complete = True
                case HttpFault():
                    found.append((event.fault,))
                case ConnectionClosed():
                    found.append(("closed",))
                case RequestHead():
                    raise AssertionError("a client got a request")
        assert client.stats()["buffered"] <= limits.max_head
        if client.reusable:
            assert complete

    for chunk in chunks:
        client.receive_data(chunk)
        run()
    client.receive_eof()
    run()
    assert client.should_close
    assert not client.reusable
    assert found[-1] == ("closed",)
    found.append((body, complete))
    return found


def read_by_h11(data: bytes, method: str) -> tuple[object, ...]:
    """Status, body and whether it is complete."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    status: int | None = None
    body = b""
    for chunk in (data, b""):
        if chunk or not data or connection.trailing_data == (b"", False):
            connection.receive_data(chunk)
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError as error:
                trailer = status is not None and ("Length" in str(error) or "Transfer" in str(error))
                return status, body, trailer
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return status, body, True
            elif not isinstance(event, h11.InformationalResponse):
                break
    return status, body, False


def one_input(data: bytes) -> None:
    steps = Steps(data)
    limits = steps.choose(LIMITS)
    method = steps.choose(METHODS)
    sizes = list(steps.take(steps.byte() % 8))
    stream = steps.take(len(data))
    found = ask([stream] if stream else [], method, limits)

    chunks: list[bytes] = []
    at = 0
    while at < len(stream):
        size = sizes[len(chunks) % len(sizes)] + 1 if sizes else 1
        chunks.append(stream[at : at + size])
        at += size
    assert ask(chunks, method, limits) == found, "the chunks make a difference"

    body, complete = found[-1]
    if complete:
        status = next(item[0] for item in found if isinstance(item[0], int) and len(item) == 2)
        assert read_by_h11(stream, method) == (status, body, True)
