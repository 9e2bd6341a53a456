"""URI templates: filled in as RFC 6570 has it, matched without surprise, and never out of the folder."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sansmcp import LocalProtocolError
from sansmcp.uritemplate import MAX_TEMPLATE, MAX_URI, MAX_VARIABLES, UriTemplate

VALUES: dict[str, Any] = {
    "word": "blue",
    "phrase": "see & say!",
    "path": "/one/two",
    "blank": "",
    "number": 17,
    "fraction": 2.5,
    "uni": "grün",
    "colours": ["red", "lime green", "a,b"],
    "none": [],
    "pairs": {"x": "1", "y": "", "a&b": "ü"},
    "nothing": {},
    "done": "50%25",
    "absent": None,
}


@pytest.mark.req("Z2")
@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{word}", "blue"),
        ("{phrase}", "see%20%26%20say%21"),
        ("x{blank}y", "xy"),
        ("x{absent}y{unknown}", "xy"),
        ("{number}{fraction}", "172.5"),
        ("{uni}", "gr%C3%BCn"),
        ("{word,absent,blank,number}", "blue,,17"),
        ("{colours}", "red,lime%20green,a%2Cb"),
        ("{colours*}", "red,lime%20green,a%2Cb"),
        ("{pairs}", "x,1,y,,a%26b,%C3%BC"),
        ("{pairs*}", "x=1,y=,a%26b=%C3%BC"),
        ("x{none}{none*}{nothing}{nothing*}", "x"),
        ("{word:2}{uni:3}{word:99}", "blgr%C3%BCblue"),
        ("{done}", "50%2525"),
        ("{+path}", "/one/two"),
        ("{+phrase}", "see%20&%20say!"),
        ("{+done}", "50%25"),
        ("{+path:4}/x", "/one/x"),
        ("{+word,path}", "blue,/one/two"),
        ("{+colours}", "red,lime%20green,a,b"),
        ("{#path}", "#/one/two"),
        ("{#word,blank}", "#blue,"),
        ("{#absent}", ""),
        ("x{.word}", "x.blue"),
        ("x{.word,number}", "x.blue.17"),
        ("x{.colours*}", "x.red.lime%20green.a%2Cb"),
        ("x{.blank}", "x."),
        ("{/word,path}", "/blue/%2Fone%2Ftwo"),
        ("{/colours*}", "/red/lime%20green/a%2Cb"),
        ("{/pairs*}", "/x=1/y=/a%26b=%C3%BC"),
        ("{;word,blank,absent}", ";word=blue;blank"),
        ("{;colours}", ";colours=red,lime%20green,a%2Cb"),
        ("{;pairs*}", ";x=1;y;a%26b=%C3%BC"),
        ("{?word,blank,absent}", "?word=blue&blank="),
        ("{?absent}", ""),
        ("{?colours*}", "?colours=red&colours=lime%20green&colours=a%2Cb"),
        ("{?pairs*}", "?x=1&y=&a%26b=%C3%BC"),
        ("{?word:1}", "?word=b"),
        ("x?a=1{&word}", "x?a=1&word=blue"),
        ("{word}{/word}{?word}{#word}", "blue/blue?word=blue#blue"),
        ("{a.b}", ""),
        ("http://h/~{word}/%C3%BC", "http://h/~blue/%C3%BC"),
        ("ü{word}\U0001f600", "%C3%BCblue%F0%9F%98%80"),
        ("{%20a}{w%20d.x}", ""),
    ],
)
def test_a_template_is_filled_in(template: str, uri: str) -> None:
    assert UriTemplate(template).expand(VALUES) == uri


@pytest.mark.req("Z2")
@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("test://a", "test://a", {}),
        ("test://a", "test://ab", None),
        ("test://{id}/data", "test://123/data", {"id": "123"}),
        ("test://{id}/data", "test://a%20b/data", {"id": "a b"}),
        ("test://{id}/data", "test:///data", None),
        ("test://{id}/data", "test://1/2/data", None),
        ("test://{id}/data", "test://1/data/x", None),
        ("test://{id}/data", "xtest://1/data", None),
        ("{id}/data", "data/data", {"id": "data"}),
        ("{a}-{b}", "x-y-z", {"a": "x", "b": "y-z"}),
        ("{a}.{b}.txt", "x.y.txt", {"a": "x", "b": "y"}),
        ("{a},{b}", "1,2", {"a": "1", "b": "2"}),
        ("{a,b}", "1,2", {"a": "1", "b": "2"}),
        ("f://{id}", "f://a?b", None),
        ("f://{id}", "f://a#b", None),
        ("f://{id}", "f://a%3Fb", {"id": "a?b"}),
        ("file:///{+path}", "file:///a/b/c.txt", {"path": "a/b/c.txt"}),
        ("file:///{+path}.txt", "file:///a/b.txt", {"path": "a/b"}),
        ("file:///{+path}", "file:///", None),
        ("repo:/{/path*}", "repo://a/b", {"path": ["a", "b"]}),
        ("repo:{/path*}", "repo:/a%20b/c", {"path": ["a b", "c"]}),
        ("repo:{/path*}", "repo:/a//c", None),
        ("repo:{/path*}", "repo:/", None),
        ("repo:{/owner,name}", "repo:/me/it", {"owner": "me", "name": "it"}),
        ("x{.ext}", "x.json", {"ext": "json"}),
        ("x{#part}", "x#a/b", {"part": "a/b"}),
        ("s://q{?a,b}", "s://q", {}),
        ("s://q{?a,b}", "s://q?b=2&a=1", {"a": "1", "b": "2"}),
        ("s://q{?a,b}", "s://q?a=x%20y+z&c=3&a=no", {"a": "x y z"}),
        ("s://q{?a}{&b}", "s://q?b=", {"b": ""}),
        ("s://{id}{?a}", "s://1?a=/../", {"id": "1", "a": "/../"}),
        ("s://q{?a}", "s://other?a=1", None),
        ("s://q{?a}", "s://q?a=1#b", None),
        ("ü/{a}", "ü/ö", {"a": "ö"}),
        ("ü/{a}", "%C3%BC/%C3%B6", {"a": "ö"}),
        ("x:{a}", "x:\ud800", None),
        ("file://{+path}", "file:///a/b", {"path": "/a/b"}),
    ],
)
def test_a_uri_is_matched(template: str, uri: str, values: dict[str, Any] | None) -> None:
    assert UriTemplate(template).match(uri) == values


@pytest.mark.req("Z2")
@pytest.mark.parametrize("value", ["\ud800", ["a", "\udfff"], {"\ud800": "a"}])
def test_what_no_uri_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(LocalProtocolError, match="lone surrogate"):
        UriTemplate("a://{v}").expand({"v": value})


@pytest.mark.req("Z2")
@pytest.mark.parametrize("template", ["file:///{id}", "file:///{+id}", "file:/{/id*}"])
@pytest.mark.parametrize(
    "way_out",
    [
        "..",
        ".",
        "%2e%2e",
        "%2E.",
        "..%2Fetc",
        "a/../b",
        "a%2f..%2fb",
        "a\\b",
        "a%5Cb",
        "a%00b",
        "a/./b",
        "a/..",
        "/etc/passwd",
        "%2Fetc/passwd",
        "%2fetc",
    ],
)
def test_no_part_leads_out_of_its_folder(template: str, way_out: str) -> None:
    assert UriTemplate(template).match("file:///" + way_out) is None


@pytest.mark.req("Z2")
@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{a}{b}", "nothing separates a and b"),
        ("{a}{+b}", "nothing separates"),
        ("{?a}x", "follows the query"),
        ("{?a}{b}", "follows the query"),
        ("{&a}", "without"),
        ("{?a*}", "in a query"),
        ("{?a:3}", "in a query"),
        ("{;a}", ";"),
        ("{a:3}", "cut"),
        ("x?y{?a}", "two queries"),
        ("{a}/{a}", "occurs twice"),
    ],
)
def test_a_template_that_can_be_filled_in_and_not_matched(template: str, reason: str) -> None:
    made = UriTemplate(template)
    made.expand({})
    with pytest.raises(LocalProtocolError, match=reason):
        made.check_matchable()
    with pytest.raises(LocalProtocolError, match="cannot be matched"):
        made.match("x")


@pytest.mark.req("Z2")
@pytest.mark.parametrize(
    "template",
    [
        "{",
        "}",
        "{}",
        "{a",
        "a}",
        "{{a}}",
        "{a b}",
        "{a|b}",
        "{=a}",
        "{a:0}",
        "{a:10000}",
        "{a:}",
        "{a**}",
        "{,a}",
        "{a,}",
        "a b",
        "a\nb",
        "<a>",
        "%zz",
        "x" * (MAX_TEMPLATE + 1),
        "/".join(f"{{v{i}}}" for i in range(MAX_VARIABLES + 1)),
    ],
)
def test_what_is_no_template(template: str) -> None:
    with pytest.raises(LocalProtocolError):
        UriTemplate(template)


def test_a_uri_that_is_too_long_matches_nothing() -> None:
    template = UriTemplate("x{id}")
    assert template.match("x" + "1" * (MAX_URI - 1)) is not None
    assert template.match("x" + "1" * MAX_URI) is None


SHAPES = ["a://{v}", "a://{v}/x", "a://b/{+v}", "a:{/v*}", "a:{?v}", "a://{v}-{w}.c", "a://{v,w}", "{v}{.w}"]


@given(st.sampled_from(SHAPES), st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
@example("a://{v}", "%2F", "x")
@example("a://{v}-{w}.c", "-", ".c")
def test_what_was_filled_in_matches_again_or_not_at_all(shape: str, v: str, w: str) -> None:
    template = UriTemplate(shape)
    try:
        uri = template.expand({"v": v, "w": w})
    except UnicodeEncodeError:
        return
    matched = template.match(uri)
    if matched is not None:
        again = template.expand(dict(matched))
        assert template.match(again) == matched


@given(st.sampled_from(SHAPES), st.text(alphabet="a:/?-.,=&%2eEfF{}\\", max_size=40))
def test_no_uri_breaks_a_match(shape: str, uri: str) -> None:
    matched = UriTemplate(shape).match(uri)
    for value in (matched or {}).values():
        for item in [value] if isinstance(value, str) else value:
            assert ".." not in item.split("/") or "?v" in shape
