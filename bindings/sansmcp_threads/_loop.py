"""Waiting without an event loop: whoever waits drives the connection; the others wait for that thread.

One thread at a time leads: it waits for the descriptors, lets the machines take what came, and wakes
those whose answer was in it. When its own answer is there, it hands on to another one that waits.
A thread that calls alone reads and writes by itself, without any switch of threads. While nobody
waits, a thread of the loop's own leads, if it was asked to; it yields to whoever comes.

`Loop.lock` is held while machines are touched, never while something is waited for, and never while
a callback of the application runs.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar, cast

from sansmcp.invocation import NeedsLoop

from ._poller import READ, default

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_QUIET: Final = 0.05
"""Seconds without a leader after which the loop's own thread leads: threads that call again and again
do so sooner, and need not wait for it to yield."""
_POSIX: Final = os.name == "posix"
_SLICE: Final = None if _POSIX else 0.1
"""Where a wait for a lock does not end with Ctrl-C, it is cut to pieces (seconds)."""

_Ready: TypeAlias = list[tuple[int, int]]
"""Descriptors, and what they are ready for."""

_log: Final = logging.getLogger("sansmcp")


class Signal:
    """Whether something has happened. To be changed with the lock held; `Loop.wait` waits for it."""

    __slots__ = ("_loop", "_set", "sleepers")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._set = False
        self.sleepers: list[_Sleeper] = []
        """Threads that wait for it while another one leads."""

    def is_set(self) -> bool:
        return self._set

    done = is_set

    def set(self) -> None:
        self._set = True
        if self.sleepers:
            for sleeper in self.sleepers:
                sleeper.served = self._loop.rouse(sleeper)
            self.sleepers.clear()
        if self._loop.awaited is self:
            self._loop.wake()

    def clear(self) -> None:
        self._set = False


class Future(Signal, Generic[T]):
    """A value that comes later."""

    __slots__ = ("_error", "_value")

    def __init__(self, loop: Loop) -> None:
        # What `Signal` does, without a call: there is one for every call of the application.
        self._loop = loop
        self._set = False
        self.sleepers = []
        self._value: T | None = None
        self._error: BaseException | None = None

    def set_result(self, value: T) -> None:
        self._value = value
        self.set()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self.set()

    def result(self) -> T:
        """The value, once it is there. Raises the error that came instead."""
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


class _Sleeper:
    """A thread that waits for another one to lead."""

    __slots__ = ("asleep", "bell", "served", "thread")

    def __init__(self, thread: int) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.asleep = True
        self.served = False
        """Whether it was roused because what it waits for has come: then nothing else is asked of it."""
        self.thread = thread


class Timer:
    """A call that comes at its time, unless it is cancelled."""

    __slots__ = ("_timers", "call", "due")

    def __init__(self, timers: set[Timer], when: float, call: Callable[[], object]) -> None:
        self._timers = timers
        self.due = when
        self.call = call

    def cancel(self) -> None:
        self._timers.discard(self)


class _Done:
    """A task that has ended."""

    def cancel(self) -> None:
        pass

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        callback(self)


class Loop:
    """As much of an event loop as the bindings ask for, driven by the threads that wait.

    What is not said to be otherwise is called with `lock` held.
    """

    time = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self._poller = default()
        self._ready: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._timers: set[Timer] = set()
        self._due = math.inf
        """No timer is due before."""
        self._wanted: dict[int, tuple[int, Callable[[int], object]]] = {}
        """What descriptors are watched for, and who is told."""
        self._changed: set[int] = set()
        """Descriptors whose watch is not known to the selector yet: only the leader touches it."""
        self._told: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        """Callbacks of the application, in order. One thread at a time calls them."""
        self._teller: int | None = None
        self._leader: int | None = None
        self.awaited: Signal | None = None
        """What the leader waits for."""
        self._led = 0
        """How often a thread that waits has led."""
        self._asleep_until: float | None = None
        """Until when the leader waits for descriptors; None: it does not."""
        self._followers: dict[_Sleeper, None] = {}
        self._heir: _Sleeper | None = None
        """Who was roused to lead, and has not come yet."""
        self._keeper: threading.Thread | None = None
        self._yields = False
        """Whether somebody waits, or has, since the loop's own thread began to lead."""
        self._keeper_wakes = threading.Event()
        self._closed = False
        self._given_back = False
        self.on_interrupt: list[Callable[[], object]] = []
        """Called when a thread was stopped amid its work."""
        self._ear, self._bell = socket.socketpair()
        for end in (self._ear, self._bell):
            end.setblocking(False)
        self.watch(self._ear.fileno(), READ, self._heard)

    @property
    def closed(self) -> bool:
        """Whether it was given back."""
        return self._closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """What is made of it closes it, unless that fails."""
        if error is not None:
            self.close()

    @property
    def as_asyncio(self) -> asyncio.AbstractEventLoop:
        """As what the shared parts of the bindings call a loop; they use no more of it than there is."""
        return cast("asyncio.AbstractEventLoop", self)

    # what machines and channels ask for ----------------------------------------------------------

    def create_future(self) -> Future[Any]:
        return Future(self)

    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> _Done:
        """Run it at once. It must not wait for anything: then it is ended with `NeedsLoop`."""
        try:
            coroutine.send(None)
            coroutine.throw(NeedsLoop("what it waits for needs a loop, and here is none"))
            coroutine.close()
        except StopIteration:
            pass
        except Exception as error:
            self.call_exception_handler({"message": f"{coroutine!r} raised", "exception": error})
        return _Done()

    def call_soon(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call it when the leader is done with what it does now."""
        self._ready.append((call, arguments))
        self.wake()

    def call_soon_threadsafe(self, call: Callable[..., object], *arguments: Any) -> None:
        """The same, whether or not the lock is held. Raises RuntimeError when the loop was closed."""
        if self._closed:
            raise RuntimeError("the loop was closed")
        self.call_soon(call, *arguments)

    def call_now(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call it in this thread, after what was to be called soon. Without the lock; else the same."""
        with self.lock:
            if self._closed:
                raise RuntimeError("the loop was closed")
            self._ready.append((call, arguments))
            self._call_ready()

    def call_at(self, when: float, call: Callable[[], object]) -> Timer:
        timer = Timer(self._timers, when, call)
        self._timers.add(timer)
        self._due = min(self._due, when)
        if self._asleep_until is not None and when < self._asleep_until:
            self.wake()
        return timer

    def watch(self, fd: int, events: int, call: Callable[[int], object]) -> None:
        """Call it with what `fd` is ready for, as long as that is among `events`; 0: no longer."""
        if events:
            self._wanted[fd] = (events, call)
        elif self._wanted.pop(fd, None) is None:
            return
        self._changed.add(fd)
        if not events:
            # Before its number is given to another file, which cannot wait for the leader.
            self._poller.watch(fd, 0)
        self.wake()

    def tell(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call what the application gave us, without the lock, after what was told before."""
        self._told.append((callback, arguments))
        if self._teller is not None:  # perhaps it sleeps, amid a callback that waits for something
            for sleeper in self._followers:
                if sleeper.thread == self._teller:
                    self.rouse(sleeper)
                    break
        self.wake()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        _log.error("%s", context.get("message"), exc_info=context.get("exception"))

    def wake(self) -> None:
        """Let the leader look at what has changed. Also without the lock."""
        if self._asleep_until is not None:
            self._asleep_until = None
            with suppress(OSError):  # full: it is woken already; closed: there is no leader
                self._bell.send(b"\0")

    def _heard(self, events: int) -> None:
        with suppress(BlockingIOError):
            while len(self._ear.recv(4096)) == 4096:
                pass

    # waiting: all without the lock ---------------------------------------------------------------

    def wait(self, signal: Signal, until: float | None = None) -> bool:
        """Lead, or let another thread lead, until `signal` is set. False when it was not at `until`.

        KeyboardInterrupt comes at once.
        """
        me = threading.get_ident()
        leads = False
        timeout: float | None = None
        ready: _Ready = []
        try:
            while True:
                sleeper: _Sleeper | None = None
                with self.lock:
                    if leads:
                        self._asleep_until = None
                        self._take(ready)
                    elif self._leader is None:
                        leads, self._leader, self.awaited = True, me, signal
                        self._led += 1
                        if self._ready and not self._closed:
                            self._take([])
                    tells = self._told and self._must_tell(me)
                    if tells or signal._set or self._closed or (until is not None and self.time() >= until):
                        if leads:
                            leads, self._leader, self.awaited = False, None, None
                        self._hand_over()
                        if not tells:
                            return signal._set
                    elif leads:
                        timeout = self._sleep(until)
                    else:
                        sleeper = self._lie_down(me, signal)
                if leads:
                    ready = self._poller.poll(timeout)
                elif sleeper is None:
                    self._tell_all()
                elif self._follow(sleeper, signal, until) and not self._told:
                    return True
        except BaseException:
            with self.lock:
                if self._leader == me:
                    self._asleep_until = self._leader = self.awaited = None
                self._hand_over()
            raise

    def _lie_down(self, me: int, signal: Signal) -> _Sleeper:
        sleeper = _Sleeper(me)
        self._followers[sleeper] = None
        signal.sleepers.append(sleeper)
        if self._keeper is not None and self._leader == self._keeper.ident:
            self._yields = True
            self.wake()
        return sleeper

    def _follow(self, sleeper: _Sleeper, signal: Signal, until: float | None) -> bool:
        """Sleep until there is something to look at. Returns whether the signal was set."""
        try:
            while sleeper.asleep:
                left = -1.0 if until is None else max(until - self.time(), 0.0)
                if _SLICE is not None:
                    left = _SLICE if left < 0 else min(left, _SLICE)
                if sleeper.bell.acquire(timeout=left) or (until is not None and self.time() >= until):
                    break
        finally:
            if not sleeper.served:
                with self.lock:
                    self._followers.pop(sleeper, None)
                    with suppress(ValueError):
                        signal.sleepers.remove(sleeper)
                    if self._heir is sleeper:
                        self._heir = None
        return sleeper.served

    def rouse(self, sleeper: _Sleeper) -> bool:
        """Let a follower look whether what it waits for has come. False: it was roused before."""
        if sleeper not in self._followers:
            return False
        del self._followers[sleeper]
        sleeper.asleep = False
        sleeper.bell.release()
        return True

    def _hand_over(self) -> None:
        """Somebody else may lead: without this nobody would. The last one to leave gives all back."""
        if self._leader is not None:
            return
        if self._followers and self._heir is None:
            self._heir = next(iter(self._followers))
            self.rouse(self._heir)
        if self._closed:
            self._give_back()

    def _take(self, ready: _Ready) -> None:
        """Let everybody do what there is to do."""
        try:
            for fd, events in ready:
                # A descriptor that was closed meanwhile may be another one by now: its number was unwatched.
                if fd not in self._changed:
                    self._do(self._wanted[fd][1], events)
            if self._timers and self._due <= (now := self.time()):
                for timer in [t for t in self._timers if t.due <= now]:
                    timer.cancel()
                    self._do(timer.call)
                self._due = min((t.due for t in self._timers), default=math.inf)
            if self._ready:
                self._call_ready()
        except BaseException as error:
            self.interrupted(error)
            raise

    def _call_ready(self) -> None:
        for _ in range(len(self._ready)):
            call, arguments = self._ready.popleft()
            self._do(call, *arguments)

    def _do(self, call: Callable[..., object], *arguments: Any) -> None:
        # Not the fault of the thread that happens to lead. Whoever it is of has ended what it belongs to.
        try:
            call(*arguments)
        except Exception as error:
            self.call_exception_handler({"message": f"{call!r} raised", "exception": error})

    def interrupted(self, error: BaseException) -> None:
        """A thread was stopped amid its work, by Ctrl-C: what it read may be lost. Give everything up."""
        if not isinstance(error, Exception):
            for give_up in self.on_interrupt:
                give_up()

    def _sleep(self, until: float | None) -> float | None:
        """Seconds that the leader may wait for descriptors; None: for ever."""
        while self._changed:
            fd = self._changed.pop()
            if fd in self._wanted:
                self._poller.watch(fd, self._wanted[fd][0])
        when = self._due if until is None or self._due < until else until
        self._asleep_until = when
        if self._ready:  # only now: who adds to them looks whether anybody sleeps
            self._asleep_until = None
            return 0.0
        return None if when == math.inf else max(when - self.time(), 0.0)

    # callbacks -----------------------------------------------------------------------------------

    def _must_tell(self, me: int) -> bool:
        return bool(self._told) and self._teller in (None, me)

    def _tell_all(self) -> None:
        """Make the callbacks that are due, unless another thread is about it."""
        me = threading.get_ident()
        nested = self._teller == me
        try:
            with self.lock:
                if not self._must_tell(me):
                    return
                self._teller = me
            while self._told:
                callback, arguments = self._told.popleft()
                try:
                    callback(*arguments)
                except Exception as error:
                    self.call_exception_handler({"message": f"{callback!r} raised", "exception": error})
        finally:
            if not nested and self._teller == me:
                with self.lock:
                    self._teller = None
                    if self._told:  # told too late for this thread, perhaps, which need not come back
                        self.wake()

    # the loop's own thread -----------------------------------------------------------------------

    def keep(self, *, at_once: bool = False) -> None:
        """Let a thread lead while nobody waits, from now on or once nobody has for a while.

        Without the lock.
        """
        keeper = threading.Thread(target=self._keep, args=(at_once,), name="sansmcp", daemon=True)
        keeper.start()
        self._keeper = keeper  # only now: who is interrupted above has none to wait for

    def _keep(self, alone: bool) -> None:
        me = threading.get_ident()
        while not self._closed:
            led = self._led
            if not alone:
                self._keeper_wakes.wait(_QUIET)
            with self.lock:
                alone = self._leader is None and led == self._led and not self._closed
                if alone:
                    self._leader, self.awaited, self._yields = me, None, False
            # Whoever was let lead has not begun to, perhaps: it would wait for this thread once more.
            alone = alone and not self._stand_in(me)

    def _stand_in(self, me: int) -> bool:
        """Lead until somebody waits, or there are callbacks to make. Returns whether somebody does."""
        ready: _Ready = []
        try:
            while True:
                with self.lock:
                    self._asleep_until = None
                    self._take(ready)
                    if self._yields or self._closed or self._must_tell(me):
                        break
                    timeout = self._sleep(None)
                ready = self._poller.poll(timeout)
        finally:
            with self.lock:
                self._asleep_until = self._leader = None
                yields = self._yields
                self._hand_over()
        self._tell_all()
        return yields

    def close(self) -> None:
        """End the loop's own thread and give back what the loop holds. Without the lock. Harmless twice.

        A thread that still waits for descriptors gives it back as it leaves, which is at once.
        """
        with self.lock:
            if self._closed:
                return
            self._closed = True
            while self._ready:
                call, arguments = self._ready.popleft()
                self._do(call, *arguments)
            self.wake()
        self._keeper_wakes.set()
        keeper = self._keeper
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join()
        self._tell_all()
        with self.lock:
            self._hand_over()

    def _give_back(self) -> None:
        """Nobody waits for descriptors any more, and nobody will."""
        if self._given_back:
            return
        self._given_back = True
        self._poller.close()
        self._ear.close()
        self._bell.close()
