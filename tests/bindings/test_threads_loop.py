"""How threads wait without a loop: who leads, who is told, and by what means descriptors are watched."""

import math
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

import sansmcp_threads
from sansmcp_threads import _poller
from sansmcp_threads._loop import Future, Loop
from sansmcp_threads._poller import READ, WRITE, Poller

from .every_app import app
from .support import until

LONG = 20.0
"""Seconds that nothing here takes."""


@pytest.mark.parametrize("make", [_poller.default, _poller.Selected])
def test_each_means_tells_the_same(make: Callable[[], Poller]) -> None:
    poller = make()
    one, two = socket.socketpair()
    fd = one.fileno()
    try:
        assert poller.poll(0) == []
        poller.watch(fd, READ)
        poller.watch(fd, READ)
        assert poller.poll(0) == []
        two.send(b"x")
        assert poller.poll(None) == [(fd, READ)]
        poller.watch(fd, READ | WRITE)
        assert poller.poll(0) == [(fd, READ | WRITE)]
        poller.watch(fd, WRITE)
        assert poller.poll(0) == [(fd, WRITE)]
        poller.watch(fd, 0)
        poller.watch(fd, 0)
        assert poller.poll(0.01) == []
        two.close()
        for events in (READ, WRITE):
            poller.watch(fd, events)
            (ready,) = poller.poll(None)
            assert ready[1] & events, "what broke is ready for whatever it is watched for"
    finally:
        poller.close()
        one.close()
        two.close()


@pytest.mark.skipif(os.name != "posix", reason="no selector waits for pipes here")
@pytest.mark.parametrize("make", [_poller.default, _poller.Selected])
def test_the_writing_end_of_a_pipe_is_told_that_nobody_reads(make: Callable[[], Poller]) -> None:
    poller = make()
    source, sink = os.pipe()
    poller.watch(sink, READ)
    assert poller.poll(0) == []
    os.close(source)
    (ready,) = poller.poll(LONG)
    assert ready[0] == sink
    os.close(sink)
    poller.watch(sink, 0)  # it was closed first
    poller.close()


def test_a_callback_that_waits_is_called_back_meanwhile() -> None:
    """What is told while the only thread that may tell it sleeps rouses that thread; no other one spins."""
    order: list[str] = []
    began, told = threading.Event(), threading.Event()
    with Loop() as loop:
        inner, outer, other = (Future[None](loop) for _ in range(3))

        def waits() -> None:
            began.set()
            loop.wait(inner)
            order.append("what waited")

        def second() -> None:
            order.append("what came meanwhile")
            told.set()

        with loop.lock:
            loop.tell(waits)
        teller = threading.Thread(target=loop.wait, args=(outer,))
        teller.start()
        assert began.wait(LONG)
        leader = threading.Thread(target=loop.wait, args=(other,))
        leader.start()
        with loop.lock:
            loop.tell(second)
        assert told.wait(LONG)
        with loop.lock:
            for future in (inner, outer, other):
                future.set_result(None)
            loop.wake()
        for thread in (teller, leader):
            thread.join(LONG)
            assert not thread.is_alive()
        loop.close()
    assert order == ["what came meanwhile", "what waited"]


def test_nobody_is_forgotten_whoever_leads() -> None:
    """Threads that wait at once for what comes in each way, and for what never comes."""
    forgotten: list[object] = []

    def set_told(loop: Loop, future: Future[None]) -> None:
        with loop.lock:
            future.set_result(None)

    def work(loop: Loop, number: int) -> None:
        chance = random.Random(number)
        for turn in range(200):
            future = Future[None](loop)
            how = chance.choice(["soon", "later", "told", "never"])
            with loop.lock:
                match how:
                    case "soon":
                        loop.call_soon(future.set_result, None)
                    case "later":
                        when = loop.time() + chance.random() / 500
                        loop.call_at(when, partial(future.set_result, None))
                    case "told":
                        loop.tell(set_told, loop, future)
            patience = chance.random() / 1000 if how == "never" else LONG
            if loop.wait(future, loop.time() + patience) is (how == "never"):
                forgotten.append((number, turn, how))

    with Loop() as loop:
        loop.keep()
        threads = [threading.Thread(target=work, args=(loop, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not forgotten
        assert not loop._followers
        assert loop._heir is None
        loop.close()


def test_what_the_leader_waits_for_may_come_by_another_thread() -> None:
    with Loop() as loop:
        future = Future[None](loop)
        leader = threading.Thread(target=loop.wait, args=(future, loop.time() + LONG))
        leader.start()
        until(lambda: loop._asleep_until is not None, "a leader")
        started = time.monotonic()
        with loop.lock:
            future.set_result(None)
        leader.join()
        assert time.monotonic() - started < LONG / 2
        loop.close()


def test_a_timer_that_is_cancelled_leaves_the_others_on_time() -> None:
    with Loop() as loop:
        called: list[str] = []
        done = Future[None](loop)
        with loop.lock:
            loop.call_at(loop.time() + 0.02, lambda: called.append("cancelled")).cancel()
            loop.call_at(loop.time() + 0.04, partial(done.set_result, None))
            assert loop.time() < loop._due < math.inf
        started = time.monotonic()
        assert loop.wait(done, loop.time() + LONG)
        assert time.monotonic() - started >= 0.03
        assert not called
        assert loop._due == math.inf
        loop.close()


class _Spans:
    """A hook that counts."""

    def __init__(self) -> None:
        self.started = self.ended = 0

    def start(self, *arguments: object) -> "_Spans":
        self.started += 1
        return self

    def context(self) -> dict[str, str]:
        return {}

    def end(self, *arguments: object) -> None:
        self.ended += 1


def test_a_call_whose_progress_is_told_ends_its_span() -> None:
    spans = _Spans()
    with sansmcp_threads.connect_memory(app(), spans=spans) as client:
        before = spans.started
        client.call_tool("steps", {"count": 2}, on_progress=lambda event: None)
        assert spans.started == spans.ended == before + 1
