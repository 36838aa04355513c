"""TCP segments of one direction of one connection, put in stream order.

A *stream offset* is the position of a byte in the byte stream that one side sent: 0 is the byte after its SYN or, if
the capture starts in mid-stream, the first byte of the first captured segment. A *piece* is the part of a segment that
no earlier segment had brought. An *extent* is a maximal run of pieces without a hole: between two extents bytes are
missing, because a packet was lost or the snaplen cut it. An extent is *settled* if no later packet can change it.

The result depends only on the packets and their order, never on how many of them a call gets: what cannot be decided
yet is left for the next call (`settled_extents`).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bytes, Ints, Record
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import allocating_kernel, kernel
from udfs.kernels.prefetch import prefetch_cells
from udfs.wire.primitives import copy_bytes

BEHIND_ALL = (1 << 62) - 1
"""A place, stream offset or capture point that is greater than every real one."""

# A segment that begins this far before the end of the stream comes too late to fill a gap, and a gap with this much
# stream after it is final. That is far more than real networks reorder, and little enough to keep in memory.
REORDER_BYTES = 4 << 20
# A gap is also final if the other side has sent this much since: a side that sends little may never reach
# REORDER_BYTES.
OTHERS_BYTES = 32 << 20
# No receive window is larger in practice. A segment further away is noise, or the capture was interrupted.
JUMP_BYTES = 64 << 20
# The payload of a packet is prefetched while this many other packets still have to be copied before it. Only the first
# bytes of a long payload are prefetched: the processor fetches the rest by itself.
PACKETS_AHEAD, PREFETCH_BYTES = 24, 192

DIRECTION = np.dtype(
    [
        (name, np.int64)
        for name in (
            "is_started",  # the sequence number of stream offset 0 is known
            "sequence",  # a sequence number: the reference for unwrapping others
            "offset",  # the stream offset of `sequence`
            "highest",  # end of the stream as captured so far
            "floor",  # stream offset below which no gap is filled any more, because of what the other side has sent
            "mark",  # the next `floor`: the end of this stream when the other side's end was `mark_of_other`
            "mark_of_other",  # OTHERS_BYTES of the other side are counted from here
            "fin",  # sequence number after the last byte, from a FIN, or UNKNOWN
            "rst",  # sequence number of the RST that is farthest ahead, or UNKNOWN
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
            "repeated_packets",  # packets whose bytes had all been captured before
            "doubled_packets",  # those of them whose bytes another capture point had captured
            "tokens",  # 0; while SASL tokens are expected, 1 + how many were skipped
            "token_bytes",  # how many of unframed_bytes are SASL tokens
            "point",  # the first of the capture points that captured this direction
        )
    ],
    align=True,
)


class Packets(NamedTuple):
    """One chunk's packets. Each column is int64[n], except `payload`, which holds all captured payload bytes."""

    run: Ints  # number of the run of packets with the same endpoints
    direction: Ints
    time: Ints
    place: Ints  # among all packets, in the order in which they are taken
    number: Ints  # file and packet number, with which people find it
    point: Ints  # capture point; after placing, minus the first one of its direction; UNKNOWN for what is carried over
    sequence: Ints
    flags: Ints
    wire: Ints  # payload bytes the packet had on the wire
    captured: Ints  # payload bytes the capture has of it
    source: Ints  # where the captured bytes begin in `payload`
    offset: Ints  # stream offset; for packets not carried over UNKNOWN until they are placed, or if they cannot be
    payload: Bytes


class Arena(NamedTuple):
    """Where the payload of a chunk is laid out: `data` has room for all of it; `used`, int64[1]: how much is used."""

    data: Bytes
    used: Ints


class SideLayout(NamedTuple):
    """Pieces and extents, int64[n, 3] each as from `lay_out_packets`, and how many rows of each are used, int64[2]."""

    pieces: Ints
    extents: Ints
    used: Ints


@kernel
def signed_distance(sequence: int, reference: int) -> int:
    """How far one 32-bit sequence number is ahead of another (RFC 9293, section 3.4)."""
    ahead = (sequence - reference) & 0xFFFFFFFF
    return ahead - 0x100000000 if ahead >= 0x80000000 else ahead


@kernel
def start_direction(direction: Record, sequence: int) -> None:
    """Let stream offset 0 be the byte with this sequence number."""
    direction.is_started = 1
    direction.sequence = sequence
    direction.offset = 0
    direction.highest = 0
    direction.outlier = UNKNOWN
    direction.lost_from = UNKNOWN


