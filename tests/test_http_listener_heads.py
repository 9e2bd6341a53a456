"""What the head of a request decides, on a connection: whether its body is asked for and read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import Limits, PeerFault
from sansmcp.ops import Write

from .http_support import call
from .support import MODERN, meta
from .test_http_listener import Wire, ask, head, reasons


def expecting(data: bytes) -> tuple[bytes, bytes]:
    begin, _, body = data.partition(b"\r\n\r\n")
    return begin + b"\r\nexpect: 100-continue\r\n\r\n", body


def test_a_body_is_asked_for_if_it_is_wanted() -> None:
    wire = Wire()
    seen = wire.connect()
    begin, body = expecting(ask())
    wire.send(begin)
    assert seen.statuses == [100]
    wire.send(body)
    assert seen.statuses == [100, 200]
    whole = Wire()
    whole.connect()
    assert whole.send(begin + body).statuses == [200]


@pytest.mark.req("R6", "R7")
@pytest.mark.case("H-16", "H-17", "H-18")
@pytest.mark.parametrize(
    ("fields", "line", "status", "fault"),
    [
        ({"origin": "https://evil.example"}, "POST /mcp", 403, PeerFault.FOREIGN_ORIGIN),
        ({"origin": "null"}, "POST /mcp", 403, PeerFault.FOREIGN_ORIGIN),
        ({"host": "evil.example"}, "POST /mcp", 421, PeerFault.FOREIGN_HOST),
        ({"host": "a b"}, "POST /mcp", 400, PeerFault.FOREIGN_HOST),
        ({}, "POST http://evil.example/mcp", 421, PeerFault.FOREIGN_HOST),
        ({}, "POST HTTPS://localhost.evil.example:443/mcp", 421, PeerFault.FOREIGN_HOST),
        ({}, "POST http://localhost@evil.example/mcp", 400, PeerFault.FOREIGN_HOST),
        ({}, "POST http:///mcp", 400, PeerFault.FOREIGN_HOST),
        ({}, "POST http://localhost/elsewhere", 404, PeerFault.WRONG_ENDPOINT),
        ({}, "POST http://localhost", 404, PeerFault.WRONG_ENDPOINT),
        ({}, "POST /elsewhere", 404, PeerFault.WRONG_ENDPOINT),
        ({}, "PUT /mcp", 405, PeerFault.WRONG_ENDPOINT),
        ({"content-type": "text/plain"}, "POST /mcp", 415, PeerFault.WRONG_MEDIA_TYPE),
        ({"content-length": 5001}, "POST /mcp", 413, PeerFault.BODY_TOO_LARGE),
        ({"content-length": "9" * 19}, "POST /mcp", 413, PeerFault.BODY_TOO_LARGE),
    ],
)
@pytest.mark.parametrize("expects", [False, True])
def test_what_the_head_decides_is_decided_before_the_body(
    fields: dict[str, Any], line: str, status: int, fault: PeerFault, expects: bool
) -> None:
    given = {"content-type": "application/json", "content-length": 5000, **fields}
    if expects:
        given["expect"] = "100-continue"
    begin = head(fields=given).replace(b"POST /mcp", line.encode(), 1)
    wire = Wire(limits=Limits(max_body=5000))
    seen = wire.connect()
    wire.send(begin)
    assert seen.statuses == [status]
    assert b"connection: close" in seen.data
    assert reasons(wire) == [fault]
    assert (seen.half_closed, seen.closed) == (True, False), "it may still be sending"
    data = seen.data
    for _ in range(10):
        wire.send(b"x" * 1000)
        assert wire.listener.stats()["buffered"] == 0
    assert seen.data == data
    assert wire.listener.wants_data(1)
    wire.advance(2.0)
    assert seen.closed
    assert len(wire.said) == 1
    assert wire.listener.stats() == Wire().listener.stats()


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "x-mcp-header": "City"}},
}


@pytest.mark.req("C9", "C6", "C7")
@pytest.mark.case("P-04")
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["mcp-name: a, b", "mcp-param-city: Oslo, NO"], 200),
        (["mcp-name: a", "mcp-name: b", "mcp-param-city: Oslo, NO"], 400),
        (["mcp-name: a, b", "mcp-param-city: Oslo", "Mcp-Param-City: NO"], 400),
        (["mcp-name: a, b", "mcp-name: a, b", "mcp-param-city: Oslo, NO"], 400),
        (["mcp-name: a, b", "mcp-param-city: Oslo, NO", "x-other: 1", "x-other: 2"], 200),
    ],
)
def test_two_lines_are_not_one_value_with_a_comma(lines: list[str], status: int) -> None:
    """What stands between may have gone by the first line, or by the last."""
    wire = Wire(input_schema=lambda name: SCHEMA)
    seen = wire.connect()
    params = {"name": "a, b", "arguments": {"city": "Oslo, NO"}, "_meta": meta()}
    body = json.dumps(call("tools/call", params)).encode()
    fields = {"content-type": "application/json", "content-length": len(body)}
    fields |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"}
    begin = head(fields=fields).removesuffix(b"\r\n") + "\r\n".join([*lines, "", ""]).encode()
    for times in (1, 2):
        wire.send(begin + body)
        assert seen.statuses == [status] * times
    assert (b"-32020" in seen.data) is (status == 400)


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    "target", ["http://localhost/mcp", "HTTP://LOCALHOST:3000/mcp?x=y", "https://[::1]/mcp"]
)
def test_a_request_line_may_hold_the_whole_address(target: str) -> None:
    wire = Wire()
    seen = wire.connect()
    wire.send(ask().replace(b"POST /mcp", b"POST " + target.encode(), 1))
    assert seen.statuses == [200]


@pytest.mark.req("R7")
def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large() -> None:
    wire = Wire(limits=Limits(max_body=5000))
    seen = wire.connect()
    wire.send(head(fields={"content-type": "application/json", "transfer-encoding": "chunked"}))
    for n in range(1, 6):
        wire.send(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
        assert seen.statuses == []
        assert wire.listener.stats()["buffered"] == n * 1000
    wire.send(b"1\r\nx")
    assert seen.statuses == [413]
    assert reasons(wire) == [PeerFault.BODY_TOO_LARGE]
    assert wire.listener.stats()["buffered"] == 0
    wire.send(b"x" * 10_000)
    assert wire.listener.stats()["buffered"] == 0
    wire.advance(2.0)
    assert seen.closed


def test_a_refusal_without_a_body_keeps_the_connection() -> None:
    wire = Wire()
    seen = wire.connect()
    for method, fields in [("PUT", {}), ("GET", {"host": "evil.example"}), ("POST", {"content-length": 0})]:
        wire.send(head(method, fields))
    wire.send(ask())
    assert seen.statuses == [405, 421, 415, 200]
    assert not seen.half_closed


def test_while_events_pile_up_no_head_is_refused() -> None:
    wire = Wire(limits=Limits(max_buffered_events=2))
    seen = wire.connect()
    wire.listener.receive_data(1, head("PUT") * 5, 0.0)
    op = wire.listener.next_op()
    assert isinstance(op, Write)
    assert op.data.count(b" 405 ") == wire.listener.stats()["events"] == 2
    wire.drain()
    assert seen.statuses == [405] * 3, "the rest of them"
