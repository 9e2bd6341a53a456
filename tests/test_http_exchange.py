"""The vocabulary of HTTP exchanges."""

from __future__ import annotations

import pytest

from sansmcp.http.exchange import accepts, field_map, header, media_type

# the vocabulary ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "json", "stream"),
    [
        (None, True, True),
        ("", False, False),
        ("*/*", True, True),
        ("application/*", True, False),
        ("text/*;q=0.1", False, True),
        ("application/json;q=0", False, False),
        ("application/json; q=0.000", False, False),
        ("application/json;q=0.0001", True, False),
        ("application/json;q=zero", True, False),
        ("*/*;q=0, application/json", True, False),
        ("*/*, text/event-stream;q=0", True, False),
        ("application/json;charset=utf-8;Q=0", False, False),
        (" , ,text/event-stream", False, True),
        ("application/jsonx, application/jso", False, False),
    ],
)
def test_accept(value: str | None, json: bool, stream: bool) -> None:
    assert (accepts(value, "application/json"), accepts(value, "text/event-stream")) == (json, stream)


def test_fields_that_come_twice_are_one_list() -> None:
    headers = [("a", " 1 "), ("b", "2"), ("a", "\t3")]
    assert header(headers, "a") == "1, 3"
    assert header(headers, "c") is None
    assert field_map(headers) == {"a": "1, 3", "b": "2"}
    assert media_type(" Text/HTML ; x") == "text/html"
    assert media_type(None) == ""
