"""Where a request is for, when servers and the applications that mount others split its path as they like."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote


def target(path: str, root: str, query: str, served: Iterable[str | None]) -> str:
    """The target of a request line: the one of the paths `served` that it is for, else as it came.

    `root` is where this application is mounted. `path` may hold it or not, and what is left of it may
    be a slash more than was mounted.
    """
    root = root.rstrip("/")
    places = {path, root + path}
    if path == root or path.startswith(f"{root}/"):
        places.add(path[len(root) :])
    places |= {place.rstrip("/") for place in places}
    found = next((place for place in served if place in places), None) or quote(path)
    return f"{found}?{query}" if query else found
