"""HTTP+SSE of 2024-11-05, the server's side: how it is spoken, bounded, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import (
    LEGACY_REVISIONS,
    ConnectionEnded,
    EraDecided,
    Legacy,
    LimitHit,
    Limits,
    ListChanged,
    ListKind,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    ProgressReported,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResultReady,
    Revision,
    SessionEnded,
    SessionStarted,
)
from sansmcp.events import NotificationReceived
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.old_sse_server import OldSsePaths

from .http_client_support import CUTS, TEXT
from .http_support import (
    EVERYTHING,
    INITIALIZED,
    PROGRESS,
    Client,
    Http,
    Reply,
    call,
    initialize,
    note,
    reasons,
)
from .support import LEGACY, MODERN, meta
from .test_http_pair import Pair

OLDEST = LEGACY[0]
EACH = pytest.mark.parametrize("version", LEGACY)
SSE = "text/event-stream"


def serving(**options: Any) -> Http:
    """A server that speaks HTTP+SSE."""
    return Http(**{"old_sse": OldSsePaths(), **options})


class OldClient:
    """A client of HTTP+SSE: its stream, and where its messages go to."""

    def __init__(self, http: Http, version: str | None = OLDEST, *, capabilities: Any = None) -> None:
        self.http = http
        self.stream = http.send("GET", {"accept": SSE}, target="/sse")
        first = self.stream.events[0]
        assert first.event == "endpoint"
        self.endpoint = first.data.decode()
        if version is not None:
            assert self.post(initialize(version, capabilities=capabilities)).status == 202
            assert self.last["result"]["protocolVersion"] == version
            assert self.post(INITIALIZED).status == 202

    def post(self, body: Any, /, **headers: Any) -> Reply:
        """Send a message as the oldest clients do, which say nothing of what they accept."""
        return self.http.send(
            "POST", {"content-type": "application/json", **headers}, body, target=self.endpoint
        )

    def call(self, method: str = "tools/list", params: Any = None, *, id: Any = 1) -> Reply:
        return self.post(call(method, params, id=id))

    @property
    def heard(self) -> list[Any]:
        """The messages on its stream."""
        _, *events = self.stream.events
        assert {e.event for e in events} <= {"message"}
        assert {e.id for e in self.stream.events} == {None}, "nothing can be resumed"
        return [json.loads(e.data) for e in events]

    @property
    def last(self) -> Any:
        return self.heard[-1]


def left(http: Http) -> dict[str, int]:
    """What is not empty."""
    return {name: size for name, size in http.server.stats().items() if size}


# how it is spoken ----------------------------------------------------------------------------------


@pytest.mark.req("P8", "A17")
@EACH
def test_messages_are_acknowledged_and_answered_on_the_stream(version: str) -> None:
    http = serving()
    client = OldClient(http, version)
    assert (client.stream.status, client.stream.ended) == (200, False)
    assert client.stream.headers["cache-control"] == "no-cache, no-transform"
    assert client.endpoint.startswith("/messages?sessionId=")
    assert len(client.endpoint) >= 60
    started = http.one(SessionStarted)
    assert started.revision == version
    assert http.server.sessions == (started.session,)
    reply = client.call(id="a")
    assert (reply.status, reply.body, reply.ended) == (202, b"", True)
    assert http.server.session_of(http.request) is started.session
    assert http.answer({"tools": [], "resultType": "complete"})
    assert client.last == {"jsonrpc": "2.0", "id": "a", "result": {"tools": []}}
    client.call("ping", id=2)
    assert client.last == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.req("P8")
def test_it_is_off_unless_it_is_asked_for() -> None:
    for path in ("/sse", "/messages?sessionId=1"):
        assert Http().send("GET", {"accept": SSE}, target=path).status == 404
        assert Http().post(INITIALIZED, target=path).status == 404


@pytest.mark.req("P8")
def test_it_can_be_elsewhere() -> None:
    paths = OldSsePaths("/old", "/old/post")
    for path in ("/mcp", None):
        http = serving(old_sse=paths, path=path)
        stream = http.send("GET", {"accept": SSE}, target="/old")
        assert stream.events[0].data.startswith(b"/old/post?")
        assert Client(http).call("ping").status == 200, "beside Streamable HTTP"


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: OldSsePaths("sse"),
        lambda: OldSsePaths("/a?b"),
        lambda: OldSsePaths("/a#b"),
        lambda: OldSsePaths("/a\nb"),
        lambda: OldSsePaths("/ü"),
        lambda: OldSsePaths("/a", "/a"),
        lambda: serving(path="/sse"),
        lambda: serving(path="/messages"),
        lambda: serving(legacy=False),
        lambda: serving(revisions=[Revision.V2026_07_28]),
    ],
)
def test_what_cannot_be_is_told_at_once(wrong: Any) -> None:
    with pytest.raises(LocalProtocolError):
        wrong()


@pytest.mark.req("P8")
@pytest.mark.case("W-05")
def test_the_modern_revision_is_not_spoken_over_it() -> None:
    http = serving()
    client = OldClient(http, None)
    params = {"_meta": meta()}
    for method in ("server/discover", "tools/list"):
        client.post({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        error = client.last["error"]
        assert (client.last["id"], error["code"]) == (method, -32022)
        assert MODERN not in error["data"]["supported"]
    client.post(initialize(MODERN))
    assert client.last["result"]["protocolVersion"] == LEGACY[-1]
    client.post({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": params})
    assert client.last["error"]["code"] == -32022
    assert not http.of(RequestReceived)


@pytest.mark.req("P8", "B14")
@EACH
def test_batches_are_served_in_their_revision(version: str) -> None:
    http = serving()
    client = OldClient(http, version)
    reply = client.post([call("ping", id=1), call("tools/list", id=2), note("notifications/x")])
    assert reply.status == 202
    if version != "2025-03-26":
        assert client.last["error"]["code"] == -32600
        assert not http.of(RequestReceived)
        return
    http.answer({"tools": []})
    assert [m["id"] for m in client.last] == [1, 2]
    assert http.one(NotificationReceived).session is http.server.sessions[0]


@pytest.mark.req("P8")
@pytest.mark.case("J-03", "J-06", "J-08", "J-09", "J-14")
@pytest.mark.parametrize(
    ("body", "id", "code"),
    [
        (call("nothing/such", id=5), 5, -32601),
        ({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": [1]}, 5, -32602),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, None, -32600),
        ({"jsonrpc": "2.0", "id": 5}, 5, -32600),
        ({**initialize(), "id": 5}, 5, -32600),
        (7, None, -32600),
    ],
)
def test_errors_go_on_the_stream(body: Any, id: Any, code: int) -> None:
    http = serving()
    client = OldClient(http)
    before = len(client.heard)
    assert client.post(body).status == 202
    (answer,) = client.heard[before:]
    assert (answer.get("id"), answer["error"]["code"]) == (id, code)
    assert http.of(MessageIgnored)
    client.call("ping")
    assert client.last["result"] == {}


@pytest.mark.req("P8", "R6", "R7")
@pytest.mark.parametrize(
    ("method", "target", "headers", "body", "status", "fault"),
    [
        ("GET", "/sse", {"accept": "application/json"}, b"", 406, PeerFault.WRONG_MEDIA_TYPE),
        ("GET", "/sse", {"origin": "https://evil.example"}, b"", 403, PeerFault.FOREIGN_ORIGIN),
        ("GET", "/sse", {"host": "evil.example"}, b"", 421, PeerFault.FOREIGN_HOST),
        ("POST", "/sse", {}, b"{}", 405, PeerFault.WRONG_ENDPOINT),
        ("DELETE", "/sse", {}, b"", 405, PeerFault.WRONG_ENDPOINT),
        ("GET", "/messages", {}, b"", 405, PeerFault.WRONG_ENDPOINT),
        ("DELETE", "{endpoint}", {}, b"", 405, PeerFault.WRONG_ENDPOINT),
        ("POST", "/messages", {}, b"{}", 400, PeerFault.UNKNOWN_SESSION),
        ("POST", "/messages?session=1", {}, b"{}", 400, PeerFault.UNKNOWN_SESSION),
        ("POST", "/messages?sessionId=1", {}, b"{}", 404, PeerFault.UNKNOWN_SESSION),
        ("POST", "{endpoint}", {"content-type": "text/plain"}, b"{}", 415, PeerFault.WRONG_MEDIA_TYPE),
        ("POST", "{endpoint}", {"origin": "null"}, b"{}", 403, PeerFault.FOREIGN_ORIGIN),
        ("POST", "{endpoint}", {"host": "evil.example"}, b"{}", 421, PeerFault.FOREIGN_HOST),
        ("POST", "{endpoint}", {}, b'{"x":"' + b"x" * 1000 + b'"}', 413, PeerFault.BODY_TOO_LARGE),
        ("POST", "{endpoint}", {}, b"{nope", 400, PeerFault.INVALID_JSON),
    ],
)
def test_what_is_refused(
    method: str, target: str, headers: Any, body: bytes, status: int, fault: PeerFault
) -> None:
    http = serving(limits=Limits(max_body=500))
    client = OldClient(http)
    heard = len(client.heard)
    typed = {"content-type": "application/json"} if method == "POST" else {"accept": SSE}
    place = target.format(endpoint=client.endpoint)
    reply = http.send(method, {**typed, **headers}, body, target=place)
    assert (reply.status, reply.ended) == (status, True)
    assert reasons(http) == [fault]
    assert len(client.heard) == heard
    assert (len(http.server.sessions), client.stream.ended) == (1, False)
    if status == 405:
        assert reply.headers["allow"] == ("GET" if target == "/sse" else "POST")


@pytest.mark.req("P8", "P12")
def test_headers_of_newer_transports_mean_nothing() -> None:
    http = serving()
    client = OldClient(http, "2025-06-18")
    assert (
        client.post(call("ping"), **{"mcp-protocol-version": "2099-01-01", "mcp-session-id": "x"}).status
        == 202
    )
    assert client.last["result"] == {}
    session = client.endpoint.partition("=")[2]
    named = {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
    assert http.post(call("ping"), **named).status == 404, "it is a session of this transport alone"
    streamable = Client(http)
    address = f"/messages?sessionId={streamable.session}"
    assert http.post(call("ping"), target=address).status == 404


# what the server says --------------------------------------------------------------------------------


@pytest.mark.req("P8", "W14", "J1")
def test_everything_goes_on_the_stream() -> None:
    http = serving()
    client, other = OldClient(http), OldClient(http)
    client.call("tools/list", PROGRESS)
    http.progress(1)
    assert client.last["method"] == "notifications/progress"
    assert http.server.notify_changed(ListKind.TOOLS, now=http.now)
    assert http.server.log("error", "x", now=http.now)
    http.drain()
    for one in (client, other):
        assert [m["method"] for m in one.heard[-2:]] == [
            "notifications/tools/list_changed",
            "notifications/message",
        ]
    assert not http.server.hang_up(http.request, now=http.now), "nobody would come back for it"
    assert http.answer()
    assert client.last["id"] == 1


@pytest.mark.req("P8")
@EACH
def test_a_client_is_asked_on_its_stream(version: str) -> None:
    http = serving()
    client = OldClient(http, version, capabilities=EVERYTHING)
    client.call()
    related = http.request
    ways: list[dict[str, Any]] = [{"related": related}, {"session": http.server.sessions[0]}]
    for way in ways:
        asked = http.server.request("roots/list", now=http.now, **way)
        http.drain()
        assert client.last["method"] == "roots/list"
        assert http.server.stats()["session_calls"] == 1
        client.post({"jsonrpc": "2.0", "id": client.last["id"], "result": {"roots": []}})
        assert http.of(ResultReady)[-1].call is asked
    asked = http.server.request("roots/list", now=http.now, related=related)
    http.server.cancel(asked, now=http.now)
    http.drain()
    assert client.last["method"] == "notifications/cancelled"
    http.server.cancel(asked, now=http.now)
    timed = http.server.request("ping", now=http.now, related=related, timeout=5.0)
    http.advance(6.0)
    assert timed.done
    lost = http.server.request("roots/list", now=http.now, related=related)
    http.leave(client.stream)
    assert http.of(RequestFailed)[-1].call is lost
    assert left(http) == {}
    http.server.cancel(lost, now=http.now)


@pytest.mark.req("P8", "R8")
def test_a_silent_stream_is_kept_alive() -> None:
    http = serving(keep_alive=15.0)
    client = OldClient(http)
    http.advance(100.0)
    assert client.stream.comments == 6
    assert not client.stream.ended


# bounds and ends -----------------------------------------------------------------------------------


@pytest.mark.req("P8", "P10")
@pytest.mark.case("L-06")
def test_one_cap_is_for_all_sessions() -> None:
    http = serving(sessions=SessionPolicy(max_sessions=2))
    client, _ = OldClient(http), Client(http)
    refused = http.send("GET", {"accept": SSE}, target="/sse")
    assert (refused.status, refused.headers["retry-after"]) == (503, "10")
    assert http.post(initialize()).status == 503
    assert [e.limit for e in http.of(LimitHit)] == ["max_sessions"] * 2
    assert http.server.stats()["sessions"] == 2
    http.leave(client.stream)
    OldClient(http)


@pytest.mark.req("P8", "P10")
def test_streams_are_bounded_with_all_exchanges() -> None:
    http = serving(max_exchanges=1)
    OldClient(http)
    assert http.send("GET", {"accept": SSE}, target="/sse").status == 503
    assert http.one(LimitHit).limit == "max_exchanges"
    assert len(http.server.sessions) == 1


@pytest.mark.req("P8", "P10")
def test_who_opens_no_session_is_let_go_and_who_listens_is_not() -> None:
    http = serving(sessions=SessionPolicy(confirm_timeout=60.0, idle_timeout=100.0))
    quiet, listening = OldClient(http, None), OldClient(http)
    assert http.server.notify_changed(ListKind.TOOLS, now=http.now)
    assert quiet.heard == []
    for _ in range(5):
        quiet.call("ping")  # which opens nothing
        http.advance(11.0)
    assert not quiet.stream.ended
    http.advance(6.0)
    assert quiet.stream.ended
    assert http.one(LimitHit).limit == "confirm_timeout"
    assert not http.of(SessionEnded), "none had started"
    http.advance(10_000.0)
    assert not listening.stream.ended
    assert len(http.of(LimitHit)) == 1
    assert quiet.post(INITIALIZED).status == 404


@pytest.mark.req("P8", "P10")
def test_open_requests_are_bounded_and_the_rest_is_taken() -> None:
    http = serving(sessions=SessionPolicy(max_open_requests=2))
    client, other = OldClient(http), OldClient(http)
    assert [client.call(id=n).status for n in (1, 2, 3)] == [202, 202, 429]
    assert http.one(LimitHit).limit == "max_open_requests"
    assert http.server.stats()["working"] == 2
    assert other.call().status == 202
    assert client.post(note("notifications/cancelled", {"requestId": 1})).status == 202
    assert http.one(RequestCancelled).request.id == 1
    assert http.server.stats()["working"] == 2
    assert client.call(id=4).status == 202


@pytest.mark.req("P8")
def test_the_session_ends_with_the_stream() -> None:
    http = serving()
    client, other = OldClient(http), OldClient(http)
    client.call(id=1)
    mine = http.request
    other.call(id=1)
    http.leave(client.stream)
    ended = http.one(SessionEnded)
    assert ended.session is http.of(SessionStarted)[0].session
    assert isinstance(ended.error, ConnectionEnded)
    assert http.one(RequestCancelled).request is mine
    assert not http.answer({}, mine)
    assert client.post(INITIALIZED).status == 404
    assert http.answer({"tools": []})
    assert other.last["id"] == 1
    http.leave(other.stream)
    assert left(http) == {}
    assert http.server.next_timeout() is None


@pytest.mark.req("P8")
def test_close_ends_every_session() -> None:
    http = serving()
    clients = [OldClient(http), OldClient(http, None), OldClient(http, LEGACY[-1])]
    clients[0].call()
    http.server.close(http.now)
    http.drain()
    assert all(client.stream.ended for client in clients)
    assert len([e for e in http.of(SessionEnded) if e.session is not None]) == 2
    assert len(http.of(RequestCancelled)) == 1
    assert clients[0].post(INITIALIZED).status == 503
    assert http.send("GET", {"accept": SSE}, target="/sse").status == 503
    assert left(http) == {}
    assert http.server.next_timeout() is None


@pytest.mark.req("P8")
@pytest.mark.case("J-11")
def test_no_secret_is_shown() -> None:
    http = serving()
    client = OldClient(http)
    secret = client.endpoint.partition("=")[2]
    client.call()
    client.call()  # the same id while that is open
    assert client.last["error"]["code"] == -32600
    http.leave(client.stream)
    client.post(INITIALIZED)
    assert secret not in f"{http.said} {http.request} {http.request.origin} {http.request.params}"


@pytest.mark.req("P8", "W11")
@pytest.mark.case("J-11")
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_equal_ids_of_several_clients_do_not_meet(data: st.DataObject) -> None:
    """Any order of questions, answers and leavings: each hears of its own, and nothing stays."""
    http = serving()
    clients: list[OldClient | Client] = [OldClient(http), OldClient(http, LEGACY[-1]), Client(http)]
    streams: dict[int, list[Reply]] = {n: [] for n in range(3)}
    waiting: list[tuple[int, Any]] = []
    used = [0, 0, 0]
    for _ in range(data.draw(st.integers(1, 20))):
        who = data.draw(st.integers(0, 2))
        client = clients[who]
        if bool(waiting) and data.draw(st.booleans()):
            owner, request = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            http.answer({"tools": [], "owner": owner}, request)
        else:
            used[who] += 1
            streams[who].append(client.call(id=used[who]))
            waiting.append((who, http.request))
    for owner, request in waiting:
        http.answer({"tools": [], "owner": owner}, request)
    for who, client in enumerate(clients):
        if isinstance(client, OldClient):
            answers = [m for m in client.heard if m["id"] != "init"]
        else:
            answers = [reply.json for reply in streams[who]]
        assert {m["result"]["owner"] for m in answers} <= {who}
        assert sorted(m["id"] for m in answers) == list(range(1, used[who] + 1))
        if isinstance(client, OldClient):
            http.leave(client.stream)
        else:
            client.delete()
    assert left(http) == {}


# our own client against it -----------------------------------------------------------------------------


def paired(version: str, *, use: OldSseUse = OldSseUse.AUTO, cut: Any = None, **options: Any) -> Pair:
    server = {"old_sse": OldSsePaths(), **options.pop("server", {})}
    http = {"old_sse": use}
    url = "http://localhost:3000/sse"
    return Pair(version, server=server, url=url, http=http, cut=cut, **options).start()


@pytest.mark.req("P7", "P8", "P9", "J1")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("version", [MODERN, *LEGACY])
@pytest.mark.parametrize("use", [OldSseUse.AUTO, OldSseUse.ONLY])
def test_our_client_finds_and_speaks_it(use: OldSseUse, version: str, cut: Any) -> None:
    if version == MODERN and use is OldSseUse.ONLY:
        pair = paired(version, use=use, cut=cut, mode=Legacy())
    else:
        pair = paired(version, use=use, cut=cut)
    spoken = LEGACY[-1] if version == MODERN else version
    assert pair.link.one(EraDecided).revision == spoken
    call = pair.call(text="hi")
    pair.server.report_progress(pair.asked, 1, now=pair.now)
    pair.respond()
    assert [e.progress for e in pair.link.of(ProgressReported)] == [1]
    assert pair.link.one(ResultReady).call is call
    pair.server.notify_changed(ListKind.TOOLS, now=pair.now)
    pair.pump()
    assert pair.link.one(ListChanged).kind is ListKind.TOOLS
    cancelled = pair.call()
    pair.link.engine.cancel(cancelled, now=pair.now)
    pair.pump()
    assert [e.request for e in pair.heard if isinstance(e, RequestCancelled)] == [pair.asked]
    pair.client.close(pair.now)
    pair.pump()
    assert pair.client.finished
    assert pair.server.sessions == ()


@pytest.mark.req("P8")
@pytest.mark.parametrize("version", LEGACY)
def test_our_client_is_asked(version: str) -> None:
    pair = paired(version)
    pair.call()
    asked = pair.server.request("ping", now=pair.now, related=pair.asked)
    pair.pump()
    assert [e.call for e in pair.heard if isinstance(e, ResultReady)] == [asked]
    pair.respond()
    pair.link.one(ResultReady)


@pytest.mark.req("P8")
@pytest.mark.case("W-02")
def test_our_client_loses_all_with_the_stream() -> None:
    pair = paired(LEGACY[-1])
    call = pair.call()
    pair.cut_off()
    failed = pair.link.one(RequestFailed)
    assert failed.call is call
    assert not isinstance(failed.error, McpError)
    assert pair.server.sessions == ()
    assert len([e for e in pair.heard if isinstance(e, RequestCancelled)]) == 1


@pytest.mark.req("P8", "P9")
def test_our_client_takes_streamable_http_where_both_are() -> None:
    pair = Pair(LEGACY[-1], server={"old_sse": OldSsePaths()}).start()
    pair.call(text=TEXT)
    pair.respond()
    pair.link.one(ResultReady)
    assert not any(r.target.startswith(("/sse", "/messages")) for r in pair.requests)
    assert {r.value for r in LEGACY_REVISIONS} == set(LEGACY)
