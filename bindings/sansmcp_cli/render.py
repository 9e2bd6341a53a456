"""Results for people: calm tables and plain text, readable without colour and in a narrow window."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sansmcp.types.base import UNSET
from sansmcp.types.content import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from .arguments import type_label
from .text import first_paragraph, one_line, size, visible

if TYPE_CHECKING:
    from sansmcp.quirks import Quirk
    from sansmcp.types.prompts import GetPromptResult, Prompt
    from sansmcp.types.resources import Resource, ResourceTemplate
    from sansmcp.types.tools import CallToolResult, Tool

_NARROWEST: Final = 20
"""Narrower windows break the lines themselves."""
_NARROW: Final = 80
_LEFT_SHARE: Final = 0.65
"""In a window narrower than that, or where names and arguments would take more than this share of
it, a table would squeeze its last column; then things stand below each other instead."""


def console() -> Console:
    """Standard output: colours only on a terminal, and none with NO_COLOR."""
    made = Console(highlight=False, soft_wrap=False, emoji=False, markup=False)
    made.width = max(made.width, _NARROWEST)
    return made


_TRAILING: Final = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)


class Page:
    """What is shown, from top to bottom."""

    def __init__(self) -> None:
        self._console = console()
        self._begun = False

    def _squeezes(self, rows: Sequence[Sequence[Text]]) -> bool:
        width = self._console.width
        left = sum(max(map(_width, column)) for column in list(zip(*rows, strict=True))[:-1])
        return width < _NARROW or left > width * _LEFT_SHARE

    def _print(self, thing: RenderableType) -> None:
        self._begun = True
        with self._console.capture() as capture:
            self._console.print(thing)
        # cells are filled up with spaces, which only get in the way of whoever copies or greps
        sys.stdout.write(_TRAILING.sub(r"\1", capture.get()))

    def gap(self) -> None:
        """An empty line, except at the top."""
        if self._begun:
            self._print("")

    def line(self, text: str, style: str = "") -> None:
        self._print(Text(visible(text), style=style))

    def paragraph(self, text: str, indent: int = 2, style: str = "") -> None:
        self._print(Padding(Text(visible(text.strip("\n")), style=style), (0, 0, 0, indent)))

    def facts(self, rows: Iterable[tuple[str, str]]) -> None:
        """Names on the left, what they are on the right."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, text in rows:
            grid.add_row(Text(name, style="bold"), Text(visible(text)))
        self._print(grid)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Text]], note: str = "") -> None:
        """Columns with heads; where they do not fit each row becomes a block, its last column first."""
        if self._squeezes(rows):
            for number, (first, *rest) in enumerate(rows):
                if number:
                    self.gap()
                self._print(first)
                for cell in reversed(rest):
                    if cell.plain:
                        self._print(Padding(cell, (0, 0, 0, 2)))
        else:
            table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
            for head in heads:
                table.add_column(head, overflow="fold", no_wrap=head is not heads[-1])
            for row in rows:
                table.add_row(*row)
            self._print(table)
        if note:
            self.gap()
            self.line(note, "dim")

    def json(self, value: Any, indent: int = 0) -> None:
        self.paragraph(json.dumps(value, indent=2, ensure_ascii=False), indent)


def _width(cell: Text) -> int:
    return max(map(cell_len, cell.plain.split("\n")))


# lists -------------------------------------------------------------------------------------------


def tools(found: Sequence[Tool], *, schema: bool) -> None:
    """The tools of a server; with `schema` each with its whole description and its schemas."""
    page = Page()
    if not found:
        page.line("This server offers no tools.")
    elif not schema:
        rows = [
            (_name(tool.name), _schema_arguments(tool.input_schema), _told(tool.title, tool.description))
            for tool in found
        ]
        page.table(("TOOL", "ARGUMENTS", "DESCRIPTION"), rows, _legend(rows))
    else:
        for tool in found:
            page.gap()
            page.line(tool.name, "bold")
            for text in (tool.title, tool.description):
                if text:
                    page.paragraph(text)
            page.paragraph("input schema", style="dim")
            page.json(tool.input_schema, 4)
            if tool.output_schema is not None:
                page.paragraph("output schema", style="dim")
                page.json(tool.output_schema, 4)


def _legend(rows: Sequence[Sequence[Text]]) -> str:
    return "* required" if any("*" in row[1].plain for row in rows) else ""


def _name(name: str) -> Text:
    return Text(one_line(name, 128), style="bold")


def _told(title: str | None, description: str | None) -> Text:
    shown = first_paragraph(description) if description else ""
    return Text(shown or one_line(title or "", 200))


def _schema_arguments(schema: Any) -> Text:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not properties:
        return Text("")
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    lines = [
        f"{one_line(name, 60)}{'*' if name in needed else ''}: {one_line(type_label(member, schema), 60)}"
        for name, member in properties.items()
    ]
    return Text("\n".join(lines))


