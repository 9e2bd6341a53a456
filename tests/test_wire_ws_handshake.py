"""The opening handshake of a WebSocket: what is asked, what is answered, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import CLIENT_LIMITS, SERVER_LIMITS, LocalProtocolError, PeerFault
from sansmcp.limits import Limits
from sansmcp.wire.ws_handshake import Agreed, Asked, ClientHandshake, Refused, ServerHandshake, Unfit

pytestmark = pytest.mark.req("S1")

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
FIELDS = {
    "host": "localhost",
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec-websocket-key": KEY,
    "sec-websocket-version": "13",
    "sec-websocket-protocol": "mcp",
}


def asking(line: str = "GET /mcp HTTP/1.1", **changes: str | None) -> bytes:
    fields = {**FIELDS, **{name.replace("_", "-"): value for name, value in changes.items()}}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([line, *lines, "", ""]).encode("latin-1")


def fed(handshake: ServerHandshake | ClientHandshake, data: bytes, size: int) -> object:
    for at in range(0, len(data), size):
        found = handshake.receive_data(data[at : at + size])
        if found is not None:
            if size >= len(data):
                return found
            if isinstance(handshake, ServerHandshake):
                handshake.rest += data[at + size :]
            return found
    return None


SIZES = pytest.mark.parametrize("size", [1 << 20, 1, 7], ids=["whole", "bytes", "sevens"])

UNFIT = {
    "no upgrade": (asking(upgrade=None), 426, PeerFault.INVALID_UPGRADE),
    "another upgrade": (asking(upgrade="h2c"), 426, PeerFault.INVALID_UPGRADE),
    "no connection": (asking(connection=None), 400, PeerFault.INVALID_UPGRADE),
    "no key": (asking(sec_websocket_key=None), 400, PeerFault.INVALID_UPGRADE),
    "a key that is none": (asking(sec_websocket_key="x"), 400, PeerFault.INVALID_UPGRADE),
    "a key of 15 bytes": (
        asking(sec_websocket_key=base64.b64encode(b"x" * 15).decode()),
        400,
        PeerFault.INVALID_UPGRADE,
    ),
    "two keys": (asking(more=f"1\r\nsec-websocket-key: {KEY}"), 400, PeerFault.INVALID_UPGRADE),
    "two versions": (asking(more="1\r\nsec-websocket-version: 8"), 426, PeerFault.INVALID_UPGRADE),
    "an upgrade to something like it": (asking(upgrade="websocket2"), 426, PeerFault.INVALID_UPGRADE),
    "no version": (asking(sec_websocket_version=None), 400, PeerFault.INVALID_UPGRADE),
    "another version": (asking(sec_websocket_version="8"), 426, PeerFault.INVALID_UPGRADE),
    "no host": (asking(host=None), 400, PeerFault.INVALID_HTTP_HEAD),
    "a body": (asking(content_length="3"), 400, PeerFault.INVALID_UPGRADE),
    "a post": (asking("POST /mcp HTTP/1.1"), 400, PeerFault.INVALID_UPGRADE),
    "HTTP/1.0": (asking("GET /mcp HTTP/1.0"), 400, PeerFault.INVALID_UPGRADE),
    "a message": (b'{"jsonrpc":"2.0"}\n', 400, PeerFault.INVALID_HTTP_HEAD),
    "TLS": (b"\x16\x03\x01\x02\x00\x01", 400, PeerFault.INVALID_HTTP_HEAD),
    "latin-1": (asking(origin="http://\xfc"), 400, PeerFault.NON_ASCII_HEADER),
    "a host that is no name": (asking(host="xn--\x7f"), 400, PeerFault.INVALID_HTTP_HEAD),
    "a host whose name cannot be": (asking(host="xn--a" + "b" * 70), 400, PeerFault.INVALID_UPGRADE),
    "a large head": (asking(cookie="x" * 70_000), 431, PeerFault.HEAD_TOO_LARGE),
    "many fields": (
        asking(**{f"x-{n}": "1" for n in range(120)}),
        431,
        PeerFault.HEAD_TOO_LARGE,
    ),
}


@SIZES
@pytest.mark.parametrize("name", UNFIT)
def test_what_is_no_handshake_is_turned_away(name: str, size: int) -> None:
    data, status, fault = UNFIT[name]
    found = fed(ServerHandshake(SERVER_LIMITS), data, size)
    assert isinstance(found, Unfit)
    assert found.fault is fault
    assert found.answer.startswith(b"HTTP/1.1 %d " % status)
    head, _, body = found.answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"content-length: %d" % len(body) in head
    if status == 426:
        assert b"sec-websocket-version: 13" in head


@SIZES
def test_a_handshake_is_asked_and_answered(size: int) -> None:
    server = ServerHandshake(SERVER_LIMITS)
    found = fed(server, asking() + b"behind", size)
    assert isinstance(found, Asked)
    assert found.subprotocols == ("mcp",)
    assert found.head.target == "/mcp"
    assert server.rest == b"behind"
    answer = server.accept("mcp")
    digest = hashlib.sha1(f"{KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
    assert base64.b64encode(digest) in answer
    assert b"Sec-WebSocket-Protocol: mcp\r\n" in answer
    assert b"extensions" not in answer.lower()


@pytest.mark.case("W-01")
@pytest.mark.parametrize(
    ("changes", "subprotocols"),
    [
        ({"upgrade": "h2c, WebSocket"}, ("mcp",)),
        ({"more": "1\r\nupgrade: h2c"}, ("mcp",)),
        ({"connection": "keep-alive, upgrade"}, ("mcp",)),
        ({"more": "1\r\nconnection: keep-alive"}, ("mcp",)),
        ({"more": "1\r\nsec-websocket-protocol: other"}, ("mcp", "other")),
        ({"sec_websocket_protocol": "other, mcp"}, ("other", "mcp")),
        ({"sec_websocket_protocol": "MCP"}, ("MCP",)),
    ],
)
def test_fields_may_be_lists_or_repeated(changes: dict[str, str], subprotocols: tuple[str, ...]) -> None:
    found = ServerHandshake(SERVER_LIMITS).receive_data(asking(**changes))
    assert isinstance(found, Asked)
    assert found.subprotocols == subprotocols


def test_extensions_are_not_negotiated() -> None:
    server = ServerHandshake(SERVER_LIMITS)
    server.receive_data(asking(sec_websocket_extensions="permessage-deflate; client_max_window_bits"))
    assert b"extensions" not in server.accept("mcp").lower()
    assert b"extensions" not in client().request.lower()


def client(headers: dict[str, str] | None = None, limits: Limits = CLIENT_LIMITS) -> ClientHandshake:
    return ClientHandshake("localhost:8000", "/mcp", headers or {}, limits)


def answer_to(handshake: ClientHandshake, **changes: str | None) -> bytes:
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", handshake.request)
    assert key is not None
    digest = hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    fields: dict[str, str | None] = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": base64.b64encode(digest).decode(),
        "sec-websocket-protocol": "mcp",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines, "", ""]).encode("latin-1")


def test_what_a_client_asks() -> None:
    request = client({"authorization": "Bearer secret"}).request
    assert request.startswith(b"GET /mcp HTTP/1.1\r\nHost: localhost:8000\r\n")
    assert b"Sec-WebSocket-Protocol: mcp\r\n" in request
    assert b"authorization: Bearer secret\r\n" in request


@pytest.mark.parametrize(
    ("host", "headers"),
    [
        ("localhost", {"host": "x"}),
        ("localhost", {"Sec-WebSocket-Key": "x"}),
        ("localhost", {"connection": "close"}),
        ("localhost", {"x": "a\r\nb: c"}),
        ("localhost", {"x": "\xfc"}),
        ("a" * 70, {}),
    ],
)
def test_what_a_client_cannot_ask(host: str, headers: dict[str, str]) -> None:
    with pytest.raises(LocalProtocolError):
        ClientHandshake(host, "/mcp", headers, CLIENT_LIMITS)


@SIZES
@pytest.mark.case("W-01")
def test_an_answer_that_agrees(size: int) -> None:
    for selected in ("mcp", None):
        handshake = client()
        data = answer_to(handshake, sec_websocket_protocol=selected) + b"behind"
        found, at = None, 0
        while found is None:
            found = handshake.receive_data(data[at : at + size])
            at += size
        assert isinstance(found, Agreed)
        assert found.subprotocol == selected
        assert found.rest + data[at:] == b"behind"


@pytest.mark.case("W-01")
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"sec_websocket_accept": "x"}, PeerFault.INVALID_UPGRADE),
        ({"sec_websocket_accept": None}, PeerFault.INVALID_UPGRADE),
        ({"upgrade": "h2c"}, PeerFault.INVALID_UPGRADE),
        ({"connection": None}, PeerFault.INVALID_UPGRADE),
        ({"sec_websocket_extensions": "permessage-deflate"}, PeerFault.INVALID_UPGRADE),
        ({"sec_websocket_protocol": "soap"}, PeerFault.UNKNOWN_SUBPROTOCOL),
        ({"sec_websocket_protocol": "mcp, mcp"}, PeerFault.UNKNOWN_SUBPROTOCOL),
        ({"sec_websocket_protocol": "\xfc"}, PeerFault.NON_ASCII_HEADER),
        ({"more": "1\r\nSec-WebSocket-Protocol: mcp"}, PeerFault.INVALID_UPGRADE),
        ({"upgrade": "websocket\r\nsec-websocket-accept: x"}, PeerFault.INVALID_UPGRADE),
        ({f"x-{n}": "1" for n in range(120)}, PeerFault.HEAD_TOO_LARGE),
    ],
)
def test_an_answer_that_cannot_agree(changes: dict[str, str | None], fault: PeerFault) -> None:
    handshake = client()
    found = handshake.receive_data(answer_to(handshake, **changes))
    assert isinstance(found, Refused)
    assert found.fault is fault


@SIZES
@pytest.mark.parametrize(
    ("answer", "status", "fault"),
    [
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, None),
        (b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\n\r\n", 401, None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, None),
        (b"HTTP/1.0 500 Oh\r\n\r\n", 500, None),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 503 Busy\r\n\r\n", 503, None),
        (b"no HTTP at all", None, PeerFault.INVALID_HTTP_HEAD),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, None, PeerFault.HEAD_TOO_LARGE),
    ],
)
def test_an_answer_that_refuses(
    answer: bytes, status: int | None, fault: PeerFault | None, size: int
) -> None:
    found = fed(client(), answer, size)
    assert isinstance(found, Refused)
    assert (found.status, found.fault) == (status, fault)


@given(st.binary(max_size=300))
def test_any_bytes_are_taken(data: bytes) -> None:
    for start in (b"", b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n"):
        ServerHandshake(SERVER_LIMITS).receive_data(start + data)
    for start in (b"", b"HTTP/1.1 101 \r\n", b"HTTP/1.1 101 X\r\nupgrade: websocket\r\n"):
        client().receive_data(start + data)
