"""Sampling: a server asks the client's model. Deprecated in 2026-07-28.

Specification: 2026-07-28, client/sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

from ..revisions import Revision
from .base import UNSET, JsonObject, JsonValue, Unset, WireObject, wire, wire_type
from .content import AudioContent, ContentBlock, ImageContent, Role, TextContent, UnknownContent
from .results import TaskMetadata
from .tools import Tool

_11 = Revision.V2025_11_25


@wire_type(tag="type", since=Revision.V2025_11_25)
class ToolUseContent(WireObject):
    """A model's wish, in a sampling message, to have a tool called."""

    type: ClassVar[Literal["tool_use"]] = "tool_use"
    id: str
    """Names this use; the matching `ToolResultContent` repeats it."""
    name: str
    input: JsonObject = wire(secret=True)
    """The tool's arguments."""
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)

    def stand_in(self, revision: Revision) -> TextContent:
        return TextContent(f"[use of tool {self.name}]")


@wire_type(tag="type", since=Revision.V2025_11_25)
class ToolResultContent(WireObject):
    """What came of a `ToolUseContent`."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool_use_id: str
    content: list[ContentBlock]
    structured_content: JsonValue | Unset = wire(default=UNSET, before=(Revision.V2026_07_28, "JsonObject"))
    """The result as JSON; an object before 2026-07-28."""
    is_error: bool | None = wire(default=None, firm=True)
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)

    def stand_in(self, revision: Revision) -> TextContent:
        texts = [block.text for block in self.content if isinstance(block, TextContent)]
        return TextContent("\n".join(texts))


SamplingMessageContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | UnknownContent
)
"""A block of a sampling message."""


@wire_type
class ModelHint(WireObject):
    """A wish for a model."""

    name: str | None = None
    """A part of a model's name, as ``sonnet``."""


@wire_type
class ModelPreferences(WireObject):
    """What matters in the choice of a model. The client decides."""

    hints: list[ModelHint] | None = None
    """Wishes, first match wins."""
    cost_priority: float | None = None
    """From 0, cost does not matter, to 1."""
    speed_priority: float | None = None
    """From 0, speed does not matter, to 1."""
    intelligence_priority: float | None = None
    """From 0, ability does not matter, to 1."""


@wire_type(since=_11)
class ToolChoice(WireObject):
    """Whether the model may, must or must not use tools."""

    mode: Literal["auto", "none", "required"] | None = None
    """Default: auto."""


@wire_type(adapts_before=_11)
class SamplingMessage(WireObject):
    """One message of the conversation."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock] = wire(
        before=(_11, "SamplingMessageContentBlock")
    )
    """One block; from 2025-11-25 on one or several."""
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, since=_11, secret=True)

    def stand_in(self, revision: Revision) -> SamplingMessage | None:
        content = one_block(self.content, revision)
        if content is self.content:
            return self
        return None if content is None else SamplingMessage(self.role, content)


@wire_type(firm=True)
class CreateMessageRequestParams(WireObject):
    """Params of ``sampling/createMessage``."""

    messages: list[SamplingMessage] = wire(secret=True)
    max_tokens: int
    """The most tokens to sample; the client may stop earlier."""
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = wire(default=None, secret=True)
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    """From which servers the client should add context. Default: none."""
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: JsonObject | None = wire(default=None, secret=True)
    """For the provider of the model."""
    tools: list[Tool] | None = wire(default=None, since=_11)
    """Tools that the model may use."""
    tool_choice: ToolChoice | None = wire(default=None, since=_11)
    task: TaskMetadata | None = wire(default=None, kw_only=True, since=_11, until=_11)
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, until=_11, secret=True)


@wire_type(adapts_before=_11)
class CreateMessageResult(WireObject):
    """What the model said."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock] = wire(
        before=(_11, "SamplingMessageContentBlock")
    )
    """One block; from 2025-11-25 on one or several."""
    model: str
    """The model that was used."""
    stop_reason: str | None = None
    """Why it stopped: endTurn, stopSequence, maxTokens, toolUse, or another word."""
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)

    def stand_in(self, revision: Revision) -> CreateMessageResult | None:
        content = one_block(self.content, revision)
        if content is self.content:
            return self
        if content is None:
            return None
        return CreateMessageResult(
            self.role, content, self.model, self.stop_reason, meta=self.meta, extra=self.extra
        )


def imbalance(messages: Sequence[SamplingMessage]) -> str | None:
    """What is wrong with the uses of tools in a conversation, and with their results; None: nothing.

    Specification: 2025-11-25, client/sampling (message content constraints).
    """
    open_uses: set[str] = set()
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        results = {block.tool_use_id for block in blocks if isinstance(block, ToolResultContent)}
        if results and not all(isinstance(block, ToolResultContent) for block in blocks):
            return "tool results mixed with other content"
        if not open_uses <= results:
            return "tool result missing"
        open_uses = {block.id for block in blocks if isinstance(block, ToolUseContent)}
    return "tool result missing" if open_uses else None


def one_block(
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock], revision: Revision
) -> SamplingMessageContentBlock | None:
    """Return `content` as one block, for revisions that have no lists of blocks.

    Several texts are joined; other blocks cannot be, and give None.
    """
    if not isinstance(content, list):
        return content
    if len(content) == 1:
        return content[0]
    blocks = [
        block
        if isinstance(block, TextContent) or block.__wire__.exists_in(revision)
        else block.stand_in(revision)
        for block in content
    ]
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    return TextContent("\n".join(texts)) if len(texts) == len(blocks) else None
