"""Requests and responses as bytes, and what is told of them under `LIMITS`.

An event is a tuple: method and target, or status and deviations, of a head; ``("interim", status)``;
``("data", bytes)`` with neighbours joined; ``("end",)``; ``("closed",)``; a fault, on the server's side
with its status and whether it was answered.
"""

from __future__ import annotations

import attrs

from sansmcp.errors import PeerFault
from sansmcp.limits import Limits

LIMITS = Limits(max_head=300, max_headers=8, max_body=50)
HOST = b"Host: x\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /mcp HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{}"
CHUNKED = b"POST /mcp HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

Found = tuple[object, ...]
GOT: list[Found] = [("GET", "/"), ("end",)]
POSTED: list[Found] = [("POST", "/mcp"), ("data", b"{}"), ("end",)]
ANSWERED: list[Found] = [(200,), ("data", b"{}"), ("end",)]
CLOSED: Found = ("closed",)


@attrs.frozen
class Row:
    name: str
    data: bytes
    found: list[Found]
    cases: tuple[str, ...] = ()
    method: str = "GET"
    eof: bool = False


def refused(fault: PeerFault, status: int = 400) -> list[Found]:
    return [(fault, status, True)]


def head(*fields: bytes, line: bytes = b"GET / HTTP/1.1", end: bytes = b"\r\n") -> bytes:
    return end.join([line, b"Host: x", *fields]) + 2 * end


