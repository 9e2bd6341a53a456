"""What a trace makes of the bytes of HTTP, however they are cut."""

from __future__ import annotations

import pytest

from sansmcp_cli.http_trace import HttpSplitter

pytestmark = pytest.mark.req("AA11")

REQUEST = (
    b"POST /mcp?key=sesame HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sesame\r\n"
    b"Mcp-Method: ping\r\nContent-Length: %d\r\n\r\n%b"
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD = "head POST /mcp?… HTTP/1.1; authorization: [hidden]; mcp-method: ping"
JSON = "head HTTP/1.1 200 OK; content-type: application/json"
EVENTS = "head HTTP/1.1 200 OK; content-type: text/event-stream"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


CASES: dict[str, tuple[bytes, list[str]]] = {
    "a request": (REQUEST % (8, b'{"a": 1}'), [HEAD, '{"a": 1}']),
    "lines in a body": (ANSWER % (10, b'{\n"a": 1\n}'), [JSON, '{\n"a": 1\n}']),
    "two on one connection": (
        ANSWER % (2, b"{}") + ANSWER % (2, b"[]"),
        [JSON, "{}", JSON, "[]"],
    ),
    "no body": (
        b"GET /mcp HTTP/1.1\r\nMcp-Session-Id: sesame\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        ["head GET /mcp HTTP/1.1; mcp-session-id: [hidden]", "head HTTP/1.1 204 No Content"],
    ),
    "an event stream": (
        STREAM
        + chunk(b": hi\n\n")
        + chunk(b'id: 1\ndata: {"a": 1}\n\n')
        + chunk(b"data: {}\n\n")
        + b"0\r\n\r\n",
        [EVENTS, '{"a": 1}', "{}"],
    ),
    "a challenge": (
        b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm="x"\r\nContent-Length: 0\r\n\r\n',
        ['head HTTP/1.1 401 Unauthorized; www-authenticate: Bearer realm="x"'],
    ),
    "an address with a query": (
        b"HTTP/1.1 302 Found\r\nLocation: https://x/y?token=sesame\r\nSet-Cookie: a=sesame\r\n\r\n",
        ["head HTTP/1.1 302 Found; location: https://x/y?…; set-cookie: [hidden]"],
    ),
}


def told(*pieces: bytes) -> list[str]:
    seen: list[str] = []
    splitter = HttpSplitter(
        lambda head: seen.append(f"head {head}"), lambda message, size: seen.append(message.decode().strip())
    )
    for piece in pieces:
        splitter.feed(piece)
    splitter.flush()
    return seen


@pytest.mark.parametrize("name", CASES)
def test_heads_and_messages(name: str) -> None:
    data, lines = CASES[name]
    assert told(data) == lines
    assert told(*(data[i : i + 1] for i in range(len(data)))) == lines
    assert told(data, REQUEST % (2, b"{}")) == [*lines, HEAD, "{}"]


def test_connections_that_cross() -> None:
    """A stream goes on after an answer on another connection; an answer is cut by one."""
    event, begin = chunk(b'data: {"b": 2}\n\n'), ANSWER % (9, b'{"a"')
    assert told(STREAM, ANSWER % (2, b"{}"), event) == [EVENTS, JSON, "{}", '{"b": 2}']
    assert told(begin, ANSWER % (2, b"{}"), event) == [JSON, '{"a"', JSON, "{}", '{"b": 2}']


def test_what_is_large_is_counted_and_not_kept() -> None:
    sizes: list[tuple[int, int]] = []
    splitter = HttpSplitter(lambda head: None, lambda message, size: sizes.append((len(message), size)))
    splitter.feed(ANSWER % (3_000_000, b"x" * 1_000_000))
    splitter.feed(b"x" * 2_000_000 + ANSWER % (1, b"1"))
    assert sizes == [(1024 * 1024 + 1, 3_000_000), (1, 1)]
