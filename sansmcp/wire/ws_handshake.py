"""The opening handshake of a WebSocket, over wsproto: one request of HTTP/1.1 and its answer.

Heads are found, bounded and screened as those of HTTP are (see `http1_head`), and what wsproto would take
the last one of is there once, so that no two readers could read them in two ways.

Specification: RFC 6455, sections 1.3, 4 (opening handshake) and 11.3 (headers).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs
from wsproto import events as ws
from wsproto.connection import ConnectionType
from wsproto.handshake import H11Handshake
from wsproto.utilities import RemoteProtocolError

from ..errors import LocalProtocolError, PeerFault
from ..limits import Limits
from .http1_connection import CLOSE
from .http1_events import InformationalHead, RequestHead
from .http1_head import (
    NO_FIELDS,
    FieldBlock,
    Fields,
    HeadBuffer,
    HeadProblem,
    encode_response,
    read_request,
    read_response,
)

SUBPROTOCOL: Final = "mcp"

_OURS: Final = ("host", "upgrade", "connection", "content-length", "transfer-encoding")
_ONCE: Final = (b"sec-websocket-accept", b"sec-websocket-protocol")
"""Fields of an answer that must not be repeated."""
_KEY: Final = re.compile(r"[A-Za-z0-9+/]{21}[AQgw]==")
_UPGRADE: Final = {"upgrade": "websocket", "sec-websocket-version": "13"}


@attrs.frozen
class Agreed:
    """The server speaks WebSocket from now on."""

    subprotocol: str | None
    rest: bytes = attrs.field(repr=False)
    """What came after its answer."""


@attrs.frozen
class Refused:
    """The server does not speak WebSocket with this client."""

    status: int | None
    """Of its answer; None if that is no proper HTTP."""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    fault: PeerFault | None = None
    """What is wrong with an answer that agrees, or is none."""
    detail: str = ""


@attrs.frozen
class Asked:
    """A client wants to speak WebSocket: answer with `ServerHandshake.accept` or `refuse`."""

    head: RequestHead
    subprotocols: tuple[str, ...]


@attrs.frozen
class Unfit:
    """A client sent something else: the answer is to be written, and the connection to be closed."""

    fault: PeerFault
    detail: str
    answer: bytes = attrs.field(repr=False)


class ClientHandshake:
    """The client's side. Write `request`, then hand over what comes until `receive_data` returns something.

    `host` is the value of the header of that name. Raises LocalProtocolError for a target or field that
    HTTP does not allow, and for fields that the handshake itself has.
    """

    def __init__(self, host: str, target: str, headers: Fields, limits: Limits) -> None:
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        for name, _ in pairs:
            if name.lower() in _OURS or name.lower().startswith("sec-websocket-"):
                raise LocalProtocolError(f"{name.lower()} is written by the handshake itself")
        FieldBlock(pairs)
        self._limits = limits
        self._head = HeadBuffer(limits.max_head, of_client=False)
        self._wire = H11Handshake(ConnectionType.CLIENT)
        try:
            request = ws.Request(
                host=host,
                target=target,
                subprotocols=[SUBPROTOCOL],
                extra_headers=[(name.encode("ascii"), value.encode("ascii")) for name, value in pairs],
            )
            self.request: Final = bytes(self._wire.send(request))
            """The bytes that ask for it."""
        except UnicodeError:
            raise LocalProtocolError("the host is no name") from None

    def receive_data(self, data: bytes) -> Agreed | Refused | None:
        """Take bytes; None means that more are needed."""
        offset = 0
        while offset < len(data):
            head, offset = self._head.feed(data, offset)
            if self._head.problem is not None:
                return Refused(None, {}, self._head.problem, "the answer is no proper HTTP")
            if head is None:
                return None
            self._head.clear()
            # h11 lets a change of protocol through only where it was asked for, as here
            read = None if head[9:12] == b"101" else read_response(head, self._limits.max_headers)
            match read:
                case None:
                    return self._agree(head, data[offset:])
                case HeadProblem():
                    return Refused(None, {}, read.fault, read.detail)
                case InformationalHead():
                    continue
                case _:
                    return Refused(read.status, read.headers)
        return None

    def _agree(self, head: bytes, rest: bytes) -> Agreed | Refused:
        if head.count(b"\n") - 2 > self._limits.max_headers:
            return Refused(101, {}, PeerFault.HEAD_TOO_LARGE, "too many header fields")
        for name in _ONCE:
            if head.lower().count(b"\n%b:" % name) > 1:
                return Refused(101, {}, PeerFault.INVALID_UPGRADE, f"more than one {name.decode()}")
        try:
            self._wire.receive_data(head)
            answer = next(self._wire.events(), None)
        except RemoteProtocolError as error:
            if "subprotocol" in str(error):
                return Refused(101, {}, PeerFault.UNKNOWN_SUBPROTOCOL, "a subprotocol that was not offered")
            return Refused(101, {}, PeerFault.INVALID_UPGRADE, _excerpt(error))
        except UnicodeError:
            return Refused(101, {}, PeerFault.NON_ASCII_HEADER, "bytes that are not ASCII in the head")
        if not isinstance(answer, ws.AcceptConnection):
            return Refused(101, {}, PeerFault.INVALID_UPGRADE, "malformed head")
        return Agreed(answer.subprotocol, rest)


class ServerHandshake:
    """The server's side: hand over what comes until `receive_data` returns something."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._head = HeadBuffer(limits.max_head, of_client=True)
        self._wire = H11Handshake(ConnectionType.SERVER)
        self.rest = b""
        """What came after the request."""

    def receive_data(self, data: bytes) -> Asked | Unfit | None:
        """Take bytes; None means that more are needed."""
        if not data:
            return None
        head, offset = self._head.feed(data, 0)
        if self._head.problem is not None:
            too_large = self._head.problem is PeerFault.HEAD_TOO_LARGE
            status, detail = (431, "the head is too large") if too_large else (400, "this is no HTTP")
            return Unfit(self._head.problem, detail, refusal(status, detail))
        if head is None:
            return None
        self.rest = data[offset:]
        request = read_request(head, self._limits.max_headers)
        if isinstance(request, HeadProblem):
            return Unfit(request.fault, request.detail, refusal(request.status, request.detail))
        if "websocket" not in _tokens(request.headers.get("upgrade", "")):
            detail = "this is a WebSocket: the request must ask for an upgrade to it"
            return Unfit(PeerFault.INVALID_UPGRADE, detail, refusal(426, detail, _UPGRADE))
        if request.content_length != 0 or request.http_version != "1.1":
            detail = "the request of a handshake is one of HTTP/1.1 without a body"
            return Unfit(PeerFault.INVALID_UPGRADE, detail, refusal(400, detail))
        if not _KEY.fullmatch(request.headers.get("sec-websocket-key", "")):
            detail = "the key of the handshake must be there once, 16 bytes in base64"
            return Unfit(PeerFault.INVALID_UPGRADE, detail, refusal(400, detail))
        try:
            self._wire.receive_data(_plain(request))
            asked = next(self._wire.events(), None)
        except RemoteProtocolError as error:
            hint = error.event_hint
            status = hint.status_code if isinstance(hint, ws.RejectConnection) else 400
            detail = _excerpt(error)
            answer = refusal(status, detail, _UPGRADE if status == 426 else {})
            return Unfit(PeerFault.INVALID_UPGRADE, detail, answer)
        except UnicodeError:
            asked = None
        if not isinstance(asked, ws.Request):
            return Unfit(PeerFault.INVALID_UPGRADE, "malformed head", refusal(400, "malformed head"))
        return Asked(request, tuple(asked.subprotocols))

    def accept(self, subprotocol: str | None) -> bytes:
        """Agree, to a subprotocol that was offered or none."""
        return bytes(self._wire.send(ws.AcceptConnection(subprotocol=subprotocol)))


def refusal(status: int, reason: str, headers: Fields = ()) -> bytes:
    """The whole answer that turns a client away; the connection ends with it."""
    body = reason.encode("ascii", "replace")
    head = encode_response(status, NO_FIELDS, headers)
    framing = b"content-type: text/plain\r\ncontent-length: %d\r\n" % len(body)
    return b"%b%b%b\r\n%b" % (head, framing, CLOSE, body)


def _tokens(value: str) -> list[str]:
    return [part.strip().lower() for part in value.split(",")]


def _plain(request: RequestHead) -> bytes:
    """Its head as wsproto takes it: repeated fields are one, and the upgrade to other things is left out."""
    headers = {**request.headers, "upgrade": "websocket"}
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{request.method} {request.target} HTTP/1.1\r\n{fields}\r\n".encode("ascii")


def _excerpt(error: Exception) -> str:
    """Its words, which may quote a name that the peer gave."""
    return ascii(str(error))[1:-1][:120]
