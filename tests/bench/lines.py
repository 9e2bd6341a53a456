"""What is measured, and how good it has to be: the table of the bench as data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .contenders import Contender, Counted, Fixed, Process, Timed, Worker, importing
from .http_support import CHUNKS

Unit = Literal["µs", "ms", "bytes", "modules"]
SCALE: Mapping[Unit, float] = {"µs": 1e6, "ms": 1e3, "bytes": 1, "modules": 1}

CODECS = ("standard", "fast")
FLYING = 64
LEVELS = (1, 10, 100, 1000, 10_000)
OPEN_CALLS = 10_000


@dataclass(frozen=True)
class Target:
    """A bound for the ratio that `kind` names."""

    kind: Literal["peer/ours", "ours/floor"]
    bound: float

    def met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.kind == "peer/ours" else ratio <= self.bound

    def __str__(self) -> str:
        return f"{self.kind} {'≥' if self.kind == 'peer/ours' else '≤'} {self.bound:g}"


@dataclass(frozen=True)
class Line:
    """One line of the table, made from one metric of the contenders of its group."""

    name: str
    unit: Unit
    target: Target | None = None
    metric: str = "value"


@dataclass(frozen=True)
class Group:
    """Contenders that take turns, and the lines that are made from them.

    They are named ``peer``, ``floor`` and ``ours``. Under other names they are all ours: then the
    best of them stands as the floor and the worst as ours.
    """

    contenders: Mapping[str, Contender]
    lines: Sequence[Line]
    once: bool = False
    """Whether one turn each is enough, because nothing about it is a matter of time."""


@dataclass(frozen=True)
class Field:
    """The processes that measure; those of the SDKs are None where they are not installed."""

    ours: Worker
    floor: Worker
    trio: Worker
    """Ours too, in a process whose loop is trio's."""
    peer: Worker | None
    typescript: Worker | None
    our_python: Path
    peer_python: Path | None


def groups(field: Field) -> Iterator[Group]:
    """Everything that is measured, in the order of the table."""
    for codec in CODECS:
        yield from _reading(field, codec)
    for codec in CODECS:
        yield from _calling(field, codec)
    yield from _big(field)
    yield from _starting(field)
    yield _flat(field)
    yield from _memory(field)
    yield from _http(field)
    yield from _blocking(field)
    yield from _other_loop(field)
    yield from _hosted(field)


def _three(
    field: Field, ours: str, peer: str | None, floor: str | None, at_once: int = 1
) -> dict[str, Contender]:
    there: dict[str, Contender] = {}
    if peer is not None and field.peer is not None:
        there["peer"] = Timed(field.peer, peer, at_once=at_once)
    if floor is not None:
        there["floor"] = Timed(field.floor, floor, at_once=at_once)
    there["ours"] = Timed(field.ours, ours, at_once=at_once)
    return there


def _reading(field: Field, codec: str) -> Iterator[Group]:
    small, large = f"call-result-{codec}", f"list-result-{codec}"
    yield Group(
        _three(field, f"call-envelope-{codec}", "call-envelope", small),
        [Line(f"message → its kind ({codec})", "µs")],
    )
    yield Group(
        _three(field, f"call-engine-{codec}", "call-envelope", small),
        [Line(f"message → event, engine; SDK: validated ({codec})", "µs", Target("ours/floor", 2.5))],
    )
    yield Group(
        _three(field, f"call-event-{codec}", "call-dispatched", small),
        [Line(f"bytes → event, transport; SDK: to caller ({codec})", "µs", Target("ours/floor", 2.5))],
    )
    yield Group(
        _three(field, f"call-typed-{codec}", "call-typed", small),
        [Line(f"bytes → typed result, tools/call ({codec})", "µs")],
    )
    yield Group(
        _three(field, f"list-typed-{codec}", "list-typed", large),
        [Line(f"bytes → typed result, 200 tools ({codec})", "µs")],
    )


