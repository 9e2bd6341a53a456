"""A protected server spoken to by hand: who verifies its tokens is the test."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from sansmcp import App
from sansmcp.auth.principal import Principal
from sansmcp.auth.resource_server import ResourceServer
from sansmcp.clock import ClockPair
from sansmcp.events import VerifyToken

from .http_support import Http

RESOURCE = "https://s.example/mcp"
ISSUER = "https://as.example"
UNIX = 1_800_000_000.0
"""The time of day at which tests begin."""


def rules(**options: Any) -> ResourceServer:
    """A resource server that nobody verifies for, unless the test does."""
    given = {"resource": RESOURCE, "authorization_servers": [ISSUER], "verifier": lambda token: None}
    return ResourceServer(**{**given, **options})


def who(subject: str = "user", scopes: str = "", **more: Any) -> Principal:
    return Principal(**{"subject": subject, "issuer": ISSUER, "scopes": scopes, "audience": RESOURCE, **more})


class Protected(Http):
    """A server whose tokens are known from `people`; with `asks`, the test answers by `verify`."""

    def __init__(
        self,
        people: dict[str, Principal] | None = None,
        *,
        app: App | None = None,
        asks: bool = False,
        **auth: Any,
    ) -> None:
        options = auth.pop("options", {})
        self.people = people or {}
        self.asks = asks
        self.questions: list[VerifyToken] = []
        super().__init__(app, auth=rules(**auth), **options)

    @property
    def clock(self) -> ClockPair:
        return ClockPair(self.now, UNIX + self.now)

    def drain(self) -> None:
        super().drain()
        new = [e for e in self.said if isinstance(e, VerifyToken) and e not in self.questions]
        self.questions += new
        for question in [] if self.asks else new:
            self.verify(question, self.people.get(question.token))

    def verify(self, question: VerifyToken, principal: Principal | None) -> None:
        self.server.token_verified(question.exchange, principal, self.clock)
        self.drain()


def counting() -> Callable[[int], bytes]:
    """Entropy that is another each time, and the same in each test."""
    drawn = count(1)
    return lambda size: next(drawn).to_bytes(size, "big")
