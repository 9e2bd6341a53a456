"""Strict JSON: bytes to values and back, with one verdict whatever library does the work.

Messages are UTF-8 (RFC 8259). On top of the grammar of that RFC, both codecs here

* refuse ``NaN`` and ``Infinity``, and numbers such as ``1e400`` that no float can hold;
* keep integers exact at any size up to the interpreter's own limit for converting digits
  (``sys.set_int_max_str_digits``, 4300 unless changed), and refuse longer ones;
* refuse nesting beyond a limit of ours, since each interpreter gives up somewhere else;
* keep a lone surrogate that came as an escape, and write it as one;
* write one compact line. Beside CR and LF the characters U+0085, U+2028 and U+2029 are escaped as
  well, because some readers take them for line ends.

`standard_codec` uses the standard library. `fast_codec` uses msgspec for what both read alike, and
leaves everything that msgspec refuses to the same strict reader, so that verdict and value are
equal on every input. `default_codec` begins with the one and goes on with the other.

Specification: 2026-07-28, basic (messages) and basic/transports.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from ..errors import LocalProtocolError, PeerFault
from ..limits import Limits
from .depth import nests_deeper

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""A decoded JSON value."""

JsonObject: TypeAlias = dict[str, JsonValue]
"""A decoded JSON object."""

DEFAULT_MAX_DEPTH: Final = Limits().max_depth
LARGEST_MAX_DEPTH: Final = 256
"""The deepest limit a codec can be given: every supported interpreter can still recurse that far."""

_FEW: Final = 200
"""Texts that msgspec is not loaded for."""

_LARGE: Final = 64 * 1024
"""Bytes of one text that it is loaded for at once."""

_SPACE: Final = " \t\n\r"


