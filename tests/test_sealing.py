"""The state that a modern client carries: nothing that was not sealed for this request is believed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import App, Context, HmacSealer, Limits, LocalProtocolError, PeerFault
from sansmcp.clock import ClockPair
from sansmcp.session.sealing import DEFAULT_TTL, MIN_KEY, bind

from .questions_support import ACCEPTED, FORM, FORMS, KEY, SUMMARY, Talk, asking_app, usual
from .support import MODERN

OTHER = b"o" * 32
BOUND = b"request"
AT = 1_700_000_000.0
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def sealed(payload: bytes = b"payload", **options: Any) -> str:
    return HmacSealer([KEY], **options).seal(payload, BOUND, unix=AT)


# the sealer ---------------------------------------------------------------------------------------


@pytest.mark.req("E14")
@given(st.binary(max_size=200), st.binary(max_size=50))
def test_what_was_sealed_opens_for_what_it_was_sealed_for(payload: bytes, binding: bytes) -> None:
    sealer = HmacSealer([KEY])
    text = sealer.seal(payload, binding, unix=AT)
    assert set(text) <= set(LETTERS)
    assert sealer.open(text, binding, unix=AT) == payload
    assert sealer.open(text, binding + b"x", unix=AT) is None


@pytest.mark.req("E14")
def test_no_changed_text_opens() -> None:
    text = sealed()
    sealer = HmacSealer([KEY])
    for index, letter in enumerate(text):
        for other in (c for c in (LETTERS[0], LETTERS[-1], LETTERS[(LETTERS.index(letter) + 1) % 64])):
            changed = text[:index] + other + text[index + 1 :]
            assert changed == text or sealer.open(changed, BOUND, unix=AT) is None, index
    for changed in (
        text + "-TAMPERED",
        text + "=",
        text[:-1],
        "A" + text,
        text + text,
        " " + text,
        text + "\n",
    ):
        assert sealer.open(changed, BOUND, unix=AT) is None, changed


@pytest.mark.req("E14")
@given(st.text(max_size=200))
def test_no_text_whatever_opens_or_raises(text: str) -> None:
    assert HmacSealer([KEY]).open(text, BOUND, unix=AT) is None


@pytest.mark.req("E14")
@pytest.mark.parametrize(
    ("age", "opens"),
    [(0, True), (599, True), (600, True), (601, False), (1e12, False), (-60, True), (-61, False)],
)
def test_a_seal_has_its_time(age: float, opens: bool) -> None:
    """A clock of another server may be a little ahead."""
    assert DEFAULT_TTL == 600
    assert (HmacSealer([KEY]).open(sealed(), BOUND, unix=AT + age) is not None) == opens


@pytest.mark.req("E14")
@pytest.mark.req("E14")
def test_keys_are_changed_in_one_server_after_the_other() -> None:
    old, new = b"o" * MIN_KEY, b"n" * MIN_KEY
    for before, after in [([old], [old, new]), ([old, new], [new, old]), ([new, old], [new])]:
        one, other = HmacSealer(before), HmacSealer(after)
        for seals, opens in [(one, other), (other, one)]:
            late = before == [new, old] and seals is one  # what the old key sealed has expired by then
            assert late or opens.open(seals.seal(b"a", b"b", unix=5), b"b", unix=6) == b"a"


def test_its_time_can_be_chosen() -> None:
    sealer = HmacSealer([KEY], ttl=5)
    assert sealer.open(sealed(), BOUND, unix=AT + 5) is not None
    assert sealer.open(sealed(), BOUND, unix=AT + 6) is None


@pytest.mark.req("E14")
@pytest.mark.parametrize(
    ("keys", "opens"),
    [
        ([KEY], True),
        ([OTHER, KEY], True),
        ([KEY, OTHER], True),
        ([OTHER], False),
        ([OTHER, b"x" * 40], False),
    ],
)
def test_every_key_opens_and_the_first_one_seals(keys: list[bytes], opens: bool) -> None:
    sealer = HmacSealer(keys)
    assert (sealer.open(sealed(), BOUND, unix=AT) is not None) == opens
    mine = sealer.seal(b"x", BOUND, unix=AT)
    assert HmacSealer(keys[:1]).open(mine, BOUND, unix=AT) == b"x"


@pytest.mark.req("E14")
@pytest.mark.parametrize(
    "make",
    [
        lambda: HmacSealer([]),
        lambda: HmacSealer([b"short"]),
        lambda: HmacSealer([KEY, b"x" * 31]),
        lambda: HmacSealer([KEY], ttl=0),
        lambda: HmacSealer([KEY], ttl=float("nan")),
        lambda: App("x", state_keys=[b"short"]),
        lambda: App("x", state_keys=[KEY], sealer=HmacSealer([KEY])),
    ],
)
def test_what_would_seal_badly_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(LocalProtocolError):
        make()


@pytest.mark.req("E14")
def test_no_key_is_shown() -> None:
    assert repr(HmacSealer([KEY, OTHER])) == "HmacSealer(2 keys, ttl=600)"


@pytest.mark.req("E14")
def test_what_a_seal_is_bound_to() -> None:
    params = {"name": "t", "arguments": {"a": 1, "b": [True, None, "é", "\ud800"]}}
    seal = bind("tools/call", params, "ann")
    turned = {"arguments": {"b": [True, None, "é", "\ud800"], "a": 1}, "name": "t"}
    extra = {"_meta": {"x": 1}, "inputResponses": {}, "requestState": "s"}
    assert bind("tools/call", {**turned, **extra}, "ann") == seal
    respelled = json.loads(json.dumps(params).replace('"a": 1', '"a": 10e-1'))
    assert bind("tools/call", respelled, "ann") == seal
    assert bind("prompts/get", params, "ann") != seal
    assert bind("tools/call", params, "bob") != seal
    assert bind("tools/call", params, None) != seal
    assert bind("tools/call", {**params, "name": "u"}, "ann") != seal
    assert bind("tools/call", {**params, "arguments": {"a": True, "b": []}}, "ann") != seal
    assert bind("tools/call", {**params, "more": 1}, "ann") != seal


# as a request meets it ----------------------------------------------------------------------------


def second_round(app: App, **options: Any) -> tuple[Talk, str]:
    """A client that is in its second round, and the state it carries."""
    talk = Talk(app, MODERN, **options)
    result = talk.tool("awaits", inputResponses={"elicit-1": ACCEPTED})
    state = result["requestState"]
    assert isinstance(state, str)
    return talk, state


def goes_on(result: dict[str, Any]) -> bool:
    return list(result.get("inputRequests", ())) == ["sample-1", "roots-1"]


@pytest.mark.req("E14")
def test_a_state_brings_back_what_was_answered() -> None:
    talk, state = second_round(asking_app(state_keys=[KEY]))
    assert goes_on(talk.tool("awaits", requestState=state))
    assert not talk.ignored


@pytest.mark.req("E14")
@pytest.mark.parametrize(
    "state",
    ["", "x", "{}", "null", "A" * 80, "-TAMPERED", "é", "\u0000", 5, None, [], {}, True, "A" * 300_000],
)
def test_a_state_that_was_not_made_here_is_refused_in_fixed_words(state: Any) -> None:
    app = asking_app(state_keys=[KEY])
    talk, genuine = second_round(app)
    if state == "-TAMPERED":
        state = genuine + state
    app.runs.clear()  # type: ignore[attr-defined]
    refused = talk.tool("awaits", requestState=state, inputResponses={"elicit-1": ACCEPTED})
    assert refused == {"code": -32602, "message": "invalid requestState"}
    assert not app.runs  # type: ignore[attr-defined]
    assert talk.ignored == [PeerFault.INVALID_STATE]


@pytest.mark.req("E14")
def test_a_state_is_for_its_own_request() -> None:
    app = asking_app(state_keys=[KEY])

    @app.prompt()
    async def awaits(ctx: Context) -> str:
        return (await ctx.elicit("x", FORM)).action

    talk, state = second_round(app)
    for method, params in (
        ("tools/call", {"name": "yields"}),
        ("tools/call", {"name": "awaits", "more": 1}),
        ("prompts/get", {"name": "awaits"}),
    ):
        refused = talk.once(method, {**params, "requestState": state})["error"]
        assert refused == {"code": -32602, "message": "invalid requestState"}


@pytest.mark.req("E14")
def test_a_state_is_for_its_own_principal() -> None:
    who = ["ann"]
    app = asking_app(state_keys=[KEY], principal=lambda request: who[0])
    talk, state = second_round(app)
    assert goes_on(talk.tool("awaits", requestState=state))
    who[0] = "eve"
    assert talk.tool("awaits", requestState=state)["code"] == -32602


@pytest.mark.req("E14")
def test_a_state_expires_by_the_time_of_day() -> None:
    app = asking_app(state_keys=[KEY])
    talk, state = second_round(app, clock=lambda: ClockPair(now=0.0, unix=AT))
    late = Talk(app, MODERN, clock=lambda: ClockPair(now=-5.0, unix=AT))  # another process, another zero
    for seconds, opens in ((0, True), (595, True), (10, False)):
        talk.now += seconds
        late.now += seconds
        assert goes_on(talk.tool("awaits", requestState=state)) == opens
    assert not goes_on(late.tool("awaits", requestState=state))


@pytest.mark.req("E14")
def test_servers_that_share_a_key_go_on_with_each_others_requests() -> None:
    _, state = second_round(asking_app(state_keys=[KEY]))
    assert goes_on(Talk(asking_app(state_keys=[OTHER, KEY]), MODERN).tool("awaits", requestState=state))
    assert not goes_on(Talk(asking_app(state_keys=[OTHER]), MODERN).tool("awaits", requestState=state))


@pytest.mark.req("E14")
def test_without_keys_one_is_drawn_for_all_connections_of_an_application() -> None:
    app = asking_app()
    _, state = second_round(app)
    assert goes_on(Talk(app, MODERN).tool("awaits", requestState=state))


@pytest.mark.req("E14")
def test_another_sealer_may_do_it() -> None:
    class Plain:
        def seal(self, payload: bytes, binding: bytes, *, unix: float) -> str:
            return payload.decode() + "|" + binding.hex()

        def open(self, text: str, binding: bytes, *, unix: float) -> bytes | None:
            payload, _, bound = text.rpartition("|")
            return payload.encode() if bound == binding.hex() else None

    talk, state = second_round(asking_app(sealer=Plain()))
    assert json.loads(state.rpartition("|")[0]) == {"answers": {"elicit-1": ACCEPTED}}
    assert goes_on(talk.tool("awaits", requestState=state))
    assert not goes_on(talk.tool("awaits", requestState=state + "x"))


@pytest.mark.req("E14")
@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": object()}, "y" * 300_000])
def test_a_state_that_cannot_be_carried_fails_the_request(value: Any) -> None:
    errors: list[BaseException] = []
    app = App("big", state_keys=[KEY], on_error=lambda error, number: errors.append(error))

    @app.tool()
    async def big(ctx: Context) -> str:
        ctx.state = value
        return (await ctx.elicit("x", FORM)).action

    reply = Talk(app, MODERN).tool("big")
    assert reply["code"] == -32603
    assert isinstance(errors[0], LocalProtocolError)
    assert "y" * 50 not in str(errors[0])


@pytest.mark.req("E14")
def test_the_size_of_a_state_is_bounded() -> None:
    app = asking_app(state_keys=[KEY])
    _, state = second_round(app)
    enough = Talk(app, MODERN, limits=Limits(max_request_state=len(state)))
    assert goes_on(enough.tool("awaits", requestState=state))
    small = Talk(app, MODERN, limits=Limits(max_request_state=len(state) - 1))
    assert small.tool("awaits", requestState=state)["message"] == "invalid requestState"
    assert small.tool("awaits", inputResponses={"elicit-1": ACCEPTED})["code"] == -32603


@pytest.mark.req("E14")
@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_a_state_is_shown(form: str) -> None:
    errors: list[BaseException] = []
    app = asking_app(state_keys=[KEY], on_error=lambda error, number: errors.append(error))
    talk = Talk(app, MODERN)
    reply, _ = talk.converse("tools/call", {"name": form}, usual)
    assert reply["result"]["content"][0]["text"] == SUMMARY
    _, state = second_round(app)
    talk.tool(form, requestState=state[:-1] + "A", inputResponses={"k": ACCEPTED})
    shown = "".join(repr(event) + str(getattr(event, "detail", "")) for event in talk.events)
    assert state[:20] not in shown
    assert state[-20:] not in shown
    assert "Bo" not in shown


@pytest.mark.req("E14")
def test_the_client_can_read_but_need_not() -> None:
    """What a state holds is no secret from its client: say so, since people put secrets there."""
    _, state = second_round(asking_app(state_keys=[KEY]))
    raw = base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
    assert raw.endswith(json.dumps({"answers": {"elicit-1": ACCEPTED}}, separators=(",", ":")).encode())
