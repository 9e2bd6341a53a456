"""The skills that the suite's scenarios find, read and look into, and a client of its own ones."""

from __future__ import annotations

from typing import Final

from sansmcp.extensions.skills import HeldSkill, ServerSkills, Skill, SkillRefused, list_skills
from sansmcp_asyncio import Client

_PDF: Final = """---
name: pdf-processing
description: Extract, fill, and assemble PDF documents
---

Read references/FORMS.md before you fill in a form.
"""
_NOTES: Final = """---
name: release-notes
description: "Write release notes: short, and for people"
---

One line for each change.
"""

SKILLS: Final = ServerSkills(
    skills=[
        Skill("pdf-processing", {"SKILL.md": _PDF, "references/FORMS.md": "Fill in every field.\n"}),
        Skill("writing/release-notes", {"SKILL.md": _NOTES}),
    ],
    page_size=1,
)


async def find(client: Client) -> list[HeldSkill]:
    """All skills of a server."""
    found: list[HeldSkill] = []
    cursor = None
    while True:
        page = await client.use(list_skills, cursor)
        found += [HeldSkill("the server of the suite", entry) for entry in page.skills]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def use(client: Client) -> None:
    """Read every file of every skill, until one is not what its entry says."""
    for skill in await find(client):
        assert not isinstance(skill.entry.resources, str)
        try:
            for file in skill.entry.resources:
                skill.take(file.uri, await client.read_resource(file.uri))
        except SkillRefused:
            continue
