"""The one door through which extensions come in, on both sides.

An extension has an id and settings, which both sides declare; methods, which a client asks only of a
server that declares it, and a server serves only to a client that declared it on that very request;
types of results; and members of the filter by which a client says what it listens to.

Specification: 2026-07-28, basic/index (result type), basic/versioning (extensions); SEP-2133.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias

import attrs

from ..errors import LocalProtocolError, McpError, PeerFault, SansmcpError
from ..events import Event, Harmless
from ..records import frozen
from ..revisions import LATEST
from ..session.modern import missing_capability
from ..types.convert import structure
from ..types.methods import Direction, spec_for
from ..wire.jsoncodec import JsonValue

if TYPE_CHECKING:
    from ..app import App
    from ..context import Host
    from ..invocation import Invocation
    from ..session.calls import Call, IncomingRequest
    from ..session.rounds import IncomingQuestion, Round

Handler: TypeAlias = Callable[..., Any]
ResultParser: TypeAlias = Callable[[dict[str, Any]], Any]
"""Makes an object of a raw result."""


@frozen(kw_only=True, eq=False)
class ExtensionMethod:
    """A request that an extension's clients send to its servers."""

    result: type[Any] | None = None
    """The class of its result; None: the JSON object itself."""
    handler: Handler | None = None
    """Server: called with the params as one mapping, and with ``ctx`` if it has such a parameter."""
    inline: bool = False
    """Whether the handler is called where the engine may be touched, rather than in a thread or a task.
    Then it must not wait, is always given ``ctx`` and ``now``, and returns the result."""

    def parse(self, raw: dict[str, Any]) -> Any:
        """The result as its class. Raises StructureError when it is none."""
        return raw if self.result is None else structure(raw, self.result, LATEST)


class ClientDoor(Protocol):
    """What a `ClientPart` can do with its engine. Only while the engine calls it."""

    @property
    def now(self) -> float:
        """The present time."""
        ...

    def ask(
        self,
        method: str,
        params: Mapping[str, JsonValue],
        *,
        like: Call,
        on_result: Callable[[dict[str, Any]], object],
        on_error: Callable[[SansmcpError], object],
    ) -> Call:
        """Send a request for the sake of the call `like`, with its `_meta` and its timeout.

        Exactly one of the two is called, unless the connection ends before.
        """
        ...

    def drop(self, request: Call) -> None:
        """Nobody waits for what was asked any more. Harmless when it has ended."""
        ...

    def put_aside(self, call: Call) -> None:
        """Nothing of `call` is on its way from now on; only its total timeout goes on."""
        ...

    def new_call(self, method: str, params: dict[str, Any], *, timeout: float | None) -> Call:
        """A call of the application's that is put aside from the start."""
        ...

    def succeed(self, call: Call, raw: dict[str, Any], parser: ResultParser | None = None) -> None:
        """End a call with a result; `parser` reads it, unless its method says how."""
        ...

    def fail(self, call: Call, error: SansmcpError) -> None:
        """End a call without one."""
        ...

    def violated(self, call: Call, fault: PeerFault, detail: str) -> None:
        """End a call whose server broke a rule."""
        ...

    def read_questions(self, raw: Mapping[str, Any]) -> dict[str, IncomingQuestion]:
        """What the server wants to know, by key, as in an `input_required` result.

        Raises RemoteProtocolError for what it may not ask.
        """
        ...

    def ask_application(
        self,
        call: Call,
        questions: dict[str, IncomingQuestion],
        on_answers: Callable[[Mapping[str, Any]], object],
    ) -> Round:
        """Let the application answer, as with any `InputRequired`; `on_answers` is given what it says."""
        ...

    def withdraw(self, round_: Round, reason: str) -> None:
        """The answers are no longer wanted. Harmless when they were given."""
        ...

    def emit(self, event: Event) -> None:
        """Tell the application something."""
        ...

    def ignore(self, reason: PeerFault | Harmless, detail: str) -> None:
        """Tell of a message that nothing is made of."""
        ...


