"""What a client sees in lists of tools: how they are called, and what they promise of their results."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    CacheUse,
    CallFailure,
    DeviationTolerated,
    InvalidResponse,
    LimitHit,
    Limits,
    OutputMismatch,
    PeerFault,
    RequestFailed,
    ResponseCache,
    ResultReady,
)
from sansmcp.session.listed import Listed
from sansmcp.validation import Schema, SchemaCheck, UnusableSchemaError
from sansmcp.validators import PythonValidator, RustValidator

from .support import Driver, connected

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Counting:
    """Counts what is compiled."""

    def __init__(self) -> None:
        self.compiled = 0
        self._inner = RustValidator()

    def compile(self, schema: Schema) -> SchemaCheck:
        self.compiled += 1
        return self._inner.compile(schema)


def listed(driver: Driver, *tools: Any, cursor: str | None = None, more: str | None = None) -> None:
    """Let the driver's engine read a page of the list."""
    driver.engine.list_tools(cursor, now=driver.now)
    driver.drain()
    page: dict[str, Any] = {"tools": [{"name": name, **rest} for name, rest in tools]}
    driver.reply(done(driver, page | ({} if more is None else {"nextCursor": more})))


def done(driver: Driver, result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "complete", **result} if driver.engine.verdict.era == "modern" else result


def tool(name: str, schema: Any = NUMBER) -> tuple[str, dict[str, Any]]:
    return name, {"inputSchema": {"type": "object"}, **({} if schema is None else {"outputSchema": schema})}


def answered(driver: Driver, name: str = "count", **result: Any) -> Any:
    """Call a tool; what its call ended with."""
    call = driver.engine.call_tool(name, now=driver.now)
    driver.drain()
    driver.reply(done(driver, {"content": [], **result}))
    ends: list[Any] = [*driver.of(ResultReady), *driver.of(RequestFailed)]
    (end,) = [each for each in ends if each.call is call]
    return end


def told(driver: Driver) -> list[PeerFault]:
    return [event.fault for event in driver.of(DeviationTolerated)]


MISFITS: list[dict[str, Any]] = [
    {"structuredContent": {"n": "1"}},
    {"structuredContent": {}},
    {"structuredContent": None},
    {"structuredContent": [1]},
    {},
    {"isError": False},
]


@pytest.mark.req("V12")
@pytest.mark.parametrize("validator", [RustValidator, PythonValidator])
@pytest.mark.parametrize("result", MISFITS, ids=str)
def test_what_does_not_fit_is_told_and_counts(validator: Any, result: dict[str, Any]) -> None:
    driver = connected(validator=validator())
    listed(driver, tool("count"))
    end = answered(driver, **result)
    assert isinstance(end, ResultReady)
    assert end.raw == {"resultType": "complete", "content": [], **result}
    (event,) = driver.of(DeviationTolerated)
    assert event.fault is PeerFault.INVALID_OUTPUT
    assert event.call is end.call
    assert event.detail.startswith("tools/call 'count': structured content against the output schema: ")


@pytest.mark.req("V12", "U4")
@pytest.mark.case("G-05")
def test_in_strict_mode_it_fails_the_call_and_is_in_the_error() -> None:
    driver = connected(validator=RustValidator(), strict=True)
    listed(driver, tool("count"))
    end = answered(driver, structuredContent={"n": "secret" * 100})
    assert isinstance(end, RequestFailed)
    assert isinstance(end.error, OutputMismatch)
    assert isinstance(end.error, (InvalidResponse, CallFailure))
    assert end.error.fault is PeerFault.INVALID_OUTPUT
    assert end.error.result["structuredContent"] == {"n": "secret" * 100}
    assert told(driver) == []
    assert isinstance(answered(driver, structuredContent={"n": 1}), ResultReady)


@pytest.mark.req("V12")
@pytest.mark.case("G-05")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "result",
    [
        {"structuredContent": {"n": 1, "more": True}},
        {"isError": True, "structuredContent": {"error": "x"}},
        {"isError": True},
    ],
    ids=str,
)
def test_what_fits_and_what_is_an_error_is_no_news(strict: bool, result: dict[str, Any]) -> None:
    driver = connected(validator=RustValidator(), strict=strict)
    listed(driver, tool("count"))
    assert isinstance(answered(driver, **result), ResultReady)
    assert told(driver) == []


@pytest.mark.req("V12")
def test_nothing_is_checked_unless_that_is_asked_for() -> None:
    driver = connected(strict=True)
    listed(driver, tool("count"))
    assert isinstance(answered(driver, structuredContent=5), ResultReady)
    assert driver.engine.stats()["output_schemas"] == 0


@pytest.mark.req("V12")
@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_only_revisions_that_have_output_schemas_are_held_to_them(version: str) -> None:
    driver = connected(version, validator=RustValidator())
    listed(driver, tool("count"))
    answered(driver, structuredContent={})
    assert told(driver) == ([PeerFault.INVALID_OUTPUT] if version >= "2025-06-18" else [])


