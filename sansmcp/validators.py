"""The two libraries that can do the checking: jsonschema-rs, and jsonschema where nothing is compiled.

Both never fetch anything, whatever a schema refers to. They belong to the extra ``schema``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .errors import LocalProtocolError
from .validation import Schema, SchemaCheck, SchemaValidator, UnusableSchemaError

_MAX_TOLD: Final = 5
"""Faults that one line tells of."""

_MAX_FAULT: Final = 300
"""Characters of one fault: it may quote the value."""


class ValidatorUnavailableError(LocalProtocolError, ImportError):
    """The library is not installed."""


class RustValidator:
    """Checks with jsonschema-rs. Raises ValidatorUnavailableError if it is not installed."""

    def __init__(self) -> None:
        try:
            import jsonschema_rs
        except ImportError as error:
            raise ValidatorUnavailableError("install sansmcp[schema] for jsonschema-rs") from error
        self._library = jsonschema_rs

    def compile(self, schema: Schema) -> SchemaCheck:
        """See `SchemaValidator.compile`."""
        try:
            validator = self._library.validator_for(
                dict(schema) if isinstance(schema, Mapping) else schema, retriever=_refuse
            )
        except (ValueError, TypeError, OverflowError) as error:
            raise UnusableSchemaError(f"the schema is not usable: {_line(error)}") from None

        def check(value: Any) -> str | None:
            try:
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


__all__ = ["PythonValidator", "RustValidator", "ValidatorUnavailableError", "default_validator"]
