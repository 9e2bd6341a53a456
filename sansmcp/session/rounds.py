"""What a server wants to know before it goes on: questions, rounds of them, and valid answers.

In both eras a server asks for the same three things: what the user says (``elicitation/create``), what
a model says (``sampling/createMessage``), where the client works (``roots/list``). A `Round` is what it
asks for at once. What the engine does with rounds is in `asking.py`; the eras' wire forms are in
`modern.py` and `legacy.py`.

Specification: 2026-07-28, basic/patterns/mrtr, client/elicitation, client/sampling, client/roots;
2025-11-25, client/elicitation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from ..errors import ErrorCode, InvalidAnswer, McpError, PeerFault, RemoteProtocolError
from ..revisions import Revision
from ..states import ROUND, Machine, RoundInput, RoundState
from ..types.base import WireObject
from ..types.convert import StructureError, structure
from ..types.lifecycle import ClientCapabilities
from ..types.methods import Method, spec_for
from .typing import to_wire

if TYPE_CHECKING:
    from ..types.elicitation import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult
    from ..types.roots import ListRootsRequestParams, ListRootsResult
    from ..types.sampling import CreateMessageRequestParams, CreateMessageResult
    from .calls import Call, IncomingRequest

QUESTIONS: Final = frozenset({Method.ELICIT, Method.CREATE_MESSAGE, Method.LIST_ROOTS})
"""Methods by which a server asks its client."""

QuestionParams: TypeAlias = (
    "ElicitRequestFormParams | ElicitRequestURLParams | CreateMessageRequestParams | ListRootsRequestParams"
)
Answer: TypeAlias = "ElicitResult | CreateMessageResult | ListRootsResult | Mapping[str, Any]"
"""The result class of the question's method, or the same as JSON."""

_SHOWN: Final = 64
_BACK_OFF: Final = (0.05, 0.1, 0.2, 0.25)


def back_off(times: int) -> float:
    """Seconds until a call goes again, when nothing is asked for `times` times in a row."""
    return _BACK_OFF[min(times, len(_BACK_OFF)) - 1]


@attrs.define(eq=False, repr=False)
class IncomingQuestion:
    """One thing that a server asks for."""

    method: str
    """``elicitation/create``, ``sampling/createMessage`` or ``roots/list``."""
    params: QuestionParams
    """As the class that the method prescribes; its class tells a form from a page to visit."""
    raw: dict[str, Any]
    """The params exactly as the server sent them."""

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema of the form to fill in, exactly as the server sent it; None for anything else."""
        schema = self.raw.get("requestedSchema")
        return schema if self.method == Method.ELICIT and isinstance(schema, dict) else None

    def __repr__(self) -> str:
        return f"<IncomingQuestion {self.method}>"


@attrs.define(eq=False, repr=False)
class Round:
    """What a server asks for at once, and the answers so far. The handle to answer it by."""

    call: Call | None
    """The call that goes on with the answers; None where a legacy server does not say for which it asks."""
    questions: Mapping[str, IncomingQuestion]
    """By the keys to answer under."""
    number: int
    """Counts the rounds of one call from 1."""
    revision: Revision
    request: IncomingRequest | None = None
    """Legacy: the server's request, which is what is answered."""
    request_state: str | None = None
    """Modern: what goes back to the server unchanged. None: it sent none."""
    refusal: McpError | None = None
    """Legacy: the error by which the server said that the user has to visit pages first."""
    waits: int = 0
    """How many rounds in a row, with this one, asked for nothing."""
    all_end_at: float | None = None
    """When the time for all rounds of the call is over."""
    answers: dict[str, dict[str, Any]] = attrs.field(factory=dict, init=False)
    ends_at: float | None = None
    ends_by: str = "round_timeout"
    """Name of the deadline at `ends_at`."""
    machine: Machine[RoundState, RoundInput] = attrs.field(factory=lambda: Machine(ROUND), init=False)

    @property
    def state(self) -> RoundState:
        """Where it stands: see the table `states.ROUND`."""
        return self.machine.state

    @property
    def open(self) -> bool:
        """Whether answers are awaited."""
        return self.machine.state in (RoundState.OPEN, RoundState.WAITING)

    @property
    def subject(self) -> str:
        """What it is about, for people."""
        if self.request is not None:
            return f"{self.request.method} {self.request.id!r}"
        assert self.call is not None
        return f"{self.call.subject}, round {self.number}"

    def __repr__(self) -> str:
        asked = f"{len(self.answers)} of {len(self.questions)} answered"
        return f"<Round {self.number} of {self.call!r}: {asked}, {self.machine.state.name.lower()}>"

    def names(self) -> str:
        """The keys that answers are missing for, for people."""
        missing = [repr(key)[:_SHOWN] for key in self.questions if key not in self.answers]
        return ", ".join(missing) or "nothing"


