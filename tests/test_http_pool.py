"""Which connection carries which exchange, decision by decision."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import LocalProtocolError
from sansmcp.http.pool import CONNECT, IDLE, SETTLED, SURPLUS, Carry, Dial, Drop, Pool, PoolPolicy, Refuse

SHORT: dict[type, str] = {Dial: "dial", Carry: "carry", Drop: "drop", Refuse: "refuse"}


class Play:
    """A pool, told what happens in words; `said` is what it decided since it was read last."""

    def __init__(self, **policy: Any) -> None:
        self.pool = Pool(PoolPolicy(**policy))
        self.now = 0.0

    @property
    def said(self) -> list[tuple[Any, ...]]:
        said = []
        while (decision := self.pool.next_decision()) is not None:
            said.append((SHORT[type(decision)], *attrs.astuple(decision)))
        return said

    def do(self, *steps: str) -> list[tuple[Any, ...]]:
        """``ask 7``, ``opened 1``, ``freed 1``, ``streams 1``, ``ended 1``, ``forget 7``, ``wait 3.5``…"""
        for step in steps:
            what, _, words = step.partition(" ")
            match what, [float(word) for word in words.split()]:
                case "wait", [seconds]:
                    self.now += seconds
                    self.pool.handle_timeout(self.now)
                case "freed", [conn, keep]:
                    self.pool.freed(int(conn), self.now, keep)
                case "freed", [conn]:
                    self.pool.freed(int(conn), self.now, None)
                case "once", [number]:
                    self.pool.ask(int(number), self.now, once=True)
                case _, [number]:
                    getattr(self.pool, what)(int(number), self.now)
        return self.said


ROWS = [
    ("the first has a connection opened", {}, ["ask 7"], [("dial", 1)]),
    ("it is carried when that is open", {}, ["ask 7", "opened 1"], [("dial", 1), ("carry", 1, 7, False)]),
    (
        "the next takes the same one",
        {},
        ["ask 7", "opened 1", "freed 1", "ask 8"],
        [("dial", 1), ("carry", 1, 7, False), ("carry", 1, 8, True)],
    ),
    (
        "who finds none idle has another opened",
        {},
        ["ask 7", "opened 1", "ask 8"],
        [("dial", 1), ("carry", 1, 7, False), ("dial", 2)],
    ),
    (
        "a free connection is taken before the one that is being opened, which is kept",
        {},
        ["ask 7", "opened 1", "ask 8", "freed 1", "opened 2", "ask 9"],
        [("dial", 1), ("carry", 1, 7, False), ("dial", 2), ("carry", 1, 8, True), ("carry", 2, 9, False)],
    ),
    (
        "past the cap they wait, in order",
        {"max_requests": 1},
        ["ask 7", "ask 8", "ask 9", "opened 1", "freed 1", "freed 1"],
        [("dial", 1), ("carry", 1, 7, False), ("carry", 1, 8, True), ("carry", 1, 9, True)],
    ),
    (
        "who waits is let in when a connection ends",
        {"max_requests": 1},
        ["ask 7", "ask 8", "opened 1", "ended 1"],
        [("dial", 1), ("carry", 1, 7, False), ("dial", 2)],
    ),
    (
        "who waits no longer is passed over",
        {"max_requests": 1},
        ["ask 7", "ask 8", "ask 9", "forget 8", "opened 1", "freed 1"],
        [("dial", 1), ("carry", 1, 7, False), ("carry", 1, 9, True)],
    ),
    (
        "a connection that nobody waits for any more is for the next",
        {"max_requests": 1},
        ["ask 7", "ask 8", "forget 7", "opened 1"],
        [("dial", 1), ("carry", 1, 8, False)],
    ),
    (
        "too many must not wait",
        {"max_requests": 1, "max_waiting": 1},
        ["ask 7", "ask 8", "ask 9"],
        [("dial", 1), ("refuse", 9)],
    ),
    (
        "streams take no room of requests",
        {"max_requests": 1},
        ["ask 7", "opened 1", "ask 8", "streams 1", "opened 2", "ask 9", "streams 2"],
        [("dial", 1), ("carry", 1, 7, False), ("dial", 2), ("carry", 2, 8, False), ("dial", 3)],
    ),
    (
        "past their own bound they do",
        {"max_requests": 1, "max_streams": 1},
        ["ask 7", "opened 1", "streams 1", "ask 8", "opened 2", "streams 2", "ask 9", "freed 1"],
        [("dial", 1), ("carry", 1, 7, False), ("dial", 2), ("carry", 2, 8, False), ("carry", 1, 9, True)],
    ),
    (
        "what must not be sent twice takes none that was idle for long, and none is kept in its place",
        {},
        ["ask 7", "ask 8", "opened 1", "opened 2", "freed 1", "freed 2", "wait 4", "once 9"],
        [
            *(("dial", 1), ("dial", 2), ("carry", 1, 7, False), ("carry", 2, 8, False)),
            *(("drop", 2, IDLE, None), ("drop", 1, IDLE, None), ("dial", 3)),
        ],
    ),
    (
        "unless the server said that it keeps it",
        {},
        ["ask 7", "opened 1", "freed 1 20", "wait 19", "once 8"],
        [("dial", 1), ("carry", 1, 7, False), ("carry", 1, 8, True)],
    ),
    (
        "nor one that was just used, as long as none was seen to be kept",
        {},
        [
            *("ask 7", "opened 1", "freed 1", "once 8", "opened 2", "freed 2"),
            *("wait 0.05", "once 9", "freed 2", "once 10"),
        ],
        [
            *(("dial", 1), ("carry", 1, 7, False), ("dial", 2), ("carry", 2, 8, False)),
            *(("carry", 2, 9, True), ("carry", 2, 10, True)),
        ],
    ),
    (
        "which others may take, also from who waits for another",
        {},
        ["ask 7", "opened 1", "once 8", "ask 9", "freed 1", "opened 2"],
        [
            *(("dial", 1), ("carry", 1, 7, False), ("dial", 2), ("dial", 3)),
            *(("carry", 1, 9, True), ("carry", 2, 8, False)),
        ],
    ),
    (
        "one that the server is about to end is not taken before the one that is being opened",
        {},
        ["ask 7", "opened 1", "once 8", "freed 1 0"],
        [("dial", 1), ("carry", 1, 7, False), ("dial", 2)],
    ),
    (
        "one that is taken into use is not dropped for having been idle, however late its time is told",
        {"max_requests": 1},
        [
            *("ask 7", "opened 1", "streams 1", "ask 8", "opened 2", "freed 1"),
            *("ended 2", "ask_again 8", "ask 9", "wait 35"),
        ],
        [
            *(("dial", 1), ("carry", 1, 7, False), ("dial", 2), ("carry", 2, 8, False), ("dial", 3)),
            *(("carry", 1, 9, True), ("drop", 3, CONNECT, 8)),
        ],
    ),
    (
        "the one that was idle last is taken first",
        {},
        ["ask 7", "ask 8", "opened 1", "opened 2", "freed 2", "freed 1", "ask 9", "ask 10"],
        [
            *(("dial", 1), ("dial", 2), ("carry", 1, 7, False), ("carry", 2, 8, False)),
            *(("carry", 1, 9, True), ("carry", 2, 10, True)),
        ],
    ),
    (
        "of too many idle ones the oldest goes",
        {"max_idle": 1},
        ["ask 7", "ask 8", "opened 1", "opened 2", "freed 2", "freed 1"],
        [
            *(("dial", 1), ("dial", 2), ("carry", 1, 7, False), ("carry", 2, 8, False)),
            ("drop", 2, SURPLUS, None),
        ],
    ),
    (
        "who asks again comes first, and on a new connection",
        {"max_requests": 2},
        ["ask 7", "ask 8", "ask 9", "opened 1", "opened 2", "freed 1", "ended 2", "ask_again 8"],
        [
            *(("dial", 1), ("dial", 2), ("carry", 1, 7, False), ("carry", 2, 8, False)),
            *(("carry", 1, 9, True), ("dial", 3)),
        ],
    ),
    (
        "and does not change to an old one",
        {},
        ["ask 7", "ask 8", "opened 1", "opened 2", "ended 1", "ask_again 7", "freed 2", "opened 3"],
        [
            *(("dial", 1), ("dial", 2), ("carry", 1, 7, False), ("carry", 2, 8, False)),
            *(("dial", 3), ("carry", 3, 7, False)),
        ],
    ),
    (
        "an idle connection is closed after a while",
        {"idle_timeout": 5.0},
        ["ask 7", "opened 1", "freed 1", "wait 4.9", "wait 0.1", "ask 8"],
        [("dial", 1), ("carry", 1, 7, False), ("drop", 1, IDLE, None), ("dial", 2)],
    ),
    (
        "or as soon as the server would do it",
        {"idle_timeout": 5.0},
        ["ask 7", "opened 1", "freed 1 2", "wait 2"],
        [("dial", 1), ("carry", 1, 7, False), ("drop", 1, IDLE, None)],
    ),
    (
        "a connection that does not come is given up, and with it who waits for it",
        {"connect_timeout": 3.0},
        ["ask 7", "wait 3"],
        [("dial", 1), ("drop", 1, CONNECT, 7)],
    ),
    (
        "unless that has another by now",
        {"connect_timeout": 3.0},
        ["ask 7", "opened 1", "ask 8", "freed 1", "wait 3"],
        [("dial", 1), ("carry", 1, 7, False), ("dial", 2), ("carry", 1, 8, True), ("drop", 2, CONNECT, None)],
    ),
]


@pytest.mark.parametrize(("policy", "steps", "said"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_decisions(policy: Any, steps: list[str], said: Any) -> None:
    assert Play(**policy).do(*steps) == said


@pytest.mark.parametrize(
    ("steps", "exchange"),
    [
        (["ask 7"], 7),
        (["ask 7", "opened 1"], 7),
        (["ask 7", "opened 1", "freed 1"], None),
        (["ask 7", "forget 7"], None),
    ],
)
def test_the_end_of_a_connection_tells_who_is_on_it(steps: list[str], exchange: int | None) -> None:
    play = Play()
    play.do(*steps)
    assert play.pool.ended(1, 0.0) == exchange
    assert not any(play.pool.stats().values())
    assert play.pool.next_timeout() is None


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(PoolPolicy)])
def test_a_policy_has_no_empty_bounds(name: str) -> None:
    with pytest.raises(LocalProtocolError, match=name):
        PoolPolicy(**{name: 0})


@pytest.mark.req("R9")
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), max_size=80))
def test_whatever_happens_bounds_hold_and_everybody_has_a_turn(moves: list[tuple[int, int]]) -> None:
    """Bounds hold at every step; whoever asks is carried once, refused, dropped, or told at an end.

    What must not be sent twice is carried by nothing that was idle for too long, and what is sent again by
    nothing that was used before.
    """
    policy = PoolPolicy(max_requests=2, max_streams=1, max_waiting=3, max_idle=1)
    pool, now, asked = Pool(policy), 0.0, 0
    dialling, idle = set[int](), set[int]()
    carrying: dict[int, int] = {}
    streaming: set[int] = set()
    open_exchanges: set[int] = set()
    once: set[int] = set()
    again: set[int] = set()
    until: dict[int, float] = {}
    since: dict[int, float] = {}
    used: set[int] = set()
    proven = False
    keeps = [None, 0.0, 20.0]

    def decide() -> None:
        while (decision := pool.next_decision()) is not None:
            match decision:
                case Dial(conn=conn):
                    dialling.add(conn)
                case Carry(conn=conn, exchange=exchange, reused=reused):
                    assert not (reused and exchange in again)
                    assert conn not in carrying
                    assert conn not in dialling
                    assert exchange in open_exchanges
                    assert exchange not in carrying.values()
                    assert exchange not in once or now < until[conn]
                    assert not (reused and exchange in once) or proven or now - since[conn] >= SETTLED
                    idle.discard(conn)
                    carrying[conn] = exchange
                case Drop(conn=conn, exchange=waiting):
                    assert conn in dialling | idle
                    dialling.discard(conn)
                    idle.discard(conn)
                    assert conn not in carrying
                    open_exchanges.discard(waiting or 0)
                case Refuse(exchange=exchange):
                    open_exchanges.remove(exchange)
        assert len(carrying) <= policy.max_requests + policy.max_streams
        assert len(idle) <= policy.max_idle
        assert pool.stats()["waiting"] <= policy.max_waiting + 1 + len(again)

    for move, which in moves:
        conns = sorted({0: dialling, 1: set(carrying), 2: set(carrying)}.get(move, dialling | idle))
        match move:
            case 0 if conns:
                conn = conns[which % len(conns)]
                dialling.remove(conn)
                idle.add(conn)
                until[conn] = now + 4.0
                pool.opened(conn, now)
            case 1 if conns:
                conn = conns[which % len(conns)]
                open_exchanges.remove(carrying.pop(conn))
                streaming.discard(conn)
                idle.add(conn)
                keep = keeps[which % 3]
                until[conn] = now + (4.0 if keep is None else keep)
                since[conn] = now
                proven = proven or conn in used
                used.add(conn)
                pool.freed(conn, now, keep)
            case 2 if conns:
                conn = conns[which % len(conns)]
                streaming.add(conn)
                pool.streams(conn, now)
            case 3:
                everything = sorted(dialling | idle | set(carrying))
                if everything:
                    conn = everything[which % len(everything)]
                    dialling.discard(conn)
                    idle.discard(conn)
                    streaming.discard(conn)
                    told = pool.ended(conn, now)
                    assert carrying.pop(conn, told) == told
                    if told is not None and told not in once | again and which % 2:
                        again.add(told)
                        pool.ask_again(told, now)
                    else:
                        open_exchanges.discard(told or 0)
            case 4:
                now += 7 * which
                pool.handle_timeout(now)
            case 5 if open_exchanges - set(carrying.values()):
                waiting = sorted(open_exchanges - set(carrying.values()))
                exchange = waiting[which % len(waiting)]
                open_exchanges.remove(exchange)
                pool.forget(exchange, now)
            case 6:
                asked += 1
                open_exchanges.add(asked)
                once |= {asked} if which % 2 else set()
                pool.ask(asked, now, once=bool(which % 2))
        decide()
    stats = pool.stats()
    sizes = {"busy": carrying, "idle": idle, "streams": streaming, "dialling": dialling}
    assert {name: stats[name] for name in sizes} == {name: len(table) for name, table in sizes.items()}
    # whoever is left has its turn when those before it are done
    for _ in range(len(open_exchanges)):
        for conn in sorted(dialling):
            dialling.remove(conn)
            idle.add(conn)
            until[conn] = now + 4.0
            pool.opened(conn, now)
            decide()
        for conn in sorted(carrying):
            open_exchanges.remove(carrying.pop(conn))
            idle.add(conn)
            until[conn] = now + 4.0
            since[conn] = now
            proven = proven or conn in used
            used.add(conn)
            pool.freed(conn, now, None)
            decide()
    assert not open_exchanges
