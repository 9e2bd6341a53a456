"""The machine that takes the steps of a flow: its deadlines."""

from __future__ import annotations

import pytest

from sansmcp.auth.authorization import FETCH_WAIT, MAX_REDIRECTS
from sansmcp.events import AuthorizationGranted

from .auth_support import PRM_AT, Asked, Reply, World, as_json

ROOT_PRM = "https://mcp.example/.well-known/oauth-protected-resource"


@pytest.mark.req("T2")
@pytest.mark.case("A-01")
def test_who_points_on_and_on_has_no_more_time_than_who_answers() -> None:
    world = World()
    world.at[ROOT_PRM] = as_json(world.resource)
    world.held = True
    world.start()

    def answer(reply: Reply) -> None:
        exchange, asked = world.pending.pop(0)
        world.at[asked.url] = reply
        world.reply(exchange, asked)
        world.drain()

    answer((401, [("www-authenticate", world.challenge)], b""))
    for number in range(MAX_REDIRECTS):
        world.advance(FETCH_WAIT / (MAX_REDIRECTS + 1))
        answer((302, [("location", f"/step-{number}")], b""))
    assert world.pending[0][1].url.endswith(f"/step-{MAX_REDIRECTS - 1}")
    world.advance(FETCH_WAIT / (MAX_REDIRECTS + 1))
    (waiting,) = world.pending
    assert isinstance(waiting[1], Asked)
    assert waiting[1].url == ROOT_PRM, "the deadline of the first place has passed"
    world.at.clear()
    world.at[ROOT_PRM] = as_json(world.resource)
    world.held = False
    world.drain()
    world.one(AuthorizationGranted)
    assert PRM_AT in {asked.url for asked in world.asked}