# questions ---------------------------------------------------------------------------------------


def read_question(method: str, raw: Any, own: ClientCapabilities, revision: Revision) -> IncomingQuestion:
    """The question that `method` and `raw` (its params) are.

    Raises RemoteProtocolError for another method, for params that are not the method's, and for what
    `own`, the client's capabilities, do not promise to answer. Its hint is the code to refuse with.
    """
    spec = spec_for(method)
    if spec is None or method not in QUESTIONS:
        raise RemoteProtocolError(
            PeerFault.INVALID_QUESTION,
            f"{method[:128]} is nothing a client can be asked",
            hint=ErrorCode.METHOD_NOT_FOUND,
        )
    if getattr(own, spec.client_capability or "", None) is None:
        raise _undeclared(f"{method}, which the client did not declare", ErrorCode.METHOD_NOT_FOUND)
    params = {} if raw is None else raw
    try:
        typed = structure(params, spec.params, revision)
    except StructureError as error:
        raise _invalid_question(f"{method}: {error}") from error
    if method == Method.ELICIT:
        can = own.elicitation
        by_url = params.get("mode") == "url"
        # Without members, the capability stands for forms alone.
        if can is not None and (can.url is None if by_url else can.form is None and can.url is not None):
            mode = "url" if by_url else "form"
            raise _undeclared(f"{method} with mode {mode}, which the client did not declare")
        if by_url:
            from ..forms import is_uri

            if not is_uri(typed.url):
                raise _invalid_question(f"{method}: its url is no whole URL")
    elif method == Method.CREATE_MESSAGE:
        with_tools = params.get("tools") is not None or params.get("toolChoice") is not None
        if with_tools and own.sampling is not None and own.sampling.tools is None:
            raise _undeclared(f"{method} with tools, which the client did not declare")
        from ..types.sampling import imbalance  # loaded by now

        if (problem := imbalance(typed.messages)) is not None:
            raise _invalid_question(f"{method}: {problem}")
    return IncomingQuestion(method, typed, params)


def _invalid_question(text: str) -> RemoteProtocolError:
    return RemoteProtocolError(PeerFault.INVALID_QUESTION, text, hint=ErrorCode.INVALID_PARAMS)


def _undeclared(text: str, hint: ErrorCode = ErrorCode.INVALID_PARAMS) -> RemoteProtocolError:
    return RemoteProtocolError(PeerFault.UNDECLARED_INPUT, f"the server asks for {text}", hint=hint)


# answers -----------------------------------------------------------------------------------------


def check_answer(
    key: str, question: IncomingQuestion, answer: Answer, revision: Revision, *, fill: bool = False
) -> dict[str, Any]:
    """`answer` as the JSON object that goes to the server.

    `fill` adds the defaults of a form to the content of an accepted one. Raises InvalidAnswer when it is
    not what the question asks for.
    """
    if not isinstance(answer, (Mapping, WireObject)):
        raise _invalid(key, question, [f"a {type(answer).__name__} is no result of {question.method}"])
    raw = to_wire(answer, revision)
    spec = spec_for(question.method)
    assert spec is not None
    problems: list[str] = []
    try:
        structure(raw, spec.result, revision, tolerances=problems)
    except StructureError as error:
        problems = [str(error)]
    else:
        if question.method == Method.CREATE_MESSAGE:
            problems = []  # what a model says may be of a kind that is not known here
    if not problems:
        match question.method:
            case Method.ELICIT:
                raw, problems = _check_elicited(question, raw, fill)
            case Method.LIST_ROOTS:
                uris = [root["uri"] for root in raw["roots"]]
                if not all(uri.startswith("file://") for uri in uris):
                    problems = ["the URI of a root begins with file://"]
    if problems:
        raise _invalid(key, question, problems)
    return raw


def _check_elicited(
    question: IncomingQuestion, raw: dict[str, Any], fill: bool
) -> tuple[dict[str, Any], list[str]]:
    from ..forms import apply_defaults, check_form

    content = raw.get("content")
    schema = question.schema
    if raw["action"] != "accept":
        return raw, ["content goes only with the action accept"] if content is not None else []
    if schema is None:
        return raw, ["content does not go with a page to visit"] if content is not None else []
    if fill:
        content = apply_defaults(schema, content or {})
        raw = {**raw, "content": content}
    if content is None:
        return raw, ["an accepted form has content"]
    return raw, check_form(schema, content)


def _invalid(key: str, question: IncomingQuestion, problems: list[str]) -> InvalidAnswer:
    told = "; ".join(problems)
    return InvalidAnswer(f"the answer {key!r} to {question.method}: {told}", key=key, problems=problems)
