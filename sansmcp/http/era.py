"""Which era a request over HTTP belongs to."""

from __future__ import annotations

from collections.abc import Mapping

from ..revisions import Era, known_revision
from ..session import modern
from ..wire.jsoncodec import JsonValue
from .legacy import SESSION_ID, VERSION


def is_modern_version(version: str | None) -> bool:
    """Whether a version header names a revision without sessions."""
    revision = known_revision(version)
    return revision is not None and revision.era is Era.MODERN


def is_modern(value: JsonValue, fields: Mapping[str, str]) -> bool:
    """Whether a body belongs to the modern era: as it says, else as the version header says.

    `fields` are the headers by name.
    """
    if isinstance(value, dict):
        params = value.get("params")
        if isinstance(params, dict) and modern.is_modern(params):
            return True
        if value.get("method") == "initialize":
            return False
    version = fields.get(VERSION)
    if version is None:
        return False
    # A version that nobody here knows is newer than all; in a session it is a fault.
    return is_modern_version(version) or (known_revision(version) is None and SESSION_ID not in fields)