class JsonError(ValueError):
    """The text is no JSON, or JSON that is refused.

    `fault` is INVALID_UTF8, INVALID_JSON, JSON_TOO_DEEP or DUPLICATE_KEY. `position` is where: a
    byte offset for INVALID_UTF8 in bytes, a character offset otherwise, None when it is not known.
    The message never quotes the text.
    """

    def __init__(self, fault: PeerFault, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.fault: Final = fault
        self.position: Final = position


class UnencodableError(LocalProtocolError, ValueError):
    """A value has no JSON form. `path` says where in the value, as in ``$.content[0].text``."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path: Final = path


class CodecUnavailableError(LocalProtocolError, ImportError):
    """The library that the codec stands on is not installed."""


class JsonCodec(Protocol):
    """Reads and writes JSON by the rules of this module. Has no state; may be shared."""

    @property
    def name(self) -> str:
        """``"standard"`` or ``"fast"``."""
        ...

    @property
    def max_depth(self) -> int:
        """Deepest nesting of arrays and objects that is read or written."""
        ...

    def loads(self, data: bytes | bytearray | memoryview | str) -> JsonValue:
        """Return the value of the JSON text `data`. Raises JsonError."""
        ...

    def dumps(self, value: object) -> bytes:
        """Return `value` as one line of JSON in UTF-8, without a line end.

        Takes None, bool, int, float, str, and any mapping or sequence of them, subclasses
        included. Raises UnencodableError for everything else: keys that are no strings, NaN and
        infinities, bytes, sets, other objects, nesting beyond `max_depth`, cycles.
        """
        ...


def standard_codec(max_depth: int = DEFAULT_MAX_DEPTH, *, reject_duplicate_keys: bool = False) -> JsonCodec:
    """Return a codec that needs nothing but the standard library.

    `max_depth` counts nested arrays and objects, **128** unless given, at most 256. With
    `reject_duplicate_keys` an object with two equal keys is refused; else the last one counts.
    """
    return StandardCodec(max_depth, reject_duplicate_keys)


def fast_codec(max_depth: int = DEFAULT_MAX_DEPTH, *, reject_duplicate_keys: bool = False) -> JsonCodec:
    """Return a codec that uses msgspec. Parameters and results are those of `standard_codec`.

    Raises CodecUnavailableError if msgspec is not installed. With `reject_duplicate_keys` reading is
    no faster than with the standard codec, for msgspec does not tell about duplicates.
    """
    return FastCodec(max_depth, reject_duplicate_keys)


def default_codec(max_depth: int = DEFAULT_MAX_DEPTH, *, reject_duplicate_keys: bool = False) -> JsonCodec:
    """Return a codec that is `standard_codec` at first, and `fast_codec` as soon as that pays: same results.

    Loading msgspec takes as long as some thousand small messages. A process that makes one call and
    leaves does without; it is loaded after 200 texts, or for a text of 64 KiB, where it is installed.
    """
    if sys.modules.get("msgspec") is not None:
        return FastCodec(max_depth, reject_duplicate_keys)
    return DefaultCodec(max_depth, reject_duplicate_keys)


class StandardCodec:
    """The codec over the standard library; see `standard_codec`."""

    __slots__ = ("_decode", "_encode", "max_depth", "reject_duplicate_keys")
    name = "standard"

    def __init__(self, max_depth: int, reject_duplicate_keys: bool) -> None:
        if not 1 <= max_depth <= LARGEST_MAX_DEPTH:
            raise LocalProtocolError(f"max_depth must be 1…{LARGEST_MAX_DEPTH}, not {max_depth}")
        self.max_depth: Final = max_depth
        self.reject_duplicate_keys: Final = reject_duplicate_keys
        self._decode: Final = json.JSONDecoder(
            parse_float=_finite_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique_keys if reject_duplicate_keys else None,
        ).raw_decode
        # A cycle ends in RecursionError, which is dealt with; looking for one costs on every call.
        self._encode: Final = json.JSONEncoder(
            ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
        ).encode

    def loads(self, data: bytes | bytearray | memoryview | str) -> JsonValue:
        """See `JsonCodec.loads`."""
        encoded = _utf8(data)
        text = data if isinstance(data, str) else _text(encoded)
        start = 0
        if text[:1] <= " ":
            start = len(text) - len(text.lstrip(_SPACE))
        value: JsonValue
        try:
            value, end = self._decode(text, start)
            if end != len(text) and text[end:].strip(_SPACE):
                raise JsonError(PeerFault.INVALID_JSON, "text after the value", end)
        except (ValueError, RecursionError) as exc:
            refusal = self._refusal(encoded, exc)
        else:
            # The reader guards its own stack, so this can wait until the text is known to be JSON.
            if len(encoded) <= 2 * self.max_depth or not nests_deeper(encoded, self.max_depth):
                return value
            refusal = _too_deep(self.max_depth)
        # Out here, so that it does not carry the error of the library along, which holds the text.
        raise refusal

    def dumps(self, value: object) -> bytes:
        """See `JsonCodec.dumps`."""
        try:
            text = self._encode(value)
            plain = _is_plain(value, self.max_depth)
        except (TypeError, ValueError, RecursionError):
            plain = False
            text = ""
        if not plain:
            # Either this names what is wrong, or it makes plain values of subclasses.
            text = self._encode(_plain_copy(value, self.max_depth))
        # A lone surrogate is the only thing that UTF-8 has no bytes for, and the form that this
        # error handler writes for it is the JSON escape.
        return _one_line(text.encode("utf-8", "backslashreplace"))

    def _refusal(self, data: bytes | bytearray, cause: Exception) -> JsonError:
        """Choose the error for a text that could not be read, by the text alone.

        How deep a reader comes before it gives up depends on the stack it was called on, so the
        depth is looked at first.
        """
        if nests_deeper(data, self.max_depth):
            return _too_deep(self.max_depth)
        if isinstance(cause, RecursionError):
            return JsonError(PeerFault.JSON_TOO_DEEP, "nested deeper than the caller left stack for")
        if isinstance(cause, JsonError):
            return cause
        if isinstance(cause, json.JSONDecodeError):
            return JsonError(PeerFault.INVALID_JSON, f"{cause.msg} at character {cause.pos}", cause.pos)
        return JsonError(PeerFault.INVALID_JSON, "an integer with too many digits")


class FastCodec(StandardCodec):
    """The codec over msgspec; see `fast_codec`."""

    __slots__ = ("_fast_decode", "_fast_encode")
    name = "fast"

    def __init__(self, max_depth: int, reject_duplicate_keys: bool) -> None:
        try:
            import msgspec
        except ImportError as exc:
            raise CodecUnavailableError(
                "the fast codec needs msgspec: install sansmcp[fast], or use standard_codec()"
            ) from exc
        super().__init__(max_depth, reject_duplicate_keys)
        self._fast_decode: Final[Callable[[Any], Any]] = msgspec.json.Decoder().decode
        self._fast_encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode

    def loads(self, data: bytes | bytearray | memoryview | str) -> JsonValue:
        """See `JsonCodec.loads`."""
        if self.reject_duplicate_keys:
            return super().loads(data)
        encoded = data if type(data) is bytes else _utf8(data)
        value: JsonValue
        try:
            value = self._fast_decode(encoded)
        except Exception:
            # It refuses some texts that are fine (lone surrogates, the longest negative integers),
            # and its reasons are not ours.
            pass
        else:
            if len(encoded) > 2 * self.max_depth and nests_deeper(encoded, self.max_depth):
                raise _too_deep(self.max_depth)
            return value
        return super().loads(data)

    def dumps(self, value: object) -> bytes:
        """See `JsonCodec.dumps`."""
        try:
            data = self._fast_encode(value)
            # msgspec has a form for much that is no JSON: bytes, sets, dates, NaN, integer keys.
            usable = _is_plain(value, self.max_depth)
        except Exception:
            usable = False
            data = b""
        return _one_line(data) if usable else super().dumps(value)


class DefaultCodec:
    """The codec over what pays; see `default_codec`."""

    __slots__ = ("_codec", "_left")

    def __init__(self, max_depth: int, reject_duplicate_keys: bool) -> None:
        self._codec = StandardCodec(max_depth, reject_duplicate_keys)
        self._left = _FEW

    @property
    def name(self) -> str:
        """See `JsonCodec.name`: what it is now."""
        return self._codec.name

    @property
    def max_depth(self) -> int:
        """See `JsonCodec.max_depth`."""
        return self._codec.max_depth

    def loads(self, data: bytes | bytearray | memoryview | str) -> JsonValue:
        """See `JsonCodec.loads`."""
        if self._left:
            self._spend(len(data))
        return self._codec.loads(data)

    def dumps(self, value: object) -> bytes:
        """See `JsonCodec.dumps`."""
        if self._left:
            self._spend(0)
        return self._codec.dumps(value)

    def _spend(self, size: int) -> None:
        self._left = 0 if size >= _LARGE else self._left - 1
        if self._left == 0:
            with suppress(CodecUnavailableError):
                self._codec = FastCodec(self._codec.max_depth, self._codec.reject_duplicate_keys)


def _utf8(data: bytes | bytearray | memoryview | str) -> bytes | bytearray:
    """Return `data` as bytes. Raises JsonError for a str with a surrogate, which has no such form."""
    if isinstance(data, str):
        try:
            return data.encode()
        except UnicodeEncodeError as exc:
            at = exc.start
        raise JsonError(PeerFault.INVALID_UTF8, f"a bare surrogate at character {at}", at)
    return bytes(data) if isinstance(data, memoryview) else data


def _text(data: bytes | bytearray) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as exc:
        at, reason = exc.start, exc.reason
    raise JsonError(PeerFault.INVALID_UTF8, f"not UTF-8 at byte {at}: {reason}", at)


def _finite_float(literal: str) -> float:
    value = float(literal)
    if value - value != 0.0:
        raise JsonError(PeerFault.INVALID_JSON, "a number that is too large for a float")
    return value


def _refuse_constant(literal: str) -> NoReturn:
    raise JsonError(PeerFault.INVALID_JSON, f"{literal} is no JSON")


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonError(PeerFault.DUPLICATE_KEY, "an object has two equal keys")
    return members


def _too_deep(limit: int) -> JsonError:
    return JsonError(PeerFault.JSON_TOO_DEEP, f"nested deeper than {limit}")


_LEAVES: Final = frozenset({str, int, bool, type(None)})


def _is_plain(value: Any, depth: int) -> bool:
    """Whether `value` is made of exactly the types that JSON has, with no float out of its range, and
    with arrays and objects nested no deeper than `depth`."""
    kind = type(value)
    members: Any
    if kind is dict:
        for name in value:
            if type(name) is not str:
                return False
        members = value.values()
    elif kind is list:
        members = value
    else:
        return kind in _LEAVES or (kind is float and value - value == 0.0)
    if not depth:
        return False
    for member in members:
        kind = type(member)
        if kind is str or kind in _LEAVES:
            continue
        if kind is float:
            if member - member != 0.0:
                return False
        elif not _is_plain(member, depth - 1):
            return False
    return True


def _plain_copy(value: object, max_depth: int) -> JsonValue:
    """Return `value` made of JSON's own types. Raises UnencodableError with the path of a fault."""
    path: list[str] = ["$"]
    try:
        return _plain_value(value, path, max_depth)
    except RecursionError:
        raise UnencodableError("$", "nested deeper than the caller left stack for") from None


def _plain_value(value: object, path: list[str], room: int) -> JsonValue:
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            number = int.__int__(value)
            try:
                int.__repr__(number)
            except ValueError:
                raise _unencodable(path, "an integer with too many digits") from None
            return number
        case float():
            if value - value != 0.0:
                raise _unencodable(path, f"{float.__repr__(value)} is no JSON")
            return float.__float__(value)
        case Mapping():
            if not room:
                raise _unencodable(path, "nested too deep, or a cycle")
            members: JsonObject = {}
            for key, member in value.items():
                if not isinstance(key, str):
                    raise _unencodable(path, f"a key of type {type(key).__name__}")
                key = str.__str__(key)
                path.append(_step(key))
                members[key] = _plain_value(member, path, room - 1)
                path.pop()
            return members
        case Sequence() if not isinstance(value, (bytes, bytearray, memoryview, array)):
            if not room:
                raise _unencodable(path, "nested too deep, or a cycle")
            items: list[JsonValue] = []
            for index, member in enumerate(value):
                path.append(f"[{index}]")
                items.append(_plain_value(member, path, room - 1))
                path.pop()
            return items
        case _:
            raise _unencodable(path, f"{type(value).__name__} has no JSON form")


def _unencodable(path: list[str], problem: str) -> UnencodableError:
    steps = path if len(path) <= 16 else [*path[:8], " … ", *path[-8:]]
    return UnencodableError("".join(steps), problem)


def _step(key: str) -> str:
    shown = key if len(key) <= 64 else key[:63] + "…"
    return f".{shown}" if key.isidentifier() else f"[{shown!r}]"


def _one_line(data: bytes) -> bytes:
    """Escape what some readers take for a line end. Inside of JSON it can only be in a string."""
    if not data.isascii():
        if b"\xe2\x80" in data:
            data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
        if b"\xc2\x85" in data:
            data = data.replace(b"\xc2\x85", b"\\u0085")
    return data
