"""Requests that need more input: the modern way for a server to ask back.

Specification: 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from ..revisions import MODERN_REVISIONS, Revision
from .base import Unknown, WireObject, wire, wire_type
from .elicitation import ElicitRequestParams
from .results import Result
from .roots import ListRootsRequestParams
from .sampling import CreateMessageRequestParams

_MODERN = Revision.V2026_07_28


@wire_type(since=_MODERN, tag="method")
class CreateMessageRequest(WireObject):
    """Asks for a sampling; answered by a `CreateMessageResult`."""

    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"
    params: CreateMessageRequestParams


@wire_type(since=_MODERN, tag="method")
class ListRootsRequest(WireObject):
    """Asks for the roots; answered by a `ListRootsResult`."""

    method: ClassVar[Literal["roots/list"]] = "roots/list"
    params: ListRootsRequestParams | None = wire(default=None, firm=True)


@wire_type(since=_MODERN, tag="method")
class ElicitRequest(WireObject):
    """Asks the user; answered by an `ElicitResult`."""

    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"
    params: ElicitRequestParams


@wire_type
class UnknownInputRequest(Unknown):
    """Asks for something that this library does not know."""

    @property
    def method(self) -> Any:
        """What is asked for."""
        return self.raw.get("method")

    def __repr__(self) -> str:
        return f"UnknownInputRequest(method={self.method!r})"


InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest | UnknownInputRequest
"""One thing that a server asks for; it has no id of its own."""


@wire_type(since=_MODERN)
class InputRequiredResult(Result):
    """The request needs more input: send it again with the answers and the state."""

    result_type: str = wire(
        default="input_required",
        kw_only=True,
        required_in=MODERN_REVISIONS,
        fill="input_required",
        firm=True,
    )
    input_requests: dict[str, InputRequest] | None = wire(default=None, firm=True)
    """What is asked for, under keys that the answers repeat."""
    request_state: str | None = wire(default=None, secret=True, firm=True)
    """To be sent back unchanged; means nothing to the client."""
