"""Matching resource URIs against templates with simple ``{name}`` parts (RFC 6570, level 1).

Linear in the URI: each part takes the characters up to the next literal text, and never a slash.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from .errors import LocalProtocolError

_PART: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class UriTemplate:
    """A parsed template. Raises LocalProtocolError for syntax beyond ``{name}``."""

    def __init__(self, template: str) -> None:
        self.template: Final = template
        pieces = _PART.split(template)
        self._literals: Final = pieces[0::2]
        self.names: Final = tuple(pieces[1::2])
        if any("{" in literal or "}" in literal for literal in self._literals):
            raise LocalProtocolError(f"template {template!r}: only {{name}} parts are understood")
        if len(set(self.names)) != len(self.names):
            raise LocalProtocolError(f"template {template!r}: a name occurs twice")
        if "" in self._literals[1:-1]:
            raise LocalProtocolError(f"template {template!r}: nothing separates two parts")

    def match(self, uri: str) -> dict[str, str] | None:
        """The parts of `uri`, percent-decoded, or None when it does not match.

        A part is never empty, and a decoded one never holds a slash or is ``.`` or ``..``, so it
        cannot lead out of a folder.
        """
        if not uri.startswith(self._literals[0]):
            return None
        position = len(self._literals[0])
        values: dict[str, str] = {}
        for name, literal in zip(self.names, self._literals[1:], strict=True):
            last = name == self.names[-1]
            if last:
                end = len(uri) - len(literal)
                if end < position or not uri.endswith(literal):
                    return None
            else:
                end = uri.find(literal, position)
                if end < 0:
                    return None
            value = unquote(uri[position:end])
            if not value or "/" in value or "\\" in value or value in (".", ".."):
                return None
            values[name] = value
            position = end + len(literal)
        return values if self.names or position == len(uri) else None
