"""Content blocks: what tool results, prompts and sampling messages are made of.

Specification: 2026-07-28, server/tools (tool result), server/prompts (data types),
client/sampling (data types).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ..revisions import Revision
from .base import (
    Choose,
    JsonObject,
    Unknown,
    WireObject,
    wire,
    wire_type,
)
from .icons import Icon

Role: TypeAlias = Literal["user", "assistant"]
"""Who speaks in a message, or for whom content is meant."""


@wire_type
class Annotations(WireObject):
    """Hints for whoever shows or uses the annotated thing."""

    audience: list[Role] | None = None
    """For whom it is meant."""
    priority: float | None = None
    """From 0, entirely optional, to 1, effectively required."""
    last_modified: str | None = wire(default=None, since=Revision.V2025_06_18)
    """When it was last changed, an ISO 8601 timestamp."""


@wire_type(tag="type")
class TextContent(WireObject):
    """Text, for a model or a person."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    annotations: Annotations | None = None
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type(tag="type")
class ImageContent(WireObject):
    """A picture."""

    type: ClassVar[Literal["image"]] = "image"
    data: str
    """The picture, base64."""
    mime_type: str
    annotations: Annotations | None = None
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type(tag="type", since=Revision.V2025_03_26)
class AudioContent(WireObject):
    """Sound. 2024-11-05 has none: there a line of text takes its place."""

    type: ClassVar[Literal["audio"]] = "audio"
    data: str
    """The sound, base64."""
    mime_type: str
    annotations: Annotations | None = None
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )

    def stand_in(self, revision: Revision) -> TextContent:
        return TextContent(f"[{self.mime_type} audio]", self.annotations)


@wire_type
class TextResourceContents(WireObject):
    """The contents of a resource that is text."""

    uri: str
    text: str
    mime_type: str | None = None
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type
class BlobResourceContents(WireObject):
    """The contents of a resource that is not text."""

    uri: str
    blob: str
    """The bytes, base64."""
    mime_type: str | None = None
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type
class UnknownResourceContents(Unknown):
    """Contents that are neither text nor a blob."""


def _choose_contents(value: JsonObject, revision: Revision) -> type[WireObject] | None:
    if "text" in value:
        return TextResourceContents
    return BlobResourceContents if "blob" in value else UnknownResourceContents


ResourceContents: TypeAlias = Annotated[
    TextResourceContents | BlobResourceContents | UnknownResourceContents,
    Choose(_choose_contents),
]
"""What `resources/read` and an embedded resource carry."""


@wire_type(tag="type")
class EmbeddedResource(WireObject):
    """The contents of a resource, as a block."""

    type: ClassVar[Literal["resource"]] = "resource"
    resource: ResourceContents
    annotations: Annotations | None = None
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type(tag="type", since=Revision.V2025_06_18)
class ResourceLink(WireObject):
    """A resource that can be read, named but not included.

    Earlier revisions have no links: there its name, description and URI as text take its place.
    """

    type: ClassVar[Literal["resource_link"]] = "resource_link"
    uri: str
    name: str
    """For programs; shown to people when there is no title."""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes of the raw contents, before any encoding."""
    annotations: Annotations | None = None
    icons: list[Icon] | None = wire(default=None, since=Revision.V2025_11_25)
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)

    def stand_in(self, revision: Revision) -> TextContent:
        label = self.title or self.name
        if self.description:
            label = f"{label}: {self.description}"
        return TextContent(f"{label}\n{self.uri}" if label else self.uri, self.annotations)


@wire_type
class UnknownContent(Unknown):
    """A block of a type that this library, or the revision in use, does not have."""

    @property
    def type(self) -> Any:
        """What the block says it is."""
        return self.raw.get("type")

    def __repr__(self) -> str:
        return f"UnknownContent(type={self.type!r})"


ContentBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownContent
)
"""A block of a tool result or of a prompt message."""
