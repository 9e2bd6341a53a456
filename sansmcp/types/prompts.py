"""Prompts: listing and getting.

Specification: 2026-07-28, server/prompts.
"""

from __future__ import annotations

from ..revisions import Revision
from .base import JsonObject, WireObject, wire, wire_type
from .content import ContentBlock, Role
from .icons import Icon
from .results import CacheablePage, InputResponseRequestParams, Result


@wire_type
class PromptArgument(WireObject):
    """Something a prompt can be filled in with."""

    name: str
    title: str | None = wire(default=None, since=Revision.V2025_06_18)
    """What it is shown as."""
    description: str | None = None
    required: bool | None = None
    """Whether it must be given. None: not said, which means no."""


@wire_type
class Prompt(WireObject):
    """A prompt that a server offers."""

    name: str
    title: str | None = wire(default=None, since=Revision.V2025_06_18)
    """What it is shown as."""
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = wire(default=None, since=Revision.V2025_11_25)
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type
class PromptMessage(WireObject):
    """One message of a filled-in prompt."""

    role: Role
    content: ContentBlock


@wire_type
class ListPromptsResult(CacheablePage):
    """One page of a server's prompts."""

    prompts: list[Prompt]


@wire_type
class GetPromptRequestParams(InputResponseRequestParams):
    """Params of ``prompts/get``."""

    name: str
    arguments: dict[str, str] | None = wire(default=None, secret=True)


@wire_type
class GetPromptResult(Result):
    """A prompt, filled in."""

    messages: list[PromptMessage]
    description: str | None = None
