"""Drawings for the pages: SVG text, made from data. Knows nothing of Sphinx and fetches nothing."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from sansmcp.states import Table


def _open(kind: str, width: int, height: int, told: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg class="{kind}" {size} role="img" aria-label="{escape(told)}">'


# state diagrams ----------------------------------------------------------------------------------
#
# States stand in a column. Each input that a state takes has a row beside it, from which a line
# leads to the state that comes next. Lines with the same input and the same end share one vertical
# lane, so a lane is all the ways in which one thing happens.

ROW: Final = 19
GAP: Final = 16
LANE: Final = 19
BEND: Final = 6
LEFT: Final = 26
BOX: Final = 128
LETTER: Final = 7.3
"""Width of a letter in the drawing's font, near enough."""

COLOURS: Final = 8


def state_diagram(table: Table[Any, Any]) -> str:
    """The whole of `table` as one drawing."""
    lanes = _lanes(table)
    rows = _rows(table, lanes)
    labels = LETTER * max(len(i.name) for row in table.transitions.values() for i in row) + 22
    start = LEFT + BOX
    first_lane = start + labels + 4
    slots = _slots(lanes, rows)
    width = round(first_lane + LANE * (max(slots.values()) + 1))
    height = max(bottom for _, bottom in rows.boxes.values()) + 6

    out = [_open("state-diagram", width, height, f"{table.name}: state diagram")]
    for number, (lane, sources) in enumerate(lanes.items()):
        trigger, target = lane
        x = first_lane + LANE * slots[lane]
        end_y = rows.entries[lane]
        paths = [(source, _path(start, rows.exits[source, trigger], x, end_y)) for source in sources]
        out.append(f'<g class="lane lane-{number % COLOURS}">')
        # What crosses a line passes over it with a gap on both sides.
        out += [f'<path class="under" d="{path}"/>' for _, path in paths]
        for source, path in paths:
            out.append(
                f'<path class="line" d="{path}" data-from="{source.name}" data-input="{trigger.name}" '
                f'data-to="{target.name}"><title>{source.name}: {trigger.name} → {target.name}</title></path>'
            )
        out.append(f'<path class="head" d="M{start + 1},{end_y} l9,-4.5 v9 z"/>')
        out.append("</g>")
    for (_, trigger), y in rows.exits.items():
        out.append(f'<text class="input" x="{start + 12}" y="{y + 4}">{trigger.name}</text>')
    for state, (top, bottom) in rows.boxes.items():
        out += _box(table, state, top, bottom)
    out.append("</svg>")
    return "\n".join(out)


class _Rows:
    """Where everything stands on the vertical axis."""

    def __init__(self) -> None:
        self.boxes: dict[Any, tuple[int, int]] = {}
        self.exits: dict[tuple[Any, Any], int] = {}
        self.entries: dict[tuple[Any, Any], int] = {}


def _lanes(table: Table[Any, Any]) -> dict[tuple[Any, Any], list[Any]]:
    """(input, next state) → the states in which that input leads there."""
    lanes: dict[tuple[Any, Any], list[Any]] = {}
    for state, row in table.transitions.items():
        for trigger, target in row.items():
            lanes.setdefault((trigger, target), []).append(state)
    return lanes


def _rows(table: Table[Any, Any], lanes: dict[tuple[Any, Any], list[Any]]) -> _Rows:
    rows = _Rows()
    y = 6
    for state, row in table.transitions.items():
        top = y
        y += 5
        for lane in lanes:
            if lane[1] is state:
                rows.entries[lane] = y + ROW // 2
                y += ROW
        for trigger in row:
            rows.exits[state, trigger] = y + ROW // 2
            y += ROW
        y = max(y + 5, top + 30)
        rows.boxes[state] = (top, y)
        y += GAP
    return rows


def _slots(lanes: dict[tuple[Any, Any], list[Any]], rows: _Rows) -> dict[tuple[Any, Any], int]:
    """A column per lane: short ones near the boxes, and no two in one column that would touch."""
    spans = {}
    for lane, sources in lanes.items():
        ends = [rows.entries[lane], *(rows.exits[source, lane[0]] for source in sources)]
        spans[lane] = (min(ends), max(ends))
    slots: dict[tuple[Any, Any], int] = {}
    for lane in sorted(lanes, key=lambda lane: (spans[lane][1] - spans[lane][0], spans[lane][0])):
        low, high = spans[lane]
        slot = 0
        while any(
            slots[other] == slot and low <= spans[other][1] + BEND and spans[other][0] <= high + BEND
            for other in slots
        ):
            slot += 1
        slots[lane] = slot
    return slots


