"""Which addresses a client asks because a server names them.

What a server says about authorization sends its client to other places. Without a rule, a server could have
its client ask within the network in which the client is.

Specification: 2026-07-28, basic/authorization/security-considerations; RFC 9728, section 7.7.
"""

from __future__ import annotations

from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

import attrs

from ..errors import LocalProtocolError
from ..http.proxy import is_loopback
from ..http.url import Url, parse_url

_TRANSLATED: Final = tuple(map(IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""Addresses of IPv6 whose end is one of IPv4, which a translator makes of them (RFC 4291, 6052, 8215)."""

_LOCAL_NAMES: Final = (".local", ".internal", ".localdomain", ".home.arpa", ".lan")
"""Ends of names that mean something only in the network one is in."""


class Reach(IntEnum):
    """From where an address can be reached, going by its text alone."""

    PUBLIC = 0
    PRIVATE = 1
    """Within a network."""
    LOOPBACK = 2
    """This computer."""


def reach_of(host: str) -> Reach:
    """From where `host`, a name or an address, can be reached. A name is not looked up."""
    host = host.rstrip(".")
    if is_loopback(host):
        return Reach.LOOPBACK
    try:
        address = ip_address(host)
    except ValueError:
        number = host.rpartition(".")[2]
        if number.isdigit() or number.startswith("0x") or "." not in host:
            # Forms of addresses that only some resolvers know (``127.1``, ``2130706433``), and bare names.
            return Reach.PRIVATE
        return Reach.PRIVATE if host.endswith(_LOCAL_NAMES) else Reach.PUBLIC
    if isinstance(address, IPv6Address):
        mapped = _mapped(address)
        if mapped is not None:
            return reach_of(str(mapped))
        if address.is_site_local:
            return Reach.PRIVATE
    return Reach.PUBLIC if address.is_global and not address.is_multicast else Reach.PRIVATE


def _mapped(address: IPv6Address) -> IPv4Address | None:
    """The address of IPv4 that is meant by one of IPv6, if it is."""
    if any(address in network for network in _TRANSLATED):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


@attrs.frozen(kw_only=True)
class AddressPolicy:
    """Which addresses are asked that a server names. Those that the user gives are never in question.

    Without a word to the contrary: ``https`` only, and ``http`` on this computer, both only where a server
    may send its client to: one that is public sends to public addresses, one within a network also there,
    one on this computer anywhere. Names are judged by their text: whoever connects may refuse more.
    """

    private: bool = False
    """Whether a server that is public may name addresses within a network or on this computer."""
    plain: bool = False
    """Whether ``http`` is spoken beyond this computer too. Whoever is on the way can then read tokens."""
    foreign_metadata: bool = False
    """Whether the metadata about a server may be at another host than the server."""

    def refusal(self, url: Url, named_by: Url) -> str | None:
        """Why `url` is not asked for the sake of the server `named_by`; None: it is."""
        if not self.is_safe(url):
            return "it is not https"
        reach = reach_of(url.host)
        if url.origin == named_by.origin:
            return None
        if reach > reach_of(named_by.host) and not self.private:
            where = "on this computer" if reach is Reach.LOOPBACK else "within a private network"
            return f"it is {where}, and the server that names it is not (AddressPolicy.private)"
        return None

    def is_safe(self, url: Url) -> bool:
        """Whether nobody on the way to `url` can read what is sent there."""
        return url.scheme == "https" or self.plain or reach_of(url.host) is Reach.LOOPBACK

    def refusal_of_metadata(self, url: Url, server: Url) -> str | None:
        """Why the metadata about `server` is not read from `url`, which it names; None: it is."""
        if url.host != server.host and not self.foreign_metadata:
            return "it is at another host than the server (AddressPolicy.foreign_metadata)"
        return None if url.origin == server.origin else self.refusal(url, server)


DEFAULT_ADDRESSES: Final = AddressPolicy()


def named_url(text: object) -> Url | None:
    """The address that a server names, or None for what is none."""
    if not isinstance(text, str):
        return None
    try:
        return parse_url(text)
    except LocalProtocolError:
        return None
