"""The server's side of an HTTP/1.1 connection.

Specification: RFC 9112 (HTTP/1.1); RFC 9110, sections 8.6 (Content-Length), 10.1.1 (Expect) and 15
(status codes).
"""

from __future__ import annotations

from typing import Final

from ..errors import LocalProtocolError, PeerFault
from ..limits import SERVER_LIMITS, Limits
from .http1_body import ChunkedBody, SizedBody
from .http1_connection import BODYLESS, CLOSE, CRLF, Http1Connection, Reading, Writing
from .http1_events import HttpEvent, HttpFault, RequestHead
from .http1_head import NO_FIELDS, FieldBlock, Fields, HeadProblem, KnownHeads, encode_response, read_request

_EMPTY: Final = b"content-length: 0\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
_KEPT: Final = b"connection: keep-alive\r\nkeep-alive: timeout=%d\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Http1Server(Http1Connection):
    """The server's side of one connection.

    Events: for each request `RequestHead`, `BodyData`…, `BodyEnd`; `HttpFault`; `ConnectionClosed`.
    Answer with `send_response`, or with `start_response`, `send_data`… and `send_end`, any time after
    the head. A response that begins before the request is complete ends the connection.

    `ConnectionClosed` may come while a response is still to be written: whether a client that sends
    nothing more still reads, cannot be known.

    With `keep`, clients are told that the connection is kept, and for how many seconds it may be idle.
    """

    def __init__(self, limits: Limits = SERVER_LIMITS, *, keep: int | None = None) -> None:
        super().__init__(limits, of_client=True, reading=Reading.HEAD)
        self._known: Final[KnownHeads[RequestHead]] = KnownHeads()
        self._kept = b"" if keep is None else _KEPT % keep
        self._version = "1.1"
        self._bodyless = False  # the request is HEAD
        self._awaits_continue = False
        self._answering = False  # the application has an answer: do not refuse what it answers
        self._unread = False  # of the last message something was not read
        self._left: int | None = None  # bytes the response still lacks; None if not known
        self._chunked = False

    # getters -------------------------------------------------------------------------------------

    @property
    def wants_data(self) -> bool:
        """False while the client has sent too much ahead: then stop reading until a response is out."""
        return self._reading is not Reading.PAUSED or self._waiting <= self._limits.max_head

    @property
    def should_close(self) -> bool:
        return self._writing is Writing.NOTHING and (self._reading is Reading.DISCARDING or self._end_told)

    @property
    def idle(self) -> bool:
        """Whether no request is being received or answered: closing now loses nothing."""
        return self._writing is Writing.NOTHING and not len(self._head) and not self._waiting

    @property
    def lingers(self) -> bool:
        """Whether the client, when `should_close`, may still be sending what nobody reads.

        To close at once could destroy the response on its way: half-close, then drop what comes for
        a moment (RFC 9112, section 9.6).
        """
        return self._unread and not self._eof and self.should_close

    # verbs ---------------------------------------------------------------------------------------

    def send_continue(self) -> None:
        """Ask for the body if the client waits to be asked, else do nothing."""
        if self._awaits_continue and self._writing is Writing.HEAD and not self._waiting:
            self._awaits_continue = False
            self._out.append(_CONTINUE)

    def send_response(
        self,
        status: int,
        headers: Fields = (),
        body: bytes = b"",
        *,
        fixed: FieldBlock = NO_FIELDS,
        close: bool = False,
    ) -> None:
        """Queue a whole response. Fields are `fixed` ones, prepared once, and then `headers`.

        Its length is told by ``content-length``. The body is left out if the request is HEAD or the
        status, 204 or 304, has none. With `close` the connection ends after it.

        Raises LocalProtocolError if no request waits for a response, and for a field or status that
        HTTP does not allow.
        """
        framing = b"" if status in BODYLESS else b"content-length: %d\r\n" % len(body)
        self._send_head(status, fixed, headers, framing, close=close)
        if body and framing and not self._bodyless:
            self._out.append(body)
        self._end_response()

    def start_response(
        self,
        status: int,
        headers: Fields = (),
        *,
        length: int | None = None,
        fixed: FieldBlock = NO_FIELDS,
        close: bool = False,
    ) -> None:
        """Queue the head of a response whose body is to come by `send_data` and `send_end`.

        `length` is that of the body in bytes, if it is known. Else the body is sent in chunks, or up
        to the end of the connection if the client speaks HTTP/1.0. The rest is as in `send_response`.
        """
        if length is not None and length < 0:
            raise LocalProtocolError(f"{length} is no length of a body")
        chunked = False
        if status in BODYLESS:
            framing, length = b"", 0
        elif length is not None:
            framing = b"content-length: %d\r\n" % length
        elif self._version >= "1.1":
            framing, chunked = _CHUNKED, True
        else:
            framing, close = b"", True
        self._send_head(status, fixed, headers, framing, close=close)
        self._writing = Writing.BODY
        self._chunked = chunked
        self._left = length

    def send_data(self, data: bytes) -> None:
        """Queue a part of the body of a started response.

        Raises LocalProtocolError if none was started, and for more data than its length.
        """
        if self._writing is not Writing.BODY:
            raise LocalProtocolError("no response was started")
        if self._left is not None:
            if len(data) > self._left:
                raise LocalProtocolError("more data than the length of the response")
            self._left -= len(data)
        if data and not self._bodyless:
            self._out.append(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def send_end(self) -> None:
        """Complete a started response. Raises LocalProtocolError if there is none or data is missing."""
        if self._writing is not Writing.BODY:
            raise LocalProtocolError("no response was started")
        if self._left and not self._bodyless:
            raise LocalProtocolError(f"{self._left} bytes of the response are missing")
        if self._chunked and not self._bodyless:
            self._out.append(_LAST_CHUNK)
        self._end_response()

    # inside --------------------------------------------------------------------------------------

    def _send_head(
        self, status: int, fixed: FieldBlock, headers: Fields, framing: bytes, *, close: bool
    ) -> None:
        if self._writing is not Writing.HEAD:
            raise LocalProtocolError("no request waits for a response")
        head = encode_response(status, fixed, headers)
        # What is already here of the request decides whether the connection can be kept.
        self._answering = True
        if self._reading is Reading.BODY and not close:
            self._read_body()
        self._close = self._close or close or self._reading is not Reading.PAUSED
        self._out.append(b"%b%b%b\r\n" % (head, framing, CLOSE if self._close else self._kept))

    def _end_response(self) -> None:
        self._writing = Writing.NOTHING
        if self._close:
            self._discard()
        else:
            self._reading = Reading.HEAD

    def _on_head(self, head: bytes) -> HttpEvent:
        request = self._known.read(head)
        if request is None:
            read = read_request(head, self._limits.max_headers)
            if isinstance(read, HeadProblem):
                return self._fail(read.fault, read.detail, read.status)
            request = read
            self._known.keep(head, request)
        # After a CONNECT that was answered with success, the client speaks another protocol.
        self._close = request.close or request.method == "CONNECT"
        self._version = request.http_version
        self._bodyless = request.method == "HEAD"
        self._awaits_continue = request.expects_continue
        self._answering = False
        self._writing = Writing.HEAD
        length = request.content_length
        self._begin_body(ChunkedBody(self._limits.max_head) if length is None else SizedBody(length))
        return request

    def _on_body_end(self) -> None:
        self._reading = Reading.PAUSED

    def _on_early_data(self) -> HttpEvent | None:
        if self._close:
            self._discard()  # what follows the last request is none
            return self._tell_end()
        if self._waiting > self._limits.max_head + (self._limits.max_body or 0):
            self._answering = True  # this is no fault of the request that waits for its response
            return self._fail(PeerFault.SENT_TOO_FAR_AHEAD, "too much was sent ahead of a response", 400)
        if self._eof and self._waiting <= 2 and CRLF.startswith(b"".join(self._chunks)[self._offset :]):
            return self._tell_end()
        return None

    def _fail(self, fault: PeerFault, detail: str, status: int) -> HttpFault:
        answered = False
        if self._writing is Writing.NOTHING or (self._writing is Writing.HEAD and not self._answering):
            self._out.append(b"%b%b%b\r\n" % (encode_response(status, NO_FIELDS), _EMPTY, CLOSE))
            self._writing = Writing.NOTHING
            answered = True
        self._close = True
        self._discard()
        return HttpFault(fault, detail, status, answered)

    def _discard(self) -> None:
        self._unread = self._reading is not Reading.PAUSED or bool(self._chunks)
        super()._discard()
