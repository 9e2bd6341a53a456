"""The decision about the era, as tables: what can come back, put to the functions that decide."""

from __future__ import annotations

from typing import Any, Final

from docs_text import attribute_docs, table

from sansmcp.revisions import ALL_REVISIONS, Era
from sansmcp.session import era

_LIST: Final = ("2026-07-28", "2025-11-25")
_MODERN_ONLY: Final = tuple(r for r in ALL_REVISIONS if r.era is Era.MODERN)
_HTTP: Final = era.TransportKind.HTTP
O = era.Outcome  # noqa: E741  (the rows below read as a table)


def _error(code: int, data: Any = None) -> era.ProbeOutcome:
    return era.ProbeOutcome(kind=O.ERROR, code=code, data=data)


def _status(code: int) -> era.ProbeOutcome:
    return era.ProbeOutcome(kind=O.HTTP_STATUS, status=code)


def _redirect(code: int, same_origin: bool) -> era.ProbeOutcome:
    return era.ProbeOutcome(kind=O.REDIRECT, status=code, same_origin=same_origin)


def _supports(*versions: str) -> dict[str, Any]:
    return {"supported": list(versions), "requested": "2026-07-28"}


PROBE_CASES: Final[tuple[tuple[str, era.ProbeOutcome, dict[str, Any]], ...]] = (
    ("a result that lists 2026-07-28", era.ProbeOutcome(kind=O.DISCOVERED, versions=_LIST), {}),
    (
        "a result that lists legacy versions only",
        era.ProbeOutcome(kind=O.DISCOVERED, versions=("2025-06-18", "2025-03-26")),
        {},
    ),
    (
        "a result that lists no version of ours",
        era.ProbeOutcome(kind=O.DISCOVERED, versions=("2031-01-01",)),
        {},
    ),
    (
        "error -32022, which names a modern version not refused yet",
        _error(-32022, _supports("2026-07-28")),
        {},
    ),
    (
        "the same: that version was refused",
        _error(-32022, _supports("2026-07-28")),
        {"tried": frozenset({"2026-07-28"})},
    ),
    (
        "the same once more",
        _error(-32022, _supports("2026-07-28")),
        {"tried": frozenset({"2026-07-28"}), "insisted": True},
    ),
    ("error -32022, which names legacy versions", _error(-32022, _supports("2025-11-25", "2025-06-18")), {}),
    ("error -32022, which names nothing of ours", _error(-32022, _supports("2031-01-01")), {}),
    ("error -32022 without a usable list", _error(-32022, {"supported": "2026-07-28"}), {}),
    ("error -32020", _error(-32020), {}),
    ("error -32021", _error(-32021), {}),
    ("error -32601", _error(-32601), {}),
    ("any other error, such as -32602 or 1", _error(1), {}),
    (
        "any other error, and only modern versions are allowed",
        _error(-32601),
        {"offered": _MODERN_ONLY},
    ),
    (
        "neither a result nor an error, or an error without an id",
        era.ProbeOutcome(kind=O.MALFORMED, detail="no list supportedVersions"),
        {},
    ),
    ("silence on a stream", era.ProbeOutcome(kind=O.SILENCE), {}),
    ("silence over HTTP", era.ProbeOutcome(kind=O.SILENCE), {"transport": _HTTP}),
    (
        'silence over HTTP, with `http_silence="error"`',
        era.ProbeOutcome(kind=O.SILENCE),
        {"transport": _HTTP, "http_silence": "error"},
    ),
    ("the server ends", era.ProbeOutcome(kind=O.EXITED), {}),
    ("the server ends a second time", era.ProbeOutcome(kind=O.EXITED), {"restarted": True}),
    ("HTTP 401 or 403", _status(401), {"transport": _HTTP}),
    ("HTTP 400, 404 or 405 without a modern error", _status(404), {"transport": _HTTP}),
    ("HTTP 429 or 5xx", _status(503), {"transport": _HTTP}),
    ("HTTP 307 or 308 within the origin", _redirect(307, True), {"transport": _HTTP}),
    ("HTTP 307 or 308 to another origin", _redirect(308, False), {"transport": _HTTP}),
    ("HTTP 301, 302 or 303", _redirect(302, True), {"transport": _HTTP}),
    (
        "no connection",
        era.ProbeOutcome(kind=O.NETWORK_ERROR, detail="connection refused"),
        {"transport": _HTTP},
    ),
)
"""What can come back for the probe, in words and as data. A test asks that no outcome is missing."""

HANDSHAKE_CASES: Final[tuple[tuple[str, era.ProbeOutcome, dict[str, Any]], ...]] = (
    (
        "error -32020, -32021 or -32022, after a probe that nobody answered",
        _error(-32022),
        {"probed": O.SILENCE},
    ),
    (
        "any error, after a probe that was answered too late",
        _error(-32601),
        {"probed": O.SILENCE, "late": True},
    ),
    (
        "the same, after the second probe",
        _error(-32601),
        {"probed": O.SILENCE, "late": True, "reprobed": True},
    ),
    ("error -32022, after a probe that was answered", _error(-32022), {"probed": O.ERROR}),
    ("any error, where a remembered verdict led here", _error(-32601), {"remembered": True}),
    ("any other error", _error(-32602), {"probed": O.ERROR}),
    (
        "the server ends, after a probe that nobody answered",
        era.ProbeOutcome(kind=O.EXITED),
        {"probed": O.SILENCE},
    ),
    (
        "the server ends a second time",
        era.ProbeOutcome(kind=O.EXITED),
        {"probed": O.SILENCE, "restarted": True},
    ),
    (
        "the server ends, after a probe that was answered",
        era.ProbeOutcome(kind=O.EXITED),
        {"probed": O.ERROR},
    ),
    ("HTTP 400, 404 or 405", _status(405), {"probed": O.HTTP_STATUS, "transport": _HTTP}),
    ("HTTP 401 or 403", _status(403), {"probed": O.HTTP_STATUS, "transport": _HTTP}),
    ("no usable answer", era.ProbeOutcome(kind=O.MALFORMED), {}),
)
"""What a failed `initialize` can come back with."""


def probe_table() -> str:
    """What each answer to the probe leads to, as `classify_probe` says."""
    rows = []
    for words, outcome, context in PROBE_CASES:
        step = era.classify_probe(outcome, era.ProbeContext(**context))
        revision = "" if step.revision is None else f"`{step.revision}`"
        rows.append([words, f"`{step.step.name}`", revision, step.reason])
    return table(["what comes back", "next step", "with", "evidence that is kept"], rows)


def handshake_table() -> str:
    """What each failure of `initialize` leads to, as `classify_handshake` says."""
    rows = []
    for words, outcome, context in HANDSHAKE_CASES:
        step = era.classify_handshake(outcome, era.HandshakeContext(**context))
        rows.append([words, f"`{step.name}`"])
    return table(["`initialize` comes back with", "next step"], rows)


def steps_table() -> str:
    """The steps, with notes where the name alone does not tell."""
    notes = {
        "SPEAK_MODERN": "The era is modern; calls that wait leave now.",
        "INITIALIZE": "Open with the handshake, offering the version in the column *with*.",
        "FOLLOW_REDIRECT": "Ask again at the new address, method and body kept.",
        "NO_COMMON_VERSION": "End with `NoCommonVersion`, which names both lists.",
    }
    docs = attribute_docs(era.Step)
    rows = [[f"`{m.name}`", docs.get(m.name) or notes.get(m.name, "–")] for m in era.Step]
    return table(["step", "meaning"], rows)
