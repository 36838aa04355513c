"""Kafka frames in a stream of bytes with holes: where each begins, how much of it is there, and when it came.

A frame is a 4-byte size and that many bytes. Framing goes from size to size. A hole inside a frame affects only that
frame, because its size says where the next frame begins. If a size itself is missing, or what follows it cannot be
Kafka's, `udfs.capture.frame_search` looks for the next place where a frame begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bytes, Ints, Record
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import read_signed

# The default of socket.request.max.bytes: no peer with default settings sends a larger frame.
MAX_FRAME_BYTES = 104_857_600
MIN_FRAME_BYTES = 4  # a response header v0 alone
SIZE_BYTES = 4

COMPLETE, CUT, WAIT, HOLE, IMPLAUSIBLE = 0, 1, 2, 3, 4

FRAME = np.dtype(
    [
        (name, np.int64)
        for name in (
            "connection",  # row in the call's connections
            "number",  # of a request 0, 1, ... in the connection; of a response without a request -1, -2, ...
            "stream_offset",  # of the size
            "start",  # arena position of the byte after the size
            "size",  # declared: bytes after the size
            "prefix",  # bytes from `start` on that are there without a hole
            "missing",  # bytes of the frame, its size included, that were sent and are not there
            "unsent",  # bytes of the frame that were never sent: the stream ended before them
            "first_time",  # ns: packet that brought the first byte
            "last_time",  # ns: packet that completed what is there
            "first_packet",  # number of the packet that brought the first byte
            "last_packet",  # number of the packet that completed what is there
            "first_place",  # place of the packet that brought the first byte
            "last_place",  # place of the packet that completed what is there
            "latest_place",  # the latest last_place of the requests up to this one
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
    """The settled bytes of one direction, laid out in the arena (see `udfs.capture.segments`)."""

    arena: Bytes
    extents: Ints  # [n, 3] stream offset, end, arena position
    pieces: Ints  # [m, 3] stream offset, length, packet row; also of what is not settled yet
    times: Ints  # by packet row, ns
    places: Ints  # by packet row, the packet's place among all
    packets: Ints  # by packet row, the packet's number
    barrier: int  # place of the first packet not settled
    is_final: bool  # no more packets will come
    sent: int  # stream offset of the end of what was sent; BEHIND_ALL while the connection goes on, or if unknown
    near: Ints  # [1] the piece that was looked up last; the next one is usually near it
    split: int  # stream offset where a piece begins but no segment, or UNKNOWN


@kernel
def stream_end(stream: Stream) -> int:
    """Stream offset after the last settled byte, or UNKNOWN if there is none."""
    return stream.extents[len(stream.extents) - 1, 1] if len(stream.extents) > 0 else UNKNOWN


@kernel
def rows_up_to(table: Ints, column: int, value: int) -> int:
    """How many rows of a table, int64[n, 3], have at most this value in the column by which they are sorted."""
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) // 2
        if table[middle, column] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def extent_holding(stream: Stream, offset: int) -> int:
    """Index of the first extent that ends after the stream offset; len(extents) if none does."""
    return rows_up_to(stream.extents, 1, offset)


@kernel
def piece_holding(stream: Stream, offset: int) -> int:
    """Index of the piece with the byte at a stream offset; there must be one."""
    near = int(max(stream.near[0], 0))
    for piece in range(near, near + 2):  # frames are looked up one after the other
        if piece_begins_by(stream, piece, offset) and not piece_begins_by(stream, piece + 1, offset):
            stream.near[0] = piece
            return piece
    piece = rows_up_to(stream.pieces, 0, offset) - 1
    stream.near[0] = piece
    return piece


@kernel
def piece_begins_by(stream: Stream, piece: int, offset: int) -> bool:
    """Whether the piece with this number exists and begins at the stream offset or before it."""
    return bool(piece < len(stream.pieces) and stream.pieces[piece, 0] <= offset)


@kernel
def extent_at(stream: Stream, extent: int) -> tuple[int, int, int]:
    """(stream offset, end, arena position) of an extent."""
    return stream.extents[extent, 0], stream.extents[extent, 1], stream.extents[extent, 2]


@kernel
def frame_size_at(stream: Stream, extent: int, offset: int) -> int:
    """The frame size at a stream offset inside an extent; -1 if it is cut off, or if no peer would send it."""
    begin, end, start = extent_at(stream, extent)
    if end - offset < SIZE_BYTES:
        return -1
    size = read_signed(stream.arena, start + offset - begin, SIZE_BYTES)
    return size if MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES else -1


@kernel
def settled_bytes_between(stream: Stream, first: int, end: int) -> int:
    """How many of the bytes with stream offsets in [first, end) were captured and are settled."""
    present = 0
    for i in range(extent_holding(stream, first), len(stream.extents)):
        if stream.extents[i, 0] >= end:
            break
        present += min(stream.extents[i, 1], end) - max(stream.extents[i, 0], first)
    return present


@kernel
def measure_frame(stream: Stream, offset: int, frame: Record) -> int:
    """Fill in offset, start, size, prefix, missing and unsent bytes of the frame at a stream offset; return its state.

    COMPLETE: all of the frame is there. CUT: some of it will never be there. WAIT: the rest may still come; if the size
    has come, it is filled in. HOLE: the size is missing. IMPLAUSIBLE: no peer would send this size.
    """
    frame.prefix = -1
    extent = extent_holding(stream, offset)
    if extent == len(stream.extents):
        return WAIT
    begin, end, start = extent_at(stream, extent)
    if begin > offset:
        return HOLE
    if end - offset < SIZE_BYTES:
        return HOLE if stream.is_final or extent < len(stream.extents) - 1 else WAIT
    size = frame_size_at(stream, extent, offset)
    if size < 0:
        return IMPLAUSIBLE
    frame_end = offset + SIZE_BYTES + size
    frame.stream_offset, frame.size = offset, size
    frame.start = start + offset - begin + SIZE_BYTES
    frame.prefix = min(end, frame_end) - offset - SIZE_BYTES
    frame.missing = frame.unsent = 0
    if frame_end <= end:
        return COMPLETE
    if not stream.is_final and frame_end > stream_end(stream):
        return WAIT
    frame.unsent = max(frame_end - stream.sent, 0)
    frame.missing = SIZE_BYTES + size - frame.unsent - settled_bytes_between(stream, offset, frame_end)
    return CUT


@kernel
def set_frame_times(stream: Stream, frame: Record) -> None:
    """Fill in the times, packet numbers and places of a measured frame."""
    first = piece_holding(stream, frame.stream_offset)
    row = stream.pieces[first, 2]
    frame.first_time = frame.last_time = stream.times[row]
    frame.first_packet = frame.last_packet = stream.packets[row]
    frame.first_place = frame.last_place = stream.places[row]
    end = frame.stream_offset + SIZE_BYTES + frame.size
    for i in range(first + 1, len(stream.pieces)):
        if stream.pieces[i, 0] >= end:
            break
        row = stream.pieces[i, 2]
        frame.last_time = max(frame.last_time, stream.times[row])
        if stream.places[row] > frame.last_place:
            frame.last_place, frame.last_packet = stream.places[row], stream.packets[row]


@kernel
def move_behind_frame(frame: Record, direction: Record) -> None:
    """Move the direction's position past a measured frame and count its bytes."""
    direction.position = frame.stream_offset + SIZE_BYTES + frame.size
    direction.framed_bytes += SIZE_BYTES + frame.size - frame.missing - frame.unsent
    direction.missing_bytes += frame.missing
