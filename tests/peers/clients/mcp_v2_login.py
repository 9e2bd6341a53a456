"""Log in to a protected server through the official Python SDK; print what came back as JSON.

python mcp_v2_login.py MODE URL TOOL...

MODE is auto, legacy, or a modern revision to adopt without a probe. Calls the tools, one after another.
Whoever is asked to log in does so as "bob", and allows everything.
"""

import asyncio
import json
import re
import sys
from html import unescape
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

CALLBACK = "http://127.0.0.1:8765/callback"


class Memory:
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    def __init__(self) -> None:
        self.arrived = ""
        self.logins = 0

    async def open(self, url: str) -> None:
        self.logins += 1
        async with httpx2.AsyncClient(trust_env=False) as client:
            response = await client.get(url)
            for _ in range(20):
                if response.is_redirect:
                    target = urljoin(str(response.url), response.headers["location"])
                    if target.startswith(CALLBACK):
                        self.arrived = target
                        return
                    response = await client.get(target)
                    continue
                text = response.text
                form = re.search(r'<form[^>]*action="([^"]*)"', text)
                if form is None:
                    raise ValueError(text[:500])
                fields = {"login": "bob", "password": "any"} if 'name="login"' in text else {}
                for tag in re.findall(r"<input[^>]*>", text):
                    name, value = (re.search(rf'{part}="([^"]*)"', tag) for part in ("name", "value"))
                    if name and value:
                        fields.setdefault(unescape(name[1]), unescape(value[1]))
                response = await client.post(urljoin(str(response.url), unescape(form[1])), data=fields)
        raise ValueError("the forms have no end")

    async def wait(self) -> AuthorizationCodeResult:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.arrived).query).items()}
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def main(mode: str, url: str, tools: list[str]) -> None:
    browser = Browser()
    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(
            client_name="official",
            redirect_uris=[CALLBACK],
            token_endpoint_auth_method="none",
            grant_types=["authorization_code", "refresh_token"],
        ),
        Memory(),
        browser.open,
        browser.wait,
    )
    async with (
        httpx2.AsyncClient(auth=provider, trust_env=False) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
    ):
        said = []
        for tool in tools:
            result = await client.call_tool(tool, {})
            said.append(result.content[0].text)
        print(json.dumps({"said": said, "logins": browser.logins, "protocol": client.protocol_version}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
