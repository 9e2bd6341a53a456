"""The state that a modern client carries from one round of a request to the next, and back unchanged.

What comes back is what anybody may have written, so the server seals what it gives away and believes
nothing without its seal. A seal says for which request it was made, of whom, and when.

Specification: 2026-07-28, basic/patterns/mrtr (server requirements, security considerations).
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol

from ..errors import LocalProtocolError
from .modern import RETRY_MEMBERS

DEFAULT_TTL: Final = 600.0
"""Seconds: long enough for somebody to fill in a form."""

MIN_KEY: Final = 32
"""Bytes of a key: as many as its digest has."""

_VERSION: Final = b"\x01"
STAMP: Final = 8
"""Bytes of the time at which a state was sealed."""

_MAC: Final = 32
_SKEW: Final = 60
"""Seconds by which the clock of another server with the same keys may be ahead."""

_UNBOUND: Final = frozenset({"_meta", *RETRY_MEMBERS})
"""Params that differ between the rounds of one request."""


class StateSealer(Protocol):
    """Makes text of a payload that nobody else could have made.

    `binding` is what it is for: the same request of the same principal. `unix` is the time of day.
    """

    def seal(self, payload: bytes, binding: bytes, *, unix: float) -> str:
        """The payload as text for the client."""
        ...

    def open(self, text: str, binding: bytes, *, unix: float) -> bytes | None:
        """The payload of what a client sent; None for what was not sealed for this, or too long ago.

        Never raises: `text` is whatever a client sent.
        """
        ...


class HmacSealer:
    """Seals with HMAC-SHA256. The client can read the payload, but not change it.

    The first of `keys` signs, all of them verify: to change keys, put the new one in front and drop the
    old one when `ttl` seconds are over. Servers with the same keys open each other's states; there, the
    new key comes behind the old one first, until every server has it.

    Raises LocalProtocolError without a key, for one shorter than 32 bytes, or a `ttl` that is not
    positive.
    """

    def __init__(self, keys: Sequence[bytes], *, ttl: float = DEFAULT_TTL) -> None:
        if not keys or any(len(key) < MIN_KEY for key in keys):
            raise LocalProtocolError(f"a state is sealed with keys of at least {MIN_KEY} random bytes")
        if not ttl > 0:
            raise LocalProtocolError(f"ttl is a number of seconds, not {ttl}")
        self._keys = tuple(bytes(key) for key in keys)
        self._ttl = ttl

    def __repr__(self) -> str:
        return f"HmacSealer({len(self._keys)} keys, ttl={self._ttl:g})"

    def seal(self, payload: bytes, binding: bytes, *, unix: float) -> str:
        """As `StateSealer.seal`."""
        body = _VERSION + max(0, int(unix)).to_bytes(STAMP, "big") + payload
        return to_text(self._sign(self._keys[0], body, binding) + body)

    def open(self, text: str, binding: bytes, *, unix: float) -> bytes | None:
        """As `StateSealer.open`."""
        raw = from_text(text)
        if raw is None or len(raw) < _MAC + len(_VERSION) + STAMP:
            return None
        mac, body = raw[:_MAC], raw[_MAC:]
        genuine = False
        for key in self._keys:  # every key is tried: how long this takes tells nothing
            genuine |= hmac.compare_digest(mac, self._sign(key, body, binding))
        if not genuine or body[:1] != _VERSION:
            return None
        stamp = body[1 : 1 + STAMP]
        return body[1 + STAMP :] if is_fresh(int.from_bytes(stamp, "big"), unix, self._ttl) else None

    @staticmethod
    def _sign(key: bytes, body: bytes, binding: bytes) -> bytes:
        # The length tells where the one ends and the other begins.
        return hmac.digest(key, len(binding).to_bytes(8, "big") + binding + body, "sha256")


def is_fresh(sealed: float, unix: float, ttl: float) -> bool:
    """Whether what was sealed at the time `sealed` may still be opened."""
    return -_SKEW <= unix - sealed <= ttl


def bind(method: str, params: Mapping[str, Any], principal: str | None) -> bytes:
    """What a state is bound to: the request without what differs between its rounds, and who makes it."""
    salient = {name: value for name, value in params.items() if name not in _UNBOUND}
    # The order of members and the spelling of numbers are the client's to choose each time.
    plain = json.loads(json.dumps([method, principal, salient]), parse_float=_number)
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("ascii")).digest()


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def to_text(raw: bytes) -> str:
    """Bytes as text that needs no escaping anywhere."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def from_text(text: str) -> bytes | None:
    """The bytes of `text`, None when it is not the one way to write them."""
    try:
        raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (ValueError, Base64Error):
        return None
    return raw if to_text(raw) == text else None
