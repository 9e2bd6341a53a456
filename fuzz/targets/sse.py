"""INVARIANT: whatever a stream holds and however it is cut, the event-stream decoder finds what the
plainest reading of the standard finds, holds no more than one event, and searches no byte more than
twice; and what the writer makes of any data is read back as that one event."""

from __future__ import annotations

import re

from fuzz.steps import Steps
from sansmcp.errors import LocalProtocolError, PeerFault
from sansmcp.wire.sse import MESSAGE, ServerSentEvent, SseDecoder, SseFault, encode_comment, encode_event

LIMITS = [24, 200, 5000]

Found = tuple[object, ...]


def shown(item: ServerSentEvent | SseFault) -> Found:
    if isinstance(item, SseFault):
        return (item.fault, item.head)
    return (item.event, item.data, item.id, item.retry)


def decode(chunks: list[bytes], max_event: int) -> list[Found]:
    decoder = SseDecoder(max_event)
    found: list[Found] = []

    def drain() -> None:
        while (item := decoder.next_event()) is not None:
            found.append(shown(item))
        held = decoder.stats()["buffered"]
        assert held <= max_event + 3, f"{held} bytes held of an event"

    for chunk in chunks:
        decoder.receive_data(chunk)
        drain()
    assert decoder.stats()["scanned"] <= 2 * sum(map(len, chunks))
    decoder.receive_eof()
    drain()
    found.append((decoder.last_event_id, decoder.retry, decoder.comments))
    return found


def model(stream: bytes, max_event: int) -> list[Found]:
    """What must come out, of a fault its kind alone."""
    found: list[Found] = []
    stream = stream.removeprefix(b"\xef\xbb\xbf")
    *lines, rest = re.split(rb"\r\n|\r|\n", stream)
    last: str | None = None
    retry: int | None = None
    comments = int(rest.startswith(b":"))

    data: list[bytes] = []
    fresh: str | None = None
    here: int | None = None
    kind, size = MESSAGE, 0
    for line in lines:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if line.startswith(b":"):
            comments += 1
        elif line:
            if size <= max_event:
                size += len(line)
                if size > max_event:
                    found.append((PeerFault.EVENT_TOO_LARGE,))
                    continue
            else:
                continue
            if name == b"data":
                data.append(value)
            elif name == b"event":
                kind = value.decode("utf-8", "replace") or MESSAGE
                if not is_utf8(value):
                    found.append((PeerFault.INVALID_UTF8,))
            elif name == b"id" and b"\0" not in value:
                if is_utf8(value):
                    fresh = value.decode("utf-8")
                else:
                    found.append((PeerFault.INVALID_UTF8,))
            elif name == b"retry" and re.fullmatch(rb"[0-9]{1,15}", value):
                retry = here = int(value)
        else:
            if size <= max_event:
                last = last if fresh is None else fresh or None
                if b"\n".join(data):
                    found.append((kind, b"\n".join(data), last, here))
            kind, fresh, here, data, size = MESSAGE, None, None, [], 0
    if size <= max_event:
        size += 0 if rest.startswith(b":") else len(rest)
        if size > max_event:
            found.append((PeerFault.EVENT_TOO_LARGE,))
        elif size:
            found.append((PeerFault.TRUNCATED_EVENT,))
    found.append((last, retry, comments))
    return found


def is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def check_writer(data: bytes, event: str, id_: str, retry: int) -> None:
    unclean = set("\r\n\0") & set(event + id_)
    try:
        written = encode_event(data, event=event, id=id_, retry=retry) + encode_comment(event)
    except LocalProtocolError:
        assert unclean, "refused without a reason"
        return
    assert not unclean, "a line end or NUL got into a field"
    text = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    event_or_none = [(event or MESSAGE, text, id_ or None, retry)] if text else []
    assert decode([written], len(written)) == [*event_or_none, (id_ or None, retry, 1)]


def one_input(data: bytes) -> None:
    steps = Steps(data)
    max_event = steps.choose(LIMITS)
    sizes = list(steps.take(steps.byte() % 8))
    stream = steps.take(len(data))

    whole = decode([stream], max_event)
    chunks: list[bytes] = []
    at = 0
    while at < len(stream):
        size = sizes[len(chunks) % len(sizes)] + 1 if sizes else 1
        chunks.append(stream[at : at + size])
        at += size
    assert decode(chunks, max_event) == whole, "the chunks make a difference"

    kinds = [item[:1] if isinstance(item[0], PeerFault) else item for item in whole]
    assert kinds == model(stream, max_event)

    third = len(stream) // 3
    event, id_ = stream[:third].decode("latin-1"), stream[third : 2 * third].decode("latin-1")
    check_writer(stream[2 * third :], event, id_, third)
