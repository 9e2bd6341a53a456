"""What a server writes, when it reads on, and what it holds back."""

from __future__ import annotations

import pytest

from sansmcp.errors import LocalProtocolError, PeerFault
from sansmcp.limits import CLIENT_LIMITS, SERVER_LIMITS
from sansmcp.wire.http1 import BodyEnd, FieldBlock, Http1Client, Http1Server, RequestHead

from .test_wire_http1 import drain, joined, received, shown, statuses
from .vectors.http1_messages import CHUNKED, CLOSED, GET, GOT, LIMITS, POST, POSTED, STREAM, head


def ending(server: Http1Server) -> tuple[bool, bool]:
    return server.should_close, server.lingers


@pytest.mark.req("R11")
def test_what_a_server_writes() -> None:
    server = received(POST)
    server.send_response(200, {"content-type": "application/json"}, b"{}", fixed=FieldBlock({"a": "b"}))
    assert server.data_to_send() == (
        b"HTTP/1.1 200 OK\r\na: b\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    )
    server = received(POST)
    server.start_response(299, [("content-type", "text/event-stream")])
    assert server.data_to_send() == (
        b"HTTP/1.1 299 \r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    server.send_data(b":\n\n")
    server.send_data(b"")
    assert server.data_to_send() == b"3\r\n:\n\n\r\n"
    server.send_data(b"x" * 16)
    server.send_end()
    assert server.data_to_send() == b"10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"
    assert server.idle
    assert ending(server) == (False, False)


@pytest.mark.req("R3")
def test_responses_without_a_body() -> None:
    for method, status in (("HEAD", 200), ("GET", 204), ("GET", 304)):
        for start in (False, True):
            server = received(b"%s / HTTP/1.1\r\nHost: x\r\n\r\n" % method.encode() + GET)
            if start:
                server.start_response(status)
                server.send_end()
            else:
                server.send_response(status, body=b"{}")
            out = server.data_to_send()
            assert out.endswith(b"\r\n\r\n")
            assert (b"content-length" in out, b"chunked" in out) == (
                (method == "HEAD" and not start, method == "HEAD" and start)
            )
            assert drain(server) == GOT
    server = received(head(line=b"HEAD / HTTP/1.1"))
    server.start_response(200, length=2)
    server.send_data(b"{}")
    server.send_end()
    assert server.data_to_send().endswith(b"content-length: 2\r\n\r\n")
    server = received(head(line=b"HEAD / HTTP/1.1"))
    server.start_response(200, length=2)
    server.send_end()
    assert server.data_to_send().endswith(b"content-length: 2\r\n\r\n")


@pytest.mark.req("R11")
def test_a_client_of_http_1_0_is_sent_no_chunks() -> None:
    server = received(b"POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    server.start_response(200)
    server.send_data(b"data: x\n\n")
    server.send_end()
    assert server.data_to_send() == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: x\n\n"
    assert ending(server) == (True, False)


@pytest.mark.req("R11")
def test_the_next_request_waits_for_the_response() -> None:
    server = Http1Server(LIMITS)
    server.receive_data(POST + GET)
    assert joined(drain(server)) == POSTED
    server.start_response(200)
    assert drain(server) == []
    server.send_data(b"x")
    for data, wanted in ((b"GET /", True), (b"x" * 300, False)):
        server.receive_data(data)
        assert drain(server) == []
        assert server.wants_data is wanted
    server.send_end()
    assert drain(server) == [*GOT]
    server.send_response(202)
    assert drain(server) == [(PeerFault.HEAD_TOO_LARGE, 431, True)]
    assert statuses(server.data_to_send()) == [200, 202, 431]


@pytest.mark.req("R11")
def test_what_is_sent_ahead_has_a_bound_even_if_nobody_heeds_wants_data() -> None:
    server = received(GET)
    for _ in range(LIMITS.max_head + 51):
        assert drain(server) == []
        server.receive_data(b"x")
    assert drain(server) == [(PeerFault.SENT_TOO_FAR_AHEAD, 400, False)]
    for _ in range(1000):
        server.receive_data(b"x")
    assert server.stats()["buffered"] == 0
    server.send_response(200)
    assert statuses(server.data_to_send()) == [200]
    assert ending(server)[0]


@pytest.mark.req("R11")
def test_100_continue_is_sent_when_the_body_is_wanted() -> None:
    waiting = head(b"Content-Length: 2", b"Expect: 100-continue")
    server = received(waiting)
    server.send_continue()
    server.send_continue()
    assert server.data_to_send() == b"HTTP/1.1 100 Continue\r\n\r\n"
    server.receive_data(b"{}")
    assert drain(server) == [("data", b"{}"), ("end",)]
    server.send_continue()
    server.send_response(200, body=b"ok")
    assert ending(server) == (False, False)
    # A refusal instead: the body may or may not come, so that nothing after it can be told apart.
    server = received(waiting)
    server.send_response(401)
    assert ending(server) == (True, True)
    for data in (waiting.replace(b"1.1", b"1.0"), head(b"Expect: 100-continue"), GET):
        server = received(data)
        server.send_continue()
        assert server.data_to_send() == b""
    server = Http1Server()
    server.receive_data(waiting + b"{")
    assert isinstance(server.next_event(), RequestHead)
    server.send_continue()
    assert server.data_to_send() == b""


@pytest.mark.req("R11")
def test_an_early_response_ends_the_connection_unless_the_request_is_here() -> None:
    server = Http1Server(LIMITS)
    server.receive_data(POST[:-1])
    assert isinstance(server.next_event(), RequestHead)
    server.send_response(401, body=b"no")
    assert b"connection: close" in server.data_to_send()
    assert ending(server) == (True, True)
    server.receive_data(b"}" + GET)
    assert joined(drain(server)) == [("data", b"{")]
    server.receive_eof()
    assert drain(server) == [CLOSED]
    assert ending(server) == (True, False)

    for data in (POST, GET):
        server = Http1Server(LIMITS)
        server.receive_data(data + GET)
        assert isinstance(server.next_event(), RequestHead)
        server.send_response(401)
        assert b"close" not in server.data_to_send()
        assert joined(drain(server))[-2:] == GOT


@pytest.mark.req("R11")
def test_a_fault_does_not_touch_the_response_that_was_begun_or_is_being_given() -> None:
    server = received(CHUNKED)
    server.start_response(200)
    server.receive_data(b"x\r\n")
    assert drain(server) == [(PeerFault.INVALID_CHUNK, 400, False)]
    assert ending(server) == (False, False)
    server.send_data(b"still")
    server.send_end()
    assert statuses(server.data_to_send()) == [200]
    assert ending(server)[0]

    server = Http1Server(LIMITS)
    server.receive_data(CHUNKED + b"x\r\n")
    assert isinstance(server.next_event(), RequestHead)
    server.send_response(403)
    assert drain(server) == [(PeerFault.INVALID_CHUNK, 400, False)]
    assert statuses(server.data_to_send()) == [403]


@pytest.mark.case("H-12")
def test_the_end_of_input_is_told_while_the_response_is_written() -> None:
    server = received(POST)
    server.start_response(200)
    server.receive_data(b"\r\n")
    server.receive_eof()
    assert drain(server) == [CLOSED]
    assert drain(server) == []
    assert ending(server) == (False, False)
    server.send_end()
    assert ending(server) == (True, False)


@pytest.mark.req("R7")
def test_the_limits_of_both_sides() -> None:
    assert (SERVER_LIMITS.max_body, CLIENT_LIMITS.max_body) == (4 << 20, 64 << 20)
    assert SERVER_LIMITS.max_head == CLIENT_LIMITS.max_head == 64 << 10


@pytest.mark.req("R7")
def test_the_bound_of_one_body_can_be_changed() -> None:
    client = Http1Client(LIMITS)
    for bound in (None, 300):
        client.send_request("GET", "/", [("host", "x")])
        client.receive_data(STREAM + b"fa\r\n")
        assert shown(client.next_event() or BodyEnd()) == (200,)
        client.set_max_body(bound)
        client.receive_data(b"x" * 250 + b"\r\n0\r\n\r\n")
        assert joined(drain(client)) == [("data", b"x" * 250), ("end",)]
    client.send_request("GET", "/", [("host", "x")])
    client.receive_data(STREAM + b"fa\r\n" + b"x" * 250)
    assert joined(drain(client)) == [(200,), ("data", b"x" * 50), (PeerFault.BODY_TOO_LARGE,)]
    with pytest.raises(LocalProtocolError, match="no body"):
        client.set_max_body(None)
