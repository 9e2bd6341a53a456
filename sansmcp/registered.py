"""What an `App` has registered: a definition that is told, and the handler that does it.

A tool's handler is given what its schema and its annotations promise, or is not called; what it returns
is looked at as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import attrs

from .asks import AnyQuestion
from .errors import LocalProtocolError
from .invocation import Handler
from .records import frozen
from .results import tool_result
from .revisions import Revision
from .schema import CONTEXT_PARAMETER, is_record, takes_context
from .session.hints import Keep
from .signature import ArgumentError, Arguments, arguments_of, plain, returns_rich
from .types.base import UNSET
from .types.results import CacheableResult
from .types.tools import CallToolResult
from .validation import SchemaCheck, SchemaValidator, compile_schema

_MISSING: Final = object()
_SIMPLE: Final = frozenset({str, dict, list, int, float, bool, type(None)})


@frozen(eq=False)
class Registered:
    """One registered thing. Its function is looked at once: that costs more than the rest of a call."""

    definition: Any
    """What is told of it: an object of the protocol; None for a method or the completion."""
    function: Handler
    requires: tuple[AnyQuestion, ...] = ()
    """What has to be askable."""
    keep: Keep | None = None
    """A resource: how long what is read of it may be used again."""
    context: bool = attrs.field(init=False)
    """Whether the handler wants a `Context`."""

    @context.default
    def _read_context(self) -> bool:
        return takes_context(self.function)

    signature: inspect.Signature | None = attrs.field(init=False, repr=False)
    """None where it cannot be told."""

    @signature.default
    def _read_signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.function)
        except (TypeError, ValueError):
            return None

    names: frozenset[str] | None = attrs.field(init=False, repr=False)
    """Arguments of exactly these names fit; others have to be tried. None where none is sure to fit."""

    @names.default
    def _read_names(self) -> frozenset[str] | None:
        if self.signature is None:
            return None
        parameters = list(self.signature.parameters.values())
        if any(p.kind is p.POSITIONAL_ONLY for p in parameters):
            return None
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return frozenset(p.name for p in parameters if p.kind not in several and p.name != CONTEXT_PARAMETER)

    is_async: bool = attrs.field(init=False, repr=False)

    @is_async.default
    def _read_is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def kept(self, result: Any) -> Any:
        """`result`, saying how long it may be used again, unless it says so itself."""
        if self.keep is None:
            return result
        if isinstance(result, dict):
            return {**self.keep.hints(), **result}
        if isinstance(result, CacheableResult) and result.ttl_ms is None:
            return result.replace(ttl_ms=self.keep.ttl_ms, cache_scope=self.keep.scope)
        return result

    def binding_problem(self, arguments: Mapping[str, Any]) -> str | None:
        """Why the handler cannot be called with these keywords, in words; None when it can."""
        if self.signature is None or (self.names is not None and self.names == set(arguments)):
            return None
        if self.context and CONTEXT_PARAMETER in arguments:
            return f"got an unexpected keyword argument {CONTEXT_PARAMETER!r}"
        extra = {CONTEXT_PARAMETER: None} if self.context else {}
        try:
            self.signature.bind(**arguments, **extra)
        except TypeError as error:
            return str(error)
        return None


@attrs.define(eq=False)
class Checks:
    """How a tool's arguments and results are checked; compiled when they are needed first."""

    arguments: SchemaCheck | None = None
    result: SchemaCheck | None = None


@frozen(eq=False)
class RegisteredTool(Registered):
    """A tool: `definition` is a `Tool`."""

    arguments: Arguments | None = attrs.field(init=False, repr=False)
    """Makes objects of those arguments that the handler wants as such."""

    @arguments.default
    def _read_arguments(self) -> Arguments | None:
        return arguments_of(self.function)

    _returns_rich: bool = attrs.field(init=False, repr=False)
    """Whether what the handler returns may hold, anywhere in it, what is no JSON yet."""

    @_returns_rich.default
    def _read_returns_rich(self) -> bool:
        return returns_rich(self.function)

    _checks: list[Checks] = attrs.field(factory=list, init=False, repr=False)

    def compile(self, validator: SchemaValidator | None) -> Checks:
        """The checks of the tool's schemas, made once. Raises UnusableSchemaError."""
        if not self._checks:
            made = Checks()
            if validator is not None:
                made.arguments = compile_schema(validator, self.definition.input_schema)
                if self.definition.output_schema is not None:
                    made.result = compile_schema(validator, self.definition.output_schema)
            self._checks.append(made)
        return self._checks[0]

    def give_up_checks(self) -> Checks:
        """Its schemas cannot be used: nothing is checked."""
        self._checks[:] = [Checks()]
        return self._checks[0]

    def take(self, arguments: dict[str, Any], checks: Checks) -> dict[str, Any] | str:
        """The handler's keywords, or what is wrong with `arguments`: a line that a model can read."""
        problem = self.binding_problem(arguments)
        if problem is None and checks.arguments is not None:
            problem = checks.arguments(arguments)
        if problem is not None:
            return problem
        if self.arguments is None:
            return arguments
        try:
            return self.arguments.convert(arguments)
        except ArgumentError as error:
            return str(error)

    def result(self, value: Any, revision: Revision) -> Any:
        """The result for what the handler returned.

        Raises LocalProtocolError for what is no result, or none that the tool's output schema allows.
        """
        kind = type(value)
        if self._returns_rich or (kind not in _SIMPLE and is_record(kind)):
            value = plain(value)
        made = tool_result(value, revision)
        check = self._checks[0].result if self._checks else None
        if check is not None:
            content, failed = _structured(made)
            if not failed:
                problem = "there is none" if content is _MISSING else check(content)
                if problem is not None:
                    raise LocalProtocolError(
                        f"{self.definition.name}: structured content against the output schema: {problem}"
                    )
        return made


def _structured(made: Any) -> tuple[Any, bool]:
    """The structured content of a result, and whether the tool says that it failed."""
    if isinstance(made, CallToolResult):
        content: Any = made.structured_content
        return _MISSING if content is UNSET else content, bool(made.is_error)
    return made.get("structuredContent", _MISSING), made.get("isError") is True


__all__ = ["Checks", "Registered", "RegisteredTool"]
