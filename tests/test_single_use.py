"""States that open once."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import App, Context, HmacSealer, LocalProtocolError, SingleUse, UsedInMemory

from .questions_support import ACCEPTED, FORM, KEY, SUMMARY, Talk, asking_app, text_of
from .support import MODERN

BOUND = b"request"
AT = 1_700_000_000.0


class Dice:
    """Gives other bytes each time."""

    def __init__(self) -> None:
        self.thrown = 0

    def __call__(self, count: int) -> bytes:
        self.thrown += 1
        return self.thrown.to_bytes(count, "big")


def once(**options: Any) -> SingleUse:
    return SingleUse(HmacSealer([KEY]), Dice(), **options)


@pytest.mark.req("E14")
def test_a_state_opens_once() -> None:
    sealer = once()
    one, other = (sealer.seal(b"same", BOUND, unix=AT) for _ in range(2))
    assert sealer.open(one, b"another request", unix=AT) is None  # and that is no use of it
    assert sealer.open(one, BOUND, unix=AT) == b"same"
    assert sealer.open(one, BOUND, unix=AT) is None
    assert sealer.open(one, BOUND, unix=AT + 599) is None
    assert sealer.open(other, BOUND, unix=AT) == b"same"
    assert sealer.open(HmacSealer([KEY]).seal(b"short", BOUND, unix=AT), BOUND, unix=AT) is None


@pytest.mark.req("E14")
def test_servers_that_share_their_keys_share_what_was_used() -> None:
    used = UsedInMemory()
    one, other = once(used=used), once(used=used)
    text = one.seal(b"x", BOUND, unix=AT)
    assert other.open(text, BOUND, unix=AT) == b"x"
    assert one.open(text, BOUND, unix=AT) is None


@pytest.mark.req("E14", "AA12")
def test_what_is_remembered_is_bounded_and_forgotten_only_when_its_time_is_over() -> None:
    used = UsedInMemory(2)
    sealer = once(used=used)
    texts = [sealer.seal(b"x", BOUND, unix=AT) for _ in range(3)]
    assert [sealer.open(text, BOUND, unix=AT) for text in texts] == [b"x", b"x", None]
    assert len(used) == 2
    late = sealer.seal(b"x", BOUND, unix=AT + 661)
    assert sealer.open(texts[0], BOUND, unix=AT + 661) is None
    assert sealer.open(late, BOUND, unix=AT + 661) == b"x"
    assert len(used) == 1
    with pytest.raises(LocalProtocolError):
        UsedInMemory(0)


@pytest.mark.req("E14")
def test_a_conversation_goes_on_and_no_round_of_it_twice() -> None:
    app = asking_app(sealer=once())
    talk = Talk(app, MODERN)
    reply, _ = talk.converse("tools/call", {"name": "awaits"})
    assert text_of(reply) == SUMMARY
    runs: list[int] = []
    steps = App("steps", sealer=once())

    @steps.tool()
    async def pay(ctx: Context) -> str:
        runs.append(1)
        await ctx.elicit("who?", FORM)
        await ctx.elicit("sure?", FORM)
        return "paid"

    talk = Talk(steps, MODERN)
    first = talk.tool("pay", inputResponses={"elicit-1": ACCEPTED})
    again = {"inputResponses": {"elicit-2": ACCEPTED}, "requestState": first["requestState"]}
    assert talk.tool("pay", **again)["content"][0]["text"] == "paid"
    before = len(runs)
    assert talk.tool("pay", **again) == {"code": -32602, "message": "invalid requestState"}
    assert len(runs) == before


def test_no_secret_is_shown() -> None:
    assert repr(once()) == "SingleUse(HmacSealer(1 keys, ttl=600))"
