"""What a response says about the request it answers, going by its head, and by its body if need be.

Pure decisions: the transport asks, and carries out. The content type alone decides how a body is
read; nothing is ever guessed from its bytes, so no page of a proxy is taken for a message.

Specification: 2026-07-28, basic/transports/streamable-http (sending messages, backward
compatibility); RFC 9110, sections 8.3 (content type), 8.4 (content coding) and 15 (status codes).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

import attrs

from ..errors import AuthorizationRequired, HttpFailure, PeerFault, RedirectRefused
from ..session.era import Outcome, ProbeOutcome
from ..wire.peek import excerpt
from .exchange import EVENT_STREAM, JSON, media_type
from .url import Url

_BODYLESS: Final = frozenset({202, 204, 205})
"""Statuses that acknowledge. A body of theirs is no answer."""

_RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_FOLLOWED: Final = frozenset({307, 308})
_MAX_CHALLENGES: Final = 8

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_ADVICE: Final = {
    413: "the message is too large for it: send less, or have its limit raised",
    431: "the headers are too large for it: send fewer, or have its limit raised",
    502: "what is before the server does not reach it: try again later",
    503: "it cannot answer now: try again later",
    504: "the server took too long for what is before it: try again, or have its timeout raised",
}
"""What to do about a status, for people."""


class Content(Enum):
    """How a body is to be read."""

    JSON = auto()
    STREAM = auto()
    OTHER = auto()
    """Only its begin is looked at, to show it to people."""
    NONE = auto()
    """There is none, or none that could mean anything."""


@attrs.frozen
class Answer:
    """The head of a response, as far as it means anything here."""

    status: int
    content: Content
    content_type: str
    coding: str
    """The content coding other than ``identity``; empty for none."""
    location: str | None = attrs.field(default=None, repr=False)
    challenges: tuple[str, ...] = ()
    retry_after: float | None = None
    session_id: str | None = attrs.field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the server did what it was asked for."""
        return 200 <= self.status < 300

    @property
    def redirects(self) -> bool:
        """Whether it points to another address. (304 does not.)"""
        return 300 <= self.status < 400 and self.location is not None

    @property
    def denies(self) -> bool:
        """Whether it is about who asks."""
        return self.status in (401, 403)


def read_answer(status: int, headers: Iterable[tuple[str, str]]) -> Answer:
    """Read the head of a response. Total: never raises."""
    found: dict[str, str] = {}
    challenges: list[str] = []
    for name, value in headers:
        key = name.lower()
        if key == "www-authenticate" and len(challenges) < _MAX_CHALLENGES:
            challenges.append(value)
        found.setdefault(key, value.strip(" \t"))
    kind = media_type(found.get("content-type"))
    coding = found.get("content-encoding", "").lower()
    if coding == "identity":
        coding = ""
    return Answer(
        status,
        _content(status, kind, coding),
        kind,
        coding,
        found.get("location"),
        tuple(challenges),
        read_seconds(found.get("retry-after")),
        found.get("mcp-session-id"),
    )


def _content(status: int, kind: str, coding: str) -> Content:
    if status in _BODYLESS or coding:
        return Content.NONE
    if kind == JSON or (status >= 400 and kind.endswith("+json")):
        return Content.JSON
    if kind == EVENT_STREAM and 200 <= status < 300:
        return Content.STREAM
    return Content.OTHER


def read_seconds(value: str | None) -> float | None:
    """How long ``Retry-After`` asks to wait; None where it does not say."""
    # The form with a date would need the time of day.
    return float(value) if value is not None and value.isdecimal() and len(value) < 10 else None


def follow(answer: Answer, url: Url) -> Url | None:
    """Where a request to `url` goes on with method and body kept; None when it must not."""
    if answer.status not in _FOLLOWED or answer.location is None:
        return None
    try:
        target = url.join(answer.location)
    except ValueError:
        return None
    return target if target.origin == url.origin else None


