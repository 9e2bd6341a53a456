"""Rounds of questions over HTTP: each retry is an exchange of its own, each legacy answer a POST."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    ClientCapabilities,
    InputRequired,
    InputWithdrawn,
    Legacy,
    McpError,
    RequestFailed,
    ResultReady,
    Timeouts,
)
from sansmcp.types import ElicitationCapability, RootsCapability, SamplingCapability

from .http_client_support import CUTS, JSON, SESSION, TEXT, Link, event, linked, response
from .support import initialize_result

ABLE = ClientCapabilities(
    roots=RootsCapability(),
    sampling=SamplingCapability(),
    elicitation=ElicitationCapability(form={}, url={}),
)
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
FORM = {"message": "who?", "requestedSchema": SCHEMA}
DEFAULTS = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
YES = {"action": "accept", "content": {"name": "ada"}}
ASK = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": FORM}
REQUIRED = {
    "resultType": "input_required",
    "inputRequests": {"k": {"method": "elicitation/create", "params": FORM}},
    "requestState": "st/+= é",
}
DONE = {"resultType": "complete", **TEXT}


def able(version: str = "2026-07-28", **options: Any) -> Link:
    return linked(version, capabilities=ABLE, **options)


def provide(link: Link, where: Any, answers: Any, **options: Any) -> None:
    assert link.engine.provide_input(where, answers, now=link.now, **options)
    link.drain()


@pytest.mark.req("E7", "E8")
@pytest.mark.case("M-01", "M-03")
@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("cut", CUTS)
def test_a_retry_is_a_new_exchange(streamed: bool, cut: int | None) -> None:
    link = able()
    link.cut = cut
    call = link.call()
    first = link.last
    for number in (1, 2):
        if streamed:
            link.stream(link.last, response(link.last, REQUIRED))
        else:
            link.reply(REQUIRED)
        provide(link, call, {"k": YES})
        assert len(link.asked) == number + 1
    again = link.last
    assert again.message["id"] not in {a.message["id"] for a in link.asked[:-1]}
    assert again.message["params"]["requestState"] == REQUIRED["requestState"]
    assert again.message["params"]["inputResponses"] == {"k": YES}
    for name in ("mcp-method", "mcp-name", "mcp-protocol-version", "accept"):
        assert again.headers[name] == first.headers[name]
    link.reply(DONE)
    assert link.one(ResultReady).call is call
    assert link.quiet()


@pytest.mark.req("E7")
def test_what_is_called_between_two_rounds_knows_nothing_of_them() -> None:
    """The strict order of the official suite: another call while the first one asks."""
    link = able()
    asking = link.call("test_mrtr_echo_state")
    link.reply(REQUIRED)
    other = link.call("test_mrtr_unrelated")
    assert not {"inputResponses", "requestState"} & link.last.message["params"].keys()
    link.reply(DONE)
    provide(link, asking, {"k": YES})
    link.reply(DONE)
    bare = link.call("test_mrtr_no_result_type")
    link.reply(TEXT)
    assert [e.call for e in link.of(ResultReady)] == [other, asking, bare]
    assert link.quiet()


@pytest.mark.req("E5")
def test_a_state_alone_is_sent_back_after_a_while() -> None:
    link = able()
    link.call()
    link.reply({"resultType": "input_required", "requestState": "s"})
    assert len(link.asked) == 1
    link.advance(0.05)
    assert link.last.message["params"]["requestState"] == "s"
    link.reply(DONE)
    link.one(ResultReady)
    assert link.quiet()


@pytest.mark.parametrize("over", [False, True], ids=["open stream", "ended stream"])
@pytest.mark.parametrize("how", ["cancel", "refuse", "time", "close"])
def test_a_call_that_ends_while_it_asks_leaves_nothing(how: str, over: bool) -> None:
    link = able(timeouts=Timeouts(round=10.0))
    call = link.call()
    link.stream(link.last, response(link.last, REQUIRED), end=over)
    match how:
        case "cancel":
            link.engine.cancel(call, now=0.0)
        case "refuse":
            link.engine.refuse_input(call, McpError(-1, "no"), now=0.0)
        case "time":
            link.advance(11)
        case "close":
            link.close()
    link.drain()
    assert link.one(RequestFailed).call is call
    link.advance(60)
    assert len(link.asked) == 1
    assert link.quiet()
    assert bool(link.of(InputWithdrawn)) is (how != "refuse")


# legacy -------------------------------------------------------------------------------------------


@pytest.mark.req("F1", "F4", "G3")
@pytest.mark.parametrize("where", ["get", "post"])
def test_an_elicitation_is_answered_by_a_post_with_the_defaults_of_the_form(where: str) -> None:
    """As the official suite does it: the question comes on the session's own stream."""
    link = Link(capabilities=ABLE, mode=Legacy()).start()
    link.reply(initialize_result(), headers=[("mcp-session-id", SESSION)])
    link.answer(link.one_rpc("notifications/initialized"), 202)
    get = link.one_rpc("GET")
    link.stream(get, end=False)
    call = link.call("test_client_elicitation_defaults")
    post = link.last
    link.stream(post, *([ASK] if where == "post" else []), end=False)
    if where == "get":
        link.data(get, event(ASK))
    asked = link.one(InputRequired)
    assert asked.call is (call if where == "post" else None)
    link.advance(300)
    assert not call.done, "the server waits for the user"
    provide(link, asked.round, {"q1": {"action": "accept"}}, apply_defaults=True)
    answer = link.last
    assert answer.message == {
        "jsonrpc": "2.0",
        "id": "q1",
        "result": {"action": "accept", "content": DEFAULTS},
    }
    assert answer.headers["mcp-session-id"] == SESSION
    assert answer.headers["mcp-protocol-version"] == "2025-11-25"
    link.answer(answer, 202)
    link.data(post, event(response(post, TEXT)))
    assert link.one(ResultReady).call is call


@pytest.mark.req("F7")
@pytest.mark.parametrize("status", [200, 400])
def test_pages_to_visit_may_come_with_a_status_of_their_own(status: int) -> None:
    link = able("2025-11-25")
    call = link.call()
    pages = [{"mode": "url", "elicitationId": "e1", "url": "https://e.example", "message": "go"}]
    link.reply(error=(-32042, {"elicitations": pages}), status=status)
    provide(link, call, {"e1": {"action": "accept"}})
    assert link.last.rpc == "tools/call"
    link.reply(TEXT)
    assert link.one(ResultReady).call is call
    assert link.quiet()


def test_a_question_from_a_lost_session_is_withdrawn() -> None:
    link = able("2025-11-25")
    call = link.call()
    post = link.last
    link.stream(post, ASK, end=False)
    link.call("other")
    link.answer(link.last, 404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"x"}}', JSON)
    assert link.one(InputWithdrawn).round.call is call
    assert not link.engine.provide_input(link.one(InputRequired).round, {"q1": YES}, now=link.now)
