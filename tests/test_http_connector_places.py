"""A connector that reaches more than one origin, for a client that has to be authorized elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import AddressPolicy, ClockPair
from sansmcp.auth.client import AuthorizedClient
from sansmcp.auth.oauth import OAuth
from sansmcp.auth.registration import Registration
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem, NetworkProblem
from sansmcp.events import AuthorizationUrlReady, EraDecided, SessionEnded
from sansmcp.http.connector import HttpConnector
from sansmcp.http.place import MAX_PLACES
from sansmcp.http.pool import PoolPolicy
from sansmcp.http.proxy import Proxy, parse_proxy
from sansmcp.http.url import Url, parse_url

from .auth_support import AS, CALLBACK
from .http_client_support import URL
from .http_connector_support import Net, Wire, response
from .support import DISCOVER

JSON = "content-type: application/json"
SERVER = {
    "issuer": AS,
    "authorization_endpoint": f"{AS}/authorize",
    "token_endpoint": f"{AS}/token",
    "code_challenge_methods_supported": ["S256"],
}


class AuthNet(Net):
    """A connector of an authorized client; `proxy_of` is the one by which others are reached."""

    def __init__(
        self, proxy_of: Any = lambda url: None, pool: Any = None, private: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        oauth = OAuth(
            redirect_uri=CALLBACK,
            client=Registration(client_id="kn0wn"),
            addresses=AddressPolicy(private=private),
        )
        self.authorized = AuthorizedClient(
            self.client, oauth, now=0.0, clock=ClockPair(0.0, 0.0), entropy=lambda size: b"x" * size
        )
        self.connector = HttpConnector(
            self.authorized, now=0.0, pool=PoolPolicy(**(pool or {})), proxy_of=proxy_of
        )

    def refused(self) -> Wire:
        """Get to where the metadata of the authorization server is asked for; returns that connection."""
        self.connector.start(self.now)
        self.drain()
        home = self.open()
        self.send(home, response(401, "www-authenticate: Bearer"))
        document = {"resource": URL, "authorization_servers": [AS]}
        self.send(home, response(200, JSON, body=json.dumps(document).encode()))
        assert self.last is not home
        return self.last

    def document(self, wire: Wire, value: Any, *fields: str) -> None:
        self.send(wire, response(200, JSON, *fields, body=json.dumps(value).encode()))

    def logged_in(self) -> None:
        state = self.one(AuthorizationUrlReady).url.split("state=")[1].split("&")[0]
        assert self.authorized.redirect_received(f"{CALLBACK}?code=c&state={state}", self.now)
        self.drain()


def test_the_way_to_a_token_over_connections() -> None:
    net = AuthNet()
    other = net.refused()
    home = net.wires[1]
    assert (other.host, other.port, other.tls) == ("as.example", 443, "as.example")
    assert home.methods == ["server/discover", "GET"]
    assert net.connector.stats()["other_places"] == 1
    net.open(other)
    head, _ = other.requests[0]
    assert dict(head.headers.items())["host"] == "as.example"
    assert head.target == "/.well-known/oauth-authorization-server"
    net.document(other, SERVER, "keep-alive: timeout=5")
    net.logged_in()
    assert len(net.wires) == 2, "the same connection"
    assert other.requests[-1][0].target == "/token"
    assert b"code=c&" in other.requests[-1][1]
    net.document(other, {"access_token": "t0ken", "token_type": "Bearer"})
    assert dict(home.requests[-1][0].headers.items())["authorization"] == "Bearer t0ken"
    assert all("authorization" not in dict(head.headers.items()) for head, _ in other.requests)
    net.answer(home, DISCOVER)
    net.one(EraDecided)
    net.advance(5.0)
    assert other.closed
    assert not home.closed
    assert net.connector.stats()["other_places"] == 0
    net.close()
    assert net.connector.finished


def test_others_are_reached_by_their_own_proxies() -> None:
    asked: list[Url] = []

    def proxy_of(url: Url) -> Proxy:
        asked.append(url)
        return parse_proxy("http://u:p@proxy.example:3128")

    net = AuthNet(proxy_of)
    other = net.refused()
    assert (other.host, other.port, other.tls) == ("proxy.example", 3128, None)
    assert [url.host for url in asked] == ["as.example"]
    net.open(other)
    assert other.requests[0][0].method == "CONNECT"
    assert other.requests[0][0].target == "as.example:443"
    net.send(other, b"HTTP/1.1 200 OK\r\n\r\n")
    assert other.secured == "as.example"
    net.open(other)
    net.document(other, SERVER)
    net.one(AuthorizationUrlReady)


def test_a_place_that_cannot_be_reached() -> None:
    net = AuthNet()
    net.fail(net.refused(), "no such host", NetworkProblem.NAME)
    net.fail(net.last, "no such host", NetworkProblem.NAME)
    error = net.one(SessionEnded).error
    assert isinstance(error, AuthorizationFailed)
    assert error.problem is AuthorizationProblem.UNREACHABLE
    assert "as.example:443" in str(error)
    net.close()
    assert net.connector.stats()["other_places"] == 0
    assert net.connector.finished


def test_a_place_to_which_no_connection_comes_about() -> None:
    net = AuthNet(pool={"connect_timeout": 3.0})
    net.refused()
    net.advance(7.0)
    error = net.one(SessionEnded).error
    assert isinstance(error, AuthorizationFailed)
    assert "within 3 s" in str(error)


def inside(peer: str | None, *, home: str | None = None, **options: Any) -> AuthNet:
    """The authorization server's name leads to `peer`, the server's own to `home`."""
    net = AuthNet(**options)
    net.connector.start(net.now)
    net.drain()
    wire = net.last
    net.connector.opened(wire.conn, net.now, home)
    net.drain()
    net.send(wire, response(401, "www-authenticate: Bearer"))
    document = {"resource": URL, "authorization_servers": [AS]}
    net.send(wire, response(200, JSON, body=json.dumps(document).encode()))
    net.connector.opened(net.last.conn, net.now, peer)
    net.drain()
    return net


@pytest.mark.case("A-08")
@pytest.mark.parametrize(
    "peer", ["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "fd00::1", "::ffff:10.0.0.1"]
)
def test_a_name_that_leads_into_the_network_is_not_asked(peer: str) -> None:
    net = inside(peer, home="8.8.8.8")
    assert all(wire.closed for number, wire in net.wires.items() if number == 2)
    assert not net.wires[2].requests
    net.connector.opened(net.last.conn, net.now, peer)  # the second place where it may be
    net.drain()
    error = net.one(SessionEnded).error
    assert isinstance(error, AuthorizationFailed)
    assert error.problem is AuthorizationProblem.FORBIDDEN_ADDRESS
    assert peer in str(error)
    assert not any(wire.requests for number, wire in net.wires.items() if number > 1)


@pytest.mark.case("A-08")
@pytest.mark.parametrize(
    ("peer", "home", "options"),
    [
        (None, None, {}),
        ("8.8.8.8", "1.1.1.1", {}),
        ("10.0.0.1", "10.9.9.9", {}),
        ("127.0.0.1", "127.0.0.1", {}),
        ("10.0.0.1", "1.1.1.1", {"proxy_of": lambda url: parse_proxy("http://10.0.0.1:3128")}),
        ("10.0.0.1", "1.1.1.1", {"private": True}),
    ],
)
def test_what_is_no_further_inside_than_the_server_is_asked(peer: Any, home: Any, options: Any) -> None:
    net = inside(peer, home=home, **options)
    assert net.wires[2].requests


def test_the_origin_of_the_server_is_one_place_however_it_is_written() -> None:
    net = AuthNet()
    net.refused()
    assert net.connector._place_of(parse_url("HTTPS://Example.com:443/x"), True) is net.connector._home


def test_more_places_than_there_may_be() -> None:
    net = AuthNet()
    net.refused()
    found = [net.connector._place_of(parse_url(f"https://h{n}.example/"), True) for n in range(MAX_PLACES)]
    assert [place is None for place in found] == [False] * (MAX_PLACES - 1) + [True]
