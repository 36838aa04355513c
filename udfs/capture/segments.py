"""TCP segments of one direction of one connection, put in stream order.

A *stream offset* is the position of a byte in the byte stream that one side sent: 0 is the byte after its SYN or, when
the capture starts in mid-stream, the first byte of the first segment seen. A *piece* is the part of a segment that no
earlier segment had brought. An *extent* is a maximal run of pieces without a hole: between two extents bytes are missing,
because a packet was lost or snaplen cut it.

The result depends on the packets and their order alone, never on how many of them a call is given: what cannot be decided
yet is left for the next call (`settled_extents`).
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from udfs.wire.kernel import kernel

UNKNOWN = -(1 << 62)

# A segment that arrives when the stream is already this far ahead comes too late to fill a gap, and a gap with this much
# stream behind it stays one: far above the reordering of real networks, bounded enough to hold.
REORDER_BYTES = 4 << 20
# No receive window is larger in practice: a segment further away is noise, or the capture was interrupted.
JUMP_BYTES = 64 << 20

DIRECTION = np.dtype(
    [
        (name, np.int64)
        for name in (
            "is_started",  # the sequence number of stream offset 0 is known
            "sequence",  # a sequence number ...
            "offset",  # ... and its stream offset, the reference by which others are unwrapped
            "highest",  # end of the stream as far as seen
            "outlier",  # the sequence number that would follow a segment that was too far away, or UNKNOWN
            "position",  # stream offset of the first byte that is not framed yet
            "is_synced",  # `position` is the start of a frame
            "split",  # stream offset within a segment where the bytes carried over begin, or UNKNOWN
            "lost_from",  # start of the range now being skipped, or UNKNOWN
            "lost_bytes",
            "lost_reason",
            "lost_time",
            "lost_packet",
            "payload_bytes",  # captured payload bytes, each counted once, into one of the four below
            "framed_bytes",
            "unframed_bytes",
            "repeated_bytes",
            "late_bytes",
            "missing_bytes",  # bytes the stream must have had that the capture does not
        )
    ],
    align=True,
)


@kernel
def signed_distance(sequence, reference):  # type: ignore[no-untyped-def]
    """How far one 32-bit sequence number is ahead of another (RFC 9293, section 3.4)."""
    ahead = (sequence - reference) & 0xFFFFFFFF
    return ahead - 0x100000000 if ahead >= 0x80000000 else ahead


@kernel
def start_direction(direction, sequence):  # type: ignore[no-untyped-def]
    """Let stream offset 0 be the byte with this sequence number."""
    direction.is_started = 1
    direction.sequence = sequence
    direction.offset = 0
    direction.highest = 0
    direction.outlier = UNKNOWN
    direction.lost_from = UNKNOWN


@kernel
def place(direction, sequence, wire_bytes):  # type: ignore[no-untyped-def]
    """Stream offset of a segment, or UNKNOWN when it lies before the start, comes too late or is too far away to belong.

    Two neighbours that are both too far away show that the capture was interrupted: the stream goes on behind a gap.
    """
    offset = direction.offset + signed_distance(sequence, direction.sequence)
    if abs(offset - direction.highest) > JUMP_BYTES:
        follows = direction.outlier != UNKNOWN and abs(signed_distance(sequence, direction.outlier)) < REORDER_BYTES
        direction.outlier = UNKNOWN if follows else (sequence + wire_bytes) & 0xFFFFFFFF
        if not follows:
            return UNKNOWN
        offset = direction.highest + JUMP_BYTES
        direction.sequence, direction.offset = sequence, offset
    end = offset + wire_bytes
    if offset < 0 or end < direction.highest - REORDER_BYTES:
        return UNKNOWN
    if end > direction.highest:
        direction.sequence, direction.offset, direction.highest = sequence, offset, end
    return offset


@njit(cache=True, nogil=True)
def in_stream_order(rows, offsets):  # type: ignore[no-untyped-def]
    """Rows sorted by stream offset; of two segments at one offset the one captured first stays first."""
    found = offsets[rows]
    for i in range(1, len(found)):
        if found[i] < found[i - 1]:
            return rows[np.argsort(found, kind="mergesort")]
    return rows


@njit(cache=True, nogil=True)
def append_piece(layout, row, start, length):  # type: ignore[no-untyped-def]
    """Add a piece to the layout, and to the last extent or as a new one. Returns the numbers of pieces and extents."""
    pieces, extents, n, arena_end = layout
    n_pieces, n_extents = n
    if n_extents == 0 or extents[n_extents - 1, 1] != start:
        extents[n_extents] = (start, start, arena_end)
        n_extents += 1
    extents[n_extents - 1, 1] = start + length
    pieces[n_pieces] = (start, length, row)
    return n_pieces + 1, n_extents


@njit(cache=True, nogil=True)
def lay_out(rows, offsets, captured, source, data, consumed, arena, arena_end):  # type: ignore[no-untyped-def]
    """Copy the bytes that are new into `arena`, one extent behind the other.

    Where segments overlap, a byte is of the one that was captured first: it tells when the byte was there.
    rows: int64[n], packets in stream order, numbered as captured; offsets, captured, source: int64 by packet: stream
    offset, captured bytes, where the payload starts in `data`. consumed: stream offset below which every byte was used.
    Returns (pieces int64[n, 3]: stream offset, length, packet; extents int64[m, 3]: stream offset, end, arena position;
    arena end; captured bytes that were there already).
    """
    pieces, extents = np.empty((2 * len(rows), 3), np.int64), np.empty((2 * len(rows), 3), np.int64)
    n = (0, 0)
    covering = [np.int64(0)]  # heap of the packets that hold the byte at `at`, the one captured first on top
    covering.pop()
    at, i, first = consumed, 0, arena_end
    while i < len(rows) or len(covering) > 0:
        if len(covering) == 0:
            at = max(at, offsets[rows[i]])
        while i < len(rows) and offsets[rows[i]] <= at:
            heapq.heappush(covering, rows[i])
            i += 1
        while len(covering) > 0 and offsets[covering[0]] + captured[covering[0]] <= at:
            heapq.heappop(covering)
        if len(covering) == 0:
            continue
        row = covering[0]
        end = offsets[row] + captured[row]
        following = i
        while following < len(rows) and offsets[rows[following]] < end:
            if rows[following] < row:
                end = offsets[rows[following]]
            following += 1
        n = append_piece((pieces, extents, n, arena_end), row, at, end - at)
        begin = source[row] + at - offsets[row]
        arena[arena_end : arena_end + end - at] = data[begin : begin + end - at]
        arena_end += end - at
        at = end
    repeated = captured[rows].sum() - (arena_end - first)
    return pieces[: n[0]], extents[: n[1]], arena_end, repeated


@kernel
def settled_extents(extents, highest, position, is_final):  # type: ignore[no-untyped-def]
    """How many leading extents no later packet can join to what comes before them.

    The first one counts when it starts where framing stands; any further one when the gap before it is final: it has
    REORDER_BYTES of stream behind it, or the connection has ended.
    """
    if is_final:
        return len(extents)
    n = 0
    while n < len(extents):
        joins = n == 0 and extents[0, 0] == position
        if not joins and highest - extents[n, 0] < REORDER_BYTES:
            break
        n += 1
    return n
