"""Addresses as a client needs them: where to connect, what to ask for there, and whether another
address is at the same place.

Specification: RFC 3986; RFC 6454, section 4 (origin).
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import attrs

from ..errors import LocalProtocolError

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host in lower case (IPv6 without brackets), and port."""

_PORTS: Final = {"http": 80, "https": 443}
_VISIBLE: Final = re.compile(r"[!-~]+")
_HOST: Final = re.compile(r"[0-9a-z_.~!$&'()*+,;=%-]+|[0-9a-f:.]+")
_MAX_LENGTH: Final = 8192
"""Longer addresses are refused: a target goes into a head, which has a bound of its own."""


@attrs.frozen(repr=False)
class Url:
    """An address without user, password and fragment."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as in a request line."""

    @property
    def origin(self) -> Origin:
        """What two addresses have in common that may share secrets."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """The value of the ``Host`` header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def text(self) -> str:
        """The whole address, with its query, which may hold secrets."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def path(self) -> str:
        """The path alone."""
        return self.target.partition("?")[0]

    def join(self, reference: str) -> Url:
        """The address that `reference` means, found in a resource at this one.

        Raises ValueError, which does not quote it, for one that is none.
        """
        if len(reference) > _MAX_LENGTH or not _VISIBLE.fullmatch(reference):
            raise ValueError("not an address")
        return _parse(urljoin(self.text, reference))

    def __str__(self) -> str:
        """The address without its query, which may hold secrets."""
        path, mark, _ = self.target.partition("?")
        return f"{self.scheme}://{self.authority}{path}{'?…' if mark else ''}"

    def __repr__(self) -> str:
        return f"Url({self})"


def parse_url(text: str) -> Url:
    """Read an address of ``http:`` or ``https:``.

    Raises LocalProtocolError for another scheme, for one without a host, with a user or password,
    or with characters that are not to be there unescaped. The message does not quote it.
    """
    try:
        return _parse(text)
    except ValueError as error:
        raise LocalProtocolError(f"the URL is not usable: {error}") from None


def _parse(text: str) -> Url:
    if len(text) > _MAX_LENGTH or not _VISIBLE.fullmatch(text):
        raise ValueError("too long, or with characters that must be percent-encoded (a host: as xn--)")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("not an address") from None
    if parts.scheme not in _PORTS:
        raise ValueError("the scheme must be http or https")
    if parts.username is not None or parts.password is not None:
        raise ValueError("no user and password in an address: use the authorization header")
    host = parts.hostname or ""
    if not _HOST.fullmatch(host) or port == 0:
        raise ValueError("no host, or an impossible one")
    target = parts.path if parts.path.startswith("/") else "/" + parts.path
    if parts.query:
        target = f"{target}?{parts.query}"
    return Url(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, target)
