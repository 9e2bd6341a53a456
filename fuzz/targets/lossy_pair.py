"""INVARIANT: whatever part of what our client and our server say to each other arrives, in pieces, late or
never, only LocalProtocolError leaves either of them, each call ends exactly once, nothing is left after the
end; and where all arrives in time, no side finds a fault with the other."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, Literal

from fuzz.steps import Steps
from sansmcp import (
    App,
    Auto,
    Call,
    ClientCapabilities,
    ClientEngine,
    Context,
    DeviationTolerated,
    Implementation,
    InputRequired,
    Legacy,
    Limits,
    LineClient,
    LineServer,
    ListKind,
    LocalProtocolError,
    MessageIgnored,
    PeerFault,
    Pin,
    RequestFailed,
    ResultReady,
    Revision,
    SubscriptionClosed,
    Write,
)
from sansmcp.inline import InlineHandlers
from sansmcp.ops import Close
from sansmcp.types import ElicitationCapability, RootsCapability

INFO = Implementation(name="fuzz", version="0")
LIMITS = Limits(max_pending_calls=16, max_remembered_ids=64, max_message=64 * 1024)
MODES: list[Auto | Legacy | Pin] = [
    Auto(),
    Legacy(),
    Pin(Revision.V2026_07_28),
    Pin(Revision.V2025_06_18),
    Pin(Revision.V2024_11_05),
]
FORM: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CONN = 1
Side = Literal["client", "server"]


def make_app() -> App:
    app = App("fuzz", logging=True, list_changed=True, subscribe=True, page_size=1, state_keys=[b"fuzz" * 8])

    @app.tool()
    def echo(text: str, ctx: Context) -> str:
        ctx.progress(1, 2)
        ctx.log("warning", "echoes")
        return text

    @app.tool()
    def asks(ctx: Context) -> Generator[Any, Any, str]:
        answer = yield ctx.elicit("n?", FORM)
        roots = yield ctx.list_roots()
        return f"{answer.action} {len(roots.roots)}"

    @app.tool()
    def changes(ctx: Context) -> str:
        ctx.notify_changed(ListKind.TOOLS)
        ctx.notify_updated("test://x")
        return "told"

    @app.resource("test://x")
    def read() -> bytes:
        return b"x" * 300

    return app


APP = make_app()


class World:
    """Both ends, what is on its way between them, and what came of the calls."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.now = 0.0
        mode = steps.choose(MODES)
        capabilities = ClientCapabilities(elicitation=ElicitationCapability(), roots=RootsCapability())
        engine = ClientEngine(INFO, now=0.0, mode=mode, limits=LIMITS, capabilities=capabilities)
        self.client = LineClient(engine, now=0.0)
        self.server = LineServer(APP.engine(now=0.0), now=0.0)
        self.handlers = InlineHandlers(APP, self.server.engine)
        self.under_way: dict[Side, bytearray] = {"client": bytearray(), "server": bytearray()}
        """What each has said and the other has not heard."""
        self.cut = False
        self.perfect = True
        """Whether nothing was lost, cancelled or late."""
        self.calls: list[Call] = []
        self.ended: set[Call] = set()
        self.server.accepted(CONN, 0.0)
        self.client.opened(CONN, 0.0)
        self.drain()

    def drain(self) -> None:
        moved = True
        while moved:
            moved = False
            for side, end in (("client", self.client), ("server", self.server)):
                while (op := end.next_op()) is not None:
                    moved = True
                    if isinstance(op, Write):
                        self.under_way[side] += op.data  # type: ignore[index]  # the two sides
                    else:
                        assert isinstance(op, Close)
                while (event := end.next_event()) is not None:
                    moved = True
                    self.look(event)
                    if side == "server":
                        self.handlers.handle(event, now=self.now)

    def look(self, event: Any) -> None:
        match event:
            case ResultReady() | RequestFailed() | SubscriptionClosed() if event.call.related is None:
                assert event.call not in self.ended, "a call ended twice"
                self.ended.add(event.call)
            case InputRequired():
                with contextlib.suppress(LocalProtocolError):
                    self.answer(event)
            case MessageIgnored(reason=PeerFault()) | DeviationTolerated():
                assert not self.perfect, event
            case _:
                pass

    def answer(self, event: InputRequired) -> None:
        known: dict[str, Any] = {
            "elicitation/create": {"action": "accept", "content": {"n": 1}},
            "roots/list": {"roots": []},
        }
        answers: dict[str, Any] = {key: known[question.method] for key, question in event.requests.items()}
        self.client.engine.provide_input(event.round, answers, now=self.now)

    def carry(self, side: Side, count: int) -> None:
        waiting = self.under_way[side]
        data = bytes(waiting[:count])
        del waiting[:count]
        if data and not self.cut:
            receiver = self.server if side == "client" else self.client
            receiver.receive_data(CONN, data, self.now)

    def step(self) -> None:
        steps = self.steps
        side: Side = steps.choose(["client", "server"])
        match steps.byte() % 16:
            case 0 | 1 | 2 | 3:
                self.carry(side, 1 + steps.byte())
            case 4 | 5 | 6:
                self.carry(side, len(self.under_way[side]))
            case 7 if steps.byte() % 4 == 0 and self.under_way[side]:
                self.perfect = False
                lost, at = 1 + steps.byte(), steps.byte() % len(self.under_way[side])
                del self.under_way[side][at : at + lost]
            case 8 if steps.byte() % 4 == 0:
                self.perfect = False
                self.now += steps.byte()
                self.client.handle_timeout(self.now)
                self.server.handle_timeout(self.now)
            case 9 if steps.byte() % 16 == 0 and not self.cut:
                self.perfect, self.cut = False, True
                self.client.failed(CONN, "cut", self.now)
                self.server.failed(CONN, "cut", self.now)
            case 10 if self.calls and steps.byte() % 4 == 0:
                self.perfect = False
                self.client.engine.cancel(steps.choose(self.calls), now=self.now)
            case verb:
                with contextlib.suppress(LocalProtocolError):
                    self.calls.append(self.use(verb))

    def use(self, verb: int) -> Call:
        engine, steps = self.client.engine, self.steps
        match verb:
            case 11:
                return engine.list_all_tools(now=self.now)
            case 12:
                return engine.listen(now=self.now, tools=True, resources=["test://x"])
            case 13:
                return engine.read_resource("test://x", now=self.now)
            case _:
                name = steps.choose(["echo", "asks", "changes"])
                arguments: dict[str, Any] = {"text": "x" * steps.byte()} if name == "echo" else {}
                return engine.call_tool(name, arguments, now=self.now, progress=steps.byte() % 2 == 0)

    def settle(self) -> None:
        """Let everything arrive that is still under way."""
        for _ in range(1000):
            if not any(self.under_way.values()):
                return
            for side in self.under_way:
                self.carry(side, len(self.under_way[side]))
                self.drain()
        raise AssertionError("the two never stop")


def one_input(data: bytes) -> None:
    world = World(Steps(data))
    for _ in range(300):
        if not world.steps.more:
            break
        world.step()
        world.drain()
    world.settle()
    if world.perfect:
        waiting = [c for c in world.calls if c not in world.ended and c.method != "subscriptions/listen"]
        assert not waiting, "all arrived, and a call has no answer"
    world.perfect = False
    world.client.close(world.now)
    world.drain()
    assert all(call in world.ended for call in world.calls), "a call never ended"
    stats = world.client.engine.stats()
    assert stats["calls"] == stats["deadlines"] == stats["waiting_ids"] == stats["progress_tokens"] == 0
    world.server.close(world.now)
    world.drain()
    world.server.failed(CONN, "gone", world.now)
    world.drain()
    assert world.handlers.stats() == {"waiting_handlers": 0}
    assert world.server.engine.stats()["open_requests"] == 0
