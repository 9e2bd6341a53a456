"""What a user is asked on a terminal for a server: to fill in a form, or to visit a page."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from sansmcp.errors import LocalProtocolError
from sansmcp.http.url import parse_url

from .fields import NOTHING, Field
from .terminal import Terminal
from .text import one_line

Action: TypeAlias = Literal["decline", "cancel"]

_HINT: Final = "Enter alone takes what is in brackets, or leaves it out. Ctrl-D declines or cancels."
_LEAVE: Final = "d: decline, b: back to the question, Enter: cancel? "
_SEND: Final = "Send this? y: yes, e: edit, d: decline [y] "
_ACCEPT: Final = "Accept? y: yes, d: decline "
_VISIT: Final = "Open it? y: in a browser, m: no, I go there myself, d: decline "
_DONE: Final = "Press Enter when you are done there. "
_STRANGE: Final = ", which is not written in plain letters"
_EMPTY_TEXT: Final = '; "" is an empty text'
_MAX_URL: Final = 64 * 1024
"""Characters of a URL that are shown; none that can be opened has as many."""


class Left(Exception):  # noqa: N818  (nothing went wrong)
    """The user does not answer."""

    def __init__(self, action: Action) -> None:
        super().__init__(action)
        self.action: Final[Action] = action


class Dialogue:
    """Asks on `terminal` what `server` wants to know. All methods raise `Left` when the user leaves."""

    def __init__(self, terminal: Terminal, server: str) -> None:
        self._terminal = terminal
        self._server = one_line(server, 100)

    async def form(
        self, message: str, fields: Sequence[Field], given: Mapping[str, Any], problems: Mapping[str, str]
    ) -> dict[str, Any]:
        """The content of a form. `given` is known already; `problems` says why some of it is not usable."""
        self._begin(f"{self._server} asks: {one_line(message)}")
        for name, problem in problems.items():
            self._terminal.say(f"  what is given for {one_line(name, 60)} is {problem}")
        asked = [field for field in fields if field.name not in given]
        if not fields:
            if await self._choose(_ACCEPT, "yd") == "d":
                raise Left("decline")
            return {}
        if asked:
            self._terminal.say(f"  {_HINT}")
        answers: dict[str, Any] = {}
        while True:
            for field in asked:
                await self._field(field, answers)
            known = {**given, **answers}
            content = {field.name: known[field.name] for field in fields if field.name in known}
            chosen = await self._review(fields, content) if len(asked) > 1 else "y"
            if chosen == "y":
                return content
            if chosen == "d":
                raise Left("decline")
            asked = [replace(field, default=answers.get(field.name, field.default)) for field in asked]

    async def page(self, message: str, url: str) -> None:
        """Let the user visit a page, after they have seen where it is; return when they are done there."""
        self._begin(f"{self._server} asks you to visit a page: {one_line(message)}")
        self._terminal.say(f"  {one_line(url, _MAX_URL)}")
        try:
            host = parse_url(url.partition("#")[0]).host
        except LocalProtocolError as error:
            self._terminal.say(f"  declined: {one_line(str(error))}")
            raise Left("decline") from None
        self._terminal.say(f"  at the host {host}" + (_STRANGE if "xn--" in host else ""))
        chosen = await self._choose(_VISIT, "ymd")
        if chosen == "d":
            raise Left("decline")
        if chosen == "y" and not await _open(url):
            self._terminal.say("  there is no browser to open it with: go to that address yourself")
        await self._line(_DONE)

    def _begin(self, text: str) -> None:
        self._terminal.forget()
        self._terminal.say(text)

    async def _field(self, field: Field, answers: dict[str, Any]) -> None:
        for line in field.about():
            self._terminal.say(f"  {line}")
        while True:
            text = (await self._line(f"{field.prompt()}: ")).strip()
            if not text:
                if field.default is not NOTHING:
                    answers[field.name] = field.default
                elif field.required:
                    self._terminal.say(f"  it is required{_EMPTY_TEXT if _is_text(field) else ''}")
                    continue
                return
            try:
                answers[field.name] = field.read(text)
            except ValueError as error:
                self._terminal.say(f"  {error}")
            else:
                return

    async def _review(self, fields: Sequence[Field], content: Mapping[str, Any]) -> str:
        for field in fields:
            if field.name in content:
                self._terminal.say(f"  {field.label}: {field.shown(content[field.name])}")
        return await self._choose(_SEND, "yed", "y")

    async def _choose(self, prompt: str, letters: Collection[str], default: str = "") -> str:
        while True:
            letter = (await self._line(prompt)).strip().lower()[:1] or default
            if letter in letters and letter:
                return letter

    async def _line(self, prompt: str) -> str:
        while True:
            try:
                return await self._terminal.ask(f"  {prompt}")
            except EOFError:
                await self._leave()

    async def _leave(self) -> None:
        """Return where the user changes their mind."""
        self._terminal.say()
        try:
            letter = (await self._terminal.ask(f"  {_LEAVE}")).strip().lower()[:1]
        except EOFError:
            self._terminal.say()
            letter = ""
        if letter != "b":
            raise Left("decline" if letter == "d" else "cancel")


def _is_text(field: Field) -> bool:
    return field.schema.get("type") == "string" and not {"enum", "oneOf", "format"} & field.schema.keys()


async def _open(url: str) -> bool:
    return await asyncio.get_running_loop().run_in_executor(None, webbrowser.open, url)
