"""The handshake of a legacy connection.

Specification: 2025-11-25, basic/lifecycle.
"""

from __future__ import annotations

from ..revisions import LEGACY_REVISIONS
from .base import wire_type
from .lifecycle import ClientCapabilities, Implementation, ServerCapabilities
from .results import RequestParams, Result

_LAST_LEGACY = LEGACY_REVISIONS[-1]


@wire_type(until=_LAST_LEGACY)
class InitializeRequestParams(RequestParams):
    """Params of ``initialize``: opens a legacy connection."""

    protocol_version: str
    """The newest legacy version that the client speaks."""
    capabilities: ClientCapabilities
    client_info: Implementation


@wire_type(until=_LAST_LEGACY)
class InitializeResult(Result):
    """The server's answer to ``initialize``."""

    protocol_version: str
    """The version to speak from here on."""
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None
    """How to use the server, for a model."""
