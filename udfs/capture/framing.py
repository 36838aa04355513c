"""Kafka frames in a stream of bytes with holes: where each begins, how much of it is there, and when it came.

A frame is a 4-byte size and that many bytes (kafka-semantics 6.1). Framing follows the sizes. A hole inside a frame costs
that frame only, for its size says where the next one begins. Where a size itself is missing, or what follows it cannot be
Kafka's, `udfs.capture.sync` looks for the next place where a frame begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from udfs.capture.segments import UNKNOWN
from udfs.wire.kernel import kernel

# socket.request.max.bytes' default: no peer with default settings sends a larger frame.
MAX_FRAME_BYTES = 104_857_600
MIN_FRAME_BYTES = 4  # a response header v0 alone
SIZE_BYTES = 4

COMPLETE, CUT, WAIT, HOLE, IMPLAUSIBLE = 0, 1, 2, 3, 4

FRAME = np.dtype(
    [
        (name, np.int64)
        for name in (
            "connection",  # row in the call's connections
            "number",  # requests 0, 1, ... in the connection; responses nobody asked for -1, -2, ...
            "stream_offset",  # of the size
            "start",  # arena position of the byte after the size
            "size",  # declared: bytes after the size
            "prefix",  # bytes from `start` on that are there without a hole
            "missing",  # bytes of the frame, its size included, that are not there
            "first_time",  # ns: packet that brought the first byte
            "last_time",  # ns: packet by which all that is there had come
            "first_packet",
            "last_packet",
            "api_key",
            "api_version",
            "correlation_id",
            "client_id_start",
            "client_id_length",
            "body_start",  # arena position, or UNKNOWN when the header is cut
            "awaits_response",  # 0 for a request that gets none
            "is_open",  # a request that waits for its response
            "partner",  # index of the request's response or of the response's request, or UNKNOWN
        )
    ],
    align=True,
)


class Stream(NamedTuple):
    """What is settled of one direction, laid out in the arena (see `udfs.capture.segments`)."""

    arena: npt.NDArray[np.uint8]
    extents: npt.NDArray[np.int64]  # [n, 3] stream offset, end, arena position
    pieces: npt.NDArray[np.int64]  # [n, 3] stream offset, length, packet row
    times: npt.NDArray[np.int64]  # by packet row, ns
    packets: npt.NDArray[np.int64]  # by packet row, the packet's number in the capture
    is_final: bool  # no more packets will come
    split: int  # stream offset where a piece begins but no segment, or UNKNOWN


@njit(cache=True, nogil=True)
def grow(rows, used):  # type: ignore[no-untyped-def]
    """`rows` with room for one more behind the `used` ones."""
    if used < len(rows):
        return rows
    larger = np.zeros(max(2 * len(rows), 64), rows.dtype)
    larger[:used] = rows[:used]
    return larger


@kernel
def int32_at(arena, position):  # type: ignore[no-untyped-def]
    """The big-endian int32 at an arena position, as int64."""
    value = np.int64(0)
    for i in range(4):
        value = (value << 8) | np.int64(arena[position + i])
    return value - 0x100000000 if value >= 0x80000000 else value


@kernel
def stream_end(stream):  # type: ignore[no-untyped-def]
    """Stream offset behind the last settled byte, or UNKNOWN when there is none."""
    return stream.extents[-1, 1] if len(stream.extents) > 0 else UNKNOWN


@kernel
def extent_holding(stream, offset):  # type: ignore[no-untyped-def]
    """Index of the first extent that ends behind the stream offset; len(extents) when none does."""
    return np.searchsorted(stream.extents[:, 1], offset, side="right")


@kernel
def piece_holding(stream, offset):  # type: ignore[no-untyped-def]
    """Index of the piece that holds the byte at this stream offset, which must be in hand."""
    return np.searchsorted(stream.pieces[:, 0], offset, side="right") - 1


@kernel
def size_at(stream, extent, offset):  # type: ignore[no-untyped-def]
    """The frame size at a stream offset inside an extent, or -1 when it is cut off or not one that a peer would send."""
    begin, end, start = stream.extents[extent]
    if end - offset < SIZE_BYTES:
        return -1
    size = int32_at(stream.arena, start + offset - begin)
    return size if MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES else -1


@kernel
def bytes_between(stream, first, end):  # type: ignore[no-untyped-def]
    """How many bytes with stream offsets in [first, end) are in hand."""
    present = 0
    for i in range(extent_holding(stream, first), len(stream.extents)):
        if stream.extents[i, 0] >= end:
            break
        present += min(stream.extents[i, 1], end) - max(stream.extents[i, 0], first)
    return present


@kernel
def measure(stream, offset, frame):  # type: ignore[no-untyped-def]
    """Fill in place, size, prefix and missing bytes of the frame at a stream offset; says how it stands.

    COMPLETE; CUT: some of it will never be there; WAIT: it may still come; HOLE: its size is not in hand;
    IMPLAUSIBLE: its size is not one that a peer would send. WAIT fills in what is known once the size is.
    """
    frame.prefix = -1
    extent = extent_holding(stream, offset)
    if extent == len(stream.extents):
        return WAIT
    begin, end, start = stream.extents[extent]
    if begin > offset:
        return HOLE
    if end - offset < SIZE_BYTES:
        return HOLE if stream.is_final or extent < len(stream.extents) - 1 else WAIT
    size = size_at(stream, extent, offset)
    if size < 0:
        return IMPLAUSIBLE
    frame_end = offset + SIZE_BYTES + size
    frame.stream_offset, frame.size = offset, size
    frame.start = start + offset - begin + SIZE_BYTES
    frame.prefix = min(end, frame_end) - offset - SIZE_BYTES
    frame.missing = 0
    if frame_end <= end:
        return COMPLETE
    if not stream.is_final and frame_end > stream_end(stream):
        return WAIT
    frame.missing = SIZE_BYTES + size - bytes_between(stream, offset, frame_end)
    return CUT


@kernel
def date(stream, frame):  # type: ignore[no-untyped-def]
    """Fill in the times and packet numbers of a measured frame."""
    first = piece_holding(stream, frame.stream_offset)
    row = stream.pieces[first, 2]
    frame.first_time = frame.last_time = stream.times[row]
    frame.first_packet = frame.last_packet = stream.packets[row]
    end = frame.stream_offset + SIZE_BYTES + frame.size
    for i in range(first + 1, len(stream.pieces)):
        if stream.pieces[i, 0] >= end:
            break
        row = stream.pieces[i, 2]
        frame.last_time = max(frame.last_time, stream.times[row])
        frame.last_packet = max(frame.last_packet, stream.packets[row])


@kernel
def take(frame, direction):  # type: ignore[no-untyped-def]
    """Move the direction's position behind a measured frame and count its bytes."""
    direction.position = frame.stream_offset + SIZE_BYTES + frame.size
    direction.framed_bytes += SIZE_BYTES + frame.size - frame.missing
    direction.missing_bytes += frame.missing
