"""What a screen remembers changes none of its decisions."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.http.exchange import HttpRequest
from sansmcp.http.guard import ANY, Anything, GuardPolicy
from sansmcp.http.screen import Screen

HOSTS = [f"h{number}" for number in range(70)]

requests = st.builds(
    HttpRequest,
    st.sampled_from(["POST", "GET", "PUT"]),
    st.sampled_from(["/mcp", "/mcp?a", "/", "http://localhost/mcp", "http://elsewhere/mcp", "*"]),
    st.lists(
        st.tuples(
            st.just("host"), st.sampled_from(["localhost", "LocalHost ", "localhost:80", "foreign", ""])
        )
        | st.tuples(st.just("origin"), st.sampled_from(["http://localhost", "http://foreign", "null", ""]))
        | st.tuples(
            st.just("content-type"), st.sampled_from(["application/json", "Application/JSON; a", "x/y"])
        )
        | st.tuples(st.just("content-length"), st.sampled_from(["9", "99", "x"])),
        max_size=4,
    ),
    http_version=st.sampled_from(["1.1", "1.0"]),
)


def screen(hosts: list[str] | Anything) -> Screen:
    policy = GuardPolicy(hosts=hosts, origins=["localhost"])
    return Screen(path="/mcp", policy=policy, old_sse=None, max_body=10, sessions=False)


@pytest.mark.req("R6")
@settings(max_examples=300, deadline=None)
@given(st.lists(requests, max_size=8), st.sampled_from([["localhost"], ANY]))
def test_a_screen_decides_as_one_that_has_seen_nothing(
    asked: list[HttpRequest], hosts: list[str] | Anything
) -> None:
    one = screen(hosts)
    for request in asked:
        alone = attrs.evolve(request, fields=None)
        assert one.refusal(request) == screen(hosts).refusal(alone)


def test_the_hosts_that_a_screen_remembers_are_bounded() -> None:
    one = screen(ANY)
    for host in [*HOSTS, "h" * 65]:
        json = ("content-type", "application/json")
        assert one.refusal(HttpRequest("POST", "/mcp", [("host", host), json])) is None
    assert 0 < len(one._known) <= 64
    assert "h" * 65 not in one._known
