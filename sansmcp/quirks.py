"""Leniencies towards servers that deviate: named, plain data, chosen by the user and told when used.

    engine = ClientEngine(info, now=now, quirks=["session-lost-400"])

A quirk is never chosen by who a server says it is. What is always tolerated is no quirk; a quirk is for
what would do harm with other servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from .errors import LocalProtocolError
from .records import frozen


@frozen(kw_only=True)
class SessionLost:
    """How a legacy server says over HTTP that it does not know a session, other than by 404."""

    status: int
    code: int
    """Of the JSON-RPC error in its body."""
    text: str = ""
    """What is in the error's message, whatever its case."""


@frozen
class ReadAsJson:
    """A type of body, other than ``application/json``, that an answer is read as JSON under."""

    content_type: str
    """Without parameters, in lower case; empty: no type is given."""


@frozen
class NoCancel:
    """The server is not told that a call is cancelled. It works on, and its answer is ignored."""


Rule: TypeAlias = SessionLost | ReadAsJson | NoCancel


@frozen(kw_only=True)
class Quirk:
    """A leniency with its name."""

    name: str
    rule: Rule
    why: str
    """One line for people: what such servers do."""


QUIRKS: Final[Mapping[str, Quirk]] = MappingProxyType(
    {
        quirk.name: quirk
        for quirk in (
            Quirk(
                name="session-lost-400",
                rule=SessionLost(status=400, code=-32000, text="session"),
                why="answers 400 instead of 404 to a session that it does not know",
            ),
            Quirk(
                name="json-as-text",
                rule=ReadAsJson("text/plain"),
                why="sends its JSON as text/plain",
            ),
            Quirk(
                name="json-untyped",
                rule=ReadAsJson(""),
                why="sends its JSON without a content type",
            ),
            Quirk(
                name="no-cancel",
                rule=NoCancel(),
                why="ends when it is told that an open call is cancelled",
            ),
        )
    }
)
"""The quirks that have a name here. Others are made of the same rules."""


@frozen
class Quirks:
    """Those that were chosen."""

    chosen: tuple[Quirk, ...] = ()

    def lost_session(self, status: int, code: int, message: str) -> Quirk | None:
        """The quirk by which an error means that the session is lost."""
        for quirk in self.chosen:
            rule = quirk.rule
            if isinstance(rule, SessionLost) and (rule.status, rule.code) == (status, code):
                if rule.text.lower() in message.lower():
                    return quirk
        return None

    def reads_as_json(self, content_type: str) -> Quirk | None:
        """The quirk by which a body of this type is read as JSON."""
        return next((q for q in self.chosen if q.rule == ReadAsJson(content_type)), None)

    def no_cancel(self) -> Quirk | None:
        """The quirk by which a cancel is not sent."""
        return next((q for q in self.chosen if isinstance(q.rule, NoCancel)), None)


NO_QUIRKS: Final = Quirks()


def choose_quirks(quirks: Iterable[Quirk | str], *, strict: bool) -> Quirks:
    """The quirks of these names. Raises LocalProtocolError for an unknown one, and for any in strict mode."""
    chosen = []
    for quirk in quirks:
        known = quirk if isinstance(quirk, Quirk) else QUIRKS.get(quirk)
        if known is None:
            raise LocalProtocolError(f"no quirk is named {quirk!r:.80}; there are {', '.join(QUIRKS)}")
        chosen.append(known)
    if chosen and strict:
        raise LocalProtocolError("quirks and strict exclude each other: strict tolerates nothing")
    return Quirks(tuple(chosen))
