"""What the probe leads to: the whole table, row by row, and the pure classification."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sansmcp import (
    LATEST,
    Auto,
    ClientCapabilities,
    ClientEngine,
    ConnectionEnded,
    ConnectTimeout,
    DeviationTolerated,
    EraDecided,
    HandshakeFailed,
    Implementation,
    Legacy,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    NoCommonVersion,
    Outcome,
    Pin,
    ProbeContext,
    ProbeOutcome,
    Reconnect,
    RequestFailed,
    ResultReady,
    Revision,
    SessionEnded,
    Step,
    Timeouts,
    TransportKind,
    UnsupportedProtocolVersion,
    Verdict,
    classify_probe,
)
from sansmcp.session.era import HandshakeContext, classify_handshake

from .support import CAPABILITIES_KEY, DISCOVER, INFO_KEY, ME, VERSION_KEY, Driver, client, initialize_result

MODERN = LATEST.value
LEGACY = "2025-11-25"


def connecting(**options: Any) -> Driver:
    driver = client(**options)
    driver.engine.connect(now=0.0)
    driver.drain()
    return driver


def decided(driver: Driver) -> tuple[str, str]:
    event = driver.one(EraDecided)
    assert event.evidence, "the decision carries its evidence"
    return event.era.value, event.revision.value


def ended(driver: Driver) -> Any:
    return driver.one(SessionEnded).error


# what is sent -----------------------------------------------------------------------------------


@pytest.mark.req("A1", "B2")
def test_the_probe_comes_first_with_all_three_meta_keys_and_calls_wait() -> None:
    driver = client()
    early = driver.engine.call_tool("echo", {"text": "hi"}, now=0.0)
    driver.engine.connect(now=0.0)
    driver.drain()
    assert driver.methods() == ["server/discover"]
    stamped = driver.last["params"]["_meta"]
    assert stamped[VERSION_KEY] == MODERN
    assert stamped[CAPABILITIES_KEY] == {}
    assert stamped[INFO_KEY] == {"name": "me", "version": "1.0"}
    late = driver.engine.call_tool("echo", {"text": "ho"}, now=0.0)
    driver.drain()
    assert driver.methods() == ["server/discover"]
    driver.reply(DISCOVER)
    assert driver.methods() == ["server/discover", "tools/call", "tools/call"]
    assert [m["params"]["arguments"]["text"] for m in driver.sent[1:]] == ["hi", "ho"]
    assert early.request_id == driver.sent[1]["id"] != late.request_id
    assert decided(driver) == ("modern", MODERN)


# the table --------------------------------------------------------------------------------------

FALLS_BACK = [
    *(pytest.param({"error": code}, id=f"error {code}") for code in (0, -32600, -32601, -32602)),
    pytest.param({"error": (-32000, {"x": 1})}, id="error -32000"),
    pytest.param({"error": -32603}, id="error -32603"),
    pytest.param({"error": -32002}, id="error -32002"),
    pytest.param({"error": -32022}, id="-32022 without data"),
    pytest.param({"error": (-32022, {"supported": "2026-07-28"})}, id="-32022 with a text"),
    pytest.param({"error": (-32022, {"supported": [1]})}, id="-32022 with numbers"),
    pytest.param({"error": (-32022, {"supported": []})}, id="-32022 with an empty list"),
    pytest.param({"result": {}}, id="an empty result"),
    pytest.param({"result": {"supportedVersions": "2026-07-28"}}, id="versions are no list"),
    pytest.param({"result": {"supportedVersions": [1]}}, id="versions are numbers"),
]


@pytest.mark.req("A1", "A4", "A6", "A16")
@pytest.mark.case("V-01")
@pytest.mark.parametrize("answer", FALLS_BACK)
def test_an_answer_that_is_not_modern_leads_to_initialize(answer: dict[str, Any]) -> None:
    driver = connecting()
    driver.reply(answer.get("result"), error=answer.get("error"))
    assert driver.methods() == ["server/discover", "initialize"]
    assert driver.last["params"]["protocolVersion"] == LEGACY
    assert "_meta" not in driver.last["params"]
    driver.reply(initialize_result())
    assert driver.methods()[2:] == ["notifications/initialized"]
    assert decided(driver) == ("legacy", LEGACY)


@pytest.mark.req("A4")
@pytest.mark.case("V-05", "J-04")
@pytest.mark.parametrize(
    "reply",
    [
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Session required"}},
        {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}},
        {"jsonrpc": "2.0", "id": 1, "result": []},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}},
    ],
    ids=["id null", "no id", "result is a list", "neither", "both"],
)
def test_a_malformed_reply_leads_to_initialize_and_is_kept_as_evidence(reply: Any) -> None:
    driver = connecting()
    driver.receive(reply)
    assert driver.methods() == ["server/discover", "initialize"]
    driver.reply(initialize_result())
    assert decided(driver)[0] == "legacy"
    assert any("unusable answer" in entry.outcome for entry in driver.one(EraDecided).evidence)


@pytest.mark.req("A1")
@pytest.mark.parametrize(
    ("versions", "outcome"),
    [
        ([MODERN], ("modern", MODERN)),
        (["2099-01-01", MODERN, LEGACY], ("modern", MODERN)),
        (["2099-01-01", "2025-06-18", "2025-03-26"], ("legacy", "2025-06-18")),
        ([LEGACY], ("legacy", LEGACY)),
    ],
)
def test_a_discover_result_is_answered_with_the_newest_version_in_common(
    versions: list[str], outcome: tuple[str, str]
) -> None:
    driver = connecting()
    driver.reply({**DISCOVER, "supportedVersions": versions})
    if outcome[0] == "legacy":
        assert driver.last["params"]["protocolVersion"] == outcome[1]
        driver.reply(initialize_result(outcome[1]))
    assert decided(driver) == outcome


@pytest.mark.req("A1")
@pytest.mark.parametrize("versions", [[], ["2099-01-01"]])
def test_no_version_in_common_is_a_typed_error(versions: list[str]) -> None:
    driver = client()
    call = driver.engine.call_tool("echo", now=0.0)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply({**DISCOVER, "supportedVersions": versions})
    error = ended(driver)
    assert isinstance(error, NoCommonVersion)
    assert error.supported == tuple(versions)
    assert MODERN in error.requested
    failed = driver.one(RequestFailed)
    assert failed.call is call
    assert failed.error is error


@pytest.mark.req("A6", "B7")
def test_a_version_error_is_retried_with_a_version_of_its_list() -> None:
    driver = connecting()
    driver.reply(error=(-32022, {"supported": [MODERN, LEGACY], "requested": MODERN}))
    assert driver.methods() == ["server/discover", "initialize"], "the refused version is the last choice"


@pytest.mark.req("A6", "B7")
@pytest.mark.parametrize("comes_round", [True, False])
def test_a_version_that_is_refused_and_listed_is_tried_once_more(comes_round: bool) -> None:
    driver = connecting()
    refusal = (-32022, {"supported": [MODERN], "requested": MODERN})
    driver.reply(error=refusal)
    if comes_round:
        driver.reply(DISCOVER)
        assert decided(driver) == ("modern", MODERN)
    else:
        driver.reply(error=refusal)
        assert isinstance(ended(driver), NoCommonVersion)
    assert driver.methods() == ["server/discover"] * 2


@pytest.mark.req("A6")
def test_a_version_error_with_legacy_versions_only_leads_to_initialize() -> None:
    driver = connecting()
    supported = ["2025-03-26", "2025-06-18", "1999-01-01"]
    driver.reply(error=(-32022, {"supported": supported, "requested": MODERN}))
    assert driver.last["method"] == "initialize"
    assert driver.last["params"]["protocolVersion"] == "2025-06-18"


@pytest.mark.req("A6")
def test_a_version_error_with_nothing_in_common_is_a_typed_error() -> None:
    driver = connecting()
    driver.reply(error=(-32022, {"supported": ["2099-01-01"], "requested": MODERN}))
    error = ended(driver)
    assert isinstance(error, NoCommonVersion)
    assert error.supported == ("2099-01-01",)


@pytest.mark.req("A5")
@pytest.mark.parametrize("code", [-32020, -32021])
def test_modern_refusals_are_surfaced_and_never_fall_back(code: int) -> None:
    driver = connecting()
    data: Any = {"requiredCapabilities": {"elicitation": {}}}
    driver.reply(error=(code, data))
    assert driver.methods() == ["server/discover"]
    error = ended(driver)
    assert isinstance(error, McpError)
    assert (error.code, error.data) == (code, data)


@pytest.mark.req("A2")
@pytest.mark.case("V-02", "C-02")
def test_silence_leads_to_initialize_at_the_probe_deadline_and_a_late_answer_is_evidence() -> None:
    driver = connecting()
    driver.advance(4.999)
    assert driver.methods() == ["server/discover"]
    driver.advance(0.001)
    assert driver.methods() == ["server/discover", "initialize"], "and no cancel of the probe"
    driver.reply(DISCOVER, to=1)
    assert driver.methods() == ["server/discover", "initialize"]
    assert "late" in driver.engine.evidence[-1].outcome
    driver.reply(initialize_result(), to=driver.last["id"])
    assert decided(driver) == ("legacy", LEGACY)


@pytest.mark.req("A2", "A3")
@pytest.mark.case("C-02")
def test_the_connect_timeout_covers_probe_fallback_and_handshake() -> None:
    driver = client()
    call = driver.engine.call_tool("echo", now=0.0)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.advance(60.0)
    assert driver.methods() == ["server/discover", "initialize"], "initialize is never cancelled"
    error = ended(driver)
    assert isinstance(error, ConnectTimeout)
    assert "no answer to the probe" in str(error)
    assert driver.one(RequestFailed).call is call
    assert driver.engine.next_timeout() is None


@pytest.mark.req("A2")
def test_a_probe_timeout_longer_than_the_connect_timeout_gives_way() -> None:
    driver = connecting(timeouts=Timeouts(probe=90.0, connect=10.0))
    driver.advance(10.0)
    assert driver.methods() == ["server/discover"]
    assert isinstance(ended(driver), ConnectTimeout)


@pytest.mark.req("A13")
@pytest.mark.case("V-03")
def test_a_peer_that_ends_on_the_probe_is_started_once_more_for_initialize() -> None:
    driver = connecting()
    driver.engine.connection_lost(now=0.1, returncode=1, stderr_tail="unknown method")
    driver.drain()
    assert len(driver.wired(Reconnect)) == 1
    driver.engine.connection_restored(now=0.2)
    driver.drain()
    assert driver.methods() == ["server/discover", "initialize"]
    driver.reply(initialize_result())
    assert decided(driver)[0] == "legacy"
    assert any("ended on the probe" in e.outcome for e in driver.one(EraDecided).evidence)


@pytest.mark.req("A13")
def test_a_peer_that_ends_a_second_time_is_an_error_with_exit_code_and_last_words() -> None:
    driver = connecting()
    driver.engine.connection_lost(now=0.1, returncode=1, stderr_tail="first")
    driver.engine.connection_restored(now=0.2)
    driver.engine.connection_lost(now=0.3, returncode=7, stderr_tail="second")
    driver.drain()
    error = ended(driver)
    assert isinstance(error, ConnectionEnded)
    assert (error.returncode, error.stderr_tail) == (7, "second")
    assert len(driver.wired(Reconnect)) == 1


@pytest.mark.req("A13")
def test_a_peer_that_ends_on_initialize_after_a_silent_probe_is_started_once_more() -> None:
    driver = connecting()
    driver.advance(5.0)
    assert driver.last["method"] == "initialize"
    driver.engine.connection_lost(now=5.1, returncode=1)
    driver.drain()
    assert len(driver.wired(Reconnect)) == 1
    driver.engine.connection_restored(now=5.2)
    driver.drain()
    assert driver.methods() == ["server/discover", "initialize", "initialize"]
    driver.reply(initialize_result("2024-11-05"))
    assert decided(driver) == ("legacy", "2024-11-05")


def test_a_peer_that_ends_on_initialize_after_an_answered_probe_is_an_error() -> None:
    driver = connecting()
    driver.reply(error=-32601)
    driver.engine.connection_lost(now=0.1, returncode=1)
    driver.drain()
    assert isinstance(ended(driver), ConnectionEnded)
    assert not driver.wired(Reconnect)


@pytest.mark.req("A14")
def test_a_modern_refusal_of_a_late_initialize_leads_to_one_more_probe() -> None:
    driver = connecting()
    driver.advance(5.0)
    driver.reply(error=(-32022, {"supported": [MODERN], "requested": LEGACY}))
    assert driver.methods() == ["server/discover", "initialize", "server/discover"]
    driver.reply(DISCOVER)
    assert decided(driver) == ("modern", MODERN)


@pytest.mark.req("A14")
@pytest.mark.parametrize(("late", "code"), [(True, -32601), (True, -32022), (False, -32020)])
def test_a_slow_modern_server_is_found_out_when_it_refuses_initialize(late: bool, code: int) -> None:
    driver = connecting()
    driver.advance(5.0)
    if late:
        driver.reply(DISCOVER, to=1)
    driver.reply(error=(code, None), to=2)
    assert driver.methods() == ["server/discover", "initialize", "server/discover"]
    driver.advance(20.0)
    driver.reply(DISCOVER)
    assert decided(driver) == ("modern", MODERN), "it may be as slow as before"


@pytest.mark.req("A14")
def test_a_slow_legacy_server_is_probed_no_third_time() -> None:
    driver = connecting()
    driver.advance(5.0)
    driver.reply(error=(-32601, None), to=1)
    driver.reply(error=(-32602, None), to=2)
    driver.reply(error=(-32601, None))
    driver.reply(error=(-32602, None))
    assert driver.methods() == ["server/discover", "initialize"] * 2
    assert isinstance(ended(driver), HandshakeFailed)


@pytest.mark.req("A14")
def test_a_second_probe_of_a_modern_server_is_bounded_by_the_whole_time_only() -> None:
    driver = connecting()
    driver.advance(5.0)
    driver.reply(error=(-32022, {"supported": [MODERN], "requested": LEGACY}))
    driver.advance(54.9)
    assert driver.methods().count("initialize") == 1, "its silence is no evidence"
    driver.advance(0.1)
    assert isinstance(ended(driver), ConnectTimeout)


@pytest.mark.req("A14")
def test_a_second_answer_that_contradicts_itself_is_an_error() -> None:
    driver = connecting()
    driver.advance(5.0)
    driver.reply(error=(-32022, {"supported": [MODERN], "requested": LEGACY}))
    driver.reply(error=-32601)
    driver.reply(error=(-32022, {"supported": [MODERN], "requested": LEGACY}))
    assert driver.methods().count("server/discover") == 2
    assert isinstance(ended(driver), HandshakeFailed)


@pytest.mark.parametrize(
    "options",
    [{"capabilities": ClientCapabilities(roots={})}, {"info": Implementation(name=5, version="1")}],  # type: ignore[arg-type]
)
def test_what_cannot_be_told_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        ClientEngine(**{"info": ME, "now": 0.0, **options})


@pytest.mark.req("A12")
@pytest.mark.case("L-07")
@pytest.mark.parametrize("answered", ["2024-10-07", "2099-01-01", "", MODERN])
def test_an_unknown_version_in_the_answer_ends_the_connection_first(answered: str) -> None:
    driver = connecting(mode=Legacy())
    driver.reply(initialize_result(answered))
    assert driver.methods() == ["initialize"], "no notifications/initialized"
    error = ended(driver)
    assert isinstance(error, UnsupportedProtocolVersion)
    assert LEGACY in str(error)
    assert repr(answered) in str(error)


@pytest.mark.req("A15")
@pytest.mark.case("L-07", "V-08")
@pytest.mark.parametrize("answered", ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY])
def test_every_legacy_version_is_accepted_and_the_newest_is_offered(answered: str) -> None:
    driver = connecting(mode=Legacy())
    assert driver.methods() == ["initialize"]
    assert driver.last["params"]["protocolVersion"] == LEGACY
    driver.reply(initialize_result(answered))
    assert decided(driver) == ("legacy", answered)


@pytest.mark.req("A9")
def test_a_pinned_modern_version_sends_nothing_and_never_falls_back() -> None:
    driver = connecting(mode=Pin(LATEST))
    assert driver.methods() == []
    assert decided(driver) == ("modern", MODERN)
    driver.engine.call_tool("echo", now=0.0)
    driver.drain()
    driver.reply(error=-32601)
    assert isinstance(driver.one(RequestFailed).error, McpError)
    assert driver.methods() == ["tools/call"]


@pytest.mark.req("A9")
@pytest.mark.parametrize("answered", ["2025-06-18", "2025-03-26"])
def test_a_pinned_legacy_version_accepts_only_itself(answered: str) -> None:
    driver = connecting(mode=Pin(Revision.V2025_06_18))
    assert driver.methods() == ["initialize"]
    assert driver.last["params"]["protocolVersion"] == "2025-06-18"
    driver.reply(initialize_result(answered))
    if answered == "2025-06-18":
        assert decided(driver) == ("legacy", answered)
    else:
        assert isinstance(ended(driver), UnsupportedProtocolVersion)


@pytest.mark.req("A9")
def test_a_pinned_legacy_version_is_not_probed_after_a_modern_refusal() -> None:
    driver = connecting(mode=Pin(Revision.V2025_11_25))
    driver.reply(error=(-32022, {"supported": [MODERN], "requested": LEGACY}))
    assert driver.methods() == ["initialize"]
    assert isinstance(ended(driver), HandshakeFailed)


def test_a_mode_without_a_revision_is_refused() -> None:
    with pytest.raises(LocalProtocolError):
        client(mode=Auto(()))


# a remembered verdict ---------------------------------------------------------------------------


@pytest.mark.req("A10")
def test_a_remembered_modern_verdict_sends_nothing_and_survives_json() -> None:
    first = connecting()
    first.reply(DISCOVER)
    stored = first.one(EraDecided).verdict.to_json()
    assert stored == {"era": "modern", "revision": MODERN}
    driver = connecting(prior=Verdict.from_json(stored))
    assert driver.methods() == []
    assert decided(driver) == ("modern", MODERN)
    driver.engine.call_tool("echo", now=0.0)
    driver.drain()
    driver.reply({"resultType": "complete", "content": []})
    driver.one(ResultReady)
    assert driver.methods() == ["tools/call"]


@pytest.mark.req("A10")
@pytest.mark.case("V-10")
def test_a_contradicted_modern_verdict_is_dropped_and_the_call_goes_again_as_legacy() -> None:
    driver = connecting(prior=Verdict(LATEST.era, LATEST))
    call = driver.engine.call_tool("echo", now=0.0)
    driver.drain()
    driver.reply(error=-32602)
    assert driver.methods() == ["tools/call", "server/discover"]
    driver.reply(error=-32602)
    driver.reply(initialize_result())
    assert driver.methods()[-1] == "tools/call"
    assert "_meta" not in driver.last["params"]
    driver.reply({"content": []})
    assert driver.one(ResultReady).call is call
    assert [e.era.value for e in driver.of(EraDecided)] == ["modern", "legacy"]


@pytest.mark.req("A10")
def test_an_error_that_a_second_probe_proves_modern_reaches_its_call() -> None:
    driver = connecting(prior=Verdict(LATEST.era, LATEST))
    call = driver.engine.call_tool("nope", now=0.0)
    driver.drain()
    driver.reply(error=-32602)
    driver.reply(DISCOVER)
    failed = driver.one(RequestFailed)
    assert failed.call is call
    assert isinstance(failed.error, McpError)
    assert driver.methods().count("server/discover") == 1
    driver.engine.call_tool("nope", now=0.0)
    driver.drain()
    driver.reply(error=-32602)
    assert driver.methods().count("server/discover") == 1, "doubted once only"


@pytest.mark.req("A10")
@pytest.mark.case("V-10")
@pytest.mark.parametrize("code", [-32022, -32601])
def test_a_contradicted_legacy_verdict_leads_to_one_probe(code: int) -> None:
    driver = connecting(prior=Verdict(Revision.V2025_06_18.era, Revision.V2025_06_18))
    assert driver.methods() == ["initialize"]
    driver.reply(error=(code, {"supported": [MODERN]}))
    assert driver.methods() == ["initialize", "server/discover"]
    driver.reply(DISCOVER)
    assert decided(driver) == ("modern", MODERN)


@pytest.mark.req("A10")
@pytest.mark.parametrize(
    "value",
    [{}, {"era": "modern"}, {"era": "legacy", "revision": MODERN}, {"era": "modern", "revision": 1}],
)
def test_a_damaged_memory_is_refused(value: Any) -> None:
    with pytest.raises(LocalProtocolError):
        Verdict.from_json(value)


# odd but modern ---------------------------------------------------------------------------------


@pytest.mark.case("V-07")
def test_odd_optional_parts_do_not_change_the_verdict() -> None:
    driver = connecting()
    driver.reply(
        {
            "supportedVersions": [MODERN],
            "capabilities": {"futureThing": True},
            "instructions": 5,
            "_meta": {"io.modelcontextprotocol/serverInfo": "acme"},
        }
    )
    event = driver.one(EraDecided)
    assert event.verdict.revision is LATEST
    assert event.server_info is None
    assert event.instructions is None


@pytest.mark.case("J-13")
def test_an_unknown_notification_during_the_handshake_is_no_answer() -> None:
    driver = connecting()
    driver.receive({"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 3}})
    assert driver.methods() == ["server/discover"]
    driver.reply(DISCOVER)
    assert decided(driver)[0] == "modern"


# the pure functions -----------------------------------------------------------------------------

HTTP = ProbeContext(transport=TransportKind.HTTP)


@pytest.mark.req("A7", "A8")
@pytest.mark.case("V-04", "V-06")
@pytest.mark.parametrize(
    ("outcome", "context", "step"),
    [
        (ProbeOutcome(kind=Outcome.SILENCE), ProbeContext(), Step.INITIALIZE),
        (ProbeOutcome(kind=Outcome.SILENCE), HTTP, Step.INITIALIZE),
        (
            ProbeOutcome(kind=Outcome.SILENCE),
            ProbeContext(transport=TransportKind.HTTP, http_silence="error"),
            Step.FAIL,
        ),
        *((ProbeOutcome(kind=Outcome.HTTP_STATUS, status=s), HTTP, Step.INITIALIZE) for s in (400, 404, 405)),
        *((ProbeOutcome(kind=Outcome.HTTP_STATUS, status=s), HTTP, Step.AUTHORIZE) for s in (401, 403)),
        *((ProbeOutcome(kind=Outcome.HTTP_STATUS, status=s), HTTP, Step.FAIL) for s in (429, 500, 503)),
        (ProbeOutcome(kind=Outcome.REDIRECT, status=307), HTTP, Step.FOLLOW_REDIRECT),
        (ProbeOutcome(kind=Outcome.REDIRECT, status=308), HTTP, Step.FOLLOW_REDIRECT),
        (ProbeOutcome(kind=Outcome.REDIRECT, status=301), HTTP, Step.FAIL),
        (ProbeOutcome(kind=Outcome.REDIRECT, status=307, same_origin=False), HTTP, Step.FAIL),
        (ProbeOutcome(kind=Outcome.NETWORK_ERROR), HTTP, Step.FAIL),
        (ProbeOutcome(kind=Outcome.EXITED), ProbeContext(), Step.RESTART_AND_INITIALIZE),
        (ProbeOutcome(kind=Outcome.EXITED), ProbeContext(restarted=True), Step.FAIL),
        (
            ProbeOutcome(kind=Outcome.MALFORMED),
            ProbeContext(offered=(LATEST,)),
            Step.NO_COMMON_VERSION,
        ),
    ],
)
def test_classify_probe(outcome: ProbeOutcome, context: ProbeContext, step: Step) -> None:
    assert classify_probe(outcome, context).step is step


@pytest.mark.req("A7")
def test_the_classifications_are_total() -> None:
    codes = (0, -32020, -32021, -32022, -32601, 5)
    for kind, code, status, restarted, transport in itertools.product(
        Outcome, codes, (0, 200, 302, 400, 401, 404, 500), (False, True), TransportKind
    ):
        outcome = ProbeOutcome(kind=kind, code=code, status=status, versions=["x"], data=[])
        context = ProbeContext(transport=transport, restarted=restarted)
        assert classify_probe(outcome, context).reason
        for probed in (None, *Outcome):
            handshake = HandshakeContext(probed=probed, restarted=restarted)
            assert classify_handshake(outcome, handshake) in Step


@pytest.mark.req("A16")
def test_the_trail_is_bounded() -> None:
    driver = connecting()
    for _ in range(100):
        driver.engine._note("step", "outcome")
    assert len(driver.engine.evidence) == driver.engine.limits.max_evidence


def test_ignored_lines_do_not_disturb_the_probe() -> None:
    driver = connecting()
    driver.receive("Starting server on port 0", b'{"level":"info","msg":"ready"}', b"\xff\xfe")
    assert len(driver.of(MessageIgnored)) == 3
    assert driver.methods() == ["server/discover"]
    driver.reply(DISCOVER)
    assert decided(driver)[0] == "modern"


@pytest.mark.req("A10", "A13")
def test_a_peer_that_ends_on_the_first_message_contradicts_a_modern_memory() -> None:
    driver = connecting(prior=Verdict(LATEST.era, LATEST))
    lost = driver.engine.call_tool("echo", now=0.0)
    driver.drain()
    driver.engine.connection_lost(now=1.0, returncode=1)
    driver.drain()
    assert [e.call for e in driver.of(RequestFailed)] == [lost], "it may have been carried out"
    assert len(driver.wired(Reconnect)) == 1
    driver.engine.connection_restored(now=1.0)
    driver.drain()
    assert driver.last["method"] == "initialize"
    driver.reply(initialize_result())
    assert driver.of(EraDecided)[-1].era.value == "legacy"


def test_the_handshake_needs_no_room_among_the_open_calls() -> None:
    driver = client(limits=Limits(max_pending_calls=1))
    driver.engine.call_tool("echo", now=0.0)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply(DISCOVER)
    assert driver.methods() == ["server/discover", "tools/call"]


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        (None, {"supportedVersions": [MODERN], "capabilities": 5}),
        (None, {**DISCOVER, "instructions": 5}),
        (None, {**DISCOVER, "_meta": {"io.modelcontextprotocol/serverInfo": "acme"}}),
        (Legacy(), {**initialize_result(), "capabilities": []}),
        (Legacy(), {**initialize_result(), "serverInfo": {"name": 5}}),
    ],
)
def test_strict_mode_does_not_connect_to_an_odd_server(mode: Any, answer: dict[str, Any]) -> None:
    strict, lenient = connecting(mode=mode, strict=True), connecting(mode=mode)
    strict.reply(answer)
    lenient.reply(answer)
    assert isinstance(ended(strict), HandshakeFailed)
    assert not strict.of(EraDecided)
    assert lenient.of(EraDecided)
    assert len(lenient.of(DeviationTolerated)) == 1
