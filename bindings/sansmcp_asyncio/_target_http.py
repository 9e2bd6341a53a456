"""What a client over HTTP is made of, whatever waits for it."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal

from sansmcp.client import ClientEngine
from sansmcp.errors import NetworkProblem
from sansmcp.http.client import HttpClient
from sansmcp.http.connector import HttpConnector
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.pool import DEFAULT_POOL, PoolPolicy
from sansmcp.http.proxy import Proxy, parse_proxy, proxy_for
from sansmcp.http.recovery import Recovery
from sansmcp.http.resume import ReconnectPolicy
from sansmcp.http.url import parse_url


def http_connector(
    engine: ClientEngine,
    url: str,
    now: float,
    *,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ssl: object = None,
    proxy: str | Literal[False] | None = None,
    pool: PoolPolicy | None = None,
    reconnect: ReconnectPolicy | None = None,
    recovery: Recovery | None = None,
    old_sse: OldSseUse = OldSseUse.AUTO,
    listen: bool = True,
) -> HttpConnector:
    client = HttpClient(
        engine,
        url,
        now=now,
        headers=headers.items() if isinstance(headers, Mapping) else headers,
        reconnect=reconnect,
        recovery=recovery,
        old_sse=old_sse,
        listen=listen,
    )
    return HttpConnector(client, now=now, pool=pool or DEFAULT_POOL, proxy=_proxy(proxy, url))


def _proxy(given: str | Literal[False] | None, url: str) -> Proxy | None:
    if given is None:
        return proxy_for(parse_url(url), os.environ)
    return parse_proxy(given) if given else None


@cache
def default_tls() -> ssl.SSLContext:
    """Made once: to read the system's certificates takes long."""
    return ssl.create_default_context()


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
            # Where several addresses were tried, the loop tells of all of them in one text.
            if _is(error, errno.ECONNREFUSED):
                return NetworkProblem.REFUSED
            if _is(error, errno.ENETUNREACH) or _is(error, errno.EHOSTUNREACH):
                return NetworkProblem.UNREACHABLE
    return NetworkProblem.LOST


def _is(error: OSError, number: int) -> bool:
    return error.errno == number or (error.errno is None and f"[Errno {number}]" in str(error))
