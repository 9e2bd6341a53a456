"""What the tools of a server want mirrored in headers, read once for as long as it is the same.

Specification: 2026-07-28, basic/transports/streamable-http (custom headers from tool parameters).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ..errors import McpError
from .exchange import Headers
from .headers import Annotations, read_annotations, validate_projection

InputSchema: TypeAlias = Callable[[str], Mapping[str, Any] | None]
"""Gives the input schema of a tool by its name; `App.input_schema` is one."""

_MAX_READ: Final = 1024
"""Tools whose annotations are remembered. Past it: all are read anew."""


class Mirrored:
    """Compares headers with messages. Without `input_schema`, no ``Mcp-Param-`` ones."""

    def __init__(self, input_schema: InputSchema | None) -> None:
        self._input_schema: Final = input_schema
        self._read: Final[dict[str, tuple[object, Annotations]]] = {}

    def __len__(self) -> int:
        """How many tools are remembered."""
        return len(self._read)

    def check(self, headers: Headers, message: Mapping[str, Any]) -> McpError | None:
        """Say how the headers of a modern request contradict it, or None."""
        annotations = None
        if message.get("method") == "tools/call":
            params = message.get("params")
            name = params.get("name") if isinstance(params, dict) else None
            annotations = self._annotations(name) if isinstance(name, str) else None
        fault = validate_projection(headers, message, annotations)
        return None if fault is None else fault.to_error()

    def _annotations(self, name: str) -> Annotations | None:
        schema = self._input_schema(name) if self._input_schema is not None else None
        if schema is None:
            return None
        known = self._read.get(name)
        if known is not None and known[0] is schema:
            return known[1]
        read = read_annotations(schema)
        # Clients leave out a tool with a faulty annotation, so nobody mirrors anything for it.
        annotations = read if isinstance(read, Annotations) else Annotations()
        if len(self._read) >= _MAX_READ:
            self._read.clear()
        self._read[name] = (schema, annotations)
        return annotations
