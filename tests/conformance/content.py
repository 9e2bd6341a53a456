"""What the suite's scenarios call, read and fill in: content of every kind.

Names, texts and schemas are the suite's.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from typing import Any, Final

from sansmcp import App, Context, ToolError
from sansmcp.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PAUSE: Final = 0.05

CONTACT_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def register(app: App) -> None:
    """Put all of it into `app`."""
    _tools(app)
    _resources(app)
    _prompts(app)


def _resource(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(TextResourceContents(uri, text, mime_type))


def _tools(app: App) -> None:
    @app.tool()
    def test_simple_text() -> str:
        """A line of text."""
        return "This is a simple text response for testing."

    @app.tool()
    def test_image_content() -> list[ImageContent]:
        """A picture."""
        return [ImageContent(PNG, "image/png")]

    @app.tool()
    def test_audio_content() -> list[AudioContent]:
        """A sound."""
        return [AudioContent(WAV, "audio/wav")]

    @app.tool()
    def test_embedded_resource() -> list[EmbeddedResource]:
        """A resource inside the result."""
        return [_resource("test://embedded-resource", "This is an embedded resource content.")]

    @app.tool()
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        """Three kinds of content."""
        data = '{"test":"data","value":123}'
        return [
            TextContent("Multiple content types test:"),
            ImageContent(PNG, "image/png"),
            _resource("test://mixed-content-resource", data, "application/json"),
        ]

    @app.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        """Reports progress three times."""
        for done in (0, 50, 100):
            ctx.progress(done, 100)
            await asyncio.sleep(PAUSE)
        return "Progress was reported."

    @app.tool()
    async def test_tool_with_logging(ctx: Context) -> str:
        """Logs three times."""
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            ctx.log("info", line)
            await asyncio.sleep(PAUSE)
        return "Three lines were logged."

    @app.tool()
    def test_error_handling() -> str:
        """Fails."""
        raise ToolError("This tool intentionally returns an error for testing")

    @app.tool(description="Tool with JSON Schema 2020-12 features", input_schema=CONTACT_SCHEMA)
    def json_schema_2020_12_tool(**contact: Any) -> str:
        return f"Took {json.dumps(contact)}."


def _resources(app: App) -> None:
    @app.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A text."""
        return "This is the content of the static text resource."

    @app.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """A picture."""
        return b64decode(PNG)

    @app.resource("test://watched-resource", mime_type="text/plain")
    def watched_resource() -> str:
        """A text that can be subscribed to."""
        return "This is the content of the watched resource."

    @app.resource("test://template/{id}/data", mime_type="application/json")
    def template_data(id: str) -> str:
        """An object for every id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _prompts(app: App) -> None:
    @app.prompt()
    def test_simple_prompt() -> str:
        """One message."""
        return "This is a simple prompt for testing."

    @app.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """One message with two arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @app.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[PromptMessage]:  # noqa: N803
        """A resource, and what to do with it."""
        resource = _resource(resourceUri, "Embedded resource content for testing.")
        return [
            PromptMessage("user", resource),
            PromptMessage("user", TextContent("Please process the embedded resource above.")),
        ]

    @app.prompt()
    def test_prompt_with_image() -> list[PromptMessage]:
        """A picture, and what to do with it."""
        return [
            PromptMessage("user", ImageContent(PNG, "image/png")),
            PromptMessage("user", TextContent("Please analyze the image above.")),
        ]

    @app.completion
    def complete(ref: dict[str, str], name: str, value: str, context: dict[str, str]) -> list[str]:
        return [choice for choice in ("test", "testValue1", "testValue2") if choice.startswith(value)]
