"""Quirks: without one nothing is different, with one the server is understood, and every use is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    CallCancelled,
    ClientEngine,
    HttpFailure,
    LocalProtocolError,
    McpError,
    QuirkUsed,
    RequestFailed,
    ResultReady,
)
from sansmcp.quirks import QUIRKS, Quirk, ReadAsJson, SessionLost

from .http_client_support import JSON, LEGACY, MODERN, TEXT, Link, linked, response
from .support import ME, call_tool, connected
from .test_http_client_sessions import reopen

pytestmark = pytest.mark.req("AA10")

LOST = (400, -32000, "Bad Request: No valid session ID provided")
MADE = Quirk(name="mine", rule=SessionLost(status=200, code=-32001), why="answers 200 with an error")


def refuse(link: Link, status: int, code: int, message: str, *, id: Any = None) -> None:
    error = {"code": code, "message": message}
    link.answer(link.last, status, json.dumps({"jsonrpc": "2.0", "id": id, "error": error}), JSON)


@pytest.mark.parametrize(
    ("quirk", "status", "code", "message"),
    [("session-lost-400", *LOST), (MADE, 200, -32001, "who are you?")],
)
@pytest.mark.parametrize("own_id", [False, True])
def test_a_lost_session_is_opened_anew(
    quirk: Any, status: int, code: int, message: str, own_id: bool
) -> None:
    link = linked(LEGACY, quirks=[quirk])
    call = link.engine.list_tools(now=0.0)
    link.drain()
    refuse(link, status, code, message, id=link.last.message["id"] if own_id else None)
    assert link.last.rpc == "initialize"
    name = quirk if isinstance(quirk, str) else quirk.name
    assert [(e.name, e.call) for e in link.of(QuirkUsed)] == [(name, call)]
    reopen(link)
    link.reply({"tools": []}, link.of_rpc("tools/list")[-1])
    assert link.one(ResultReady).call is call


@pytest.mark.parametrize(
    ("quirks", "status", "code", "message"),
    [
        ([], *LOST),
        (["json-as-text"], *LOST),
        (["session-lost-400"], 400, -32001, LOST[2]),
        (["session-lost-400"], 403, LOST[1], LOST[2]),
        (["session-lost-400"], 400, LOST[1], "Bad Request: Server not initialized"),
    ],
)
def test_what_fits_no_chosen_quirk_is_the_answer(
    quirks: list[str], status: int, code: int, message: str
) -> None:
    link = linked(LEGACY, quirks=quirks)
    link.engine.list_tools(now=0.0)
    link.drain()
    refuse(link, status, code, message)
    assert isinstance(link.one(RequestFailed).error, (McpError, HttpFailure))
    assert link.rpcs() == ["tools/list"]
    assert not link.of(QuirkUsed)


def test_without_a_session_none_is_lost() -> None:
    link = linked(LEGACY, session=None, quirks=["session-lost-400"])
    link.engine.list_tools(now=0.0)
    link.drain()
    refuse(link, *LOST)
    assert not link.of(QuirkUsed)
    link.one(RequestFailed)


def test_a_notification_that_is_refused_so_loses_the_session_too() -> None:
    link = linked(LEGACY, quirks=["session-lost-400"])
    link.engine.notify("notifications/x", now=0.0)
    link.drain()
    refuse(link, *LOST)
    assert link.last.rpc == "initialize"
    assert link.one(QuirkUsed).name == "session-lost-400"


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize(
    ("quirk", "kind"),
    [("json-as-text", "text/plain"), ("json-as-text", "Text/Plain; charset=utf-8"), ("json-untyped", None)],
)
def test_json_under_another_type_is_read(version: str, quirk: str, kind: str | None) -> None:
    for quirks in ([quirk], []):
        link = linked(version, quirks=quirks)
        link.call()
        result = TEXT if version == LEGACY else {"resultType": "complete", **TEXT}
        link.answer(link.last, 200, json.dumps(response(link.last, result)), kind)
        assert bool(link.of(ResultReady)) is bool(quirks)
        assert [e.name for e in link.of(QuirkUsed)] == quirks
        assert link.quiet()


def test_what_is_no_json_fails_as_json_does() -> None:
    link = linked(MODERN, quirks=["json-as-text"])
    link.call()
    link.answer(link.last, 200, "<html>", "text/plain")
    error: Any = link.one(RequestFailed).error
    assert "no JSON" in str(error)
    link = linked(MODERN, quirks=["json-as-text"])
    link.call()
    link.answer(link.last, 200, "<html>", "text/html")
    assert not link.of(QuirkUsed)


@pytest.mark.parametrize("quirks", [[], ["no-cancel"]])
def test_a_server_that_dies_of_it_is_not_told_of_a_cancel(quirks: list[str]) -> None:
    driver = connected(LEGACY, quirks=quirks)
    call = call_tool(driver)
    driver.engine.cancel(call, now=0.0)
    driver.drain()
    assert isinstance(driver.one(RequestFailed).error, CallCancelled)
    assert driver.methods() == ["tools/call", *([] if quirks else ["notifications/cancelled"])]
    assert [e.name for e in driver.of(QuirkUsed)] == quirks


def test_quirks_are_known_by_name_and_not_for_strict_clients() -> None:
    with pytest.raises(LocalProtocolError, match="no quirk is named 'x'"):
        ClientEngine(ME, now=0.0, quirks=["x"])
    with pytest.raises(LocalProtocolError, match="strict"):
        ClientEngine(ME, now=0.0, quirks=["no-cancel"], strict=True)
    assert all(name == quirk.name and quirk.why for name, quirk in QUIRKS.items())
    assert ReadAsJson("text/plain") == QUIRKS["json-as-text"].rule
