"""From the library's errors to what a command says about them and how it exits."""

from __future__ import annotations

from typing import Any

from sansmcp.errors import (
    CallCancelled,
    CallTimeout,
    ConnectFailure,
    ConnectionEnded,
    ConnectTimeout,
    ErrorCode,
    HttpFailure,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    NoCommonVersion,
    PaginationError,
    RemoteProtocolError,
    SansmcpError,
    SpawnFailed,
    UnsupportedProtocolVersion,
)

from .explain_http import MORE_TIME, from_http
from .failures import ANSWERED_ERROR, INTERRUPTED, NO_CONNECTION, TIMED_OUT, USAGE, CommandError
from .text import one_line

_CANNOT_START = "cannot start "
ANSWER_AT_TERMINAL = "it asks its user something: answer on a terminal"
ANSWER = f"{ANSWER_AT_TERMINAL}, or with --answer FIELD=VALUE"


def from_call(error: SansmcpError, subject: str) -> CommandError:
    """What became of the request `subject`, as ``tools/call 'echo'``."""
    told = one_line(str(error)).removeprefix(f"{subject}: ")
    match error:
        case McpError():
            message = f"{subject}: the server answered with an error: {told}{_asks_for(error)}"
            return CommandError(ANSWERED_ERROR, "server_error", message, details=_details(error))
        case ConnectTimeout():
            return from_connect(error, subject)
        case CallTimeout():
            return CommandError(TIMED_OUT, "timeout", f"{subject}: {told}; {MORE_TIME}")
        case ConnectionEnded():
            details = {"returncode": error.returncode}
            return CommandError(NO_CONNECTION, "server_gone", f"{subject}: {told}", details=details)
        case HttpFailure():
            return from_http(error, subject)
        case InvalidResponse() | RemoteProtocolError() | PaginationError():
            message = f"{subject}: the server's answer cannot be used: {told}"
            return CommandError(ANSWERED_ERROR, "invalid_answer", message)
        case CallCancelled():
            return CommandError(INTERRUPTED, "interrupted", f"{subject}: {told}")
        case ConnectFailure():
            return from_connect(error, subject)
        case _:
            return CommandError(USAGE, "not_possible", f"{subject}: {told}")


def from_connect(error: SansmcpError, server: str, *, pinned: bool = False) -> CommandError:
    """Why there is no connection to `server`, the name or program that was asked for.

    `pinned` says that not every revision was tried.
    """
    told = one_line(str(error))
    match error:
        case ConnectTimeout() | CallTimeout():
            return CommandError(TIMED_OUT, "timeout", f"{server}: {told}; {MORE_TIME}")
        case _ if _is_about_versions(error):
            message = f"{server}: {told}" + ("; --mode auto tries every revision" if pinned else "")
            return CommandError(NO_CONNECTION, "no_common_version", message)
        case SpawnFailed():
            program = told.removeprefix(_CANNOT_START).partition(":")[0]
            label = "" if program == server else f"{server}: "
            if "[Errno 2]" in told:  # the system's words for it do not get clearer
                told = f"{_CANNOT_START}{program}: there is no such program; is it installed, and on PATH?"
            return CommandError(NO_CONNECTION, "cannot_start", label + told)
        case ConnectionEnded():
            return CommandError(
                NO_CONNECTION,
                "server_gone",
                f"{server}: {told} before it was connected; {_is_it(server)}",
                details={"returncode": error.returncode},
            )
        case HttpFailure():
            return from_http(error, server)
        case McpError():
            message = f"{server}: the server refused the connection: {told}"
            return CommandError(NO_CONNECTION, "refused", message, details=_details(error))
        case LocalProtocolError():
            return CommandError(USAGE, "not_possible", f"{server}: {told}")
        case _:
            return CommandError(NO_CONNECTION, "no_connection", f"{server}: {told}")


def _is_it(server: str) -> str:
    """What else may be there, where something ends that should speak a line per message."""
    if server.startswith("tcp://"):
        return "is it an MCP server, and without TLS? With it the URL begins with tls://"
    if server.startswith(("tls://", "unix:")):
        return "is it an MCP server?"
    return "is it an MCP server on stdio?"


def _is_about_versions(error: SansmcpError) -> bool:
    if isinstance(error, (NoCommonVersion, UnsupportedProtocolVersion)):
        return True
    cause = error.__cause__
    return isinstance(cause, McpError) and cause.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION


def _asks_for(error: McpError) -> str:
    """What to do where the server wants to ask for something first, and nobody can be asked."""
    data = error.data if error.code == ErrorCode.MISSING_CLIENT_CAPABILITY else None
    needed = data.get("requiredCapabilities") if isinstance(data, dict) else None
    if not isinstance(needed, dict):
        return ""
    if {"sampling", "roots"} & needed.keys():
        return "; this command has neither a model nor folders to offer"
    wanted = needed.get("elicitation")
    if not isinstance(wanted, dict):
        return ""
    return f"; {ANSWER_AT_TERMINAL if 'url' in wanted else ANSWER}"


def _details(error: McpError) -> dict[str, Any]:
    details: dict[str, Any] = {"code": error.code}
    if error.data is not None:
        details["data"] = error.data
    return details
