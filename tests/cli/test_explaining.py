"""``explain`` and ``replay``: what messages and logs in a file are, and whether they happen again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sansmcp import (
    ClientEngine,
    Implementation,
)
from sansmcp.replay import hide_secrets, record

from .run import invoke

pytestmark = pytest.mark.req("AA11")

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(method: str, params: object = None, **members: object) -> str:
    body = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params}), **members}
    return json.dumps(body)


@pytest.mark.parametrize(
    ("text", "told", "broken"),
    [
        (message("tools/list", {"_meta": META}, id=1), "request 1 tools/list (modern, 2026-07-28)", None),
        (message("tools/call", {"name": "t"}, id="x"), "request 'x' tools/call (legacy, 2025-11-25)", None),
        (message("tools/call", {"name": 5}, id=1), "request 1 tools/call", "$.name: expected a string"),
        (message("tools/list", {"_meta": {next(iter(META)): "2026-07-28"}}, id=1), "modern", "is missing"),
        (message("tools/list", id=None), "no JSON-RPC message", "INVALID_ID"),
        (message("no/such", id=1), "request 1 no/such", "no method of the protocol"),
        (message("server/discover", {}, id=1), "legacy", "does not exist in 2025-11-25"),
        (message("notifications/progress", {"progressToken": 1}), "notification", "$.progress"),
        ("[" + message("ping", id=1) + "]", "batch of 1: request 1 ping", None),
        ('{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}', "METHOD_NOT_FOUND", None),
        ('{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', "no message", "two equal keys"),
        ("{", "no message", "character"),
    ],
)
def test_a_message_is_explained(text: str, told: str, broken: str | None) -> None:
    shown = invoke("explain", "-", stdin=text)
    first, *rest = shown.out.splitlines()
    assert told in first
    assert shown.code == (0 if broken is None else 1)
    assert [line for line in rest if broken is not None and broken in line] or (not rest and broken is None)


def test_answers_are_known_by_their_requests(tmp_path: Path) -> None:
    file = tmp_path / "messages.jsonl"
    lines = [
        message(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
            id=0,
        ),
        '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}}',
        message("tools/list", {"_meta": META}, id=1),
        '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
        message("tools/list", {}, id=2),
    ]
    file.write_text("\n".join(lines))
    shown = invoke("explain", str(file))
    assert shown.code == 1
    assert shown.first_error == "sansmcp: 2 of 5 messages break a rule"
    assert "2: result 0 of initialize (legacy, 2025-06-18)" in shown.out
    assert "$.serverInfo.name" in shown.out
    assert "no resultType" in shown.out
    assert "5: request 2 tools/list (legacy, 2025-06-18)" in shown.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["explain", "nowhere"], "there is no such file"),
        (["explain", "--revision", "1999", "-"], "--revision: known are"),
        (["replay", "nowhere"], "there is no such file"),
        (["replay", "-"], "not a log"),
    ],
)
def test_what_cannot_be_read_is_a_usage_error(words: list[str], told: str) -> None:
    shown = invoke(*words, stdin="[]")
    assert shown.code == 2
    assert told in shown.first_error


def a_log(file: Path, **options: object) -> None:
    info = Implementation(name="me", version="1")
    with file.open("w") as out:
        engine = record(ClientEngine(info, now=0.0), out.write, made_with={"info": info}, **options)  # type: ignore[arg-type]
        engine.connect(now=0.0)
        list(engine.events())
        engine.receive_message('{"jsonrpc":"2.0","id":1,"result":{"requestState":"s"}}', now=1.0)
        list(engine.events())


@pytest.mark.req("AA5")
def test_a_log_is_run_again_and_explained(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    a_log(file)
    shown = invoke("replay", str(file))
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.endswith(" steps, all as they are written\n")
    explained = invoke("explain", str(file))
    assert "sent request 1 server/discover (modern, 2026-07-28)" in explained.out
    file.write_text(file.read_text().replace('\\"me\\"', '\\"you\\"'))
    shown = invoke("replay", str(file))
    assert shown.code == 1
    assert "SendRequest: another data" in shown.first_error
    assert "got: " in shown.out


@pytest.mark.req("AA5")
def test_what_was_hidden_ends_the_replay(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    a_log(file, hide=hide_secrets)
    shown = invoke("replay", str(file))
    assert shown.code == 1
    assert "something of it was hidden" in shown.first_error


def test_explain_as_json(tmp_path: Path) -> None:
    file = tmp_path / "messages"
    file.write_text(
        f"{message('tools/list', {'_meta': META}, id=1)}\n{message('no/such', id=2)}\n", encoding="utf-8"
    )
    ran = invoke("explain", "--json", str(file))
    assert ran.code == 1
    assert ran.document["error"]["kind"] == "rule_broken"
    first, second = ran.document["result"]["messages"]
    assert first == {"where": "1", "is": "request 1 tools/list (modern, 2026-07-28)", "problems": []}
    assert (second["where"], len(second["problems"])) == ("2", 1)
    file.write_text(message("tools/list", {"_meta": META}, id=1), encoding="utf-8")
    whole = invoke("explain", "--json", str(file)).document
    assert (whole["ok"], whole["command"], len(whole["result"]["messages"])) == (True, "explain", 1)


def test_replay_as_json(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    a_log(file)
    same = invoke("replay", "--json", str(file)).document
    assert (same["ok"], same["command"]) == (True, "replay")
    assert same["result"]["steps"] > 0
    file.write_text(file.read_text().replace('\\"me\\"', '\\"you\\"'))
    ran = invoke("replay", "--json", str(file))
    assert ran.code == 1
    assert ran.document["error"]["kind"] == "diverged"
    assert {"steps", "line", "expected", "got"} == ran.document["result"].keys()
