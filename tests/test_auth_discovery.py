"""Where metadata is looked for, what is believed of it, and which addresses are asked at all."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.auth.addresses import AddressPolicy, Reach, named_url, reach_of
from sansmcp.auth.discovery import resource_urls, server_urls
from sansmcp.auth.metadata import (
    MAX_LISTED,
    ResourceMetadata,
    assumed_server,
    covers,
    read_resource,
    read_server,
    resource_of,
)
from sansmcp.http.url import parse_url

WELL = ".well-known/oauth-protected-resource"
OAUTH = ".well-known/oauth-authorization-server"
OPENID = ".well-known/openid-configuration"


@pytest.mark.case("A-01")
@pytest.mark.req("T2")
@pytest.mark.parametrize(
    ("server", "named", "want"),
    [
        ("https://s.example/mcp", None, [f"{WELL}/mcp", WELL]),
        ("https://s.example/a/mcp/?k=1", None, [f"{WELL}/a/mcp", WELL]),
        ("https://s.example", None, [WELL]),
        ("https://s.example/mcp", "https://s.example/else.json", ["else.json", f"{WELL}/mcp", WELL]),
        ("https://s.example/mcp", f"https://s.example/{WELL}", [WELL, f"{WELL}/mcp"]),
    ],
)
def test_where_the_metadata_of_a_server_may_be(server: str, named: str | None, want: list[str]) -> None:
    urls = resource_urls(parse_url(server), named_url(named))
    assert [url.text for url in urls] == [f"https://s.example/{path}" for path in want]


@pytest.mark.case("A-01")
@pytest.mark.parametrize(
    ("issuer", "want"),
    [
        ("https://a.example", [OAUTH, OPENID]),
        ("https://a.example/", [OAUTH, OPENID]),
        ("https://a.example/t1", [f"{OAUTH}/t1", f"{OPENID}/t1", f"t1/{OPENID}"]),
        ("https://a.example/t1/", [f"{OAUTH}/t1", f"{OPENID}/t1", f"t1/{OPENID}"]),
        ("https://a.example/x/y", [f"{OAUTH}/x/y", f"{OPENID}/x/y", f"x/y/{OPENID}"]),
        ("https://a.example/t1?x=1", []),
        ("https://a.example/t1#x", []),
        ("ftp://a.example", []),
        ("a.example", []),
        ("https://u:p@a.example", []),
    ],
)
def test_where_the_metadata_of_an_authorization_server_may_be(issuer: str, want: list[str]) -> None:
    assert [url.text for url in server_urls(issuer)] == [f"https://a.example/{path}" for path in want]


@pytest.mark.case("A-05")
@pytest.mark.parametrize(
    ("resource", "good"),
    [
        ("https://s.example", True),
        ("https://s.example/", True),
        ("https://s.example/a", True),
        ("https://s.example/a/mcp", True),
        ("https://s.example/a/mcp/", True),
        ("HTTPS://S.example/a/mcp", True),
        ("https://s.example:443/a/mcp", True),
        ("https://s.example/a/mcp?k=1", True),
        ("https://s.example/a/mcp?k=2", False),
        ("https://evil.example/a/mcp", False),
        ("http://s.example/a/mcp", False),
        ("https://s.example:8443/a/mcp", False),
        ("https://s.example/a/m", False),
        ("https://s.example/a/mcp/more", False),
        ("https://s.example/a/mcp#x", False),
        ("https://s.example.evil/a/mcp", False),
        ("urn:mcp", False),
        ("", False),
    ],
)
def test_for_which_server_a_resource_stands(resource: str, good: bool) -> None:
    assert covers(resource, parse_url("https://s.example/a/mcp?k=1")) is good


def test_a_server_that_does_not_say_its_name_has_its_address() -> None:
    assert resource_of(parse_url("https://s.example")) == "https://s.example"
    assert resource_of(parse_url("https://s.example/")) == "https://s.example"
    assert resource_of(parse_url("https://s.example/mcp")) == "https://s.example/mcp"


PLACE = parse_url("https://s.example/p")


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"resource": "https://s.example"},
        {"resource": "https://s.example", "authorization_servers": []},
        {"resource": "https://s.example", "authorization_servers": "https://a.example"},
        {"resource": "https://s.example", "authorization_servers": [1, None, ""]},
        {"resource": 1, "authorization_servers": ["https://a.example"]},
    ],
)
def test_what_is_no_document_about_a_server(value: Any) -> None:
    assert read_resource(value, PLACE) is None


def test_a_document_about_a_server() -> None:
    value = {
        "resource": "https://s.example",
        "authorization_servers": ["https://a.example/", 7, *map(str, range(1000))],
        "scopes_supported": ["a", "a", 1, "b"],
    }
    found = read_resource(value, PLACE)
    assert found is not None
    assert found.authorization_servers[0] == "https://a.example/"  # as it was written
    assert len(found.authorization_servers) <= MAX_LISTED
    assert found.scopes == ("a", "b")
    assert found.url == "https://s.example/p"
    assert read_resource({**value, "scopes_supported": "a"}, PLACE) == ResourceMetadata(
        found.resource, found.authorization_servers, None, found.url
    )


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"issuer": "https://a.example"},
        {"issuer": 1, "token_endpoint": "https://a.example/t"},
        {"issuer": "https://a.example", "token_endpoint": "javascript:alert(1)"},
        {"issuer": "https://a.example", "token_endpoint": ["https://a.example/t"]},
    ],
)
def test_what_is_no_document_about_an_authorization_server(value: Any) -> None:
    assert read_server(value) is None


def test_members_of_the_wrong_kind_count_for_nothing() -> None:
    found = read_server(
        {
            "issuer": "https://a.example",
            "token_endpoint": "https://a.example/t",
            "authorization_endpoint": "javascript:alert(1)",
            "registration_endpoint": 5,
            "code_challenge_methods_supported": "S256",
            "token_endpoint_auth_methods_supported": None,
            "authorization_response_iss_parameter_supported": "true",
            "client_id_metadata_document_supported": 1,
        }
    )
    assert found is not None
    assert (found.authorization_endpoint, found.registration_endpoint) == (None, None)
    assert (found.challenge_methods, found.token_methods) == (None, None)
    assert not found.names_itself
    assert not found.reads_clients


def test_an_old_server_is_its_own_authorization_server() -> None:
    server = assumed_server("https://s.example:8443")
    assert server.issuer == "https://s.example:8443"
    assert str(server.token_endpoint) == "https://s.example:8443/token"
    assert str(server.authorization_endpoint) == "https://s.example:8443/authorize"
    assert str(server.registration_endpoint) == "https://s.example:8443/register"


# addresses ---------------------------------------------------------------------------------------

REACHES = {
    Reach.PUBLIC: [
        *("example.com", "a.example.com.", "8.8.8.8", "2606:4700::1111"),
        *("::ffff:8.8.8.8", "2002:808:808::", "64:ff9b::808:808"),
    ],
    Reach.PRIVATE: [
        *("10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("fe80::1", "fd00::1", "::", "::ffff:10.0.0.1", "2002:0a00:0001::", "224.0.0.1", "ff02::1"),
        *("intranet", "printer.local", "metadata.google.internal", "router.lan", "x.home.arpa"),
        *("2130706433", "127.1", "0x7f.0.0.1", "0177.0.0.1", "1.2.3.4.5"),
        *("64:ff9b::a00:1", "64:ff9b:1::a00:1", "::10.0.0.1", "::ffff:0:a9fe:a9fe", "fec0::1"),
    ],
    Reach.LOOPBACK: [
        *("localhost", "a.localhost", "localhost.", "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"),
        *("::127.0.0.1", "64:ff9b::7f00:1", "::ffff:0:7f00:1", "2002:7f00:1::"),
    ],
}


@pytest.mark.case("A-08")
@pytest.mark.parametrize(
    ("host", "reach"), [(host, reach) for reach, hosts in REACHES.items() for host in hosts]
)
def test_from_where_an_address_can_be_reached(host: str, reach: Reach) -> None:
    assert reach_of(host) is reach


PUBLIC, INSIDE, HERE = "https://s.example/mcp", "https://10.1.1.1/mcp", "http://127.0.0.1:1/mcp"


@pytest.mark.case("A-08")
@pytest.mark.parametrize(
    ("url", "named_by", "allowed", "allowed_private"),
    [
        ("https://a.example", PUBLIC, True, True),
        ("http://a.example", PUBLIC, False, False),
        ("https://10.0.0.1", PUBLIC, False, True),
        ("http://10.0.0.1", PUBLIC, False, False),
        ("https://127.0.0.1", PUBLIC, False, True),
        ("http://localhost:9/x", PUBLIC, False, True),
        ("https://a.example", INSIDE, True, True),
        ("https://10.0.0.1", INSIDE, True, True),
        ("http://localhost:9/x", INSIDE, False, True),
        ("http://10.0.0.1", HERE, False, False),
        ("https://10.0.0.1", HERE, True, True),
        ("http://localhost:9/x", HERE, True, True),
        ("http://a.example", HERE, False, False),
        ("https://10.1.1.1/token", INSIDE, True, True),
        ("http://127.0.0.1:1/token", HERE, True, True),
        ("http://s.example/token", "http://s.example/mcp", False, False),
    ],
)
def test_which_addresses_are_asked_for_a_server(
    url: str, named_by: str, allowed: bool, allowed_private: bool
) -> None:
    asked, server = parse_url(url), parse_url(named_by)
    assert (AddressPolicy().refusal(asked, server) is None) is allowed
    assert (AddressPolicy(private=True).refusal(asked, server) is None) is allowed_private
    assert AddressPolicy(private=True, plain=True).refusal(asked, server) is None


@pytest.mark.case("A-08")
def test_the_metadata_of_a_server_is_at_its_own_host() -> None:
    server, other = parse_url(PUBLIC), parse_url("https://other.example/p")
    policy = AddressPolicy()
    assert policy.refusal_of_metadata(parse_url("https://s.example/p"), server) is None
    assert policy.refusal_of_metadata(other, server) is not None
    assert policy.refusal_of_metadata(parse_url("http://s.example/p"), server) is not None
    assert AddressPolicy(foreign_metadata=True).refusal_of_metadata(other, server) is None
