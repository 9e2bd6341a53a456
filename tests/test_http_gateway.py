"""The HTTP server behind another one: heads, pieces of bodies and what is taken, under virtual time."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import pytest

from sansmcp import Event, LimitHit, LocalProtocolError, MessageIgnored
from sansmcp.events import RequestCancelled, RequestReceived
from sansmcp.http.exchange import AbortExchange, EndResponse, HttpRequest, SendBody, StartResponse
from sansmcp.http.gateway import GatewayOp, GatewayPolicy, HttpGateway
from sansmcp.http.headers import project_headers
from sansmcp.http.server import HttpServer
from sansmcp.limits import Limits

from .http_support import BOTH, initialize, make_engine
from .support import meta

E = TypeVar("E")
LISTED: dict[str, Any] = {"tools": []}
MESSAGE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {"_meta": {**meta(), "progressToken": "p"}},
}
BODY = json.dumps(MESSAGE).encode()
FIELDS = {"host": "localhost", "accept": BOTH, "content-type": "application/json"}
MODERN = {**FIELDS, **{name.lower(): value for name, value in project_headers(MESSAGE)}}


class Carrier:
    """A gateway, what it wanted done, and what it said. Takes what is written at once if `takes`."""

    def __init__(self, *, takes: bool = True, policy: GatewayPolicy | None = None, **options: Any) -> None:
        self.now = 0.0
        self.takes = takes
        self.ops: list[GatewayOp] = []
        self.said: list[Event] = []
        server = HttpServer(make_engine, now=0.0, entropy=bytes, **options)
        self.gateway = HttpGateway(server, now=0.0, policy=policy or GatewayPolicy())

    def drain(self) -> None:
        while (op := self.gateway.next_op()) is not None:
            self.ops.append(op)
            if self.takes and isinstance(op, SendBody):
                self.gateway.written(op.exchange, len(op.data), self.now)
        while (event := self.gateway.next_event()) is not None:
            self.said.append(event)

    def head(self, exchange: int = 1, fields: Any = None, *, version: str = "1.1") -> None:
        headers = list((MODERN if fields is None else fields).items())
        request = HttpRequest("POST", "/mcp", headers, http_version=version)
        self.gateway.head_received(exchange, request, self.now)
        self.drain()

    def body(self, data: bytes = BODY, exchange: int = 1, *, more: bool = False) -> None:
        self.gateway.body_received(exchange, data, more, self.now)
        self.drain()

    def ask(self, exchange: int = 1) -> None:
        self.head(exchange)
        self.body(exchange=exchange)

    def leave(self, exchange: int = 1) -> None:
        self.gateway.closed(exchange, self.now)
        self.drain()

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while (when := self.gateway.next_timeout()) is not None and when <= end:
            self.now = max(self.now, when)
            self.gateway.handle_timeout(self.now)
            self.drain()
        self.now = end

    def answer(self, result: Any = None) -> None:
        request = [e for e in self.said if isinstance(e, RequestReceived)][-1].request
        self.gateway.server.respond(request, result or LISTED, now=self.now)
        self.drain()

    def progress(self, value: float, text: str | None = None) -> None:
        request = [e for e in self.said if isinstance(e, RequestReceived)][-1].request
        self.gateway.server.report_progress(request, value, None, text, now=self.now)
        self.drain()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    @property
    def statuses(self) -> list[int]:
        return [op.status for op in self.ops if isinstance(op, StartResponse)]

    @property
    def limits(self) -> list[str]:
        return [event.limit for event in self.of(LimitHit)]

    @property
    def left(self) -> dict[str, int]:
        """Tables and queues that are not empty."""
        return {name: size for name, size in self.gateway.stats().items() if size and name != "sessions"}


@pytest.mark.req("R11")
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_body_in_pieces_is_one_request(size: int) -> None:
    carrier = Carrier()
    carrier.head()
    pieces = [BODY[i : i + size] for i in range(0, len(BODY), size)]
    for number, piece in enumerate(pieces):
        assert carrier.gateway.wants_body(1)
        carrier.body(piece, more=number < len(pieces) - 1)
    assert not carrier.gateway.wants_body(1)
    carrier.answer()
    assert [type(op) for op in carrier.ops] == [StartResponse, SendBody, EndResponse]
    assert carrier.statuses == [200]
    assert carrier.left == {}


def test_the_end_may_come_apart_from_the_body() -> None:
    carrier = Carrier()
    carrier.head()
    carrier.body(more=True)
    carrier.body(b"")
    assert len(carrier.of(RequestReceived)) == 1


TOO_LARGE: dict[str, tuple[str | None, list[bytes], list[int]]] = {
    "told before": ("1001", [], [413]),
    "told before, in zeros": ("0001001", [], [413]),
    "told before, without end": ("9" * 5000, [], [413]),
    "just not": ("1000", [], []),
    "no number": ("a lot", [], []),
    "no number for a server": ("-5", [], []),
    "found out": (None, [b"x" * 500] * 3, [413]),
    "found out at the end": (None, [b"x" * 1001], [413]),
    "a lie": ("10", [b"x" * 1001], [413]),
}


@pytest.mark.req("R7")
@pytest.mark.parametrize(("length", "pieces", "statuses"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_bodies_are_bounded(length: str | None, pieces: list[bytes], statuses: list[int]) -> None:
    carrier = Carrier(limits=Limits(max_body=1000))
    carrier.head(fields=MODERN if length is None else {**MODERN, "content-length": length})
    for piece in pieces:
        carrier.body(piece, more=True)
    assert carrier.statuses == statuses
    assert carrier.gateway.wants_body(1) is not bool(statuses)
    assert len(carrier.of(MessageIgnored)) == len(statuses)
    assert carrier.gateway.stats()["buffered"] == 0


@pytest.mark.parametrize(("version", "closes"), [("1.1", True), ("1.0", True), ("2", False)])
@pytest.mark.parametrize("length", ["1001", "0", None])
def test_a_connection_whose_body_is_not_read_is_of_no_more_use(
    version: str, closes: bool, length: str | None
) -> None:
    carrier = Carrier(limits=Limits(max_body=1000))
    fields = {**MODERN, "host": "evil.example"}
    carrier.head(fields=fields if length is None else {**fields, "content-length": length}, version=version)
    start = carrier.ops[0]
    assert isinstance(start, StartResponse)
    assert (("connection", "close") in start.headers) is (closes and length == "1001")


def test_no_bound_is_no_bound() -> None:
    carrier = Carrier(limits=Limits(max_body=None))
    carrier.head(fields={**MODERN, "content-length": "9" * 30})
    assert carrier.gateway.wants_body(1)


def test_too_many_bodies_at_once() -> None:
    carrier = Carrier(policy=GatewayPolicy(max_bodies=2))
    for exchange in (1, 2, 3):
        carrier.head(exchange)
    assert (carrier.statuses, carrier.limits) == ([503], ["max_bodies"])
    carrier.leave(1)
    carrier.head(4)
    assert carrier.statuses == [503]
    carrier.body(exchange=2)
    carrier.body(exchange=4)
    assert len(carrier.of(RequestReceived)) == 2


def test_a_slow_body() -> None:
    carrier = Carrier()
    carrier.head()
    for _ in range(5):
        carrier.advance(11)
        carrier.body(b" ", more=True)
    assert carrier.statuses == []
    carrier.advance(6)
    assert (carrier.statuses, carrier.limits) == ([408], ["body_timeout"])
    carrier.body(BODY)
    assert carrier.left == {}


@pytest.mark.req("R11")
def test_to_leave_cancels_a_modern_request() -> None:
    carrier = Carrier()
    carrier.ask()
    carrier.leave()
    carrier.leave()
    assert len(carrier.of(RequestCancelled)) == 1
    assert carrier.left == {}


def test_to_leave_in_the_middle_of_a_body() -> None:
    carrier = Carrier()
    carrier.head()
    carrier.body(b"{", more=True)
    carrier.leave()
    assert (carrier.ops, carrier.said, carrier.left) == ([], [], {})


# clients that do not read ------------------------------------------------------------------------


def test_past_a_bound_of_bytes_an_exchange_is_aborted() -> None:
    carrier = Carrier(takes=False, limits=Limits(max_outgoing=10_000))
    carrier.ask()
    for value in range(1, 100):
        carrier.progress(value, "x" * 1000)
    assert isinstance(carrier.ops[-1], AbortExchange)
    assert 9 <= sum(isinstance(op, SendBody) for op in carrier.ops) <= 11
    assert carrier.limits == ["max_outgoing"]
    assert len(carrier.of(RequestCancelled)) == 1
    assert carrier.left == {}


def test_one_answer_may_be_larger_than_the_bound() -> None:
    carrier = Carrier(takes=False, limits=Limits(max_outgoing=10))
    carrier.ask()
    carrier.answer()
    assert [type(op) for op in carrier.ops] == [StartResponse, SendBody, EndResponse]
    assert carrier.gateway.stats()["unsent"] > 10
    carrier.gateway.written(1, 10_000, carrier.now)
    assert carrier.left == {}


@pytest.mark.parametrize("ended", [False, True])
def test_past_a_bound_of_time_an_exchange_is_aborted(ended: bool) -> None:
    carrier = Carrier(takes=False, keep_alive=None)
    carrier.ask()
    carrier.progress(1)
    if ended:
        carrier.answer()
    carrier.advance(299)
    carrier.gateway.written(1, 10, carrier.now)  # that is not all, but it reads
    carrier.advance(299)
    assert carrier.limits == []
    carrier.advance(1)
    assert carrier.limits == ["stall_timeout"]
    assert isinstance(carrier.ops[-1], AbortExchange)
    assert len(carrier.of(RequestCancelled)) == (not ended)
    assert carrier.left == {}


def test_a_client_that_reads_may_wait_as_long_as_it_likes() -> None:
    carrier = Carrier()
    carrier.ask()
    carrier.progress(1)
    carrier.advance(10_000)
    carrier.answer()
    assert carrier.limits == []
    assert isinstance(carrier.ops[-1], EndResponse)


# begin and end -----------------------------------------------------------------------------------


def test_the_end() -> None:
    carrier = Carrier()
    carrier.head(1)
    carrier.ask(2)
    carrier.head(3, FIELDS)
    carrier.body(json.dumps(initialize()).encode(), 3)
    before = carrier.gateway.finished
    for _ in range(2):
        carrier.gateway.close(carrier.now)
        carrier.drain()
    assert sorted(carrier.statuses) == [200, 503, 503]
    assert (before, carrier.gateway.finished) == (False, True)
    carrier.head(4)
    assert carrier.statuses[-1] == 503
    assert carrier.left == {}


def test_an_exchange_is_begun_once() -> None:
    carrier = Carrier()
    carrier.head()
    with pytest.raises(LocalProtocolError, match="open already"):
        carrier.head()


@pytest.mark.parametrize("name", ["max_bodies", "body_timeout", "stall_timeout"])
def test_a_policy_is_positive(name: str) -> None:
    with pytest.raises(LocalProtocolError, match=name):
        GatewayPolicy(**{name: 0})
