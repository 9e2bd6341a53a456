"""The one door through which extensions come in, on both sides."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from sansmcp import (
    App,
    ClientCapabilities,
    Context,
    InvalidResponse,
    LocalProtocolError,
    PeerFault,
    RemoteProtocolError,
    RequestFailed,
    ResultReady,
)
from sansmcp.events import NotificationReceived
from sansmcp.extensions import ClientPart, Extension, ExtensionMethod
from sansmcp.types import UNSET, ListRootsResult, Result, ServerCapabilities

from .support import ALL, DISCOVER, LEGACY, MODERN, client, connected, request, server, serving
from .tasks_support import Server

ID = "com.example/chess"
METHOD = "chess/move"
DECLARED: dict[str, Any] = {"extensions": {ID: {}}}


def chess(**options: Any) -> Extension:
    def move(params: Any, ctx: Context) -> dict[str, Any]:
        return {"moved": params["to"], "by": ctx.request.method}

    def look(params: Any, *, ctx: Context, now: float) -> dict[str, Any]:
        return {"at": now}

    methods = {
        METHOD: ExtensionMethod(handler=move),
        "chess/look": ExtensionMethod(handler=look, inline=True),
        "chess/told": ExtensionMethod(result=Result),
    }
    return Extension(id=ID, settings={"board": 8}, methods=methods, **options)


@pytest.mark.req("X1", "X2", "X13")
def test_a_server_serves_whom_declared_it() -> None:
    app = Server(App("x", extensions=[chess()]))
    assert app.result("server/discover")["capabilities"]["extensions"] == {ID: {"board": 8}}
    moved = app.result(METHOD, {"to": "e4"}, capabilities=DECLARED)
    assert moved == {"resultType": "complete", "moved": "e4", "by": METHOD}
    assert app.result("chess/look", capabilities=DECLARED)["at"] == 1000.0
    undeclared: list[dict[str, Any]] = [{}, *({"extensions": e} for e in ({}, {ID: False}, 1))]
    for capabilities in undeclared:
        error = app.ask(METHOD, {"to": "e4"}, capabilities=capabilities)["error"]
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": DECLARED}
        assert ID in error["message"]
    assert {e.reason for e in app.ignored} == {PeerFault.UNDECLARED_EXTENSION}
    assert app.code("chess/castle", {}, capabilities=DECLARED) == -32601
    assert Server(App("y")).code(METHOD, {}, capabilities=DECLARED) == -32601


@pytest.mark.req("X2")
def test_what_is_not_gated_is_for_all() -> None:
    app = Server(App("x", extensions=[chess(gated=False)]))
    assert app.result(METHOD, {"to": "e4"}, capabilities={})["moved"] == "e4"


@pytest.mark.req("X2")
@pytest.mark.parametrize("version", LEGACY)
def test_older_clients_have_no_extensions(version: str) -> None:
    driver = serving(version, extensions=[chess()])
    driver.receive(request(METHOD, {"to": "e4"}, modern=False))
    assert driver.last["error"]["code"] == -32601


@pytest.mark.req("X2")
def test_before_a_session_it_is_told_what_is_missing() -> None:
    driver = server(extensions=[chess()])
    driver.receive(request(METHOD, {"to": "e4"}, modern=False))
    assert driver.last["error"]["code"] == -32602


@pytest.mark.req("X1")
def test_what_was_declared_by_hand_stays() -> None:
    given = ServerCapabilities(extensions={"com.example/a": {}, ID: {"board": 9}})
    from sansmcp.server import ServerEngine

    from .support import ME, Driver

    driver = Driver(ServerEngine(ME, now=0.0, capabilities=given, extensions=[chess()]))
    driver.receive(request("server/discover"))
    declared = driver.last["result"]["capabilities"]["extensions"]
    assert declared == {"com.example/a": {}, ID: {"board": 9}}


# client ------------------------------------------------------------------------------------------


def asking(*extensions: Extension, declared: Any = DECLARED, **options: Any) -> Any:
    driver = client(extensions=list(extensions), **options)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply({**DISCOVER, "capabilities": {"tools": {}, **declared}})
    driver.sent.clear()
    driver.said.clear()
    return driver


@pytest.mark.req("X1", "X2")
def test_a_client_asks_whom_declared_it() -> None:
    driver = asking(chess())
    driver.engine.request("chess/told", {}, now=0.0)
    driver.drain()
    meta = driver.last["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"]["extensions"] == {ID: {"board": 8}}
    driver.reply({"resultType": "complete", "x": 1})
    assert isinstance(driver.one(ResultReady).result, Result)
    other = asking(chess(), declared={})
    with pytest.raises(LocalProtocolError, match="does not declare the extension"):
        other.engine.request(METHOD, {}, now=0.0)
    free = asking(chess(), declared={}, check_capabilities=False)
    free.engine.request(METHOD, {}, now=0.0)


@pytest.mark.req("D4", "X2")
def test_a_type_of_result_is_read_by_its_extension() -> None:
    extension = chess(result_types={"check": lambda raw: ("check", raw["by"])})
    driver = asking(extension)
    driver.engine.call_tool("t", now=0.0)
    driver.drain()
    driver.reply({"resultType": "check", "by": "queen"})
    assert driver.one(ResultReady).result == ("check", "queen")
    plain = asking(chess())
    plain.engine.call_tool("t", now=0.0)
    plain.drain()
    plain.reply({"resultType": "check", "by": "queen"})
    assert isinstance(plain.one(RequestFailed).error, InvalidResponse)


@pytest.mark.req("D4", "X2")
def test_a_result_that_its_extension_cannot_read_is_the_fault_of_the_server() -> None:
    driver = asking(Extension(id=ID, methods={METHOD: ExtensionMethod(result=ListRootsResult)}))
    driver.engine.request(METHOD, {}, now=0.0)
    driver.drain()
    driver.reply({"resultType": "complete", "roots": 5})
    with pytest.raises(RemoteProtocolError, match=r"roots: expected an array") as raised:
        _ = driver.one(ResultReady).result
    assert raised.value.fault is PeerFault.INVALID_RESULT


@attrs.define
class Part(ClientPart):
    heard: list[str] = attrs.field(factory=list)

    def take_notification(self, method: str, params: Any) -> None:
        self.heard.append(method)


@attrs.define(kw_only=True, eq=False)
class Heard(Extension):
    part: Part = attrs.field(factory=Part)

    def client_part(self, door: Any) -> ClientPart:
        assert door.now == 0.0
        return self.part


@pytest.mark.req("X2")
@pytest.mark.parametrize("version", [MODERN, "2025-11-25"])
def test_notifications_go_to_their_extension_and_to_the_application(version: str) -> None:
    extension = Heard(id=ID, notifications=frozenset({"chess/clock"}))
    driver = connected(version, extensions=[extension])
    driver.receive({"jsonrpc": "2.0", "method": "chess/clock", "params": {}})
    assert extension.part.heard == (["chess/clock"] if version == MODERN else [])
    assert driver.one(NotificationReceived).method == "chess/clock"
    assert driver.engine.extension_part(ID, now=1.0) is extension.part
    assert driver.engine.extension_part("other/one", now=1.0) is None


# what cannot be ----------------------------------------------------------------------------------


@pytest.mark.req("X2")
@pytest.mark.parametrize("name", ["chess", "", "/chess", "com.example/"])
def test_an_id_has_a_vendor(name: str) -> None:
    with pytest.raises(LocalProtocolError, match="vendor/name"):
        Extension(id=name)


@pytest.mark.req("X2")
def test_nobody_claims_what_is_taken() -> None:
    with pytest.raises(LocalProtocolError, match="a method of the protocol"):
        Extension(id=ID, methods={"tools/call": ExtensionMethod()})
    one, same = chess(), chess()
    other = Extension(id="com.example/other", methods={METHOD: ExtensionMethod()})
    for pair in ((one, same), (one, other)):
        with pytest.raises(LocalProtocolError, match="two extensions claim"):
            App("x", extensions=pair)
        with pytest.raises(LocalProtocolError, match="two extensions claim"):
            client(extensions=list(pair))
    with pytest.raises(LocalProtocolError, match="is taken"):
        client(extensions=[Extension(id=ID, result_types={"complete": dict})])


@pytest.mark.req("X2", "X9")
@pytest.mark.parametrize("version", ALL)
def test_without_extensions_nothing_is_declared(version: str) -> None:
    driver = connected(version, capabilities=ClientCapabilities())
    assert driver.engine._own_capabilities.extensions in (None, UNSET)


@pytest.mark.req("X9")
def test_the_experimental_tasks_of_2025_11_25_pass_untouched() -> None:
    from .support import initialize_result

    driver = client()
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply(error=-32601)
    driver.reply(initialize_result("2025-11-25", tools={}, tasks={"requests": {"tools": {"call": {}}}}))
    driver.engine.request("tools/call", {"name": "t", "task": {"ttl": 1000}}, now=0.0)
    driver.drain()
    assert driver.last["params"]["task"] == {"ttl": 1000}
    raw = {"task": {"taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttl": 1}}
    driver.reply({**raw, "content": []})
    assert driver.one(ResultReady).raw == {**raw, "content": []}
    driver.engine.request("tasks/get", {"taskId": "t"}, now=0.0)
    driver.drain()
    driver.reply(raw["task"])
    assert driver.of(ResultReady)[-1].result.task_id == "t"