@kernel
def floor_of(direction: Record) -> int:
    """Stream offset below which no gap is filled any more."""
    return int(max(direction.floor, direction.highest - REORDER_BYTES))


@kernel
def raise_floor(direction: Record, other: Record) -> None:
    """Make a side's gaps final if the other side has sent at least OTHERS_BYTES, at most twice as much, since then."""
    if other.highest - direction.mark_of_other >= OTHERS_BYTES:
        direction.floor = direction.mark
        direction.mark, direction.mark_of_other = direction.highest, other.highest


@kernel
def place_segment(direction: Record, sequence: int, wire_bytes: int) -> int:
    """Stream offset of a segment, or UNKNOWN if it is before the start of the stream, too late, or too far away.

    Two neighbouring segments that are both too far away show that the capture was interrupted: the stream goes on after
    a gap.
    """
    offset: int = direction.offset + signed_distance(sequence, direction.sequence)
    if abs(offset - direction.highest) > JUMP_BYTES:
        follows = direction.outlier != UNKNOWN and abs(signed_distance(sequence, direction.outlier)) < REORDER_BYTES
        direction.outlier = UNKNOWN if follows else (sequence + wire_bytes) & 0xFFFFFFFF
        if not follows:
            return UNKNOWN
        offset = direction.highest + JUMP_BYTES
        direction.sequence, direction.offset = sequence, offset
    end = offset + wire_bytes
    if offset < floor_of(direction):
        return UNKNOWN
    if end > direction.highest:
        direction.sequence, direction.offset, direction.highest = sequence, offset, end
    return offset


@kernel
def sorted_run_end(rows: Ints, keys: Ints, first: int) -> int:
    """Index after the longest run of sorted rows that begins at `first`.

    rows: int64[n], row numbers. keys: int64[packets], by row number.
    """
    end = min(first + 1, len(rows))
    while end < len(rows) and keys[rows[end - 1]] <= keys[rows[end]]:
        end += 1
    return end


@kernel
def merge_sorted(rows: Ints, keys: Ints, first: int, middle: int, end: int, merged: Ints) -> None:
    """Merge the sorted rows [first, middle) and [middle, end) into the same places of `merged`.

    rows, merged: int64[n]. keys: as for `sort_rows`.
    """
    left, right = first, middle
    for to in range(first, end):
        if right == end or (left < middle and keys[rows[left]] <= keys[rows[right]]):
            merged[to] = rows[left]
            left += 1
        else:
            merged[to] = rows[right]
            right += 1


@kernel
def merge_runs(rows: Ints, keys: Ints, merged: Ints) -> None:
    """Merge each two neighbouring sorted runs of `rows` into `merged`, int64[n] both; keys: as for `sort_rows`."""
    first = 0
    while first < len(rows):
        middle = sorted_run_end(rows, keys, first)
        end = sorted_run_end(rows, keys, middle)
        merge_sorted(rows, keys, first, middle, end, merged)
        first = end


@allocating_kernel
def sort_rows(rows: Ints, keys: Ints) -> Ints:
    """The rows, int64[n], sorted by their keys, stably; keys[row]: int64, the key of each row.

    Runs that are already sorted are merged, so rows in order cost one comparison each. numba's own sorts take seconds
    to compile.
    """
    while sorted_run_end(rows, keys, 0) < len(rows):
        merged = np.empty(len(rows), np.int64)
        merge_runs(rows, keys, merged)
        rows = merged
    return rows


@kernel
def set_row(table: Ints, row: int, first: int, second: int, third: int) -> None:
    """table[row] = (first, second, third)."""
    table[row, 0], table[row, 1], table[row, 2] = first, second, third


@kernel
def add_piece(layout: SideLayout, start: int, length: int, row: int, arena_end: int) -> None:
    """Add a piece to the layout, in its last extent or in a new one."""
    n_pieces, n_extents = layout.used[0], layout.used[1]
    if n_extents == 0 or layout.extents[n_extents - 1, 1] != start:
        set_row(layout.extents, n_extents, start, start, arena_end)
        n_extents += 1
    layout.extents[n_extents - 1, 1] = start + length
    set_row(layout.pieces, n_pieces, start, length, row)
    layout.used[0], layout.used[1] = n_pieces + 1, n_extents


