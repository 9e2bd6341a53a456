"""INVARIANT: whatever a stream holds and however it is cut, the line decoder finds what a split at
0x0A finds, holds no more than one line, and searches no byte more than twice."""

from __future__ import annotations

from fuzz.steps import Steps
from sansmcp.errors import PeerFault
from sansmcp.wire.lines import LineDecoder, LineFault
from sansmcp.wire.peek import HEAD_SIZE, TAIL_SIZE

LIMITS = [16, 128, 5000]
BOM = b"\xef\xbb\xbf"

Found = tuple[object, ...]


def decode(chunks: list[bytes], max_message: int, eof: bool) -> list[Found]:
    decoder = LineDecoder(max_message)
    found: list[Found] = []
    for chunk in chunks:
        decoder.receive_data(chunk)
        drain(decoder, found)
        held = decoder.stats()["buffered"]
        assert held <= max_message + HEAD_SIZE + TAIL_SIZE, f"{held} bytes held of a line"
    if eof:
        decoder.receive_eof()
        drain(decoder, found)
    assert decoder.stats()["scanned"] <= 2 * sum(map(len, chunks))
    return found


def drain(decoder: LineDecoder, found: list[Found]) -> None:
    while (item := decoder.next_line()) is not None:
        if isinstance(item, LineFault):
            found.append((item.fault, item.id, item.like_response, item.head))
        else:
            found.append((item,))


def model(stream: bytes, max_message: int, eof: bool) -> list[Found]:
    """What must come out, found in the plainest way; of a line that is too long the fault alone."""
    found: list[Found] = []
    if stream.startswith(BOM):
        found.append((PeerFault.BYTE_ORDER_MARK,))
        stream = stream[len(BOM) :]
    *lines, rest = stream.split(b"\n")
    header_seen = False
    for line in lines:
        text = line.removesuffix(b"\r")
        name, colon, length = text.partition(b":")
        if len(line) > max_message:
            found.append((PeerFault.MESSAGE_TOO_LARGE,))
        elif not text or text.isspace():
            continue
        elif (
            not header_seen
            and colon
            and name.rstrip(b" \t").lower() == b"content-length"
            and length.strip(b" \t").isdigit()
        ):
            header_seen = True
            found.append((PeerFault.HEADER_FRAMING,))
        else:
            found.append((text,))
    if len(rest) > max_message and eof:
        found.append((PeerFault.MESSAGE_TOO_LARGE,))
    elif rest and eof and not rest.isspace():
        found.append((PeerFault.TRUNCATED_MESSAGE,))
    return found


def one_input(data: bytes) -> None:
    steps = Steps(data)
    kind = steps.byte()
    max_message = LIMITS[kind % len(LIMITS)]
    eof = kind & 0x40 != 0
    sizes = list(steps.take(steps.byte() % 8))
    stream = steps.take(len(data))

    whole = decode([stream], max_message, eof)
    chunks: list[bytes] = []
    at = 0
    while at < len(stream):
        size = sizes[len(chunks) % len(sizes)] + 1 if sizes else 1
        chunks.append(stream[at : at + size])
        at += size
    assert decode(chunks, max_message, eof) == whole, "the chunks make a difference"

    expected = model(stream, max_message, eof)
    kinds = [item[:1] for item in whole]
    if not eof and kinds[-1:] == [(PeerFault.MESSAGE_TOO_LARGE,)] and len(kinds) == len(expected) + 1:
        kinds.pop()  # a line without end is told before it ends
    assert kinds == expected
    for item in whole:
        head = item[-1]
        assert isinstance(head, bytes)
        assert len(head) <= (max_message if len(item) == 1 else HEAD_SIZE)
