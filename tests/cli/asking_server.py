"""A server whose handlers ask their user something: in the revisions that its argument names."""

import asyncio
import sys

import sansmcp_asyncio
from sansmcp.app import App
from sansmcp.context import Context
from sansmcp_cli.demo_app import revisions_of

app = App("asking", "1")

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "copies": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
        "sure": {"type": "boolean"},
    },
    "required": ["name"],
}
PLACE = {"type": "string", "enum": ["staging", "production"], "enumNames": ["For trying", "For all"]}
WHERE = {"type": "object", "properties": {"where": PLACE}, "required": ["where"]}
SECRET = {"type": "object", "properties": {"api_key": {"type": "string"}, "note": {"type": "string"}}}


def said(answer: object) -> str:
    """Without what was filled in, which only `where` tells."""
    content = getattr(answer, "content", None)
    return f"{getattr(answer, 'action', '?')} {sorted((content or {}).items())}"


@app.tool()
async def form(ctx: Context) -> str:
    """Ask for three things."""
    ctx.progress(1, 2, "about to ask")
    return said(await ctx.elicit("Who are you?", FORM))


@app.tool()
async def where(ctx: Context) -> str:
    """Ask for a choice."""
    return said(await ctx.elicit("Where\x1b[2J to?", WHERE))


@app.tool()
async def twice(ctx: Context) -> str:
    """Ask two things at once."""
    first, second = await ctx.ask(ctx.elicit("First?", WHERE), ctx.elicit("Second?", FORM))
    return f"{said(first)} {said(second)}"


@app.tool()
async def secret(ctx: Context) -> str:
    """Ask for what nobody should see."""
    answer = await ctx.elicit("Which key?", SECRET)
    return answer.action


@app.tool()
async def sure(ctx: Context) -> str:
    """Ask for nothing but a yes."""
    return said(await ctx.elicit("Really?", {"type": "object", "properties": {}}))


@app.tool()
async def page(ctx: Context, url: str = "https://example.com/log?in=now") -> str:
    """Send the user to a page."""
    return (await ctx.elicit_url("Log in there", url)).action


@app.resource("asking://place")
async def place(ctx: Context) -> str:
    """Where it is."""
    return said(await ctx.elicit("Where to?", WHERE))


@app.prompt()
async def plan(ctx: Context) -> str:
    """What to do."""
    return said(await ctx.elicit("Where to?", WHERE))


if __name__ == "__main__":
    asyncio.run(sansmcp_asyncio.serve_stdio(app, revisions=revisions_of(sys.argv[1:])))
