"""Skills, the client's side: what there is, and its files, verified.

Specification: the skills extension (``io.modelcontextprotocol/skills``, SEP-2640).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...wire.jsoncodec import JsonValue
from ..extension import Extension, ExtensionMethod
from .types import SKILLS_EXTENSION, GetSkillResult, ListSkillsResult, ReadDirectoryResult

if TYPE_CHECKING:
    from ...client import ClientEngine
    from ...session.calls import Call

LIST: Final = "skills/list"
GET: Final = "skills/get"
READ_DIRECTORY: Final = "resources/directory/read"


def client_skills() -> Extension:
    """Skills, for ``ClientEngine(extensions=[client_skills()])``."""
    return Extension(
        id=SKILLS_EXTENSION,
        methods={
            LIST: ExtensionMethod(result=ListSkillsResult),
            GET: ExtensionMethod(result=GetSkillResult),
            READ_DIRECTORY: ExtensionMethod(result=ReadDirectoryResult),
        },
    )


def list_skills(engine: ClientEngine, cursor: str | None = None, *, now: float, **options: Any) -> Call:
    """One page of the skills; ends with a `ListSkillsResult`. Options as for `ClientEngine.request`."""
    return engine.request(LIST, None if cursor is None else {"cursor": cursor}, now=now, **options)


def get_skill(engine: ClientEngine, uri: str, *, now: float, **options: Any) -> Call:
    """The skill whose ``SKILL.md`` is at `uri`, listed or not; ends with a `GetSkillResult`."""
    return engine.request(GET, {"uri": uri}, now=now, **options)


def read_directory(
    engine: ClientEngine, uri: str, cursor: str | None = None, *, now: float, **options: Any
) -> Call:
    """One page of what lies in a directory; ends with a `ReadDirectoryResult`.

    Only where the server declares ``directoryRead``.
    """
    params: dict[str, JsonValue] = {"uri": uri}
    if cursor is not None:
        params["cursor"] = cursor
    return engine.request(READ_DIRECTORY, params, now=now, **options)
