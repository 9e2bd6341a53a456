"""One origin as a connector reaches it: how its requests look on the wire, and its own pool.

Specification: RFC 9112, section 3.2 (request target); RFC 9110, section 9.3.6 (CONNECT).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..ops import ConnectionId
from ..wire.http1 import FieldBlock
from .exchange import Headers
from .pool import Pool, PoolPolicy
from .proxy import Proxy
from .url import Origin, Url

MAX_PLACES: Final = 16
"""Origins beside the server's own that have connections at once: one attempt to be authorized asks one
after the other. Past it: a fetch fails."""

_MAX_BLOCKS: Final = 4
"""Fields of requests that are kept encoded: most calls are of a few tools."""


def elsewhere(policy: PoolPolicy) -> PoolPolicy:
    """The policy for an origin that is asked a few times, and then not again."""
    return attrs.evolve(policy, max_requests=2, max_idle=1, idle_timeout=min(policy.idle_timeout, 5.0))


class Place:
    """One origin, reached directly or through `proxy`. `numbers` names connections."""

    def __init__(
        self,
        url: Url,
        policy: PoolPolicy,
        proxy: Proxy | None,
        numbers: Iterator[ConnectionId],
        *,
        guarded: bool = False,
    ) -> None:
        self.guarded: Final = guarded and proxy is None
        """Whether it must not be further inside than the server is."""
        self.origin: Final[Origin] = url.origin
        self.host, self.port, self.tls = url.host, url.port, url.scheme == "https"
        self.policy: Final = policy
        self.pool: Final = Pool(policy, numbers)
        self.proxy: Final = proxy
        self._fixed = [("host", url.authority)]
        """Header fields that every request has."""
        self.prefix = ""
        """What stands before the target, for a proxy that is told where to go by that."""
        if proxy is not None and not self.tls:
            self.prefix = f"http://{url.authority}"
            self._fixed += credentials(proxy)
        self._blocks: list[tuple[Headers, FieldBlock]] = []
        """The last fields, encoded."""
        self.jobs = 0
        """Exchanges that are not over."""
        self.connections = 0

    def fields(self, headers: Headers) -> FieldBlock:
        """The fields of a request with these `headers`. Those of the last ones are not encoded again."""
        for known, block in self._blocks:
            if headers == known:
                return block
        block = FieldBlock([*self._fixed, *headers])
        self._blocks = [(list(headers), block), *self._blocks[: _MAX_BLOCKS - 1]]
        return block

    @property
    def authority(self) -> str:
        """Host and port, as ``CONNECT`` wants them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def credentials(proxy: Proxy) -> list[tuple[str, str]]:
    """What shows a proxy who asks."""
    return [] if proxy.authorization is None else [("proxy-authorization", proxy.authorization)]
