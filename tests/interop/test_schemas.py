"""Whatever our engines send, in whatever revision, is what the official schema of that revision says."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import ALL_REVISIONS, App, Revision
from tests.facts.make import schema_dir

from .scenario import LATEST, Pair, RichApp, Said, make_app, tour
from .schemas import RESULTS, judge

pytestmark = pytest.mark.skipif(
    not (schema_dir() / f"{LATEST}.schema.json").is_file(), reason="the official schemas are not here"
)


# What our engines have no verb for.
NOT_SENT = {
    "ClientRequest": {"tasks/cancel", "tasks/get", "tasks/list", "tasks/result"},
    "ServerRequest": {"tasks/cancel", "tasks/get", "tasks/list", "tasks/result"},
    "ClientNotification": {"notifications/progress", "notifications/tasks/status"},
    "ServerNotification": {
        "notifications/elicitation/complete",
        "notifications/tasks/status",
    },
}


def check(pair: Pair) -> None:
    """Every message is what its revision says."""
    problems = []
    for said in pair.said:
        try:
            judge(said.revision).message(said.message, said.method)
        except AssertionError as error:
            problems.append(f"{said.role}: {error}\n    {said.message}")
    for batch in pair.batches:
        judge(Revision.V2025_03_26).value("JSONRPCBatchResponse", batch)
    assert not problems, "\n".join(problems)


def kind(said: Said) -> str | None:
    """The union of the schema that a request or notification belongs to."""
    if "method" not in said.message:
        return None
    return str(said.role).capitalize() + ("Request" if "id" in said.message else "Notification")


def check_that_nothing_is_missing(pair: Pair, revision: Revision) -> None:
    """The tour used all that the revision has and that our engines can say."""
    for name, not_sent in NOT_SENT.items():
        of_this = {s.message["method"] for s in pair.said if kind(s) == name and s.revision is revision}
        expected = judge(revision).union(name) - not_sent
        assert of_this - {"example.org/own", "example.org/other"} == expected, name
    results = {s.method for s in pair.said if "result" in s.message and s.revision is revision}
    requests = judge(revision).union("ClientRequest") | judge(revision).union("ServerRequest")
    assert results - {"example.org/own"} == {m for m in RESULTS if m in requests}
    codes = {s.message["error"]["code"] for s in pair.said if "error" in s.message and s.revision is revision}
    everywhere = {-32700, -32600, -32601, -32602, -32603, 1234}
    modern, legacy = {-32020, -32021, -32022}, {-32002}
    assert everywhere | (modern if revision is LATEST else legacy) <= codes
    assert (revision is Revision.V2025_11_25) is (-32042 in codes)
    assert (revision is Revision.V2025_03_26) is bool(pair.batches)


@pytest.mark.parametrize("revision", ALL_REVISIONS, ids=str)
@pytest.mark.parametrize("probed", [False, True], ids=["offered", "probed"])
@pytest.mark.req("A18", "B2", "B4", "B7", "B8", "D3", "N7", "U1", "U2", "U3", "W7")
def test_everything_that_is_sent(revision: Revision, probed: bool) -> None:
    pair = tour(make_app(App), revision, probed=probed)
    check(pair)
    check_that_nothing_is_missing(pair, revision)
    assert {s.revision for s in pair.said} == ({LATEST, revision} if probed else {revision})


@pytest.mark.parametrize("revision", ALL_REVISIONS, ids=str)
@pytest.mark.req("A18", "W3")
def test_definitions_with_every_member(revision: Revision) -> None:
    """Whatever an application sets, a revision is told what it has."""
    pair = tour(make_app(RichApp), revision, probed=False)
    check(pair)
    listed = [said.message.get("result", {}) for said in pair.said if said.method == "tools/list"]
    tool = next(result["tools"][0] for result in listed if "tools" in result)
    known = judge(revision).definitions["Tool"]["properties"]
    assert set(tool) == set(known)


@pytest.mark.parametrize(
    ("revision", "message", "method", "told"),
    [
        (
            Revision.V2024_11_05,
            {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {"content": [{"type": "audio", "data": "", "mimeType": ""}]},
            },
            "tools/call",
            "is not valid",
        ),
        (
            Revision.V2025_03_26,
            {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": {}}},
            "tools/call",
            "names what the revision lacks",
        ),
        (
            Revision.V2025_06_18,
            {"jsonrpc": "2.0", "id": None, "method": "ping"},
            None,
            "is not valid",
        ),
        (
            Revision.V2025_11_25,
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32042, "message": "", "data": {}}},
            None,
            "is not valid",
        ),
        (
            LATEST,
            {"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "resultType": "complete"}},
            "tools/list",
            "is not valid",
        ),
        (
            LATEST,
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
            None,
            "is not valid",
        ),
    ],
)
def test_the_judge_is_strict(revision: Revision, message: dict[str, Any], method: str, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        judge(revision).message(message, method)