def _path(start: float, from_y: int, x: float, to_y: int) -> str:
    """Out of a box, along the lane, and back into a box."""
    bend = BEND if to_y > from_y else -BEND
    return (
        f"M{start},{from_y} H{x - BEND:g} Q{x:g},{from_y} {x:g},{from_y + bend} "
        f"V{to_y - bend} Q{x:g},{to_y} {x - BEND:g},{to_y} H{start + 8}"
    )


def _box(table: Table[Any, Any], state: Any, top: int, bottom: int) -> list[str]:
    final = not table.transitions[state]
    middle = (top + bottom) / 2
    size = f'width="{BOX}" height="{bottom - top}"'
    box = [f'<rect class="state" data-state="{state.name}" x="{LEFT}" y="{top}" {size} rx="6"/>']
    if final:
        box.append(
            f'<rect class="final" x="{LEFT + 3}" y="{top + 3}" width="{BOX - 6}" '
            f'height="{bottom - top - 6}" rx="4"/>'
        )
    if state is table.initial:
        box.append(f'<circle class="initial" cx="7" cy="{middle:g}" r="5"/>')
        box.append(f'<path class="initial" d="M10,{middle:g} H{LEFT - 6}"/>')
        box.append(f'<path class="initial" d="M{LEFT},{middle:g} l-8,-4 v8 z"/>')
    box.append(f'<text class="name" x="{LEFT + BOX / 2:g}" y="{middle + 4:g}">{state.name}</text>')
    return box


# the flow ----------------------------------------------------------------------------------------


def _rect(x: int, y: int, width: int, height: int, kind: str = "part") -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="7"/>'


def _text(x: float, y: float, text: str, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _arrow(x1: int, x2: int, y: int, label: str, kind: str = "flow") -> str:
    head = 8 if x2 > x1 else -8
    middle = (x1 + x2) / 2
    return (
        f'<path class="{kind}" d="M{x1},{y} H{x2 - head}"/>'
        f'<path class="{kind}-head" d="M{x2},{y} l{-head},-4.5 v9 z"/>' + _text(middle, y - 6, label, "arrow")
    )


def flow_diagram() -> str:
    """What crosses which border: the outside, the transport, the engine, the application."""
    width, height = 736, 318
    out = [_open("flow-diagram", width, height, "Bytes and messages go in, ops and events come out")]
    out.append(_rect(4, 30, 90, 204, "outside"))
    for line, text in enumerate(("stdio", "TCP", "unix socket", "memory")):
        out.append(_text(49, 92 + 27 * line, text))
    out.append(_rect(182, 30, 370, 204, "core"))
    out.append(_text(367, 21, "sansmcp: no socket, no task, no clock", "caption"))
    out.append(_rect(192, 44, 116, 180))
    out.append(_text(250, 64, "transport", "title"))
    out.append(_text(250, 84, "StdioClient", "code"))
    out.append(_text(250, 101, "LineClient", "code"))
    out.append(_text(250, 118, "LineServer", "code"))
    for line, text in enumerate(("lines", "process", "back-pressure")):
        out.append(_text(250, 158 + 19 * line, text, "note"))
    out.append(_rect(426, 44, 116, 180))
    out.append(_text(484, 64, "engine", "title"))
    out.append(_text(484, 84, "ClientEngine", "code"))
    out.append(_text(484, 101, "ServerEngine", "code"))
    for line, text in enumerate(("JSON-RPC", "era", "calls", "deadlines")):
        out.append(_text(484, 139 + 19 * line, text, "note"))
    out.append(_rect(640, 30, 92, 204, "outside"))
    out.append(_text(686, 128, "your", "label"))
    out.append(_text(686, 146, "application", "label"))

    out.append(_arrow(94, 192, 88, "bytes"))
    out.append(_arrow(192, 94, 128, "ops", "back"))
    out.append(_arrow(308, 426, 88, "messages"))
    out.append(_arrow(426, 308, 128, "messages", "back"))
    out.append(_arrow(542, 640, 88, "events"))
    out.append(_arrow(640, 542, 128, "verbs", "back"))
    out.append(_arrow(94, 192, 188, "now", "time"))
    out.append(_arrow(192, 94, 214, "timeout", "time"))

    out.append('<path class="bracket" d="M4,250 v10 H636 v-10"/>')
    out.append(
        _text(320, 279, "4  a binding carries out the ops, keeps the timer, and gives back results", "level")
    )
    out.append(_text(143, 50, "3  bytes", "level"))
    out.append(_text(367, 50, "1  messages", "level"))
    out.append(_text(320, 304, "2  exchanges: HTTP requests and responses", "later"))
    out.append("</svg>")
    return "\n".join(out)


__all__ = ["flow_diagram", "state_diagram"]
