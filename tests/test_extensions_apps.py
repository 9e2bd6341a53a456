"""Apps: what both sides say of pages that are shown beside a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import App, Context, LocalProtocolError
from sansmcp.extensions.apps import (
    APP_MIME_TYPE,
    APPS_EXTENSION,
    AppPage,
    ServerApps,
    client_apps,
    is_app,
    page_of,
    shows_apps,
)
from sansmcp.toolset import ui_resource_uri, visible_to_model
from sansmcp.types import BlobResourceContents, Resource, TextResourceContents, Tool

from .support import client
from .tasks_support import Server

PAGE = AppPage(
    connect_domains=("https://api.example.com",),
    resource_domains=("https://cdn.example.com",),
    frame_domains=("https://video.example.com",),
    base_uri_domains=("https://base.example.com",),
    permissions=frozenset({"camera", "clipboardWrite"}),
    domain="x.example.com",
    prefers_border=False,
)
WIRE: dict[str, Any] = {
    "ui": {
        "csp": {
            "connectDomains": ["https://api.example.com"],
            "resourceDomains": ["https://cdn.example.com"],
            "frameDomains": ["https://video.example.com"],
            "baseUriDomains": ["https://base.example.com"],
        },
        "permissions": {"camera": {}, "clipboardWrite": {}},
        "domain": "x.example.com",
        "prefersBorder": False,
    }
}


def shop(**options: Any) -> Server:
    apps = ServerApps()
    app = App("shop", "1", extensions=[apps])

    @apps.tool(
        "ui://shop/cart", "<p>cart</p>", page=PAGE, description="The cart.", meta={"x/y": 1}, **options
    )
    def cart(ctx: Context) -> str:
        return "shown" if shows_apps(ctx.request) else "one apple"

    return Server(app)


@pytest.mark.req("X12", "V7", "V8")
def test_a_tool_and_its_page_in_one_call() -> None:
    server = shop(visibility=["app"])
    tool = server.result("tools/list")["tools"][0]
    assert tool["_meta"] == {"x/y": 1, "ui": {"resourceUri": "ui://shop/cart", "visibility": ["app"]}}
    listed = Tool("cart", {}, meta=tool["_meta"])
    assert ui_resource_uri(listed) == "ui://shop/cart"
    assert not visible_to_model(listed)
    (resource,) = server.result("resources/list")["resources"]
    assert resource["mimeType"] == APP_MIME_TYPE == "text/html;profile=mcp-app"
    (contents,) = server.result("resources/read", {"uri": "ui://shop/cart"})["contents"]
    assert contents == {
        "uri": "ui://shop/cart",
        "text": "<p>cart</p>",
        "mimeType": APP_MIME_TYPE,
        "_meta": WIRE,
    }
    assert server.result("server/discover")["capabilities"]["extensions"] == {APPS_EXTENSION: {}}


@pytest.mark.req("X12")
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"mimeTypes": [APP_MIME_TYPE]}, "shown"),
        ({"mimeTypes": ["text/html"]}, "one apple"),
        ({}, "one apple"),
        (None, "one apple"),
        (1, "one apple"),
    ],
)
def test_whether_a_client_shows_apps(settings: Any, text: str) -> None:
    capabilities = {"extensions": {APPS_EXTENSION: settings}}
    assert shop().call("cart", capabilities=capabilities)["content"][0]["text"] == text


@pytest.mark.req("X12", "X1")
def test_a_client_says_what_it_shows() -> None:
    declared = client(extensions=[client_apps()]).engine._own_capabilities.extensions
    assert declared == {APPS_EXTENSION: {"mimeTypes": [APP_MIME_TYPE]}}


@pytest.mark.req("X12")
def test_what_a_page_wants_is_read_as_it_was_written() -> None:
    assert page_of(TextResourceContents("ui://x", "", APP_MIME_TYPE, meta=WIRE)) == PAGE
    assert PAGE.to_meta() == WIRE
    assert AppPage().to_meta() == {}
    assert page_of(BlobResourceContents("ui://x", "")) == AppPage()
    assert page_of(Resource(name="x", uri="ui://x", meta=WIRE)) == PAGE
    assert is_app(TextResourceContents("ui://x", "", "text/html; profile=mcp-app"))
    assert not is_app(TextResourceContents("ui://x", "", "text/html"))


@pytest.mark.req("X12")
@pytest.mark.parametrize(
    "ui",
    [
        1,
        {"csp": 1, "permissions": [], "domain": 1, "prefersBorder": 1},
        {
            "csp": {"connectDomains": "x", "frameDomains": [1, "", "a b", "a;b", "'self'"]},
            "permissions": {"camera": 1},
        },
    ],
)
def test_what_is_malformed_is_not_granted(ui: Any) -> None:
    assert page_of(TextResourceContents("ui://x", "", meta={"ui": ui})) == AppPage()


@pytest.mark.req("X12")
def test_what_cannot_be_is_refused() -> None:
    apps = ServerApps()
    with pytest.raises(LocalProtocolError, match="an App first"):
        apps.tool("ui://x")
    app = App("x", extensions=[apps])
    with pytest.raises(LocalProtocolError, match="ui://"):
        apps.tool("https://x")
    with pytest.raises(LocalProtocolError, match="another App"):
        App("y", extensions=[apps])

    @apps.tool("ui://late", lambda: "<p>now</p>")
    def late() -> str:
        return ""

    contents = Server(app).result("resources/read", {"uri": "ui://late"})["contents"][0]
    assert contents["text"] == "<p>now</p>"
    assert "_meta" not in contents
