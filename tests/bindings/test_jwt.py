"""Verifiers of signed tokens, with keys that are fetched: once for all who wait."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from sansmcp import LocalProtocolError, Principal
from sansmcp.auth.jose import SigningKey
from sansmcp.auth.jwt_verifier import KeysUnavailable
from sansmcp_asyncio import jwt_verifier

from ..protected_support import ISSUER, RESOURCE, counting
from .support import PATIENCE

KEY = SigningKey.generate(counting())
KEYS = json.dumps({"keys": [KEY.public_jwk]}).encode()
URL = f"{ISSUER}/jwks"


def counting_from(start: int) -> Callable[[int], bytes]:
    return lambda size: start.to_bytes(size, "big")


def token(subject: str = "ann") -> str:
    claims = {"iss": ISSUER, "sub": subject, "aud": RESOURCE, "exp": time.time() + 60}
    return KEY.sign({"typ": "at+jwt"}, claims)


def gather(verify: Callable[[str], Principal | None], tokens: list[str]) -> list[Any]:
    """What becomes of each token, all at once."""

    def one(text: str) -> Any:
        try:
            return verify(text)
        except KeysUnavailable as error:
            return error

    with ThreadPoolExecutor(len(tokens)) as pool:
        return list(pool.map(one, tokens))


@pytest.mark.req("T8")
def test_all_who_wait_have_keys_fetched_once() -> None:
    fetched: list[str] = []

    def fetch(url: str) -> bytes:
        fetched.append(url)
        time.sleep(0.05)
        return KEYS

    verify = jwt_verifier(ISSUER, URL, fetch=fetch)
    found = gather(verify, [token(f"u{n}") for n in range(5)] + ["nonsense"])
    assert [p and p.subject for p in found] == ["u0", "u1", "u2", "u3", "u4", None]
    assert fetched == [URL]
    assert verify(token()) is not None
    assert fetched == [URL]


@pytest.mark.req("T8")
@pytest.mark.parametrize("fault", ["raises", "no keys"])
def test_without_keys_nobody_can_tell(fault: str) -> None:
    fetched: list[str] = []

    def fetch(url: str) -> bytes:
        fetched.append(url)
        time.sleep(0.05)
        if fault == "raises":
            raise OSError("unreachable")
        return b"<html>"

    verify = jwt_verifier(ISSUER, URL, fetch=fetch)
    found = gather(verify, [token() for _ in range(4)])
    assert all(isinstance(error, KeysUnavailable) for error in found)
    assert fetched == [URL]  # and not again before a while has passed


@pytest.mark.req("T8")
def test_who_is_known_does_not_wait_for_other_keys() -> None:
    asked, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def fetch(url: str) -> bytes:
        calls.append(url)
        if len(calls) > 1:
            asked.set()
            assert go_on.wait(PATIENCE)
        return KEYS

    verify = jwt_verifier(ISSUER, URL, fetch=fetch, pause=0)
    assert verify(token()) is not None
    strange = SigningKey.generate(counting_from(7))
    unknown = strange.sign({"kid": "other"}, {"iss": ISSUER, "sub": "x", "aud": "y", "exp": time.time() + 60})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(verify, unknown)
        assert asked.wait(PATIENCE)
        assert verify(token()) is not None
        go_on.set()
        with pytest.raises(KeysUnavailable):
            waiting.result(PATIENCE)  # without a pause there is always another fetch


@contextmanager
def keys_served(status: int = 200, body: bytes = KEYS, location: str = "") -> Iterator[tuple[str, list[str]]]:
    """A server that has keys, and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            if location:
                self.send_header("location", location)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.req("T8")
def test_keys_are_fetched_without_more() -> None:
    with keys_served() as (base, asked):
        found = jwt_verifier(ISSUER, f"{base}/jwks")(token())
        assert found is not None
        assert found.subject == "ann"
        assert asked == ["/jwks"]


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("status", "location"), [(302, "/elsewhere"), (301, "http://127.0.0.1:1/"), (404, ""), (500, "")]
)
def test_keys_are_where_they_are(status: int, location: str) -> None:
    with keys_served(status, location=location) as (base, asked):
        with pytest.raises(KeysUnavailable):
            jwt_verifier(ISSUER, f"{base}/jwks")(token())
        assert asked == ["/jwks"]


def test_options_are_those_of_the_machine() -> None:
    with pytest.raises(LocalProtocolError, match="https"):
        jwt_verifier(ISSUER, "http://as.example/jwks")
    with pytest.raises(LocalProtocolError, match="HS256"):
        jwt_verifier(ISSUER, URL, algorithms=["HS256"])