def resources(found: Sequence[Resource], templates: Sequence[ResourceTemplate]) -> None:
    """The resources and resource templates of a server."""
    page = Page()
    if not found and not templates:
        page.line("This server offers no resources.")
    if found:
        page.table(
            ("RESOURCE", "TYPE", "DESCRIPTION"),
            [(_name(r.uri), _type(r.mime_type, r.size), _about(r)) for r in found],
        )
    if templates:
        page.gap()
        page.table(
            ("TEMPLATE", "TYPE", "DESCRIPTION"),
            [(_name(t.uri_template), _type(t.mime_type, None), _about(t)) for t in templates],
        )


def _type(mime_type: str | None, count: int | None) -> Text:
    parts = [one_line(mime_type, 60)] if mime_type else []
    if count is not None:
        parts.append(size(count))
    return Text("\n".join(parts))


def _about(thing: Resource | ResourceTemplate) -> Text:
    label = one_line(thing.title or thing.name, 120)
    return Text(f"{label}: {first_paragraph(thing.description)}" if thing.description else label)


def prompts(found: Sequence[Prompt]) -> None:
    """The prompts of a server."""
    page = Page()
    if not found:
        page.line("This server offers no prompts.")
        return
    rows = []
    for prompt in found:
        lines = [
            f"{one_line(argument.name, 60)}{'*' if argument.required else ''}"
            + (f": {first_paragraph(argument.description, 120)}" if argument.description else "")
            for argument in prompt.arguments or ()
        ]
        rows.append((_name(prompt.name), Text("\n".join(lines)), _told(prompt.title, prompt.description)))
    page.table(("PROMPT", "ARGUMENTS", "DESCRIPTION"), rows, _legend(rows))


def quirks(known: Iterable[Quirk]) -> None:
    """The quirks that have a name."""
    Page().table(("QUIRK", "A SERVER WITH IT"), [(_name(quirk.name), Text(quirk.why)) for quirk in known])


# probe -------------------------------------------------------------------------------------------


def probe(found: dict[str, Any]) -> None:
    """What a server says of itself, and how that was found out."""
    page = Page()
    info = found["serverInfo"] or {}
    named = f"{info.get('name', '(it does not say)')} {info.get('version', '')}".strip()
    rows = [("server", one_line(named + (f" ({info['title']})" if info.get("title") else "")))]
    rows += [
        ("era", found["era"]),
        ("revision", found["revision"]),
        ("offers", _capabilities(found["capabilities"])),
    ]
    page.facts(rows)
    if found["instructions"]:
        page.gap()
        page.line("instructions", "bold")
        page.paragraph(found["instructions"])
    page.gap()
    page.line("how that was found out", "bold")
    for entry in found["evidence"]:
        page.paragraph(one_line(f"{entry['step']}: {entry['outcome']}"))


def _capabilities(capabilities: dict[str, Any] | None) -> str:
    if capabilities is None:
        return "(it was not asked)"
    told = []
    for name, member in capabilities.items():
        flags = []
        if isinstance(member, dict):
            flags = [key for key, value in member.items() if value is True or isinstance(value, dict)]
        told.append(f"{name} ({', '.join(flags)})" if flags else name)
    return one_line(", ".join(told)) or "nothing"


# results -----------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A server's text as it goes to standard output: unchanged, but harmless for a terminal."""
    return visible(text) if sys.stdout.isatty() else text


def call_result(result: CallToolResult) -> str:
    """What a tool answered, as text."""
    parts: list[str] = []
    structured = result.structured_content
    for block in result.content:
        if isinstance(block, TextContent) and structured is not UNSET and _same(block.text, structured):
            continue  # the same once more, for clients that know no structured content
        parts.append(_block(block))
    if structured is not UNSET:
        parts.append(json.dumps(structured, indent=2, ensure_ascii=False))
    return "\n".join(parts)


def _same(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def prompt_result(result: GetPromptResult) -> str:
    """A filled-in prompt, as text: each message below the role that speaks it."""
    return "\n".join(f"{message.role}:\n{_indented(_block(message.content))}" for message in result.messages)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.split("\n"))


def _block(block: Any) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            kind = "image" if isinstance(block, ImageContent) else "audio"
            return f"[{kind} {one_line(block.mime_type, 60)}, {size(decoded_size(block.data))}]"
        case ResourceLink():
            label = one_line(block.title or block.name, 120)
            return f"[link to {one_line(block.uri, 300)}: {label}]"
        case EmbeddedResource():
            return f"[resource {contents(block.resource)}]"
        case _:
            return f"[a block of type {one_line(str(getattr(block, 'type', '?')), 60)}]"


def contents(block: Any) -> str:
    """The contents of a resource in a few words."""
    mime_type = f" {one_line(block.mime_type, 60)}" if getattr(block, "mime_type", None) else ""
    match block:
        case TextResourceContents():
            return f"{one_line(block.uri, 300)}{mime_type}, {len(block.text)} characters"
        case BlobResourceContents():
            return f"{one_line(block.uri, 300)}{mime_type}, {size(decoded_size(block.blob))}"
        case _:
            return "of a kind that is not known"


def decoded_size(base64: str) -> int:
    """How many bytes a base64 text stands for."""
    return len(base64) * 3 // 4 - base64[-2:].count("=")