def _calling(field: Field, codec: str) -> Iterator[Group]:
    yield Group(
        _three(field, f"memory-1-{codec}", "memory-direct-1", f"memory-1-{codec}"),
        [Line(f"in-memory call, SDK without bytes ({codec})", "µs", Target("peer/ours", 10))],
    )
    yield Group(
        _three(field, f"memory-1-{codec}", "memory-streams-1", f"memory-1-{codec}"),
        [Line(f"in-memory call, SDK over streams ({codec})", "µs", Target("peer/ours", 10))],
    )
    yield Group(
        _three(field, f"stdio-1-{codec}", "stdio-1", f"stdio-1-{codec}"),
        [Line(f"stdio call, one at a time ({codec})", "µs")],
    )
    yield Group(
        _three(field, f"stdio-{FLYING}-{codec}", f"stdio-{FLYING}", f"stdio-{FLYING}-{codec}", FLYING),
        [Line(f"stdio call, {FLYING} in flight ({codec})", "µs", Target("peer/ours", 30))],
    )


def _big(field: Field) -> Iterator[Group]:
    for codec in CODECS:
        yield Group(
            {
                "floor": Timed(field.ours, f"big-whole-{codec}", calls=3),
                "ours": Timed(field.ours, f"big-chunked-{codec}", calls=3),
            },
            [Line(f"10 MB in 4 KiB chunks, floor: whole ({codec})", "ms", Target("ours/floor", 1.5))],
        )


def _starting(field: Field) -> Iterator[Group]:
    python, peer_python = field.our_python, field.peer_python
    clients: dict[str, Contender] = {}
    imports: dict[str, Contender] = {}
    if peer_python is not None:
        clients["peer"] = Process(peer_python, "peers/sdk_client.py")
        imports["peer"] = importing(peer_python, "from mcp import Client")
    clients["floor"] = Process(python, "programs/floor_client.py")
    clients["ours"] = Process(python, "programs/our_client.py")
    imports["floor"] = importing(python, "import asyncio")
    imports["ours"] = importing(python, "from sansmcp_asyncio import connect")
    yield Group(
        clients,
        [
            Line("cold start: one stdio call, whole process", "ms", Target("peer/ours", 5)),
            Line("cold start: to the first result", "ms", metric="done"),
            Line("cold start: modules of the client", "modules", metric="modules"),
        ],
    )
    yield Group(
        imports,
        [
            Line("import only, floor: asyncio", "ms"),
            Line("import only: modules", "modules", metric="modules"),
        ],
    )


def _flat(field: Field) -> Group:
    levels = {f"{level}": Timed(field.ours, f"engines-{level}", calls=max(LEVELS)) for level in LEVELS}
    name = f"engines, 1 … {max(LEVELS)} in flight: worst, best"
    return Group(levels, [Line(name, "µs", Target("ours/floor", 1.3))])


def _memory(field: Field) -> Iterator[Group]:
    yield Group(
        {"ours": Counted(field.ours, "engine-memory", OPEN_CALLS)},
        [Line("an open call of the client engine", "bytes")],
        once=True,
    )
    both: dict[str, Contender] = {}
    if field.peer is not None:
        both["peer"] = Counted(field.peer, "memory-per-call", OPEN_CALLS)
    both["ours"] = Counted(field.ours, "client-memory", OPEN_CALLS)
    yield Group(both, [Line("an open call in memory: task, client, server", "bytes")], once=True)


HTTP_FLYING = 16
KINDS = {"json": ("JSON answers", 7), "stream": ("SSE, one progress", 8)}


