"""Byte streams and the lines and faults that are in them.

A row is a name, the cases it shows, the bytes, and what comes out: bytes for a line, a tuple of
fault, id and "was meant as a response" for a fault. Rows of `ENDED` count with the end of the stream.
Unless a row says otherwise a line may have `MAX` bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sansmcp.errors import PeerFault
from sansmcp.wire.jsonrpc import RequestId

Found = bytes | tuple[PeerFault, RequestId | None, bool]

MAX: Final = 128

BOM: Final = (PeerFault.BYTE_ORDER_MARK, None, False)
HEADER: Final = (PeerFault.HEADER_FRAMING, None, False)


class Stream(NamedTuple):
    name: str
    cases: tuple[str, ...]
    data: bytes
    found: list[Found]


def large(id_: RequestId | None = None, like_response: bool = False) -> Found:
    return PeerFault.MESSAGE_TOO_LARGE, id_, like_response


def cut(id_: RequestId | None = None, like_response: bool = False) -> Found:
    return PeerFault.TRUNCATED_MESSAGE, id_, like_response


PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
ONE: Final = b'{"jsonrpc":"2.0","id":1,"result":{}}'
TWO: Final = b'{"jsonrpc":"2.0","id":2,"result":{}}'
SEPARATORS: Final = b'{"jsonrpc":"2.0","id":1,"result":{"t":"a\xe2\x80\xa8b\xe2\x80\xa9c\xc2\x85d"}}'
CONTROLS: Final = b"a\x0bb\x0cc\x1cd\x1de\x1ef"
EURO: Final = b'{"jsonrpc":"2.0","id":1,"result":{"t":"\xe2\x82\xac"}}'
NOT_UTF8: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff\xfe"}'
X: Final = b"x" * MAX

LONG_HEAD: Final = b'{"jsonrpc":"2.0","id":7,"result":{"t":"' + X
LONG_REQUEST: Final = b'{"jsonrpc":"2.0","id":"q","method":"x","params":{"t":"' + X
LONG_TAIL: Final = b'{"result":{"t":"' + X + b'"},"jsonrpc":"2.0","id":7}'
LONG_NO_ID: Final = b'{"result":{"t":"' + X + b'"},"jsonrpc":"2.0"}'
LONGER_TAIL: Final = b'{"result":{"t":"' + X + X + b'"},"jsonrpc":"2.0","id":7}'

STREAMS: Final = (
    Stream("nothing", (), b"", []),
    Stream("one", (), PING + b"\n", [PING]),
    Stream("three at once", ("S-13",), PING + b"\n" + ONE + b"\n" + TWO + b"\n", [PING, ONE, TWO]),
    Stream("no newline yet", (), PING, []),
    Stream("separators inside", ("S-01",), SEPARATORS + b"\n" + CONTROLS + b"\n", [SEPARATORS, CONTROLS]),
    Stream("character of three bytes", ("S-02", "S-13"), EURO + b"\n", [EURO]),
    Stream("crlf", ("S-04",), PING + b"\r\n" + ONE + b"\n" + TWO + b"\r\n", [PING, ONE, TWO]),
    Stream("blank lines", ("S-12",), b"\n   \n\r\n\t \r\n" + PING + b"\n\n" + ONE + b"\n", [PING, ONE]),
    Stream("space around", (), b"  " + PING + b" \n", [b"  " + PING + b" "]),
    Stream(
        "chatter",
        ("S-05",),
        b"Starting server on port 0\n" + ONE + b"\n",
        [b"Starting server on port 0", ONE],
    ),
    Stream("foreign json", ("S-06",), b'{"level":"info"}\n' + ONE + b"\n", [b'{"level":"info"}', ONE]),
    Stream("not utf-8", ("S-08",), NOT_UTF8 + b"\n" + PING + b"\n", [NOT_UTF8, PING]),
    Stream("nul bytes", (), b"\x00\n" + PING + b"\n", [b"\x00", PING]),
    # byte order marks
    Stream("mark", ("S-03",), b"\xef\xbb\xbf" + PING + b"\n", [BOM, PING]),
    Stream("mark and crlf", ("S-03",), b"\xef\xbb\xbf" + PING + b"\r\n" + ONE + b"\n", [BOM, PING, ONE]),
    Stream("mark alone", ("S-03",), b"\xef\xbb\xbf\n" + PING + b"\n", [BOM, PING]),
    Stream("two marks", (), b"\xef\xbb\xbf" * 2 + PING + b"\n", [BOM, b"\xef\xbb\xbf" + PING]),
    Stream("mark later", (), PING + b"\n\xef\xbb\xbf" + ONE + b"\n", [PING, b"\xef\xbb\xbf" + ONE]),
    Stream("half a mark", (), b"\xef\xbb" + PING + b"\n", [b"\xef\xbb" + PING]),
    Stream("a third of a mark", (), b"\xef\n" + PING + b"\n", [b"\xef", PING]),
    # lines that are too long
    Stream("as long as allowed", ("S-10",), X + b"\n" + PING + b"\n", [X, PING]),
    Stream("as long as allowed behind a mark", (), b"\xef\xbb\xbf" + X + b"\n", [BOM, X]),
    Stream("one byte more", ("S-10",), X + b"x\n" + PING + b"\n", [large(), PING]),
    Stream("a cr counts", (), X[:-1] + b"\r\n" + X + b"\r\n" + PING + b"\n", [X[:-1], large(), PING]),
    Stream("much more", ("S-10",), X * 100 + b"\n" + PING + b"\n", [large(), PING]),
    Stream("without end", ("S-10",), X * 100, [large()]),
    Stream("two in a row", ("S-10",), (X + X + b"\n") * 2 + PING + b"\n", [large(), large(), PING]),
    Stream("white space", (), b" " * 200 + b"\n" + PING + b"\n", [large(), PING]),
    Stream("id at the start", ("S-10",), LONG_HEAD + b'"}}\n' + PING + b"\n", [large(7, True), PING]),
    Stream("id at the start, without end", ("S-10",), LONG_HEAD, [large(7, True)]),
    Stream("request", (), LONG_REQUEST + b'"}}\n' + PING + b"\n", [large("q"), PING]),
    Stream("id at the end", ("S-10",), LONG_TAIL + b"\n" + PING + b"\n", [large(7, True), PING]),
    Stream("id at the end, crlf", (), LONG_TAIL + b" \r\n" + PING + b"\n", [large(7, True), PING]),
    Stream("id at the end, not come", (), LONG_TAIL, []),
    Stream("no id", (), LONG_NO_ID + b"\n" + PING + b"\n", [large(None, True), PING]),
    Stream("too late an end", (), LONGER_TAIL + b"\n" + PING + b"\n", [large(None, True), PING]),
    Stream("too late an end, not come", (), LONGER_TAIL, [large(None, True)]),
    Stream(
        "many objects, one id", (), LONG_TAIL + b"\n" + LONG_HEAD + b"\n", [large(7, True), large(7, True)]
    ),
    # header framing
    Stream(
        "header framing",
        ("S-09",),
        b"Content-Length: 36\r\n\r\n" + ONE,
        [HEADER],
    ),
    Stream(
        "header framing, twice",
        ("S-09",),
        b"content-length:36\n\n" + ONE + b"Content-Length: 36\r\n\r\n" + TWO + b"\nContent-Length: 2\n",
        [HEADER, ONE + b"Content-Length: 36", TWO, b"Content-Length: 2"],
    ),
    Stream("no header", (), b"Content-Length: many\n" + PING + b"\n", [b"Content-Length: many", PING]),
)

ENDED: Final = (
    Stream("nothing", (), b"", []),
    Stream("after a line", (), PING + b"\n", [PING]),
    Stream("after a crlf", (), PING + b"\r\n", [PING]),
    Stream("after blanks", ("S-12",), PING + b"\n \t\r", [PING]),
    Stream("whole json", (), PING + b"\n" + ONE, [PING, cut(1, True)]),
    Stream("half a message", (), PING + b"\n" + ONE[:-2], [PING, cut(1, True)]),
    Stream("half a request", (), PING[:-1], [cut(1, False)]),
    Stream("chatter", (), b"bye", [cut()]),
    Stream("header framing", ("S-09",), b"Content-Length: 36\r\n\r\n" + ONE, [HEADER, cut(1, True)]),
    Stream("half a mark", (), b"\xef\xbb", [cut()]),
    Stream("a mark", (), b"\xef\xbb\xbf", [BOM]),
    Stream("long", (), X + b"x", [large()]),
    Stream("long, id at the start", (), LONG_HEAD, [large(7, True)]),
    Stream("long, id at the end", (), LONG_TAIL, [large(None, True)]),
    Stream("long, told before", (), LONGER_TAIL, [large(None, True)]),
    Stream("as long as allowed", (), X, [cut()]),
)
