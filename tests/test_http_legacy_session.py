"""What a legacy session was told: its streams, who comes back for them, what is kept."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from sansmcp import (
    Harmless,
    LimitHit,
    ListKind,
    PeerFault,
    RequestCancelled,
    RequestReceived,
)
from sansmcp.http.legacy_session import (
    MemoryEventStore,
    SessionPolicy,
    StoredEvent,
    read_event_id,
    write_event_id,
)

from .http_support import (
    BOTH,
    EVERYTHING,
    PROGRESS,
    Client,
    Http,
    initialize,
    note,
    reasons,
)
from .support import LEGACY

EACH = pytest.mark.parametrize("version", LEGACY)
NEWEST = LEGACY[-1]
STREAMED = pytest.mark.parametrize("version", [v for v in LEGACY if v >= "2025-03-26"])


# answers ----------------------------------------------------------------------------------------


@pytest.mark.req("R2", "R4")
@EACH
@pytest.mark.parametrize("accept", [BOTH, "application/json", "text/event-stream"])
@pytest.mark.parametrize("before", [None, "progress", "silence"])
def test_a_legacy_answer_is_one_object_unless_something_comes_before_it(
    version: str, accept: str, before: str | None
) -> None:
    http = Http()
    client = Client(http, version)
    reply = client.call("tools/list", PROGRESS, accept=accept)
    if before == "progress":
        http.progress(1)
    elif before == "silence":
        http.advance(15)
    assert http.answer({"tools": []})
    streams = accept == "text/event-stream" or (accept == BOTH and before is not None)
    assert (reply.status, reply.streams, reply.ended) == (200, streams, True)
    assert reply.messages[-1] == {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
    if streams:
        expected = ["1-1", "1-2"] if before == "progress" else ["1-1"]
        # initialize had the first stream, and needed none
        assert [i.partition("-")[2] for i in reply.ids if i] == [i[2:] for i in expected]
    elif before == "progress":
        assert Harmless.UNDELIVERABLE in reasons(http)


@pytest.mark.req("P11")
@pytest.mark.case("E-01", "E-02")
@EACH
def test_only_newest_clients_are_primed(version: str) -> None:
    http = Http(sessions=SessionPolicy(reconnect_after=2.5))
    client = Client(http, version)
    reply = client.call("tools/list", PROGRESS)
    http.progress(1)
    http.answer()
    primed = reply.body.startswith(b"id: 2-0\nretry: 2500\ndata: \n\n")
    assert primed == (version == NEWEST)
    assert (b"retry" in reply.body) == primed
    assert reply.ids == ["2-1", "2-2"]
    standalone = client.get()
    assert standalone.body.startswith(b"id: 0-0\nretry: 2500\ndata: \n\n") == primed
    assert (standalone.body != b"") == primed


@pytest.mark.req("R8")
@pytest.mark.case("E-07", "E-13")
@EACH
def test_a_silent_legacy_stream_is_kept_alive(version: str) -> None:
    http = Http(keep_alive=15.0)
    client = Client(http, version)
    reply = client.call()
    standalone = client.get()
    assert (reply.status, standalone.status) == (None, 200), "the head leaves at once"
    http.advance(45)
    assert (reply.status, reply.comments, standalone.comments) == (200, 3, 3)
    http.answer()
    assert reply.ended
    http.advance(15)
    assert standalone.comments == 4


@pytest.mark.case("C-01")
@EACH
@pytest.mark.parametrize("committed", [False, True])
def test_a_cancelled_request_has_an_end_and_no_answer(version: str, committed: bool) -> None:
    http = Http()
    client = Client(http, version)
    reply = client.call("tools/list", PROGRESS, id=3)
    if committed:
        http.progress(1)
    assert client.post(note("notifications/cancelled", {"requestId": 3, "reason": "x"})).status == 202
    assert http.one(RequestCancelled).reason == "x"
    assert (reply.status, reply.ended) == (200 if committed else 204, True)
    assert http.answer() is False
    assert http.server.stats()["exchanges"] == http.server.stats()["working"] == 0


# clients that leave and come back ---------------------------------------------------------------


@pytest.mark.req("P4")
@pytest.mark.case("H-12")
@STREAMED
@pytest.mark.parametrize("answered_before", [False, True])
def test_a_client_that_comes_back_hears_the_rest(version: str, answered_before: bool) -> None:
    http = Http()
    client = Client(http, version)
    reply = client.call("tools/list", PROGRESS, id=7)
    http.progress(1)
    http.progress(2)
    http.leave(reply)
    assert not http.of(RequestCancelled)
    assert http.progress(3)
    if answered_before:
        assert http.answer({"tools": []})
    resumed = client.get(last_event_id=reply.ids[0])
    assert resumed.status == 200
    if not answered_before:
        assert not resumed.ended
        assert http.answer({"tools": []})
    progress = [m["params"]["progress"] for m in resumed.messages[:-1]]
    assert progress == [2, 3]
    assert resumed.messages[-1] == {"jsonrpc": "2.0", "id": 7, "result": {"tools": []}}
    assert resumed.ids == ["2-2", "2-3", "2-4"]
    assert resumed.ended
    again = client.get(last_event_id="2-3")
    assert [m.get("id") for m in again.messages] == [7], "the connection may break once more"
    assert again.ended
    assert client.get(last_event_id="2-4").ended


@pytest.mark.req("P4")
def test_coming_back_takes_the_stream_from_the_connection_that_seems_to_live() -> None:
    http = Http()
    client = Client(http)
    first = client.call("tools/list", PROGRESS)
    http.progress(1)
    second = client.get(last_event_id="2-0")
    assert (first.ended, second.ended) == (True, False)
    http.progress(2)
    third = client.get(last_event_id="2-1")
    assert second.ended
    http.leave(second)
    http.answer()
    assert [len(r.messages) for r in (first, second, third)] == [1, 2, 2]
    assert third.ended
    assert http.server.stats()["exchanges"] == 0


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    "event_id",
    ["3-0", "2-9", "1-0", "9-9", "0-1", "x", "2", "-", "2-", "-1", "2-x", "٢-١", "2-1-1", "9" * 99 + "-1"],
)
def test_what_was_never_said_cannot_be_resumed(event_id: str) -> None:
    http = Http()
    client = Client(http)
    client.call("tools/list", PROGRESS)
    http.progress(1)
    client.call(id=2)  # stream 3, of which nobody heard
    reply = client.get(last_event_id=event_id)
    assert reply.status == 400, "404 would make the client give up its session"
    assert reasons(http) == [PeerFault.UNKNOWN_EVENT_ID]
    assert client.call("ping", id=9).status == 200


@pytest.mark.req("P4")
@pytest.mark.parametrize("bound", [{"max_stored_events": 3}, {"max_stored_bytes": 400}])
def test_what_is_kept_is_bounded_and_its_loss_is_told(bound: dict[str, int]) -> None:
    http = Http(sessions=SessionPolicy(**bound))  # type: ignore[arg-type]
    client = Client(http)
    reply = client.call("tools/list", PROGRESS)
    request = http.request
    http.progress(1)
    assert not http.of(LimitHit)
    http.leave(reply)
    for n in range(2, 50):
        http.progress(n)
    assert http.one(LimitHit).limit == "max_stored_events", "once, not for each"
    stats = http.server.stats()
    assert stats["stored_events"] <= 4
    assert stats["stored_bytes"] <= 400
    http.said.clear()
    http.answer({"tools": []}, request)
    resumed = client.get(last_event_id="2-1")
    assert resumed.messages[-1]["result"] == {"tools": []}, "what is left is better than nothing"
    assert any("not kept any more" in e.detail for e in http.of(LimitHit))


def test_an_event_that_nothing_can_hold_is_lost_only_to_who_left() -> None:
    http = Http(sessions=SessionPolicy(max_stored_bytes=100))
    client = Client(http)
    big = {"tools": ["x" * 200]}
    attached = client.call("tools/list", PROGRESS, id=1)
    http.progress(1)
    http.answer(big)
    assert attached.messages[-1]["result"] == big
    assert not http.of(LimitHit)
    assert http.server.stats()["stored_events"] == 0


def test_complete_streams_are_forgotten_in_order() -> None:
    http = Http(sessions=SessionPolicy(max_streams=2))
    client = Client(http)
    for n in range(4):
        client.call("tools/list", PROGRESS, id=n)
        http.progress(1)
        http.answer()
    assert http.server.stats()["streams"] == 2
    statuses = [client.get(last_event_id=f"{n}-0").status for n in (2, 3, 4, 5)]
    assert statuses == [400, 400, 200, 200]


@pytest.mark.req("AA12")
def test_to_leave_is_no_way_to_have_more_requests_worked_on() -> None:
    http = Http(sessions=SessionPolicy(max_open_requests=3))
    client, other = Client(http), Client(http)
    for n in range(3):
        http.leave(client.call(id=n))
    refused = client.call(id=4)
    assert (refused.status, refused.headers["retry-after"]) == (429, "10")
    assert http.one(LimitHit).limit == "max_open_requests"
    assert other.call().status is None
    assert client.call("ping", id=5).status == 429
    http.answer({}, http.of(RequestReceived)[0].request)
    assert client.call("ping", id=5).status == 200


def test_an_answer_for_a_client_that_left_before_any_stream_is_told() -> None:
    http = Http()
    client = Client(http)
    http.leave(client.call("tools/list", PROGRESS))
    assert http.progress(1)
    assert http.answer()
    assert reasons(http) == [Harmless.UNDELIVERABLE] * 2
    assert http.server.stats()["streams"] == http.server.stats()["working"] == 0


@pytest.mark.req("P11")
@EACH
@pytest.mark.parametrize("committed", [False, True])
def test_the_server_can_hang_up_and_be_called_again(version: str, committed: bool) -> None:
    http = Http(sessions=SessionPolicy(reconnect_after=0.5))
    client = Client(http, version)
    reply = client.call("tools/list", PROGRESS)
    if committed:
        http.progress(1)
    done = http.server.hang_up(http.request, now=0.0)
    http.drain()
    assert done == (version == NEWEST)
    assert reply.ended == done
    if not done:
        assert http.answer()
        return
    assert b"retry: 500" in reply.body
    assert http.server.hang_up(http.request, now=0.0) is False
    assert http.answer({"tools": []})
    last = f"2-{int(committed)}"
    assert reply.body.rstrip().endswith(b"data:")
    assert f"id: {last}\n".encode() in reply.body
    resumed = client.get(last_event_id=last)
    assert resumed.messages == [{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}]
    assert http.server.hang_up(http.request, now=0.0) is False


def test_who_takes_no_stream_is_not_hung_up_on() -> None:
    http = Http()
    reply = Client(http).call(accept="application/json")
    assert http.server.hang_up(http.request, now=0.0) is False
    http.answer()
    assert reply.status == 200


# the stream that belongs to no request ----------------------------------------------------------


@pytest.mark.req("P5", "W14")
@EACH
def test_changes_go_on_the_standalone_stream(version: str) -> None:
    http = Http()
    client = Client(http, version)
    stream = client.get()
    other = client.call("tools/list", PROGRESS)
    http.progress(1)
    assert http.server.notify_changed(ListKind.TOOLS, now=0.0)
    assert not http.server.notify_changed(ListKind.PROMPTS, now=0.0), "not declared"
    http.drain()
    assert [m["method"] for m in stream.messages] == ["notifications/tools/list_changed"]
    assert [m["method"] for m in other.messages] == ["notifications/progress"]
    assert stream.ids == ["0-1"]
    assert not stream.ended


@pytest.mark.req("P5")
@EACH
def test_what_is_said_to_nobody_waits(version: str) -> None:
    http = Http()
    client, other = Client(http, version), Client(http, version)
    heard = other.get()
    for kind in (ListKind.TOOLS, ListKind.RESOURCES, ListKind.TOOLS, ListKind.TOOLS):
        assert http.server.notify_changed(kind, now=0.0)
    assert http.server.log("error", "x", now=0.0)
    http.drain()
    first = client.get()
    told = ["notifications/tools/list_changed", "notifications/resources/list_changed"]
    assert [m["method"] for m in first.messages] == [*told, "notifications/message"], "each change once"
    assert len(heard.messages) == 5, "who listens hears each"
    http.leave(first)
    assert client.get().messages == [], "it was sent"
    assert len(client.get(last_event_id="0-1").messages) == 2, "but can be had again"


@pytest.mark.req("P5", "P10")
def test_what_waits_for_nobody_is_bounded() -> None:
    http = Http(sessions=SessionPolicy(max_stored_events=4))
    client = Client(http)
    for n in range(20):
        http.server.log("error", n, now=0.0)
    http.drain()
    assert http.one(LimitHit).limit == "max_stored_events"
    stream = client.get()
    assert [m["params"]["data"] for m in stream.messages] == [16, 17, 18, 19]
    http.leave(stream)
    http.said.clear()
    for n in range(5):
        http.server.log("error", n, now=0.0)
    http.drain()
    assert len(http.of(LimitHit)) == 1, "the next loss is told anew"


@pytest.mark.req("P5")
def test_a_newer_standalone_stream_takes_over() -> None:
    http = Http()
    client = Client(http)
    old = client.get()
    new = client.get()
    assert (old.ended, new.ended) == (True, False)
    http.server.notify_changed(ListKind.TOOLS, now=0.0)
    http.drain()
    assert (len(old.messages), len(new.messages)) == (0, 1)
    http.leave(old)
    http.server.notify_changed(ListKind.TOOLS, now=0.0)
    http.drain()
    assert len(new.messages) == 2
    assert http.server.stats()["exchanges"] == 1


@pytest.mark.parametrize(
    ("accept", "status"), [("text/event-stream", 200), (BOTH, 200), ("application/json", 406)]
)
def test_a_listener_takes_event_streams(accept: str, status: int) -> None:
    assert Client(Http()).get(accept=accept).status == status


# what is kept, and what must not be seen --------------------------------------------------------


@pytest.mark.req("P4")
def test_a_store_of_ones_own() -> None:
    class Forgetful:
        def append(self, event: StoredEvent) -> Sequence[StoredEvent]:
            return [event]

        def since(self, stream: int, sequence: int) -> Sequence[StoredEvent]:
            return []

        def stats(self) -> dict[str, int]:
            return {"stored_events": 0, "stored_bytes": 0}

    http = Http(sessions=SessionPolicy(store=lambda policy: Forgetful()))
    client = Client(http)
    stream = client.get()
    http.server.notify_changed(ListKind.TOOLS, now=0.0)
    http.drain()
    assert len(stream.messages) == 1
    http.leave(stream)
    http.server.notify_changed(ListKind.TOOLS, now=0.0)
    http.drain()
    http.one(LimitHit)


@pytest.mark.req("P4")
def test_the_memory_store_keeps_the_newest() -> None:
    store = MemoryEventStore(3, 10)
    dropped = [store.append(StoredEvent(n % 2, n, b"x" * 3)) for n in range(1, 6)]
    assert [[e.sequence for e in d] for d in dropped] == [[], [], [], [1], [2]]
    assert [e.sequence for e in store.since(1, 0)] == [3, 5]
    assert [e.sequence for e in store.since(1, 3)] == [5]
    assert store.stats() == {"stored_events": 3, "stored_bytes": 9}
    huge = StoredEvent(0, 9, b"x" * 11)
    assert store.append(huge)[-1] is huge
    assert store.stats() == {"stored_events": 0, "stored_bytes": 0}


def test_event_ids_name_their_stream() -> None:
    for stream, sequence in itertools.product((0, 1, 10**9), repeat=2):
        assert read_event_id(write_event_id(stream, sequence)) == (stream, sequence)
    for text in ("", "-", "1", "1-", "-1", "a-1", "1-1 ", "1--1", "²-1", "1" * 50):
        assert read_event_id(text) is None


def test_a_session_is_not_seen_in_what_is_shown() -> None:
    http = Http(entropy=lambda size: b"\xab" * size)
    client = Client(http)
    secret = "ab" * 24
    assert client.session == secret
    client.call("tools/list", PROGRESS)
    http.progress(1)
    client.get()
    client.post(initialize())
    client.call(mcp_protocol_version="1900-01-01")
    client.get(last_event_id="9-9")
    client.session += "x"
    client.call()
    client.session = secret
    client.delete()
    shown = [*http.said, *http.server.sessions, http.request, http.request.origin, http.server]
    assert secret not in repr(shown)
    bodies = [r.body for r in http.replies.values()]
    assert not any(secret.encode() in body for body in bodies)
    assert [r.headers.get("mcp-session-id") for r in http.replies.values()].count(secret) == 1


@pytest.mark.case("R-06")
def test_nothing_is_left_of_sessions_that_are_over() -> None:
    http = Http()
    for version in LEGACY * 5:
        client = Client(http, version, capabilities=EVERYTHING)
        client.get()
        for n in range(6):
            reply = client.call("tools/list", PROGRESS, id=n)
            if n % 2:
                http.progress(1)
            if n % 3 == 0:
                http.leave(reply)
            if n != 4:
                http.answer()
        client.delete()
    assert not {name: size for name, size in http.server.stats().items() if size}
    assert http.server.next_timeout() is None
