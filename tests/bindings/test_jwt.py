"""Verifiers of signed tokens, with keys that are fetched: once for all who wait, on either loop."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from sansmcp import LocalProtocolError, Principal
from sansmcp.auth.jose import SigningKey
from sansmcp.auth.jwt_verifier import KeysUnavailable
from sansmcp_asyncio import jwt_verifier

from ..protected_support import ISSUER, RESOURCE, counting
from .asgi_support import BACKENDS, on_both

KEY = SigningKey.generate(counting())
KEYS = json.dumps({"keys": [KEY.public_jwk]}).encode()
URL = f"{ISSUER}/jwks"
both = pytest.mark.parametrize("backend", BACKENDS)


def token(subject: str = "ann") -> str:
    claims = {"iss": ISSUER, "sub": subject, "aud": RESOURCE, "exp": time.time() + 60}
    return KEY.sign({"typ": "at+jwt"}, claims)


async def gather(verify: Callable[[str], Awaitable[Principal | None]], tokens: list[str]) -> list[Any]:
    """What becomes of each token, all at once."""
    found: dict[int, Any] = {}

    async def one(index: int, text: str) -> None:
        try:
            found[index] = await verify(text)
        except KeysUnavailable as error:
            found[index] = error

    async with anyio.create_task_group() as group:
        for index, text in enumerate(tokens):
            group.start_soon(one, index, text)
    return [found[index] for index in range(len(tokens))]


@both
@pytest.mark.req("T8")
def test_all_who_wait_have_keys_fetched_once(backend: str) -> None:
    async def main() -> None:
        fetched: list[str] = []

        async def fetch(url: str) -> bytes:
            fetched.append(url)
            await anyio.sleep(0.02)
            return KEYS

        verify = jwt_verifier(ISSUER, URL, fetch=fetch)
        found = await gather(verify, [token(f"u{n}") for n in range(5)] + ["nonsense"])
        assert [p and p.subject for p in found] == ["u0", "u1", "u2", "u3", "u4", None]
        assert fetched == [URL]
        assert (await verify(token())) is not None
        assert fetched == [URL]

    on_both(main, backend)


@both
@pytest.mark.req("T8")
@pytest.mark.parametrize("fault", ["raises", "no keys"])
def test_without_keys_nobody_can_tell(backend: str, fault: str) -> None:
    async def main() -> None:
        fetched: list[str] = []

        async def fetch(url: str) -> bytes:
            fetched.append(url)
            await anyio.sleep(0.01)
            if fault == "raises":
                raise OSError("unreachable")
            return b"<html>"

        verify = jwt_verifier(ISSUER, URL, fetch=fetch)
        found = await gather(verify, [token() for _ in range(4)])
        assert all(isinstance(error, KeysUnavailable) for error in found)
        assert fetched == [URL]  # and not again before a while has passed

    on_both(main, backend)


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


@both
@pytest.mark.req("T8")
def test_keys_are_fetched_without_more(backend: str) -> None:
    async def main() -> None:
        with keys_served() as (base, asked):
            found = await jwt_verifier(ISSUER, f"{base}/jwks")(token())
            assert found is not None
            assert found.subject == "ann"
            assert asked == ["/jwks"]

    on_both(main, backend)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("status", "location"), [(302, "/elsewhere"), (301, "http://127.0.0.1:1/"), (404, ""), (500, "")]
)
def test_keys_are_where_they_are(status: int, location: str) -> None:
    async def main() -> None:
        with keys_served(status, location=location) as (base, asked):
            with pytest.raises(KeysUnavailable):
                await jwt_verifier(ISSUER, f"{base}/jwks")(token())
            assert asked == ["/jwks"]

    asyncio.run(main())


def test_options_are_those_of_the_machine() -> None:
    with pytest.raises(LocalProtocolError, match="https"):
        jwt_verifier(ISSUER, "http://as.example/jwks")
    with pytest.raises(LocalProtocolError, match="HS256"):
        jwt_verifier(ISSUER, URL, algorithms=["HS256"])
