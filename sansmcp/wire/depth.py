"""How deep a JSON text nests, found from its bytes.

No interpreter has the same idea of what is too deep, and some have none but the end of their stack.
This measure is ours, and is equal for every reader. It is exact for JSON, some fixed function of
the bytes for anything else, and linear for all of them; nearly all of the work is done in C.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Final

_SHORT: Final = 4096
_WINDOW: Final = 1 << 18
_NOT_SYNTAX: Final = bytes(set(range(256)) - set(b'[{]}"'))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: +1 and -1
_PASSES: Final = 16


def nests_deeper(data: bytes | bytearray, limit: int) -> bool:
    """Whether arrays and objects in the JSON text `data` nest deeper than `limit`."""
    if len(data) < _SHORT:
        if data.count(b"[") + data.count(b"{") <= limit:
            return False
    elif not _has_more_brackets(data, limit):
        return False
    depth = 0
    inside = 0  # 1 while a window begins within a string
    carry = b""
    # In windows, lest a text of nothing but quotes grows into a list many times its size.
    for start in range(0, len(data), _WINDOW):
        part = carry + data[start : start + _WINDOW]
        carry = b""
        if b"\\" in part:
            part = part.replace(b"\\\\", b"")
            if part.endswith(b"\\"):
                part, carry = part[:-1], b"\\"
            part = part.replace(b'\\"', b"")
        # Two quotes with no bracket between them change nothing for the brackets around them. What
        # is left of strings after that are the few with a bracket inside: every second piece.
        pieces = part.translate(None, _NOT_SYNTAX).replace(b'""', b"").split(b'"')
        steps = b"".join(pieces[inside::2]).translate(_STEPS)
        inside ^= (len(pieces) - 1) & 1
        if _climbs_over(steps, limit - depth):
            return True
        depth += 2 * steps.count(b"\x01") - len(steps)
    return False


def _has_more_brackets(data: bytes | bytearray, limit: int) -> bool:
    # Searching is many times faster than counting where there is little to find, as in a message
    # that is one large text; and where there is much, it is over soon.
    for bracket in (b"[", b"{"):
        at = data.find(bracket)
        while at >= 0:
            limit -= 1
            if limit < 0:
                return True
            at = data.find(bracket, at + 1)
    return False


def _climbs_over(steps: bytes, room: int) -> bool:
    """Whether the running sum of `steps` exceeds `room` somewhere."""
    # To take out all neighbours "one up, one down" lowers no peak by more than one, and common
    # messages are used up by a few rounds of it. Only then is it worth to look at single steps.
    rest = steps
    for taken in range(1, _PASSES):
        rest = rest.replace(b"\x01\xff", b"")
        if rest.count(b"\x01") + taken <= room:
            return False
    return next(filter(room.__lt__, accumulate(array("b", steps))), None) is not None
