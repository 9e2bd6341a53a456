"""How a command ends: its exit codes, and one clear line for whatever went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

OK: Final = 0
ANSWERED_ERROR: Final = 1
USAGE: Final = 2
NO_CONNECTION: Final = 3
TIMED_OUT: Final = 4
OUR_FAULT: Final = 70
CANNOT_WRITE: Final = 74
INTERRUPTED: Final = 130
NO_READER: Final = 141
"""Whoever read the output had enough, as a shell says it of SIGPIPE."""


class CommandError(Exception):
    """A command cannot go on. `message` is one line: what happened, to what, what to do.

    `kind` names the failure for programs; `details` are members that the JSON output adds to it.
    `notes` are lines shown below; the server's last words come under their `heading`. `result` is
    what the server answered all the same, for the JSON output. `trail` has a step and its outcome
    for each thing that was tried to connect.
    """

    def __init__(
        self,
        code: int,
        kind: str,
        message: str,
        *,
        notes: Sequence[str] = (),
        heading: str = "",
        details: dict[str, Any] | None = None,
        result: Any = None,
        trail: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.code: Final = code
        self.kind: Final = kind
        self.message: Final = message
        self.notes: Final = tuple(notes)
        self.heading: Final = heading
        self.details: Final = details or {}
        self.result: Final = result
        self.trail: Final = tuple(trail)

    def with_last_words(
        self, lines: Sequence[str], hide: Callable[[Any], Any], trail: Sequence[tuple[str, str]] = ()
    ) -> CommandError:
        """The same with the server's last words, and `hide` applied to all that it had a part in."""
        return self.saying(
            hide(self.message),
            notes=[*hide(list(self.notes)), *lines],
            heading="the server's last words:" if lines else "",
            details=hide(self.details),
            trail=[(step, hide(outcome)) for step, outcome in trail],
        )

    def saying(self, message: str, **changed: Any) -> CommandError:
        """The same in other words, with what else is `changed`."""
        kept = {name: getattr(self, name) for name in ("notes", "heading", "details", "result", "trail")}
        return CommandError(self.code, self.kind, message, **{**kept, **changed})


def usage(message: str) -> CommandError:
    """A command that was given wrongly."""
    return CommandError(USAGE, "usage", message)
