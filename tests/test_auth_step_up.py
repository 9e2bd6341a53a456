"""More rights: how often a user is asked for them, whatever a server wants next."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from sansmcp import RequestFailed, ResultReady
from sansmcp.auth import client as authorized
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem

from .auth_support import Asked, Reply, World


def more(scope: str) -> Reply:
    return 403, [("www-authenticate", f'Bearer error="insufficient_scope", scope="{scope}"')], b""


def never_satisfied(**options: Any) -> World:
    """A world with a server that wants one right more each time."""
    world, numbers = World(**options).start(), count()
    world.guard = lambda asked: more(f"s{next(numbers)}") if asked.json["method"] == "tools/call" else None
    return world


def why(end: object) -> AuthorizationProblem:
    assert isinstance(end, RequestFailed)
    assert isinstance(end.error, AuthorizationFailed)
    return end.error.problem


@pytest.mark.req("T5")
@pytest.mark.case("A-06")
@pytest.mark.parametrize("step_ups", [0, 1, 2])
def test_a_call_that_is_made_again_does_not_ask_the_user_again(step_ups: int) -> None:
    world = never_satisfied(step_ups=step_ups)
    for _ in range(5):
        assert why(world.call()) is AuthorizationProblem.INSUFFICIENT_SCOPE
    assert len(world.urls) == 1 + step_ups
    assert world.client.stats()["step_ups"] == (step_ups > 0)


@pytest.mark.req("T5")
def test_another_tool_may_need_other_rights() -> None:
    world = never_satisfied(step_ups=1)
    for name in ("echo", "echo", "other", "other"):
        world.call(name)
    assert len(world.urls) == 3
    world.client.authorize(world.now)  # the user wants it
    world.drain()
    world.call("other")
    assert len(world.urls) == 5


@pytest.mark.req("T5")
def test_what_succeeded_may_need_more_the_next_time() -> None:
    world = World(step_ups=1).start()
    for number in range(4):
        wanted = f"area-{number}"

        def guard(asked: Asked, wanted: str = wanted) -> Reply | None:
            return None if wanted in world.asked_user.get("scope", "") else more(wanted)

        world.guard = guard
        assert isinstance(world.call(), ResultReady)
    assert len(world.urls) == 5
    assert world.client.stats()["step_ups"] == 0


@pytest.mark.req("T5")
def test_not_more_is_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorized, "MAX_OPERATIONS", 3)
    world = never_satisfied(step_ups=1)
    for number in range(6):
        world.call(f"tool-{number}")
    assert world.client.stats()["step_ups"] == 3
