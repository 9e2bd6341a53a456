"""Which HTTP status a JSON-RPC error goes out with, and what an error that came in tells of the era.

Specification: 2026-07-28, basic/transports/streamable-http (protocol version header, server
validation, backward compatibility) and basic/index (`_meta`, error codes); 2025-11-25,
basic/transports (sending messages to the server, session management).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ..errors import MODERN_ONLY_CODES, ErrorCode
from ..revisions import Era
from ..session.era import supported_versions
from ..wire.jsonrpc import ErrorResponse, classify

_UNREADABLE: Final[dict[int, int]] = {
    ErrorCode.PARSE_ERROR: 400,
    ErrorCode.INVALID_REQUEST: 400,
    **dict.fromkeys(MODERN_ONLY_CODES, 400),
}

ERROR_STATUS: Final[Mapping[Era, Mapping[int, int]]] = MappingProxyType(
    {
        Era.MODERN: MappingProxyType(
            {
                **_UNREADABLE,
                ErrorCode.INVALID_PARAMS: 400,
                ErrorCode.METHOD_NOT_FOUND: 404,
            }
        ),
        # 404 means to a legacy client that its session is gone, and 400 that the server took no
        # request at all. The modern codes are here for a modern server that refuses a legacy one.
        Era.LEGACY: MappingProxyType(_UNREADABLE),
    }
)
"""The statuses that are not 200, by the era of the request and the error's code."""


def status_for_error(code: int, era: Era) -> int:
    """Return the HTTP status for a response with the JSON-RPC error `code`.

    It holds for a response that is not yet begun; a stream has said 200 already. Codes without a
    status of their own, internal errors and those of applications among them, go out with 200: the
    exchange did what it is for, the same error would have it on a stream, and proxies put pages of
    their own in the place of 5xx bodies. Total: never raises.
    """
    return ERROR_STATUS[era].get(code, 200)


def is_modern_error(body: Any) -> bool:
    """Whether the decoded `body` of an error status shows that a modern server wrote it.

    True for a JSON-RPC error with a code that only the modern era has; for -32022 only when it
    lists the versions that it is about. "Method not found" is no evidence: legacy servers say it
    of `server/discover`. Total: never raises, and False for everything else.
    """
    message = classify(body)
    if not isinstance(message, ErrorResponse) or message.code not in MODERN_ONLY_CODES:
        return False
    if message.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
        return supported_versions(message.data) is not None
    return True
