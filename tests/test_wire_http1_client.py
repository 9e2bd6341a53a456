"""A client reads responses early, late and from a closing server, and reuses what can be reused."""

from __future__ import annotations

import pytest

from sansmcp.errors import LocalProtocolError, PeerFault
from sansmcp.wire.http1 import FieldBlock, Http1Client

from .test_wire_http1 import drain, joined
from .vectors.http1_messages import CLOSED, OK, STREAM


def state(client: Http1Client) -> tuple[bool, bool]:
    return client.reusable, client.unanswered


@pytest.mark.req("R11")
@pytest.mark.case("H-10")
def test_what_a_client_writes() -> None:
    client = Http1Client()
    fixed = FieldBlock([("Accept", "application/json, text/event-stream"), ("A", "")])
    client.send_request("POST", "/mcp", {"Host": "x", "b": "c"}, b"{}", fixed=fixed)
    assert client.data_to_send() == (
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nb: c\r\nAccept: application/json, text/event-stream\r\nA: \r\n"
        b"content-length: 2\r\n\r\n{}"
    )
    for method, length in (("GET", b""), ("DELETE", b""), ("POST", b"content-length: 0\r\n")):
        client = Http1Client()
        client.send_request(method, "/", fixed=FieldBlock({"host": "x"}), close=True)
        assert client.data_to_send() == (
            method.encode() + b" / HTTP/1.1\r\nhost: x\r\n" + length + b"connection: close\r\n\r\n"
        )
        client.receive_data(OK)
        assert drain(client)
        assert client.should_close


@pytest.mark.req("R11")
@pytest.mark.case("H-14")
def test_the_connection_is_used_again_when_the_response_was_read() -> None:
    client = Http1Client()
    for _ in range(10):
        assert state(client) == (True, False)
        client.send_request("POST", "/", {"host": "x"}, b"{}")
        assert state(client) == (False, True)
        client.receive_data(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n\r")
        assert joined(drain(client)) == [(202,), ("data", b" ")]
        assert state(client) == (False, False)
        client.receive_data(b"\n")
        assert client.next_event() is not None
    client.receive_data(b"HTTP/1.1 408 X\r\n")
    assert not state(client)[0]
    assert drain(client) == [(PeerFault.UNSOLICITED_DATA,)]


@pytest.mark.req("R11")
def test_a_connection_that_ended_before_a_byte_of_the_response() -> None:
    client = Http1Client()
    client.receive_eof()
    assert not state(client)[0]
    assert drain(client) == [CLOSED]
    client = Http1Client()
    client.send_request("POST", "/", {"host": "x"})
    client.receive_eof()
    assert drain(client) == [CLOSED]
    assert client.unanswered
    assert client.should_close
    client = Http1Client()
    client.send_request("POST", "/", {"host": "x"})
    client.receive_data(b"HTTP/1.1 100 Continue\r\n\r\n")
    client.receive_eof()
    assert drain(client) == [("interim", 100), CLOSED]
    assert not state(client)[1]


@pytest.mark.req("R11")
def test_a_response_may_come_before_the_request_is_complete() -> None:
    client = Http1Client()
    client.start_request("POST", "/", {"host": "x"}, length=10)
    client.send_data(b"12345")
    assert client.data_to_send().endswith(b"content-length: 10\r\n\r\n12345")
    client.receive_data(b"HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n")
    assert drain(client) == [(413,), ("end",)]
    assert client.should_close
    client.send_data(b"67890")
    assert client.data_to_send() == b""

    client = Http1Client()
    client.start_request("POST", "/", {"host": "x"}, length=2)
    client.receive_data(STREAM)
    assert drain(client) == [(200,)]
    client.send_data(b"{}")
    client.receive_data(b"0\r\n\r\n")
    assert drain(client) == [("end",)]
    assert state(client)[0]


@pytest.mark.req("R11")
def test_a_tunnel() -> None:
    client = Http1Client()
    client.send_request("CONNECT", "x:443", {"host": "x:443"})
    client.receive_data(b"HTTP/1.1 200 Go\r\nContent-Length: 5\r\n\r\n\x16\x03")
    assert drain(client) == [(200,), ("end",)]
    client.receive_data(b"\x01")
    assert drain(client) == []
    assert client.take_tunnel_data() == b"\x16\x03\x01"
    assert client.take_tunnel_data() == b""
    assert not state(client)[0]
    client = Http1Client()
    client.send_request("CONNECT", "x:443", {"host": "x:443"})
    client.receive_data(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
    assert drain(client) == [(407,), ("end",)]
    with pytest.raises(LocalProtocolError, match="tunnel"):
        client.take_tunnel_data()
