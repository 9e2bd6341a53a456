"""The two libraries that can do the checking: jsonschema-rs, and jsonschema where nothing is compiled.

Both never fetch anything, whatever a schema refers to. They belong to the extra ``schema``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any, Final

from .errors import LocalProtocolError
from .validation import Schema, SchemaCheck, SchemaValidator, UnusableSchemaError

_MAX_TOLD: Final = 5
"""Faults that one line tells of."""

_MAX_FAULT: Final = 300
"""Characters of one fault: it may quote the value."""

_TEXTS: Final = ("description", "title")
_OF_MEMBER: Final = frozenset({"default", "type", *_TEXTS})
_OF_OBJECT: Final = _OF_MEMBER | {"additionalProperties", "properties", "required"}
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (float, int),
    "string": (str,),
}


class ValidatorUnavailableError(LocalProtocolError, ImportError):
    """The library is not installed."""


class RustValidator:
    """Checks with jsonschema-rs. Raises ValidatorUnavailableError if it is not installed.

    The library is loaded when there is something that does not show at a glance (`plainly_fits`).
    """

    def __init__(self) -> None:
        if find_spec("jsonschema_rs") is None:
            raise ValidatorUnavailableError("install sansmcp[schema] for jsonschema-rs")

    def compile(self, schema: Schema) -> SchemaCheck:
        """See `SchemaValidator.compile`."""
        fits = plainly_fits(schema)
        if fits is None:
            return self._compile(schema)
        whole: SchemaCheck | None = None

        def check(value: Any) -> str | None:
            nonlocal whole
            if fits(value):
                return None
            if whole is None:
                whole = self._compile(schema)
            return whole(value)

        return check

    @staticmethod
    def _compile(schema: Schema) -> SchemaCheck:
        import jsonschema_rs

        try:
            validator = jsonschema_rs.validator_for(
                dict(schema) if isinstance(schema, Mapping) else schema, retriever=_refuse
            )
        except (ValueError, TypeError, OverflowError) as error:
            raise UnusableSchemaError(f"the schema is not usable: {_line(error)}") from None

        def check(value: Any) -> str | None:
            try:
                if validator.is_valid(value):
                    return None
                return _told((list(e.instance_path), e.message) for e in validator.iter_errors(value))
            except (ValueError, TypeError, OverflowError) as error:
                return f"cannot be checked: {_line(error)}"

        return check


class PythonValidator:
    """Checks with jsonschema. Raises ValidatorUnavailableError if it is not installed.

    Slower, and with patterns that Python's ``re`` reads, some of which take for ever: only for schemas
    that are trusted, or where nothing compiled can be installed.
    """

    def __init__(self) -> None:
        try:
            import jsonschema
            import referencing
        except ImportError as error:
            raise ValidatorUnavailableError("install jsonschema, or sansmcp[schema]") from error
        self._library = jsonschema
        make_registry: Any = referencing.Registry
        self._registry = make_registry(retrieve=_refuse)

    def compile(self, schema: Schema) -> SchemaCheck:
        """See `SchemaValidator.compile`."""
        kind: Any = self._library.validators.validator_for(schema, self._library.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except self._library.SchemaError as error:
            raise UnusableSchemaError(f"the schema is not usable: {_line(error.message)}") from None
        validator = kind(schema, registry=self._registry)

        def check(value: Any) -> str | None:
            try:
                return _told((list(e.absolute_path), e.message) for e in validator.iter_errors(value))
            except Exception as error:
                return f"cannot be checked: {_line(error)}"

        return check


def plainly_fits(schema: Schema) -> Callable[[Any], bool] | None:
    """What says of a value whether it surely fits `schema`; where it says no, it may fit all the same.

    None for all but the plainest schemas: an object whose members are texts, numbers and truth values.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object" or not _is_plain(schema, _OF_OBJECT):
        return None
    properties, names = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(names, list):
        return None
    if schema.get("additionalProperties", False) is not False:
        return None
    kinds: dict[str, tuple[type, ...]] = {}
    for name, member in properties.items():
        kind = member.get("type") if isinstance(member, dict) and _is_plain(member, _OF_MEMBER) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            return None
        kinds[name] = _KINDS[kind]
    required = frozenset(name for name in names if isinstance(name, str))
    if len(required) != len(names):
        return None

    def fits(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        return all(type(member) in kinds.get(name, ()) for name, member in value.items())

    return fits


def _is_plain(schema: Mapping[str, Any], known: frozenset[str]) -> bool:
    """Whether it says nothing beside what is `known`, and its notes are what they have to be."""
    return schema.keys() <= known and all(isinstance(schema.get(note, ""), str) for note in _TEXTS)


def default_validator() -> SchemaValidator:
    """The better one of those that are installed. Raises ValidatorUnavailableError if none is."""
    try:
        return RustValidator()
    except ValidatorUnavailableError:
        return PythonValidator()


def _refuse(uri: str) -> Any:
    raise ValueError("nothing is fetched")


def _told(faults: Iterable[tuple[list[Any], str]]) -> str | None:
    lines: list[str] = []
    for path, message in faults:
        if len(lines) == _MAX_TOLD:
            lines.append("…")
            break
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        lines.append(f"{where.lstrip('.')}: {_line(message)}" if where else _line(message))
    return "; ".join(lines) or None


def _line(text: object) -> str:
    line = " ".join(str(text).split("\n", 1)[0].split())
    return line if len(line) <= _MAX_FAULT else line[: _MAX_FAULT - 1] + "…"


__all__ = [
    "PythonValidator",
    "RustValidator",
    "ValidatorUnavailableError",
    "default_validator",
    "plainly_fits",
]
