"""The app of the scenarios that every binding passes. Its handlers need no loop."""

import time

from sansmcp import App, Context, ListKind

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def app() -> App:
    made = App("every", "1", list_changed=True)

    @made.tool()
    def echo(text: str) -> str:
        return text

    @made.tool()
    def steps(count: int, ctx: Context) -> str:
        for step in range(1, count + 1):
            ctx.progress(step, count)
        return "done"

    @made.tool()
    def changes(ctx: Context) -> str:
        ctx.notify_changed(ListKind.TOOLS)
        return "told"

    @made.tool()
    async def who(ctx: Context) -> str:
        answer = await ctx.elicit("who?", FORM)
        return str(answer)

    @made.tool()
    def sleeps(seconds: float, ctx: Context) -> str:
        """Sleep, unless nobody waits for it any more."""
        end = time.monotonic() + seconds
        while not ctx.cancelled and time.monotonic() < end:
            time.sleep(0.01)
        return "slept"

    return made
