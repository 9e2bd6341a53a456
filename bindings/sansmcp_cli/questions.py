"""What a server asks while a command waits for it: answered by what was given, or by the user.

What is declared to the server follows from that: forms where they can be filled in, pages where
somebody can be asked whether to visit them, and nothing at all where nobody is there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sansmcp.errors import ErrorCode, McpError
from sansmcp.revisions import ALL_REVISIONS
from sansmcp.types.convert import unstructure
from sansmcp.types.elicitation import ElicitRequestFormParams, ElicitRequestURLParams
from sansmcp.types.lifecycle import ClientCapabilities, ElicitationCapability

from . import terminal
from .arguments import read_object
from .failures import USAGE, CommandError, usage
from .fields import NOTHING, Field, fields_of
from .redact import Redactor, tells_of_secret
from .targets import CommandTarget, Target
from .text import instead, one_line

if TYPE_CHECKING:
    from .dialogue import Dialogue


@dataclass(frozen=True)
class Answers:
    """Answers that were given beforehand, by the names of the fields."""

    texts: Mapping[str, str]
    """As they were typed: what they are depends on the field."""
    values: Mapping[str, Any]

    def __bool__(self) -> bool:
        return bool(self.texts or self.values)

    def __contains__(self, name: str) -> bool:
        return name in self.texts or name in self.values

    def take(self, field: Field) -> Any:
        """The answer for this field. Raises ValueError for one that does not fit."""
        if field.name in self.texts:
            return field.take(self.texts[field.name])
        value = self.values[field.name]
        if (problem := field.problem(value)) is not None:
            raise ValueError(problem)
        return value

    def secrets(self) -> dict[str, str]:
        """Those whose names say that nobody should see them."""
        known = {**self.values, **self.texts}
        return {
            name: value for name, value in known.items() if isinstance(value, str) and tells_of_secret(name)
        }


def read_answers(pairs: Sequence[str], file: str | None) -> Answers:
    """What ``--answer`` and ``--answers`` say. What is malformed is not quoted: it may be a secret."""
    texts: dict[str, str] = {}
    for number, pair in enumerate(pairs, 1):
        name, found, value = pair.partition("=")
        if not found or not name:
            raise usage(f"--answer: give FIELD=VALUE (the value is missing in occurrence {number})")
        if name in texts:
            raise usage(f"--answer: {one_line(name, 60)} is given twice")
        texts[name] = value
    return Answers(texts, {} if file is None else read_object("--answers", file))


def questions_of(given: Answers, target: Target, *, no_input: bool) -> Questions | None:
    """Who answers what `target` asks, if anybody does."""
    ask = not no_input and terminal.is_there()
    return Questions(given, _whole_name(target), ask=ask) if ask or given else None


def _whole_name(target: Target) -> str:
    """What a user recognizes it by: of a command that has no other name, all of it."""
    if not isinstance(target, CommandTarget) or target.name != target.argv[0]:
        return target.name
    return one_line(" ".join(Redactor(target.env, os.environ).argv(target.argv)), 100)


class Questions:
    """Answers for `server` by what is `given`, and with `ask` by who sits at the terminal."""

    def __init__(self, given: Answers, server: str, *, ask: bool) -> None:
        self.ask: Final = ask
        """Whether the user is asked, who takes their time."""
        self.failure: CommandError | None = None
        """Why something could not be answered."""
        self.before: Callable[[], object] = lambda: None
        """Called before the user is asked."""
        self.busy = False
        """Whether the terminal belongs to a question."""
        self._given = given
        self._server = server
        self._turn = asyncio.Lock()
        self._asked: dict[str, None] = {}

    def capabilities(self) -> ClientCapabilities:
        """What is declared."""
        return ClientCapabilities(elicitation=ElicitationCapability(form={}, url={} if self.ask else None))

    def secrets(self) -> dict[str, str]:
        """What is given, and must not be shown."""
        return self._given.secrets()

    async def answer(self, params: ElicitRequestFormParams | ElicitRequestURLParams) -> dict[str, Any]:
        """What the user did. Raises McpError, and keeps why, where there is no answer."""
        if isinstance(params, ElicitRequestURLParams):
            return await self._with_user(lambda user: user.page(params.message, params.url))
        schema = unstructure(params.requested_schema, ALL_REVISIONS[-1])
        fields = fields_of(schema)
        self._asked.update(dict.fromkeys(field.name for field in fields))
        known, problems = self._known(fields)
        open_ = [field for field in fields if field.name not in known]
        if self.ask and (open_ or not fields):
            return await self._with_user(lambda user: user.form(params.message, fields, known, problems))
        lacking = [f"there is no --answer for {field.label}" for field in open_ if _lacks(field, problems)]
        if not known and not problems and not lacking:
            names = ", ".join(field.label for field in fields)
            lacking = [
                f"no --answer is for one of its fields, {names}" if names else "only a user can accept it"
            ]
        if problems or lacking:
            wrong = [f"what is given for {one_line(name, 60)} is {why}" for name, why in problems.items()]
            raise self._unanswered(params.message, schema, [*wrong, *lacking])
        defaults = {field.name: field.default for field in open_ if field.default is not NOTHING}
        return {"action": "accept", "content": {**defaults, **known}}

    def _known(self, fields: Sequence[Field]) -> tuple[dict[str, Any], dict[str, str]]:
        """The answers that were given for these fields, and why some of them cannot be used."""
        known: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for field in fields:
            if field.name in self._given:
                try:
                    known[field.name] = self._given.take(field)
                except ValueError as error:
                    problems[field.name] = str(error)
        return known, problems

    async def _with_user(self, ask: Callable[[Dialogue], Awaitable[Any]]) -> dict[str, Any]:
        """The answer of the user, who is asked one thing at a time."""
        from .dialogue import Dialogue, Left

        async with self._turn:
            self.before()
            self.busy = True
            screen = terminal.Terminal()
            try:
                content = await ask(Dialogue(screen, self._server))
            except Left as left:
                return {"action": left.action}
            except asyncio.CancelledError:
                screen.say()  # whatever is told next has a line of its own
                raise
            finally:
                self.busy = False
            return {"action": "accept"} if content is None else {"action": "accept", "content": content}

    def _unanswered(self, message: str, schema: Mapping[str, Any], why: Sequence[str]) -> McpError:
        if self.failure is None:
            unused = [f"nobody asked for the answer {name}" for name in self.unused()]
            told = f"{self._server} asks “{one_line(message, 120)}”: {'; '.join([*why, *unused])}"
            asked = {"message": message, "requestedSchema": schema}
            self.failure = CommandError(USAGE, "unanswered", told, details={"asked": asked})
        return McpError(ErrorCode.INTERNAL_ERROR, "there is no answer to this question")

    def unused(self) -> list[str]:
        """The answers on the command line that nobody asked for, with what they may be slips of."""
        left = [name for name in self._asked if name not in self._given]
        return [
            f"{one_line(name, 60)!r}" + (f": {instead(name, left, 'it could be')}" if left else "")
            for name in self._given.texts
            if name not in self._asked
        ]


def _lacks(field: Field, problems: Mapping[str, str]) -> bool:
    return field.required and field.default is NOTHING and field.name not in problems
