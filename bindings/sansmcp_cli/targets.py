"""Which server is meant: a command line, a URL, or a name in a configuration file of some MCP client.

Files are only read. Both common shapes are understood: ``{"mcpServers": {…}}`` and the
``{"servers": {…}}`` of VS Code.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from .failures import CommandError, usage
from .text import likely, one_line

PROJECT_FILES: Final = (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json")
"""Looked for in the current folder, before the files of the user."""

_MAX_FILE: Final = 16 * 1024 * 1024
_COMMENT: Final = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_STREAMS: Final = ("ws://", "wss://", "tcp://", "tls://", "unix:/")
_SCHEMES: Final = ("http://", "https://", *_STREAMS)
_NEARLY_URL: Final = re.compile(
    r"\w+://|(?:https?|wss?|tcp|tls|unix)[:/]|[\w.-]+:\d+(?:/|$)|localhost\b", re.IGNORECASE
)
_LIKE_URL: Final = "a URL begins with http://, https://, ws://, wss://, tcp://, tls:// or unix:/"
_ELSE: Final = "a command line goes after --"
_INSTEAD: Final = "set the variable with --env NAME=VALUE, or write the command after --"
_HTTP_TYPES: Final = ("http", "streamable-http", "streamableHttp", "sse")
_STREAM_TYPES: Final = ("ws", "websocket")


@dataclass(frozen=True)
class CommandTarget:
    """A server to start. `env` is what is set on top of the usual environment."""

    argv: tuple[str, ...]
    name: str
    """What messages call it."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None


@dataclass(frozen=True)
class HttpTarget:
    """A server that is reached over HTTP. `headers` go along on every request."""

    url: str = field(repr=False)
    """As it was given: its query may hold secrets."""
    name: str
    """What messages call it."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def encrypted(self) -> bool:
        """Whether it speaks TLS."""
        return self.url.lower().startswith("https:")


@dataclass(frozen=True)
class StreamTarget:
    """A server at a WebSocket, a port or a Unix socket. `headers` go along on a WebSocket's handshake."""

    url: str = field(repr=False)
    """As it was given: its query may hold secrets."""
    name: str
    """What messages call it."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def encrypted(self) -> bool:
        """Whether it speaks TLS."""
        return self.url.startswith(("wss:", "tls:"))

    @property
    def websocket(self) -> bool:
        """Whether it is a WebSocket, and no socket with a line per message."""
        return self.url.startswith(("ws:", "wss:"))


Target: TypeAlias = CommandTarget | HttpTarget | StreamTarget


@dataclass(frozen=True)
class Given:
    """What the command line gives by itself, so that a file's values for it do not matter."""

    env: Collection[str] = ()
    headers: Collection[str] = ()
    """In lower case."""


NOTHING_GIVEN: Final = Given()


def user_files(home: Path, environ: Mapping[str, str], platform: str) -> list[Path]:
    """Where MCP clients usually keep the servers of a user."""
    if platform == "darwin":
        settings = home / "Library" / "Application Support"
    elif platform == "win32":
        settings = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        settings = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [
        settings / "Code" / "User" / "mcp.json",
        home / ".cursor" / "mcp.json",
        settings / "Claude" / "claude_desktop_config.json",
        home / ".claude.json",
    ]


def search_path() -> list[Path]:
    """The files a name is looked up in when none is given, first match wins."""
    return [*map(Path, PROJECT_FILES), *user_files(Path.home(), os.environ, sys.platform)]


def find_target(
    words: Sequence[str],
    command: Sequence[str] | None,
    config: str | None,
    given: Given = NOTHING_GIVEN,
) -> tuple[Target, list[str]]:
    """The server that is meant, and the words that are left for the command itself.

    `words` came before ``--``, `command` after it (None: there was none).
    """
    if command is not None:
        if config is not None:
            raise usage("give either a command after -- or --config FILE with a name, not both")
        if not command:
            raise usage("the server's command is missing after --")
        if _is_url(command[0]):
            raise usage("a URL is given without --, as the first word")
        return CommandTarget(tuple(command), name=command[0]), list(words)
    if not words:
        where = "its URL, its command after --, or its name in a config file"
        raise usage(f"which server? Give {where}{_known(config)}")
    name, *rest = words
    if not _is_url(name):
        return named_target(name, config, given), rest
    if config is not None:
        raise usage("give either a URL or --config FILE with a name, not both")
    return _http(name, "", "the URL", {}), rest


