"""What clients on any network need: addresses in turn, TLS, and the names of what fails."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, Final

from sansmcp.errors import NetworkProblem


@cache
def default_tls() -> ssl.SSLContext:
    """Made once: to read the system's certificates takes long."""
    return ssl.create_default_context()


def peer_of(name: object) -> str | None:
    """The address in what a socket says of its other end; None where that has none."""
    return str(name[0]).partition("%")[0] if isinstance(name, tuple) else None


HAPPY_EYEBALLS: Final = 0.25
"""Seconds after which the next address is tried beside those that have not answered (RFC 8305)."""


def in_turn(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Addresses, as `socket.getaddrinfo` tells them, one of each family in turn: one of the two may lead
    nowhere."""
    first = [address for address in found if address[0] == found[0][0]]
    other = [address for address in found if address[0] != found[0][0]]
    return [address for pair in zip_longest(first, other) for address in pair if address is not None]


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
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):  # no such unix socket
                return NetworkProblem.REFUSED
            if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
                return NetworkProblem.UNREACHABLE
    return NetworkProblem.LOST
