"""Which connection carries which exchange, where a server has one origin: decisions, and no bytes.

Whoever drives it says what happened and carries out `next_decision` until that is None:

====================  ===================================================================
`Dial`                open a connection, for an exchange that is to be its first
`Carry`               send the request on a connection that is open
`Drop`                close a connection
`Refuse`              there is no room: the exchange fails
====================  ===================================================================

An exchange takes the connection that was idle last, for it is the least likely to be closed by now;
else it has one opened, if there is room; else it waits, in order. A connection that becomes free
before the one that is being opened is taken instead. One whose request must not be sent twice takes
none that the server may be about to close: neither one that was idle for long, nor, as long as the server
was not seen to keep any, one that was idle for next to no time.

Room is counted in requests. Where the response is an event stream that stays open, it takes room of
its own, so that streams keep no request from being sent; past a bound of streams they take that too.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from enum import Enum, auto
from itertools import count
from typing import Final, TypeAlias

import attrs

from ..clock import Deadlines
from ..errors import LocalProtocolError
from ..ops import ConnectionId
from .exchange import ExchangeId

CONNECT: Final = "connect_timeout"
IDLE: Final = "idle_timeout"
SURPLUS: Final = "max_idle"

SETTLED: Final = 0.05
"""Seconds after a response within which the end of a connection comes, where the server ends it without
having said so. Some do it each time."""


@attrs.frozen(kw_only=True)
class PoolPolicy:
    """How many connections a client opens to its server, and how long it waits and keeps them (seconds).

    Raises LocalProtocolError for a value that is not positive.
    """

    max_requests: int = 32
    """Connections whose response is not there yet, or is no event stream. Servers answer many
    requests at once; proxies before them commonly take about a hundred. Past it: exchanges wait."""

    max_streams: int = 256
    """Connections with an open event stream beside them; a process commonly may have 1024 files
    open. Past it: each further one counts as a request."""

    max_waiting: int = 65_536
    """Exchanges that wait for a connection: as many as calls may be open. Past it: they fail."""

    max_idle: int = 8
    """Idle connections that are kept. Past it: the one that was idle longest is closed."""

    idle_timeout: float = 30.0
    """How long an idle connection is kept; less where the server says that it ends it sooner."""

    trusted_for: float = 4.0
    """How long an idle connection is good for a request that must not be sent twice, a tool's call most
    often, where the server does not say how long it keeps it: the least patient of the common servers
    end it after 5 s, and what crosses with that is lost. Past it: another connection is opened."""

    connect_timeout: float = 10.0
    """For a connection to be made, proxy and TLS included. Past it: the exchange fails."""

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            if not value > 0:
                raise LocalProtocolError(f"{field.name} must be positive, not {value}")


DEFAULT_POOL: Final = PoolPolicy()


@attrs.define
class Dial:
    """Open `conn`, then call `Pool.opened` or `Pool.ended`."""

    conn: ConnectionId


@attrs.define
class Carry:
    """Send the request of `exchange` on `conn`, then call `Pool.freed` or `Pool.ended`."""

    conn: ConnectionId
    exchange: ExchangeId
    reused: bool
    """Whether `conn` carried an exchange before."""


@attrs.define
class Drop:
    """Close `conn`, which the pool has forgotten; `exchange` waited for it, and fails."""

    conn: ConnectionId
    reason: str
    """`CONNECT`, `IDLE` (also for one that was idle for too long to be trusted) or `SURPLUS`."""
    exchange: ExchangeId | None = None


@attrs.define
class Refuse:
    """Past `PoolPolicy.max_waiting`."""

    exchange: ExchangeId


Decision: TypeAlias = Dial | Carry | Drop | Refuse


class _Need(Enum):
    """Which connection will do for an exchange."""

    ANY = auto()
    LASTING = auto()
    """One that the server will most likely not end just now."""
    NEW = auto()


class Pool:
    """The connections to one origin. Starts with none."""

    def __init__(
        self, policy: PoolPolicy = DEFAULT_POOL, numbers: Iterator[ConnectionId] | None = None
    ) -> None:
        self._policy = policy
        self._numbers = count(1) if numbers is None else numbers
        """Names connections: shared by the pools of one connector."""
        self._waiting: OrderedDict[ExchangeId, _Need] = OrderedDict()
        """Exchanges in order. To take the first of many from a plain dict takes longer each time."""
        self._again: OrderedDict[ExchangeId, _Need] = OrderedDict()
        """Those that come before them."""
        self._dialling: dict[ConnectionId, tuple[ExchangeId, _Need] | None] = {}
        """Connections being opened, and who is to be first on them; None: whoever comes."""
        self._idle: dict[ConnectionId, tuple[float, float]] = {}
        """From when, and until when each can be trusted. The one that is idle longest comes first."""
        self._busy: dict[ConnectionId, ExchangeId] = {}
        self._streams: dict[ConnectionId, float] = {}
        """Those with an event stream, and since when."""
        self._used: set[ConnectionId] = set()
        """Connections that carried an exchange to its end."""
        self._keeps = False
        """Whether the server is known to keep connections: it said so, or did."""
        self._decisions: deque[Decision] = deque()
        self._timers: Deadlines[ConnectionId] = Deadlines()

    # pulls ---------------------------------------------------------------------------------------

    def next_decision(self) -> Decision | None:
        """The next thing to do, or None."""
        return self._decisions.popleft() if self._decisions else None

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return self._timers.next()

    @property
    def waits(self) -> bool:
        """Whether an exchange waits for room."""
        return bool(self._waiting or self._again)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables, by name."""
        return {
            "waiting": len(self._waiting) + len(self._again),
            "dialling": len(self._dialling),
            "idle": len(self._idle),
            "busy": len(self._busy),
            "streams": len(self._streams),
            "decisions": len(self._decisions),
            "pool_timers": len(self._timers),
        }

    # inputs --------------------------------------------------------------------------------------

    def ask(self, exchange: ExchangeId, now: float, *, once: bool = False) -> None:
        """`exchange` wants a connection. `once`: its request must not be sent twice."""
        if len(self._waiting) >= self._policy.max_waiting:
            self._decisions.append(Refuse(exchange))
            return
        self._waiting[exchange] = _Need.LASTING if once else _Need.ANY
        self._assign(now)

    def ask_again(self, exchange: ExchangeId, now: float) -> None:
        """`exchange` wants a new connection, for the one it was on had ended. It has waited already."""
        self._again[exchange] = _Need.NEW
        self._assign(now)

    def forget(self, exchange: ExchangeId, now: float) -> None:
        """`exchange` waits no longer. Harmless for one that is on a connection, or none.

        A connection that is being opened for it is opened all the same.
        """
        self._waiting.pop(exchange, None)
        self._again.pop(exchange, None)
        for conn, whose in self._dialling.items():
            if whose is not None and whose[0] == exchange:
                self._dialling[conn] = None
        self._assign(now)

    def opened(self, conn: ConnectionId, now: float) -> None:
        """A connection is there."""
        whose = self._dialling.pop(conn)
        if whose is None:
            self._rest(conn, now, None, lasts=True)
        else:
            self._carry(conn, whose[0], reused=False)

    def streams(self, conn: ConnectionId, now: float) -> None:
        """What comes on `conn` is an event stream."""
        self._streams[conn] = now
        self._assign(now)

    def freed(self, conn: ConnectionId, now: float, keep: float | None, *, keeps: bool = False) -> None:
        """The exchange on `conn` is over; the server keeps it for `keep` seconds, None: unknown.

        `keeps`: it said that it does. Not every server that does says so.
        """
        del self._busy[conn]
        self._keeps = self._keeps or keeps or conn in self._used
        # What it said at the begin of a long stream may be old: at the end of one it may stop.
        stale = now - self._streams.pop(conn, now) >= self._policy.trusted_for
        self._used.add(conn)
        self._rest(conn, now, keep, lasts=self._keeps and not stale)

    def doubt(self, now: float) -> None:
        """A connection had ended that was thought to be open: others may have, too."""
        for conn, (since, until) in self._idle.items():
            self._idle[conn] = since, min(until, now)

    def ended(self, conn: ConnectionId, now: float) -> ExchangeId | None:
        """A connection is gone, or was never there. Returns the exchange that was to be carried on it."""
        whose = self._dialling.pop(conn, None)
        exchange = self._busy.pop(conn, None) if whose is None else whose[0]
        self._idle.pop(conn, None)
        self._streams.pop(conn, None)
        self._used.discard(conn)
        self._timers.clear(conn)
        self._assign(now)
        return exchange

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        # One by one: the end of one may take another that was due as well into use.
        for conn, reason in self._timers.expired(now):
            self._decisions.append(Drop(conn, reason, self.ended(conn, now)))

    # inside --------------------------------------------------------------------------------------

    @property
    def _room(self) -> bool:
        dialling = sum(whose is not None for whose in self._dialling.values())
        streams = min(len(self._streams), self._policy.max_streams)
        return dialling + len(self._busy) - streams < self._policy.max_requests

    def _assign(self, now: float) -> None:
        while self.waits and self._room:
            exchange, need = (self._again or self._waiting).popitem(last=False)
            conn = self._take_idle(now, need)
            if conn is not None:
                self._carry(conn, exchange, reused=conn in self._used)
                continue
            for conn, whose in self._dialling.items():
                if whose is None:
                    self._dialling[conn] = exchange, need
                    break
            else:
                dialled = next(self._numbers)
                self._dialling[dialled] = exchange, need
                self._timers.set(dialled, now + self._policy.connect_timeout, CONNECT)
                self._decisions.append(Dial(dialled))

    def _take_idle(self, now: float, need: _Need) -> ConnectionId | None:
        """The connection that was idle last and will do; None if there is none."""
        if need is _Need.NEW:
            return None
        for conn in list(reversed(self._idle)):
            since, until = self._idle[conn]
            if need is _Need.ANY or since <= now < until:
                del self._idle[conn]
                return conn
            if now >= until:
                del self._idle[conn]
                self._used.discard(conn)
                self._timers.clear(conn)
                self._decisions.append(Drop(conn, IDLE))
        return None

    def _carry(self, conn: ConnectionId, exchange: ExchangeId, *, reused: bool) -> None:
        self._timers.clear(conn)
        self._busy[conn] = exchange
        self._decisions.append(Carry(conn, exchange, reused))

    def _rest(self, conn: ConnectionId, now: float, keep: float | None, *, lasts: bool) -> None:
        """Nobody is on `conn`: give it away, or keep it.

        The server keeps it for `keep` seconds. `lasts`: it will not end just because a response came on it.
        """
        timeout = self._policy.idle_timeout
        until = now + (self._policy.trusted_for if keep is None else keep)
        self._idle[conn] = (now if lasts else now + SETTLED), until
        self._timers.set(conn, now + (timeout if keep is None else min(timeout, keep)), IDLE)
        self._assign(now)
        if conn not in self._idle:
            return
        does = (_Need.ANY, _Need.LASTING) if lasts and now < until else (_Need.ANY,)
        for dialled, whose in self._dialling.items():
            if whose is not None and whose[1] in does:
                self._dialling[dialled] = None
                del self._idle[conn]
                self._carry(conn, whose[0], reused=conn in self._used)
                return
        if len(self._idle) > self._policy.max_idle:
            oldest = next(iter(self._idle))
            self.ended(oldest, now)
            self._decisions.append(Drop(oldest, SURPLUS))