@kernel
def copy_piece(layout: SideLayout, arena: Arena, packets: Packets, row: int, offset: int, length: int) -> int:
    """Copy a piece of a packet into the arena and note it; returns the stream offset after it."""
    add_piece(layout, offset, length, row, arena.used[0])
    begin = packets.source[row] + offset - packets.offset[row]
    copy_bytes(packets.payload, begin, length, arena.data, arena.used[0])
    arena.used[0] += length
    return offset + length


@kernel
def stands_alone(rows: Ints, packets: Packets, i: int, at: int) -> bool:
    """Whether a packet, rows[i], overlaps neither the bytes before `at` nor the next packet. That is the usual case."""
    offset = packets.offset[rows[i]]
    end = offset + packets.captured[rows[i]]
    return bool(at <= offset < end and (i + 1 == len(rows) or packets.offset[rows[i + 1]] >= end))


@kernel
def copy_lone_packets(
    rows: Ints, packets: Packets, i: int, at: int, layout: SideLayout, arena: Arena
) -> tuple[int, int]:
    """Lay out packets from rows[i] on until one overlaps another. Returns (its index, stream offset after the others).

    rows: int64[n], packets in stream order. at: stream offset after what has been laid out.
    """
    while i < len(rows) and stands_alone(rows, packets, i, at):
        ahead = rows[min(i + PACKETS_AHEAD, len(rows) - 1)]
        prefetch_cells(packets.payload, packets.source[ahead], min(packets.captured[ahead], PREFETCH_BYTES))
        at = copy_piece(layout, arena, packets, rows[i], packets.offset[rows[i]], packets.captured[rows[i]])
        i += 1
    return i, at


@allocating_kernel
def lay_out_packets(rows: Ints, packets: Packets, consumed: int, arena: Arena) -> tuple[Ints, Ints, int]:
    """Copy the new bytes into the arena, one extent after the other.

    If segments overlap, a byte belongs to the segment that was captured first, so that its time is the earliest.
    rows: int64[n], packets in stream order. consumed: stream offset below which all bytes were used.
    Returns (pieces int64[n, 3]: stream offset, length, packet; extents int64[m, 3]: stream offset, end, arena position;
    how many captured bytes were already there).
    """
    layout = SideLayout(
        np.empty((2 * len(rows), 3), np.int64), np.empty((2 * len(rows), 3), np.int64), np.zeros(2, np.int64)
    )
    covering = [np.int64(0)]  # heap of the packets that hold the byte at `at`, the one captured first on top
    covering.pop()
    at, i, first = consumed, 0, arena.used[0]
    given = 0
    while i < len(rows) or len(covering) > 0:
        if len(covering) == 0:
            before = arena.used[0]
            i, at = copy_lone_packets(rows, packets, i, at, layout, arena)
            given += arena.used[0] - before
            if i == len(rows):
                break
            at = max(at, packets.offset[rows[i]])
        while i < len(rows) and packets.offset[rows[i]] <= at:
            heapq.heappush(covering, rows[i])
            given += packets.captured[rows[i]]
            i += 1
        while len(covering) > 0 and packets.offset[covering[0]] + packets.captured[covering[0]] <= at:
            heapq.heappop(covering)
        if len(covering) == 0:
            continue
        row = int(covering[0])
        end = packets.offset[row] + packets.captured[row]
        following = i
        while following < len(rows) and packets.offset[rows[following]] < end:
            if rows[following] < row:
                end = packets.offset[rows[following]]
            following += 1
        at = copy_piece(layout, arena, packets, row, at, end - at)
    repeated = given - (arena.used[0] - first)
    return layout.pieces[: layout.used[0]], layout.extents[: layout.used[1]], repeated


@kernel
def settled_extents(extents: Ints, floor: int, position: int, is_final: bool) -> int:
    """How many of the extents, from the first on, are settled: no later packet can fill the gap before them.

    extents: int64[n, 3], from `lay_out_packets`. floor, position: stream offsets.
    The first extent is settled if it starts at `position`, where framing goes on. Any other extent is settled if the
    gap before it is below the floor, or if the connection has ended.
    """
    if is_final:
        return len(extents)
    n = 0
    while n < len(extents):
        joins = n == 0 and extents[0, 0] == position
        if not joins and extents[n, 0] > floor:
            break
        n += 1
    return n