def _http(field: Field) -> Iterator[Group]:
    for kind, (name, factor) in KINDS.items():
        bench = f"http-{kind}-{HTTP_FLYING}"
        yield Group(
            _three(field, bench, bench, bench, HTTP_FLYING),
            [Line(f"HTTP call, {HTTP_FLYING} in flight, {name}", "µs", Target("peer/ours", factor))],
        )
        if field.typescript is not None:
            yield Group(
                {
                    "peer": Timed(field.typescript, bench, at_once=HTTP_FLYING),
                    "ours": Timed(field.ours, bench, at_once=HTTP_FLYING),
                },
                [Line(f"the same, beside the TypeScript SDK, {name}", "µs", Target("peer/ours", 4))],
            )
        yield Group(
            _three(field, f"http-cpu-{kind}", None, f"http-cpu-{kind}"),
            [Line(f"HTTP call, processor time of both ends, {name}", "µs", Target("ours/floor", 1.4))],
        )
    for chunk in CHUNKS:
        bench = f"http-events-{chunk}"
        contenders: dict[str, Contender] = {}
        if field.peer is not None:
            contenders["peer"] = Timed(field.peer, bench, calls=1)
        contenders["ours"] = Timed(field.ours, bench, calls=1)
        name = f"50 MB of SSE, 100,000 messages, in {chunk // 1024} KiB"
        yield Group(contenders, [Line(name, "ms", Target("peer/ours", 2.5))])
    for kind, bound in (("session", 10_000), ("stream", 16_000)):
        both: dict[str, Contender] = {}
        if field.peer is not None:
            both["peer"] = Counted(field.peer, f"http-{kind}-memory", 1)
        both["floor"] = Fixed(bound)
        both["ours"] = Counted(field.ours, f"http-{kind}-memory", 1)
        what = "an idle legacy session" if kind == "session" else "a legacy session with its stream open"
        line = Line(f"{what}; floor: the bound", "bytes", Target("ours/floor", 1))
        yield Group(both, [line], once=True)


THREADS = 8


def _blocking(field: Field) -> Iterator[Group]:
    """The synchronous client, and how far from pipes and sockets that block it is."""
    target = Target("ours/floor", 2)
    for codec in CODECS:
        bench = f"blocking-stdio-1-{codec}"
        yield Group(
            _three(field, f"blocking-client-1-{codec}", None, bench),
            [Line(f"blocking stdio call, floor's server ({codec})", "µs", target)],
        )
        yield Group(
            _three(field, bench, None, bench),
            [Line(f"blocking stdio call, our server ({codec})", "µs", target)],
        )
    bench = f"blocking-stdio-{THREADS}-fast"
    yield Group(
        _three(field, bench, None, bench, THREADS),
        [Line(f"blocking stdio call, {THREADS} threads (fast)", "µs", target)],
    )
    for threads in (1, THREADS):
        bench = f"blocking-http-{threads}"
        how = "one at a time" if threads == 1 else f"{threads} threads"
        yield Group(
            _three(field, bench, None, bench, threads),
            [Line(f"blocking HTTP call, {how}", "µs")],
        )


def _other_loop(field: Field) -> Iterator[Group]:
    """trio beside asyncio, both ours; the servers are the same."""
    benches = {
        "stdio call on trio": ("stdio-1-fast", 1),
        f"stdio call on trio, {FLYING} in flight": (f"stdio-{FLYING}-fast", FLYING),
        f"HTTP call on trio, {HTTP_FLYING} in flight": (f"http-json-{HTTP_FLYING}", HTTP_FLYING),
    }
    for name, (bench, flying) in benches.items():
        yield Group(
            {
                "floor": Timed(field.ours, bench, at_once=flying),
                "ours": Timed(field.trio, bench, at_once=flying),
            },
            [Line(f"{name}; floor: on asyncio", "µs")],
        )


def _hosted(field: Field) -> Iterator[Group]:
    """The same client against the same app under servers that are not ours."""
    for host, kind in (("uvicorn", "ASGI"), ("waitress", "WSGI")):
        for answer in KINDS:
            yield Group(
                {
                    "floor": Timed(field.ours, f"http-{answer}-{HTTP_FLYING}", at_once=HTTP_FLYING),
                    "ours": Timed(field.ours, f"http-{answer}-{host}", at_once=HTTP_FLYING),
                },
                [Line(f"HTTP, {kind} under {host}, {answer}; floor: serve_http", "µs")],
            )