def _is_url(word: str) -> bool:
    return word.lower().startswith(_SCHEMES)


def _looks_like_url(word: str) -> bool:
    """Whether somebody may have meant one: ``htp://x``, ``https//x``, ``localhost:8000/mcp``."""
    return _NEARLY_URL.match(word) is not None


def _http(url: str, name: str, where: str, headers: Mapping[str, str]) -> HttpTarget | StreamTarget:
    """Without a `name` it is called by its URL without the query. Raises CommandError for no URL."""
    if url.lower().startswith(_STREAMS):
        return _stream(url, name, where, headers)
    from sansmcp.errors import LocalProtocolError
    from sansmcp.http.url import parse_url

    try:
        shown = str(parse_url(url))
    except LocalProtocolError as error:
        told = str(error).removeprefix("the URL is ")
        raise usage(f"{where} is {told}") from None
    scheme, found, rest = url.partition("://")
    return HttpTarget(scheme.lower() + found + rest, name or shown, headers)


def _stream(url: str, name: str, where: str, headers: Mapping[str, str]) -> StreamTarget:
    from sansmcp.errors import LocalProtocolError
    from sansmcp_asyncio import connect

    scheme, found, rest = url.partition(":")
    made = StreamTarget(scheme.lower() + found + rest, name or url.partition("?")[0], headers)
    try:
        connect(made.url)
    except LocalProtocolError as error:
        told = str(error).removeprefix("the URL is ")
        raise usage(f"{where} is {told}") from None
    return made


def named_target(name: str, config: str | None, given: Given = NOTHING_GIVEN) -> Target:
    """The server called `name` in `config`, or in the first of the usual files that has it."""
    files = [Path(config)] if config is not None else search_path()
    seen: list[str] = []
    unusable: CommandError | None = None
    for path in files:
        try:
            servers = read_servers(path, must_exist=config is not None)
        except CommandError as failure:
            if config is not None:
                raise
            # another client's broken file is none of our business, unless the name is nowhere else
            unusable = unusable or failure
            continue
        if name in servers:
            return _target(name, servers[name], path, given)
        seen += [known for known in servers if known not in seen]
    if unusable is not None:
        raise usage(f"no server named {one_line(name, 80)!r} found, and {unusable.message}")
    where = f"in {config}" if config is not None else f"in {', '.join(PROJECT_FILES)} or your own files"
    known = f"known: {', '.join(sorted(seen)[:20])}; " if seen else ""
    told = likely(name, seen) or known + (_LIKE_URL if _looks_like_url(name) else _ELSE)
    raise usage(f"no server named {one_line(name, 80)!r} {where}; {told}")


def _known(config: str | None) -> str:
    names: list[str] = []
    for path in [Path(config)] if config is not None else search_path():
        try:
            names += [name for name in read_servers(path, must_exist=False) if name not in names]
        except CommandError:
            continue
    return f" ({', '.join(sorted(names)[:20])})" if names else ""


def read_servers(path: Path, *, must_exist: bool) -> dict[str, Any]:
    """The servers that the file lists by name, not looked at yet."""
    try:
        if path.stat().st_size > _MAX_FILE:
            raise usage(f"{path} is too large for a configuration file")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if must_exist:
            raise usage(f"cannot read {path}: there is no such file") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise usage(f"cannot read {path}: {reason}") from None
    document = parse_json(text, str(path))
    if not isinstance(document, dict):
        raise usage(f"{path}: expected a JSON object with mcpServers or servers")
    found: dict[str, Any] = {}
    for member in ("servers", "mcpServers"):
        servers = document.get(member)
        if isinstance(servers, dict):
            found.update(servers)
        elif servers is not None:
            raise usage(f"{path}: {member} must be an object")
    if must_exist and not found:
        raise usage(f"{path}: it lists no server under mcpServers or servers")
    return found


