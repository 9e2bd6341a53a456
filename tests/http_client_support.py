"""Answers an HTTP client by hand, above bytes, under a clock that only the test moves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import attrs

from sansmcp import Call, Event, Revision
from sansmcp.client import ClientEngine
from sansmcp.http.client import HttpClient
from sansmcp.http.exchange import AbortExchange, HttpRequest, StartExchange
from sansmcp.session.era import TransportKind
from sansmcp.wire.sse import encode_event

from .support import DISCOVER, ME, initialize_result

E = TypeVar("E")

URL = "https://example.com/mcp"
JSON = "application/json"
SSE = "text/event-stream"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
SAMPLE = {
    "jsonrpc": "2.0",
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 5},
}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "none"}
SESSION = "s3ssion-0f-t3sts"
TEXT: dict[str, Any] = {"content": [{"type": "text", "text": "hi"}]}
DONE: dict[str, Any] = {"resultType": "complete", **TEXT}

CUTS = [None, 1, 7]
"""How bodies are cut: not at all, byte by byte, in sevens."""


@attrs.define(eq=False)
class Asked:
    """One request of the client."""

    id: int
    request: HttpRequest
    aborted: Any = False
    over: Any = False

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def headers(self) -> dict[str, str]:
        found = dict(self.request.headers)
        assert len(found) == len(self.request.headers), "a field twice"
        return found

    @property
    def message(self) -> Any:
        """The JSON-RPC message that it brought; {} for none."""
        return json.loads(self.request.body) if self.request.body else {}

    @property
    def rpc(self) -> str:
        """What it is about: the JSON-RPC method, or the one of HTTP."""
        message = self.message
        if self.method != "POST":
            return self.method
        return message.get("method", "response") if isinstance(message, dict) else "batch"


class Link:
    """A client, what it asked for (`asked`), and what it said (`said`)."""

    def __init__(
        self, *, url: str = URL, cut: int | None = None, http: Any = None, headers: Any = (), **engine: Any
    ) -> None:
        self.now = 0.0
        self.cut = cut
        self.asked: list[Asked] = []
        self.said: list[Event] = []
        self.engine = ClientEngine(ME, now=0.0, transport=TransportKind.HTTP, **engine)
        self.client = HttpClient(self.engine, url, now=0.0, headers=headers, **(http or {}))

    # the driver's part ---------------------------------------------------------------------------

    def drain(self) -> Link:
        while (op := self.client.next_op()) is not None:
            match op:
                case StartExchange(exchange, request):
                    assert all(asked.id != exchange for asked in self.asked)
                    self.asked.append(Asked(exchange, request))
                case AbortExchange(exchange):
                    (asked,) = (a for a in self.asked if a.id == exchange)
                    assert not asked.over, "aborted although it was over"
                    assert not asked.aborted, "aborted twice"
                    asked.aborted = True
        while (event := self.client.next_event()) is not None:
            self.said.append(event)
        return self

    def start(self) -> Link:
        self.client.start(self.now)
        return self.drain()

    def close(self) -> Link:
        self.client.close(self.now)
        return self.drain()

    def advance(self, seconds: float) -> Link:
        """Let time pass, deadline by deadline."""
        end = self.now + seconds
        for _ in range(10_000):
            when = self.client.next_timeout()
            if when is None or when > end:
                break
            self.now = max(self.now, when)
            self.client.handle_timeout(self.now)
            self.drain()
        else:
            raise AssertionError("the timer does not move on")
        self.now = end
        self.client.handle_timeout(end)
        return self.drain()

    # the server's part ---------------------------------------------------------------------------

    @property
    def last(self) -> Asked:
        """What was asked last."""
        return self.asked[-1]

    def of_rpc(self, rpc: str) -> list[Asked]:
        return [a for a in self.asked if a.rpc == rpc]

    def one_rpc(self, rpc: str) -> Asked:
        found = self.of_rpc(rpc)
        assert len(found) == 1, f"{len(found)} × {rpc} in {self.rpcs()}"
        return found[0]

    def rpcs(self) -> list[str]:
        """What was asked, in order."""
        return [asked.rpc for asked in self.asked]

    def head(self, to: Asked, status: int, *headers: tuple[str, str]) -> Link:
        self.client.response_started(to.id, status, headers, self.now)
        return self.drain()

    def data(self, to: Asked, data: bytes) -> Link:
        size = self.cut or max(len(data), 1)
        for at in range(0, len(data), size):
            self.client.response_data(to.id, data[at : at + size], self.now)
        return self.drain()

    def end(self, to: Asked) -> Link:
        if not to.aborted:
            to.over = True
            self.client.response_ended(to.id, self.now)
        return self.drain()

    def fail(self, to: Asked, error: str = "connection reset") -> Link:
        if not to.aborted:
            to.over = True
            self.client.exchange_failed(to.id, error, self.now)
        return self.drain()

    def answer(
        self,
        to: Asked | None = None,
        status: int = 200,
        body: bytes | str = b"",
        kind: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> Link:
        """A whole response."""
        to = to or self.last
        fields = [*headers]
        if kind is not None:
            fields.append(("content-type", kind))
        data = body.encode() if isinstance(body, str) else body
        self.head(to, status, *fields)
        self.data(to, data)
        return self.end(to)

    def reply(
        self,
        result: Any = None,
        to: Asked | None = None,
        *,
        error: Any = None,
        status: int = 200,
        headers: Any = (),
        **other: Any,
    ) -> Link:
        """A response as one JSON object. `error` is a code, or a code and data."""
        to = to or self.last
        body = json.dumps(response(to, result, error=error, **other))
        return self.answer(to, status, body, JSON, headers)

    def stream(self, to: Asked | None = None, *events: Any, headers: Any = (), end: bool = True) -> Link:
        """A response as an event stream; `events` are messages, or bytes as they are."""
        to = to or self.last
        self.head(to, 200, ("content-type", SSE), *headers)
        self.data(to, b"".join(event(e) for e in events))
        return self.end(to) if end else self

    # what was said -------------------------------------------------------------------------------

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        found = self.of(kind)
        assert len(found) == 1, f"{len(found)} × {kind.__name__}: {self.said}"
        return found[0]

    def call(self, name: str = "echo", **options: Any) -> Call:
        """Call a tool; the request has left."""
        arguments = options.pop("arguments", {"text": "hi"})
        call: Call = self.engine.call_tool(name, arguments, now=self.now, **options)
        self.drain()
        return call

    def finished(self) -> bool:
        """Whether the client has nothing left to do."""
        return self.client.finished

    def quiet(self) -> bool:
        """Whether nothing is left in any table of the transport."""
        return not any(self.client.stats().values())


def event(message: Any, **fields: Any) -> bytes:
    """One event: bytes as they are, a message encoded."""
    if isinstance(message, bytes):
        return message
    return encode_event(json.dumps(message).encode(), **fields)


def response(to: Asked, result: Any = None, *, error: Any = None, **other: Any) -> dict[str, Any]:
    """The JSON-RPC response to a request; `other` replaces members."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": to.message["id"]}
    if error is not None:
        code, data = error if isinstance(error, tuple) else (error, None)
        message["error"] = {"code": code, "message": "told", **({} if data is None else {"data": data})}
    else:
        message["result"] = {} if result is None else result
    return {**message, **other}


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def linked(version: str = MODERN, *, session: str | None = SESSION, **options: Any) -> Link:
    """A client connected to a server that speaks `version`; a legacy one has a session, if any."""
    link = Link(**options).start()
    if Revision(version).era == "modern":
        link.reply(DISCOVER)
    else:
        if link.last.rpc != "initialize":
            link.reply(error=-32601, status=404)
        given = [] if session is None else [("mcp-session-id", session)]
        link.reply(initialize_result(version), headers=given)
        link.answer(link.one_rpc("notifications/initialized"), 202)
        for asked in link.of_rpc("GET"):
            link.answer(asked, 405)
    link.said.clear()
    link.asked.clear()
    assert link.quiet(), link.client.stats()
    return link
