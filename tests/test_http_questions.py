"""Handlers that ask their client, as HTTP carries it."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import App, Context, MessageIgnored, PeerFault, Sample
from sansmcp.events import Harmless
from sansmcp.inline import InlineHandlers

from .http_support import Client, Http, Reply, call, note
from .questions_support import ANSWERS, EVERYTHING, FORM, FORMS, KEY, SUMMARY, asking_app
from .support import CAPABILITIES_KEY, LEGACY

WITH_FORMS = [v for v in LEGACY if v >= "2025-06-18"]


class Served(Http):
    """A server with an application behind it."""

    def __init__(self, app: App, **options: Any) -> None:
        super().__init__(app, **options)
        self.handlers = InlineHandlers(app, self.server)
        self._seen = 0

    def drain(self) -> None:
        while True:
            super().drain()
            fresh = self.said[self._seen :]
            self._seen = len(self.said)
            if not fresh:
                return
            for event in fresh:
                self.handlers.handle(event, now=self.now)

    def tool(self, name: str, capabilities: Any = EVERYTHING, *, id: int = 1, **more: Any) -> Reply:
        """A modern call."""
        meta = {CAPABILITIES_KEY: capabilities, **more.pop("meta", {})}
        return self.ask("tools/call", {"name": name, "_meta": meta, **more}, id=id)


@pytest.mark.req("E12", "E14", "E15")
@pytest.mark.parametrize("form", FORMS)
def test_the_rounds_of_a_modern_request_are_exchanges_of_their_own(form: str) -> None:
    http = Served(asking_app(state_keys=[KEY]))
    extra: dict[str, Any] = {}
    result: dict[str, Any] = {}
    for number in range(3):
        reply = http.tool(form, id=number, **extra)
        assert (reply.status, reply.json["id"]) == (200, number)
        result = reply.json["result"]
        if number == 2:
            break
        assert result["resultType"] == "input_required"
        assert "ttlMs" not in result
        asked = result["inputRequests"]
        extra = {"inputResponses": {key: ANSWERS[q["method"]] for key, q in asked.items()}}
        if "requestState" in result:
            extra["requestState"] = result["requestState"]
    assert result["content"][0]["text"] == SUMMARY
    assert http.server.stats()["open_requests"] == 0
    assert not http.of(MessageIgnored)


@pytest.mark.req("E13")
@pytest.mark.case("M-09")
def test_what_a_modern_client_did_not_declare_is_a_status_too() -> None:
    app = asking_app()

    @app.tool(requires=[Sample])
    def test_missing_capability() -> str:
        return "never"

    http = Served(app)
    for name, needed in (
        ("test_missing_capability", {"sampling": {}}),
        ("awaits", {"elicitation": {"form": {}}}),
    ):
        reply = http.tool(name, {})
        assert (reply.status, reply.code) == (400, -32021)
        assert reply.json["error"]["data"] == {"requiredCapabilities": needed}
    assert http.tool("awaits", {"elicitation": {}}).json["result"]["inputRequests"]
    assert http.tool("awaits", {}).code == -32021, "nothing is remembered of another request"


@pytest.mark.req("E14")
def test_a_state_that_is_not_believed_is_a_status_too() -> None:
    http = Served(asking_app(state_keys=[KEY]))
    reply = http.tool("awaits", requestState="forged")
    assert (reply.status, reply.json["error"]) == (400, {"code": -32602, "message": "invalid requestState"})
    (ignored,) = http.of(MessageIgnored)
    assert ignored.reason is PeerFault.INVALID_STATE
    assert "forged" not in ignored.detail


@pytest.mark.req("E12")
def test_no_request_of_the_server_is_on_a_modern_stream() -> None:
    app = App("streams")

    @app.tool()
    async def test_streaming_elicitation(ctx: Context) -> str:
        ctx.progress(1)
        return (await ctx.elicit("x", FORM)).action

    reply = Served(app).tool("test_streaming_elicitation", meta={"progressToken": "t"})
    assert reply.streams
    progress, result = reply.messages
    assert progress["method"] == "notifications/progress"
    assert result["result"]["resultType"] == "input_required"
    assert reply.ended


@pytest.mark.req("E15", "F1", "G1", "H1")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", WITH_FORMS)
def test_a_legacy_client_is_asked_on_the_stream_of_its_request(version: str, form: str) -> None:
    http = Served(asking_app())
    client = Client(http, version, capabilities=EVERYTHING)
    other = Client(http, version)
    reply = client.call("tools/call", {"name": form})
    answered = 0
    while not reply.ended:
        questions = [m for m in reply.messages if "method" in m][answered:]
        assert questions
        for question in questions:
            answered += 1
            body = {"jsonrpc": "2.0", "id": question["id"], "result": ANSWERS[question["method"]]}
            assert client.post(body).status == 202
    assert answered == 3
    assert reply.messages[-1]["result"]["content"][0]["text"] == SUMMARY
    refused = other.call("tools/call", {"name": form}).json["result"]
    assert refused["isError"] is True, "it is another session that declared it"
    assert http.handlers.stats() == {"waiting_handlers": 0}
    assert http.server.stats()["session_calls"] == 0


@pytest.mark.req("K5", "E15")
@pytest.mark.parametrize("form", FORMS)
def test_a_legacy_cancel_and_the_end_of_a_session_take_questions_back(form: str) -> None:
    http = Served(asking_app())
    for ends in ("cancel", "delete"):
        client = Client(http, capabilities=EVERYTHING)
        reply = client.call("tools/call", {"name": form}, id=7)
        assert reply.messages[0]["method"] == "elicitation/create"
        if ends == "cancel":
            client.post(note("notifications/cancelled", {"requestId": 7}))
        else:
            client.delete()
        assert reply.ended
        assert http.handlers.stats() == {"waiting_handlers": 0}
        assert http.server.stats()["session_calls"] == 0


@pytest.mark.req("E15")
def test_a_client_that_cannot_be_asked_is_told() -> None:
    """One that takes no event stream has none to be asked on."""
    http = Served(asking_app(expose_errors=True))
    client = Client(http, capabilities=EVERYTHING)
    reply = client.post(call("tools/call", {"name": "awaits"}), accept="application/json")
    assert "takes no event stream" in str(reply.json)


@pytest.mark.req("F6")
def test_a_page_that_is_done_is_told_on_the_stream_or_after_it() -> None:
    app = App("pages")

    @app.tool()
    async def visit(ctx: Context) -> str:
        await ctx.elicit_url("go", "https://example.com/", elicitation_id="e1")
        ctx.elicitation_complete("e1")
        return "done"

    http = Served(app)
    client = Client(http, capabilities=EVERYTHING)
    standalone = client.get()
    reply = client.call("tools/call", {"name": "visit"})
    (question,) = reply.messages
    client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
    assert reply.messages[1]["method"] == "notifications/elicitation/complete"
    assert http.server.elicitation_complete("e2", now=0.0, related=http.request)
    http.drain()
    (later,) = standalone.messages
    assert later["params"] == {"elicitationId": "e2"}
    modern = http.tool("visit")
    assert modern.json["result"]["resultType"] == "input_required"
    assert not http.server.elicitation_complete("e3", now=0.0, related=http.request)


@pytest.mark.req("E12")
def test_what_was_not_asked_is_told() -> None:
    http = Served(asking_app())
    http.tool("awaits", inputResponses={"x": {"action": "accept"}})
    assert [event.reason for event in http.of(MessageIgnored)] == [Harmless.UNASKED_ANSWER]