def parse_json(text: str, where: str) -> Any:
    """JSON, with the comments and trailing commas that editors allow in settings."""
    try:
        return json.loads(text)
    except ValueError:
        pass

    def blank(match: re.Match[str]) -> str:
        # what is blanked keeps its place, so that positions in messages stay right
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    plain = _TRAILING_COMMA.sub(blank, _COMMENT.sub(blank, text))
    try:
        return json.loads(plain)
    except json.JSONDecodeError as error:
        raise usage(f"{where}: not JSON at line {error.lineno} column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise usage(f"{where}: not usable as JSON") from None


# one entry ---------------------------------------------------------------------------------------


def _target(name: str, entry: Any, path: Path, given: Given) -> Target:
    where = f"{path}: server {one_line(name, 80)!r}"
    if not isinstance(entry, dict):
        raise usage(f"{where} must be an object")
    if "command" not in entry and ("url" in entry or entry.get("type") in _HTTP_TYPES + _STREAM_TYPES):
        return _http_target(name, entry, path, given, where)
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not command:
        raise usage(f"{where} has no command")
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise usage(f"{where}: args must be an array of strings")
    cwd = entry.get("cwd")
    if cwd is not None and not isinstance(cwd, str):
        raise usage(f"{where}: cwd must be a string")
    folder = _workspace(path)
    env = {**_env_file(entry, folder, where), **_strings(entry, "env", where)}
    expand = _Expansion(folder, where)
    return CommandTarget(
        argv=(expand(command), *map(expand, args)),
        name=name,
        env={key: expand(value) for key, value in env.items() if key not in given.env},
        cwd=None if cwd is None else str(folder / expand(cwd)),
    )


def _http_target(
    name: str, entry: Mapping[str, Any], path: Path, given: Given, where: str
) -> HttpTarget | StreamTarget:
    kind = entry.get("type", "http")
    if kind not in _HTTP_TYPES + _STREAM_TYPES:
        raise usage(f"{where}: it has a url, so its type must be http, streamable-http, sse or ws")
    url = entry.get("url")
    if not isinstance(url, str) or not url:
        raise usage(f"{where}: url must be a string")
    expand = _Expansion(_workspace(path), where, "give the header with --header, or the URL for the name")
    headers = {
        key: expand(value)
        for key, value in _strings(entry, "headers", where).items()
        if key.lower() not in given.headers
    }
    return _http(expand(url), name, f"{where}: url", headers)


def _strings(entry: Mapping[str, Any], member: str, where: str) -> dict[str, str]:
    values = entry.get(member) or {}
    if not isinstance(values, dict):
        raise usage(f"{where}: {member} must be an object")
    chosen: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            if value is None:  # VS Code: unset
                continue
            raise usage(f"{where}: {member} {key} must be a string")
        chosen[key] = str(value)
    return chosen


def _env_file(entry: Mapping[str, Any], folder: Path, where: str) -> dict[str, str]:
    name = entry.get("envFile")
    if not isinstance(name, str):
        return {}
    path = folder / _Expansion(folder, where)(name)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise usage(f"{where}: cannot read envFile {path}") from None
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, found, value in pairs if found}


def _workspace(path: Path) -> Path:
    """The folder that a file speaks of: its own, or the one above an editor's hidden folder."""
    folder = path.absolute().parent
    return folder.parent if folder.name in (".vscode", ".cursor") else folder


class _Expansion:
    """Replaces ``${…}`` in the strings of one entry."""

    def __init__(self, folder: Path, where: str, instead: str = _INSTEAD) -> None:
        self._known = {
            "workspaceFolder": str(folder),
            "workspaceFolderBasename": folder.name,
            "userHome": str(Path.home()),
            "cwd": str(Path.cwd()),
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        self._where = where
        self._instead = instead

    def __call__(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        if name in self._known:
            return self._known[name]
        if name.startswith("input:"):
            asks = f"{self._where} asks for {match[0]}, which only an editor can prompt for"
            raise usage(f"{asks}; {self._instead}")
        variable, _, default = name.removeprefix("env:").partition(":-")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            return match[0]
        if variable in os.environ:
            return os.environ[variable]
        if ":-" in name:
            return default
        raise usage(f"{self._where} needs the environment variable {variable}, which is not set")
