"""``sansmcp call``: call a tool, show its progress meanwhile, and say why it failed."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from . import documents
from .arguments import object_from_words, split_pairs, typed_pairs
from .explain import ANSWER
from .failures import ANSWERED_ERROR, CommandError, usage
from .session import answer_from, asking, like_it, list_tools, require, suggesting
from .settings import Settings
from .targets import Target
from .text import instead, one_line, visible

if TYPE_CHECKING:
    from sansmcp.events import ProgressReported
    from sansmcp.types.tools import CallToolResult
    from sansmcp_asyncio import Client

    from .questions import Questions

_ONE_LINE = 200
"""A tool's error up to this length stands in the message itself."""


def call(
    target: Target,
    words: list[str],
    settings: Settings,
    *,
    args_file: str | None,
    questions: Questions | None,
) -> None:
    """Call a tool, and show its progress meanwhile."""
    if not words:
        raise usage("which tool? Give its name before its arguments")
    name, *given = words
    arguments = object_from_words(given, args_file)
    pairs = split_pairs(given) if arguments is None else {}
    subject = f"tools/call {one_line(name, 128)!r}"
    progress = _Progress(questions)

    async def work(client: Client) -> tuple[CallToolResult, Any, str]:
        require(client, "tools", subject)
        values = arguments
        if values is None:
            values = typed_pairs(pairs, await _schema(client, name, subject), name) if pairs else {}
        async with suggesting(client, "tools", name):
            with asking(subject):
                result = await client.call_tool(name, values, on_progress=progress)
        hint = await _why(result, client, name, questions) if result.is_error else ""
        return result, documents.wire(result, client.revision), hint

    try:
        (result, raw, hint), connected = answer_from(target, settings, work, questions=questions)
    finally:
        progress.end()
    _show_call(result, raw, connected, settings, subject, hint)


async def _why(result: CallToolResult, client: Client, name: str, questions: Questions | None) -> str:
    """What to do about a failure of which servers tell in a text only; empty where that is not known."""
    from . import render

    text = render.call_result(result)
    if questions is None and "elicitation" in text.lower():
        return ANSWER
    return await like_it(client, "tools", name) if name in text else ""


def _show_call(
    result: CallToolResult, raw: Any, connected: dict[str, Any], settings: Settings, subject: str, hint: str
) -> None:
    if not result.is_error and settings.json:
        documents.write(documents.success("call", connected, raw))
        return
    from . import render

    text = render.call_result(result)
    if result.is_error:
        message = f"{subject}: the tool failed"
        lines = [line for line in visible(text).split("\n") if line]
        if settings.json or (len(lines) == 1 and len(lines[0]) <= _ONE_LINE):
            message, lines = f"{message}: {one_line(text) or '(no text)'}", []
        message += f"; {hint}" if hint else ""
        raise CommandError(ANSWERED_ERROR, "tool_error", message, notes=lines, result=raw)
    if text:
        print(render.plain(text))
    else:
        print("(the tool answered with nothing)", file=sys.stderr)


async def _schema(client: Client, name: str, subject: str) -> dict[str, Any]:
    """The inputSchema of the tool, which says what type each pair has."""
    known = (await list_tools(client)).tools
    for tool in known:
        if tool.name == name:
            return tool.input_schema
    told = instead(name, (tool.name for tool in known), "it has")
    raise CommandError(ANSWERED_ERROR, "unknown_name", f"{subject}: the server has no such tool; {told}")


class _Progress:
    """Progress on standard error: one line that is rewritten on a terminal, else a line each.

    It makes way for `questions` to the user.
    """

    def __init__(self, questions: Questions | None) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = False
        self._questions = questions
        if questions is not None:
            questions.before = self.end

    def __call__(self, event: ProgressReported) -> None:
        if self._questions is not None and self._questions.busy:
            return
        share = f"{event.progress:g}" if event.total is None else f"{event.progress:g}/{event.total:g}"
        line = f"progress {share}" + (f"  {one_line(event.message, 100)}" if event.message else "")
        if self._terminal:
            print(f"\r\x1b[2K{line[: get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr)
        self._shown = True

    def end(self) -> None:
        if self._shown and self._terminal:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
