"""From raw results and params to the classes their method prescribes, when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..errors import PeerFault, RemoteProtocolError
from ..revisions import LATEST, Revision
from ..types.convert import StructureError, structure, unstructure
from ..types.methods import spec_for

T = TypeVar("T")


def typed_result(method: str, raw: dict[str, Any], revision: Revision | None) -> Any:
    """Build the result class of `method`; the raw dict itself for a method without one.

    Raises RemoteProtocolError (INVALID_RESULT) when `raw` does not fit.
    """
    spec = spec_for(method)
    result = None if spec is None else spec.result
    if result is None:
        return raw
    return parsed_result(method, raw, lambda raw: structure(raw, result, revision or LATEST))


def parsed_result(method: str, raw: dict[str, Any], parser: Callable[[dict[str, Any]], T]) -> T:
    """What `parser` makes of the result of `method`.

    Raises RemoteProtocolError (INVALID_RESULT) when `raw` does not fit.
    """
    try:
        return parser(raw)
    except StructureError as error:
        raise RemoteProtocolError(
            PeerFault.INVALID_RESULT, f"the result of {method} is not valid: {error}"
        ) from error


def lenient(raw: Any, cls: type[T], revision: Revision) -> T | None:
    """Build `cls` from what a peer says of itself; None when it does not fit."""
    try:
        return structure(raw, cls, revision)
    except StructureError:
        return None


def to_wire(value: Any, revision: Revision) -> dict[str, Any]:
    """A typed object or a mapping as the JSON object that `revision` has for it."""
    if isinstance(value, Mapping):
        return dict(value)

    return unstructure(value, revision)
