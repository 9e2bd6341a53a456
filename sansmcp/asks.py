"""What it is to ask a client: the base of all questions, and what a handler does with them.

The questions themselves are in `sansmcp.questions`, which only who asks one has to load.

Specification: 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar, cast

import attrs

from .errors import CapabilityMissing, LocalProtocolError, SansmcpError
from .records import frozen
from .revisions import Revision
from .session.gates import lacking, merged
from .wire.jsoncodec import JsonValue

if TYPE_CHECKING:
    from .questions import ElicitUrl

A = TypeVar("A")


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
