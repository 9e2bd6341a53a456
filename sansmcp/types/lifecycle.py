"""How two peers come together: who they are and what they can do.

Specification: 2026-07-28, basic/versioning, server/discover, basic/index (capabilities);
2025-11-25, basic/lifecycle.
"""

from __future__ import annotations

from typing import Any

from ..revisions import LEGACY_REVISIONS, Revision
from .base import (
    JsonObject,
    WireObject,
    snake_case,
    wire,
    wire_type,
)
from .icons import Icon
from .results import CacheableResult

_LAST_LEGACY = LEGACY_REVISIONS[-1]
_MODERN = Revision.V2026_07_28


@wire_type
class Implementation(WireObject):
    """The name of a program. For people and logs only: nothing may depend on it."""

    name: str
    version: str
    title: str | None = wire(default=None, since=Revision.V2025_06_18)
    """What it is shown as."""
    description: str | None = wire(default=None, since=Revision.V2025_11_25)
    icons: list[Icon] | None = wire(default=None, since=Revision.V2025_11_25)
    website_url: str | None = wire(default=None, since=Revision.V2025_11_25)


# An empty object declares a capability, so each of them is a class even where it has no members.


@wire_type
class RootsCapability(WireObject):
    """The client can say which roots it works on."""

    list_changed: bool | None = wire(default=None, until=_LAST_LEGACY)
    """It also tells when they change."""


@wire_type
class SamplingCapability(WireObject):
    """The client can ask a model."""

    context: JsonObject | None = wire(default=None, since=Revision.V2025_11_25)
    """It honours `include_context`."""
    tools: JsonObject | None = wire(default=None, since=Revision.V2025_11_25)
    """It takes tools."""


@wire_type(since=Revision.V2025_06_18)
class ElicitationCapability(WireObject):
    """The client can ask its user. Without members: by form only."""

    form: JsonObject | None = wire(default=None, since=Revision.V2025_11_25)
    url: JsonObject | None = wire(default=None, since=Revision.V2025_11_25)


@wire_type(since=_LAST_LEGACY, until=_LAST_LEGACY)
class TaskElicitationCapability(WireObject):
    """Elicitation as a task."""

    create: JsonObject | None = None


@wire_type(since=_LAST_LEGACY, until=_LAST_LEGACY)
class TaskSamplingCapability(WireObject):
    """Sampling as a task."""

    create_message: JsonObject | None = None


@wire_type(since=_LAST_LEGACY, until=_LAST_LEGACY)
class TaskToolsCapability(WireObject):
    """Tool calls as tasks."""

    call: JsonObject | None = None


@wire_type(since=_LAST_LEGACY, until=_LAST_LEGACY)
class ClientTaskRequestsCapability(WireObject):
    """Which requests to the client may be tasks."""

    elicitation: TaskElicitationCapability | None = None
    sampling: TaskSamplingCapability | None = None


@wire_type(since=_LAST_LEGACY, until=_LAST_LEGACY)
class ServerTaskRequestsCapability(WireObject):
    """Which requests to the server may be tasks."""

    tools: TaskToolsCapability | None = None


@wire_type(since=_LAST_LEGACY, until=_LAST_LEGACY)
class ClientTasksCapability(WireObject):
    """The client can run requests as tasks."""

    list: JsonObject | None = None
    cancel: JsonObject | None = None
    requests: ClientTaskRequestsCapability | None = None


@wire_type(since=_LAST_LEGACY, until=_LAST_LEGACY)
class ServerTasksCapability(WireObject):
    """The server can run requests as tasks."""

    list: JsonObject | None = None
    cancel: JsonObject | None = None
    requests: ServerTaskRequestsCapability | None = None


@wire_type
class ClientCapabilities(WireObject):
    """What a client can do for a server. Absent: it cannot."""

    experimental: dict[str, JsonObject] | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = wire(default=None, since=Revision.V2025_06_18)
    tasks: ClientTasksCapability | None = wire(default=None, since=_LAST_LEGACY, until=_LAST_LEGACY)
    extensions: dict[str, JsonObject] | None = wire(default=None, since=_MODERN)
    """Settings per extension id; an empty object: supported, nothing to set."""


@wire_type
class ListChangedCapability(WireObject):
    """The server has things of this kind."""

    list_changed: bool | None = None
    """It also tells when the list of them changes."""


@wire_type
class ToolsCapability(ListChangedCapability):
    """The server has tools."""


@wire_type
class PromptsCapability(ListChangedCapability):
    """The server has prompts."""


@wire_type
class ResourcesCapability(ListChangedCapability):
    """The server has resources."""

    subscribe: bool | None = None
    """It also tells when one of them changes."""


@wire_type
class ServerCapabilities(WireObject):
    """What a server can do. Absent: it cannot."""

    experimental: dict[str, JsonObject] | None = None
    logging: JsonObject | None = None
    completions: JsonObject | None = wire(default=None, since=Revision.V2025_03_26)
    prompts: PromptsCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ToolsCapability | None = None
    tasks: ServerTasksCapability | None = wire(default=None, since=_LAST_LEGACY, until=_LAST_LEGACY)
    extensions: dict[str, JsonObject] | None = wire(default=None, since=_MODERN)
    """Settings per extension id; an empty object: supported, nothing to set."""


@wire_type(since=_MODERN)
class DiscoverResult(CacheableResult):
    """The server's answer to ``server/discover``."""

    supported_versions: list[str]
    """The versions that the server speaks."""
    capabilities: ServerCapabilities
    instructions: str | None = None
    """How to use the server, for a model."""


def declares(capabilities: ClientCapabilities | ServerCapabilities, path: str) -> bool:
    """Whether `capabilities` declare what `path` names, as ``tools`` or ``resources.subscribe``.

    `path` is made of wire names. A member counts when it is an object or true.
    """
    at: Any = capabilities
    for name in path.split("."):
        if isinstance(at, WireObject):
            at = getattr(at, snake_case(name), None)
        else:
            at = at.get(name) if isinstance(at, dict) else None
    return at is not None and at is not False
