"""The client's side of an HTTP/1.1 connection.

Specification: RFC 9112 (HTTP/1.1); RFC 9110, sections 9.3.6 (CONNECT) and 15.2 (informational 1xx).
"""

from __future__ import annotations

from typing import Final

from ..errors import LocalProtocolError, PeerFault
from ..limits import CLIENT_LIMITS, Limits
from .http1_body import BodyReader, ChunkedBody, EndlessBody, SizedBody
from .http1_connection import BODYLESS, CLOSE, Http1Connection, Reading, Writing
from .http1_events import BodyEnd, HttpEvent, HttpFault, InformationalHead, ResponseHead
from .http1_head import (
    NO_FIELDS,
    FieldBlock,
    Fields,
    HeadProblem,
    KnownHeads,
    encode_request,
    read_response,
    wants_close,
)

_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class Http1Client(Http1Connection):
    """The client's side of one connection.

    Events: for each request `InformationalHead`…, `ResponseHead`, `BodyData`…, `BodyEnd`; `HttpFault`;
    `ConnectionClosed`. Send the next request when the connection is `reusable`. A response may be
    complete before its request is, and then the connection `should_close`.
    """

    def __init__(self, limits: Limits = CLIENT_LIMITS) -> None:
        super().__init__(limits, of_client=False, reading=Reading.PAUSED)
        self._known: Final[KnownHeads[ResponseHead]] = KnownHeads()
        self._method = ""
        self._left = 0  # bytes that the request still lacks
        self._heard = False  # something of the response came, be it a status 1xx

    # getters -------------------------------------------------------------------------------------

    @property
    def reusable(self) -> bool:
        """Whether `send_request` may be called: no exchange is open, and the server keeps listening."""
        return self._reading is Reading.PAUSED and not (self._ahead or self._waiting or self._eof)

    @property
    def unanswered(self) -> bool:
        """Whether a request is out of whose response not one byte came.

        If the connection ends like this, the server may have closed it before it saw the request.
        """
        return self._reading is Reading.HEAD and not (self._heard or self._waiting or len(self._head))

    @property
    def should_close(self) -> bool:
        return self._reading is Reading.DISCARDING or self._end_told

    # verbs ---------------------------------------------------------------------------------------

    def send_request(
        self,
        method: str,
        target: str,
        headers: Fields = (),
        body: bytes = b"",
        *,
        fixed: FieldBlock = NO_FIELDS,
        close: bool = False,
    ) -> None:
        """Queue a whole request. Fields are `fixed` ones, prepared once, and then `headers`.

        One of them is ``host``. The length is told by ``content-length``, never in chunks, which many
        servers do not read. With `close` the server is asked to end the connection after it.

        Raises LocalProtocolError if the connection is not `reusable`, and for a method, target or
        field that HTTP does not allow.
        """
        length = len(body) if body or method in _WITH_BODY else None
        self._send_head(method, target, fixed, headers, length, close=close)
        if body:
            self._out.append(body)

    def start_request(
        self,
        method: str,
        target: str,
        headers: Fields = (),
        *,
        length: int,
        fixed: FieldBlock = NO_FIELDS,
        close: bool = False,
    ) -> None:
        """Queue the head of a request whose body, of `length` bytes, is to come by `send_data`.

        The rest is as in `send_request`.
        """
        if length < 0:
            raise LocalProtocolError(f"{length} is no length of a body")
        self._send_head(method, target, fixed, headers, length, close=close)
        if length:
            self._left = length
            self._writing = Writing.BODY

    def send_data(self, data: bytes) -> None:
        """Queue a part of the body of a started request, which is complete at its length.

        After an early response it is dropped: the server does not want it any more. Raises
        LocalProtocolError if no request was started, and for more data than its length.
        """
        if self._writing is not Writing.BODY:
            raise LocalProtocolError("no request was started")
        if len(data) > self._left:
            raise LocalProtocolError("more data than the length of the request")
        self._left -= len(data)
        if not self._left:
            self._writing = Writing.NOTHING
        if data and self._reading is not Reading.DISCARDING:
            self._out.append(data)

    def take_tunnel_data(self) -> bytes:
        """Return what came after a successful response to CONNECT, and forget it.

        That response has no body, and from then on the connection belongs to whoever asked for it.
        Raises LocalProtocolError if there was none.
        """
        if self._reading is not Reading.TUNNEL:
            raise LocalProtocolError("there is no tunnel")
        data = b"".join(self._chunks)[self._offset :]
        self._drop_chunks()
        return data

    # inside --------------------------------------------------------------------------------------

    def _send_head(
        self,
        method: str,
        target: str,
        fixed: FieldBlock,
        headers: Fields,
        length: int | None,
        *,
        close: bool,
    ) -> None:
        if not self.reusable:
            raise LocalProtocolError("the connection cannot take a request now")
        head = encode_request(method, target, fixed, headers)
        framing = b"" if length is None else b"content-length: %d\r\n" % length
        self._out.append(b"%b%b%b\r\n" % (head, framing, CLOSE if close else b""))
        self._method = method
        self._close = close
        self._heard = False
        self._reading = Reading.HEAD

    def _on_head(self, head: bytes) -> HttpEvent:
        self._heard = True
        response = self._known.read(head)
        if response is None:
            read = read_response(head, self._limits.max_headers)
            if isinstance(read, HeadProblem):
                return self._fail(read.fault, read.detail, read.status)
            if isinstance(read, InformationalHead):
                return read
            response = read
            self._known.keep(head, response)
        headers = response.headers
        self._close = self._close or wants_close(headers, response.http_version)
        body: BodyReader
        if self._method == "CONNECT" and 200 <= response.status < 300:
            self._reading = Reading.TUNNEL
            self._ahead.append(BodyEnd())
            return response
        if self._method == "HEAD" or response.status in BODYLESS:
            body = SizedBody(0)
        elif "transfer-encoding" in headers:
            body = ChunkedBody(self._limits.max_head)
        elif "content-length" in headers:
            body = SizedBody(int(headers["content-length"]))
        else:
            body = EndlessBody()
        self._begin_body(body)
        return response

    def _on_body_end(self) -> None:
        self._reading = Reading.PAUSED
        if self._close or self._left:
            self._discard()

    def _on_early_data(self) -> HttpEvent | None:
        return self._fail(PeerFault.UNSOLICITED_DATA, "the server sent what nobody asked for", 400)

    def _fail(self, fault: PeerFault, detail: str, status: int) -> HttpFault:
        self._discard()
        return HttpFault(fault, detail)
