"""Tokens in a file that only its owner can read."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from sansmcp.auth.registration import Registration
from sansmcp.auth.tokens import Tokens
from sansmcp.errors import LocalProtocolError

MAX_FILE: Final = 4 * 1024 * 1024
"""Bytes that are read. Past it: the file is not one of this kind."""

MAX_SERVERS: Final = 1024
"""Servers whose tokens are kept, and authorization servers. Past it: the oldest are forgotten."""

LOCK_WAIT: Final = 1.0
"""Seconds to wait for others who write. Past it: one of them hangs, and is not waited for."""

_PAUSE: Final = 0.005
"""Seconds between two looks at a lock. Others write a file and leave: a loop can stand still for that."""

T = TypeVar("T", Tokens, Registration)


def default_token_file(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where the tokens of this user are kept unless somewhere else is said."""
    home = Path.home()
    if platform == "darwin":
        folder = home / "Library" / "Application Support"
    elif platform == "win32":
        folder = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        folder = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "sansmcp" / "tokens.json"


class FileTokenStore:
    """A `TokenStore` in the file `path`, which is made when there is something to keep.

    Only its owner can read it: others are shut out when it is written, and when it is read. It is read each
    time anew, so that processes may share it, and replaced as a whole. They write one after the other; on
    Windows, of two that write at the same moment what the later one read is kept.

    Raises LocalProtocolError for a file that is not one of this kind. One that breaks later counts as empty.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = default_token_file() if path is None else Path(path)
        self._read(strict=True)

    def __repr__(self) -> str:
        return f"<FileTokenStore {self._path}>"

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def tokens(self, server: str) -> Tokens | None:
        """What is kept for the server at this address."""
        return _load(Tokens, self._read()["tokens"].get(server))

    def keep_tokens(self, server: str, tokens: Tokens | None) -> None:
        """Keep these tokens, or forget them."""
        self._keep("tokens", server, tokens)

    def registration(self, issuer: str) -> Registration | None:
        """By what the authorization server `issuer` knows this client."""
        return _load(Registration, self._read()["registrations"].get(issuer))

    def keep_registration(self, issuer: str, registration: Registration | None) -> None:
        """Keep this registration, or forget it."""
        self._keep("registrations", issuer, registration)

    def servers(self) -> list[str]:
        """The addresses of all servers for which there are tokens."""
        return list(self._read()["tokens"])

    # the file ------------------------------------------------------------------------------------

    def _read(self, *, strict: bool = False) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {"tokens": {}, "registrations": {}}
        try:
            with self._path.open("rb") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                    os.fchmod(file.fileno(), 0o600)
                value = json.loads(file.read(MAX_FILE + 1))
            for part in found:
                found[part] = {k: v for k, v in value[part].items() if isinstance(v, dict)}
        except FileNotFoundError:
            pass
        except OSError as error:
            if strict:
                raise LocalProtocolError(
                    f"the tokens in {self._path} cannot be read: {error.strerror}"
                ) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if strict:
                raise LocalProtocolError(
                    f"{self._path} is no file of tokens: remove it, or name another"
                ) from None
        return found

    def _keep(self, part: str, key: str, value: Tokens | Registration | None) -> None:
        place = Path(os.path.realpath(self._path))  # a link stays one
        if value is not None:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(place.parent):
            whole = self._read()
            entries = whole[part]
            if entries.pop(key, None) is None and value is None:
                return
            if value is not None:
                entries[key] = attrs.asdict(value)
            while len(entries) > MAX_SERVERS:
                del entries[next(iter(entries))]
            self._write(place, json.dumps(whole, indent=1))

    @staticmethod
    def _write(place: Path, text: str) -> None:
        # A file of its own, which nobody else can open from the first moment on.
        handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Shut out who else writes in `folder`. It is the folder that is locked: so no file is left."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield  # where nothing can be kept, that is told by who tries
        return
    try:
        late = time.monotonic() + LOCK_WAIT
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < late:
                    time.sleep(_PAUSE)
                    continue
            except OSError:
                pass  # some file systems have none
            break
        yield
    finally:
        os.close(handle)


def _load(kind: type[T], entry: object) -> T | None:
    """What was kept, if it is of the shape that is written now."""
    if not isinstance(entry, dict):
        return None
    known = {field.name: field for field in attrs.fields(kind)}
    values: dict[str, Any] = {name: _read(v) for name, v in entry.items() if name in known}
    if any(not _fits(str(known[name].type), value) for name, value in values.items()):
        return None
    try:
        return kind(**values)
    except TypeError:
        return None


def _read(value: object) -> object:
    match value:
        case list():
            return tuple(value)
        case dict():
            return _load(Registration, value) or value
    return value


def _fits(type_: str, value: object) -> bool:
    match value:
        case None:
            return "None" in type_
        case str():
            return type_.startswith("str")
        case tuple():
            return type_ == "Scopes" and all(isinstance(item, str) for item in value)
        case bool():
            return False
        case int() | float():
            return type_.startswith("float")
        case Registration():
            return type_.startswith("Registration")
    return False