BEGUN: list[Found] = [("POST", "/mcp")]
BAD_CHUNK = [*BEGUN, *refused(PeerFault.INVALID_CHUNK)]
REQUESTS = (
    Row("get", GET, GOT),
    Row("post", POST, POSTED),
    Row("keep-alive", GET + POST + GET, GOT + POSTED + GOT),
    Row("empty-line-before", b"\r\n" + POST + b"\r\n" + GET, POSTED + GOT),
    Row("two-empty-lines", b"\r\n\r\n", refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("half-an-empty-line", b"\rG", refused(PeerFault.INVALID_HTTP_HEAD)),
    Row(
        "chunked",
        CHUNKED + b"1\r\n{\r\n001; x=y\r\n}\r\n0\r\nX-Sum: 1\r\n\r\n" + GET,
        POSTED + GOT,
        ("H-10",),
    ),
    Row("chunked-empty", CHUNKED + b"0\r\n\r\n", [*BEGUN, ("end",)], ("H-10",)),
    Row("chunk-of-words", CHUNKED + b"x\r\n", BAD_CHUNK),
    Row("chunk-0x", CHUNKED + b"0x2\r\n{}\r\n", BAD_CHUNK),
    Row("chunk-underscore", CHUNKED + b"1_0\r\n", BAD_CHUNK),
    Row("chunk-minus", CHUNKED + b"-1\r\n", BAD_CHUNK),
    Row("chunk-no-size", CHUNKED + b"\r\n", BAD_CHUNK),
    Row("chunk-endless-size", CHUNKED + b"0" * 17 + b"\r\n\r\n", BAD_CHUNK),
    Row("chunk-bare-lf", CHUNKED + b"0\n\n", BAD_CHUNK),
    Row("chunk-cr-in-extension", CHUNKED + b"0;a\rb\r\n\r\n", BAD_CHUNK),
    Row("chunk-long-extension", CHUNKED + b"0;" + b"x" * 400 + b"\r\n\r\n", BAD_CHUNK),
    Row(
        "chunk-many-extensions",
        CHUNKED + (b"1;" + b"x" * 99 + b"\r\n{\r\n") * 4,
        [*BEGUN, ("data", b"{{{"), *refused(PeerFault.INVALID_CHUNK)],
    ),
    Row(
        "chunk-longer-than-said",
        CHUNKED + b"1\r\n{}\r\n",
        [*BEGUN, ("data", b"{"), *refused(PeerFault.INVALID_CHUNK)],
    ),
    Row("trailer-malformed", CHUNKED + b"0\r\nx\r\n\r\n", BAD_CHUNK),
    Row("trailers-too-long", CHUNKED + b"0\r\n" + b"a: b\r\n" * 80 + b"\r\n", BAD_CHUNK),
    Row(
        "te-and-cl",
        head(b"Transfer-Encoding: chunked", b"Content-Length: 2"),
        refused(PeerFault.AMBIGUOUS_LENGTH),
    ),
    Row("cl-twice", head(b"Content-Length: 2", b"content-length: 2"), refused(PeerFault.AMBIGUOUS_LENGTH)),
    Row("cl-differs", head(b"Content-Length: 2", b"Content-Length: 3"), refused(PeerFault.AMBIGUOUS_LENGTH)),
    Row("cl-list", head(b"Content-Length: 2, 2"), refused(PeerFault.AMBIGUOUS_LENGTH)),
    Row("cl-plus", head(b"Content-Length: +2"), refused(PeerFault.AMBIGUOUS_LENGTH)),
    Row("cl-huge", head(b"Content-Length: " + b"9" * 25), refused(PeerFault.AMBIGUOUS_LENGTH)),
    Row(
        "te-in-1.0",
        head(b"Transfer-Encoding: chunked", line=b"POST / HTTP/1.0"),
        refused(PeerFault.AMBIGUOUS_LENGTH),
    ),
    Row(
        "te-gzip",
        head(b"Transfer-Encoding: gzip, chunked"),
        refused(PeerFault.UNSUPPORTED_TRANSFER_CODING, 501),
    ),
    Row(
        "te-twice",
        head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
        refused(PeerFault.UNSUPPORTED_TRANSFER_CODING, 501),
    ),
    Row("bare-lf", head(end=b"\n"), refused(PeerFault.BARE_LINE_FEED)),
    Row("one-bare-lf", head(b"A: b\nC: d"), refused(PeerFault.BARE_LINE_FEED)),
    Row("bare-lf-at-the-end", b"GET / HTTP/1.1\r\nHost: x\n\r\n", refused(PeerFault.BARE_LINE_FEED)),
    Row("bare-cr", head(b"A: b\rC: d"), refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("nul", head(b"A: \0"), refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("folded", head(b"A: b", b" c"), refused(PeerFault.FOLDED_HEADER)),
    Row("latin-1", head("A: é".encode("latin-1")), refused(PeerFault.NON_ASCII_HEADER)),
    Row("utf-8", head("Mcp-Name: é".encode()), refused(PeerFault.NON_ASCII_HEADER)),
    Row("space-before-colon", head(b"A : b"), refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("space-after-cl", head(b"Content-Length : 2"), refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("no-colon", head(b"secret"), refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("no-host", b"GET / HTTP/1.1\r\nA: b\r\n\r\n", refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("two-hosts", head(b"Host: y"), refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("no-request-line", b"Host: x\r\n\r\n", refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("tls", b"\x16\x03\x01\x02", refused(PeerFault.INVALID_HTTP_HEAD)),
    Row("http-2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", refused(PeerFault.UNSUPPORTED_HTTP_VERSION, 505)),
    Row("http-0.9", b"GET / HTTP/0.9\r\n\r\n", refused(PeerFault.UNSUPPORTED_HTTP_VERSION, 505)),
    Row("head-as-large-as-allowed", head(b"A: " + b"x" * (300 - len(GET) - 5)), GOT, ("H-16",)),
    Row("head-too-large", head(b"A: " + b"x" * (301 - len(GET) - 5)), refused(PeerFault.HEAD_TOO_LARGE, 431)),
    Row("head-endless", b"GET /" + b"x" * 5000, refused(PeerFault.HEAD_TOO_LARGE, 431)),
    Row("as-many-fields-as-allowed", head(*[b"A: b"] * 7), GOT),
    Row("too-many-fields", head(*[b"A: b"] * 8), refused(PeerFault.HEAD_TOO_LARGE, 431)),
    Row(
        "body-announced-too-large",
        head(b"Content-Length: 99999999999"),
        [("GET", "/"), *refused(PeerFault.BODY_TOO_LARGE, 413)],
        ("H-16",),
    ),
    Row(
        "body-as-large-as-allowed",
        head(b"Content-Length: 50") + b"x" * 50,
        [("GET", "/"), ("data", b"x" * 50), ("end",)],
    ),
    Row(
        "chunks-too-large",
        CHUNKED + b"28\r\n" + b"x" * 40 + b"\r\n28\r\n" + b"y" * 40 + b"\r\nxx",
        [*BEGUN, ("data", b"x" * 40 + b"y" * 10), *refused(PeerFault.BODY_TOO_LARGE, 413)],
        ("H-16",),
    ),
    Row("close", head(b"Connection: keep-alive, Close") + b"\xff" + GET, GOT),
    Row("http-1.0", b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + GET, GOT),
    Row("upgrade", head(b"Connection: Upgrade", b"Upgrade: websocket") + POST, GOT + POSTED),
    Row("connect", b"CONNECT x:443 HTTP/1.1\r\n" + HOST + b"\r\n\x16", [("CONNECT", "x:443"), ("end",)]),
    Row("end", GET, [*GOT, CLOSED], eof=True),
    Row("end-at-once", b"", [CLOSED], eof=True),
    Row("end-after-an-empty-line", GET + b"\r\n", [*GOT, CLOSED], eof=True),
    Row("end-in-the-head", GET + GET[:-1], [*GOT, *refused(PeerFault.TRUNCATED_HTTP), CLOSED], eof=True),
    Row(
        "end-in-the-body",
        POST[:-1],
        [*BEGUN, ("data", b"{"), *refused(PeerFault.TRUNCATED_HTTP), CLOSED],
        eof=True,
    ),
    Row(
        "end-in-a-chunk",
        CHUNKED + b"5\r\n{",
        [*BEGUN, ("data", b"{"), *refused(PeerFault.TRUNCATED_HTTP), CLOSED],
        eof=True,
    ),
    Row(
        "end-before-the-last-chunk",
        CHUNKED + b"2\r\n{}\r\n",
        [*BEGUN, ("data", b"{}"), *refused(PeerFault.TRUNCATED_HTTP), CLOSED],
        eof=True,
    ),
)
NO_BODY: list[Found] = [("end",)]
RESPONSES = (
    Row("sized", OK, ANSWERED),
    Row("chunked", STREAM + b"1\r\n{\r\n1;x\r\n}\r\n0\r\nA: b\r\n\r\n", ANSWERED),
    Row("up-to-the-end", b"HTTP/1.1 200\r\n\r\n{}", [*ANSWERED, CLOSED], eof=True),
    Row(
        "bare-lf-before-the-body",
        b"HTTP/1.1 200\n\n\r\n{}",
        [(200, PeerFault.BARE_LINE_FEED), ("data", b"\r\n{}"), ("end",), CLOSED],
        eof=True,
    ),
    Row("http-1.0", b"HTTP/1.0 200 OK\r\n\r\n{}", [*ANSWERED, CLOSED], eof=True),
    Row("not-ended", b"HTTP/1.0 200 OK\r\n\r\n{}", ANSWERED[:2]),
    Row("accepted", b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", [(202,), ("end",)], ("H-02",)),
    Row("no-content", b"HTTP/1.1 204 No Content\r\n\r\n", [(204,), ("end",)], ("H-02",)),
    Row("not-modified", b"HTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n", [(304,), ("end",)]),
    Row("to-head", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", [(200,), ("end",)], method="HEAD"),
    Row(
        "interim",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + OK,
        [("interim", 100), ("interim", 103), *ANSWERED],
    ),
    Row("switching", b"HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n", [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("error-body", b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}", [(400,), *ANSWERED[1:]], ("H-05",)),
    Row("bare-lf", OK.replace(b"\r\n", b"\n"), [(200, PeerFault.BARE_LINE_FEED), *ANSWERED[1:]]),
    Row(
        "folded",
        OK.replace(b"\r\n", b"\r\nA: b\r\n\tc\r\n", 1),
        [(200, PeerFault.FOLDED_HEADER), *ANSWERED[1:]],
    ),
    Row("reason-in-latin-1", OK.replace(b"OK", "Déjà vu".encode("latin-1")), ANSWERED),
    Row("latin-1", OK.replace(b"\r\n", b"\r\nA: \xe9\r\n", 1), [(PeerFault.NON_ASCII_HEADER,)]),
    Row("control", OK.replace(b"\r\n", b"\r\nA: \x07\r\n", 1), [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("bare-cr", OK.replace(b"\r\n", b"\r\nA: b\rC: d\r\n", 1), [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("nul-in-the-reason", OK.replace(b"OK", b"\0"), [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row(
        "te-and-cl",
        STREAM.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"),
        [(PeerFault.AMBIGUOUS_LENGTH,)],
    ),
    Row("cl-twice", OK.replace(b"\r\n", b"\r\nContent-Length: 2\r\n", 1), [(PeerFault.AMBIGUOUS_LENGTH,)]),
    Row("te-in-1.0", STREAM.replace(b"1.1", b"1.0"), [(PeerFault.AMBIGUOUS_LENGTH,)]),
    Row("te-gzip", STREAM.replace(b"chunked", b"gzip"), [(PeerFault.UNSUPPORTED_TRANSFER_CODING,)]),
    Row("http-2", OK.replace(b"1.1", b"2.0"), [(PeerFault.UNSUPPORTED_HTTP_VERSION,)]),
    Row("no-status", b"HTTP/1.1 OK\r\n\r\n", [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("status-99", b"HTTP/1.1 099 X\r\n\r\n", [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("no-http", b"SSH-2.0-x\r\n", [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("nearly-http", b"HTTQ", [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("tls", b"\x15\x03\x01", [(PeerFault.INVALID_HTTP_HEAD,)]),
    Row("head-too-large", b"HTTP/1.1 200 " + b"x" * 400, [(PeerFault.HEAD_TOO_LARGE,)]),
    Row("too-many-fields", OK.replace(b"\r\n", b"\r\n" + b"A: b\r\n" * 8, 1), [(PeerFault.HEAD_TOO_LARGE,)]),
    Row("body-announced-too-large", OK.replace(b": 2", b": 51"), [(200,), (PeerFault.BODY_TOO_LARGE,)]),
    Row(
        "body-too-large",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 51,
        [(200,), ("data", b"x" * 50), (PeerFault.BODY_TOO_LARGE,)],
    ),
    Row("chunk-malformed", STREAM + b"2\r\n{}\r\nx\r\n", [*ANSWERED[:2], (PeerFault.INVALID_CHUNK,)]),
    Row("end-at-once", b"", [CLOSED], eof=True),
    Row("end-in-the-head", OK[:9], [(PeerFault.TRUNCATED_HTTP,), CLOSED], eof=True),
    Row("end-in-the-body", OK[:-1], [(200,), ("data", b"{"), (PeerFault.TRUNCATED_HTTP,), CLOSED], eof=True),
    Row(
        "end-before-the-last-chunk",
        STREAM + b"2\r\n{}\r\n",
        [*ANSWERED[:2], (PeerFault.TRUNCATED_HTTP,), CLOSED],
        ("E-08",),
        eof=True,
    ),
    Row("end-after", OK, [*ANSWERED, CLOSED], eof=True),
    Row("one-too-many", OK + OK, [*ANSWERED, (PeerFault.UNSOLICITED_DATA,)]),
    Row("after-close", OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + OK, ANSWERED),
)
