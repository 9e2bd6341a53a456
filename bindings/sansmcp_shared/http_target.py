"""What a client over HTTP is made of, whatever waits for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from sansmcp.client import ClientEngine
from sansmcp.clock import ClockPair
from sansmcp.errors import LocalProtocolError
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
