"""What every binding has to do, as data: a list of scenarios, and the server they talk to.

A scenario is a generator that says what to do next and is told what came of it::

    for scenario in SCENARIOS:
        reason = scenario.not_for(transport, era)
        if reason is None:
            adapter.play(scenario.script(scene))

An adapter performs the actions below with its binding, which takes it some sixty lines: it sends into the
generator what an action brought, or throws into it what the action raised. A scenario that fails raises
`ScenarioFailed`; one that comes to its end has passed. Nothing here knows a binding, or waits by itself.

The server is `scenario_app`, served over the transport in question; some scenarios need another peer, which
`Open.target` names: whoever runs them provides it (see `TARGETS`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from ..app import App
from ..context import Context
from ..errors import (
    CallFailure,
    CallTimeout,
    ConnectionEnded,
    NetworkFailure,
    NetworkProblem,
    SansmcpError,
)
from ..events import ListChanged, ListKind
from ..revisions import LATEST, Era
from ..session.era import Auto, Legacy, Mode, Pin, Verdict
from ..stdio import RestartPolicy, ShutdownLadder

Transport: TypeAlias = Literal["memory", "stdio", "http", "sse", "ws", "tcp", "unix"]
TRANSPORTS: Final[tuple[Transport, ...]] = ("memory", "stdio", "http", "sse", "ws", "tcp", "unix")

TARGETS: Final = {
    "server": "scenario_app, over the transport",
    "deaf": "it takes connections (a WebSocket's handshake too), and then reads nothing",
    "mute": "it takes connections and reads, and says nothing, not even that it saw the end",
    "stubborn": "scenario_app as a child that stays when its input ends, and when it is asked to terminate",
    "untrusted": "scenario_app over TLS, with a certificate that nobody trusts",
    "nowhere": "a host whose name has no address",
    "proxied": "scenario_app, through the proxy that the options name",
}
"""The peers that scenarios ask for."""


class ScenarioFailed(AssertionError):  # noqa: N818  (a scenario fails, not the library)
    """A binding did something else than the scenario says."""


# actions -----------------------------------------------------------------------------------------


@attrs.frozen
class Open:
    """Connect to the peer named `target`; what follows uses this client. Raises what connecting does."""

    target: str = "server"
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Shut:
    """Close the client. Brings how many seconds that took."""


@attrs.frozen
class Invoke:
    """Use a verb of the client. Brings its result, or raises."""

    verb: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Together:
    """Use verbs at the same time. Brings the list of results, an error in the place of one that raised."""

    actions: tuple[Invoke, ...]


@attrs.frozen
class Begin:
    """Use a verb in the background: in a task or thread of its own. Brings a handle."""

    action: Invoke


@attrs.frozen
class Join:
    """Wait for what was begun. Brings its result, or raises."""

    handle: Any


@attrs.frozen
class Cancel:
    """Cancel what was begun, as is usual with the binding, and wait until it has ended."""

    handle: Any


@attrs.frozen
class Watch:
    """Listen for changes, and leave it open. Brings a handle."""

    options: Mapping[str, Any]


@attrs.frozen
class NextChange:
    """Wait for the next change. Brings it."""

    handle: Any


@attrs.frozen
class Unwatch:
    """Listen no more."""

    handle: Any


@attrs.frozen
class Pause:
    """Let time pass, in seconds."""

    seconds: float


@attrs.frozen
class Restart:
    """End the server and start it again at the same place."""


Action: TypeAlias = (
    Open | Shut | Invoke | Together | Begin | Join | Cancel | Watch | NextChange | Unwatch | Pause | Restart
)
Script: TypeAlias = Generator[Action, Any, None]


@attrs.frozen
class Scene:
    """Where a scenario is played."""

    transport: Transport
    era: Era

    @property
    def mode(self) -> Mode:
        """What makes a client speak this era."""
        return Pin(LATEST) if self.era is Era.MODERN else Legacy()


_PIECE: Final = 0.05
"""Seconds."""


# the server --------------------------------------------------------------------------------------


def scenario_app(sleep: Callable[[float], Awaitable[object]]) -> App:
    """The server of the scenarios. `sleep` waits, in seconds, where its handlers run."""
    app = App("scenarios", "1.0", list_changed=True)
    seen: list[str] = []

    @app.tool()
    async def echo(text: str) -> str:
        return text

    @app.tool()
    async def wait(name: str, ctx: Context, seconds: float = 60.0) -> str:
        seen.append(f"begun {name}")
        ended = False
        try:
            # In pieces: a handler that runs in a thread is not interrupted, and has to look.
            while seconds > 0 and not ctx.cancelled:
                await sleep(min(seconds, _PIECE))
                seconds -= _PIECE
            ended = not ctx.cancelled
        finally:
            seen.append(f"{'ended' if ended else 'cancelled'} {name}")
        return name

    @app.tool(name="seen")
    async def what_was_seen() -> str:
        return ", ".join(seen)

    @app.tool()
    async def steps(count: int, ctx: Context) -> str:
        for n in range(count):
            ctx.progress(n + 1, count, f"step {n + 1}")
        return "done"

    @app.tool()
    async def ask(ctx: Context) -> str:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        answer = await ctx.elicit("Who are you?", schema)
        return f"hello {(answer.content or {}).get('name')}"

    @app.tool()
    async def change() -> str:
        app.notify_changed(ListKind.TOOLS)
        return "changed"

    @app.tool()
    async def die() -> str:
        raise SystemExit(3)

    return app


# the scenarios -----------------------------------------------------------------------------------

_STREAMS: Final = ("stdio", "ws", "tcp", "unix")
_NETWORK: Final = ("http", "ws", "tcp")
_OLD: Final = "HTTP+SSE is a transport of 2024-11-05: there is no modern era on it"
_NO_CHILD: Final = "there is no child process"


@attrs.frozen
class Scenario:
    """One thing that a binding has to do."""

    name: str
    script: Callable[[Scene], Script]
    only: tuple[str, ...] = TRANSPORTS
    """The transports it is about."""
    why_only: str = ""
    """Why not the others."""
    modern_only: str = ""
    """Why not in the legacy era, if so."""

    def not_for(self, transport: Transport, era: Era) -> str | None:
        """Why there is nothing to play; None if there is."""
        if transport == "sse" and era is Era.MODERN:
            return _OLD
        if transport not in self.only:
            return self.why_only
        if era is Era.LEGACY and self.modern_only:
            return self.modern_only
        return None


def _expect(condition: object, what: str) -> None:
    if not condition:
        raise ScenarioFailed(what)


def _text(result: Any) -> str:
    text = result.content[0].text
    assert isinstance(text, str)
    return text


def _echo(text: str = "hi") -> Script:
    result = yield Invoke("call_tool", ("echo", {"text": text}))
    _expect(_text(result) == text, f"echo: {_text(result)!r} instead of {text!r}")


def _until_seen(word: str) -> Script:
    """Ask the server until it has seen something."""
    for _ in range(200):
        seen = _text((yield Invoke("call_tool", ("seen",))))
        if word in seen.split(", "):
            return
        yield Pause(0.02)
    raise ScenarioFailed(f"the server never saw: {word}")


def _connect(scene: Scene) -> Script:
    modes: tuple[Mode, ...] = (scene.mode,)
    if scene.era is Era.MODERN:  # which is what is found where both eras are spoken
        modes += (Auto(),)
    for mode in modes:
        yield Open(options={"mode": mode})
        yield from _echo()
        tools = yield Invoke("list_tools")
        _expect(any(tool.name == "echo" for tool in tools.tools), "echo is not listed")
        yield Shut()


def _many(scene: Scene) -> Script:
    yield Open(options={"mode": scene.mode})
    calls = tuple(Invoke("call_tool", ("echo", {"text": str(n)})) for n in range(1000))
    results = yield Together(calls)
    wrong = [n for n, r in enumerate(results) if isinstance(r, BaseException) or _text(r) != str(n)]
    _expect(not wrong, f"{len(wrong)} of 1000 calls went wrong: {[results[n] for n in wrong[:3]]!r}")
    yield Shut()


def _cancelled(scene: Scene) -> Script:
    yield Open(options={"mode": scene.mode})
    handle = yield Begin(Invoke("call_tool", ("wait", {"name": "a"})))
    yield from _until_seen("begun a")
    yield Cancel(handle)
    yield from _until_seen("cancelled a")
    yield from _echo()
    yield Shut()


def _timed_out(scene: Scene) -> Script:
    yield Open(options={"mode": scene.mode})
    yield from _echo()  # a pinned client does not wait for a child process to start
    try:
        yield Invoke("call_tool", ("wait", {"name": "b"}), {"timeout": 0.2})
    except CallTimeout as error:
        _expect(error.reason == "timeout", f"the reason is {error.reason}")
    else:
        raise ScenarioFailed("no timeout")
    yield from _until_seen("cancelled b")
    yield from _echo()
    yield Shut()


def _progress(scene: Scene) -> Script:
    reports: list[Any] = []
    yield Open(options={"mode": scene.mode})
    options = {"on_progress": lambda event: reports.append((event.progress, event.total))}
    yield Invoke("call_tool", ("steps", {"count": 3}), options)
    _expect(reports == [(1, 3), (2, 3), (3, 3)], f"reported: {reports}")
    yield Shut()


def _elicitation(scene: Scene) -> Script:
    asked: list[str] = []

    def on_elicit(params: Any) -> Mapping[str, Any]:
        asked.append(params.message)
        return {"action": "accept", "content": {"name": "Ada"}}

    yield Open(options={"mode": scene.mode, "on_elicit": on_elicit})
    result = yield Invoke("call_tool", ("ask",))
    _expect(_text(result) == "hello Ada" and asked == ["Who are you?"], f"{_text(result)}, asked {asked}")
    yield Shut()


def _subscription(scene: Scene) -> Script:
    yield Open(options={"mode": scene.mode})
    handle = yield Watch({"tools": True})
    for _ in range(2):
        yield Invoke("call_tool", ("change",))
        change = yield NextChange(handle)
        _expect(
            isinstance(change, ListChanged) and change.kind is ListKind.TOOLS, f"not a change: {change!r}"
        )
    yield Unwatch(handle)
    yield from _echo()
    yield Shut()


def _unasked(scene: Scene) -> dict[str, Any]:
    """Options to connect without a question: what is remembered of the server spares it."""
    ladder = {"ladder": _QUICK} if scene.transport == "stdio" else {}
    return {"prior": Verdict(Era.MODERN, LATEST), **ladder}


def _deaf(scene: Scene) -> Script:
    yield Open("deaf", _unasked(scene))
    large = Invoke("call_tool", ("echo", {"text": "x" * 100_000}), {"timeout": 0.5})
    results = yield Together((large,) * 100)
    odd = [r for r in results if not isinstance(r, CallFailure)]
    _expect(not odd, f"{len(odd)} calls to a peer that does not read did not fail")
    taken = yield Shut()
    _expect(taken < 10, f"closing took {taken:.1f} s")


def _slow_close(scene: Scene) -> Script:
    yield Open("mute", _unasked(scene))
    taken = yield Shut()
    _expect(taken < 10, f"closing took {taken:.1f} s")


def _child_dies(scene: Scene) -> Script:
    yield Open(options={"mode": scene.mode, "restart": RestartPolicy(limit=0)})
    try:
        yield Invoke("call_tool", ("die",))
    except ConnectionEnded as error:
        _expect(error.returncode == 3, f"the exit code is {error.returncode}")
    else:
        raise ScenarioFailed("the call did not fail")
    yield Shut()


def _stubborn(scene: Scene) -> Script:
    yield Open("stubborn", {"mode": scene.mode, "ladder": _QUICK})
    yield from _echo()
    taken = yield Shut()
    _expect(taken < 10, f"closing took {taken:.1f} s")


def _restarted(scene: Scene) -> Script:
    options: dict[str, Any] = {"mode": scene.mode}
    if scene.transport in _STREAMS:
        options["restart"] = RestartPolicy(delay=0.3, limit=20, legacy=True)
    yield Open(options=options)
    yield from _echo()
    if scene.transport == "stdio":
        try:
            yield Invoke("call_tool", ("die",))
        except ConnectionEnded:
            pass
    else:
        yield Restart()
    for _ in range(40):
        try:
            yield from _echo("again")
        except SansmcpError:  # what was on its way is lost; the next one is not
            yield Pause(0.1)
        else:
            break
    else:
        raise ScenarioFailed("no call came through after the restart")
    yield Shut()


def _fails_with(target: str, problem: NetworkProblem) -> Callable[[Scene], Script]:
    def script(scene: Scene) -> Script:
        options: dict[str, Any] = {"proxy": False} if scene.transport in ("http", "sse") else {}
        try:
            yield Open(target, {"mode": scene.mode, **options})
            yield Invoke("list_tools")  # where nothing was asked to connect
        except NetworkFailure as error:
            _expect(error.problem is problem, f"the problem is {error.problem.name}: {error}")
        else:
            raise ScenarioFailed("there is a connection")

    return script


def _proxied(scene: Scene) -> Script:
    yield Open("proxied", {"mode": scene.mode})
    yield from _echo()
    yield Shut()


def _closed_elsewhere(scene: Scene) -> Script:
    yield Open(options={"mode": scene.mode})
    handle = yield Begin(Invoke("call_tool", ("wait", {"name": "c"})))
    yield from _until_seen("begun c")
    yield Shut()
    try:
        yield Join(handle)
    except SansmcpError:
        return
    raise ScenarioFailed("a call survived its connection")


_QUICK: Final = ShutdownLadder(after_close=0.3, after_terminate=0.3)

_DEAF_LEGACY: Final = "a legacy server is greeted first: one that does not read is never connected"
_NO_PEER: Final = "in memory both ends are this library; HTTP+SSE has a greeting first, as all that is legacy"

SCENARIOS: Final = (
    Scenario("connect in each era and mode", _connect),
    Scenario("1,000 concurrent calls", _many),
    Scenario("cancel", _cancelled),
    Scenario("timeout", _timed_out),
    Scenario("progress", _progress),
    Scenario("elicitation", _elicitation),
    Scenario("subscription", _subscription),
    Scenario(
        "back-pressure with a peer that does not read",
        _deaf,
        only=("stdio", "http", "ws", "tcp", "unix"),
        why_only=_NO_PEER,
        modern_only=_DEAF_LEGACY,
    ),
    Scenario(
        "slow close",
        _slow_close,
        only=("stdio", "http", "ws", "tcp", "unix"),
        why_only=_NO_PEER,
        modern_only="a legacy server is greeted first: one that says nothing is never connected",
    ),
    Scenario("child that dies", _child_dies, only=("stdio",), why_only=_NO_CHILD),
    Scenario("child that ignores the end of its input", _stubborn, only=("stdio",), why_only=_NO_CHILD),
    Scenario(
        "server restart",
        _restarted,
        only=("stdio", "http", "ws", "tcp", "unix"),
        why_only="a server in memory ends with its client, and a lost HTTP+SSE stream with its session",
    ),
    Scenario(
        "TLS failure",
        _fails_with("untrusted", NetworkProblem.TLS),
        only=_NETWORK,
        why_only="there is no TLS on it, or it is that of HTTP",
    ),
    Scenario(
        "DNS failure",
        _fails_with("nowhere", NetworkProblem.NAME),
        only=_NETWORK,
        why_only="there is no name to look up, or it is as for HTTP",
    ),
    Scenario(
        "proxy",
        _proxied,
        only=("http",),
        why_only="proxies are used for HTTP (HTTP+SSE as well, by the same code), and not for the others",
    ),
    Scenario("close from elsewhere", _closed_elsewhere),
)
"""All of them."""
