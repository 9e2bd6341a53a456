"""What a client over HTTP is made of, whatever waits for it."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal

from sansmcp.client import ClientEngine
from sansmcp.clock import ClockPair
from sansmcp.errors import LocalProtocolError, NetworkProblem
from sansmcp.http.client import HttpClient
from sansmcp.http.connector import HttpConnector
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.pool import DEFAULT_POOL, PoolPolicy
from sansmcp.http.proxy import Proxy, parse_proxy, proxy_for
from sansmcp.http.recovery import Recovery
from sansmcp.http.resume import ReconnectPolicy
from sansmcp.http.url import Url, parse_url

if TYPE_CHECKING:  # who has a token, or needs none, need not load how one is come by
    from sansmcp.auth.client import AuthorizedClient
    from sansmcp.auth.oauth import OAuth


def http_connector(
    engine: ClientEngine,
    url: str,
    now: float,
    *,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ssl: object = None,
    auth: OAuth | None = None,
    open_url: object = None,
    wait_redirect: object = None,
    proxy: str | Literal[False] | None = None,
    pool: PoolPolicy | None = None,
    reconnect: ReconnectPolicy | None = None,
    recovery: Recovery | None = None,
    old_sse: OldSseUse = OldSseUse.AUTO,
    listen: bool = True,
) -> HttpConnector:
    if auth is None and (open_url is not None or wait_redirect is not None):
        raise LocalProtocolError("open_url and wait_redirect go with auth")
    plain = HttpClient(
        engine,
        url,
        now=now,
        headers=headers.items() if isinstance(headers, Mapping) else headers,
        reconnect=reconnect,
        recovery=recovery,
        old_sse=old_sse,
        listen=listen,
    )
    return HttpConnector(
        plain if auth is None else authorized(plain, auth, now),
        now=now,
        pool=pool or DEFAULT_POOL,
        proxy=_proxy(proxy, parse_url(url)),
        proxy_of=lambda other: _proxy(proxy, other),
    )


def authorized(client: HttpClient, auth: OAuth, now: float) -> AuthorizedClient:
    """`client` with tokens, with the clocks and the randomness of this computer."""
    from sansmcp.auth.client import AuthorizedClient

    return AuthorizedClient(client, auth, now=now, clock=_Present(now, time.time()), entropy=os.urandom)


class _Present(ClockPair):
    """Both clocks of this computer, whose monotonic one stands still while it sleeps: what is signed has the
    time of day in it, and would be of yesterday."""

    def unix_at(self, now: float) -> float:
        """The time of day, for a moment that is the present."""
        return time.time()


def _proxy(given: str | Literal[False] | None, url: Url) -> Proxy | None:
    if given is None:
        return proxy_for(url, os.environ)
    return parse_proxy(given) if given else None


@cache
def default_tls() -> ssl.SSLContext:
    """Made once: to read the system's certificates takes long."""
    return ssl.create_default_context()


def peer_of(name: object) -> str | None:
    """The address in what a socket says of its other end; None where that has none."""
    return str(name[0]).partition("%")[0] if isinstance(name, tuple) else None


HAPPY_EYEBALLS: Final = 0.25
"""Seconds after which the next address is tried beside those that have not answered (RFC 8305)."""


def in_turn(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Addresses, as `socket.getaddrinfo` tells them, one of each family in turn: one of the two may lead
    nowhere."""
    first = [address for address in found if address[0] == found[0][0]]
    other = [address for address in found if address[0] != found[0][0]]
    return [address for pair in zip_longest(first, other) for address in pair if address is not None]


def network_problem(error: BaseException) -> NetworkProblem:
    """What kind of failure it is, as far as the system tells."""
    match error:
        case socket.gaierror():
            return NetworkProblem.NAME
        case ssl.SSLError():
            return NetworkProblem.TLS
        case TimeoutError():
            return NetworkProblem.TIMEOUT
        case OSError():
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):  # no such unix socket
                return NetworkProblem.REFUSED
            if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
                return NetworkProblem.UNREACHABLE
    return NetworkProblem.LOST
