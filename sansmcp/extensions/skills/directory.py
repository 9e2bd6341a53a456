"""Skills from a directory of the disk.

Nothing imports this module but whoever wants it: it reads files, which the rest of the package does not.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import LocalProtocolError
from .server import Skill
from .verify import MAX_BYTES, MAX_FILES


def read_skill(directory: Path | str, path: str | None = None) -> Skill:
    """The skill in a directory, as it is now; it lies at `path`, the name of the directory unless given.

    Hidden files, and links that lead out of it, are left out. Raises LocalProtocolError as `Skill` does,
    and OSError for what cannot be read.
    """
    root = Path(directory).resolve()
    files: dict[str, bytes] = {}
    size = 0
    for file in sorted(root.rglob("*")):
        inner = file.relative_to(root)
        if any(part.startswith(".") for part in inner.parts) or not file.is_file():
            continue
        if not file.resolve().is_relative_to(root):
            continue
        size += file.stat().st_size
        if len(files) >= MAX_FILES or size > MAX_BYTES:
            raise LocalProtocolError(f"{root.name}: more than {MAX_FILES} files or {MAX_BYTES} bytes")
        files[inner.as_posix()] = file.read_bytes()
    return Skill(path or root.name, files)
