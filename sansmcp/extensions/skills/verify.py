"""Whether a skill is what its server said: on each read, of each file.

Specification: the skills extension (integrity and verification, limits).
"""

from __future__ import annotations

import re
from base64 import b64decode
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote

import attrs

from ...errors import SansmcpError
from ...types.content import BlobResourceContents, TextResourceContents
from ...types.resources import ReadResourceResult
from .frontmatter import FrontmatterError, read_frontmatter
from .types import DYNAMIC, SKILL_FILE, SkillEntry, SkillFile

MAX_FILES: Final = 512
"""Files of one skill."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of all files of one skill."""

_NAME: Final = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class SkillRefused(SansmcpError):  # noqa: N818  (a refusal)
    """A skill, or a file of it, is not what its server said. Do not use it; nothing of it is quoted."""


@attrs.frozen
class SkillId:
    """Which skill it is: the same URI of another server is another skill."""

    server: str
    """What you tell servers apart by; never what a server says of itself."""
    uri: str


def digest_of(data: bytes) -> str:
    """The digest of a file, as an entry has it."""
    return f"sha256:{sha256(data).hexdigest()}"


def directory_of(entry: SkillEntry) -> str:
    """Where the files of a skill lie, with the slash at the end."""
    return entry.uri.removesuffix(SKILL_FILE)


def entry_problems(entry: SkillEntry) -> list[str]:
    """What is wrong with an entry, one line each; empty: it can be held against its files."""
    problems = []
    name, description = entry.frontmatter.get("name"), entry.frontmatter.get("description")
    directory = directory_of(entry)
    if not entry.uri.startswith("skill://") or not entry.uri.endswith(f"/{SKILL_FILE}"):
        problems.append(f"its uri is not skill://…/{SKILL_FILE}")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        problems.append("its name is not 1 to 64 of a-z 0-9 and single hyphens within")
    elif directory.rstrip("/").rpartition("/")[2] != name:
        problems.append("its directory is not called as the skill is")
    if not isinstance(description, str):
        problems.append("it has no description")
    if isinstance(entry.resources, str):
        if entry.resources != DYNAMIC:
            problems.append(f"its files are neither a list nor {DYNAMIC!r}")
        return problems
    files = entry.resources
    uris = [file.uri for file in files]
    if entry.uri not in uris:
        problems.append(f"its files do not include {SKILL_FILE}")
    if len(set(uris)) != len(uris):
        problems.append("a file is there twice")
    if not all(_within(directory, uri) for uri in uris):
        problems.append("a file lies outside of its directory")
    if not all(_DIGEST.fullmatch(file.digest) for file in files):
        problems.append("a digest is not sha256: and 64 hexadecimal digits")
    if any(file.size < 0 for file in files):
        problems.append("a size is negative")
    if len(files) > MAX_FILES:
        problems.append(f"it has more than {MAX_FILES} files")
    if sum(file.size for file in files) > MAX_BYTES:
        problems.append(f"its files have more than {MAX_BYTES} bytes")
    return problems


def _within(directory: str, uri: str) -> bool:
    if not uri.startswith(directory):
        return False
    steps = [unquote(step) for step in uri[len(directory) :].split("/")]
    return not any(step in ("", ".", "..") or set(step) & set("/\\\0") for step in steps)


class HeldSkill:
    """A skill that was listed, and that its files are held against, one by one, as they are read.

    Read them when the skill is used, not before. Raises SkillRefused for an entry that is not as it has
    to be.
    """

    def __init__(self, server: str, entry: SkillEntry) -> None:
        problems = entry_problems(entry)
        if problems:
            raise SkillRefused(f"a skill of {server}: {'; '.join(problems)}")
        self.id: Final = SkillId(server, entry.uri)
        self.entry: Final = entry
        self._files: dict[str, SkillFile] | None = None
        if not isinstance(entry.resources, str):
            self._files = {file.uri: file for file in entry.resources}
        self._taken: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<HeldSkill {self.entry.frontmatter.get('name')} of {self.id.server}>"

    def check_uri(self, uri: str) -> None:
        """Whether `uri` is one of its files: to be asked before it is read. Raises SkillRefused."""
        listed = _within(directory_of(self.entry), uri) if self._files is None else uri in self._files
        if not listed:
            raise SkillRefused(f"{self!r}: a file that its entry does not list")

    def take(self, uri: str, result: ReadResourceResult | bytes) -> bytes:
        """The content of one file, which was read just now. Raises SkillRefused if it is not the one."""
        self.check_uri(uri)
        data = result if isinstance(result, bytes) else content_of(result, uri)
        if self._files is not None:
            file = self._files[uri]
            if len(data) != file.size:
                raise SkillRefused(f"{self!r}: a file of {len(data)} bytes, and its entry says {file.size}")
            if digest_of(data) != file.digest:
                raise SkillRefused(f"{self!r}: a file whose digest is not the one of its entry")
        else:
            self._count(uri, len(data))
        if uri == self.entry.uri:
            self._compare(data)
        return data

    def _count(self, uri: str, size: int) -> None:
        self._taken[uri] = size
        if len(self._taken) > MAX_FILES or sum(self._taken.values()) > MAX_BYTES:
            raise SkillRefused(f"{self!r}: more than {MAX_FILES} files or {MAX_BYTES} bytes")

    def _compare(self, data: bytes) -> None:
        try:
            found = read_frontmatter(data.decode("utf-8"))
        except (FrontmatterError, UnicodeDecodeError) as error:
            text = error if isinstance(error, FrontmatterError) else "it is not UTF-8"
            raise SkillRefused(f"{self!r}: its head cannot be compared: {text}") from None
        told = self.entry.frontmatter
        different = [key for key in {**told, **found} if not _same(told.get(key, ...), found.get(key, ...))]
        if different:
            raise SkillRefused(
                f"{self!r}: its head is not the one of its entry: {', '.join(different)[:200]}"
            )


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal, a number and a truth value never."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def content_of(result: ReadResourceResult, uri: str) -> bytes:
    """The bytes of the one content that a read of `uri` gave. Raises SkillRefused for anything else."""
    known = (TextResourceContents, BlobResourceContents)
    contents = [content for content in result.contents if isinstance(content, known) and content.uri == uri]
    if len(contents) != 1:
        raise SkillRefused(f"a read gave {len(contents)} contents of the file that was asked for, not one")
    (content,) = contents
    if isinstance(content, TextResourceContents):
        return content.text.encode("utf-8", "surrogatepass")
    try:
        return b64decode(content.blob, validate=True)
    except ValueError:  # also that of what is not ASCII
        raise SkillRefused("a read gave a blob that is no base64") from None