@pytest.mark.req("V12")
def test_the_list_that_was_read_last_holds() -> None:
    validator = Counting()
    driver = connected(validator=validator)
    answered(driver)  # nothing is known of it yet
    listed(driver, tool("count"), tool("free", None), more="2")
    listed(driver, tool("late"), cursor="2")
    assert driver.engine.stats()["output_schemas"] == 2
    assert validator.compiled == 0
    for _ in range(2):
        answered(driver, "late")
    answered(driver, "free")
    assert (validator.compiled, len(told(driver))) == (1, 2)
    listed(driver, tool("late"), tool("free"))  # as it was, anew, and gone
    answered(driver, "late")
    assert (validator.compiled, len(told(driver))) == (1, 3)
    answered(driver, "free")
    answered(driver, "count")
    assert (validator.compiled, len(told(driver))) == (2, 4)
    listed(driver, tool("late", True), tool("free"))
    answered(driver, "late", structuredContent=5)
    assert (validator.compiled, len(told(driver))) == (3, 4)


@pytest.mark.req("V12", "N4")
def test_a_list_that_changed_is_forgotten() -> None:
    driver = connected("2025-11-25", validator=RustValidator())
    listed(driver, tool("count"))
    driver.receive(CHANGED)
    answered(driver)
    assert told(driver) == []
    assert driver.engine.stats()["output_schemas"] == 0


@pytest.mark.req("V12")
def test_all_pages_of_a_walk_and_what_was_kept_count_too() -> None:
    use = CacheUse(ResponseCache(), server="s")
    driver = connected(validator=RustValidator(), cache=use)
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    hints = {"ttlMs": 60_000, "cacheScope": "private"}
    for name, more in (("count", {"nextCursor": "2"}), ("late", {})):
        page = {"tools": [{"name": name, **tool(name)[1]}], **more, **hints}
        driver.reply(done(driver, page))
    other = connected(validator=RustValidator(), cache=use)
    other.engine.list_all_tools(now=0.0)
    other.drain()
    for each in (driver, other):
        assert each.engine.stats()["output_schemas"] == 2
        answered(each)
        answered(each, "late")
        assert told(each) == [PeerFault.INVALID_OUTPUT] * 2


@pytest.mark.req("V13")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$schema": "https://example.com/dialect"},
        {"type": 5},
        "text",
    ],
    ids=str,
)
def test_a_schema_that_cannot_be_used_is_told_once_and_nothing_is_checked(schema: Any, strict: bool) -> None:
    driver = connected(validator=RustValidator(), strict=strict)
    listed(driver, tool("count", schema))
    for _ in range(2):
        assert isinstance(answered(driver, structuredContent=5), ResultReady)
    assert told(driver) == [PeerFault.UNUSABLE_OUTPUT_SCHEMA]


@pytest.mark.req("AA12")
def test_what_is_kept_is_bounded() -> None:
    driver = connected(validator=RustValidator(), limits=Limits(max_output_schemas=2))
    listed(driver, *(tool(f"t{n}") for n in range(5)))
    assert driver.engine.stats()["output_schemas"] == 2
    assert driver.one(LimitHit).limit == "max_output_schemas"
    answered(driver, "t0")
    answered(driver, "t4")
    assert len(told(driver)) == 1


@pytest.mark.req("V11")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_odd_names_are_told_and_can_be_called(version: str, strict: bool) -> None:
    driver = connected(version, strict=strict)
    odd = ["", "a b", "ü", "a/b", "x" * 129]
    listed(driver, *(tool(name) for name in ["a.b_C-9", "x" * 128]))
    assert told(driver) == []
    listed(driver, *(tool(name) for name in odd))
    if version < "2025-11-25":
        assert told(driver) == []  # nothing was said of names then
    else:
        event = driver.one(DeviationTolerated)
        assert event.fault is PeerFault.INVALID_TOOL_NAME
        assert event.detail == "tools/list: no names for tools: '', 'a b', 'ü' …"
    assert [each.name for each in driver.of(ResultReady)[-1].result.tools] == odd
    assert isinstance(answered(driver, "a b"), ResultReady)


def test_odd_lists_disturb_nothing() -> None:
    driver = connected(validator=RustValidator())
    lists: list[Any] = [None, {}, [5, {"name": 5, "outputSchema": NUMBER}, {}]]
    for tools in lists:
        driver.engine.list_tools(now=0.0)
        driver.drain()
        driver.reply(done(driver, {"tools": tools}))
    assert driver.engine.stats()["output_schemas"] == 0


def test_what_a_newer_list_says_takes_the_place_of_the_oldest() -> None:
    table: Listed[int] = Listed(2)
    for names in (("a", "b"), ("c",)):
        table.begin(first=True)
        for name in names:
            table.note(name, 1)
    assert list(table) == ["b", "c"]
    assert not table.overflowed
    table.end(last=True)
    assert (list(table), table.get("c"), table.get("b"), table.get(None)) == (["c"], 1, None, None)
    with pytest.raises(UnusableSchemaError):
        RustValidator().compile({"type": 5})
