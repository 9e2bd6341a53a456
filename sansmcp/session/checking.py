"""Lists of tools as they come in, and structured results held against what their tools promised.

Results are not checked unless a validator is given. One is never lost for it: what does not fit is told,
and in strict mode it is in the error that the call ends with.

Specification: 2026-07-28, server/tools (structured content, output schema).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..errors import OutputMismatch, PeerFault, RemoteProtocolError
from ..events import DeviationTolerated, LimitHit
from ..records import record
from ..revisions import Revision
from ..types.lifecycle import Implementation
from ..types.methods import Method
from .cache import Hit
from .caching import Caching
from .calls import Call
from .gates import is_tool_name
from .listed import Listed

if TYPE_CHECKING:  # who checks nothing need not load what checks
    from ..validation import SchemaCheck, SchemaValidator

_CHANGED: Final = "notifications/tools/list_changed"
_SINCE: Final = Revision.V2025_06_18
"""The first revision with output schemas."""
_NAMES_SINCE: Final = Revision.V2025_11_25
"""The first revision that says what tools should be called."""
_SHOWN: Final = 3


@record
class Output:
    """The output schema of one tool, compiled when its first result comes."""

    schema: Any
    check: SchemaCheck | None = None
    useless: bool = False
    """Whether nothing can be checked against it, which was told then."""


class Checking(Caching):
    """Everything of `ClientEngine` that concerns what tools promise of their results."""

    def __init__(
        self, info: Implementation, *, validator: SchemaValidator | None = None, **options: Any
    ) -> None:
        super().__init__(info, **options)
        self._validator = validator
        self._outputs: Listed[Output] = Listed(self.limits.max_output_schemas)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        return {**super().stats(), "output_schemas": len(self._outputs)}

    # what is promised ----------------------------------------------------------------------------

    def _see_tools(self, call: Call, raw: dict[str, Any]) -> None:
        """Look at a page of tools that came."""
        if isinstance(raw.get("tools"), list):
            self._check_names(call, raw["tools"])
            self._note_outputs(call, raw)

    def _check_names(self, call: Call, tools: list[Any]) -> None:
        if self._verdict is None or self._verdict.revision < _NAMES_SINCE:
            return
        names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
        odd = [name for name in names if isinstance(name, str) and not is_tool_name(name)]
        if odd:
            # Only a recommendation, so also in strict mode.
            shown = ", ".join(repr(name[:64]) for name in odd[:_SHOWN]) + (" …" if len(odd) > _SHOWN else "")
            detail = f"{call.subject}: no names for tools: {shown}"
            self._emit(DeviationTolerated(PeerFault.INVALID_TOOL_NAME, detail, call))

    def _note_outputs(self, call: Call, raw: dict[str, Any]) -> None:
        tools, outputs = raw.get("tools"), self._outputs
        if self._validator is None or not self._has_outputs or not isinstance(tools, list):
            return
        on = call.params if call.walk is None else call.walk.params(call.params)
        outputs.begin(first="cursor" not in on)
        for tool in tools:
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self._promise(tool["name"], tool.get("outputSchema"))
        outputs.end(last=raw.get("nextCursor") is None)
        if outputs.overflowed:
            limit = self.limits.max_output_schemas
            text = f"more than {limit} tools have an output schema: results of the others are not checked"
            self._emit(LimitHit("max_output_schemas", text))

    def _promise(self, name: str, schema: Any) -> None:
        known = self._outputs.get(name)
        if known is not None and known.schema == schema:
            self._outputs.note(name, known)  # as it was: what is compiled is compiled
        else:
            self._outputs.note(name, None if schema is None else Output(schema))

    @property
    def _has_outputs(self) -> bool:
        return self._verdict is not None and self._verdict.revision >= _SINCE

    def _answer(self, call: Call, hit: Hit) -> None:
        if call.method == Method.LIST_TOOLS:
            self._note_outputs(call, hit.raw)
        super()._answer(call, hit)

    def _tell_change(self, method: str, uri: Any, call: Call | None) -> None:
        if method == _CHANGED:
            self._outputs.forget()
        super()._tell_change(method, uri, call)

    # what came -----------------------------------------------------------------------------------

    def _output_failure(self, call: Call, raw: dict[str, Any]) -> OutputMismatch | None:
        """What a call is to fail with for its result; None when it counts, which may have been told."""
        if self._validator is None or call.method != Method.CALL_TOOL:
            return None
        if raw.get("isError") is True or not self._has_outputs:
            return None
        output = self._outputs.get(call.params.get("name"))
        check = None if output is None else self._check_of(output, call)
        if check is None:
            return None
        problem = check(raw["structuredContent"]) if "structuredContent" in raw else "there is none"
        if problem is None:
            return None
        told = f"structured content against the output schema: {problem}"
        if self._tolerate(PeerFault.INVALID_OUTPUT, f"{call.subject}: {told}", call):
            return None
        return OutputMismatch(
            f"{call.subject}: {told}", RemoteProtocolError(PeerFault.INVALID_OUTPUT, told), raw
        )

    def _check_of(self, output: Output, call: Call) -> SchemaCheck | None:
        if output.check is None and not output.useless and self._validator is not None:
            from ..validation import UnusableSchemaError, compile_schema

            try:
                output.check = compile_schema(self._validator, output.schema)
            except UnusableSchemaError as error:
                output.useless = True
                detail = f"{call.subject}: its results are not checked, for its output schema: {error}"
                self._emit(DeviationTolerated(PeerFault.UNUSABLE_OUTPUT_SCHEMA, detail, call))
        return output.check


__all__ = ["Checking", "Output"]
