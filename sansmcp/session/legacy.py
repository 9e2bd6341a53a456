"""The wire forms of the legacy era: a session opened by `initialize`.

Only this file knows them.

Specification: 2025-11-25, basic/lifecycle, basic/utilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..errors import LocalProtocolError, PeerFault, RemoteProtocolError
from ..records import frozen
from ..revisions import Revision, known_revision
from ..wire.jsonrpc import RequestId

_RESERVED: Final = "io.modelcontextprotocol/"
_FOREIGN_KEYS: Final = frozenset(
    _RESERVED + name for name in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
)
_MODERN_RESULT_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope")


# client ------------------------------------------------------------------------------------------


def initialize_params(
    revision: Revision, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    """What `initialize` offers. A modern revision is never offered there."""
    return {
        "protocolVersion": revision.value,
        "capabilities": dict(capabilities),
        "clientInfo": dict(client_info),
    }


@frozen
class Handshake:
    """What an InitializeResult says."""

    version: str
    """As answered; may be one that nobody here knows."""
    capabilities: Mapping[str, Any]
    server_info: Any
    instructions: str | None


def read_initialize_result(raw: Mapping[str, Any]) -> tuple[Handshake, list[str]]:
    """The handshake's answer and what was tolerated in it.

    Raises RemoteProtocolError when it names no version: then there is nothing to go on with.
    """
    version = raw.get("protocolVersion")
    if not isinstance(version, str):
        raise RemoteProtocolError(
            PeerFault.INVALID_INITIALIZE_RESULT,
            "the answer to initialize has no protocolVersion",
        )
    odd = []
    capabilities = raw.get("capabilities")
    if not isinstance(capabilities, dict):
        odd.append("capabilities is no object")
        capabilities = {}
    info = raw.get("serverInfo")
    if not isinstance(info, dict):
        odd.append("serverInfo is no object")
        info = None
    instructions = raw.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        odd.append("instructions is no string")
        instructions = None
    return Handshake(version, capabilities, info, instructions), odd


def stamp_request(
    params: Mapping[str, Any],
    *,
    token: RequestId | None = None,
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`params` as sent; `_meta` only where the application or a progress token needs it.

    Raises LocalProtocolError for a `_meta` key that only the modern era has.
    """
    given = params.get("_meta")
    if token is None and not meta:
        if given:
            _refuse_modern(given)
        return dict(params)
    merged = {**(given or {}), **(meta or {})}
    _refuse_modern(merged)
    if token is not None:
        merged.setdefault("progressToken", token)
    return {**params, "_meta": merged}


def _refuse_modern(meta: Mapping[str, Any]) -> None:
    for key in _FOREIGN_KEYS & meta.keys():
        raise LocalProtocolError(f"_meta key {key} exists only from 2026-07-28 on")


def read_pages_to_visit(data: object) -> dict[str, dict[str, Any]] | None:
    """The params of the elicitations that a -32042 error asks for, by their ids; None: none usable.

    Specification: 2025-11-25, client/elicitation (URL elicitation required).
    """
    listed = data.get("elicitations") if isinstance(data, Mapping) else None
    if not isinstance(listed, list) or not listed:
        return None
    pages: dict[str, dict[str, Any]] = {}
    for item in listed:
        name = item.get("elicitationId") if isinstance(item, dict) else None
        if not isinstance(name, str) or item.get("mode") != "url" or name in pages:
            return None
        pages[name] = item
    return pages


# server ------------------------------------------------------------------------------------------


def choose_revision(requested: object, offered: Sequence[Revision]) -> Revision | None:
    """The revision to answer `initialize` with, or None when no legacy revision is offered.

    The requested one where it is offered; else our newest legacy one. An unknown or a modern
    version is never echoed.
    """
    if not offered:
        return None
    revision = known_revision(requested)
    return revision if revision in offered else max(offered)


def initialize_result(
    revision: Revision,
    capabilities: Mapping[str, Any],
    server_info: Mapping[str, Any],
    instructions: str | None,
) -> dict[str, Any]:
    """The body of an InitializeResult."""
    result: dict[str, Any] = {
        "protocolVersion": revision.value,
        "capabilities": dict(capabilities),
        "serverInfo": dict(server_info),
    }
    if instructions is not None:
        result["instructions"] = instructions
    return result


def finish_result(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A result without the members that only modern peers know."""
    finished = dict(raw)
    for member in _MODERN_RESULT_MEMBERS:
        finished.pop(member, None)
    return finished


def batches_allowed(revision: Revision | None) -> bool:
    """Whether a message may be an array: in 2025-03-26, and before a revision is agreed."""
    return revision is None or revision is Revision.V2025_03_26


__all__ = [
    "Handshake",
    "batches_allowed",
    "choose_revision",
    "finish_result",
    "initialize_params",
    "initialize_result",
    "read_initialize_result",
    "stamp_request",
]
