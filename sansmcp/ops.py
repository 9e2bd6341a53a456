"""What a transport asks its driver to do: a closed union, so a pump is one ``match``.

A connection is named by an integer that the transport chose; it is never used twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from .records import record

ConnectionId: TypeAlias = int


@record
class Spawn:
    """Start a child process in a group of its own, all three standard streams as pipes.

    Then call ``opened``, or ``failed`` with the error. `env` is the whole environment.
    """

    conn: ConnectionId
    argv: Sequence[str]
    env: Mapping[str, str] = attrs.field(repr=False)
    cwd: str | None


@record
class Connect:
    """Connect to `port` of `host`, a name or an address. `tls` is the server's name for TLS, or None.

    Then call ``opened``, or ``failed`` with the error.
    """

    conn: ConnectionId
    host: str
    port: int
    tls: str | None


@record
class ConnectUnix:
    """Connect to the unix socket at `path`. Then call ``opened``, or ``failed`` with the error."""

    conn: ConnectionId
    path: str


@record
class StartTls:
    """Speak TLS on an open connection from now on, with the server named `host`.

    Then call ``opened`` once more, or ``failed`` with the error.
    """

    conn: ConnectionId
    host: str


@record
class Write:
    """Write bytes, all of them and in order."""

    conn: ConnectionId
    data: bytes

    def __repr__(self) -> str:
        return f"Write({self.conn}, {len(self.data)} bytes)"


@record
class CloseWrite:
    """Close the writing half, after everything written before."""

    conn: ConnectionId


@record
class Close:
    """Close the connection, after everything written before."""

    conn: ConnectionId


@record
class Terminate:
    """Ask the child's process group to end (SIGTERM). Harmless when it is gone."""

    conn: ConnectionId


@record
class Kill:
    """End whatever is left of the child's process group (SIGKILL). Harmless when it is gone."""

    conn: ConnectionId


Op: TypeAlias = Spawn | Connect | ConnectUnix | StartTls | Write | CloseWrite | Close | Terminate | Kill
