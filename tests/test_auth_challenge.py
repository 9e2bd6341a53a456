"""`WWW-Authenticate`, as servers write it and as nobody should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp.auth.challenge import (
    MAX_CHALLENGES,
    MAX_LENGTH,
    MAX_PARAMETERS,
    Challenge,
    for_tokens,
    parse_challenges,
)

A_04 = (
    'Basic realm="x, y", Bearer error="invalid_token", scope="a:read b:write", '
    'resource_metadata="https://s.example/p?x=1,2"'
)


def bearer(**parameters: str) -> Challenge:
    return Challenge("bearer", parameters)


GOOD = [
    ("", []),
    ("Bearer", [bearer()]),
    ("bearer", [bearer()]),
    ("BEARER realm=x", [bearer(realm="x")]),
    ('Bearer realm="", scope=""', [bearer(realm="", scope="")]),
    ('Bearer a = "b" ,\t c=d', [bearer(a="b", c="d")]),
    (", ,Bearer a=b,,", [bearer(a="b")]),
    ("Bearer, Basic realm=x", [bearer(), Challenge("basic", {"realm": "x"})]),
    ("Negotiate abc==, Bearer", [Challenge("negotiate", token="abc=="), bearer()]),
    ("Bearer a=, Basic", [Challenge("bearer", token="a="), Challenge("basic")]),
    ("Negotiate", [Challenge("negotiate")]),
    ('Bearer Scope="a b"', [bearer(scope="a b")]),
    (r'Bearer realm="say \"Bearer scope=x, y=\\\" there"',
     [bearer(realm='say "Bearer scope=x, y=\\" there')]),
    ('Basic realm="Bearer scope=evil", Bearer scope=good', [
        Challenge("basic", {"realm": "Bearer scope=evil"}), bearer(scope="good")
    ]),
    ('Digest realm="d", qop="auth, auth-int", nonce="n==", Bearer scope="a"', [
        Challenge("digest", {"realm": "d", "qop": "auth, auth-int", "nonce": "n=="}), bearer(scope="a")
    ]),
    ('DPoP algs="ES256 PS256"', [Challenge("dpop", {"algs": "ES256 PS256"})]),
    (A_04, [
        Challenge("basic", {"realm": "x, y"}),
        bearer(
            error="invalid_token", scope="a:read b:write", resource_metadata="https://s.example/p?x=1,2"
        ),
    ]),
]  # fmt: skip

ODD = [
    ('Bearer a="x", a="y"', [bearer(a="x")]),
    ('Bearer a="x" b="y"', [bearer(a="x", b="y")]),
    ('Bearer a="x', [bearer()]),
    ('Bearer scope="a", realm="open, resource_metadata="https://x"', [bearer(scope="a")]),
    ("realm=x, Bearer a=b", [bearer(a="b")]),
    ("@@, Bearer a=b", [bearer(a="b")]),
    ("Bearer a@b, c=d", [bearer(c="d")]),
    ("Bearer resource_metadata=https://s.example/p?x=1, scope=a:b",
     [bearer(resource_metadata="https://s.example/p?x=1", scope="a:b")]),
    ('Bearer realm=Zürich, scope="a"', [bearer(realm="Zürich", scope="a")]),
]  # fmt: skip


@pytest.mark.case("A-04")
@pytest.mark.req("T2")
@pytest.mark.parametrize(("text", "want"), GOOD)
def test_challenges_are_read_as_the_grammar_has_them(text: str, want: list[Challenge]) -> None:
    assert parse_challenges([text]) == (want, False)
    assert parse_challenges(["Foo a=b", text]) == ([Challenge("foo", {"a": "b"}), *want], False)


@pytest.mark.case("A-04")
@pytest.mark.parametrize(("text", "want"), ODD)
def test_what_is_malformed_is_left_out_and_told(text: str, want: list[Challenge]) -> None:
    assert parse_challenges([text]) == (want, True)


@given(st.text(alphabet='Bearer Basic,="\\ \tx1:/@', max_size=200))
def test_nothing_makes_it_fail(text: str) -> None:
    found, _ = parse_challenges([text])
    assert len(found) <= len(text)


def test_there_are_bounds() -> None:
    found, odd = parse_challenges([", ".join(["Bearer a=b"] * 50)])
    assert len(found) == MAX_CHALLENGES
    assert odd
    found, odd = parse_challenges(["Bearer " + ", ".join(f"p{n}=v" for n in range(100))])
    assert len(found[0].parameters) == MAX_PARAMETERS
    assert odd
    found, odd = parse_challenges([f'Bearer a="{"x" * MAX_LENGTH}"'])
    assert found == [bearer()]
    assert odd


@pytest.mark.parametrize("piece", ['a="', "a ", 'a="b" ', '\\"', "=", ",", 'a="\\'])
def test_the_longest_header_takes_no_time_to_speak_of(piece: str) -> None:
    text = "Bearer " + piece * (MAX_LENGTH // len(piece))
    for _ in range(50):  # each would take a second and more if its time were not linear
        parse_challenges([text])


def test_scopes() -> None:
    assert bearer().scopes is None
    assert bearer(scope="").scopes == ()
    assert bearer(scope=" b  a b ").scopes == ("b", "a")


def test_the_one_that_wants_a_token() -> None:
    assert for_tokens([]) is None
    assert for_tokens([Challenge("basic")]) is None
    assert for_tokens([Challenge("basic"), Challenge("dpop"), bearer()]) == Challenge("dpop")
    algorithms = Challenge("dpop", {"algs": "ES256"})
    assert for_tokens([bearer(realm="x"), algorithms, bearer(scope="a")]) == bearer(scope="a")
    assert for_tokens([bearer(scope="a"), bearer(error="e")]) == bearer(scope="a")
