"""What the commands do: ask the server, then print the answer for people or as JSON."""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TypeVar

from sansmcp.errors import ErrorCode, McpError, SansmcpError
from sansmcp.types.content import BlobResourceContents, TextResourceContents
from sansmcp.types.lifecycle import declares

from . import documents
from .arguments import object_from_words, split_pairs, typed_pairs
from .explain import ANSWER
from .failures import ANSWERED_ERROR, CommandError, usage
from .session import asking, run
from .settings import Settings
from .targets import Target
from .text import instead, likely, one_line, visible

if TYPE_CHECKING:
    from sansmcp.events import ProgressReported
    from sansmcp.types.content import ResourceContents
    from sansmcp.types.tools import CallToolResult, ListToolsResult
    from sansmcp_asyncio import Client

    from .questions import Questions

T = TypeVar("T")

_UNKNOWN = (ErrorCode.INVALID_PARAMS, ErrorCode.METHOD_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND)
"""What servers answer to a name that they do not know."""

_ONE_LINE = 200
"""A tool's error up to this length stands in the message itself."""


def no_more(words: list[str]) -> None:
    if words:
        raise usage(f"unexpected argument {one_line(words[0], 60)!r}: a server's own command goes after --")


def _ask(
    target: Target,
    settings: Settings,
    work: Callable[[Client], Awaitable[T]],
    *,
    trail: bool = False,
    questions: Questions | None = None,
) -> tuple[T, dict[str, Any]]:
    """What `work` gets from the server, and whom it is from."""

    async def both(client: Client) -> tuple[T, dict[str, Any]]:
        found = await work(client)
        return found, documents.connection(client)

    return run(target, settings, both, trail=trail, questions=questions)


def _offers(client: Client, capability: str) -> bool:
    """Whether the server may be asked for these things; one that was not asked yet may."""
    known = client.server_capabilities
    return known is None or declares(known, capability)


def _require(client: Client, capability: str, subject: str) -> None:
    if not _offers(client, capability):
        message = f"{subject}: the server offers no {capability} (it does not declare the capability)"
        raise CommandError(ANSWERED_ERROR, "not_offered", message)


@asynccontextmanager
async def _suggesting(client: Client, kind: str, name: str) -> AsyncIterator[None]:
    """Around a request for something by its name: an error of the server names what is like it."""
    try:
        yield
    except CommandError as failure:
        unknown = failure.kind == "server_error" and failure.details.get("code") in _UNKNOWN
        hint = await _like_it(client, kind, name) if unknown else ""
        if not hint:
            raise
        raise failure.saying(f"{failure.message}; {hint}") from failure.__cause__


async def _like_it(client: Client, kind: str, name: str) -> str:
    """Which of the server's names this may be a slip of; empty if it is one of them."""
    known: list[str] = []
    with suppress(SansmcpError):
        match kind:
            case "tools":
                known = [tool.name for tool in (await client.list_tools()).tools]
            case "prompts":
                known = [prompt.name for prompt in (await client.list_prompts()).prompts]
            case _:
                known = [resource.uri for resource in (await client.list_resources()).resources]
    return "" if name in known else likely(name, known)


# probe -------------------------------------------------------------------------------------------


def probe(target: Target, words: list[str], settings: Settings) -> None:
    """Era, revision, who the server is, what it offers, and how that was found out."""
    no_more(words)

    async def work(client: Client) -> dict[str, Any]:
        capabilities, instructions = client.server_capabilities, client.instructions
        if capabilities is None:
            # A pinned modern revision is spoken without a question; so ask whether anybody is there.
            with asking("server/discover"):
                found = await client.discover()
            capabilities, instructions = found.capabilities, found.instructions
        return {
            "capabilities": documents.wire(capabilities, client.revision),
            "instructions": instructions,
            "evidence": [{"step": e.step, "outcome": e.outcome} for e in client.evidence],
        }

    found, connected = _ask(target, settings, work, trail=True)
    result = {**connected, **found}
    if settings.json:
        documents.write(documents.success("probe", connected, result))
    else:
        from . import render

        render.probe(result)


# tools -------------------------------------------------------------------------------------------


def tools(target: Target, words: list[str], settings: Settings, *, schema: bool) -> None:
    """All tools of the server."""
    no_more(words)

    async def work(client: Client) -> tuple[list[Any], list[Any]]:
        found = (await _list_tools(client)).tools if _offers(client, "tools") else []
        return found, documents.wires(found, client.revision)

    (found, raw), connected = _ask(target, settings, work)
    if settings.json:
        documents.write(documents.success("tools", connected, {"tools": raw}))
    else:
        from . import render

        render.tools(found, schema=schema)


async def _list_tools(client: Client) -> ListToolsResult:
    with asking("tools/list"):
        return await client.list_tools()


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
        _require(client, "tools", subject)
        values = arguments
        if values is None:
            values = typed_pairs(pairs, await _schema(client, name, subject), name) if pairs else {}
        async with _suggesting(client, "tools", name):
            with asking(subject):
                result = await client.call_tool(name, values, on_progress=progress)
        hint = await _why(result, client, name, questions) if result.is_error else ""
        return result, documents.wire(result, client.revision), hint

    try:
        (result, raw, hint), connected = _ask(target, settings, work, questions=questions)
    finally:
        progress.end()
    _show_call(result, raw, connected, settings, subject, hint)


async def _why(result: CallToolResult, client: Client, name: str, questions: Questions | None) -> str:
    """What to do about a failure of which servers tell in a text only; empty where that is not known."""
    from . import render

    text = render.call_result(result)
    if questions is None and "elicitation" in text.lower():
        return ANSWER
    return await _like_it(client, "tools", name) if name in text else ""


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
    known = (await _list_tools(client)).tools
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


