"""Sessions of the older revisions over HTTP: their life, their messages, who is asked where."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sansmcp import (
    CallCancelled,
    CallTimeout,
    DeviationTolerated,
    LimitHit,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResultReady,
    SendRequest,
    SessionEnded,
    SessionStarted,
)
from sansmcp.events import NotificationReceived
from sansmcp.http.legacy_session import (
    SessionPolicy,
)

from .http_support import (
    BOTH,
    EVERYTHING,
    INITIALIZED,
    PROGRESS,
    Client,
    Http,
    call,
    initialize,
    note,
    reasons,
)
from .support import LEGACY, MODERN, Driver, ask, meta, opened

EACH = pytest.mark.parametrize("version", LEGACY)
NEWEST = LEGACY[-1]
STREAMED = pytest.mark.parametrize("version", [v for v in LEGACY if v >= "2025-03-26"])


# the life of a session --------------------------------------------------------------------------


@pytest.mark.req("A17", "P1")
@EACH
def test_initialize_opens_a_session_with_an_id_of_its_own(version: str) -> None:
    http = Http()
    one, two = Client(http, version), Client(http, version)
    assert one.session != two.session
    assert all("!" <= c <= "~" for c in one.session)
    assert len(one.session) >= 32
    started = http.of(SessionStarted)
    assert [e.revision.value for e in started] == [version, version]
    assert started[0].session is not started[1].session
    assert set(http.server.sessions) == {e.session for e in started}
    reply = one.call()
    assert http.server.session_of(http.request) is started[0].session
    http.answer({"tools": [], "resultType": "complete"})
    assert reply.json == {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
    assert "mcp-session-id" not in reply.headers


@pytest.mark.case("V-08", "L-07")
@pytest.mark.parametrize("asked", [MODERN, "2099-01-01", ""])
@pytest.mark.parametrize("header", [None, MODERN, "2025-03-26"])
def test_initialize_is_answered_with_a_legacy_version(asked: str, header: str | None) -> None:
    reply = Http().post(initialize(asked), mcp_protocol_version=header)
    assert reply.json["result"]["protocolVersion"] == NEWEST
    assert reply.headers["mcp-session-id"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        ({**initialize(), "id": None}, {}, 400, -32600),
        ({**initialize(), "id": True}, {}, 400, -32600),
        ({**initialize(), "params": [1]}, {}, 200, -32602),
        ({**initialize(), "params": {}}, {}, 200, -32602),
        (initialize(), {"mcp-protocol-version": "1900-01-01"}, 400, -32600),
        ([initialize()], {}, 400, -32600),
        (note("initialize"), {}, 400, None),
        (initialize(), {"mcp-session-id": "gone"}, 404, None),
    ],
)
def test_a_bad_initialize_opens_nothing(
    body: Any, headers: dict[str, Any], status: int, code: int | None
) -> None:
    http = Http()
    reply = http.post(body, **headers)
    assert reply.status == status
    assert "mcp-session-id" not in reply.headers
    if code is not None:
        assert reply.code == code
        assert "id" in reply.json, "older clients want one, be it null"
    assert http.server.stats()["sessions"] == 0
    assert http.server.stats()["exchanges"] == 0
    assert http.server.next_timeout() is None
    assert http.of(MessageIgnored)


@pytest.mark.case("L-01", "L-02", "H-06", "V-04")
@EACH
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_an_unknown_session_is_404_and_a_missing_one_400(version: str, method: str) -> None:
    http = Http()
    client = Client(http, version)
    client.session = "0" * 48
    unknown = client.call() if method == "POST" else http.send(method, client.headers)
    assert unknown.status == 404
    assert unknown.type.startswith("text/plain"), "a JSON-RPC error would mean this request alone"
    client.session = None  # type: ignore[assignment]
    missing = client.call(id="m") if method == "POST" else http.send(method, client.headers)
    assert missing.status == 400
    if method == "POST":
        assert (missing.code, missing.json["id"]) == (-32600, "m")
    assert reasons(http) == [PeerFault.UNKNOWN_SESSION, PeerFault.MISSING_HEADER]


@pytest.mark.case("V-05")
@pytest.mark.parametrize("body", [call(), call("ping"), INITIALIZED, note("tools/call"), [call()], 5])
def test_what_has_no_session_is_no_news_about_the_era(body: Any) -> None:
    """A client that probes must not take the refusal for one of a modern server."""
    reply = Http().post(body)
    assert (reply.status, reply.code) == (400, -32600)


@pytest.mark.req("P12")
@EACH
@pytest.mark.parametrize("strict", [False, True])
def test_the_version_header_has_to_be_the_one_agreed(version: str, strict: bool) -> None:
    http = Http(strict=strict)
    client = Client(http, version)
    wrong = [v for v in (*LEGACY, "1900-01-01", "", "x" * 1000) if v != version]
    for method, header in itertools.product(["POST", "GET", "DELETE"], wrong):
        fields = {**client.headers, "mcp-protocol-version": header}
        reply = http.post(call(), **fields) if method == "POST" else http.send(method, fields)
        assert reply.status == 400, (method, header)
        assert len(reply.body) < 400
    assert set(reasons(http)) == {PeerFault.UNSUPPORTED_VERSION}
    http.said.clear()
    assert client.call("ping", mcp_protocol_version=version).status == 200
    absent = client.call("ping", mcp_protocol_version=None)
    required = version >= "2025-06-18"
    assert absent.status == (400 if strict and required else 200)
    assert len(http.of(DeviationTolerated)) == (required and not strict)
    assert not strict or not required or reasons(http) == [PeerFault.MISSING_HEADER]


@pytest.mark.case("L-03", "L-04")
@EACH
def test_requests_are_served_before_the_confirmation(version: str) -> None:
    http = Http()
    opening = http.post(initialize(version))
    fields = {"mcp-session-id": opening.headers["mcp-session-id"], "mcp-protocol-version": version}
    assert http.post(call("ping"), **fields).json["result"] == {}
    assert http.post(call("logging/setLevel", {"level": "debug"}, id=2), **fields).json["result"] == {}
    reply = http.post(call("tools/list", id=3), **fields)
    assert http.post(INITIALIZED, **fields).status == 202
    http.answer({"tools": []})
    assert reply.status == 200


@EACH
def test_a_session_is_not_opened_twice(version: str) -> None:
    http = Http()
    client = Client(http, version)
    reply = client.post(initialize(version, id=9))
    assert (reply.status, reply.code, reply.json["id"]) == (400, -32600, 9)
    assert len(http.server.sessions) == 1
    assert client.call("ping").status == 200


@pytest.mark.case("L-05")
@EACH
def test_delete_ends_a_session(version: str) -> None:
    http = Http()
    client, other = Client(http, version), Client(http, version)
    waiting = client.call(id=1)
    streaming = client.call("tools/list", PROGRESS, id=2)
    http.progress(1)
    standalone = client.get()
    assert client.delete().status == 204
    assert (waiting.status, waiting.type.startswith("text/plain")) == (404, True)
    assert (streaming.status, streaming.ended, standalone.ended) == (200, True, True)
    assert len(http.of(RequestCancelled)) == 2
    ended = http.one(SessionEnded)
    assert ended.session is http.of(SessionStarted)[0].session
    assert http.answer() is False
    for reply in (client.call(), client.get(), client.delete(), client.post(INITIALIZED)):
        assert reply.status == 404
    assert other.call("ping").status == 200
    assert http.server.stats()["sessions"] == 1


@pytest.mark.req("P10")
@pytest.mark.case("L-06")
def test_sessions_are_bounded() -> None:
    http = Http(sessions=SessionPolicy(max_sessions=3, confirm_timeout=60.0))
    clients = [Client(http) for _ in range(3)]
    refused = http.post(initialize())
    assert (refused.status, refused.headers["retry-after"]) == (503, "10")
    assert http.one(LimitHit).limit == "max_sessions"
    assert clients[0].delete().status == 204
    assert http.post(initialize()).status == 200
    assert http.post(initialize()).status == 503


@pytest.mark.req("P10")
@pytest.mark.case("L-06")
def test_sessions_that_nobody_uses_end() -> None:
    http = Http(sessions=SessionPolicy(idle_timeout=100.0, confirm_timeout=10.0))
    for _ in range(50):
        http.post(initialize())
    used = Client(http)
    assert http.server.stats()["sessions"] == 51
    http.advance(10)
    assert http.server.stats()["sessions"] == 1, "those of which nothing more was heard"
    assert {e.limit for e in http.of(LimitHit)} == {"confirm_timeout"}
    http.advance(89)
    assert used.call("ping").status == 200
    http.advance(99)
    assert used.call("ping").status == 200
    http.said.clear()
    http.advance(100)
    assert http.one(LimitHit).limit == "idle_timeout"
    assert http.one(SessionEnded).session is not None
    assert used.call("ping").status == 404
    assert http.server.next_timeout() is None


@pytest.mark.req("P10")
def test_a_session_that_is_worked_for_or_listens_is_not_idle() -> None:
    http = Http(sessions=SessionPolicy(idle_timeout=100.0), keep_alive=None)
    working, listening, left = Client(http), Client(http), Client(http)
    working.call()
    request = http.request
    stream = listening.get()
    left.call()
    http.leave(http.replies[len(http.replies)])
    http.advance(500)
    assert http.server.stats()["sessions"] == 3
    http.leave(stream)
    http.answer({}, request)
    http.advance(99)
    assert http.server.stats()["sessions"] == 3
    http.advance(1)
    assert http.server.stats()["sessions"] == 1, "the handler of a client that left still works"
    assert left.call("ping", id=2).status == 200
    http.answer({}, [e.request for e in http.of(RequestReceived)][-1])
    http.advance(100)
    assert http.server.stats()["sessions"] == 0


@pytest.mark.parametrize("name", ["idle_timeout", "confirm_timeout", "reconnect_after"])
def test_times_are_positive(name: str) -> None:
    with pytest.raises(LocalProtocolError, match=name):
        SessionPolicy(**{name: 0.0})  # type: ignore[arg-type]


def test_entropy_that_repeats_itself_opens_no_second_session() -> None:
    http = Http(entropy=lambda size: b"x" * size)
    first = Client(http)
    with pytest.raises(LocalProtocolError, match="entropy"):
        http.post(initialize())
    assert first.call("ping").status == 200


@EACH
def test_the_end_of_the_server_ends_the_sessions(version: str) -> None:
    http = Http()
    client = Client(http, version)
    waiting = client.call()
    stream = client.get()
    http.server.close(0.0)
    http.drain()
    assert (waiting.status, stream.ended) == (503, True), "not 404: another session would not help"
    assert [e.session is None for e in http.of(SessionEnded)] == [False, True]
    assert client.call().status == 503
    assert http.server.next_timeout() is None
    assert sum(http.server.stats().values()) == 0


# messages ---------------------------------------------------------------------------------------


@pytest.mark.req("R3")
@pytest.mark.case("H-02", "J-08", "J-09")
@EACH
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (note("notifications/cancelled", {"requestId": 5}), 202),
        (note("notifications/vendor"), 202),
        ({"jsonrpc": "2.0", "id": 77, "result": {}}, 202),
        ({"jsonrpc": "2.0", "id": 77, "error": {"code": 1, "message": "x"}}, 202),
        ({"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}}, 202),
        ({"jsonrpc": "2.0", "id": 77, "result": {}, "error": {}}, 400),
        ({"jsonrpc": "2.0", "id": 77, "result": 5}, 400),
        (note("notifications/vendor", [1]), 400),
        (note("tools/call", {"name": "rm"}), 400),
    ],
)
def test_what_wants_no_answer_is_accepted_without_a_body(version: str, body: Any, status: int) -> None:
    http = Http()
    reply = Client(http, version).post(body)
    assert (reply.status, reply.ended) == (status, True)
    if status == 202:
        assert (reply.body, reply.headers) == (b"", {})
    else:
        assert reply.type.startswith("text/plain")
        assert reasons(http)
    assert not http.of(RequestReceived)


def test_an_own_notification_names_its_session() -> None:
    http = Http()
    Client(http)
    client = Client(http)
    client.post(note("notifications/roots/list_changed"))
    assert http.one(NotificationReceived).session is http.server.sessions[1]


@pytest.mark.case("J-03", "J-06", "J-08", "J-09")
@EACH
@pytest.mark.parametrize(
    ("body", "status", "code", "id"),
    [
        (5, 400, -32600, None),
        ({}, 400, -32600, None),
        ({**call(), "id": None}, 400, -32600, None),
        ({**call(), "id": 1.5}, 400, -32600, None),
        ({**call(), "jsonrpc": "1.0"}, 400, -32600, 1),
        ({**call(), "params": [1]}, 200, -32602, 1),
        ({**INITIALIZED, "id": 4}, 400, -32600, 4),
        (call("no/such"), 200, -32601, 1),
        (call("server/discover"), 200, -32601, 1),
        (b"{", 400, -32700, None),
    ],
)
def test_errors_have_the_status_of_older_revisions(
    version: str, body: Any, status: int, code: int, id: Any
) -> None:
    http = Http()
    client = Client(http, version)
    for _ in range(3):
        reply = client.post(body)
        assert (reply.status, reply.code, reply.json["id"]) == (status, code, id)


@pytest.mark.case("J-11")
@EACH
def test_an_id_in_use_is_refused_and_another_session_may_use_it(version: str) -> None:
    http = Http()
    client, other = Client(http, version), Client(http, version)
    first = client.call(id=1)
    request = http.request
    second = client.call(id=1)
    assert (second.status, second.code) == (400, -32600)
    foreign = other.call(id=1)
    assert client.call(id="1").status is None, "the text is another id"
    http.answer({"tools": [1]}, request)
    assert first.json["result"] == {"tools": [1]}
    assert foreign.waits


@pytest.mark.case("V-11")
@EACH
def test_modern_requests_pass_a_session_by(version: str) -> None:
    http = Http()
    client = Client(http, version)
    reply = http.ask("tools/list", mcp_session_id=client.session)
    http.answer({"tools": []})
    assert reply.json["result"]["resultType"] == "complete"
    mismatch = client.call("tools/list", {"_meta": meta()})
    assert (mismatch.status, mismatch.code) == (400, -32020)


@pytest.mark.req("B14")
@pytest.mark.case("J-10")
@EACH
def test_batches_are_of_one_revision(version: str) -> None:
    http = Http(limits=Limits(max_batch=4))
    client = Client(http, version)
    reply = client.post([call("ping", id=1), INITIALIZED, call("tools/list", id=2)])
    if version != "2025-03-26":
        assert (reply.status, reply.code, reply.json["id"]) == (400, -32600, None)
        assert not http.of(RequestReceived)
        return
    assert reply.waits
    http.answer({"tools": []})
    assert [m["id"] for m in reply.json] == [1, 2]
    assert client.post([INITIALIZED, note("notifications/x")]).status == 202
    assert client.post([{"jsonrpc": "2.0", "id": 1, "result": {}}]).status == 202
    assert client.post([]).code == -32600
    assert client.post([call("ping", id=n) for n in range(5)]).code == -32600
    assert http.server.stats()["exchanges"] == 0


def test_a_batch_with_progress_is_a_stream() -> None:
    http = Http()
    client = Client(http, "2025-03-26")
    reply = client.post([call("tools/list", PROGRESS, id=1), call("tools/list", id=2)])
    first, second = [e.request for e in http.of(RequestReceived)]
    http.progress(1, first)
    http.answer({"n": 2}, second)
    http.answer({"n": 1}, first)
    told, answers = reply.messages
    assert told["method"] == "notifications/progress"
    assert [(m["id"], m["result"]["n"]) for m in answers] == [(2, 2), (1, 1)]
    assert reply.ended


@pytest.mark.parametrize(("cancelled", "status"), [([1], 200), ([1, 2], 204)], ids=["one of two", "both"])
def test_cancelled_members_of_a_batch_have_no_answer(cancelled: list[int], status: int) -> None:
    http = Http()
    client = Client(http, "2025-03-26")
    reply = client.post([call("tools/list", id=1), call("tools/list", id=2)])
    for id_ in cancelled:
        client.post(note("notifications/cancelled", {"requestId": id_}))
    if cancelled == [1]:
        http.answer({"tools": []})
        assert [m["id"] for m in reply.json] == [2]
    assert (reply.status, reply.ended) == (status, True)
    assert http.server.stats()["exchanges"] == http.server.stats()["working"] == 0


@pytest.mark.case("J-10")
@pytest.mark.parametrize(
    ("members", "status", "codes"),
    [
        ([1, "x"], 200, [-32600]),
        ([{"jsonrpc": "2.0", "method": "x", "id": None}], 200, [-32600]),
        ([{**call(), "jsonrpc": "1.0"}, INITIALIZED], 200, [-32600]),
        ([initialize()], 200, [-32600]),
        ([{"jsonrpc": "2.0", "id": 1, "result": 5}], 400, None),
        ([note("notifications/x", [1])], 400, None),
    ],
)
def test_a_batch_of_nothing_good_is_refused_member_by_member(
    members: Any, status: int, codes: list[int] | None
) -> None:
    http = Http()
    client = Client(http, "2025-03-26")
    reply = client.post(members)
    assert (reply.status, reply.ended) == (status, True)
    if codes is not None:
        assert [m["error"]["code"] for m in reply.json] == codes
    again = client.post(members)
    assert again.ended, "an exchange cannot stay without a response"
    assert http.server.stats()["exchanges"] == http.server.stats()["working"] == 0
    assert reasons(http)


# questions of the server ------------------------------------------------------------------------

SAMPLE: dict[str, Any] = {"messages": [], "maxTokens": 1}


@EACH
def test_a_question_goes_on_the_stream_of_its_request(version: str) -> None:
    http = Http()
    client = Client(http, version, capabilities=EVERYTHING)
    standalone = client.get()
    reply = client.call("tools/call", {"name": "x"})
    asked = http.server.request("sampling/createMessage", SAMPLE, now=0.0, related=http.request)
    http.drain()
    (question,) = reply.messages
    assert question["method"] == "sampling/createMessage"
    assert standalone.messages == []
    answer = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
    accepted = client.post({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    assert accepted.status == 202
    assert http.one(ResultReady).call is asked
    assert http.one(ResultReady).raw == answer
    http.answer({"content": []})
    assert reply.messages[-1]["result"] == {"content": []}
    assert reply.ended
    assert http.server.stats()["session_calls"] == 0


@EACH
def test_a_question_of_its_own_goes_on_the_standalone_stream(version: str) -> None:
    http = Http()
    client = Client(http, version, capabilities=EVERYTHING)
    (session,) = http.server.sessions
    assert session.revision == version
    assert session.client_info is not None
    waits = http.server.request("roots/list", now=0.0, session=session)
    http.drain()
    stream = client.get()
    (question,) = stream.messages
    assert question["method"] == "roots/list"
    client.post({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no"}})
    failed = http.one(RequestFailed)
    assert failed.call is waits
    assert isinstance(failed.error, McpError)


@pytest.mark.case("H-13")
@pytest.mark.parametrize("why", ["takes no stream", "left"])
def test_a_question_that_cannot_be_asked_fails_at_once(why: str) -> None:
    http = Http()
    client = Client(http, capabilities=EVERYTHING)
    accept = "application/json" if why == "takes no stream" else BOTH
    reply = client.call("tools/call", {"name": "x"}, accept=accept)
    if why == "left":
        http.leave(reply)
    with pytest.raises(LocalProtocolError, match="left, or takes no event stream"):
        http.server.request("sampling/createMessage", SAMPLE, now=0.0, related=http.request)
    assert http.server.stats()["session_calls"] == 0
    assert http.answer()


def test_a_question_for_a_client_that_left_its_stream_waits_there() -> None:
    http = Http()
    client = Client(http, capabilities=EVERYTHING)
    reply = client.call("tools/call", {"name": "x", **PROGRESS})
    http.progress(1)
    http.leave(reply)
    http.server.request("sampling/createMessage", SAMPLE, now=0.0, related=http.request)
    http.drain()
    assert [m["method"] for m in client.get(last_event_id="2-1").messages] == ["sampling/createMessage"]


def test_questions_have_deadlines_and_can_be_cancelled() -> None:
    http = Http(keep_alive=None)
    client = Client(http, capabilities=EVERYTHING)
    reply = client.call("tools/call", {"name": "x"})
    late = http.server.request("sampling/createMessage", SAMPLE, now=0.0, related=http.request, timeout=5.0)
    assert http.server.next_timeout() == 5.0
    http.advance(5)
    failed = http.one(RequestFailed)
    assert failed.call is late
    assert isinstance(failed.error, CallTimeout)
    assert [m["method"] for m in reply.messages] == ["sampling/createMessage", "notifications/cancelled"]
    unwanted = http.server.request("sampling/createMessage", SAMPLE, now=5.0, related=http.request)
    http.server.cancel(unwanted, now=5.0, reason="no need")
    http.server.cancel(unwanted, now=5.0)
    http.drain()
    assert isinstance(http.of(RequestFailed)[1].error, CallCancelled)
    assert reply.messages[-1]["params"]["reason"] == "no need"
    orphan = http.server.request("sampling/createMessage", SAMPLE, now=5.0, related=http.request)
    http.answer({"content": []})
    assert reply.ended
    http.server.cancel(orphan, now=5.0)
    http.drain()
    (told,) = client.get().messages
    assert told["method"] == "notifications/cancelled", "its own stream is over"
    stranger = opened(client_capabilities=EVERYTHING).engine.request("roots/list", now=0.0)
    with pytest.raises(LocalProtocolError, match="not a call of this server"):
        http.server.cancel(stranger, now=5.0)


def test_the_end_of_a_session_is_the_end_of_its_questions() -> None:
    http = Http()
    client = Client(http, capabilities=EVERYTHING)
    http.server.request("roots/list", now=0.0, session=http.server.sessions[0])
    client.delete()
    http.one(RequestFailed)
    assert http.server.stats()["session_calls"] == 0
    assert http.server.next_timeout() is None


def test_a_broken_answer_fails_the_question() -> None:
    http = Http()
    client = Client(http, capabilities=EVERYTHING)
    stream = client.get()
    http.server.request("roots/list", now=0.0, session=http.server.sessions[0])
    http.drain()
    id_ = stream.messages[0]["id"]
    assert client.post({"jsonrpc": "2.0", "id": id_, "result": 5}).status == 400
    http.one(RequestFailed)


# questions, at the engine -----------------------------------------------------------------------


def test_a_question_is_related_to_an_open_request_of_its_session() -> None:
    driver = opened(client_capabilities=EVERYTHING)
    received = ask(driver, NEWEST, "tools/list")
    made = driver.engine.request("roots/list", now=0.0, related=received)
    driver.drain()
    (sent,) = driver.wired(SendRequest)
    assert sent.related is received
    assert made.related is received
    assert driver.engine.request("roots/list", now=0.0).related is None
    modern = ask(driver, MODERN, "tools/list", id=2)
    other: Driver = opened(client_capabilities=EVERYTHING)
    foreign = ask(other, NEWEST, "tools/list")
    driver.engine.respond(received, {"tools": []}, now=0.0)
    for wrong in (modern, foreign, received):
        with pytest.raises(LocalProtocolError, match="not open in this session"):
            driver.engine.request("roots/list", now=0.0, related=wrong)
