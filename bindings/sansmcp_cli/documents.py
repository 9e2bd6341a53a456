"""The JSON documents of ``--json``, in one stable shape, and how they are written.

{"ok": true, "command": "tools", "connection": {…}, "result": {…}}
{"ok": false, "command": "tools", "error": {"kind": "timeout", "message": "…", "exitCode": 4}}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sansmcp.revisions import Revision
from sansmcp.types.base import WireObject
from sansmcp.types.convert import unstructure

from .failures import CommandError

if TYPE_CHECKING:
    from sansmcp_asyncio import Client


def wire(value: WireObject | None, revision: Revision) -> Any:
    """A typed object as the JSON that it came from."""
    return None if value is None else unstructure(value, revision)


def wires(values: Iterable[WireObject], revision: Revision) -> list[Any]:
    """Typed objects as the JSON that they came from."""
    return [wire(value, revision) for value in values]


def connection(client: Client) -> dict[str, Any]:
    """Whom the result is from."""
    return {
        "era": client.era.value,
        "revision": client.revision.value,
        "serverInfo": wire(client.server_info, client.revision),
    }


def success(command: str, connected: dict[str, Any], result: Any) -> dict[str, Any]:
    """The document of a command that did what it should."""
    return {"ok": True, "command": command, "connection": connected, "result": result}


def failed(command: str | None, failure: CommandError) -> dict[str, Any]:
    """The document of a command that did not."""
    error: dict[str, Any] = {
        "kind": failure.kind,
        "message": failure.message,
        "exitCode": failure.code,
        **failure.details,
    }
    if failure.trail:
        error["evidence"] = [{"step": step, "outcome": outcome} for step, outcome in failure.trail]
    if failure.heading:
        error["serverStderr"] = list(failure.notes)
    document: dict[str, Any] = {"ok": False, "command": command, "error": error}
    if failure.result is not None:
        document["result"] = failure.result
    return document


def write(document: dict[str, Any]) -> None:
    """Print the document to standard output, whatever encoding that has."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    try:
        print(json.dumps(document, indent=2, ensure_ascii=not unicode))
    except UnicodeEncodeError:  # a lone surrogate in a server's text
        print(json.dumps(document, indent=2))
