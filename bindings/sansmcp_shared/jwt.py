"""Verifies signed access tokens with the keys that their issuer publishes: a `JwtVerifier` that fetches."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterable
from threading import Event, Lock
from typing import Any, Final, cast

from sansmcp.auth.jwt_verifier import (
    DEFAULT_ALGORITHMS,
    MAX_KEY_SET,
    FetchKeys,
    JwtVerifier,
    KeysUnavailable,
)
from sansmcp.auth.principal import Principal
from sansmcp.clock import ClockPair

Fetch = Callable[[str], bytes]
"""Gets what is at an address."""

_SECONDS: Final = 10.0


def jwt_verifier(
    issuer: str | Iterable[str],
    keys_url: str,
    *,
    algorithms: Iterable[str] = DEFAULT_ALGORITHMS,
    leeway: float = 30.0,
    keep: float = 3600.0,
    pause: float = 60.0,
    fetch: Fetch | None = None,
) -> Callable[[str], Principal | None]:
    """A verifier for `ResourceServer`: takes tokens that `issuer` signed with a key that is at `keys_url`.

    A plain function, for every binding and any number of threads. The keys are fetched by `fetch`, without
    it by the standard library, which redirects send nowhere. The other parameters, and what it raises, are
    those of `JwtVerifier`.
    """
    machine = JwtVerifier(
        issuer, keys_url=keys_url, algorithms=algorithms, leeway=leeway, keep=keep, pause=pause
    )
    return _Verifier(machine, fetch or _fetch)


class _Verifier:
    """Drives the machine. One fetch serves all who wait for it, and nobody else waits."""

    def __init__(self, machine: JwtVerifier, fetch: Fetch) -> None:
        self._machine = machine
        self._fetch = fetch
        self._lock = Lock()
        self._coming: Event | None = None
        """Set, and forgotten, when the keys that are being fetched are there."""

    def __call__(self, token: str) -> Principal | None:
        for _ in range(3):
            with self._lock:
                coming = self._coming
                try:
                    found = self._machine.verify(token, _clock())
                except KeysUnavailable:
                    if coming is None:
                        raise
                    found = None
                if isinstance(found, FetchKeys):
                    self._coming = Event()
            if isinstance(found, Principal):
                return found
            if isinstance(found, FetchKeys):
                self._renew(found.url)
            elif coming is None:
                return None
            else:
                coming.wait(2 * _SECONDS)
        raise KeysUnavailable("the keys do not come")

    def _renew(self, url: str) -> None:
        try:
            data = self._fetch(url)
        except Exception:  # whoever fetches may raise what it likes
            data = b""
        with self._lock:
            if not self._machine.keys_received(data, _clock()):
                self._machine.keys_failed(_clock())
            coming, self._coming = self._coming, None
        if coming is not None:
            coming.set()


def _clock() -> ClockPair:
    return ClockPair(now=time.monotonic(), unix=time.time())


def _fetch(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"accept": "application/json"})
    with _OPENER.open(request, timeout=_SECONDS) as response:
        return cast(bytes, response.read(MAX_KEY_SET + 1))


class _StayThere(urllib.request.HTTPRedirectHandler):
    """Keys are where the server is told that they are."""

    def redirect_request(self, *redirect: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_StayThere)
