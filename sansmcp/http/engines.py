"""What makes the engines of a server over HTTP: one for all modern clients, one for each session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..limits import Limits
from ..revisions import Revision
from ..server import EnvelopeCheck, ServerEngine
from ..wire.jsoncodec import JsonCodec


class EngineFactory(Protocol):
    """Makes an engine; `App.engine` is one."""

    def __call__(
        self,
        *,
        now: float,
        limits: Limits,
        codec: JsonCodec,
        revisions: Sequence[Revision],
        ids_per_exchange: bool,
        check: EnvelopeCheck | None,
        strict: bool,
        changes: bool = True,
    ) -> ServerEngine:
        """Make one. Without `changes` it must not offer to tell of any; the rest is as for `ServerEngine`."""
        ...
