"""HTTP/1.1 on one connection, as a server or as a client: bytes in, events out, bytes out.

Theory of operation. After each input, pull `next_event` until it returns None, then write what
`data_to_send` returns; a verb, too, only queues bytes. Heads are found, bounded and screened here, and
read by h11; where a body ends is told by the readers in `http1_body`. Both directions have a state of
their own, so that a fault of the peer ends what is read, and not what is still to be written: a server
answers it (unless a response was begun), before it tells of it.

One request is served at a time: what a client sends ahead of its response stays unread, and
`Http1Server.wants_data` turns False at a bound. A client sends the next request when the last
response is complete, never before. The next cycle begins by itself.

What a peer does, and what comes of it:

=======================================  =======================================================
a head, a field count or a body too big  HEAD_TOO_LARGE (431), BODY_TOO_LARGE (413)
Transfer-Encoding and Content-Length,    AMBIGUOUS_LENGTH (400)
more than one Content-Length
a transfer coding other than chunked     UNSUPPORTED_TRANSFER_CODING (501)
bytes that are not ASCII in a field      NON_ASCII_HEADER (400)
lines that end with a bare LF, folding   from a client BARE_LINE_FEED, FOLDED_HEADER (400); from a
                                         server read all the same, and told in the head
a malformed chunk or trailer             INVALID_CHUNK (400); good trailers are dropped
an end in the middle of a message        TRUNCATED_HTTP (400)
bytes that answer no request             UNSOLICITED_DATA
``Upgrade``                              ignored
=======================================  =======================================================

Specification: RFC 9112 (HTTP/1.1), RFC 9110 (HTTP semantics); 2026-07-28,
basic/transports/streamable-http.
"""

from __future__ import annotations

from .http1_client import Http1Client
from .http1_events import (
    BodyData,
    BodyEnd,
    ConnectionClosed,
    HttpEvent,
    HttpFault,
    InformationalHead,
    RequestHead,
    ResponseHead,
)
from .http1_head import FieldBlock, Fields
from .http1_server import Http1Server

__all__ = [
    "BodyData",
    "BodyEnd",
    "ConnectionClosed",
    "FieldBlock",
    "Fields",
    "Http1Client",
    "Http1Server",
    "HttpEvent",
    "HttpFault",
    "InformationalHead",
    "RequestHead",
    "ResponseHead",
]
