"""The client's side of HTTP+SSE, the transport of 2024-11-05: everything to delete one day.

One stream, asked for with GET, brings every message of the server. Its first event says where the
client's messages go to, each in a POST of its own that is only acknowledged. `OldSse` knows how far
that has come; the transport carries it out. No era is probed here: the transport is older than
every modern revision.

Specification: 2024-11-05, basic/transports (HTTP with SSE); 2026-07-28,
basic/transports/streamable-http (backward compatibility).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ..errors import PeerFault, RemoteProtocolError
from ..states import OLD_SSE, Machine, OldSseInput, OldSseState
from .url import Url

ENDPOINT: Final = "endpoint"
"""The type of the event that names the address for messages."""


class OldSseUse(Enum):
    """Whether a client speaks HTTP+SSE."""

    AUTO = "auto"
    """When `initialize` is refused as that transport's servers do it."""
    ONLY = "only"
    """From the start: the server is known to speak nothing else."""
    NEVER = "never"


class OldSse:
    """How far the old transport has come."""

    def __init__(self) -> None:
        self._machine = Machine(OLD_SSE)
        self._endpoint: Url | None = None

    @property
    def state(self) -> OldSseState:
        """Where it stands: see the table `states.OLD_SSE`."""
        return self._machine.state

    @property
    def endpoint(self) -> Url | None:
        """Where messages go to; None unless the transport is in use and ready."""
        return self._endpoint

    @property
    def in_use(self) -> bool:
        """Whether the stream was asked for and has not ended."""
        return self.state not in (OldSseState.IDLE, OldSseState.OVER)

    def ask(self) -> None:
        """The stream is asked for."""
        self._machine.fire(OldSseInput.ASK)

    def opened(self) -> None:
        """The stream is there."""
        self._machine.fire(OldSseInput.OPEN)

    def name(self, stream: Url, data: bytes) -> None:
        """Take the event that names the address for messages, in the stream at `stream`.

        Raises RemoteProtocolError, with nothing changed, for an address that is none or is at
        another origin: what is sent there may hold secrets.
        """
        try:
            endpoint = stream.join(data.decode().strip())
        except ValueError:
            raise RemoteProtocolError(
                PeerFault.INVALID_ENDPOINT, "the endpoint event holds no usable address"
            ) from None
        if endpoint.origin != stream.origin:
            raise RemoteProtocolError(
                PeerFault.INVALID_ENDPOINT, f"the endpoint event points to another origin, {endpoint}"
            )
        self._machine.fire(OldSseInput.NAME)
        self._endpoint = endpoint

    def end(self) -> OldSseState:
        """The stream ended, or nobody wants it any more; returns the state it was in."""
        before = self.state
        if self.in_use:
            self._machine.fire(OldSseInput.END)
        self._endpoint = None
        return before
