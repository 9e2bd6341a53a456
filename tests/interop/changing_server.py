"""Our own server whose list of tools and whose resource change: `python changing_server.py`."""

from __future__ import annotations

import asyncio
import itertools

import sansmcp_asyncio
from sansmcp import App, Context, ListKind


def make_app() -> App:
    """A server whose tool `change` changes both."""
    numbers = itertools.count()
    app = App("changing", "1.0", list_changed=True, subscribe=True)

    @app.tool()
    def change(ctx: Context, uri: str) -> str:
        """Add a tool and touch a resource."""
        name = f"added_{next(numbers)}"
        app.tool(name)(lambda: name)
        ctx.notify_changed(ListKind.TOOLS)
        ctx.notify_updated(uri)
        return name

    @app.resource("test://watched")
    def watched() -> str:
        return "x"

    return app


if __name__ == "__main__":
    asyncio.run(sansmcp_asyncio.serve_stdio(make_app()))
