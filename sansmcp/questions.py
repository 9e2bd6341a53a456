"""What a server may ask its client while it works on a request: values that know how they are asked.

A question is the same in both eras. To a legacy client it goes as a request of the server's, to a
modern one inside an `input_required` result: see `sansmcp.dialogue`.

Specification: 2026-07-28, client/elicitation, client/sampling, client/roots, basic/patterns/mrtr.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import attrs

from .asks import Question
from .errors import LocalProtocolError
from .forms import check_form, is_uri
from .records import frozen
from .revisions import LATEST, Revision
from .types.content import TextContent
from .types.convert import StructureError, project, structure, unstructure
from .types.elicitation import (
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    RequestedSchema,
)
from .types.roots import ListRootsResult
from .types.sampling import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ModelPreferences,
    SamplingMessage,
    ToolChoice,
    imbalance,
)
from .types.tools import Tool
from .wire.jsoncodec import JsonValue

A = TypeVar("A")

_MODES_SINCE: Final = Revision.V2025_11_25
"""Before it, elicitation was by form only, and sampling had neither tools nor a say in its context."""

Message: TypeAlias = "SamplingMessage | Mapping[str, Any] | str"
"""One message of a conversation; text is said by the user."""


@frozen
class Elicit(Question[ElicitResult]):
    """Ask the user to fill in a form.

    `requested_schema` is a flat JSON Schema: an object whose properties are strings, numbers, booleans
    and choices. Never ask for secrets by form: that is what `ElicitUrl` is for.

    Specification: 2026-07-28, client/elicitation (form mode).
    """

    method = "elicitation/create"
    answer = ElicitResult
    kind = "elicit"
    since = Revision.V2025_06_18

    message: str
    requested_schema: RequestedSchema | Mapping[str, Any] = attrs.field(repr=False)

    @classmethod
    def least(cls) -> dict[str, Any]:
        """As `Question.least`."""
        return {"elicitation": {"form": {}}}

    def params(self, revision: Revision) -> dict[str, Any]:
        """As `Question.params`."""
        asked = {"mode": "form", "message": self.message, "requestedSchema": self.schema}
        return project(asked, ElicitRequestFormParams, revision)

    def problems(self, answer: ElicitResult) -> list[str]:
        """As `Question.problems`: whether an accepted form is filled in as its schema says."""
        if answer.action != "accept":
            return []
        return check_form(self.schema, answer.content)

    @property
    def schema(self) -> dict[str, Any]:
        """The schema as JSON."""
        schema = self.requested_schema
        return dict(schema) if isinstance(schema, Mapping) else unstructure(schema, LATEST)


@frozen
class ElicitUrl(Question[ElicitResult]):
    """Ask the user to go to a web page. That they accept says only that they will.

    `elicitation_id` names it in the notification that it is complete, which only 2025-11-25 has;
    without one it gets one.

    Specification: 2026-07-28, client/elicitation (URL mode).
    """

    method = "elicitation/create"
    answer = ElicitResult
    kind = "url"
    since = _MODES_SINCE

    message: str
    url: str = attrs.field(repr=False)
    elicitation_id: str | None = None

    @classmethod
    def least(cls) -> dict[str, Any]:
        """As `Question.least`."""
        return {"elicitation": {"url": {}}}

    def params(self, revision: Revision) -> dict[str, Any]:
        """As `Question.params`."""
        if not is_uri(self.url):
            raise LocalProtocolError(f"{self!r}: its url is no whole URL")
        asked = ElicitRequestURLParams(self.message, self.url, elicitation_id=self.elicitation_id)
        return unstructure(asked, revision)


@frozen
class Sample(Question[CreateMessageResult]):
    """Ask the client's model to go on with a conversation. Deprecated in 2026-07-28.

    The fields are those of `CreateMessageRequestParams`; a message that is text is said by the user.

    Specification: 2026-07-28, client/sampling.
    """

    method = "sampling/createMessage"
    answer = CreateMessageResult
    kind = "sample"

    messages: Sequence[Message] | str = attrs.field(repr=False)
    max_tokens: int = attrs.field(kw_only=True)
    system_prompt: str | None = attrs.field(default=None, kw_only=True, repr=False)
    temperature: float | None = attrs.field(default=None, kw_only=True)
    stop_sequences: Sequence[str] | None = attrs.field(default=None, kw_only=True)
    model_preferences: ModelPreferences | None = attrs.field(default=None, kw_only=True)
    include_context: Literal["none", "thisServer", "allServers"] | None = attrs.field(
        default=None, kw_only=True
    )
    tools: Sequence[Tool] | None = attrs.field(default=None, kw_only=True)
    tool_choice: ToolChoice | None = attrs.field(default=None, kw_only=True)
    metadata: Mapping[str, JsonValue] | None = attrs.field(default=None, kw_only=True, repr=False)

    @classmethod
    def least(cls) -> dict[str, Any]:
        """As `Question.least`."""
        return {"sampling": {}}

    def needs(self, revision: Revision) -> dict[str, Any]:
        """As `Question.needs`."""
        more: dict[str, Any] = {}
        if self.tools is not None or self.tool_choice is not None:
            more["tools"] = {}
        if self.include_context in ("thisServer", "allServers") and revision >= _MODES_SINCE:
            more["context"] = {}
        return {"sampling": more}

    def first(self) -> Revision:
        """As `Question.first`: a model that has to use tools is of no use without them."""
        return self.since if self.tools is None and self.tool_choice is None else _MODES_SINCE

    def params(self, revision: Revision) -> dict[str, Any]:
        """As `Question.params`."""
        given = [self.messages] if isinstance(self.messages, str) else self.messages
        messages = [_message(m) for m in given]
        if (problem := imbalance(messages)) is not None:
            raise LocalProtocolError(f"messages to sample from: {problem}")
        asked = CreateMessageRequestParams(
            messages=messages,
            max_tokens=self.max_tokens,
            model_preferences=self.model_preferences,
            system_prompt=self.system_prompt,
            include_context=self.include_context,
            temperature=self.temperature,
            stop_sequences=_list(self.stop_sequences),
            metadata=None if self.metadata is None else dict(self.metadata),
            tools=_list(self.tools),
            tool_choice=self.tool_choice,
        )
        return unstructure(asked, revision)


@frozen
class ListRoots(Question[ListRootsResult]):
    """Ask for the places the client works on. Deprecated in 2026-07-28.

    Specification: 2026-07-28, client/roots.
    """

    method = "roots/list"
    answer = ListRootsResult
    kind = "roots"

    @classmethod
    def least(cls) -> dict[str, Any]:
        """As `Question.least`."""
        return {"roots": {}}

    def params(self, revision: Revision) -> dict[str, Any]:
        """As `Question.params`."""
        return {}


_warned: set[str] = set()


def warn_deprecated(kind: type[Question[Any]], *, stacklevel: int) -> None:
    """Warn, once for each kind of question, that the protocol is about to lose it."""
    if kind.method not in _warned:
        _warned.add(kind.method)
        told = f"{kind.method} is deprecated since revision 2026-07-28 of the protocol"
        warnings.warn(told, DeprecationWarning, stacklevel=stacklevel)


def _message(message: Message) -> SamplingMessage:
    if isinstance(message, str):
        return SamplingMessage(role="user", content=TextContent(text=message))
    if isinstance(message, SamplingMessage):
        return message
    try:
        return structure(dict(message), SamplingMessage, LATEST)
    except StructureError as error:
        raise LocalProtocolError(f"a message to sample from is none: {error}") from error


def _list(values: Sequence[A] | None) -> list[A] | None:
    return None if values is None else list(values)
