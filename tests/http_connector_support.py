"""Drives an `HttpConnector` without sockets, under a clock that only the test moves.

`Net` plays a server by hand; `Wires` links the connector with an `HttpListener`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from sansmcp import Event, HttpFailure, Legacy, RequestFailed, Revision
from sansmcp.client import ClientEngine
from sansmcp.errors import NetworkProblem
from sansmcp.events import RequestReceived
from sansmcp.http.client import HttpClient
from sansmcp.http.connector import HttpConnector
from sansmcp.http.listener import ConnectionPolicy, HttpListener
from sansmcp.http.pool import SETTLED, PoolPolicy
from sansmcp.http.proxy import parse_proxy
from sansmcp.http.server import HttpServer
from sansmcp.ops import Close, CloseWrite, Connect, Op, StartTls, Write
from sansmcp.session.era import TransportKind
from sansmcp.wire.http1 import BodyData, BodyEnd, Http1Server, HttpFault, RequestHead
from sansmcp.wire.sse import encode_event

from .http_client_support import TEXT, URL
from .http_support import make_engine
from .support import DISCOVER, ME

E = TypeVar("E")
MODERN = "2026-07-28"


@attrs.define(eq=False)
class Wire:
    """One connection, as its other end sees it."""

    conn: int
    host: str
    port: int
    tls: str | None
    data: bytearray = attrs.field(factory=bytearray)
    """Everything that was written to it."""
    requests: list[tuple[RequestHead, bytes]] = attrs.field(factory=list)
    secured: str | None = None
    closed: Any = False
    codec: Http1Server = attrs.field(factory=Http1Server)
    _head: RequestHead | None = None
    _body: bytes = b""

    def take(self, data: bytes) -> None:
        """Read what was written, and find the requests in it."""
        self.data += data
        self.codec.receive_data(data)
        while (event := self.codec.next_event()) is not None:
            match event:
                case RequestHead():
                    self._head, self._body = event, b""
                case BodyData(data=piece):
                    self._body += piece
                case BodyEnd():
                    assert self._head is not None
                    self.requests.append((self._head, self._body))
                    self.codec.send_response(204)  # only so that it reads on
                    self.codec.data_to_send()
                case HttpFault():
                    raise AssertionError(event.detail)

    @property
    def message(self) -> Any:
        """The JSON-RPC message of the last request."""
        return json.loads(self.requests[-1][1])

    @property
    def methods(self) -> list[str]:
        """What was asked on it, in order: JSON-RPC methods, or those of HTTP."""
        return [json.loads(body)["method"] if body else head.method for head, body in self.requests]


class Driver:
    """A connector, and what it said."""

    def __init__(
        self,
        *,
        url: str = URL,
        cut: int | None = None,
        pool: Any = None,
        proxy: str | None = None,
        http: Any = None,
        **engine: Any,
    ) -> None:
        self.now = 0.0
        self.cut = cut
        self.said: list[Event] = []
        self.engine = ClientEngine(ME, now=0.0, transport=TransportKind.HTTP, **engine)
        self.client = HttpClient(self.engine, url, now=0.0, **(http or {}))
        self.connector = HttpConnector(
            self.client,
            now=0.0,
            pool=PoolPolicy(**(pool or {})),
            proxy=None if proxy is None else parse_proxy(proxy),
        )

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        found = self.of(kind)
        assert len(found) == 1, self.said
        return found[0]

    def execute(self, op: Op) -> None:
        raise NotImplementedError

    def drain(self) -> bool:
        """Ops, then events. Returns whether there was something."""
        moved = False
        while True:
            while (op := self.connector.next_op()) is not None:
                moved = True
                self.execute(op)
            if (event := self.connector.next_event()) is None:
                return moved
            moved = True
            self.said.append(event)

    def pieces(self, data: bytes, put: Callable[[bytes], None]) -> None:
        """Hand `data` on as the driver cuts it."""
        size = self.cut or max(len(data), 1)
        for at in range(0, len(data), size):
            put(data[at : at + size])

    def call(self, name: str = "echo", **arguments: Any) -> Any:
        call = self.engine.call_tool(name, arguments, now=self.now)
        self.drain()
        return call

    def ask(self) -> Any:
        """A call that may be made twice."""
        call = self.engine.list_tools(now=self.now)
        self.drain()
        return call


class Net(Driver):
    """What connects to it waits in `wires` until the test opens it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.wires: dict[int, Wire] = {}

    def execute(self, op: Op) -> None:
        match op:
            case Connect(conn=conn, host=host, port=port, tls=tls):
                assert conn not in self.wires
                self.wires[conn] = Wire(conn, host, port, tls)
            case StartTls(conn=conn, host=host):
                wire = self.wires[conn]
                assert not wire.closed
                wire.secured, wire.codec = host, Http1Server()
            case Write(conn=conn, data=data):
                assert data
                assert not self.wires[conn].closed, "written after its end"
                self.wires[conn].take(data)
            case Close(conn=conn):
                assert not self.wires[conn].closed, "closed twice"
                self.wires[conn].closed = True
            case _:
                raise AssertionError(op)

    # the server's part ---------------------------------------------------------------------------

    @property
    def last(self) -> Wire:
        """The connection that was asked for last."""
        return self.wires[max(self.wires)]

    def open(self, wire: Wire | None = None) -> Wire:
        wire = wire or self.last
        self.connector.opened(wire.conn, self.now)
        self.drain()
        return wire

    def fail(self, wire: Wire, error: str = "reset", problem: NetworkProblem = NetworkProblem.LOST) -> None:
        self.connector.failed(wire.conn, error, self.now, problem)
        self.drain()

    def send(self, wire: Wire, data: bytes) -> None:
        self.pieces(data, lambda piece: self.connector.receive_data(wire.conn, piece, self.now))
        self.drain()

    def eof(self, wire: Wire) -> None:
        self.connector.receive_eof(wire.conn, self.now)
        self.drain()

    def answer(self, wire: Wire, result: Any = None, *fields: str, id: Any = None) -> None:
        """Answer the last request of `wire` with JSON."""
        message = {"jsonrpc": "2.0", "id": id or wire.message["id"], "result": result or done()}
        body = json.dumps(message).encode()
        self.send(wire, response(200, "content-type: application/json", *fields, body=body))

    def stream(self, wire: Wire) -> None:
        """Begin to answer the last request of `wire` with an event stream."""
        lines = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        self.send(wire, lines.encode())

    def event(self, wire: Wire, message: Any) -> None:
        data = encode_event(json.dumps(message).encode())
        self.send(wire, b"%x\r\n%b\r\n" % (len(data), data))

    def connected(self) -> Net:
        """Get past the probe; leaves one connection, which is idle and will be kept."""
        self.connector.start(self.now)
        self.drain()
        self.answer(self.open(), DISCOVER, "connection: Keep-Alive")
        return self

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        for _ in range(1000):
            when = self.connector.next_timeout()
            if when is None or when > end:
                break
            self.now = max(self.now, when)
            self.connector.handle_timeout(self.now)
            self.drain()
        else:
            raise AssertionError("deadlines without end")
        self.now = end
        self.connector.handle_timeout(end)
        self.drain()

    def close(self) -> None:
        self.connector.close(self.now)
        self.drain()


