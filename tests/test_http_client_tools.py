"""Arguments in headers, as the HTTP client does it: learnt from lists, recovered when refused."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import LimitHit, Limits, ListChanged, McpError, RequestFailed, ResultReady
from sansmcp.events import ToolExcluded

from .http_client_support import CUTS, DONE, LEGACY, Asked, Link, linked, note, response

REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
ZONE = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Zone"}}}
PLAIN = {"type": "object", "properties": {"region": {"type": "string"}}}


def tool(name: str = "sql", schema: Any = REGION) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema}


def listed(*tools: Any, cursor: str | None = None) -> dict[str, Any]:
    more = {} if cursor is None else {"nextCursor": cursor}
    return {"resultType": "complete", "tools": list(tools), "ttlMs": 0, "cacheScope": "private", **more}


def read(link: Link, *tools: Any, cursor: str | None = None, after: str | None = None) -> Any:
    """Read one page; the raw result as the application gets it."""
    link.engine.list_tools(after, now=link.now)
    link.drain()
    link.reply(listed(*tools, cursor=cursor))
    return link.of(ResultReady)[-1].raw


def called(link: Link, name: str = "sql", **arguments: Any) -> Asked:
    link.call(name, arguments=arguments or {"region": "us-west1"})
    return link.last


def mirrored(asked: Asked) -> dict[str, str]:
    return {k: v for k, v in asked.headers.items() if k.startswith("mcp-param-")}


@pytest.mark.req("C4", "C1")
@pytest.mark.case("P-06")
def test_arguments_are_mirrored_as_the_last_list_wants_it_however_old() -> None:
    link = linked()
    assert mirrored(called(link)) == {}, "a tool that was never listed"
    read(link, tool())
    link.advance(50_000.0)
    asked = called(link)
    assert mirrored(asked) == {"mcp-param-region": "us-west1"}
    assert asked.headers["mcp-name"] == "sql"
    read(link, tool(schema=ZONE), tool("other"))
    assert mirrored(called(link)) == {"mcp-param-zone": "us-west1"}
    read(link, tool(schema=PLAIN), tool("other"))
    assert mirrored(called(link)) == {}
    assert mirrored(called(link, "other")) == {"mcp-param-region": "us-west1"}
    read(link, tool())
    assert mirrored(called(link, "other")) == {}, "the newer list does not have it"


@pytest.mark.req("C4")
@pytest.mark.case("P-07")
def test_an_argument_that_is_not_there_has_no_header() -> None:
    link = linked()
    read(link, tool())
    assert mirrored(called(link, region=None)) == {}
    assert mirrored(called(link, other=1)) == {}


@pytest.mark.req("C3")
@pytest.mark.case("P-01", "P-03")
def test_values_are_encoded_where_they_have_to_be() -> None:
    link = linked()
    read(link, tool("weather_東京"))
    asked = called(link, "weather_東京", region="Hello, 世界")
    assert asked.headers["mcp-name"] == "=?base64?d2VhdGhlcl/mnbHkuqw=?="
    assert mirrored(asked) == {"mcp-param-region": "=?base64?SGVsbG8sIOS4lueVjA==?="}


@pytest.mark.case("P-06")
def test_a_list_that_changed_is_forgotten_on_the_spot() -> None:
    link = linked()
    read(link, tool())
    link.engine.request("vendor/x", now=0.0)
    link.drain()
    link.stream(link.last, note("notifications/tools/list_changed"), end=False)
    link.one(ListChanged)
    assert mirrored(called(link)) == {}


@pytest.mark.case("P-06")
def test_an_earlier_list_holds_until_the_newer_one_is_read_to_its_end() -> None:
    link = linked()
    read(link, tool("a"), tool("b"))
    read(link, tool("a", ZONE), cursor="2")
    assert mirrored(called(link, "a")) == {"mcp-param-zone": "us-west1"}
    assert mirrored(called(link, "b")) == {"mcp-param-region": "us-west1"}
    read(link, tool("c"), after="2")
    assert mirrored(called(link, "a")) == {"mcp-param-zone": "us-west1"}
    assert mirrored(called(link, "b")) == {}
    assert mirrored(called(link, "c")) == {"mcp-param-region": "us-west1"}


@pytest.mark.req("C5")
@pytest.mark.case("P-05")
@pytest.mark.parametrize("cut", CUTS)
def test_a_badly_annotated_tool_is_left_out_and_told(cut: Any) -> None:
    def bad(annotation: Any, kind: Any = "string") -> Any:
        return {"properties": {"x": {"type": kind, "x-mcp-header": annotation}}}

    both = {"properties": {n: {"type": "string", "x-mcp-header": n} for n in ("Id", "ID")}}
    inside = {"properties": {"l": {"type": "array", "items": bad("Row")["properties"]["x"]}}}
    tools = [
        tool("good"),
        tool("empty", bad("")),
        tool("space", bad("Bad Name")),
        tool("number", bad("N", "number")),
        tool("twice", both),
        tool("inside", inside),
        {"name": 5, "inputSchema": bad("")},
        "no tool",
    ]
    link = linked(cut=cut)
    raw = read(link, *tools)
    assert raw["tools"] == [tools[0], "no tool"]
    excluded = {e.name: e.reason for e in link.of(ToolExcluded)}
    assert set(excluded) == {"empty", "space", "number", "twice", "inside", ""}
    assert all(excluded.values())
    assert [type(e) for e in link.said].index(ToolExcluded) < [type(e) for e in link.said].index(ResultReady)


@pytest.mark.req("C5", "C8")
@pytest.mark.case("J-01")
def test_a_server_that_turns_ids_into_text_is_understood_here_too() -> None:
    link = linked()
    link.engine.list_tools(now=0.0)
    link.drain()
    bad = tool("x", {"properties": {"x": {"type": "string", "x-mcp-header": ""}}})
    link.reply(listed(bad, tool()), id=str(link.last.message["id"]))
    assert link.one(ResultReady).raw["tools"] == [tool()]
    assert mirrored(called(link))
    link.stream(link.last, response(link.last, error=-32020, id=str(link.last.message["id"])))
    assert link.last.rpc == "tools/list"


@pytest.mark.req("C5")
def test_a_legacy_list_is_left_alone() -> None:
    link = linked(LEGACY)
    bad = tool("x", {"properties": {"x": {"type": "string", "x-mcp-header": ""}}})
    assert read(link, bad, tool())["tools"] == [bad, tool()]
    assert not link.of(ToolExcluded)
    assert mirrored(called(link)) == {}


@pytest.mark.parametrize("result", [{"tools": 5}, {"resultType": "x", "tools": None}, {}])
def test_a_list_that_is_none_is_not_looked_at(result: Any) -> None:
    link = linked()
    link.engine.list_tools(now=0.0)
    link.drain()
    link.reply({"resultType": "complete", **result})
    assert not link.client.stats()["mirrored_tools"]


@pytest.mark.req("AA12")
def test_the_tools_that_are_kept_in_mind_are_bounded() -> None:
    link = linked(limits=Limits(max_mirrored_tools=3))
    read(link, *(tool(str(n)) for n in range(5)))
    assert link.client.stats()["mirrored_tools"] == 3
    assert link.one(LimitHit).limit == "max_mirrored_tools"
    assert mirrored(called(link, "0"))
    assert not mirrored(called(link, "4"))
    read(link, tool("4"), {"inputSchema": REGION})
    link.one(LimitHit)
    assert mirrored(called(link, "4"))
    assert link.client.stats()["mirrored_tools"] == 1


# refused headers ---------------------------------------------------------------------------------


@pytest.mark.req("C8")
@pytest.mark.case("P-06")
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("streamed", [True, False])
def test_refused_headers_lead_to_a_new_list_and_one_more_call(known: bool, streamed: bool) -> None:
    link = linked()
    if known:
        read(link, tool())
        link.said.clear()
    first = called(link)
    call = first.message["id"]
    error = {"jsonrpc": "2.0", "id": call, "error": {"code": -32020, "message": "Mcp-Param-Zone"}}
    if streamed:
        link.stream(first, error)
    else:
        link.reply(error=-32020, status=400, to=first)
    relist = link.last
    assert relist.rpc == "tools/list"
    link.reply(listed(tool("else"), cursor="2"), relist)
    link.reply(listed(tool(schema=ZONE)), link.last)
    again = link.last
    assert again.rpc == "tools/call"
    assert mirrored(again) == {"mcp-param-zone": "us-west1"}
    assert again.message["id"] != call
    assert again.message["params"] == first.message["params"]
    assert link.said == [], "the list was our own"
    link.reply(DONE, again)
    link.one(ResultReady)
    assert not link.client.stats()["repeated_calls"]


@pytest.mark.req("C8")
def test_a_second_refusal_surfaces() -> None:
    link = linked()
    called(link)
    link.reply(error=-32020, status=400)
    link.reply(listed(tool()))
    link.reply(error=(-32020, {"n": 2}), status=400)
    error: Any = link.one(RequestFailed).error
    assert isinstance(error, McpError)
    assert (error.code, error.data, error.http_status) == (-32020, {"n": 2}, 400)
    assert link.rpcs() == ["tools/call", "tools/list", "tools/call"]


@pytest.mark.req("C8")
@pytest.mark.parametrize("how", ["gone", "error", "broken", "silent"])
def test_without_a_new_list_the_refusal_surfaces(how: str) -> None:
    link = linked()
    called(link)
    link.reply(error=(-32020, "first"), status=400)
    match how:
        case "gone":
            link.reply(listed(tool("else")))
        case "error":
            link.reply(error=-32603)
        case "broken":
            link.fail(link.last)
        case _:
            link.advance(59.0)
            assert not link.said
            link.advance(1.0)
    error: Any = link.one(RequestFailed).error
    assert link.rpcs()[:2] == ["tools/call", "tools/list"]
    assert len(link.asked) == 2
    if how != "silent":
        assert error.data == "first"


@pytest.mark.req("C8")
def test_calls_that_are_refused_together_share_one_list() -> None:
    link = linked()
    asked = [called(link), called(link), called(link, "gone")]
    for one in asked:
        link.reply(error=-32020, status=400, to=one)
    link.reply(listed(tool()), link.one_rpc("tools/list"))
    assert len(link.of_rpc("tools/call")) == 5
    assert link.one(RequestFailed).call.params["name"] == "gone"


@pytest.mark.req("C8", "K2")
def test_a_call_that_is_cancelled_meanwhile_is_not_made_again() -> None:
    link = linked()
    call = link.call("sql")
    link.reply(error=-32020, status=400)
    link.engine.cancel(call, now=0.0)
    link.drain()
    link.reply(listed(tool("sql")), link.one_rpc("tools/list"))
    link.one(RequestFailed)
    assert link.rpcs() == ["tools/call", "tools/list"]
    assert not link.client.stats()["mismatched_calls"]


@pytest.mark.req("C8")
def test_each_call_has_its_own_recovery() -> None:
    link = linked()
    for _ in range(2):
        called(link)
        link.reply(error=-32020, status=400)
        assert link.last.rpc == "tools/list"
        link.reply(listed(tool()))
        link.reply(DONE)
    assert len(link.of(ResultReady)) == 2


@pytest.mark.req("C8")
def test_a_legacy_refusal_is_not_recovered_from() -> None:
    link = linked(LEGACY)
    called(link)
    link.reply(error=-32020, status=400)
    link.one(RequestFailed)
    assert link.rpcs() == ["tools/call"]


@pytest.mark.req("C8")
def test_only_a_call_of_a_tool_is_recovered() -> None:
    link = linked()
    link.engine.list_resources(now=0.0)
    link.drain()
    link.reply(error=-32020, status=400)
    link.one(RequestFailed)
    assert link.rpcs() == ["resources/list"]


@pytest.mark.req("C8")
def test_no_room_for_a_list_is_no_recovery() -> None:
    link = linked(limits=Limits(max_pending_calls=1))
    called(link)
    link.reply(error=-32020, status=400)
    link.one(RequestFailed)
    assert link.rpcs() == ["tools/call"]


@pytest.mark.req("C8")
def test_a_close_meanwhile_ends_the_call_once() -> None:
    link = linked()
    called(link)
    link.reply(error=-32020, status=400)
    link.close()
    link.one(RequestFailed)
    assert link.finished()
    assert link.quiet()
