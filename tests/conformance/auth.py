"""How the client of the suite's scenarios about authorization logs in: nobody is asked."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit

from sansmcp.auth.oauth import OAuth
from sansmcp.auth.registration import Registration
from sansmcp_asyncio import Client

from . import auth_machine

REDIRECT_URI: Final = "http://localhost:3000/callback"
DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"
"""What the suite knows this client by, where it reads such documents."""


class Browser:
    """Opens an address and stays where it is sent to: no user is there."""

    def __init__(self) -> None:
        self._arrived: asyncio.Future[str] | None = None

    async def open(self, url: str) -> None:
        """Ask for `url`, and look at nothing but where that leads."""
        self._arrived = asyncio.get_running_loop().create_future()
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        target, host = f"{parts.path}?{parts.query}", parts.netloc
        writer.write(f"GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        writer.close()
        for line in head.split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "location":
                self._arrived.set_result(value.strip())
                return
        raise ValueError(f"the authorization endpoint sends nowhere: {head.splitlines()[0]}")

    async def wait(self, redirect_uri: str) -> str:
        """Where it was sent to."""
        assert self._arrived is not None
        return await self._arrived


def options(scenario: str, context: dict[str, Any]) -> dict[str, Any]:
    """What the client of `scenario` connects with, beside the usual."""
    if not scenario.startswith("auth/"):
        return {}
    browser = Browser()
    return {
        "auth": OAuth(
            redirect_uri=REDIRECT_URI,
            client=_known(context),
            client_metadata_url=DOCUMENT,
            client_name="sansmcp-conformance",
            **auth_machine.oauth(scenario, context),
        ),
        "open_url": browser.open,
        "wait_redirect": browser.wait,
    }


def _known(context: dict[str, Any]) -> Registration | None:
    if "client_id" not in context:
        return None
    return Registration(
        client_id=context["client_id"],
        client_secret=context.get("client_secret"),
        issuer=context.get("issuer"),
    )


async def use(client: Client) -> None:
    """List the tools, and call each of them: twice, for what changes in between."""
    tools = (await client.list_tools()).tools
    for _ in range(2):
        for tool in tools:
            await client.call_tool(tool.name)
