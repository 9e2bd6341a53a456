"""Verifies signed access tokens with the keys that their issuer publishes: a `JwtVerifier` that fetches."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterable
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

Fetch = Callable[[str], Awaitable[bytes]]
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
) -> Callable[[str], Awaitable[Principal | None]]:
    """A verifier for `ResourceServer`: takes tokens that `issuer` signed with a key that is at `keys_url`.

    The keys are fetched by `fetch`; without it, in a thread, which also works under trio. The other
    parameters, and what it raises, are those of `JwtVerifier`.
    """
    machine = JwtVerifier(
        issuer, keys_url=keys_url, algorithms=algorithms, leeway=leeway, keep=keep, pause=pause
    )
    return _Verifier(machine, fetch or _fetch)


class _Verifier:
    """Drives the machine. One fetch serves all who wait for it."""

    def __init__(self, machine: JwtVerifier, fetch: Fetch) -> None:
        self._machine = machine
        self._fetch = fetch
        self._lock: Any = None

    async def __call__(self, token: str) -> Principal | None:
        found = None if self._busy else self._machine.verify(token, _clock())
        if found is None or isinstance(found, FetchKeys):
            async with self._turn():
                if found is None:
                    found = self._machine.verify(token, _clock())
                if isinstance(found, FetchKeys):
                    await self._renew(found.url)
                    found = self._machine.verify(token, _clock())
        if isinstance(found, FetchKeys):  # it took so long that it is time again
            raise KeysUnavailable("the keys could not be fetched")
        return found if isinstance(found, Principal) else None

    @property
    def _busy(self) -> bool:
        return self._lock is not None and self._lock.locked()

    def _turn(self) -> Any:
        if not self._busy:
            self._lock = _make_lock()  # of the loop that runs now
        return self._lock

    async def _renew(self, url: str) -> None:
        try:
            data = await self._fetch(url)
        except Exception:
            self._machine.keys_failed(_clock())
            return
        if not self._machine.keys_received(data, _clock()):
            self._machine.keys_failed(_clock())


def _clock() -> ClockPair:
    return ClockPair(now=time.monotonic(), unix=time.time())


def _make_lock() -> Any:
    if _on_asyncio():
        import asyncio

        return asyncio.Lock()
    import trio

    return trio.Lock()


def _on_asyncio() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _fetch(url: str) -> bytes:
    if _on_asyncio():
        import asyncio

        return await asyncio.to_thread(_read, url)
    import trio

    return await trio.to_thread.run_sync(_read, url)


def _read(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"accept": "application/json"})
    with _OPENER.open(request, timeout=_SECONDS) as response:
        return cast(bytes, response.read(MAX_KEY_SET + 1))


class _StayThere(urllib.request.HTTPRedirectHandler):
    """Keys are where the server is told that they are."""

    def redirect_request(self, *redirect: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_StayThere)
