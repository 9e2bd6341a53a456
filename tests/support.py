"""Drives an engine by hand: what it sends and says, under a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from sansmcp import (
    AbandonRequest,
    Call,
    CloseConnection,
    Event,
    Reconnect,
    RequestReceived,
    Revision,
    SendNotification,
    SendRequest,
    SendResponse,
)
from sansmcp.client import ClientEngine
from sansmcp.server import ServerEngine
from sansmcp.types.lifecycle import Implementation

E = TypeVar("E")

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
INFO_KEY = "io.modelcontextprotocol/clientInfo"

ME = Implementation(name="me", version="1.0")

DISCOVER = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


def meta(version: str = "2026-07-28", **capabilities: Any) -> dict[str, Any]:
    """The `_meta` of a modern request."""
    return {VERSION_KEY: version, CAPABILITIES_KEY: capabilities}


def initialize_result(version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
    declared = capabilities or {
        "tools": {},
        "resources": {"subscribe": True},
        "prompts": {},
        "completions": {},
        "logging": {},
    }
    return {
        "protocolVersion": version,
        "capabilities": declared,
        "serverInfo": {"name": "peer", "version": "1"},
    }


class Driver:
    """An engine, everything it sent (`sent`) and said (`said`), and the time."""

    def __init__(self, engine: Any, now: float = 0.0) -> None:
        self.engine = engine
        self.now = now
        self.sent: list[dict[str, Any]] = []
        self.wire: list[Event] = []
        self.said: list[Event] = []
        self.drain()

    def drain(self) -> None:
        for event in self.engine.events():
            if isinstance(event, (SendRequest, SendNotification, SendResponse)):
                self.sent.append(event.message)  # type: ignore[arg-type]
                self.wire.append(event)
            elif isinstance(event, (AbandonRequest, CloseConnection, Reconnect)):
                self.wire.append(event)
            else:
                self.said.append(event)

    def receive(self, *messages: Any) -> Driver:
        for message in messages:
            self.engine.receive_message(message, now=self.now)
            self.drain()
        return self

    def advance(self, seconds: float) -> Driver:
        """Let time pass, deadline by deadline."""
        end = self.now + seconds
        for _ in range(10_000):
            when = self.engine.next_timeout()
            if when is None or when > end:
                break
            self.now = max(self.now, when)
            self.engine.handle_timeout(self.now)
            self.drain()
        self.now = end
        self.engine.handle_timeout(end)
        self.drain()
        return self

    @property
    def last(self) -> dict[str, Any]:
        """The message sent last."""
        return self.sent[-1]

    def methods(self) -> list[str]:
        """Methods of all requests and notifications sent so far."""
        return [m["method"] for m in self.sent if "method" in m]

    def of(self, kind: type[E]) -> list[E]:
        """What was said, of one class."""
        return [event for event in self.said if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        found = self.of(kind)
        assert len(found) == 1, f"{len(found)} × {kind.__name__}: {self.said}"
        return found[0]

    def wired(self, kind: type[E]) -> list[E]:
        return [event for event in self.wire if isinstance(event, kind)]

    def reply(self, result: Any = None, *, error: Any = None, to: Any = None) -> Driver:
        """Answer the request sent last (or the one with the id `to`)."""
        request_id = to
        if request_id is None:
            request_id = next(m["id"] for m in reversed(self.sent) if "method" in m and "id" in m)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        if error is not None:
            code, data = error if isinstance(error, tuple) else (error, None)
            message["error"] = {"code": code, "message": "told"}
            if data is not None:
                message["error"]["data"] = data
        else:
            message["result"] = {} if result is None else result
        return self.receive(message)


def client(**options: Any) -> Driver:
    """A client engine that has not connected."""
    return Driver(ClientEngine(ME, now=0.0, **options))


def connected(version: str = "2026-07-28", **options: Any) -> Driver:
    """A client engine connected to a peer that speaks `version`."""
    driver = client(**options)
    driver.engine.connect(now=0.0)
    driver.drain()
    if Revision(version).era == "modern":
        driver.reply({**DISCOVER, "supportedVersions": [version]})
    else:
        driver.reply(error=-32601)
        driver.reply(initialize_result(version))
    driver.sent.clear()
    driver.said.clear()
    driver.wire.clear()
    return driver


def server(capabilities: Iterable[str] = ("tools", "resources", "prompts"), **options: Any) -> Driver:
    """A server engine; what it offers is named by `capabilities`."""
    from sansmcp.types.convert import structure
    from sansmcp.types.lifecycle import ServerCapabilities

    declared = structure({name: {} for name in capabilities}, ServerCapabilities, Revision.V2026_07_28)
    return Driver(ServerEngine(ME, now=0.0, capabilities=declared, **options))


def opened(version: str = "2025-11-25", *, client_capabilities: Any = None, **options: Any) -> Driver:
    """A server engine with a legacy session."""
    driver = server(**options)
    driver.receive(
        {
            "jsonrpc": "2.0",
            "id": "init",
            "method": "initialize",
            "params": {
                "protocolVersion": version,
                "capabilities": client_capabilities or {},
                "clientInfo": {"name": "peer", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    )
    driver.sent.clear()
    driver.said.clear()
    driver.wire.clear()
    return driver


def request(method: str, params: Any = None, *, id: Any = 1, modern: bool = True) -> dict[str, Any]:
    """A request as a client sends it."""
    body = dict(params or {})
    if modern:
        body["_meta"] = {**meta(), **body.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": body}


ALL = [revision.value for revision in Revision]
LEGACY = ALL[:-1]
MODERN = ALL[-1]
TEXT: dict[str, Any] = {"content": [{"type": "text", "text": "hi"}]}


def result(version: str, body: dict[str, Any]) -> dict[str, Any]:
    """`body` as a server that speaks `version` sends it."""
    return {"resultType": "complete", **body} if version == MODERN else body


def call_tool(driver: Driver, **options: Any) -> Call:
    """Call a tool; the request has left."""
    call: Call = driver.engine.call_tool("echo", {"text": "hi"}, now=driver.now, **options)
    driver.drain()
    return call


def serving(version: str, **options: Any) -> Driver:
    """A server engine that is asked in `version`."""
    return server(**options) if version == MODERN else opened(version, **options)


def ask(driver: Driver, version: str, method: str, params: Any = None, *, id: Any = 1) -> Any:
    """Ask a server; the request that its application got last, or None."""
    driver.receive(request(method, params, id=id, modern=version == MODERN))
    received = driver.of(RequestReceived)
    return received[-1].request if received else None


def error_code(driver: Driver) -> int:
    """The code of the error that was sent last."""
    code: int = driver.last["error"]["code"]
    return code
