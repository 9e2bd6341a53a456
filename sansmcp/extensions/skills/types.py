"""What a server says of its skills.

Specification: the skills extension (``io.modelcontextprotocol/skills``, SEP-2640).
"""

from __future__ import annotations

from typing import Final

from ...revisions import Revision
from ...types.base import JsonObject, WireObject, wire_type
from ...types.resources import Resource
from ...types.results import CacheablePage, CacheableResult

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
"""The id of the skills extension."""
SKILL_FILE: Final = "SKILL.md"
"""The file that a skill is read by."""
DYNAMIC: Final = "dynamic"
"""In place of the files of a skill: they are not known before they are read."""
DIRECTORY: Final = "inode/directory"
"""The MIME type of a directory."""

_MODERN = Revision.V2026_07_28


@wire_type(since=_MODERN, firm=True)
class SkillFile(WireObject):
    """One file of a skill."""

    uri: str
    digest: str
    """``sha256:`` and 64 lower hexadecimal digits."""
    size: int
    """In bytes."""


@wire_type(since=_MODERN, firm=True)
class SkillEntry(WireObject):
    """A skill, and what its files have to be."""

    uri: str
    """That of its ``SKILL.md``."""
    frontmatter: JsonObject
    """The head of its ``SKILL.md``; `name` and `description` are there always."""
    resources: list[SkillFile] | str
    """All its files, ``SKILL.md`` included; or `DYNAMIC`."""


@wire_type(since=_MODERN)
class ListSkillsResult(CacheablePage):
    """One page of the skills."""

    skills: list[SkillEntry]


@wire_type(since=_MODERN)
class GetSkillResult(CacheableResult):
    """One skill."""

    skill: SkillEntry


@wire_type(since=_MODERN)
class ReadDirectoryResult(CacheablePage):
    """One page of what lies in a directory."""

    resources: list[Resource]
