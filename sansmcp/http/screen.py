"""What the head of a request decides alone: whether its body is wanted.

A request that is refused for who asks, for where or how, or for the length that it announces, costs no
memory for its body, and a client that waits to be asked for one is not asked.

Specification: RFC 9110, sections 10.1.1 (Expect) and 15.5 (client errors); RFC 9112, section 3.2.2
(absolute form); 2026-07-28, basic/transports/streamable-http (security & endpoint).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

import attrs

from .era import is_modern_version
from .exchange import JSON, HttpRequest, media_type
from .guard import GuardPolicy, Refusal, check_host_origin
from .legacy import VERSION
from .old_sse_server import OldSsePaths

TOO_LARGE: Final = Refusal(413, "the body is too large")

_MAX_DIGITS: Final = 18
_MAX_KNOWN: Final = 64
"""Hosts that are remembered. Past it: all are compared anew."""
_MAX_HOST: Final = 64
"""Characters of a host that is remembered. Past it: it is compared each time."""
_ABSOLUTE: Final = re.compile(r"https?://([^/?]*)", re.IGNORECASE)


class Place(Enum):
    """What is served at a path."""

    ENDPOINT = auto()
    """Streamable HTTP."""
    OLD_STREAM = auto()
    OLD_MESSAGES = auto()
    DOCUMENT = auto()
    """What everybody may read."""


@attrs.frozen(kw_only=True)
class Screen:
    """Which requests a server takes, as far as their heads tell."""

    path: str | None
    """Where the endpoint is; None for everywhere else."""
    policy: GuardPolicy
    old_sse: OldSsePaths | None
    max_body: int | None
    sessions: bool
    """Whether there are sessions, which take more methods."""
    documents: frozenset[str] = frozenset()
    """Paths of documents that everybody may read."""
    _known: set[str] = attrs.field(factory=set, init=False, eq=False, repr=False)
    """Hosts that were let in, as they were written: most clients name one of a few, again and again."""

    def place(self, target: str) -> Place | None:
        """What is at the target of a request line; None for nothing."""
        path, old = path_of(target), self.old_sse
        if old is not None and path == old.stream:
            return Place.OLD_STREAM
        if old is not None and path == old.messages:
            return Place.OLD_MESSAGES
        if path in self.documents:
            return Place.DOCUMENT
        return Place.ENDPOINT if self.path is None or path == self.path else None

    def refusal(self, request: HttpRequest) -> Refusal | None:
        """Say why a request is refused whatever its body is, or None."""
        fields, target = request.fields, request.target
        known = fields.get("host") in self._known and "origin" not in fields
        if not known or not target.startswith("/"):
            refusal = self._foreign(request)
            if refusal is not None:
                return refusal
        place = self.place(target)
        if place is None:
            return Refusal(404, "there is nothing here")
        allowed = self._methods(place, fields)
        if request.method not in allowed:
            listed = ", ".join(allowed)
            return Refusal(405, f"allowed is {listed}", (("allow", listed),))
        if request.method != "POST":
            return None
        kind = fields.get("content-type")
        if kind != JSON and media_type(kind) != JSON:
            return Refusal(415, f"the content-type must be {JSON}")
        return TOO_LARGE if self._announces_too_much(fields.get("content-length", "")) else None

    def _foreign(self, request: HttpRequest) -> Refusal | None:
        """Say why nobody may ask by the host that `request` names, or from the page that it comes from."""
        refusal = check_host_origin(request.headers, self.policy, http_version=request.http_version)
        absolute = None if request.target.startswith("/") else _ABSOLUTE.match(request.target)
        if refusal is None and absolute is not None:
            # This is the host that counts; proxies make Host the same.
            refusal = check_host_origin([("host", absolute[1])], self.policy)
        host = request.fields.get("host")
        if refusal is None and host is not None and len(host) <= _MAX_HOST:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known.add(host)
        return refusal

    def _methods(self, place: Place, fields: Mapping[str, str]) -> tuple[str, ...]:
        match place:
            case Place.OLD_STREAM | Place.DOCUMENT:
                return ("GET",)
            case Place.ENDPOINT if self.sessions and not is_modern_version(fields.get(VERSION)):
                return "GET", "POST", "DELETE"
            case _:
                return ("POST",)

    def _announces_too_much(self, length: str) -> bool:
        if self.max_body is None or not (length.isascii() and length.isdecimal()):
            return False  # what is no length is for whoever reads the body by it
        return len(length) > _MAX_DIGITS or int(length) > self.max_body


def path_of(target: str) -> str:
    """The path of a request line's target, which may be a whole URL."""
    path = target.partition("?")[0]
    absolute = None if path.startswith("/") else _ABSOLUTE.match(path)
    return path if absolute is None else path[absolute.end() :] or "/"
