"""The HTTP client: what it sends, what each exchange brings, and how calls and clients end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    DeviationTolerated,
    EraDecided,
    InvalidResponse,
    Legacy,
    LimitHit,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    ProgressReported,
    RequestFailed,
    ResultReady,
    SessionEnded,
)
from sansmcp.client import ClientEngine
from sansmcp.errors import StreamLost
from sansmcp.events import DeliveryFailed, Harmless
from sansmcp.http.client import HttpClient
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.recovery import Recovery

from .http_client_support import (
    CUTS,
    DONE,
    JSON,
    LEGACY,
    MODERN,
    SSE,
    URL,
    Link,
    event,
    linked,
    note,
    response,
)
from .support import DISCOVER, ME, initialize_result

HTML = "<html><body>sign in</body></html>"
NO_OLD = {"old_sse": OldSseUse.NEVER}


@pytest.fixture(params=CUTS, ids=["whole", "bytes", "sevens"])
def cut(request: pytest.FixtureRequest) -> Any:
    return request.param


def ended(link: Link) -> Any:
    return link.one(SessionEnded).error


def failed(link: Link) -> Any:
    return link.one(RequestFailed).error


# what is sent ------------------------------------------------------------------------------------


@pytest.mark.req("R2", "A1", "T1")
@pytest.mark.case("H-01", "H-09", "H-10")
def test_a_modern_request_is_one_post_with_its_headers() -> None:
    link = Link(headers=[("Authorization", "Bearer t0ken"), ("X-Own", "1")]).start()
    asked = link.last
    assert (asked.method, asked.request.target) == ("POST", "/mcp")
    assert asked.headers == {
        "accept": "application/json, text/event-stream",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": "server/discover",
        "authorization": "Bearer t0ken",
        "x-own": "1",
    }
    assert link.client.url.origin == ("https", "example.com", 443)


@pytest.mark.req("P12", "B4")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY])
def test_a_legacy_request_names_its_revision_from_2025_06_18_on(version: str) -> None:
    link = Link(mode=Legacy()).start()
    opening = link.last
    assert opening.rpc == "initialize"
    assert not {"mcp-protocol-version", "mcp-method", "mcp-session-id"} & set(opening.headers)
    link.reply(initialize_result(version))
    confirmed = link.one_rpc("notifications/initialized")
    expected = version if version >= "2025-06-18" else None
    assert confirmed.headers.get("mcp-protocol-version") == expected
    assert "mcp-method" not in confirmed.headers


def test_a_token_can_be_renewed() -> None:
    link = linked(headers=[("authorization", "Bearer old")])
    link.call()
    link.client.set_headers([("authorization", "Bearer new")])
    link.call()
    assert [a.headers["authorization"] for a in link.asked] == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize(
    "headers",
    [
        [("Accept", "x")],
        [("content-type", "x")],
        [("Mcp-Session-Id", "x")],
        [("mcp-param-x", "x")],
        [("host", "x")],
        [("content-length", "1")],
        [("bad name", "x")],
        [("", "x")],
        [("x", "secret\r\nx: 1")],
        [("x", "sécret")],
    ],
)
def test_a_header_that_is_not_the_users_is_refused_and_not_quoted(headers: Any) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        Link(headers=headers)
    assert "secret" not in str(caught.value)


def test_only_an_engine_for_http_will_do() -> None:
    with pytest.raises(LocalProtocolError):
        HttpClient(ClientEngine(ME, now=0.0), URL, now=0.0)


def test_a_second_start_is_refused() -> None:
    link = Link().start()
    with pytest.raises(LocalProtocolError):
        link.client.start(0.0)


@pytest.mark.req("B12", "C4")
def test_a_value_that_no_header_can_carry_ends_its_call() -> None:
    link = linked()
    link.engine.read_resource("file:///\ud800", now=0.0)
    link.drain()
    assert isinstance(failed(link), LocalProtocolError)
    assert link.asked == []
    assert link.quiet()


# answers -----------------------------------------------------------------------------------------


@pytest.mark.req("R1", "R2")
@pytest.mark.case("E-03", "E-05", "E-06", "E-12", "H-01")
@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_a_stream_brings_events_and_the_answer(version: str, cut: Any) -> None:
    link = linked(version, cut=cut)
    call = link.call(progress=True)
    asked = link.last
    done = DONE if version == MODERN else {"content": DONE["content"]}
    pretty = json.dumps(response(asked, done), indent=1).encode().replace(b"\n", b"\ndata: ")
    link.stream(
        asked,
        b": hello\n\n",
        note("notifications/progress", progressToken=asked.message["id"], progress=1),
        b"event: ping\r\ndata: 2026-01-01\r\n\r\n",
        b"data: %b\n\n" % pretty,
    )
    assert link.one(ProgressReported).call is call
    assert link.one(ResultReady).call is call
    assert link.one(MessageIgnored).reason is Harmless.OTHER_EVENT
    assert link.quiet()


@pytest.mark.req("R1")
def test_a_stream_that_goes_on_after_the_answer_is_ended() -> None:
    link = linked()
    link.call()
    link.stream(link.last, response(link.last, DONE), end=False)
    link.one(ResultReady)
    link.data(link.last, event(note("notifications/message", level="info", data="late")))
    link.advance(4.999)
    assert not link.last.aborted
    link.advance(0.001)
    assert link.last.aborted
    assert link.quiet()


NOTHING = [
    (202, None, ""),
    (202, JSON, "{}"),
    (204, None, ""),
    (200, JSON, ""),
    (200, JSON, " \r\n"),
    (200, None, ""),
]


@pytest.mark.req("R2")
@pytest.mark.case("H-03")
@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize(("status", "kind", "body"), NOTHING)
def test_a_request_that_is_only_acknowledged_fails_at_once(
    version: str, status: int, kind: Any, body: str
) -> None:
    link = linked(version)
    link.call()
    link.answer(link.last, status, body, kind)
    error = failed(link)
    assert (error.fault, error.status) == (PeerFault.EMPTY_ANSWER, status)
    assert link.quiet()


@pytest.mark.case("H-03")
def test_an_acknowledgement_is_not_waited_out() -> None:
    link = linked()
    link.call()
    link.head(link.last, 202)
    assert failed(link).fault is PeerFault.EMPTY_ANSWER
    link.advance(5.0)
    assert link.last.aborted, "a body that never ends does not keep the exchange"
    assert link.quiet()


@pytest.mark.req("R4", "U6")
@pytest.mark.case("H-05", "H-06", "J-04")
@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize(
    ("status", "code"), [(400, -32021), (404, -32601), (400, -32602), (500, -32603), (403, -1), (200, -1)]
)
def test_an_error_body_reaches_its_call_with_the_status(
    version: str, status: int, code: int, cut: Any
) -> None:
    link = linked(version, cut=cut)
    link.call()
    link.reply(error=(code, {"x": [1]}), status=status)
    error = failed(link)
    assert isinstance(error, McpError)
    assert (error.code, error.data) == (code, {"x": [1]})
    assert error.http_status == (None if status == 200 else status)
    assert link.engine.state.name == "READY"
    link.call()
    link.reply(DONE)
    link.one(ResultReady)
    assert link.quiet()


@pytest.mark.case("J-04")
@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_without_an_id_belongs_to_its_exchange(status: int, streamed: bool) -> None:
    link = linked()
    link.call()
    if streamed:
        link.stream(link.last, response(link.last, error=-32700, id=None))
    else:
        link.reply(error=-32700, status=status, id=None)
    assert isinstance(failed(link), McpError)
    assert failed(link).code == -32700
    assert link.quiet()


def test_an_error_that_is_written_oddly_is_understood_and_told() -> None:
    odd = {"code": -32700.0}
    link = linked()
    link.call()
    link.answer(link.last, 400, json.dumps({"jsonrpc": "2.0", "error": odd}), JSON)
    assert failed(link).code == -32700
    assert link.one(DeviationTolerated).fault is PeerFault.INVALID_RESPONSE
    strict = linked(strict=True)
    strict.call()
    strict.answer(strict.last, 400, json.dumps({"jsonrpc": "2.0", "error": odd}), JSON)
    assert failed(strict).fault is PeerFault.UNEXPECTED_STATUS


@pytest.mark.case("H-05")
@pytest.mark.parametrize("kind", ["application/problem+json", "application/json"])
def test_the_body_of_a_refusal_may_be_json_of_a_kind(kind: str) -> None:
    link = linked()
    link.call()
    link.answer(link.last, 400, json.dumps(response(link.last, error=-32602)), kind)
    assert failed(link).code == -32602
    link = linked()
    link.call()
    link.answer(link.last, 200, json.dumps(response(link.last, DONE)), "application/problem+json")
    assert failed(link).fault is PeerFault.UNEXPECTED_CONTENT_TYPE


@pytest.mark.case("J-04", "J-17")
def test_an_error_under_another_id_belongs_to_its_exchange_by_the_status_only() -> None:
    link = linked()
    link.call()
    link.reply(error=-32600, status=400, id="server-error")
    assert failed(link).code == -32600
    assert link.one(DeviationTolerated).fault is PeerFault.UNKNOWN_RESPONSE_ID
    link = linked(LEGACY)
    link.call()
    link.reply(error=-32600, status=400, id="server-error")
    assert failed(link).code == -32600
    link = linked()
    link.call()
    link.reply(error=-32600, id="server-error")
    assert failed(link).fault is PeerFault.INVALID_RESPONSE
    assert link.one(MessageIgnored).reason is PeerFault.UNKNOWN_RESPONSE_ID


@pytest.mark.case("H-07")
@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (400, "text/html", "HTTP 400 with a web page, as proxies send it: the request cannot be read"),
        (400, "text/plain", "HTTP 400: <html>"),
        (404, "text/html; charset=x", "HTTP 404 with a web page, as proxies send it: <html>"),
        (413, None, "HTTP 413: the message is too large for it: send less, or have its limit raised"),
        (431, None, "HTTP 431: the headers are too large for it: send fewer, or have its limit raised"),
        (502, "text/html", "proxies send it: what is before the server does not reach it: try again later"),
        (503, None, "HTTP 503: it cannot answer now: try again later"),
        (504, None, "HTTP 504: the server took too long for what is before it"),
    ],
)
def test_a_status_says_what_to_do(status: int, kind: str | None, said: str) -> None:
    link = linked()
    link.call()
    link.answer(link.last, status, HTML, kind)
    error = failed(link)
    assert said in str(error)
    assert (status in (502, 503, 504)) == error.retryable


@pytest.mark.case("H-07")
@pytest.mark.parametrize(
    ("status", "kind", "body", "fault"),
    [
        (200, "text/html", HTML, PeerFault.UNEXPECTED_CONTENT_TYPE),
        (200, None, "{}", PeerFault.UNEXPECTED_CONTENT_TYPE),
        (502, "text/html", HTML, PeerFault.UNEXPECTED_STATUS),
        (429, None, "", PeerFault.UNEXPECTED_STATUS),
        (400, JSON, '{"error":"x"}', PeerFault.UNEXPECTED_STATUS),
        (400, JSON, "{", PeerFault.UNEXPECTED_STATUS),
        (404, SSE, "data: {}\n\n", PeerFault.UNEXPECTED_STATUS),
        (200, JSON, "{", PeerFault.INVALID_JSON),
        (200, JSON, b'"\xff"', PeerFault.INVALID_UTF8),
        (200, JSON, "[" * 200 + "]" * 200, PeerFault.JSON_TOO_DEEP),
        (200, JSON, '"text"', PeerFault.INVALID_RESPONSE),
        (200, JSON, '{"jsonrpc":"2.0","id":99,"result":{}}', PeerFault.INVALID_RESPONSE),
        (200, JSON, json.dumps(note("notifications/message", level="info", data=1)), None),
        (200, JSON, "[]", PeerFault.INVALID_RESPONSE),
    ],
)
def test_what_is_no_answer_ends_the_call_once(
    status: int, kind: Any, body: Any, fault: Any, cut: Any
) -> None:
    link = linked(cut=cut)
    link.call()
    link.answer(link.last, status, body, kind)
    error = failed(link)
    assert error.status == status
    assert error.fault is (fault or PeerFault.INVALID_RESPONSE)
    assert link.quiet()
    link.advance(1000)
    link.one(RequestFailed)


@pytest.mark.case("H-07")
@pytest.mark.parametrize(
    ("status", "kind", "body", "said"),
    [
        (500, "text/html", HTML, "HTTP 500 with a web page, as proxies send it: <html>"),
        (200, "text/html", HTML, "HTTP 200 (text/html) instead of JSON or an event stream: <html>"),
        (401, None, "", "HTTP 401, authorization is required"),
        (503, SSE, ": alive\n\n", "HTTP 503: it cannot answer now"),
        (400, JSON, '{"jsonrpc":', "HTTP 400: {"),
    ],
)
def test_a_failure_whose_body_never_ends_is_told_all_the_same(
    status: int, kind: str | None, body: str, said: str
) -> None:
    """Its head says it: that the call took too long would hide it."""
    link = linked()
    link.call()
    link.head(link.last, status, *(() if kind is None else [("content-type", kind)]))
    for second in range(10):
        assert bool(link.of(RequestFailed)) is (second >= 5)
        link.data(link.last, body.encode())
        link.advance(1.0)
    assert said in str(failed(link))
    assert link.last.aborted
    assert link.quiet()


@pytest.mark.case("H-07")
def test_an_excerpt_is_bounded_and_harmless() -> None:
    link = linked(limits=Limits(max_excerpt=32))
    link.call()
    link.head(link.last, 500, ("content-type", "text/plain"))
    link.data(link.last, b"\x1b[31m" + b"x" * 100_000)
    assert link.client.stats()["buffered"] <= 256
    link.end(link.last)
    assert failed(link).excerpt == "\\x1b[31m" + "x" * 23 + "…"


@pytest.mark.case("H-07")
def test_what_a_page_repeats_of_the_request_is_not_shown() -> None:
    link = linked(LEGACY, headers=[("authorization", "Bearer s3cret-t0ken")])
    link.call()
    page = (
        f"you sent Authorization: Bearer s3cret-t0ken, s3cret-t0ken and {link.last.headers['mcp-session-id']}"
    )
    link.answer(link.last, 500, page, "text/plain")
    assert failed(link).excerpt == "you sent Authorization: ***, *** and ***"


@pytest.mark.case("H-09")
@pytest.mark.parametrize("kind", [JSON, SSE])
def test_a_compressed_answer_is_told_by_its_coding(kind: str) -> None:
    link = linked()
    link.call()
    assert link.last.headers["accept-encoding"] == "identity"
    link.answer(link.last, 200, b"\x5b\x19\x1e", kind, [("Content-Encoding", "br")])
    assert failed(link).fault is PeerFault.CONTENT_CODING
    assert "'br'" in str(failed(link))
    assert link.quiet()


@pytest.mark.case("H-09")
def test_a_compressed_answer_to_the_probe_proves_nothing() -> None:
    link = Link().start()
    link.answer(link.last, 200, b"\x5b", JSON, [("content-encoding", "gzip")])
    assert ended(link).fault is PeerFault.CONTENT_CODING
    assert link.rpcs() == ["server/discover"]
    plain = Link().start()
    plain.answer(
        plain.last, 200, json.dumps(response(plain.last, DISCOVER)), JSON, [("content-encoding", "Identity")]
    )
    assert plain.one(EraDecided).era == "modern"


@pytest.mark.case("J-05")
def test_an_answer_with_result_and_error_is_invalid() -> None:
    link = linked()
    link.call()
    body = {**response(link.last, DONE), "error": {"code": 1, "message": "x"}}
    link.answer(link.last, 200, json.dumps(body), JSON)
    assert isinstance(failed(link), InvalidResponse)


@pytest.mark.req("R9")
@pytest.mark.case("E-08", "E-09")
@pytest.mark.parametrize("left", [b"", b"data: {", b'data: {"jsonrpc":"2.0","id":2,"result":{}}\n'])
@pytest.mark.parametrize("broken", [False, True])
def test_a_modern_stream_that_ends_too_soon_is_lost(left: bytes, broken: bool) -> None:
    link = linked()
    link.call(progress=True)
    token = link.last.message["id"]
    progress = event(note("notifications/progress", progressToken=token, progress=1), id="e1")
    link.stream(link.last, progress, left, end=False)
    if broken:
        link.fail(link.last)
    else:
        link.end(link.last)
    error = failed(link)
    assert isinstance(error, StreamLost)
    assert (error.fault, error.retryable, error.status) == (PeerFault.STREAM_ENDED, True, 200)
    faults = [e.reason for e in link.of(MessageIgnored)]
    assert faults == ([PeerFault.TRUNCATED_EVENT] if left and not broken else [])
    link.advance(100)
    assert link.rpcs() == ["tools/call"], "a modern stream is not resumed"
    assert link.quiet()


@pytest.mark.req("R9")
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "subscriptions/listen", "vendor/x"])
@pytest.mark.parametrize("how", ["stream", "network"])
@pytest.mark.parametrize("wanted", [False, True])
def test_a_lost_request_is_made_again_once_if_that_is_harmless_and_wanted(
    method: str, how: str, wanted: bool
) -> None:
    link = linked(http={"recovery": Recovery(reissue=wanted)}, check_capabilities=False)
    link.engine.request(method, {"name": "echo", "notifications": {}}, now=0.0)
    link.drain()
    for _ in range(2):
        if how == "stream":
            link.stream(link.last)
        else:
            link.fail(link.last)
    again = wanted and method == "tools/list"
    assert len(link.asked) == 1 + again
    assert len({a.message["id"] for a in link.asked}) == 1 + again
    assert failed(link).retryable
    assert link.quiet()


@pytest.mark.req("R7")
def test_a_body_over_its_bound_fails_its_call_and_is_not_kept() -> None:
    link = linked(limits=Limits(max_body=500))
    link.call()
    link.head(link.last, 200, ("content-type", JSON))
    link.data(link.last, b"x" * 500)
    assert not link.said
    link.data(link.last, b"x")
    assert failed(link).fault is PeerFault.BODY_TOO_LARGE
    assert link.one(LimitHit).limit == "max_body"
    assert link.last.aborted
    assert link.quiet()


@pytest.mark.req("R7")
def test_an_answer_over_its_bound_is_known_without_its_id_by_its_exchange() -> None:
    link = linked(limits=Limits(max_event=500))
    link.call()
    message = response(link.last, {"x": "x" * 600})
    message["id"] = message.pop("id")  # as the last member, where what was kept of it does not show it
    link.stream(link.last, message)
    assert failed(link).fault is PeerFault.EVENT_TOO_LARGE


@pytest.mark.req("L4")
def test_time_comes_in_with_every_input() -> None:
    link = linked()
    for _ in range(3):
        link.call()
    first, second, third = link.asked
    link.client.response_started(first.id, 202, [], 10.0)
    assert link.client.next_timeout() == 15.0
    link.client.response_ended(first.id, 11.0)
    link.client.exchange_failed(second.id, "x", 12.0)
    link.client.response_started(third.id, 200, [("content-type", SSE)], 0.0)
    link.client.response_data(third.id, event(response(third, DONE)), 13.0)
    assert link.client.next_timeout() == 18.0
    link.drain()
    link.client.close(20.0)
    assert link.drain().finished()


@pytest.mark.req("R7")
@pytest.mark.parametrize("first", [True, False])
def test_an_event_over_its_bound_fails_the_call_that_it_answers(first: bool) -> None:
    link = linked(limits=Limits(max_event=500))
    link.call()
    answer = response(link.last, {**DONE, "x": "x" * 600})
    other = note("notifications/message", level="info", data="x" * 600)
    link.stream(link.last, answer if first else other, response(link.last, DONE))
    assert link.one(LimitHit).limit == "max_event"
    if first:
        assert failed(link).fault is PeerFault.EVENT_TOO_LARGE
    else:
        link.one(ResultReady)
    assert link.quiet()


@pytest.mark.req("R3")
@pytest.mark.case("H-02")
def test_a_custom_notification_is_posted_with_its_method() -> None:
    link = linked()
    link.engine.notify("notifications/custom", {"x": 1}, now=0.0)
    link.drain()
    assert link.last.headers["mcp-method"] == "notifications/custom"
    assert link.last.headers["mcp-protocol-version"] == MODERN
    link.answer(link.last, 202)
    assert link.said == []
    assert link.quiet()


def test_a_notification_that_no_header_can_name_is_told() -> None:
    link = linked()
    link.engine.notify("notifications/é", now=0.0)
    link.drain()
    assert isinstance(link.one(DeliveryFailed).error, LocalProtocolError)
    assert link.asked == []


def test_a_broken_notification_is_told() -> None:
    link = linked()
    link.engine.notify("notifications/custom", now=0.0)
    link.drain()
    link.fail(link.last)
    assert link.one(DeliveryFailed).method == "notifications/custom"
    link.engine.notify("notifications/custom", now=0.0)
    link.drain()
    link.advance(60.0)
    assert link.last.aborted
    assert len(link.of(DeliveryFailed)) == 2
    assert link.quiet()
