"""Addresses: what is read from them, what they join to, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import LocalProtocolError
from sansmcp.http.url import Url, parse_url


@pytest.mark.parametrize(
    ("text", "origin", "authority", "target"),
    [
        ("https://example.com/mcp", ("https", "example.com", 443), "example.com", "/mcp"),
        ("HTTPS://Example.COM", ("https", "example.com", 443), "example.com", "/"),
        ("http://localhost:8000/a/b?x=1#f", ("http", "localhost", 8000), "localhost:8000", "/a/b?x=1"),
        ("http://localhost:80?x=1", ("http", "localhost", 80), "localhost", "/?x=1"),
        ("https://[::1]:8443/mcp", ("https", "::1", 8443), "[::1]:8443", "/mcp"),
        ("https://example.com/%C3%A9", ("https", "example.com", 443), "example.com", "/%C3%A9"),
        ("http://example.com:443/", ("http", "example.com", 443), "example.com:443", "/"),
    ],
)
def test_an_address_is_read(text: str, origin: object, authority: str, target: str) -> None:
    url = parse_url(text)
    assert (url.origin, url.authority, url.target) == (origin, authority, target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com/mcp",
        "/mcp",
        "ws://example.com/mcp",
        "http:///mcp",
        "http://",
        "http://user@example.com/s3cret",
        "http://user:s3cret@example.com/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:x/s3cret",
        "http://[::1/s3cret",
        "http://exa mple.com/s3cret",
        "http://example.com/s3cret\r\nx: 1",
        "http://example.com/\t",
        "http://exämple.com/s3cret",
        "http://example.com/é",
        "http://example.com/" + "x" * 8192,
        "http://exa<mple>.com/s3cret",
    ],
)
def test_what_is_none_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        parse_url(text)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        ("/x", "https://example.com/x"),
        ("x?y=1", "https://example.com/a/x?…"),
        ("../x", "https://example.com/x"),
        ("//other.example/x", "https://other.example/x"),
        ("http://example.com/x", "http://example.com/x"),
        ("?q", "https://example.com/a/b?…"),
        ("#f", "https://example.com/a/b"),
    ],
)
def test_references_are_joined(reference: str, shown: str) -> None:
    url = parse_url("https://example.com/a/b")
    assert str(url.join(reference)) == shown
    assert repr(url.join(reference)) == f"Url({shown})"


@given(st.text(max_size=40))
def test_joining_gives_an_address_or_a_value_error(reference: str) -> None:
    url = parse_url("https://example.com/a/b")
    try:
        joined = url.join(reference)
    except ValueError:
        return
    assert isinstance(joined, Url)
    assert joined.target.startswith("/")
    assert joined.target.isascii()
    assert not set(joined.target) & set(" \r\n\t#")
    assert parse_url(f"{joined.scheme}://{joined.authority}{joined.target}") == joined
