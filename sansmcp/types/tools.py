"""Tools: listing and calling.

Specification: 2026-07-28, server/tools.
"""

from __future__ import annotations

from typing import Literal

from ..revisions import Revision
from .base import (
    UNSET,
    JsonObject,
    JsonSchema,
    JsonValue,
    RootObjectSchema,
    Unset,
    WireObject,
    wire,
    wire_type,
)
from .content import ContentBlock
from .icons import Icon
from .results import CacheablePage, InputResponseRequestParams, Result, TaskMetadata


@wire_type(since=Revision.V2025_03_26)
class ToolAnnotations(WireObject):
    """Hints about a tool's behaviour. From a server that is not trusted they prove nothing."""

    title: str | None = None
    read_only_hint: bool | None = None
    """The tool changes nothing. Default: false."""
    destructive_hint: bool | None = None
    """It may destroy, not only add. Default: true; without meaning for a read-only tool."""
    idempotent_hint: bool | None = None
    """Calling it again with the same arguments changes nothing more. Default: false."""
    open_world_hint: bool | None = None
    """It reaches things outside, as a web search does. Default: true."""


@wire_type(since=Revision.V2025_11_25, until=Revision.V2025_11_25)
class ToolExecution(WireObject):
    """How a tool may be executed."""

    task_support: Literal["forbidden", "optional", "required"] | None = None
    """Whether a call may, or must, be made as a task. Default: forbidden."""


@wire_type
class Tool(WireObject):
    """A tool that a server offers."""

    name: str
    """What it is called by."""
    input_schema: RootObjectSchema
    """JSON Schema of the arguments."""
    title: str | None = wire(default=None, since=Revision.V2025_06_18)
    """What it is shown as; without one `annotations.title`, then `name`."""
    description: str | None = None
    """What it does, for a model."""
    output_schema: JsonSchema | None = wire(
        default=None,
        since=Revision.V2025_06_18,
        before=(Revision.V2026_07_28, "RootObjectSchema"),
    )
    """JSON Schema of the result's `structured_content`."""
    annotations: ToolAnnotations | None = wire(default=None, since=Revision.V2025_03_26)
    icons: list[Icon] | None = wire(default=None, since=Revision.V2025_11_25)
    execution: ToolExecution | None = wire(
        default=None, since=Revision.V2025_11_25, until=Revision.V2025_11_25
    )
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type
class ListToolsResult(CacheablePage):
    """One page of a server's tools."""

    tools: list[Tool]


@wire_type
class CallToolRequestParams(InputResponseRequestParams):
    """Params of ``tools/call``."""

    name: str
    arguments: JsonObject | None = wire(default=None, secret=True)
    task: TaskMetadata | None = wire(
        default=None, kw_only=True, since=Revision.V2025_11_25, until=Revision.V2025_11_25
    )


@wire_type
class CallToolResult(Result):
    """What a tool answered; a tool that failed has answered too."""

    content: list[ContentBlock] = wire(missing=list)
    """The answer for a model to read. Read as empty where a server left it out."""
    structured_content: JsonValue | Unset = wire(
        default=UNSET,
        since=Revision.V2025_06_18,
        before=(Revision.V2026_07_28, "JsonObject"),
        secret=True,
    )
    """The answer as JSON: any value, null too; before 2026-07-28 an object. `UNSET`: none."""
    is_error: bool | None = wire(default=None, firm=True)
    """Whether the tool failed. None: not said, which means no."""