def same_origin(answer: Answer, url: Url) -> bool:
    """Whether a redirect stays at the origin of `url`."""
    try:
        return answer.location is not None and url.join(answer.location).origin == url.origin
    except ValueError:
        return False


def describe(answer: Answer) -> str:
    """The answer in a few words."""
    kind = answer.content_type or "no content type"
    return f"HTTP {answer.status} ({excerpt(kind.encode(), 64)})"


def failure(
    answer: Answer, subject: str, url: Url, body: bytes, max_excerpt: int, fault: PeerFault | None = None
) -> HttpFailure:
    """Why `answer` is none to `subject`. `body` is as much of its body as was kept.

    `fault` is what was found out about a JSON body, None for one that is JSON.
    """
    shown = excerpt(body, max_excerpt) if body else ""
    status = answer.status
    quoted = f": {shown}" if shown else ""
    if answer.denies:
        what = "authorization is required" if status == 401 else "not allowed"
        text = f"{subject}: HTTP {status}, {what}{quoted}"
        return AuthorizationRequired(text, status=status, challenges=answer.challenges, excerpt=shown)
    if answer.redirects:
        return _redirect_refused(answer, subject, url)
    retryable = status in _RETRYABLE
    if answer.ok and fault is not None:
        text = f"the body is no JSON{quoted}"
    elif answer.ok and answer.coding:
        fault = PeerFault.CONTENT_CODING
        text = f"the body is compressed ({answer.coding[:32]!a}), though only identity was asked for"
    elif answer.ok and (answer.content is Content.NONE or not body):
        fault = PeerFault.EMPTY_ANSWER
        text = f"HTTP {status} without an answer in it"
    elif answer.ok and answer.content is Content.JSON:
        fault = PeerFault.INVALID_RESPONSE
        text = f"the body is no response to it{quoted}"
    elif answer.ok:
        fault = PeerFault.UNEXPECTED_CONTENT_TYPE
        text = f"{describe(answer)} instead of JSON or an event stream{quoted}"
    else:
        fault = PeerFault.UNEXPECTED_STATUS
        text = f"HTTP {status}{_explained(answer)}{quoted}"
    return HttpFailure(
        f"{subject}: {text}",
        status=status,
        fault=fault,
        excerpt=shown,
        retryable=retryable,
        retry_after=answer.retry_after,
    )


def _explained(answer: Answer) -> str:
    """What a failure's status means, and who may have sent it; empty where that is not known."""
    page = " with a web page, as proxies send it" if answer.content_type in _PAGES else ""
    advice = _ADVICE.get(answer.status)
    if advice is None and page and answer.status == 400:
        advice = "the request cannot be read, or its headers are too large for it"
    return page if advice is None else f"{page}: {advice}"


def _redirect_refused(answer: Answer, subject: str, url: Url) -> RedirectRefused:
    status = answer.status
    try:
        where = str(url.join(answer.location or ""))
    except ValueError:
        where = "an unusable address"
    if not same_origin(answer, url):
        why = "which is at another origin"
    elif status in _FOLLOWED:
        why = "and so on: too many redirects"
    else:
        why = f"and {status} would turn the request into a GET: use that address from the start"
    text = f"{subject}: HTTP {status} points to {where}, {why}"
    return RedirectRefused(text, status=status, location=where)


def outcome(answer: Answer, url: Url) -> ProbeOutcome:
    """What `answer` tells of the server's era, apart from any message in it."""
    if answer.redirects:
        return ProbeOutcome(kind=Outcome.REDIRECT, status=answer.status, same_origin=same_origin(answer, url))
    if not answer.ok:
        return ProbeOutcome(kind=Outcome.HTTP_STATUS, status=answer.status, detail=describe(answer))
    if answer.coding:
        # Whatever it says, nobody here can read it: that tells nothing about the server behind.
        return ProbeOutcome(kind=Outcome.NETWORK_ERROR, detail=f"content coding {answer.coding[:32]!a}")
    return ProbeOutcome(kind=Outcome.MALFORMED, status=answer.status, detail=describe(answer))
