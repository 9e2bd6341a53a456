"""A real authorization server (npm oidc-provider) on a port of its own, and a user with a browser."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import attrs
import httpx
import pytest

from tests.peers.registry import HERE, NODE, NODE_INSTALL, OIDC_INSTALL, Launch, environment, missing

from .http_support import HOST, free_port, running

MACHINE: Final = "machine"
"""A client that shows who it is by a key."""

KEEPER: Final = ("with secret", "of:it/and more")
"""A client with a secret, and that."""


def needs_server() -> None:
    """Skip the test when the server could not be installed for want of a registry."""
    reason = missing(NODE_INSTALL, OIDC_INSTALL)
    if reason is not None:
        pytest.skip(reason)


@attrs.frozen
class AuthorizationServer:
    """One that runs."""

    issuer: str
    resource: str
    """For whom it makes tokens."""
    port: int
    """Where that is to be served."""

    @property
    def keys_url(self) -> str:
        return f"{self.issuer}/jwks"


@asynccontextmanager
async def authorization_server(
    scratch: Path, *, nonces: bool = False, ttl: int = 600, jwks: Mapping[str, Any] | None = None
) -> AsyncIterator[AuthorizationServer]:
    """An authorization server for a resource that somebody serves at a free port.

    `nonces` says whether it wants one in proofs, `ttl` how long its tokens last in seconds, `jwks` with
    which keys the client `MACHINE` signs.
    """
    needs_server()
    port, served = free_port(), free_port()
    resource = f"http://{HOST}:{served}/mcp"
    options = {
        "modules": str(OIDC_INSTALL.folder / "node_modules"),
        "resource": resource,
        "jwks": dict(jwks or {"keys": []}),
        "nonces": nonces,
        "ttl": ttl,
    }
    argv = [str(NODE), str(HERE / "oidc" / "server.mjs"), str(port), json.dumps(options)]
    async with running(Launch(argv, scratch, environment()), port):
        yield AuthorizationServer(f"http://{HOST}:{port}", resource, served)


class Browser:
    """A user who logs in as `name`, and allows everything: fills in every form that comes up."""

    def __init__(self, name: str = "ann") -> None:
        self.name = name
        self.opened: list[str] = []
        """What the client had opened."""
        self._cookies = httpx.Cookies()

    async def open(self, url: str) -> None:
        """Go there, and on to wherever that leads."""
        self.opened.append(url)
        async with httpx.AsyncClient(cookies=self._cookies, follow_redirects=True, trust_env=False) as client:
            response = await client.get(url)
            for _ in range(8):
                if urlsplit(str(response.url)).netloc != urlsplit(url).netloc:
                    return  # back at the client
                action, fields = self._form(response)
                response = await client.post(urljoin(str(response.url), action), data=fields)
        raise AssertionError("the forms have no end")

    def _form(self, response: httpx.Response) -> tuple[str, dict[str, str]]:
        text = response.text
        form = re.search(r'<form[^>]*action="([^"]*)"[^>]*method="post"', text)
        assert form is not None, f"HTTP {response.status_code}: {text[:500]}"
        fields = {"login": self.name, "password": "any"} if 'name="login"' in text else {}
        for tag in re.findall(r"<input[^>]*>", text):
            name, value = (re.search(rf'{part}="([^"]*)"', tag) for part in ("name", "value"))
            if name is not None and value is not None:
                fields.setdefault(unescape(name[1]), unescape(value[1]))
        return unescape(form[1]), fields
