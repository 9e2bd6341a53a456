"""Apps: tools that have a user interface of their own, a page that the host shows in a sandbox.

Here is what both sides say of it; nothing is shown. Where a tool's page is, and whether a model may be
offered the tool, is in `sansmcp.toolset` (`ui_resource_uri`, `visible_to_model`).

Specification: the apps extension (``io.modelcontextprotocol/ui``, 2026-01-26, SEP-1865).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import attrs

from ..errors import LocalProtocolError
from ..types.content import TextResourceContents
from ..types.resources import Resource
from .extension import Extension, declares

if TYPE_CHECKING:
    from ..app import App
    from ..session.calls import IncomingRequest
    from ..types.content import BlobResourceContents

F = TypeVar("F", bound=Callable[..., Any])

APPS_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The id of the apps extension."""
APP_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The MIME type of a page that is an app."""

_PERMISSIONS: Final = ("camera", "microphone", "geolocation", "clipboardWrite")
_UI: Final = "ui"


@attrs.frozen(kw_only=True)
class AppPage:
    """What a page wants of the host that shows it. What is not named, it must not be given.

    The first four are origins, as ``https://api.example.com``.
    """

    connect_domains: tuple[str, ...] = ()
    """Where it may send requests."""
    resource_domains: tuple[str, ...] = ()
    """Where it may load scripts, styles, images and fonts from."""
    frame_domains: tuple[str, ...] = ()
    """What it may show in frames."""
    base_uri_domains: tuple[str, ...] = ()
    """What it may take as its base."""
    permissions: frozenset[str] = frozenset()
    """Of ``camera``, ``microphone``, ``geolocation``, ``clipboardWrite``; the host may refuse each."""
    domain: str | None = None
    """An origin that it wants for itself; what that may be is the host's to say."""
    prefers_border: bool | None = None
    """Whether it wants to be set off from its surroundings; None: as the host likes."""

    def to_meta(self) -> dict[str, Any]:
        """As it stands in `_meta` of the page."""
        lists = {
            "connectDomains": self.connect_domains,
            "resourceDomains": self.resource_domains,
            "frameDomains": self.frame_domains,
            "baseUriDomains": self.base_uri_domains,
        }
        ui: dict[str, Any] = {}
        csp = {name: list(origins) for name, origins in lists.items() if origins}
        if csp:
            ui["csp"] = csp
        if self.permissions:
            ui["permissions"] = {name: {} for name in _PERMISSIONS if name in self.permissions}
        if self.domain is not None:
            ui["domain"] = self.domain
        if self.prefers_border is not None:
            ui["prefersBorder"] = self.prefers_border
        return {_UI: ui} if ui else {}


def page_of(contents: TextResourceContents | BlobResourceContents | Resource) -> AppPage:
    """What a page wants, as its server says. What is malformed there is as if it were not said.

    That of the contents counts before that of the resource in a list.
    """
    meta = getattr(contents, "meta", None)
    ui = meta.get(_UI) if isinstance(meta, Mapping) else None
    ui = ui if isinstance(ui, Mapping) else {}
    csp, asked = ui.get("csp"), ui.get("permissions")
    csp = csp if isinstance(csp, Mapping) else {}
    asked = asked if isinstance(asked, Mapping) else {}
    domain, border = ui.get("domain"), ui.get("prefersBorder")
    return AppPage(
        connect_domains=_origins(csp.get("connectDomains")),
        resource_domains=_origins(csp.get("resourceDomains")),
        frame_domains=_origins(csp.get("frameDomains")),
        base_uri_domains=_origins(csp.get("baseUriDomains")),
        permissions=frozenset(name for name in _PERMISSIONS if isinstance(asked.get(name), Mapping)),
        domain=domain if isinstance(domain, str) else None,
        prefers_border=border if isinstance(border, bool) else None,
    )


def _origins(value: Any) -> tuple[str, ...]:
    """Texts that can stand in a policy: nothing that would add to it."""
    if not isinstance(value, list):
        return ()
    return tuple(v for v in value if isinstance(v, str) and v and not set(v) & set(" \t\r\n\f;,'\""))


def is_app(contents: TextResourceContents | BlobResourceContents | Resource) -> bool:
    """Whether it is a page to be shown."""
    return (contents.mime_type or "").replace(" ", "").lower() == APP_MIME_TYPE


def client_apps(mime_types: Sequence[str] = (APP_MIME_TYPE,)) -> Extension:
    """Apps, for ``ClientEngine(extensions=[client_apps()])`` of a host that shows them."""
    return Extension(id=APPS_EXTENSION, settings={"mimeTypes": list(mime_types)})


def shows_apps(request: IncomingRequest) -> bool:
    """Whether the client that made a request shows apps. A tool should be of use also where it does not."""
    if not declares(request.peer_capabilities, APPS_EXTENSION):
        return False
    settings = request.peer_capabilities["extensions"][APPS_EXTENSION]
    types = settings.get("mimeTypes") if isinstance(settings, Mapping) else None
    return isinstance(types, list) and APP_MIME_TYPE in types


@attrs.define(kw_only=True, eq=False)
class ServerApps(Extension):
    """Apps, for ``App(extensions=[ServerApps()])``. One object serves one app."""

    id: str = attrs.field(default=APPS_EXTENSION, init=False)
    _app: App | None = attrs.field(default=None, init=False, repr=False)

    def adopt(self, app: App) -> None:
        """As `Extension.adopt`. Raises LocalProtocolError for a second app."""
        if self._app is not None and self._app is not app:
            raise LocalProtocolError("these apps are of another App already")
        self._app = app

    def tool(
        self,
        uri: str,
        html: str | Callable[[], str] | None = None,
        *,
        page: AppPage | None = None,
        visibility: Sequence[Literal["model", "app"]] | None = None,
        **options: Any,
    ) -> Callable[[F], F]:
        """Register a tool, and the page at `uri` (``ui://…``) that shows what it does.

        `html` is the page, or gives it when it is read; None: it is registered already. `page` is what
        it wants of the host. `visibility` says who may call the tool, both unless given. `options` are
        those of `App.tool`. Raises LocalProtocolError as that does, for another kind of URI, and before
        there is an app.
        """
        app = self._app
        if app is None:
            raise LocalProtocolError("give these apps to an App first")
        if not uri.startswith("ui://"):
            raise LocalProtocolError(f"an app's page is at ui://…, not at {uri!r}")
        ui: dict[str, Any] = {"resourceUri": uri}
        if visibility is not None:
            ui["visibility"] = list(visibility)
        meta = {**(options.pop("meta", None) or {}), _UI: ui}

        def register(function: F) -> F:
            app.tool(meta=meta, **options)(function)
            if html is not None:
                name = options.get("title") or options.get("name") or function.__name__
                self._serve(app, uri, html, page or AppPage(), name)
            return function

        return register

    @staticmethod
    def _serve(app: App, uri: str, html: str | Callable[[], str], page: AppPage, name: str) -> None:
        told = f"The user interface of {name}."

        @app.resource(uri, name=name, description=told, mime_type=APP_MIME_TYPE)
        def read() -> TextResourceContents:
            text = html if isinstance(html, str) else html()
            return TextResourceContents(uri, text, APP_MIME_TYPE, meta=page.to_meta() or None)


__all__ = [
    "APPS_EXTENSION",
    "APP_MIME_TYPE",
    "AppPage",
    "ServerApps",
    "client_apps",
    "is_app",
    "page_of",
    "shows_apps",
]
