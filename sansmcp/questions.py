"""What a server may ask its client while it works on a request: values that know how they are asked.

A question is the same in both eras. To a legacy client it goes as a request of the server's, to a
modern one inside an `input_required` result: see `sansmcp.dialogue`.

Specification: 2026-07-28, client/elicitation, client/sampling, client/roots, basic/patterns/mrtr.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, cast

import attrs

from .errors import CapabilityMissing, LocalProtocolError, SansmcpError
from .forms import check_form
from .records import frozen
from .revisions import LATEST, Revision
from .session.gates import lacking, merged
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
)
from .types.tools import Tool
from .wire.jsoncodec import JsonValue

A = TypeVar("A")

_MODES_SINCE: Final = Revision.V2025_11_25
"""Before it, elicitation was by form only, and sampling had neither tools nor a say in its context."""

Message: TypeAlias = "SamplingMessage | Mapping[str, Any] | str"
"""One message of a conversation; text is said by the user."""


@frozen(kw_only=True)
class Question(ABC, Generic[A]):
    """One thing to ask the client; `A` is the class of its answer.

    `key` names it within the request. Without one it is named by its kind and number in the order of
    asking, so a handler that asks in the same order each time need not name anything. `timeout` is how
    long (seconds) a legacy client may take; None for what its engine grants every request.
    """

    method: ClassVar[str]
    answer: ClassVar[type[Any]]
    kind: ClassVar[str]
    """What it is called in a key that is made for it."""
    since: ClassVar[Revision] = Revision.V2024_11_05
    """The first revision in which it can be asked."""

    key: str | None = None
    timeout: float | None = None

    def needs(self, revision: Revision) -> dict[str, Any]:
        """What the client must have declared, as a capabilities object."""
        return self.least()

    def first(self) -> Revision:
        """The first revision in which this one can be asked, with all that it says."""
        return self.since

    @classmethod
    @abstractmethod
    def least(cls) -> dict[str, Any]:
        """What the client must have declared for the plainest question of this kind."""

    @abstractmethod
    def params(self, revision: Revision) -> dict[str, Any]:
        """The params as `revision` has them; what it lacks is left out.

        Raises LocalProtocolError for what cannot be said in it.
        """

    def problems(self, answer: A) -> list[str]:
        """What is wrong with an answer that is of its class, one line each; none quotes it."""
        return []


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
        messages = [self.messages] if isinstance(self.messages, str) else self.messages
        asked = CreateMessageRequestParams(
            messages=[_message(m) for m in messages],
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


@frozen(eq=False)
class Ask(Generic[A]):
    """Questions of a handler, to be answered together: ``await`` it, or ``yield`` it in a generator.

    It does nothing before that. Its value is the answer, or the answers as a tuple.
    """

    questions: tuple[Question[Any], ...]
    single: bool
    """Whether its value is the one answer, and no tuple."""
    _wait: Waiter | None = attrs.field(default=None, repr=False)

    def __await__(self) -> Generator[Any, Any, A]:
        if self._wait is None:
            # Nobody here can wait: whoever drives the coroutine takes it for a generator's question.
            return cast(A, (yield self))
        return cast(A, (yield from self._wait(self).__await__()))


Waiter: TypeAlias = Callable[[Ask[Any]], Awaitable[Any]]
"""Lets a coroutine wait for the value of an `Ask`."""


@frozen
class NeedsInput:
    """Returned by a handler that wants answers first, and then to be called again.

    `requests` are questions by their keys; `state` is a JSON value of the application, which the
    second call finds in `Context.state`, and the answers in `Context.answers`. A modern client carries
    the state in between: it can read it, but change nothing.

    Raises LocalProtocolError when there is neither.
    """

    requests: Mapping[str, Question[Any]] = attrs.field(factory=dict)
    state: JsonValue = attrs.field(default=None, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.requests and self.state is None:
            raise LocalProtocolError("NeedsInput: it needs a question or a state, and has neither")


class PagesFirst(SansmcpError):  # noqa: N818  (nothing went wrong)
    """Raised by a handler whose user has to go to these pages before its request can be carried out.

    The client is told so, and makes the request again afterwards: the handler itself has to know what
    was done there. A client of 2025-11-25 gets error -32042 for it, a modern one the questions.

    Specification: 2025-11-25, client/elicitation (URL elicitation required); 2026-07-28,
    client/elicitation (URL mode).
    """

    def __init__(self, *pages: ElicitUrl) -> None:
        if not pages:
            raise LocalProtocolError("PagesFirst: it needs a page")
        super().__init__(f"{len(pages)} pages have to be visited first")
        self.pages: Final = pages


def as_ask(yielded: object) -> Ask[Any]:
    """What a handler yielded as something to ask.

    Raises LocalProtocolError for anything else.
    """
    match yielded:
        case Ask():
            return yielded
        case Question():
            return Ask((yielded,), True)
        case list() | tuple():
            parts = [as_ask(part) for part in yielded]
            if all(part.single for part in parts):
                return Ask(tuple(part.questions[0] for part in parts), False)
    raise LocalProtocolError(
        f"a handler may yield a question or a list of questions, not {type(yielded).__name__}"
    )


AnyQuestion: TypeAlias = "Question[Any] | type[Question[Any]]"
"""A question, or a class of them, which stands for its plainest one."""


def askable(question: AnyQuestion, revision: Revision, declared: Mapping[str, Any]) -> dict[str, Any]:
    """What the client would have to declare besides for `question`; empty when it can be asked."""
    if isinstance(question, type):
        needs, first = question.least(), question.since
    else:
        needs, first = question.needs(revision), question.first()
    return needs if revision < first else lacking(needs, declared)


def check_askable(questions: Iterable[AnyQuestion], revision: Revision, declared: Mapping[str, Any]) -> None:
    """Raise CapabilityMissing, with all that is missing, unless all `questions` can be asked."""
    needed: dict[str, Any] = {}
    for question in questions:
        needed = merged(needed, askable(question, revision, declared))
    if needed:
        raise CapabilityMissing(needed)


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
