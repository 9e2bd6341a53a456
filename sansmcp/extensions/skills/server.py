"""Skills, the server's side: files that clients find, read and verify.

Specification: the skills extension (``io.modelcontextprotocol/skills``, SEP-2640).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import attrs

from ...errors import ErrorCode, LocalProtocolError, McpError
from ...revisions import LATEST
from ...session.hints import Keep
from ...session.pagination import read_cursor, write_page
from ...types.content import BlobResourceContents, TextResourceContents
from ...types.convert import structure
from ..extension import Extension, ExtensionMethod
from .client import GET, LIST, READ_DIRECTORY
from .frontmatter import FrontmatterError, read_frontmatter
from .types import DIRECTORY, SKILL_FILE, SKILLS_EXTENSION, SkillEntry
from .verify import digest_of, entry_problems

if TYPE_CHECKING:
    from ...app import App

_TYPES: Final[Mapping[str, str]] = {
    "md": "text/markdown",
    "txt": "text/plain",
    "json": "application/json",
    "html": "text/html",
    "css": "text/css",
    "csv": "text/csv",
    "js": "text/javascript",
    "py": "text/x-python",
    "sh": "application/x-sh",
    "toml": "application/toml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "pdf": "application/pdf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "svg": "image/svg+xml",
}


_IN_PATHS: Final = "/!$&'()*+,;=:@"
"""What stands in the path of a URI as it is, besides letters, digits and ``-._~``."""


class Skill:
    """A skill of files that are known: by path below the directory of the skill, text or bytes.

    `path` is where it lies, ``vendor/pdf-processing`` for example; its last part is the name of the skill.
    Raises LocalProtocolError for a head that is not read here (`read_frontmatter`), a name that does not
    match, and for too many or too large files.
    """

    def __init__(self, path: str, files: Mapping[str, str | bytes]) -> None:
        self.directory: Final = f"skill://{path.strip('/')}/"
        self.files: Final = {
            self.directory + quote(name, safe=_IN_PATHS): data.encode()
            if isinstance(data, str)
            else bytes(data)
            for name, data in files.items()
        }
        self.uri: Final = self.directory + SKILL_FILE
        if self.uri not in self.files:
            raise LocalProtocolError(f"skill {path}: it has no {SKILL_FILE}")
        try:
            self.frontmatter: Final = read_frontmatter(self.files[self.uri].decode())
        except (FrontmatterError, UnicodeDecodeError) as error:
            raise LocalProtocolError(f"skill {path}: {SKILL_FILE}: {error}") from error
        self.entry: Final[dict[str, Any]] = {
            "uri": self.uri,
            "frontmatter": self.frontmatter,
            "resources": [
                {"uri": uri, "digest": digest_of(data), "size": len(data)} for uri, data in self.files.items()
            ],
        }
        problems = entry_problems(structure(self.entry, SkillEntry, LATEST))
        if problems:
            raise LocalProtocolError(f"skill {path}: {'; '.join(problems)}")

    def __repr__(self) -> str:
        return f"<Skill {self.uri}>"


@attrs.define(kw_only=True, eq=False)
class ServerSkills(Extension):
    """Skills, for ``App(extensions=[ServerSkills(skills=[…])])``. One object serves one app.

    Their files are resources of the app as well. `page_size` splits the lists into pages (None: one
    page). With `directory_read`, clients can look into directories.
    """

    id: str = attrs.field(default=SKILLS_EXTENSION, init=False)
    settings: Mapping[str, Any] = attrs.field(init=False)
    methods: Mapping[str, ExtensionMethod] = attrs.field(init=False, repr=False)
    gated: bool = attrs.field(default=False, init=False)  # the extension asks nothing of clients
    skills: Sequence[Skill] = ()
    directory_read: bool = True
    page_size: int | None = None
    _skills: dict[str, Skill] = attrs.field(factory=dict, init=False, repr=False)
    _directories: dict[str, dict[str, dict[str, Any]]] = attrs.field(factory=dict, init=False, repr=False)
    """What lies in each directory, by URI."""
    _app: App | None = attrs.field(default=None, init=False, repr=False)

    @settings.default
    def _make_settings(self) -> Mapping[str, Any]:
        return {}

    @methods.default
    def _make_methods(self) -> dict[str, ExtensionMethod]:
        return {
            LIST: ExtensionMethod(handler=self._list, inline=True),
            GET: ExtensionMethod(handler=self._get, inline=True),
        }

    def __attrs_post_init__(self) -> None:
        if self.page_size is not None and self.page_size < 1:
            raise LocalProtocolError(f"page_size must be at least 1, got {self.page_size}")
        if self.directory_read:
            self.settings = {"directoryRead": True}
            read = ExtensionMethod(handler=self._read_directory, inline=True)
            self.methods = {**self.methods, READ_DIRECTORY: read}

    def adopt(self, app: App) -> None:
        """As `Extension.adopt`. Raises LocalProtocolError for a second app."""
        if self._app is not None and self._app is not app:
            raise LocalProtocolError("these skills are of another App already")
        self._app = app
        for skill in self.skills:
            self.add(skill)

    def add(self, skill: Skill) -> None:
        """Serve one more skill. Raises LocalProtocolError without an app, and for one that is there."""
        app = self._app
        if app is None:
            raise LocalProtocolError("give these skills to an App first")
        if skill.uri in self._skills:
            raise LocalProtocolError(f"{skill!r} is there already")
        for uri, data in skill.files.items():
            self._serve(app, skill, uri, data)
            self._enter(uri, _type_of(uri, data))
        self._skills[skill.uri] = skill

    def _serve(self, app: App, skill: Skill, uri: str, data: bytes) -> None:
        mime_type = _type_of(uri, data)
        content: TextResourceContents | BlobResourceContents | bytes
        text = _text_of(data)
        content = data if text is None else TextResourceContents(uri, text, mime_type)
        name, description = unquote(uri[len(skill.directory) :]), None
        if uri == skill.uri:
            name, description = skill.frontmatter["name"], skill.frontmatter["description"]
        told = description or f"A file of the skill {skill.frontmatter['name']}."

        @app.resource(uri, name=name, description=told, mime_type=mime_type)
        def read() -> TextResourceContents | BlobResourceContents | bytes:
            return content

    def _enter(self, uri: str, mime_type: str) -> None:
        """Enter a file into its directory, and that into the one above."""
        while True:
            above, _, name = uri.rpartition("/")
            if above.endswith(":/") or above == "skill:":
                return
            inside = self._directories.setdefault(above, {})
            known = uri in inside
            inside[uri] = {"uri": uri, "name": unquote(name), "mimeType": mime_type}
            if known:
                return
            uri, mime_type = above, DIRECTORY

    # methods -------------------------------------------------------------------------------------

    def _list(self, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        return self._page("skills", [skill.entry for skill in self._skills.values()], params)

    def _get(self, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        uri = params.get("uri")
        skill = self._skills.get(uri) if isinstance(uri, str) else None
        if skill is None:
            raise McpError(ErrorCode.INVALID_PARAMS, "there is no such skill", _said(uri))
        return {"skill": skill.entry, **_HINTS}

    def _read_directory(self, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        uri = params.get("uri")
        inside = self._directories.get(uri.rstrip("/")) if isinstance(uri, str) else None
        if inside is None:
            raise McpError(ErrorCode.INVALID_PARAMS, "there is no such directory", _said(uri))
        return self._page("resources", list(inside.values()), params)

    def _page(self, member: str, items: Sequence[Any], params: Mapping[str, Any]) -> dict[str, Any]:
        start = read_cursor(params.get("cursor"), len(items), self.page_size)
        page, cursor = write_page(items, start, self.page_size)
        result: dict[str, Any] = {member: list(page), **_HINTS}
        if cursor is not None:
            result["nextCursor"] = cursor
        return result


_HINTS: Final = Keep(0).hints()


def _said(uri: object) -> dict[str, str] | None:
    return {"uri": uri} if isinstance(uri, str) else None


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _type_of(uri: str, data: bytes) -> str:
    known = _TYPES.get(uri.rpartition(".")[2].lower())
    return known or ("application/octet-stream" if _text_of(data) is None else "text/plain")
