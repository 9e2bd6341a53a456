"""The messages that are read in the bench: the same bytes for everybody. Standard library only."""

import json

REVISION = "2026-07-28"
TEXT = "The quick brown fox jumps over the lazy dog."
TOOLS = 200
REQUEST_META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""What a request of 2026-07-28 says of itself."""
SMALL_ID = 1_000_001
"""The id in the messages below, to be replaced where an answer has to fit a call."""


def _line(result: dict[str, object]) -> bytes:
    message = {"jsonrpc": "2.0", "id": SMALL_ID, "result": result}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _stamped(result: dict[str, object]) -> dict[str, object]:
    """With what a server of 2026-07-28 adds: the result's type and who answers."""
    info = {"name": "bench", "version": "1"}
    return {**result, "resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": info}}


def call_result(text: str = TEXT) -> bytes:
    """The answer to a small `tools/call`."""
    return _line(_stamped({"content": [{"type": "text", "text": text}], "isError": False}))


def list_result() -> bytes:
    """A page of `tools/list` with 200 tools."""
    tools = [
        {
            "name": f"find_records_{number}",
            "title": f"Find records, kind {number}",
            "description": "Find the records that match a query, the best ones first.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to look for"},
                    "limit": {"type": "integer", "minimum": 1, "default": 20},
                    "exact": {"type": "boolean"},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }
        for number in range(TOOLS)
    ]
    return _line(_stamped({"tools": tools, "ttlMs": 0, "cacheScope": "private"}))


def with_id(line: bytes, request_id: object) -> bytes:
    """The same answer under another id."""
    return line.replace(str(SMALL_ID).encode(), str(request_id).encode(), 1)
