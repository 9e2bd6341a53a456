"""What the probe over HTTP leads to: the whole table, as exchanges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    LATEST,
    Auto,
    EraDecided,
    HandshakeFailed,
    McpError,
    NoCommonVersion,
    PeerFault,
    Pin,
    RequestFailed,
    ResultReady,
    Revision,
    SessionEnded,
    Verdict,
)
from sansmcp.errors import AuthorizationRequired, HttpFailure, RedirectRefused
from sansmcp.http.old_sse import OldSseUse

from .http_client_support import CUTS, DONE, JSON, MODERN, SSE, Link, event, linked, response
from .support import DISCOVER, initialize_result

HTML = "<html><body>sign in</body></html>"
NO_OLD = {"old_sse": OldSseUse.NEVER}


@pytest.fixture(params=CUTS, ids=["whole", "bytes", "sevens"])
def cut(request: pytest.FixtureRequest) -> Any:
    return request.param


def ended(link: Link) -> Any:
    return link.one(SessionEnded).error


def failed(link: Link) -> Any:
    return link.one(RequestFailed).error


# the era: what the probe leads to ----------------------------------------------------------------

ERROR = {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Session required"}, "id": None}
MALFORMED = json.dumps({"jsonrpc": "2.0", "id": 1})


@pytest.mark.req("A1", "A4", "A7", "R2")
@pytest.mark.case("V-01", "V-04", "V-05", "H-03", "H-07")
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        *((status, None, "") for status in (400, 404, 405)),
        (400, "text/html", HTML),
        (404, "text/html; charset=utf-8", HTML),
        (400, "text/plain", "Bad Request: no valid session ID provided"),
        (400, JSON, '{"error":"nope"}'),
        (400, JSON, "{"),
        (400, JSON, json.dumps(ERROR)),
        (405, JSON, json.dumps({**ERROR, "id": "server-error"})),
        (400, "text/plain", json.dumps({**ERROR, "id": 1, "error": {"code": -32020, "message": "x"}})),
        (200, JSON, json.dumps(ERROR)),
        (200, JSON, json.dumps({**ERROR, "error": {"code": -32020, "message": "no id"}})),
        (200, JSON, json.dumps({**ERROR, "id": 1})),
        (200, JSON, MALFORMED),
        (500, JSON, json.dumps({**ERROR, "id": 1})),
        (200, JSON, ""),
        (200, JSON, '"text"'),
        (200, "text/html", HTML),
        (202, None, ""),
        (204, None, ""),
        (200, SSE, ": nothing\n\n"),
    ],
)
def test_no_modern_answer_leads_to_initialize(status: int, kind: Any, body: str, cut: Any) -> None:
    link = Link(cut=cut).start()
    link.answer(link.last, status, body, kind)
    assert link.rpcs() == ["server/discover", "initialize"]
    assert not link.of(EraDecided), "nothing is decided before initialize has succeeded"
    link.reply(initialize_result())
    assert link.one(EraDecided).era == "legacy"
    assert link.one(EraDecided).evidence[0].step == "server/discover"


@pytest.mark.req("A1", "R1", "R2")
@pytest.mark.case("E-12", "H-01")
@pytest.mark.parametrize("kind", [JSON, "Application/JSON;charset=UTF-8", SSE, "Text/Event-Stream; x=y"])
def test_a_modern_answer_is_taken_in_both_forms(kind: str, cut: Any) -> None:
    link = Link(cut=cut).start()
    message = response(link.last, DISCOVER)
    body = json.dumps(message).encode() if "json" in kind.lower() else event(message)
    link.answer(link.last, 200, body, kind)
    assert link.one(EraDecided).era == "modern"
    assert link.rpcs() == ["server/discover"]
    assert not link.client.stats()["exchanges"]


@pytest.mark.req("A5")
@pytest.mark.case("H-05", "V-05")
@pytest.mark.parametrize("code", [-32020, -32021])
@pytest.mark.parametrize("own", [True, False])
def test_a_modern_refusal_is_surfaced_whatever_its_id(code: int, own: bool, cut: Any) -> None:
    link = Link(cut=cut).start()
    data: Any = {"requiredCapabilities": {"elicitation": {}}}
    link.reply(error=(code, data), status=400, **({} if own else {"id": None}))
    assert link.rpcs() == ["server/discover"]
    error = ended(link)
    assert isinstance(error, McpError)
    assert (error.code, error.data, error.http_status) == (code, data, 400)


@pytest.mark.req("A6")
def test_a_version_refused_with_400_is_chosen_anew() -> None:
    link = Link().start()
    link.reply(error=(-32022, {"supported": ["2025-06-18"], "requested": MODERN}), status=400)
    assert link.last.rpc == "initialize"
    assert link.last.message["params"]["protocolVersion"] == "2025-06-18"


@pytest.mark.req("A14")
@pytest.mark.parametrize("body", ["", json.dumps({**ERROR, "id": 2})])
def test_a_slow_modern_server_that_has_no_initialize_is_asked_again(body: str) -> None:
    link = Link().start()
    link.advance(5.0)
    probe, handshake = link.asked
    link.answer(probe, 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": DISCOVER}), JSON)
    link.answer(handshake, 404, body, JSON if body else None)
    assert link.rpcs() == ["server/discover", "initialize", "server/discover"]
    link.reply(DISCOVER)
    assert link.engine.verdict is not None
    assert link.engine.verdict.revision == MODERN


@pytest.mark.req("A6")
def test_a_version_that_is_refused_and_offered_twice_is_no_common_one() -> None:
    link = Link().start()
    for _ in range(2):
        link.reply(error=(-32022, {"supported": [MODERN], "requested": MODERN}), status=400)
    assert isinstance(ended(link), NoCommonVersion)
    assert link.rpcs() == ["server/discover"] * 2


@pytest.mark.req("A7", "T1")
@pytest.mark.case("V-06")
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", ["", json.dumps({**ERROR, "id": 1})])
def test_who_asks_is_no_evidence_about_the_era(status: int, body: str) -> None:
    link = Link(headers=[("authorization", "Bearer s3cret-t0ken")]).start()
    challenge = 'Bearer resource_metadata="https://example.com/x"'
    given = [("WWW-Authenticate", challenge), ("www-authenticate", "Basic")]
    link.answer(link.last, status, body, JSON if body else None, given)
    error = ended(link)
    assert isinstance(error, AuthorizationRequired)
    assert (error.status, error.challenges) == (status, (challenge, "Basic"))
    assert "s3cret" not in repr(error) + str(error)
    assert link.engine.verdict is None
    assert link.rpcs() == ["server/discover"]


@pytest.mark.req("A7")
@pytest.mark.case("V-06", "H-07")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 302, 304, 406, 415])
def test_other_statuses_are_typed_errors_and_no_verdict(status: int) -> None:
    link = Link().start()
    link.answer(link.last, status, HTML, "text/html", [("retry-after", "7")])
    error = ended(link)
    assert type(error) is HttpFailure
    assert (error.status, error.retry_after) == (status, 7.0)
    assert error.fault is PeerFault.UNEXPECTED_STATUS
    assert error.excerpt == HTML
    assert error.retryable == (status in (429, 500, 502, 503))
    assert link.engine.verdict is None
    assert link.rpcs() == ["server/discover"]


@pytest.mark.req("A7")
def test_a_network_error_is_a_typed_error_and_no_verdict() -> None:
    link = Link().start()
    call = link.call()
    link.fail(link.last, "connection refused")
    error = ended(link)
    assert isinstance(error, HttpFailure)
    assert "connection refused" in str(error)
    assert (error.status, error.retryable) == (None, True)
    assert link.one(RequestFailed).call is call
    assert link.finished()


@pytest.mark.req("A2")
@pytest.mark.case("V-02")
def test_a_silent_probe_leads_to_initialize_and_is_heard_until_the_era_is_known() -> None:
    link = Link().start()
    probe = link.last
    link.advance(5.0)
    assert link.rpcs() == ["server/discover", "initialize"]
    assert not probe.aborted, "neither of the two is ever cancelled"
    late = Link().start()
    late.advance(5.0)
    late.reply(DISCOVER, to=late.asked[0])
    assert "late" in late.engine.evidence[-1].outcome
    link.reply(initialize_result())
    assert link.one(EraDecided).era == "legacy"
    assert probe.aborted


@pytest.mark.req("A2")
@pytest.mark.case("E-07")
def test_a_probe_that_streams_nothing_but_comments_is_silent() -> None:
    link = Link().start()
    probe = link.last
    link.stream(probe, b":\n\n", end=False)
    link.advance(5.0)
    link.data(probe, b":\n\n")
    link.end(probe)
    assert link.rpcs() == ["server/discover", "initialize"]
    link.reply(initialize_result())
    assert link.one(EraDecided).era == "legacy"


@pytest.mark.req("A2")
def test_a_silent_probe_can_be_an_error() -> None:
    link = Link(http_silence="error").start()
    link.advance(5.0)
    assert isinstance(ended(link), HandshakeFailed)
    assert link.finished()


@pytest.mark.req("A7")
@pytest.mark.case("H-08")
@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("where", ["/mcp/", "https://EXAMPLE.com:443/mcp/", "mcp/"])
def test_a_redirect_within_the_origin_is_followed_with_method_and_body(status: int, where: str) -> None:
    link = Link(headers=[("authorization", "Bearer t")]).start()
    first = link.last
    link.answer(first, status, HTML, "text/html", [("location", where)])
    assert link.last is not first
    assert link.last.request.target == "/mcp/"
    assert link.last.method == "POST"
    assert link.last.request.body == first.request.body
    assert link.last.headers == first.headers
    link.reply(DISCOVER)
    assert link.one(EraDecided).era == "modern"
    link.call()
    assert link.last.request.target == ("/mcp/" if status == 308 else "/mcp"), "308 is for good"
    link.reply(DONE)
    link.one(ResultReady)
    assert link.quiet()


@pytest.mark.req("A7", "T1")
@pytest.mark.case("H-08")
@pytest.mark.parametrize(
    ("status", "where"),
    [
        (307, "https://other.example/mcp?token=s3cret"),
        (308, "http://example.com/mcp"),
        (307, "https://example.com:8443/mcp"),
        (301, "/mcp/"),
        (302, "/login?next=s3cret"),
        (303, "/mcp"),
        (307, "https://user:s3cret@example.com/mcp"),
        (307, "\u0001"),
        (307, "ftp://example.com/"),
    ],
)
@pytest.mark.parametrize("connected", [False, True])
def test_other_redirects_are_refused(status: int, where: str, connected: bool) -> None:
    link = linked() if connected else Link().start()
    if connected:
        link.call()
    link.answer(link.last, status, "", None, [("location", where)])
    assert len(link.asked) == 1
    error = failed(link) if connected else ended(link)
    assert isinstance(error, RedirectRefused)
    assert error.status == status
    assert "s3cret" not in str(error) + error.location


@pytest.mark.case("H-08")
def test_redirects_in_a_circle_end() -> None:
    link = Link().start()
    while link.engine.state.name == "PROBING":
        link.answer(link.last, 307, "", None, [("location", "/mcp")])
    assert len(link.asked) == 6
    assert isinstance(ended(link), RedirectRefused)
    assert "too many" in str(ended(link))


@pytest.mark.req("A10")
@pytest.mark.case("V-10")
def test_a_remembered_modern_verdict_is_doubted_by_a_bare_404() -> None:
    link = Link(prior=Verdict(LATEST.era, LATEST)).start()
    call = link.call()
    link.answer(link.last, 404, HTML, "text/html")
    assert link.rpcs() == ["tools/call", "server/discover"]
    link.answer(link.last, 404)
    link.reply(initialize_result())
    link.answer(link.one_rpc("notifications/initialized"), 202)
    again = link.of_rpc("tools/call")[-1]
    link.reply({"content": []}, again)
    assert link.one(ResultReady).call is call


@pytest.mark.req("A10")
def test_a_remembered_verdict_that_holds_leaves_the_call_its_failure() -> None:
    link = Link(prior=Verdict(LATEST.era, LATEST)).start()
    link.call()
    link.answer(link.last, 404)
    link.reply(DISCOVER)
    assert isinstance(failed(link), HttpFailure)
    assert failed(link).status == 404


@pytest.mark.req("A10")
def test_a_failing_server_does_not_contradict_the_memory() -> None:
    link = Link(prior=Verdict(LATEST.era, LATEST)).start()
    link.call()
    link.answer(link.last, 503)
    assert link.rpcs() == ["tools/call"]
    assert failed(link).status == 503


@pytest.mark.req("A10")
@pytest.mark.parametrize("own", [True, False])
def test_a_remembered_legacy_verdict_is_contradicted_by_a_refused_initialize(own: bool) -> None:
    link = Link(prior=Verdict(Revision.V2025_11_25.era, Revision.V2025_11_25)).start()
    assert link.last.rpc == "initialize"
    link.reply(error=-32602, status=400, **({} if own else {"id": None}))
    assert link.rpcs() == ["initialize", "server/discover"]
    link.reply(DISCOVER)
    assert link.one(EraDecided).era == "modern"


@pytest.mark.req("A9")
def test_a_pinned_modern_version_never_falls_back() -> None:
    link = Link(mode=Pin(LATEST)).start()
    assert link.asked == []
    link.call()
    link.answer(link.last, 404, HTML, "text/html")
    assert failed(link).status == 404
    assert link.rpcs() == ["tools/call"]


@pytest.mark.req("A9")
def test_with_modern_versions_only_the_status_is_the_cause() -> None:
    link = Link(mode=Auto((LATEST,))).start()
    link.answer(link.last, 404, HTML, "text/html")
    error = ended(link)
    assert isinstance(error, NoCommonVersion)
    assert isinstance(error.__cause__, HttpFailure)


@pytest.mark.case("H-18")
def test_a_refused_initialize_keeps_its_cause() -> None:
    link = Link(http=NO_OLD).start()
    link.answer(link.last, 404)
    link.answer(link.last, 405, HTML, "text/html")
    error = ended(link)
    assert isinstance(error, HttpFailure)
    assert (error.status, error.excerpt) == (405, HTML)
    assert link.rpcs() == ["server/discover", "initialize"]
