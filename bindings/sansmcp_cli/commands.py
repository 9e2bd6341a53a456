"""What the commands do: ask the server, then print the answer for people or as JSON."""

from __future__ import annotations

import sys
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sansmcp.errors import ErrorCode, McpError
from sansmcp.types.content import BlobResourceContents, TextResourceContents

from . import documents
from .arguments import split_pairs
from .failures import ANSWERED_ERROR, CommandError, usage
from .session import answer_from, asking, list_tools, offers, require, suggesting
from .settings import Settings
from .targets import Target
from .text import one_line

if TYPE_CHECKING:
    from sansmcp.types.content import ResourceContents
    from sansmcp_asyncio import Client

    from .questions import Questions


def no_more(words: list[str]) -> None:
    if words:
        raise usage(f"unexpected argument {one_line(words[0], 60)!r}: a server's own command goes after --")


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

    found, connected = answer_from(target, settings, work, trail=True)
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
        found = (await list_tools(client)).tools if offers(client, "tools") else []
        return found, documents.wires(found, client.revision)

    (found, raw), connected = answer_from(target, settings, work)
    if settings.json:
        documents.write(documents.success("tools", connected, {"tools": raw}))
    else:
        from . import render

        render.tools(found, schema=schema)


# resources ---------------------------------------------------------------------------------------


def resources(target: Target, words: list[str], settings: Settings) -> None:
    """All resources and resource templates of the server."""
    no_more(words)

    async def work(client: Client) -> tuple[list[Any], list[Any], dict[str, Any]]:
        found: list[Any] = []
        templates: list[Any] = []
        if offers(client, "resources"):
            with asking("resources/list"):
                found = (await client.list_resources()).resources
            with asking("resources/templates/list"):
                templates = await _templates(client)
        raw = {
            "resources": documents.wires(found, client.revision),
            "resourceTemplates": documents.wires(templates, client.revision),
        }
        return found, templates, raw

    (found, templates, raw), connected = answer_from(target, settings, work)
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
        require(client, "resources", subject)
        async with suggesting(client, "resources", uri):
            with asking(subject):
                result = await client.read_resource(uri)
        return result.contents, documents.wire(result, client.revision)

    (parts, raw), connected = answer_from(target, settings, work, questions=questions)
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
        if offers(client, "prompts"):
            with asking("prompts/list"):
                found = (await client.list_prompts()).prompts
        return found, documents.wires(found, client.revision)

    (found, raw), connected = answer_from(target, settings, work)
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
        require(client, "prompts", subject)
        async with suggesting(client, "prompts", name):
            with asking(subject):
                result = await client.get_prompt(name, arguments)
        return result, documents.wire(result, client.revision)

    (result, raw), connected = answer_from(target, settings, work, questions=questions)
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
