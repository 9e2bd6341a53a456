"""Skills: instructions that a server has for models, with files that clients verify.

`client_skills` and `ServerSkills` are the two sides; skills from a directory are in `directory.py`, which
nothing imports by itself.

Specification: the skills extension (``io.modelcontextprotocol/skills``, SEP-2640).
"""

from __future__ import annotations

from .client import client_skills, get_skill, list_skills, read_directory
from .frontmatter import FrontmatterError, read_frontmatter
from .server import ServerSkills, Skill
from .types import (
    SKILLS_EXTENSION,
    GetSkillResult,
    ListSkillsResult,
    ReadDirectoryResult,
    SkillEntry,
    SkillFile,
)
from .verify import MAX_BYTES, MAX_FILES, HeldSkill, SkillId, SkillRefused, entry_problems

__all__ = [
    "MAX_BYTES",
    "MAX_FILES",
    "SKILLS_EXTENSION",
    "FrontmatterError",
    "GetSkillResult",
    "HeldSkill",
    "ListSkillsResult",
    "ReadDirectoryResult",
    "ServerSkills",
    "Skill",
    "SkillEntry",
    "SkillFile",
    "SkillId",
    "SkillRefused",
    "client_skills",
    "entry_problems",
    "get_skill",
    "list_skills",
    "read_directory",
    "read_frontmatter",
]
