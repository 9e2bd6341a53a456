"""Both ends of HTTP, byte by byte: our client and our server on their connections, under one clock."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    EraDecided,
    LogReceived,
    ProgressReported,
    RequestCancelled,
    RequestFailed,
    ResultReady,
    ServerStreamOpened,
    SessionEnded,
)
from sansmcp.http.recovery import Recovery
from sansmcp.types.content import TextContent

from .http_client_support import CUTS
from .http_connector_support import MODERN, Wires

VERSIONS = [MODERN, *(revision.value for revision in LEGACY_REVISIONS)]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


def idle(wires: Wires) -> None:
    """Nothing is under way but what a legacy server's own stream takes."""
    ours, theirs = wires.connector.stats(), wires.listener.stats()
    assert ours["jobs"] == ours["busy"] == ours["streams"] == theirs["answering"] <= 1
    assert ours["connections"] == theirs["connections"] == len(wires.open)
    assert ours["waiting"] == ours["dialling"] == ours["buffered"] == theirs["buffered"] == 0


@pytest.mark.req("R2", "R11", "A1", "A15", "P1")
@pytest.mark.parametrize("cut", CUTS)
def test_a_tool_is_called_in_every_revision(version: str, cut: Any) -> None:
    wires = Wires(version, cut=cut).start()
    assert wires.one(EraDecided).revision == version
    for _ in range(3):
        wires.call(text="hi")
        wires.pump().respond()
    assert len(wires.of(ResultReady)) == 3
    assert wires.connects <= 2, "one for requests, one for a legacy server's own stream"
    idle(wires)
    wires.connector.close(wires.now)
    wires.pump()
    assert wires.connector.finished
    assert not wires.open
    assert not list(wires.server.sessions)
    assert wires.listener.stats()["connections"] == 0


@pytest.mark.req("R1", "J1")
@pytest.mark.parametrize("cut", CUTS)
def test_progress_and_logs_come_before_the_answer(version: str, cut: Any) -> None:
    wires = Wires(version, cut=cut).start()
    wires.engine.call_tool("echo", {}, now=0.0, progress=True, **log(version))
    wires.pump()
    for step in (1, 2, 3):
        wires.server.report_progress(wires.asked()[-1], step, 3, now=0.0)
        wires.pump()
    wires.server.log("warning", {"x": 1}, request=wires.asked()[-1], now=0.0)
    wires.pump()
    assert not wires.of(ResultReady)
    wires.respond()
    wires.one(ResultReady)
    assert [event.progress for event in wires.of(ProgressReported)] == [1, 2, 3]
    assert len(wires.of(LogReceived)) == 1
    idle(wires)


def log(version: str) -> dict[str, Any]:
    return {"log_level": "debug"} if version == MODERN else {}


@pytest.mark.req("K1", "K2")
@pytest.mark.case("H-12")
def test_a_cancel_reaches_the_server(version: str) -> None:
    wires = Wires(version).start()
    call = wires.call()
    wires.pump()
    wires.engine.cancel(call, now=0.0)
    wires.pump()
    assert [e.request for e in wires.heard if isinstance(e, RequestCancelled)] == [wires.asked()[-1]]
    wires.call()
    wires.pump().respond()
    wires.one(ResultReady)
    idle(wires)


def test_many_calls_at_once_are_all_answered(version: str) -> None:
    def double(request: Any) -> Any:
        number = request.params["arguments"]["number"]
        return {"content": [{"type": "text", "text": str(2 * number)}]}

    wires = Wires(version, answer=double, pool={"max_requests": 4}).start()
    calls = {wires.engine.call_tool("double", {"number": n}, now=wires.now): 2 * n for n in range(100)}
    wires.pump()
    for event in wires.of(ResultReady):
        result: Any = event.result
        assert result.content == [TextContent(text=str(calls.pop(event.call)))]
    assert not calls
    assert wires.connects <= 2 * 4, "until one was kept, which is seen soon"
    idle(wires)


@pytest.mark.req("P5")
def test_a_legacy_server_has_a_stream_of_its_own(version: str) -> None:
    wires = Wires(version, pool={"max_requests": 1}).start()
    assert bool(wires.of(ServerStreamOpened)) == (version != MODERN)
    wires.call()
    wires.pump().respond()
    wires.one(ResultReady)
    assert wires.connector.stats()["streams"] == (version != MODERN)


@pytest.mark.parametrize("seconds", [3.9, 10.0, 29.9, 30.1, 74.9, 75.1, 1000.0])
def test_a_call_after_a_pause_does_not_notice_it(version: str, seconds: float) -> None:
    wires = Wires(version, http={"listen": False}).start()
    wires.advance(seconds)
    idle(wires)
    assert len(wires.open) == (seconds < 30.0)
    wires.call()
    wires.pump().respond()
    wires.one(ResultReady)
    assert wires.connects == (1 if seconds < 30.0 else 2)
    idle(wires)
    assert len(wires.open) == 1


def test_a_server_that_is_faster_with_the_end_is_not_noticed_either(version: str) -> None:
    wires = Wires(version, connections={"idle_timeout": 5.0}, http={"listen": False}).start()
    wires.now = 6.0
    wires.listener.handle_timeout(wires.now)
    wires.call()  # the server's end of the connection is on its way
    wires.pump()
    assert wires.connects == 2
    wires.respond()
    wires.one(ResultReady)


@pytest.mark.req("P3")
def test_broken_connections(version: str) -> None:
    wires = Wires(version).start()
    wires.engine.call_tool("echo", {}, now=0.0, progress=True)
    wires.pump()
    wires.server.report_progress(wires.asked()[-1], 1, now=0.0)
    wires.pump().cut_off()
    resumable = version != MODERN
    assert bool(wires.of(RequestFailed)) is not resumable
    if resumable:
        wires.respond().advance(5.0)
        wires.one(ResultReady)
    wires.call()
    wires.pump().respond()
    assert wires.of(ResultReady)
    idle(wires)


@pytest.mark.req("R9")
def test_a_lost_request_is_made_again_with_leave() -> None:
    wires = Wires(http={"recovery": Recovery(reissue=True, tools=["echo"])}).start()
    wires.engine.list_tools(now=0.0, progress=True)
    wires.pump()
    wires.now = 3.0
    wires.cut_off()
    wires.respond({"tools": []})
    wires.one(ResultReady)


def test_a_server_that_is_full_is_told_of(version: str) -> None:
    wires = Wires(version, connections={"max_connections": 1}, http={"listen": False}).start()
    for _ in range(2):
        wires.call()
    wires.pump()
    assert getattr(wires.one(RequestFailed).error, "status", None) == 503
    wires.respond()
    wires.one(ResultReady)


def test_a_server_that_closes_ends_what_is_open(version: str) -> None:
    wires = Wires(version).start()
    wires.call()
    wires.pump()
    wires.listener.close(0.0)
    wires.pump().advance(100.0)
    assert wires.listener.finished
    wires.one(RequestFailed)
    assert not wires.of(SessionEnded)
    wires.connector.close(wires.now)
    wires.advance(10.0)
    assert wires.connector.finished
