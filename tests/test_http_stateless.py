"""Clients of the older revisions over HTTP without sessions: each request stands for itself."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    App,
    LocalProtocolError,
    MessageIgnored,
    PeerFault,
    RequestCancelled,
    RequestReceived,
    Revision,
    SessionEnded,
    SessionStarted,
)
from sansmcp.events import NotificationReceived
from sansmcp.http.old_sse_server import OldSsePaths

from .http_support import EVERYTHING, INITIALIZED, PROGRESS, Http, call, initialize, note, reasons
from .support import LEGACY

EACH = pytest.mark.parametrize("version", LEGACY)


def changing() -> App:
    app = App("changing", list_changed=True, subscribe=True)
    app.tool("look")(lambda: "looked")
    app.resource("test://here", name="here")(lambda: "here")
    return app


def stateless(app: App | None = None, **options: Any) -> Http:
    return Http(app or changing(), stateless=True, **options)


def named(version: str) -> dict[str, Any]:
    return {"mcp_protocol_version": version if version >= "2025-06-18" else None}


def left(http: Http) -> dict[str, int]:
    return {name: size for name, size in http.server.stats().items() if size}


@pytest.mark.req("P1", "R11")
@EACH
def test_each_request_stands_for_itself(version: str) -> None:
    http = stateless()
    opening = http.post(initialize(version, capabilities=EVERYTHING))
    assert opening.json["result"]["protocolVersion"] == version
    assert "mcp-session-id" not in opening.headers
    assert http.post(INITIALIZED, **named(version)).status == 202
    # Another process, which never saw any of it:
    other = stateless()
    asked = other.post(call("tools/call", {"name": "look"}, id="init"), **named(version))
    assert (asked.status, asked.waits) == (None, True)
    assert other.request.revision == max(version, "2025-03-26")
    assert other.request.peer_info is None
    other.answer({"content": [{"type": "text", "text": "seen"}]})
    assert asked.json["result"]["content"][0]["text"] == "seen"
    assert other.post(call("ping"), **named(version)).json["result"] == {}
    for server in (http, other):
        assert not server.of(SessionStarted) + server.of(SessionEnded) + server.of(MessageIgnored)
        assert left(server) == {}


@pytest.mark.req("R11")
def test_both_eras_at_one_endpoint() -> None:
    http = stateless()
    asked = http.ask("tools/list")
    assert http.request.revision is Revision.V2026_07_28
    http.answer({"tools": []})
    assert asked.json["result"]["resultType"] == "complete"
    # Only the older clients have lost anything by it.
    discovered = http.ask("server/discover").json["result"]["capabilities"]
    assert discovered["tools"] == {"listChanged": True}
    assert discovered["resources"] == {"listChanged": True, "subscribe": True}
    assert http.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}).streams


@EACH
def test_nothing_is_offered_that_takes_a_session(version: str) -> None:
    http = stateless()
    offered = http.post(initialize(version)).json["result"]["capabilities"]
    assert offered == {"tools": {}, "resources": {}}
    refused = http.post(call("resources/subscribe", {"uri": "test://here"}), **named(version))
    assert refused.json["error"]["code"] == -32601
    http.server.notify_updated("test://here", now=0.0)
    assert left(http) == {}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_only_post(method: str) -> None:
    http = stateless()
    reply = http.send(method, {"accept": "text/event-stream", "mcp-protocol-version": "2025-11-25"})
    assert (reply.status, reply.headers["allow"]) == (405, "POST")


REFUSED: dict[str, tuple[dict[str, Any], int, PeerFault]] = {
    "a session of another server": (
        {"mcp_session_id": "s1", "mcp_protocol_version": "2025-11-25"},
        404,
        PeerFault.UNKNOWN_SESSION,
    ),
    "a revision that is not served": (
        {"mcp_protocol_version": "2024-11-05"},
        400,
        PeerFault.UNSUPPORTED_VERSION,
    ),
    "no revision": ({}, 400, PeerFault.MISSING_HEADER),
}


@pytest.mark.parametrize(("headers", "status", "fault"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(headers: dict[str, Any], status: int, fault: PeerFault) -> None:
    http = stateless(revisions=[Revision.V2025_11_25, Revision.V2026_07_28])
    reply = http.post(call(), **headers)
    assert reply.status == status
    assert reasons(http) == [fault]
    assert not http.of(RequestReceived)
    if status == 400:
        assert "served are 2025-11-25" in reply.json["error"]["message"]


def test_progress_comes_before_the_answer_and_cannot_be_resumed() -> None:
    http = stateless()
    reply = http.post(call("tools/call", {"name": "look", **PROGRESS}), **named("2025-11-25"))
    assert http.progress(1)
    http.answer({"content": []})
    assert [m.get("method") for m in reply.messages] == ["notifications/progress", None]
    assert reply.ids == [None, None]
    assert reply.ended
    assert left(http) == {}


def test_the_server_shows_that_it_is_alive() -> None:
    http = stateless(keep_alive=5.0)
    reply = http.post(call("tools/call", {"name": "look"}), **named("2025-11-25"))
    http.advance(11.0)
    assert reply.comments == 2
    http.answer({"content": []})
    assert len(reply.messages) == 1


def test_to_leave_cancels() -> None:
    http = stateless()
    reply = http.post(call("tools/call", {"name": "look"}), **named("2025-11-25"))
    http.leave(reply)
    assert http.one(RequestCancelled).request is http.request
    assert not http.answer()
    assert not http.progress(1)
    assert left(http) == {}


def test_a_cancel_reaches_no_request_of_another_client() -> None:
    http = stateless()
    reply = http.post(call("tools/call", {"name": "look"}, id=7), **named("2025-11-25"))
    cancel = note("notifications/cancelled", {"requestId": 7})
    assert http.post(cancel, **named("2025-11-25")).status == 202
    assert http.request.open
    http.answer({"content": []})
    assert reply.status == 200


def test_a_batch_of_the_revision_that_has_them() -> None:
    http = stateless()
    both = [call("ping", id=1), call("tools/call", {"name": "look"}, id=2)]
    reply = http.post(both)
    http.answer({"content": []})
    assert sorted(answer["id"] for answer in reply.json) == [1, 2]
    assert http.post(both, **named("2025-11-25")).json["error"]["code"] == -32600
    assert http.post([INITIALIZED]).status == 202
    assert left(http) == {}


def test_nobody_can_be_asked() -> None:
    http = stateless()
    http.post(call("tools/call", {"name": "look"}), **named("2025-11-25"))
    assert http.request.peer_capabilities == {}
    with pytest.raises(LocalProtocolError, match="without a session cannot be asked"):
        http.server.request("ping", related=http.request, now=0.0)
    assert http.post({"jsonrpc": "2.0", "id": 1, "result": {}}, **named("2025-11-25")).status == 202
    assert reasons(http) == [PeerFault.UNKNOWN_RESPONSE_ID]


def test_notifications_are_told() -> None:
    http = stateless()
    assert http.post(note("notifications/mine", {"a": 1}), **named("2025-11-25")).status == 202
    assert http.one(NotificationReceived).params == {"a": 1}


def test_options_that_cannot_be() -> None:
    with pytest.raises(LocalProtocolError, match="needs sessions"):
        stateless(old_sse=OldSsePaths())
    with pytest.raises(LocalProtocolError, match="cannot be assumed"):
        changing().engine(now=0.0).assume_session(Revision.V2026_07_28, now=0.0)
