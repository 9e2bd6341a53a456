"""Which hosts and origins may talk to a server: whole names, never parts of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import LocalProtocolError
from sansmcp.http.guard import ANY, DEFAULT_POLICY, LOOPBACK, GuardPolicy, Refusal, check_host_origin


def status(
    host: str | None = "localhost:3000", origin: str | None = None, policy: GuardPolicy = DEFAULT_POLICY
) -> int | None:
    headers = [] if host is None else [("Host", host)]
    if origin is not None:
        headers.append(("Origin", origin))
    refusal = check_host_origin(headers, policy)
    if refusal is None:
        return None
    assert refusal.reason.isascii()
    assert len(refusal.reason) < 400
    return refusal.status


LOOPBACK_HOSTS = [
    "localhost",
    "localhost:3000",
    "LOCALHOST:80",
    "LocalHost",
    "localhost:",
    "localhost:65535",
    "127.0.0.1",
    "127.0.0.1:8080",
    "[::1]",
    "[::1]:8080",
    "[0:0:0:0:0:0:0:1]:8080",
    "[0000::0001]",
    " localhost:3000\t",
]
FOREIGN_HOSTS = [
    "evil.example.com",
    "evil-localhost.com",
    "localhost.evil.com",
    "localhost.evil.com:3000",
    "127.0.0.1.evil.com",
    "127.0.0.1.nip.io",
    "evil.com.localhost",
    "sub.localhost",
    "xlocalhost",
    "localhostx",
    "local_host",
    "localhost.",
    "127.0.0.1.",
    "127.0.0.2",
    "127.1",
    "127.0.0.01",
    "0x7f.0.0.1",
    "2130706433",
    "0.0.0.0",
    "192.168.0.1:3000",
    "[::]",
    "[::2]",
    "[::ffff:127.0.0.1]",
    "[fe80::1]",
    "xn--lcalhost-54a",
    "xn--localhost-.com",
]
UNREADABLE_HOSTS = [
    "",
    " ",
    ":3000",
    "user@localhost",
    "localhost@evil.com",
    "localhost:80@evil.com",
    "localhost#.evil.com",
    "localhost/evil.com",
    "localhost\\evil.com",
    "localhost?evil.com",
    "localhost,evil.com",
    "localhost evil.com",
    "localhost\nevil.com",
    "localhost\0",
    "localhost%00",
    "local%68ost",
    "http://localhost",
    "localhost:3000:80",
    "localhost:-1",
    "localhost:65536",
    "localhost:000080",
    "localhost:8o",
    "localhost:٣",
    "::1",
    "[::1",
    "::1]",
    "[::1]x",
    "[::1%25lo0]",
    "[localhost]",
    "[127.0.0.1]",
    "[1::2::3]",
    "[]",
    "localhoſt",
    "lοcalhost",
    "localhost。",
    "*",
]


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("host", "expected"),
    [*((h, None) for h in LOOPBACK_HOSTS), *((h, 421) for h in FOREIGN_HOSTS)]
    + [(h, 400) for h in UNREADABLE_HOSTS],
)
def test_only_loopback_names_are_hosts_by_default(host: str, expected: int | None) -> None:
    assert status(host) == expected


@pytest.mark.req("R6")
def test_a_host_is_needed_and_only_one() -> None:
    assert status(None) == 400
    assert status(None, "http://localhost") == 400
    twice = check_host_origin([("host", "localhost"), ("HOST", "localhost")])
    assert twice is not None
    assert twice.status == 400
    assert check_host_origin([], http_version="1.0") is None
    assert check_host_origin([], http_version="2") is not None
    old = check_host_origin([("Host", "evil.example")], http_version="1.0")
    assert old is not None
    assert old.status == 421


LOOPBACK_ORIGINS = [
    None,
    "http://localhost",
    "http://localhost:3000",
    "https://localhost:3000",
    "http://LOCALHOST:3000",
    "HTTP://localhost",
    "http://127.0.0.1:6274",
    "http://[::1]:6274",
    " http://localhost ",
]
FOREIGN_ORIGINS = [
    "null",
    "",
    "http://evil.example.com",
    "http://localhost.evil.example",
    "http://evil-localhost.com",
    "http://localhost.",
    "https://127.0.0.1.evil.com",
    "http://sub.localhost",
    "http://user@localhost",
    "http://localhost@evil.com",
    "http://localhost:80@evil.com",
    "http://evil.com/localhost",
    "http://evil.com#localhost",
    "http://localhost/",
    "http://localhost/path",
    "http://localhost#x",
    "http://localhost?x",
    "http://localhost\\@evil.com",
    "http://localhost http://evil.com",
    "http://localhost, http://evil.com",
    "http://localhost:99999",
    "http:/localhost",
    "http:localhost",
    "//localhost",
    "localhost",
    "localhost:3000",
    "http://",
    "file://",
    "ftp://localhost",
    "chrome-extension://localhost",
    "tauri://localhost",
    "http://lοcalhost",
    "http://localhost\nX: 1",
    "NULL",
    "*",
]


@pytest.mark.req("R6")
@pytest.mark.case("H-17")
@pytest.mark.parametrize(
    ("origin", "expected"), [*((o, None) for o in LOOPBACK_ORIGINS), *((o, 403) for o in FOREIGN_ORIGINS)]
)
def test_only_loopback_pages_may_ask_by_default(origin: str | None, expected: int | None) -> None:
    assert status(origin=origin) == expected


@pytest.mark.req("R6")
def test_two_origins_are_none() -> None:
    refusal = check_host_origin([("Host", "localhost"), ("Origin", "http://localhost"), ("origin", "null")])
    assert refusal == Refusal(403, "Origin is there more than once")


@pytest.mark.req("R6")
@pytest.mark.case("H-18")
def test_of_two_reasons_the_origin_is_told() -> None:
    assert status("evil.example.com", "http://evil.example.com") == 403
    assert status(None, "null") == 403


POLICY = GuardPolicy(
    hosts=[
        "API.example.com",
        "exact.example:8443",
        "web.example:443",
        "[FE80::0:1]",
        "xn--bcher-kva.example",
    ],
    origins=[
        "https://app.example.com",
        "http://dev.example:5173",
        "anyscheme.example",
        "port.example:81",
        "tauri://localhost",
        "null",
    ],
)


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("api.example.com", None),
        ("api.example.com:1", None),
        ("API.EXAMPLE.COM:8443", None),
        ("api.example.com.", 421),
        ("sub.api.example.com", 421),
        ("api.example.com.evil.com", 421),
        ("xapi.example.com", 421),
        ("exact.example:8443", None),
        ("exact.example", 421),
        ("exact.example:84430", 400),
        ("exact.example:8444", 421),
        ("web.example:443", None),
        ("web.example", None),
        ("web.example:80", 421),
        ("[fe80::1]:9", None),
        ("xn--bcher-kva.example", None),
        ("bücher.example", 400),
        ("localhost", 421),
    ],
)
def test_hosts_of_a_policy(host: str, expected: int | None) -> None:
    assert status(host, policy=POLICY) == expected


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://app.example.com", True),
        ("https://APP.example.com:443", True),
        ("http://app.example.com", False),
        ("https://app.example.com:8443", False),
        ("https://app.example.com:80", False),
        ("https://app.example.com.evil.com", False),
        ("http://dev.example:5173", True),
        ("http://dev.example", False),
        ("https://dev.example:5173", False),
        ("http://anyscheme.example", True),
        ("https://anyscheme.example:9", True),
        ("ftp://anyscheme.example", False),
        ("http://port.example:81", True),
        ("https://port.example:81", True),
        ("http://port.example", False),
        ("tauri://localhost", True),
        ("tauri://localhost:1", False),
        ("http://localhost", False),
        ("null", True),
        ("http://null", False),
    ],
)
def test_origins_of_a_policy(origin: str, allowed: bool) -> None:
    assert (status("api.example.com", origin, POLICY) is None) is allowed


@pytest.mark.req("R6")
def test_any_switches_one_check_off_and_leaves_the_other() -> None:
    any_host, any_origin = GuardPolicy(hosts=ANY), GuardPolicy(origins=ANY)
    assert status("evil.example", policy=any_host) is None
    assert status(None, policy=any_host) is None
    assert status("evil.example", "http://evil.example", any_host) == 403
    assert status("localhost", "http://evil.example", any_origin) is None
    assert status("localhost", "null", any_origin) is None
    assert status("evil.example", "http://evil.example", any_origin) == 421
    both = GuardPolicy(hosts=ANY, origins=ANY)
    assert status("", "", both) is None


def test_no_names_at_all_allow_nobody() -> None:
    nobody = GuardPolicy(hosts=[], origins=[])
    assert status("localhost", policy=nobody) == 421
    assert status("localhost", "http://localhost", nobody) == 403


def test_the_default_is_the_loopback() -> None:
    assert GuardPolicy(hosts=LOOPBACK, origins=LOOPBACK) == DEFAULT_POLICY


@pytest.mark.parametrize(
    "entry", ["*", "*.example.com", "bücher.example", "", "a b", "http://a", "a:x", "::1"]
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(LocalProtocolError, match="no host"):
        GuardPolicy(hosts=[entry])


@pytest.mark.parametrize("entry", ["*", "https://*.example.com", "https://a/", "https://ü", "http://", "a/b"])
def test_an_entry_that_is_no_origin_is_refused(entry: str) -> None:
    with pytest.raises(LocalProtocolError, match=r"no host|no origin"):
        GuardPolicy(origins=[entry])


def test_a_text_is_no_list_of_names() -> None:
    with pytest.raises(LocalProtocolError, match="list of names"):
        GuardPolicy(hosts="any")
    with pytest.raises(LocalProtocolError, match="list of names"):
        GuardPolicy(origins="localhost")


PIECES = st.sampled_from(["localhost", "127.0.0.1", "[::1]", ":", "80", ".", "@", "/", "http://", "evil.com"])
SOUP = st.lists(PIECES | st.text(max_size=2), max_size=5).map("".join)


@pytest.mark.req("R6")
@given(SOUP, SOUP)
def test_what_is_allowed_is_exactly_a_loopback_name_and_a_port(host: str, origin: str) -> None:
    def loopback(text: str) -> bool:
        name, _, port = text.rpartition(":") if text.rstrip("0123456789").endswith(":") else (text, "", "")
        return name.lower() in LOOPBACK and (not port or (len(port) <= 5 and int(port) <= 65535))

    assert (status(host) is None) is loopback(host.strip(" \t"))
    scheme, found, rest = origin.strip(" \t").partition("://")
    allowed = bool(found) and scheme.lower() in ("http", "https") and loopback(rest)
    assert (status(origin=origin) is None) is allowed