class ClientPart:
    """What an extension does in one client engine. The engine calls it; see `ClientDoor`."""

    call_options: ClassVar[Mapping[str, Collection[Any]]] = {}
    """Options that the verbs of the engine take for it, and their values; `Call.options` has those that were
    given."""

    def take_result(self, call: Call, raw: dict[str, Any]) -> bool:
        """A result of a type of the extension came for `call`. False: it is the result of the call."""
        return False

    def take_notification(self, method: str, params: Mapping[str, Any]) -> None:
        """A notification of the extension came. The application is told of it as well."""

    def call_ended(self, call: Call, *, cancelled: bool) -> None:
        """A call has ended; `cancelled` says that this side wanted that."""

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return None

    def handle_timeout(self) -> None:
        """Let what has come due take effect. Harmless at any time."""

    def stats(self) -> dict[str, int]:
        """Sizes of all tables, by name."""
        return {}


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@attrs.define(kw_only=True, eq=False)
class Extension:
    """An extension of the protocol, for ``ClientEngine(extensions=…)`` and ``App(extensions=…)``.

    Make one of data, or derive from it to do more. Raises LocalProtocolError for an id that is not
    ``vendor/name``, and for methods that the protocol has itself.
    """

    id: str
    """As ``com.example/thing``."""
    settings: Mapping[str, JsonValue] = _NOTHING
    """What this side declares of it; empty: that it supports it."""
    methods: Mapping[str, ExtensionMethod] = _NOTHING
    """Requests of clients, by method."""
    result_types: Mapping[str, ResultParser] = _NOTHING
    """Types of results that a server may send to a client that declares the extension, and what reads
    them."""
    notifications: frozenset[str] = frozenset()
    """Notifications of servers, by method."""
    topics: frozenset[str] = frozenset()
    """Members that it adds to the filter of a subscription; each is a list of texts."""
    gated: bool = True
    """Whether only clients that declare it are served its methods."""

    def __attrs_post_init__(self) -> None:
        vendor, slash, name = self.id.partition("/")
        if not (vendor and slash and name):
            raise LocalProtocolError(f"an extension's id is vendor/name, not {self.id!r}")
        for method in self.methods:
            spec = spec_for(method)
            if spec is not None and spec.goes(Direction.CLIENT_TO_SERVER, LATEST):
                raise LocalProtocolError(f"{self.id}: {method} is a method of the protocol")

    # client --------------------------------------------------------------------------------------

    def client_part(self, door: ClientDoor) -> ClientPart | None:
        """What it does in a client's engine; None: nothing but what its fields say."""
        return None

    # server --------------------------------------------------------------------------------------

    def adopt(self, app: App) -> None:
        """`app` was made with it."""

    def begin(self, invocation: Invocation, *, now: float) -> None:
        """A handler of the app is about to be called. Raises McpError to refuse the request."""

    def grant(self, topic: str, names: Iterable[str], request: IncomingRequest) -> list[str]:
        """Which of the `names` under a topic the sender of a subscription is told of; it may be none."""
        return []

    def host_gone(self, host: Host) -> None:
        """What called handlers of the app does so no more: it ends those that are left."""


def declares(capabilities: Mapping[str, Any], extension: str) -> bool:
    """Whether `capabilities`, of either side, declare the extension."""
    known = capabilities.get("extensions")
    value = known.get(extension) if isinstance(known, Mapping) else None
    return value is not None and value is not False


def not_declared(extension: str) -> McpError:
    """The error for a request whose sender did not declare the extension that it needs."""
    error = missing_capability({"extensions": {extension: {}}})
    return McpError(error.code, f"the client did not declare the extension {extension}", error.data)


def with_extensions(
    declared: Mapping[str, Any] | None, extensions: Iterable[Extension]
) -> dict[str, Any] | None:
    """The map of a capabilities object; what is `declared` there already stays."""
    made = {extension.id: dict(extension.settings) for extension in extensions}
    return {**made, **declared} if declared else made or None


def check_distinct(extensions: Iterable[Extension]) -> None:
    """Raise LocalProtocolError for two extensions that claim the same thing."""
    for what in ("id", "methods", "result_types", "notifications", "topics"):
        seen: set[str] = set()
        for extension in extensions:
            value = getattr(extension, what)
            for name in [value] if what == "id" else value:
                if name in seen:
                    raise LocalProtocolError(f"two extensions claim {name!r}")
                seen.add(name)


__all__ = [
    "ClientDoor",
    "ClientPart",
    "Extension",
    "ExtensionMethod",
    "check_distinct",
    "declares",
    "not_declared",
    "with_extensions",
]
