"""Who may talk to a server, by `Host` and `Origin`: against DNS rebinding.

A page in a browser can have its own name point at this machine and then talk to a server that
listens here only. The name it used is in `Host`, and the page it came from in `Origin`; both are
compared as a whole with a list of names. A server that is reached by other names lists those.

Specification: 2026-07-28, basic/transports/streamable-http (security & endpoint); RFC 9110, section
7.2, and RFC 6454, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, TypeAlias

import attrs

from ..errors import LocalProtocolError
from .exchange import Headers


class Anything(Enum):
    """No list of names, but all of them."""

    ANY = "any"


ANY: Final = Anything.ANY
"""Every name is allowed: for a server behind something that has checked them."""

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""The names by which a machine means itself."""

_UNREAD: Final[Any] = LOOPBACK  # a default, like what is given, goes through the converter

_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z_.-]+))(?::([0-9]{0,5}))?")
_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]*)")
_PORTS: Final = {"http": 80, "https": 443}
_OWS: Final = " \t"
_SHOWN: Final = 64

Authority: TypeAlias = tuple[str, int | None]
Place: TypeAlias = tuple[str | None, str, int | None]

_NULL: Final[Place] = ("null", "", None)  # no origin that can be parsed has an empty host


def _authority(text: str) -> Authority | None:
    """Host in its one spelling, and port, of ``host[:port]``; None when it is none."""
    if not text.isascii():
        return None
    match = _AUTHORITY.fullmatch(text.lower())
    if match is None:
        return None
    address, name, digits = match.groups()
    port = int(digits) if digits else None
    if port is not None and port > 65535:
        return None
    if address is None:
        return name, port
    import ipaddress

    try:
        return f"[{ipaddress.IPv6Address(address)}]", port
    except ValueError:
        return None


def _origin(text: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port of ``scheme://host[:port]``; None when it is none."""
    match = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    authority = _authority(match[2]) if match is not None else None
    if match is None or authority is None:
        return None
    host, port = authority
    return match[1], host, _PORTS.get(match[1]) if port is None else port


def _hosts(entries: Iterable[str] | Anything) -> frozenset[Authority] | Anything:
    if isinstance(entries, Anything):
        return entries
    return frozenset(map(_host_entry, _listed(entries)))


def _host_entry(entry: str) -> Authority:
    authority = _authority(entry)
    if authority is None:
        raise LocalProtocolError(f"{entry!r} is no host: a name (as xn-- if it is not ASCII), maybe a port")
    return authority


def _origins(entries: Iterable[str] | Anything) -> frozenset[Place] | Anything:
    if isinstance(entries, Anything):
        return entries
    return frozenset(_origin_entry(entry) for entry in _listed(entries))


def _origin_entry(entry: str) -> Place:
    if entry == "null":
        return _NULL
    if "://" not in entry:
        return (None, *_host_entry(entry))
    origin = _origin(entry)
    if origin is None:
        raise LocalProtocolError(f"{entry!r} is no origin: scheme://host, maybe a port, and no path")
    return origin


def _listed(entries: Iterable[str]) -> Iterable[str]:
    if isinstance(entries, str):  # its letters would be taken for names
        raise LocalProtocolError(f"a list of names is needed, not the text {entries!r}")
    return entries


@attrs.frozen
class GuardPolicy:
    """Which names a server is reached by, and which pages may use it.

    `hosts` has entries ``name`` (with every port) and ``name:port``; `origins` has
    ``scheme://name`` (with the port of the scheme), ``scheme://name:port``, ``name`` and
    ``name:port`` (http and https), and ``null``. Either may be ANY. There are no wildcards. Raises
    LocalProtocolError for an entry of another form.
    """

    hosts: frozenset[Authority] | Anything = attrs.field(default=_UNREAD, converter=_hosts)
    origins: frozenset[Place] | Anything = attrs.field(default=_UNREAD, converter=_origins)


DEFAULT_POLICY: Final = GuardPolicy()
"""Loopback names alone, with every port."""


@attrs.frozen
class Refusal:
    """How to turn a request away."""

    status: int
    """Of this guard: 403 for the origin, 421 for the host, 400 for one that is missing or unreadable."""
    reason: str
    """One line for people, plain ASCII."""
    headers: Headers = ()
    """Fields that the response also has."""


def check_host_origin(
    headers: Iterable[tuple[str, str]],
    policy: GuardPolicy = DEFAULT_POLICY,
    *,
    http_version: str = "1.1",
) -> Refusal | None:
    """Say why a request with these `headers` is to be refused, or None. Never raises.

    Of two reasons the origin is told, for which the specification demands its status. Without
    `Origin` it is no page that asks; without `Host` only HTTP/1.0 may ask.
    """
    hosts: list[str] = []
    origins: list[str] = []
    for name, value in headers:
        lowered = name.lower()
        if lowered == "host":
            hosts.append(value.strip(_OWS))
        elif lowered == "origin":
            origins.append(value.strip(_OWS))
    return _check_origin(origins, policy) or _check_host(hosts, policy, http_version)


def _check_origin(given: list[str], policy: GuardPolicy) -> Refusal | None:
    allowed = policy.origins
    if not given or isinstance(allowed, Anything):
        return None
    if len(given) > 1:
        return Refusal(403, "Origin is there more than once")
    text = given[0]
    if text == "null":
        if _NULL in allowed:
            return None
        return Refusal(403, "Origin null is not allowed")
    origin = _origin(text)
    if origin is None:
        return Refusal(403, f"Origin {_shown(text)} is malformed")
    scheme, host, port = origin
    if origin in allowed:
        return None
    if scheme in _PORTS and ((None, host, None) in allowed or (None, host, port) in allowed):
        return None
    return Refusal(403, f"Origin {_shown(text)} is not allowed")


def _check_host(given: list[str], policy: GuardPolicy, http_version: str) -> Refusal | None:
    allowed = policy.hosts
    if isinstance(allowed, Anything):
        return None
    if not given:
        return None if http_version in ("1.0", "0.9") else Refusal(400, "Host is missing")
    if len(given) > 1:
        return Refusal(400, "Host is there more than once")
    authority = _authority(given[0])
    if authority is None:
        return Refusal(400, f"Host {_shown(given[0])} is malformed")
    host, port = authority
    # The scheme's own port is left out by clients, and which scheme it was is not known here.
    ports = {None, port} if port is not None else {None, *_PORTS.values()}
    if any((host, p) in allowed for p in ports):
        return None
    return Refusal(421, f"Host {_shown(given[0])} is not served here")


def _shown(text: str) -> str:
    return ascii(text) if len(text) <= _SHOWN else ascii(text[:_SHOWN]) + "..."
