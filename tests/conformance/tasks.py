"""What the suite's scenarios of the tasks extension call.

Names, keys and texts are the suite's.
"""

from __future__ import annotations

import asyncio
from typing import Final

from sansmcp import App, Context, Elicit, ErrorCode, McpError, ToolError
from sansmcp.extensions.tasks import ServerTasks

from .questions import NAME, form

TASKS: Final = ServerTasks(poll_interval=0.1)
CONFIRM: Final = form("confirm", confirm={"type": "boolean"})


def register(app: App) -> None:
    """Put all of it into `app`, which was made with `TASKS`."""

    @app.tool()
    def greet(name: str) -> str:
        """Never a task."""
        return f"Hello, {name}!"

    @app.tool()
    @TASKS.task("optional")
    async def slow_compute(seconds: float = 0.0, label: str = "") -> str:
        """Takes its time."""
        await asyncio.sleep(seconds)
        return f"{label or 'it'} took {seconds:g} s"

    @app.tool()
    @TASKS.task("required")
    async def failing_job() -> str:
        """Fails, as tools do."""
        await asyncio.sleep(1.0)
        raise ToolError("the job failed")

    @app.tool()
    @TASKS.task("optional")
    async def protocol_error_job() -> str:
        """Fails, as requests do."""
        await asyncio.sleep(0.2)
        raise McpError(ErrorCode.INTERNAL_ERROR, "the job could not be carried out")

    @app.tool()
    @TASKS.task("optional")
    async def confirm_delete(ctx: Context, filename: str) -> str:
        """Asks before it does anything."""
        answer = await ctx.elicit(f"Delete {filename}?", CONFIRM)
        confirmed = answer.action == "accept" and bool((answer.content or {}).get("confirm"))
        return f"{filename} was {'deleted' if confirmed else 'left alone'}"

    @app.tool()
    @TASKS.task("optional")
    async def multi_input(ctx: Context) -> str:
        """Asks two things at once."""
        first, second = await ctx.ask(Elicit("First?", CONFIRM), Elicit("Second?", CONFIRM))
        return f"{first.action} and {second.action}"

    @app.tool()
    @TASKS.task("handler")
    async def test_tool_with_task(ctx: Context) -> str:
        """Asks for a name, and is a task from then on."""
        answer = await ctx.elicit("What is your name?", NAME, key="user_name")
        TASKS.start(ctx)
        await asyncio.sleep(0.2)
        return f"Hello, {(answer.content or {}).get('name')}!"