def done() -> Any:
    return {"resultType": "complete", **TEXT}


def response(status: int, *fields: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status} Reason", *fields, f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def failure(net: Net) -> HttpFailure:
    error = net.one(RequestFailed).error
    assert isinstance(error, HttpFailure)
    return error


def settled(net: Net) -> None:
    """Nothing is left of what was asked."""
    stats = net.connector.stats()
    assert not any(stats[name] for name in ("jobs", "busy", "dialling", "waiting", "streams", "exchanges"))
    assert stats["connections"] == stats["idle"]


class Wires(Driver):
    """A connector and a listener, byte by byte or as it comes."""

    def __init__(
        self,
        version: str = MODERN,
        *,
        answer: Callable[[Any], Any] | None = None,
        server: Any = None,
        connections: Any = None,
        **options: Any,
    ) -> None:
        if version != MODERN:
            options.setdefault("mode", Legacy((Revision(version),)))
        super().__init__(url="http://localhost:3000/mcp", **options)
        self.answers = answer
        """Makes the result of each request; None: the test responds."""
        self.server = HttpServer(make_engine, now=0.0, entropy=self._entropy, **(server or {}))
        policy = ConnectionPolicy(**(connections or {}))
        self.listener = HttpListener(self.server, now=0.0, policy=policy)
        self.heard: list[Any] = []
        self.open: set[int] = set()
        self.connects = 0
        self._drawn = 0

    def _entropy(self, size: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(size, "big")

    def pump(self) -> Wires:
        """Carry whatever there is to carry."""
        while self.drain() or self._drain_server():
            pass
        return self

    def execute(self, op: Op) -> None:
        match op:
            case Connect(conn=conn):
                self.connects += 1
                self.open.add(conn)
                self.listener.accepted(conn, "client", self.now)
                self.connector.opened(conn, self.now)
            case Write(conn=conn, data=data):
                self.pieces(data, lambda piece: self.listener.receive_data(conn, piece, self.now))
            case Close(conn=conn):
                if conn in self.open:
                    self.open.remove(conn)
                    self.listener.failed(conn, "closed", self.now)
            case _:
                raise AssertionError(op)

    def _drain_server(self) -> bool:
        moved = False
        while (op := self.listener.next_op()) is not None:
            moved = True
            if op.conn not in self.open:
                continue
            match op:
                case Write(conn=conn, data=data):
                    self.pieces(data, lambda piece, to=conn: self.connector.receive_data(to, piece, self.now))  # type: ignore[misc]
                case CloseWrite(conn=conn):
                    self.connector.receive_eof(conn, self.now)
                case Close(conn=conn):
                    self.open.remove(conn)
                    self.connector.receive_eof(conn, self.now)
                case _:
                    raise AssertionError(op)
        while (event := self.listener.next_event()) is not None:
            moved = True
            self.heard.append(event)
            if self.answers is not None and isinstance(event, RequestReceived):
                self.server.respond(event.request, self.answers(event.request), now=self.now)
        return moved

    def start(self) -> Wires:
        """Get past the probe or the handshake, and let the connection settle."""
        self.connector.start(self.now)
        self.pump()
        self.now += SETTLED
        return self

    def asked(self) -> list[Any]:
        """The requests that the server got, in order."""
        return [event.request for event in self.heard if isinstance(event, RequestReceived)]

    def respond(self, result: Any = None) -> Wires:
        self.server.respond(self.asked()[-1], TEXT if result is None else result, now=self.now)
        return self.pump()

    def cut_off(self) -> Wires:
        """Every connection breaks."""
        for conn in sorted(self.open):
            self.listener.failed(conn, "reset", self.now)
            self.connector.failed(conn, "reset", self.now)
        self.open.clear()
        return self.pump()

    def advance(self, seconds: float) -> Wires:
        end = self.now + seconds
        for _ in range(10_000):
            times = [
                t for t in (self.connector.next_timeout(), self.listener.next_timeout()) if t is not None
            ]
            if not times or min(times) > end:
                break
            self.now = max(self.now, min(times))
            self._time_passes()
        else:
            raise AssertionError("deadlines without end")
        self.now = end
        self._time_passes()
        return self

    def _time_passes(self) -> None:
        self.connector.handle_timeout(self.now)
        self.listener.handle_timeout(self.now)
        self.pump()
