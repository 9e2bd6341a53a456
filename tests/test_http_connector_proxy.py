"""A client's connections by way of a proxy, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import EraDecided, ResultReady, SessionEnded
from sansmcp.errors import NetworkProblem

from .http_client_support import CUTS
from .http_connector_support import Net, Wire, response, settled
from .support import DISCOVER

PROXY = "http://me:s3cret@proxy.example:3128"
CREDENTIALS = "Basic bWU6czNjcmV0"


@pytest.mark.req("R11")
@pytest.mark.parametrize("cut", CUTS)
def test_a_plain_request_goes_to_the_proxy(cut: Any) -> None:
    net = Net(url="http://a.example:8080/mcp", proxy=PROXY, cut=cut).connected()
    net.call()
    wire = net.last
    assert (wire.host, wire.port, wire.tls) == ("proxy.example", 3128, None)
    for head, _ in wire.requests:
        assert head.target == "http://a.example:8080/mcp"
        assert head.headers["host"] == "a.example:8080"
        assert head.headers["proxy-authorization"] == CREDENTIALS
    net.answer(wire)
    net.one(ResultReady)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_secure_connection_goes_through_the_proxy(scheme: str, cut: Any) -> None:
    net = Net(proxy=PROXY.replace("http:", f"{scheme}:"), cut=cut)
    net.connector.start(0.0)
    net.drain()
    wire = net.open()
    assert (wire.host, wire.port) == ("proxy.example", 3128)
    assert wire.tls == ("proxy.example" if scheme == "https" else None)
    ((head, _),) = wire.requests
    assert (head.method, head.target) == ("CONNECT", "example.com:443")
    assert head.headers == {"host": "example.com:443", "proxy-authorization": CREDENTIALS}
    net.send(wire, b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert wire.secured == "example.com"
    wire.data.clear()
    wire.requests.clear()
    net.open(wire)
    net.answer(wire, DISCOVER, "connection: keep-alive")
    net.one(EraDecided)
    net.call()
    net.answer(wire)
    net.one(ResultReady)
    assert len(net.wires) == 1
    assert b"CONNECT" not in wire.data
    assert b"roxy" not in wire.data, "the server does not see what is the proxy's"
    assert wire.requests[0][0].target == "/mcp"


REFUSALS = [
    (407, "put user and password into the proxy's URL", False),
    (403, "may be used for this host", False),
    (502, "refused the connection to example.com with HTTP 502", True),
]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("status", "hint", "retryable"), REFUSALS)
def test_a_proxy_that_refuses_is_told_from_the_server(
    status: int, hint: str, retryable: bool, cut: Any
) -> None:
    net = Net(proxy=PROXY, cut=cut)
    net.connector.start(0.0)
    net.drain()
    net.send(net.open(), response(status, body=b"<html>"))
    error: Any = net.one(SessionEnded).error
    assert (error.problem, error.status) == (NetworkProblem.PROXY, status)
    assert error.retryable is retryable
    assert "the proxy http://proxy.example:3128" in str(error)
    assert hint in str(error)
    assert net.last.closed
    settled(net)


def test_a_proxy_that_wants_a_password_for_a_plain_request() -> None:
    net = Net(url="http://a.example/mcp", proxy="proxy.example")
    net.connector.start(0.0)
    net.drain()
    net.send(net.open(), response(407, "proxy-authenticate: Basic"))
    error: Any = net.one(SessionEnded).error
    assert (error.problem, error.status) == (NetworkProblem.PROXY, 407)


def is_silent(net: Net, wire: Wire) -> None:
    net.open(wire)
    net.advance(15.0)


TUNNEL = b"HTTP/1.1 200 OK\r\n\r\n"
TUNNEL_FAILURES: list[tuple[str, Callable[[Net, Wire], None], str]] = [
    ("nobody there", lambda net, wire: net.fail(wire, "refused", NetworkProblem.REFUSED), "to the proxy"),
    ("it hangs up", lambda net, wire: net.eof(net.open(wire)), "through the proxy"),
    ("something else", lambda net, wire: net.send(net.open(wire), b"SSH-2.0\r\n"), "no proper HTTP"),
    ("it speaks itself", lambda net, wire: net.send(net.open(wire), TUNNEL + TUNNEL), "data of its own"),
    ("it is silent", is_silent, "within 10 s"),
]


@pytest.mark.parametrize(
    ("step", "hint"), [row[1:] for row in TUNNEL_FAILURES], ids=[row[0] for row in TUNNEL_FAILURES]
)
def test_other_failures_of_a_proxy(step: Callable[[Net, Wire], None], hint: str) -> None:
    net = Net(proxy=PROXY, mode=None, timeouts=None)
    net.connector.start(0.0)
    net.drain()
    step(net, net.last)
    error: Any = [e.error for e in net.of(SessionEnded)][-1]
    assert hint in str(error)
    assert "s3cret" not in f"{error!r} {net.connector!r}"
    settled(net)
