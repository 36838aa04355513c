"""Reads a stream of text in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from udfs.capture.storage import ByteStream

# The Metadata of 200,000 partitions is a line of about 40 MB.
MOST_LINE_BYTES = 64 << 20


@dataclass(frozen=True)
class LineBlock:
    """Whole lines, and where they begin: `first_byte` in the stream, `first_line` from 0."""

    first_byte: int
    first_line: int
    content: bytes


def line_blocks(
    stream: ByteStream, *, first_byte: int = 0, first_line: int = 0, length: int | None = None, block_bytes: int
) -> Iterator[LineBlock]:
    """The lines of the next `length` bytes of a stream, or of all of it, in blocks of about `block_bytes`.

    A line that is longer than MOST_LINE_BYTES is cut there. The last line may lack its newline.
    """
    at, line, begun = first_byte, first_line, b""
    for fresh in _read_blocks(stream, length, block_bytes):
        read = len(fresh)
        if len(begun) == MOST_LINE_BYTES:  # inside a line that is cut: only its end matters
            fresh = fresh[fresh.find(b"\n") :] if b"\n" in fresh else b""
        data = begun + fresh
        end = data.rfind(b"\n") + 1
        if end:
            block = LineBlock(at, line, data[:end])
            yield block
            line += block.content.count(b"\n")
        first_byte += read
        at = first_byte - (len(data) - end) if end else at
        begun = data[end:][:MOST_LINE_BYTES]
    if begun:
        yield LineBlock(at, line, begun)


def _read_blocks(stream: ByteStream, length: int | None, block_bytes: int) -> Iterator[bytes]:
    buffer = bytearray(block_bytes)
    left = length
    while left is None or left > 0:
        size = stream.readinto(memoryview(buffer)[: block_bytes if left is None else min(left, block_bytes)])
        if size == 0:
            return
        left = None if left is None else left - size
        yield bytes(buffer[:size])