# resources ---------------------------------------------------------------------------------------


def resources(target: Target, words: list[str], settings: Settings) -> None:
    """All resources and resource templates of the server."""
    no_more(words)

    async def work(client: Client) -> tuple[list[Any], list[Any], dict[str, Any]]:
        found: list[Any] = []
        templates: list[Any] = []
        if _offers(client, "resources"):
            with asking("resources/list"):
                found = (await client.list_resources()).resources
            with asking("resources/templates/list"):
                templates = await _templates(client)
        raw = {
            "resources": documents.wires(found, client.revision),
            "resourceTemplates": documents.wires(templates, client.revision),
        }
        return found, templates, raw

    (found, templates, raw), connected = _ask(target, settings, work)
    if settings.json:
        documents.write(documents.success("resources", connected, raw))
    else:
        from . import render

        render.resources(found, templates)


async def _templates(client: Client) -> list[Any]:
    try:
        return list((await client.list_resource_templates()).resource_templates)
    except McpError as error:
        # Many servers have resources and never heard of templates.
        if error.code == ErrorCode.METHOD_NOT_FOUND:
            return []
        raise


def read(
    target: Target,
    words: list[str],
    settings: Settings,
    *,
    output: str | None,
    questions: Questions | None,
) -> None:
    """Read a resource, to standard output or into a file."""
    if not words:
        raise usage("which resource? Give its URI")
    uri, *rest = words
    no_more(rest)
    if output is not None and not Path(output).absolute().parent.is_dir():
        raise usage(f"--output {output}: there is no such folder")
    subject = f"resources/read {one_line(uri, 300)!r}"

    async def work(client: Client) -> tuple[list[ResourceContents], Any]:
        _require(client, "resources", subject)
        async with _suggesting(client, "resources", uri):
            with asking(subject):
                result = await client.read_resource(uri)
        return result.contents, documents.wire(result, client.revision)

    (parts, raw), connected = _ask(target, settings, work, questions=questions)
    if output is not None:
        _write_file(output, parts, subject)
    if settings.json:
        documents.write(documents.success("read", connected, raw))
    elif output is None:
        for part in parts:
            _print_contents(part, subject)
        if not parts:
            print("(the resource has no contents)", file=sys.stderr)


def _write_file(output: str, parts: list[ResourceContents], subject: str) -> None:
    if len(parts) != 1:
        raise usage(f"{subject}: it has {len(parts)} parts, --output takes one; use --json")
    data = _bytes(parts[0], subject)
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise usage(f"--output {output}: {error.strerror}") from None


def _bytes(part: ResourceContents, subject: str) -> bytes:
    match part:
        case TextResourceContents():
            return part.text.encode("utf-8", "surrogatepass")
        case BlobResourceContents():
            try:
                return b64decode(part.blob, validate=True)
            except ValueError:
                message = f"{subject}: the server's answer cannot be used: its blob is not base64"
                raise CommandError(ANSWERED_ERROR, "invalid_answer", message) from None
        case _:
            message = f"{subject}: the server's answer cannot be used: neither text nor a blob"
            raise CommandError(ANSWERED_ERROR, "invalid_answer", message)


def _print_contents(part: ResourceContents, subject: str) -> None:
    from . import render

    if isinstance(part, TextResourceContents):
        text = render.plain(part.text)
        print(text, end="" if text.endswith("\n") else "\n")
    elif sys.stdout.isatty():
        print(f"[{render.contents(part)}; save it with --output FILE]")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(_bytes(part, subject))
        sys.stdout.flush()


# prompts -----------------------------------------------------------------------------------------


def prompts(target: Target, words: list[str], settings: Settings) -> None:
    """All prompts of the server."""
    no_more(words)

    async def work(client: Client) -> tuple[list[Any], list[Any]]:
        found: list[Any] = []
        if _offers(client, "prompts"):
            with asking("prompts/list"):
                found = (await client.list_prompts()).prompts
        return found, documents.wires(found, client.revision)

    (found, raw), connected = _ask(target, settings, work)
    if settings.json:
        documents.write(documents.success("prompts", connected, {"prompts": raw}))
    else:
        from . import render

        render.prompts(found)


def prompt(target: Target, words: list[str], settings: Settings, *, questions: Questions | None) -> None:
    """Fill in a prompt."""
    if not words:
        raise usage("which prompt? Give its name before its arguments")
    name, *given = words
    arguments = split_pairs(given)
    subject = f"prompts/get {one_line(name, 128)!r}"

    async def work(client: Client) -> tuple[Any, Any]:
        _require(client, "prompts", subject)
        async with _suggesting(client, "prompts", name):
            with asking(subject):
                result = await client.get_prompt(name, arguments)
        return result, documents.wire(result, client.revision)

    (result, raw), connected = _ask(target, settings, work, questions=questions)
    if settings.json:
        documents.write(documents.success("prompt", connected, raw))
        return
    from . import render

    print(render.plain(render.prompt_result(result)))


# quirks ------------------------------------------------------------------------------------------


def quirks(*, as_json: bool) -> None:
    """The quirks that have a name."""
    from sansmcp.quirks import QUIRKS

    if as_json:
        known = [{"name": quirk.name, "why": quirk.why} for quirk in QUIRKS.values()]
        documents.write({"ok": True, "command": "quirks", "result": {"quirks": known}})
    else:
        from . import render

        render.quirks(QUIRKS.values())
