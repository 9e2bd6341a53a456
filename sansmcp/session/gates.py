"""What may be said to a peer: by its revision, and by what it declared.

The tables are data in `sansmcp.types.methods`; these are the questions asked of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import LocalProtocolError
from ..revisions import Revision
from ..types.convert import project
from ..types.methods import Direction, MethodSpec


def declared(capability: str | None, capabilities: Mapping[str, Any]) -> bool:
    """Whether the dotted `capability` (``"resources.subscribe"``) is in `capabilities`.

    An empty object declares; False and null do not. No capability needed: True.
    """
    if capability is None:
        return True
    value: Any = capabilities
    for name in capability.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value is not None and value is not False


def check_params(spec: MethodSpec, params: dict[str, Any], revision: Revision, direction: Direction) -> None:
    """Raise LocalProtocolError for a method or a field of its params that `revision` lacks."""
    if not spec.goes(direction, revision):
        raise LocalProtocolError(
            f"{spec.method.value} does not go from {direction.value} in revision {revision}"
        )
    kept = project(params, spec.params, revision)
    if kept is not params:
        lost = ", ".join(sorted(params.keys() - kept.keys())) or "a nested field"
        raise LocalProtocolError(f"{spec.method.value}: {lost} does not exist in revision {revision}")
