"""The stream on which a legacy server speaks by itself."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    DeviationTolerated,
    ListChanged,
)
from sansmcp.errors import AuthorizationRequired, StreamLost
from sansmcp.events import ServerStreamEnded, ServerStreamOpened

from .http_client_support import (
    MODERN,
    SSE,
    event,
    linked,
    note,
)
from .test_http_client_sessions import ALL_TOOLS, listening, opening, reopen

# the server's own stream -----------------------------------------------------------------------------


@pytest.mark.req("P5", "O8")
def test_the_servers_own_stream_is_listened_to() -> None:
    link, get = listening()
    link.stream(get, event(note("notifications/tools/list_changed"), id="e7"), end=False)
    link.one(ServerStreamOpened)
    link.one(ListChanged)
    link.end(get)
    link.advance(0.999)
    assert len(link.of_rpc("GET")) == 1
    link.advance(0.001)
    assert link.last.rpc == "GET"
    assert link.last.headers["last-event-id"] == "e7"
    link.stream(link.last, end=False)
    link.one(ServerStreamOpened)


@pytest.mark.req("P5")
@pytest.mark.case("H-04")
@pytest.mark.parametrize("status", [405, 404, 400, 406, 200, 302])
def test_a_server_without_such_a_stream_is_asked_once(status: int) -> None:
    link, get = listening(http=ALL_TOOLS)
    link.answer(get, status, "no", "text/plain", [("location", "/x")])
    assert link.engine.state.name == "READY"
    assert len(link.of(DeviationTolerated)) == (status != 405)
    assert not link.of(ServerStreamEnded)
    link.call()
    link.answer(link.last, 404)
    reopen(link)
    assert len(link.of_rpc("GET")) == 1, "also in the next session"


@pytest.mark.req("P5")
@pytest.mark.case("H-04")
def test_a_refusal_that_never_ends_is_one() -> None:
    link, get = listening()
    link.head(get, 404, ("content-type", "text/html"))
    link.data(get, b"<html>")
    link.advance(5.0)
    assert get.aborted
    link.one(DeviationTolerated)
    assert link.quiet()


@pytest.mark.req("P5")
@pytest.mark.parametrize("status", [400, 405])
def test_a_stream_that_was_there_and_is_refused_later_is_told(status: int) -> None:
    link, get = listening(http=ALL_TOOLS)
    link.stream(get)
    link.advance(1.0)
    link.answer(link.last, status)
    ended: Any = link.one(ServerStreamEnded).error
    assert ended.status == status
    link.advance(100.0)
    assert len(link.of_rpc("GET")) == 2
    link.call()
    link.answer(link.last, 404)
    reopen(link)
    assert len(link.of_rpc("GET")) == 3, "a server that had one may have one again"


@pytest.mark.req("P5")
@pytest.mark.case("H-04")
def test_a_server_that_wants_to_know_who_listens_says_so() -> None:
    link, get = listening()
    link.answer(get, 401, headers=[("www-authenticate", "Bearer")])
    error = link.one(ServerStreamEnded).error
    assert isinstance(error, AuthorizationRequired)
    assert link.engine.state.name == "READY"
    link.advance(100.0)
    assert len(link.of_rpc("GET")) == 1


@pytest.mark.req("P5", "P3")
@pytest.mark.case("E-11")
@pytest.mark.parametrize("how", ["ends", "breaks", "refused", "unheard"])
def test_a_stream_that_does_not_last_is_given_up_after_a_while(how: str) -> None:
    link, _get = listening()
    times = []
    for _ in range(50):
        asked = link.of_rpc("GET")[-1]
        if asked.over:
            break
        times.append(link.now)
        match how:
            case "ends":
                link.stream(asked, b"id: 5\ndata:\n\n")
            case "breaks":
                link.head(asked, 200, ("content-type", SSE))
                link.fail(asked)
            case "refused":
                link.answer(asked, 503)
            case _:
                link.fail(asked)
        link.advance(40.0)
    assert len(times) == 6
    assert [len(link.of_rpc("GET")), len(link.of(ServerStreamEnded))] == [6, 1]
    ended: Any = link.one(ServerStreamEnded).error
    assert isinstance(ended, StreamLost)
    assert "5 tries" in str(ended)


@pytest.mark.req("P5")
def test_a_new_session_has_a_stream_of_its_own() -> None:
    link, get = listening(http=ALL_TOOLS)
    link.stream(get, end=False)
    link.call()
    link.answer(link.last, 404)
    reopen(link)
    assert get.aborted
    assert link.of_rpc("GET")[-1].headers["mcp-session-id"] == "second"
    assert len(link.of_rpc("GET")) == 2


@pytest.mark.req("P5")
def test_a_stream_that_waits_is_given_up_with_its_session() -> None:
    link, get = listening(http=ALL_TOOLS)
    link.fail(get)
    assert link.client.stats()["paused_streams"] == 1
    link.call()
    link.answer(link.last, 404)
    reopen(link)
    assert link.client.stats()["paused_streams"] == 0
    link.advance(30.0)
    assert len(link.of_rpc("GET")) == 2


@pytest.mark.req("P5")
@pytest.mark.case("H-08")
def test_a_redirected_stream_is_still_the_servers_own() -> None:
    link, get = listening(http=ALL_TOOLS)
    link.answer(get, 307, "", None, [("location", "/events")])
    assert link.last.request.target == "/events"
    link.stream(link.last, event(note("notifications/tools/list_changed"), id="e1"), end=False)
    moved = link.last
    link.one(ListChanged)
    link.call()
    link.answer(link.last, 404)
    reopen(link)
    assert moved.aborted


@pytest.mark.req("P5")
def test_listening_can_be_switched_off() -> None:
    link = opening(http={"listen": False})
    link.answer(link.one_rpc("notifications/initialized"), 202)
    assert "GET" not in link.rpcs()


@pytest.mark.req("P5")
def test_a_modern_client_never_listens() -> None:
    link = linked(MODERN)
    link.engine.list_tools(now=0.0)
    link.drain()
    assert "GET" not in link.rpcs()
