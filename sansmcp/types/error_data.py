"""JSON-RPC error objects and the data that some codes come with.

Specification: 2026-07-28, basic/index (error responses); 2025-11-25, client/elicitation (URL
elicitation required).
"""

from __future__ import annotations

from ..revisions import Revision
from .base import UNSET, JsonValue, Unset, WireObject, wire, wire_type
from .elicitation import ElicitRequestURLParams
from .lifecycle import ClientCapabilities

_11 = Revision.V2025_11_25
_MODERN = Revision.V2026_07_28


@wire_type
class Error(WireObject):
    """A JSON-RPC error object."""

    code: int
    message: str
    data: JsonValue | Unset = wire(default=UNSET, secret=True)


@wire_type(since=_11, until=_11)
class URLElicitationRequiredErrorData(WireObject):
    """Data of -32042: the request needs these elicitations first."""

    elicitations: list[ElicitRequestURLParams]


@wire_type(since=_MODERN)
class MissingRequiredClientCapabilityErrorData(WireObject):
    """Data of -32021: the request needs a client that can do this."""

    required_capabilities: ClientCapabilities


@wire_type(since=_MODERN)
class UnsupportedProtocolVersionErrorData(WireObject):
    """Data of -32022: the server does not speak the version of the request."""

    supported: list[str]
    """The versions it speaks."""
    requested: str
    """The version that it was asked for."""
