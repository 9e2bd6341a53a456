"""What a tool's handler is given and what it may return, by its annotations and its schemas."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import attrs
import pytest

from sansmcp import App, Keep, LocalProtocolError, PythonValidator, UnusableSchemaError
from sansmcp.types import CallToolResult, ReadResourceResult, TextContent

from .test_app import ALL, ANY_ERA, MODERN, Asker


@attrs.define
class Place:
    city: str
    country: str = "Italy"


@dataclasses.dataclass
class Weather:
    place: Place
    degrees: float


def weather(**options: Any) -> App:
    app = App("weather", "1", **options)

    @app.tool()
    def forecast(
        place: Place, days: Annotated[int, {"minimum": 1}] = 1, unit: Literal["C", "F"] = "C"
    ) -> Weather:
        assert isinstance(place, Place)
        return Weather(place, 20.5 + days)

    @app.tool(output_schema={"type": "object", "required": ["ok"]})
    def checked(what: str) -> Any:
        texts = CallToolResult(content=[TextContent(text="no")], is_error=True)
        answers: dict[str, Any] = {
            "right": {"ok": 1},
            "wrong": {"bad": 1},
            "text": "no content",
            "typed": CallToolResult(content=[], structured_content={"ok": 1}),
            "typed wrong": CallToolResult(content=[], structured_content={}),
            "error": texts,
        }
        return answers[what]

    return app


@pytest.mark.req("V12", "W12")
@ANY_ERA
def test_a_tool_is_described_called_and_answers_by_its_annotations(version: str) -> None:
    ask = Asker(weather(), version)
    listed = ask("tools/list")["tools"][0]
    assert listed["inputSchema"]["required"] == ["place"]
    assert listed["inputSchema"]["properties"]["place"]["required"] == ["city"]
    assert listed["inputSchema"]["properties"]["days"] == {"type": "integer", "minimum": 1, "default": 1}
    answer = ask("tools/call", {"name": "forecast", "arguments": {"place": {"city": "Rome"}, "days": 2}})
    expected = {"place": {"city": "Rome", "country": "Italy"}, "degrees": 22.5}
    assert answer["content"][0]["type"] == "text"
    if version >= "2025-06-18":
        assert answer["structuredContent"] == expected
        assert listed["outputSchema"]["required"] == ["place", "degrees"]
    else:
        assert "structuredContent" not in answer
        assert "outputSchema" not in listed


class Trip(TypedDict):
    start: Place
    stops: NotRequired[list[Place]]


@pytest.mark.req("V12", "W12")
@pytest.mark.parametrize("version", [ALL[2], MODERN])
def test_what_a_result_holds_within_becomes_json_where_the_annotation_says_so(version: str) -> None:
    app = App("trips", "1")

    @app.tool()
    def trip(plan: Trip) -> Trip:
        assert isinstance(plan["start"], Place)
        return plan

    @app.tool()
    def places() -> list[Place]:
        return [Place("Rome")]

    ask = Asker(app, version)
    answer = ask("tools/call", {"name": "trip", "arguments": {"plan": {"start": {"city": "Rome"}}}})
    assert answer["structuredContent"] == {"start": {"city": "Rome", "country": "Italy"}}
    text = ask("tools/call", {"name": "places"})["content"][0]["text"]
    assert text == '[{"city": "Rome", "country": "Italy"}]'


@pytest.mark.req("V12", "U5")
@ANY_ERA
@pytest.mark.parametrize("validator", ["auto", PythonValidator(), None])
@pytest.mark.parametrize(
    ("arguments", "told", "by_schema_only"),
    [
        ({"place": {"city": 5}}, "city", False),
        ({"place": {}}, "city", False),
        ({"place": "Rome"}, "place", False),
        ({"place": {"city": "Rome", "river": "Tiber"}}, "river", False),
        ({"days": 2}, "place", False),
        ({"place": {"city": "Rome"}, "days": 0}, "days", True),
        ({"place": {"city": "Rome"}, "unit": "K"}, "unit", True),
        ({"place": {"city": "Rome"}, "days": "2"}, "days", True),
        ({"place": {"city": "Rome"}, "more": 1}, "more", False),
    ],
)
def test_a_bad_argument_is_an_answer_that_a_model_can_read(
    version: str, validator: Any, arguments: dict[str, Any], told: str, by_schema_only: bool
) -> None:
    if validator is None and by_schema_only:
        return
    answer = Asker(weather(validator=validator), version)(
        "tools/call", {"name": "forecast", "arguments": arguments}
    )
    assert answer["isError"] is True
    text = answer["content"][0]["text"]
    assert text.startswith("forecast: ")
    assert told in text


@pytest.mark.req("V12")
@pytest.mark.case("G-05")
@pytest.mark.parametrize("version", [ALL[2], MODERN])
@pytest.mark.parametrize(
    ("what", "good"),
    [
        ("right", True),
        ("typed", True),
        ("error", True),
        ("wrong", False),
        ("text", False),
        ("typed wrong", False),
    ],
)
def test_structured_content_is_what_the_output_schema_promises(version: str, what: str, good: bool) -> None:
    told: list[str] = []
    app = weather(on_error=lambda error, number: told.append(str(error)))
    reply = Asker(app, version).raw("tools/call", {"name": "checked", "arguments": {"what": what}})
    assert ("result" in reply) is good
    if not good:
        assert reply["error"]["code"] == -32603
        assert "output schema" in told[0]
        assert "checked" in told[0]
        unchecked = Asker(weather(validator=None), version)
        assert unchecked("tools/call", {"name": "checked", "arguments": {"what": what}})


@pytest.mark.req("V13")
def test_a_schema_that_cannot_be_used_is_refused_or_not_used() -> None:
    schema = {"type": "object", "$ref": "https://example.com/schema.json"}

    def register(app: App) -> None:
        @app.tool(input_schema=schema)
        def tool(**arguments: Any) -> str:
            return str(arguments)

    app = App("s")
    register(app)
    ask = Asker(app, MODERN)
    assert ask("tools/list")["tools"][0]["inputSchema"] == schema
    for _ in range(2):
        answer = ask("tools/call", {"name": "tool", "arguments": {"a": 1}})
        assert answer["content"][0]["text"] == "{'a': 1}"
    with pytest.raises(UnusableSchemaError, match="leads out") as caught:
        register(App("s", validator=PythonValidator()))
    assert isinstance(caught.value, LocalProtocolError)


@pytest.mark.req("N7")
@ANY_ERA
def test_how_long_lists_and_resources_may_be_kept_is_said_where_that_can_be(version: str) -> None:
    app = App("s", keep=Keep(1.5, public=True))
    app.tool("t")(lambda: "")
    app.resource("a://b", keep=Keep(2))(lambda: "text")
    app.resource("a://c")(lambda: "text")
    app.resource("a://{name}", keep=Keep(3))(lambda name: ReadResourceResult(contents=[]))
    ask = Asker(app, version)
    for method, params, hints in [
        ("tools/list", None, (1500, "public")),
        ("resources/templates/list", None, (1500, "public")),
        ("resources/read", {"uri": "a://b"}, (2000, "private")),
        ("resources/read", {"uri": "a://c"}, (0, "private")),
        ("resources/read", {"uri": "a://d"}, (3000, "private")),
    ]:
        answer = ask(method, params)
        told = (answer.get("ttlMs"), answer.get("cacheScope"))
        assert told == (hints if version == MODERN else (None, None))
