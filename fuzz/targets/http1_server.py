"""INVARIANT: whatever a client sends and however it is cut, the server tells the same events and holds
no more than a head of it; every request it lets through is one that h11 reads as well, and as the same;
and what it writes is one good response for each request and each refusal."""

from __future__ import annotations

import h11

from fuzz.steps import Steps
from sansmcp.errors import PeerFault
from sansmcp.limits import Limits
from sansmcp.wire.http1 import (
    BodyData,
    BodyEnd,
    ConnectionClosed,
    Http1Server,
    HttpFault,
    RequestHead,
)

LIMITS = [
    Limits(max_head=200, max_headers=5, max_body=20),
    Limits(max_head=4096, max_headers=20, max_body=2000),
]

Found = list[object]


def serve(chunks: list[bytes], limits: Limits) -> tuple[list[Found], bytes]:
    server = Http1Server(limits)
    found: list[Found] = []

    def run() -> None:
        while (event := server.next_event()) is not None:
            match event:
                case RequestHead():
                    found.append([event.method, event.target, event.headers, b"", False])
                case BodyData():
                    found[-1][3] += event.data  # type: ignore[operator]
                case BodyEnd():
                    found[-1][4] = True
                    answer(server, found[-1])
                case HttpFault():
                    found.append([event.fault, event.status, event.answered])
                case ConnectionClosed():
                    found.append(["closed"])
        assert server.stats()["buffered"] <= limits.max_head + largest

    largest = max(map(len, chunks), default=0)
    for chunk in chunks:
        server.receive_data(chunk)
        run()
    server.receive_eof()
    run()
    assert server.should_close
    assert found[-1] == ["closed"]
    return found, server.data_to_send()


def answer(server: Http1Server, request: Found) -> None:
    """By one of the two ways, as the target says."""
    if len(str(request[1])) % 2:
        server.start_response(200)
        server.send_data(b"ok")
        server.send_end()
    else:
        server.send_response(200, body=b"ok")


def read_by_h11(data: bytes) -> list[Found]:
    """The complete requests in `data`."""
    found: list[Found] = []
    while True:
        data = data.removeprefix(b"\r\n")  # RFC 9112, section 2.2, which h11 does not do
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        if data:
            connection.receive_data(data)
        request: Found = []
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError as error:
                if request and ("Length" in str(error) or "Transfer" in str(error)):
                    break  # a trailer field that is dropped here
                return found
            if isinstance(event, h11.Request):
                request = [event.method.decode(), event.target.decode(), None, b"", True]
            elif isinstance(event, h11.Data):
                request[3] += bytes(event.data)  # type: ignore[operator]
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return found
        found.append(request)
        data = connection.trailing_data[0]
        if connection.their_state is h11.MUST_CLOSE:
            return found


def check_responses(data: bytes, methods: list[str], refusals: int) -> None:
    for method in [*methods, *["GET"] * refusals]:
        reader = h11.Connection(h11.CLIENT)
        reader.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        if method != "CONNECT":
            reader.send(h11.EndOfMessage())
        reader.receive_data(data)
        if not reader.next_event():
            raise AssertionError("no response")
        if method == "CONNECT":
            return  # what follows is no HTTP for h11
        body = b""
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                body += bytes(event.data)
            else:
                reader.receive_data(b"")  # up to the end of the connection
        data, _ = reader.trailing_data
        assert body in {b"ok", b""}
    assert data == b"", "more responses than requests"


def one_input(data: bytes) -> None:
    steps = Steps(data)
    limits = steps.choose(LIMITS)
    sizes = list(steps.take(steps.byte() % 8))
    stream = steps.take(len(data))
    found, out = serve([stream] if stream else [], limits)

    chunks: list[bytes] = []
    at = 0
    while at < len(stream):
        size = sizes[len(chunks) % len(sizes)] + 1 if sizes else 1
        chunks.append(stream[at : at + size])
        at += size
    assert serve(chunks, limits) == (found, out), "the chunks make a difference"

    requests = [item for item in found if len(item) == 5 and item[4]]
    refusals = [item for item in found if isinstance(item[0], PeerFault)]
    assert len(refusals) <= 1
    assert all(item[2] for item in refusals), "not answered"
    expected = read_by_h11(stream)[: len(requests)]
    assert [[*item[:2], item[3]] for item in requests] == [[*item[:2], item[3]] for item in expected]
    for item in requests:
        headers = item[2]
        assert isinstance(headers, dict)
        for name, value in headers.items():
            assert (name + value).isascii()
            assert (value + "x").isprintable() or "\t" in value
    check_responses(out, [str(item[0]) for item in requests], len(refusals))
