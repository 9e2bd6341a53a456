"""A server with all that a result can hold, for the commands that show it."""

import asyncio
import os
import sys

import sansmcp_asyncio
from sansmcp.app import App
from sansmcp.types.content import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from sansmcp.types.prompts import PromptMessage

app = App("rich", "2.0", instructions="Be\x1b[31m careful.")


@app.tool(
    input_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "some text"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "flag": {"type": "boolean"},
            "items": {"type": "array", "items": {"type": "string"}},
            "options": {"type": "object"},
            "size": {"enum": ["small", "large"]},
            "either": {"type": ["integer", "string"]},
            "anything": {},
        },
        "required": ["text"],
    }
)
def typed(**arguments: object) -> dict[str, object]:
    """Say what came.

    This is more than the table shows.
    """
    return {"arguments": arguments}


@app.tool()
def blocks() -> list[object]:
    """One block of each kind."""
    return [
        TextContent("first\nsecond"),
        ImageContent("aGVsbG8=", "image/png"),
        AudioContent("aGVsbG8gd29ybGQ=", "audio/wav"),
        ResourceLink(uri="rich://text", name="text", title="A text"),
        EmbeddedResource(TextResourceContents(uri="rich://inner", text="inside", mime_type="text/plain")),
        EmbeddedResource(BlobResourceContents(uri="rich://blob", blob="aGVsbG8=")),
    ]


@app.tool()
def nothing() -> None:
    """Answer with nothing."""


@app.tool()
def environment() -> dict[str, str]:
    """The environment of this process."""
    return dict(os.environ)


@app.tool()
def folder() -> str:
    """Where this process runs."""
    return os.getcwd()


@app.tool()
def long_failure() -> str:
    """Fail with many words."""
    raise ValueError("never shown")


@app.tool()
def say(text: str, requestState: str = "", api_token: str = "") -> str:  # noqa: N803
    """Say it here and to standard error."""
    print(f"saying {text}", file=sys.stderr, flush=True)
    return text


@app.resource("rich://text", mime_type="text/plain")
def text() -> str:
    """A text with an end of its own."""
    return "one\ntwo"


@app.resource("rich://bytes", mime_type="application/octet-stream")
def data() -> bytes:
    """Bytes that are no text."""
    return bytes(range(256))


@app.resource("rich://parts")
def parts() -> list[object]:
    """More than one part."""
    return [
        TextResourceContents(uri="rich://parts/1", text="part one\n"),
        TextResourceContents(uri="rich://parts/2", text="part two\n"),
    ]


@app.prompt()
def talk(topic: str) -> list[object]:
    """A talk."""
    return [
        PromptMessage("user", TextContent(f"Talk of {topic}.\nPlease.")),
        PromptMessage("assistant", ImageContent("aGVsbG8=", "image/png")),
    ]


if __name__ == "__main__":
    asyncio.run(sansmcp_asyncio.serve_stdio(app))
