"""Through which proxy a server is reached."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from sansmcp import LocalProtocolError
from sansmcp.http.proxy import Proxy, bypasses, is_loopback, parse_proxy, proxy_for
from sansmcp.http.url import parse_url

HTTP, HTTPS = "http://a.example/mcp", "https://a.example/mcp"
P = "http://proxy.example:3128"

CHOICES: list[tuple[str, dict[str, str], Any]] = [
    (HTTP, {}, None),
    (HTTP, {"http_proxy": P}, P),
    (HTTP, {"HTTP_PROXY": P}, P),
    (HTTP, {"https_proxy": P}, None),
    (HTTPS, {"http_proxy": P}, None),
    (HTTPS, {"https_proxy": P}, P),
    (HTTPS, {"HTTPS_PROXY": P}, P),
    (HTTPS, {"ALL_PROXY": P}, P),
    (HTTP, {"all_proxy": P}, P),
    (HTTPS, {"HTTPS_PROXY": P, "https_proxy": "http://lower.example:1"}, "http://lower.example:1"),
    (HTTPS, {"ALL_PROXY": P, "HTTPS_PROXY": "http://own.example:1"}, "http://own.example:1"),
    (HTTPS, {"https_proxy": " ", "ALL_PROXY": P}, P),
    # in a CGI program the upper-case name is a header of whoever calls it
    (HTTP, {"HTTP_PROXY": P, "REQUEST_METHOD": "POST"}, None),
    (HTTP, {"http_proxy": P, "REQUEST_METHOD": "POST"}, P),
    (HTTPS, {"HTTPS_PROXY": P, "REQUEST_METHOD": "POST"}, P),
    # exceptions
    (HTTP, {"http_proxy": P, "no_proxy": "a.example"}, None),
    (HTTP, {"http_proxy": P, "NO_PROXY": "a.example"}, None),
    (HTTP, {"http_proxy": P, "no_proxy": "", "NO_PROXY": "a.example"}, P),
    # this computer
    ("http://localhost:1/", {"http_proxy": P}, None),
    ("http://api.localhost/", {"http_proxy": P}, None),
    ("http://127.3.2.1:80/", {"http_proxy": P}, None),
    ("http://[::1]/", {"http_proxy": P}, None),
]


@pytest.mark.req("R11")
@pytest.mark.parametrize(("url", "environ", "chosen"), CHOICES)
def test_a_proxy_is_chosen_from_the_environment(url: str, environ: dict[str, str], chosen: Any) -> None:
    found = proxy_for(parse_url(url), environ)
    assert (found and str(found)) == chosen


EXCEPTIONS = [
    ("a.example", "a.example", True),
    ("x.a.example", "a.example", True),
    ("x.a.example", ".a.example", True),
    ("a.example", ".a.example", True),
    ("x.a.example", "*.a.example", True),
    ("xa.example", "a.example", False),
    ("a.example.org", "a.example", False),
    ("a.example", "A.EXAMPLE", True),
    ("a.example", "b.example, a.example", True),
    ("a.example", "b.example a.example", True),
    ("a.example", " ,, ", False),
    ("a.example", "*", True),
    ("a.example", "*,b.example", True),
    ("a.example", ".", False),
    ("a.example", "*.", False),
    ("a.example.", ".", False),
    ("a.example.", "a.example", True),
    ("a.example", "example.", True),
    ("a.example", "a.example:²", False),
    ("a.example:8080", "a.example:8080", True),
    ("a.example:8080", "a.example:80", False),
    ("a.example", "a.example:80", True),
    ("a.example:8080", "a.example", True),
    ("10.1.2.3", "10.1.2.3", True),
    ("10.1.2.3", "10.0.0.0/8", True),
    ("11.1.2.3", "10.0.0.0/8", False),
    ("10.1.2.3:99", "10.1.2.3:99", True),
    ("10.1.2.3:99", "10.1.2.3:98", False),
    ("10.1.2.3", ".2.3", False),
    ("a.example", "10.0.0.0/8", False),
    ("[2001:db8::1]", "2001:db8::/32", True),
    ("[2001:db8::1]", "2001:db8::1", True),
    ("[2001:db8::1]", "[2001:db8::1]", True),
    ("[2001:db8::1]:8080", "[2001:db8::1]:8080", True),
    ("[2001:db8::1]:8080", "[2001:db8::1]:80", False),
    ("[2001:db8::1]", "2001:db9::/32", False),
]


@pytest.mark.parametrize(("place", "exceptions", "without"), EXCEPTIONS)
def test_exceptions(place: str, exceptions: str, without: bool) -> None:
    assert bypasses(parse_url(f"http://{place}/mcp"), exceptions) is without


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port"),
    [
        ("proxy.example", "http", "proxy.example", 80),
        ("proxy.example:3128", "http", "proxy.example", 3128),
        ("http://proxy.example", "http", "proxy.example", 80),
        ("https://Proxy.Example", "https", "proxy.example", 443),
        ("http://[::1]:3128/", "http", "::1", 3128),
        ("http://u:p@proxy.example:3128", "http", "proxy.example", 3128),
    ],
)
def test_an_address_is_read(text: str, scheme: str, host: str, port: int) -> None:
    proxy = parse_proxy(text)
    assert (proxy.scheme, proxy.host, proxy.port) == (scheme, host, port)
    assert parse_proxy(str(proxy)).port == port


@pytest.mark.parametrize(
    ("user", "pair"),
    [("me:secret", "me:secret"), ("me", "me:"), ("me:a%3Ab%40c", "me:a:b@c"), ("m%C3%A9:x", "mé:x")],
)
def test_user_and_password_are_sent_and_never_shown(user: str, pair: str) -> None:
    proxy = parse_proxy(f"http://{user}@proxy.example:3128")
    assert proxy.authorization is not None
    scheme, _, coded = proxy.authorization.partition(" ")
    assert (scheme, b64decode(coded).decode()) == ("Basic", pair)
    assert repr(proxy) == "Proxy(http://proxy.example:3128)"
    assert str(proxy) == P


@pytest.mark.parametrize(
    "text",
    [
        "socks5://s3cret@proxy.example:1080",
        "http://",
        "http://s3cret@:80",
        "http://proxy.example:0",
        "http://s3cret@proxy.example:99999",
        "http://s3cret:ä@proxy.example",
        "http://pro xy/s3cret",
        "http://[::1",
    ],
)
def test_what_is_no_proxy_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        parse_proxy(text)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(LocalProtocolError):
        proxy_for(parse_url(HTTPS), {"https_proxy": text})


@pytest.mark.parametrize(
    ("host", "here"),
    [("localhost", True), ("127.0.0.2", True), ("::1", True), ("localhost.evil", False), ("10.0.0.1", False)],
)
def test_this_computer(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_a_proxy_is_a_value() -> None:
    assert parse_proxy(P) == Proxy("http", "proxy.example", 3128)
