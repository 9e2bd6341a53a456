"""States that the client cannot read: sealed with AES-GCM."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import App, HmacSealer, LocalProtocolError, StateSealer
from sansmcp.auth.state_sealer import AesGcmSealer

KEY, OTHER = b"k" * 32, b"o" * 32
BOUND = b"for this request"
AT = 1_800_000_000.0


def entropy() -> Callable[[int], bytes]:
    numbers = count()
    return lambda size: next(numbers).to_bytes(size, "big")


def sealer(*keys: bytes, **options: Any) -> AesGcmSealer:
    return AesGcmSealer(keys or (KEY,), entropy(), **options)


@pytest.mark.req("E14")
@given(st.binary(max_size=200), st.binary(max_size=50))
def test_what_was_sealed_opens_for_what_it_was_sealed_for(payload: bytes, binding: bytes) -> None:
    made: StateSealer = sealer()
    text = made.seal(payload, binding, unix=AT)
    assert made.open(text, binding, unix=AT) == payload
    assert made.open(text, binding + b"x", unix=AT) is None
    assert text.isascii()


@pytest.mark.req("E14")
def test_nobody_else_can_read_it_and_no_two_are_alike() -> None:
    made = sealer()
    one, two = (made.seal(b"a secret of ours", BOUND, unix=AT) for _ in range(2))
    assert one != two
    from sansmcp.session.sealing import from_text

    assert b"secret" not in (from_text(one) or b"")


@pytest.mark.req("E14")
def test_no_changed_text_opens() -> None:
    made = sealer()
    text = made.seal(b"payload", BOUND, unix=AT)
    for at in range(len(text)):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        assert made.open(changed, BOUND, unix=AT) is None
    assert made.open(HmacSealer([KEY]).seal(b"payload", BOUND, unix=AT), BOUND, unix=AT) is None


@pytest.mark.req("E14")
@given(st.text(max_size=80))
def test_no_text_whatever_opens_or_raises(text: str) -> None:
    assert sealer().open(text, BOUND, unix=AT) is None


@pytest.mark.req("E14")
@pytest.mark.parametrize(("age", "opens"), [(0, True), (600, True), (601, False), (-60, True), (-61, False)])
def test_a_seal_has_its_time(age: float, opens: bool) -> None:
    text = sealer().seal(b"x", BOUND, unix=AT)
    assert (sealer().open(text, BOUND, unix=AT + age) is not None) == opens


@pytest.mark.req("E14")
@pytest.mark.parametrize(
    ("keys", "opens"),
    [((KEY,), True), ((OTHER, KEY), True), ((OTHER,), False)],
    ids=["same", "rotated", "gone"],
)
def test_every_key_opens_and_the_first_one_seals(keys: tuple[bytes, ...], opens: bool) -> None:
    text = sealer(KEY).seal(b"x", BOUND, unix=AT)
    assert (sealer(*keys).open(text, BOUND, unix=AT) == b"x") is opens
    mine = sealer(*keys).seal(b"y", BOUND, unix=AT)
    assert sealer(keys[0]).open(mine, BOUND, unix=AT) == b"y"


@pytest.mark.req("E14")
@pytest.mark.parametrize(
    "make",
    [
        lambda: AesGcmSealer([], entropy()),
        lambda: sealer(b"short"),
        lambda: sealer(KEY, b"x" * 33),
        lambda: sealer(ttl=0),
        lambda: sealer(ttl=float("nan")),
    ],
    ids=range(5),
)
def test_what_would_seal_badly_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(LocalProtocolError):
        make()


def test_no_key_is_shown_and_an_app_takes_it() -> None:
    made = sealer(KEY, OTHER)
    assert repr(made) == "AesGcmSealer(2 keys, ttl=600)"
    App("x", sealer=made)
