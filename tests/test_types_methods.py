"""The table of methods says what the official schemas say, per revision and direction."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp.revisions import Revision
from sansmcp.types import METHODS, Direction, Kind, Method, in_revision, spec_for
from sansmcp.types.lifecycle import (
    ClientCapabilities,
    ElicitationCapability,
    ResourcesCapability,
    RootsCapability,
    ServerCapabilities,
    ToolsCapability,
    declares,
)
from sansmcp.types.plan import plan_for
from tests.facts import make

FACTS: dict[str, Any] = json.loads(make.FACTS.read_text(encoding="utf-8"))
ROWS = [
    (column, method, row)
    for column in make.REVISIONS
    for method, row in make.spread(FACTS["methods"], column).items()
]
SENDERS = {
    "client": Direction.CLIENT_TO_SERVER,
    "server": Direction.SERVER_TO_CLIENT,
    "embedded": Direction.EMBEDDED,
}


def revision_of(column: str) -> Revision:
    return Revision(make.REVISIONS[column])


@pytest.mark.req("A18", "B9")
@pytest.mark.parametrize("column", list(make.REVISIONS))
def test_directions(column: str) -> None:
    """Exactly the methods of the schema exist, each in exactly its directions."""
    revision = revision_of(column)
    told = {
        (method, SENDERS[sender]) for c, method, row in ROWS if c == column for sender in row["by"].split()
    }
    ours = {(method, d) for method, spec in METHODS.items() for d in spec.directions(revision)}
    assert ours == told
    asked = {(m, d) for m in METHODS for d in Direction if in_revision(m, revision, d)}
    assert asked == told


@pytest.mark.req("B9")
@pytest.mark.parametrize(("column", "method", "row"), ROWS, ids=[f"{c}-{m}" for c, m, _ in ROWS])
def test_params(column: str, method: str, row: dict[str, str]) -> None:
    """The params' class has the members of the schema's params; what must be there is told."""
    spec = METHODS[method]
    told = row["params"].removeprefix("!")
    names = [] if told in ("", "object") else make.split(told)
    objects = make.spread(FACTS["objects"], column)
    members = [objects[name].keys() for name in names]
    required = any(t.startswith("!") for n in names for m, t in objects[n].items() if m != "_meta")
    # 2025-11-25 alone lets a cancellation leave out what it cancels.
    assert spec.params_required == (required or method == "notifications/cancelled")
    if spec.params_name == "ElicitRequestParams":
        return
    plan = plan_for(spec.params, revision_of(column))
    for there in members:
        assert {f.name for f in plan.known} - {"_meta"} == set(there) - {"_meta"}


@pytest.mark.req("B9")
def test_kinds() -> None:
    for method, spec in METHODS.items():
        notification = method.startswith("notifications/")
        assert spec.kind is (Kind.NOTIFICATION if notification else Kind.REQUEST)
        assert (spec.result is None) == notification
        assert spec.method == method


def test_modern_results() -> None:
    """What may be cached and what may ask for input is what the newest schema says."""
    objects = make.spread(FACTS["objects"], make.NEWEST)
    for column, method, row in ROWS:
        if column != make.NEWEST or "result" not in row:
            continue
        spec = METHODS[method]
        results = make.split(row["result"])
        assert spec.mrtr == ("InputRequiredResult" in results)
        (name,) = [r for r in results if r != "InputRequiredResult"]
        assert spec.result is not None
        assert spec.result.__name__ == name
        assert spec.cacheable == ("ttlMs" in objects[name])
        if spec.list_member is not None:
            assert objects[name][spec.list_member].startswith("![")
            assert "nextCursor" in objects[name]
        else:
            assert "nextCursor" not in objects[name]
    assert {m for m, s in METHODS.items() if s.cacheable} == {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }


@pytest.mark.req("C2")
def test_what_a_method_is_about() -> None:
    assert {m: s.name_member for m, s in METHODS.items() if s.name_member} == {
        "tools/call": "name",
        "prompts/get": "name",
        "resources/read": "uri",
    }
    for spec in METHODS.values():
        if spec.name_member is not None:
            names = {f.name: f.required for f in plan_for(spec.params, Revision.V2026_07_28).known}
            assert names[spec.name_member]


@pytest.mark.req("B9")
def test_unknown_methods() -> None:
    assert spec_for("tools/shout") is None
    assert not in_revision("tools/shout", Revision.V2026_07_28, Direction.CLIENT_TO_SERVER)
    with pytest.raises(ValueError, match="tools/shout"):
        Method("tools/shout")
    assert {m.value for m in Method} == set(METHODS)


def test_extension_methods_are_not_core() -> None:
    assert spec_for("tasks/update") is None
    assert spec_for("notifications/tasks") is None
    assert not METHODS["tasks/get"].directions(Revision.V2026_07_28)


def test_capabilities() -> None:
    """Each capability that a method asks for is one that a peer can declare."""
    for spec in METHODS.values():
        for path, role in (
            (spec.server_capability, ServerCapabilities),
            (spec.client_capability, ClientCapabilities),
        ):
            if path is not None:
                assert not declares(role(), path)
                revision = max(r for r in Revision if spec.directions(r))
                names = {f.name for f in plan_for(role, revision).known}
                assert path.split(".", maxsplit=1)[0] in names
    assert METHODS["completion/complete"].asks_server(Revision.V2024_11_05) is None
    assert METHODS["completion/complete"].asks_server(Revision.V2025_03_26) == "completions"


def test_declares() -> None:
    server = ServerCapabilities(
        tools=ToolsCapability(), resources=ResourcesCapability(subscribe=True, list_changed=False), logging={}
    )
    assert declares(server, "tools")
    assert not declares(server, "tools.listChanged")
    assert declares(server, "resources.subscribe")
    assert not declares(server, "resources.listChanged")
    assert declares(server, "logging")
    assert not declares(server, "prompts")
    assert not declares(server, "no.such.thing")
    client = ClientCapabilities(
        roots=RootsCapability(list_changed=True), elicitation=ElicitationCapability(url={})
    )
    assert declares(client, "roots.listChanged")
    assert declares(client, "elicitation.url")
    assert not declares(client, "elicitation.form")
    assert not declares(client, "extensions.x")
    assert declares(ClientCapabilities(extensions={"x": {}}), "extensions.x")
