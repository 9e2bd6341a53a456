"""Speaks HTTP to a server by hand, above bytes, under a clock that only the test moves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import attrs

from sansmcp import App, Event, IncomingRequest, MessageIgnored, Revision, ServerEngine
from sansmcp.events import RequestReceived
from sansmcp.http.exchange import EndResponse, HttpRequest, SendBody, StartResponse
from sansmcp.http.headers import project_headers
from sansmcp.http.server import HttpServer
from sansmcp.types.convert import structure
from sansmcp.types.lifecycle import ServerCapabilities
from sansmcp.wire.sse import ServerSentEvent, SseDecoder

from .support import LEGACY, ME, MODERN, meta

E = TypeVar("E")

BOTH = "application/json, text/event-stream"
OFFERED = ("tools", "resources", "prompts", "logging")
CHANGES = structure(
    {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True},
        "prompts": {},
        "logging": {},
    },
    ServerCapabilities,
    Revision.V2026_07_28,
)
EVERYTHING: dict[str, Any] = {"sampling": {}, "elicitation": {}, "roots": {}}


@attrs.define(eq=False)
class Reply:
    """What came back on one exchange so far."""

    id: int
    status: Any = None
    headers: dict[str, str] = attrs.field(factory=dict)
    length: int | None = None
    body: bytes = b""
    ended: Any = False

    @property
    def waits(self) -> bool:
        """Whether nothing came back yet."""
        return self.status is None

    @property
    def type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def json(self) -> Any:
        """The body as one JSON value."""
        assert self.type == "application/json", (self.status, self.type, self.body)
        assert self.ended
        assert self.length == len(self.body)
        return json.loads(self.body)

    @property
    def code(self) -> int:
        """The code of the JSON-RPC error in the body."""
        code: int = self.json["error"]["code"]
        return code

    @property
    def streams(self) -> bool:
        return self.type == "text/event-stream"

    @property
    def events(self) -> list[ServerSentEvent]:
        """The events with data."""
        assert self.streams, (self.status, self.type, self.body)
        assert self.length is None
        decoder = SseDecoder(1 << 20)
        decoder.receive_data(self.body)
        found = []
        while (event := decoder.next_event()) is not None:
            assert isinstance(event, ServerSentEvent)
            found.append(event)
        return found

    @property
    def messages(self) -> list[Any]:
        """The messages, from an event stream or as the one JSON value."""
        return [json.loads(e.data) for e in self.events] if self.streams else [self.json]

    @property
    def comments(self) -> int:
        return sum(block.startswith(b":") for block in self.body.split(b"\n\n"))

    @property
    def ids(self) -> list[str | None]:
        return [e.id for e in self.events]


class Http:
    """A server, what came back from it (`replies`), and what it said (`said`)."""

    def __init__(self, app: App | None = None, **options: Any) -> None:
        self.now = 0.0
        self.said: list[Event] = []
        self.replies: dict[int, Reply] = {}
        self._drawn = 0
        make = make_engine if app is None else app.engine
        self.server = HttpServer(make, now=0.0, entropy=options.pop("entropy", self._entropy), **options)

    def _entropy(self, size: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(size, "big")

    def drain(self) -> None:
        while (op := self.server.next_op()) is not None:
            reply = self.replies[op.exchange]
            assert not reply.ended, "said after its end"
            match op:
                case StartResponse():
                    assert reply.status is None, "begun twice"
                    reply.status, reply.length = op.status, op.length
                    assert len({name for name, _ in op.headers}) == len(op.headers)
                    reply.headers = dict(op.headers)
                case SendBody():
                    assert reply.status is not None
                    assert op.data
                    reply.body += op.data
                case EndResponse():
                    assert reply.status is not None
                    reply.ended = True
        while (event := self.server.next_event()) is not None:
            self.said.append(event)

    # as a client ---------------------------------------------------------------------------------

    def send(
        self,
        method: str,
        headers: Mapping[str, str | None] | list[tuple[str, str]] | None = None,
        body: Any = b"",
        *,
        target: str = "/mcp",
        version: str = "1.1",
    ) -> Reply:
        """One request; a header whose value is None is left out."""
        reply = Reply(len(self.replies) + 1)
        self.replies[reply.id] = reply
        if not isinstance(headers, list):
            given: dict[str, str | None] = {"host": "localhost:3000", **(headers or {})}
            headers = [(name, value) for name, value in given.items() if value is not None]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.server.request_received(reply.id, HttpRequest(method, target, headers, raw, version), self.now)
        self.drain()
        return reply

    def post(self, body: Any, /, *, target: str = "/mcp", **headers: Any) -> Reply:
        """POST, with the headers that every revision asks for."""
        fields = {"content-type": "application/json", "accept": BOTH, **dashed(headers)}
        return self.send("POST", fields, body, target=target)

    def ask(self, method: str, params: Any = None, /, *, id: Any = 1, **headers: Any) -> Reply:
        """A modern request with the headers that belong to it."""
        given = params or {}
        body = {**given, "_meta": {**meta(), **given.get("_meta", {})}}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": body}
        projected: dict[str, Any] = {name.lower(): value for name, value in project_headers(message)}
        return self.post(message, **{**projected, **dashed(headers)})

    def leave(self, reply: Reply) -> None:
        """The client goes away."""
        self.server.exchange_closed(reply.id, self.now)
        self.drain()

    def advance(self, seconds: float) -> None:
        """Let time pass, deadline by deadline."""
        end = self.now + seconds
        for _ in range(10_000):
            when = self.server.next_timeout()
            if when is None or when > end:
                break
            self.now = max(self.now, when)
            self.server.handle_timeout(self.now)
            self.drain()
        else:
            raise AssertionError("deadlines without end")
        self.now = end
        self.server.handle_timeout(end)
        self.drain()

    # as the application --------------------------------------------------------------------------

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        found = self.of(kind)
        assert len(found) == 1, f"{len(found)} × {kind.__name__}: {self.said}"
        return found[0]

    @property
    def request(self) -> IncomingRequest:
        """The request that came last."""
        return self.of(RequestReceived)[-1].request

    def answer(self, result: Any = None, request: IncomingRequest | None = None) -> bool:
        sent = self.server.respond(request or self.request, result or {}, now=self.now)
        self.drain()
        return sent

    def progress(self, value: float, request: IncomingRequest | None = None) -> bool:
        sent = self.server.report_progress(request or self.request, value, now=self.now)
        self.drain()
        return sent


def make_engine(**options: Any) -> ServerEngine:
    return ServerEngine(ME, capabilities=CHANGES, **options)


def dashed(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as names of header fields."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def initialize(version: str = "2025-11-25", *, id: Any = "init", capabilities: Any = None) -> dict[str, Any]:
    params = {
        "protocolVersion": version,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "peer", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def call(method: str = "tools/list", params: Any = None, *, id: Any = 1) -> dict[str, Any]:
    """A legacy request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def note(method: str, params: Any = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


PROGRESS = {"_meta": {"progressToken": "t"}}
INITIALIZED = note("notifications/initialized")


class Client:
    """A legacy client with a session."""

    def __init__(self, http: Http, version: str = "2025-11-25", *, capabilities: Any = None) -> None:
        self.http = http
        self.version = version
        self.opening = http.post(initialize(version, capabilities=capabilities))
        assert self.opening.json["result"]["protocolVersion"] == version
        self.session = self.opening.headers["mcp-session-id"]
        assert self.post(INITIALIZED).status == 202

    @property
    def headers(self) -> dict[str, Any]:
        named = self.version if self.version >= "2025-06-18" else None
        return {"mcp-session-id": self.session, "mcp-protocol-version": named}

    def post(self, body: Any, /, **headers: Any) -> Reply:
        return self.http.post(body, **{**self.headers, **dashed(headers)})

    def get(self, **headers: Any) -> Reply:
        return self.http.send("GET", {"accept": "text/event-stream", **self.headers, **dashed(headers)})

    def delete(self, **headers: Any) -> Reply:
        return self.http.send("DELETE", {**self.headers, **dashed(headers)})

    def call(self, method: str = "tools/list", params: Any = None, *, id: Any = 1, **headers: Any) -> Reply:
        return self.post(call(method, params, id=id), **headers)


def legacy_clients(http: Http, **options: Any) -> Iterator[Client]:
    """One client of each older revision."""
    for version in LEGACY:
        yield Client(http, version, **options)


LEVEL = "io.modelcontextprotocol/logLevel"
MODERN_LIST: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {"_meta": meta()},
}
LIST_HEADERS: dict[str, Any] = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}


def reads(http: Http) -> bool:
    """Whether the server wants more requests."""
    return http.server.wants_data


def reasons(http: Http) -> list[Any]:
    """Why messages were ignored, in order."""
    return [event.reason for event in http.of(MessageIgnored)]
