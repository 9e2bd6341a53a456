"""What a flow waits for, one step at a time: the words between the flow and who drives it.

A flow is a generator of steps. Each step is answered with what came of it, and the flow goes on.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final, NoReturn, TypeAlias, TypeVar
from urllib.parse import urlencode

import attrs

from ..errors import AuthorizationFailed, AuthorizationProblem, HttpFailure
from ..http.exchange import JSON
from ..http.url import Url
from ..states import AuthorizationInput

FORM: Final = "application/x-www-form-urlencoded"

T = TypeVar("T")


@attrs.frozen(kw_only=True, repr=False)
class Fetch:
    """Make this request; the answer is a `Fetched`."""

    step: AuthorizationInput
    """What it is for: see the table `states.AUTHORIZATION`."""
    subject: str
    """The same for people."""
    method: str
    url: Url
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    guarded: bool = True
    """Whether a server named the address, and not the user of this library."""


@attrs.frozen(kw_only=True, repr=False)
class Fetched:
    """What came of a request: a response, or `error`."""

    status: int = 0
    content_type: str = ""
    """Type and subtype, in lower case."""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""
    error: HttpFailure | None = None

    @property
    def ok(self) -> bool:
        """Whether it is what was asked for."""
        return self.error is None and 200 <= self.status < 300

    @property
    def is_json(self) -> bool:
        """Whether it is said to be JSON."""
        return self.content_type == JSON or self.content_type.endswith("+json")


@attrs.frozen
class AskRedirect:
    """Find out where the browser is to arrive; the answer is the address."""

    preferred: str | None


@attrs.frozen(kw_only=True, repr=False)
class AskUser:
    """Have the user open `url`; the answer is a `Returned` that has this `state`."""

    url: str
    redirect_uri: str
    state: str
    issuer: str
    scopes: tuple[str, ...]


@attrs.frozen(repr=False)
class Returned:
    """What the browser brought back, by name; of one that is there twice, both."""

    parameters: Mapping[str, tuple[str, ...]]

    def one(self, name: str) -> str | None:
        """The value of `name`; None where there is none, or more than one."""
        values = self.parameters.get(name, ())
        return values[0] if len(values) == 1 else None


Step: TypeAlias = Fetch | AskRedirect | AskUser
Steps: TypeAlias = Generator[Step, Any, T]
"""A part of a flow that ends in a T, or raises `AuthorizationFailed`."""


def fail(
    problem: AuthorizationProblem,
    text: str,
    *,
    code: str = "",
    retryable: bool = False,
    retry_after: float | None = None,
) -> NoReturn:
    """End the flow: raises AuthorizationFailed."""
    raise AuthorizationFailed(text, problem, code=code, retryable=retryable, retry_after=retry_after)


def get(step: AuthorizationInput, subject: str, url: Url) -> Fetch:
    """A request for a JSON document."""
    headers = (("accept", JSON), ("accept-encoding", "identity"))
    return Fetch(step=step, subject=subject, method="GET", url=url, headers=headers)


def post_form(
    step: AuthorizationInput,
    subject: str,
    url: Url,
    parameters: Iterable[tuple[str, str]],
    headers: Iterable[tuple[str, str]] = (),
) -> Fetch:
    """A request with a form, whose answer is JSON."""
    body = urlencode(list(parameters)).encode()
    return _post(step, subject, url, body, FORM, headers)


def post_json(step: AuthorizationInput, subject: str, url: Url, value: Mapping[str, Any]) -> Fetch:
    """A request with a JSON object, whose answer is JSON."""
    return _post(step, subject, url, json.dumps(value).encode(), JSON, ())


def _post(
    step: AuthorizationInput,
    subject: str,
    url: Url,
    body: bytes,
    kind: str,
    headers: Iterable[tuple[str, str]],
) -> Fetch:
    own = (("accept", JSON), ("accept-encoding", "identity"), ("content-type", kind), *headers)
    return Fetch(step=step, subject=subject, method="POST", url=url, headers=own, body=body)
