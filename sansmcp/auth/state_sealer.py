"""A sealer whose states the client cannot even read. Belongs to the extra ``auth``.

Specification: 2026-07-28, basic/patterns/mrtr (server requirements, security considerations).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..errors import LocalProtocolError
from ..session.sealing import DEFAULT_TTL, STAMP, from_text, is_fresh, to_text

KEY: Final = 32
"""Bytes of a key: AES-256."""

_NONCE: Final = 12
_VERSION: Final = b"\x02"


class AesGcmSealer:
    """Seals with AES-256-GCM: the client can neither read nor change the payload.

    The first of `keys` (32 random bytes each) seals, all of them open: rotate them as those of
    `HmacSealer`. `entropy` gives random bytes, such as ``secrets.token_bytes``: one key is good for some
    four billion states. Servers with the same keys open each other's.

    Raises LocalProtocolError without a key, for one that has not 32 bytes, for a `ttl` that is not
    positive, and where ``cryptography`` is not installed.
    """

    def __init__(
        self, keys: Sequence[bytes], entropy: Callable[[int], bytes], *, ttl: float = DEFAULT_TTL
    ) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise LocalProtocolError("AesGcmSealer needs cryptography: install sansmcp[auth]") from error
        if not keys or any(len(key) != KEY for key in keys):
            raise LocalProtocolError(f"a state is sealed with keys of {KEY} random bytes")
        if not ttl > 0:
            raise LocalProtocolError(f"ttl is a number of seconds, not {ttl}")
        self._ciphers: tuple[Any, ...] = tuple(AESGCM(bytes(key)) for key in keys)
        self._refused = InvalidTag
        self._entropy = entropy
        self._ttl = ttl

    def __repr__(self) -> str:
        return f"AesGcmSealer({len(self._ciphers)} keys, ttl={self._ttl:g})"

    def seal(self, payload: bytes, binding: bytes, *, unix: float) -> str:
        """As `StateSealer.seal`."""
        stamp = max(0, int(unix)).to_bytes(STAMP, "big")
        nonce = self._entropy(_NONCE)
        sealed: bytes = self._ciphers[0].encrypt(nonce, payload, _VERSION + stamp + binding)
        return to_text(_VERSION + stamp + nonce + sealed)

    def open(self, text: str, binding: bytes, *, unix: float) -> bytes | None:
        """As `StateSealer.open`."""
        raw = from_text(text)
        if raw is None or raw[:1] != _VERSION or len(raw) < 1 + STAMP + _NONCE:
            return None
        stamp, rest = raw[1 : 1 + STAMP], raw[1 + STAMP :]
        payload: bytes | None = None
        for cipher in self._ciphers:
            try:
                payload = cipher.decrypt(rest[:_NONCE], rest[_NONCE:], _VERSION + stamp + binding)
                break
            except self._refused:
                continue
        if payload is None or not is_fresh(int.from_bytes(stamp, "big"), unix, self._ttl):
            return None
        return payload


__all__ = ["AesGcmSealer"]
