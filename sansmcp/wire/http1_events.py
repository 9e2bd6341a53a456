"""What a connection that speaks HTTP/1.1 tells of its peer.

Header fields are a dict from lower-case name to value. A field that came more than once has its
values joined by ``", "``, which for a list means the same. For a field that must be single it may look
like one value, so the lines of such a request are there as well (`RequestHead.lines`). Names and
values are ASCII: others are refused in both directions.

Specification: RFC 9110, sections 5 (fields), 9 (methods) and 15 (status codes).
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from ..errors import PeerFault


def _without_query(target: str) -> str:
    path, mark, _ = target.partition("?")
    return repr(path + ("?…" if mark else ""))


@attrs.define(eq=False)
class RequestHead:
    """A request begins. Its body follows as `BodyData`, and `BodyEnd` in any case."""

    method: str
    target: str = attrs.field(repr=_without_query)
    """As it is in the request line: most often path and query."""
    headers: dict[str, str] = attrs.field(repr=False)
    http_version: str
    """``"1.1"`` or ``"1.0"``."""
    content_length: int | None
    """Bytes of the body, 0 if there is none; None if that is not known beforehand."""
    expects_continue: bool
    """Whether the client waits for `Http1Server.send_continue` before it sends the body."""
    close: bool
    """Whether the client wants this to be the last request of the connection."""
    lines: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    """All fields as they came, if one of them came more than once; else empty."""

    def again(self, length: str | None) -> RequestHead:
        """The same head, with these digits as its ``content-length``, if it has one; not for ``expect``."""
        headers, known, lines = self.headers.copy(), self.content_length, self.lines
        if length is not None:
            headers["content-length"], known = length, int(length)
            if lines:
                lines = tuple((name, length if name == "content-length" else value) for name, value in lines)
        return RequestHead(
            self.method,
            self.target,
            headers,
            self.http_version,
            known,
            self.expects_continue,
            self.close,
            lines,
        )


@attrs.define(eq=False)
class ResponseHead:
    """The response begins. Its body follows as `BodyData`, and `BodyEnd` in any case."""

    status: int
    headers: dict[str, str] = attrs.field(repr=False)
    reason: str
    """The server's words for the status; often empty."""
    http_version: str
    """``"1.1"`` or ``"1.0"``."""
    deviations: tuple[PeerFault, ...] = ()
    """What had to be read leniently: BARE_LINE_FEED, FOLDED_HEADER. Empty for a correct head."""

    def again(self, length: str | None) -> ResponseHead:
        """The same head, with these digits as its ``content-length``, if it has one."""
        headers = self.headers.copy()
        if length is not None:
            headers["content-length"] = length
        return ResponseHead(self.status, headers, self.reason, self.http_version, self.deviations)


@attrs.define(eq=False)
class InformationalHead:
    """A status 1xx, such as 100 Continue: the response itself is still to come."""

    status: int
    headers: dict[str, str] = attrs.field(repr=False)


@attrs.define(eq=False)
class BodyData:
    """Bytes of the body. How they are divided means nothing."""

    data: bytes = attrs.field(repr=False)


@attrs.define(eq=False)
class BodyEnd:
    """The message is complete."""


@attrs.define(eq=False)
class ConnectionClosed:
    """The peer sends nothing more. Told once, and after all else."""


@attrs.define(eq=False)
class HttpFault:
    """The peer broke the protocol; nothing more is read from it."""

    fault: PeerFault
    detail: str
    """One line for people, which quotes nothing of the message."""
    status: int | None = None
    """The status of the refusal; None on the side of the client."""
    answered: bool = False
    """Whether that refusal was queued. Else a response was already begun, or was asked for."""


HttpEvent: TypeAlias = (
    RequestHead | ResponseHead | InformationalHead | BodyData | BodyEnd | ConnectionClosed | HttpFault
)
"""What `next_event` of a connection returns."""
