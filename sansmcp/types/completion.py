"""Completion of arguments.

Specification: 2026-07-28, server/utilities/completion.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from ..revisions import Revision
from .base import WireObject, wire, wire_type
from .results import RequestParams, Result


@wire_type(tag="type")
class PromptReference(WireObject):
    """Points at a prompt."""

    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"
    name: str
    title: str | None = wire(default=None, since=Revision.V2025_06_18)


@wire_type(tag="type")
class ResourceTemplateReference(WireObject):
    """Points at a resource or a resource template. Before 2025-06-18: ResourceReference."""

    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    uri: str
    """A URI or an RFC 6570 template."""


Reference: TypeAlias = PromptReference | ResourceTemplateReference
"""What is being completed."""


@wire_type
class CompletionArgument(WireObject):
    """The argument that is being typed."""

    name: str
    value: str = wire(secret=True)
    """What is typed so far."""


@wire_type(since=Revision.V2025_06_18)
class CompletionContext(WireObject):
    """What is known beside the argument that is being typed."""

    arguments: dict[str, str] | None = wire(default=None, secret=True)
    """The arguments that are already filled in."""


@wire_type
class CompleteRequestParams(RequestParams):
    """Params of ``completion/complete``."""

    ref: Reference
    argument: CompletionArgument
    context: CompletionContext | None = wire(default=None, since=Revision.V2025_06_18)


@wire_type
class Completion(WireObject):
    """What could be meant."""

    values: list[str]
    """At most 100, best first."""
    total: int | None = None
    """How many there are in all, sent or not."""
    has_more: bool | None = None
    """Whether there are more, known in number or not."""


@wire_type
class CompleteResult(Result):
    """What could be meant by the argument."""

    completion: Completion
