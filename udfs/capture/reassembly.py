"""Packets in, frames out: the kernel that takes a chunk of packets through every connection in it.

The chunk's packets are sorted by connection and, inside one, by their place (`udfs.capture.capture_points`). The last
connection of a chunk may go on in the next; its state, the bytes not framed yet and its open requests are carried over
(`udfs.capture.packet_chunks`).
"""

from __future__ import annotations

import numpy as np

from udfs.capture.chunk_output import REQUESTS, Found, close_requests, is_full, report_loss, with_room
from udfs.capture.connection_boundaries import IS_FRAME, connection_end, new_connection, note_end, sent_bytes
from udfs.capture.conversation import CUT_AT_END, KAFKA, UNDECIDED, frame_requests, frame_responses, recognise
from udfs.capture.frame_search import skip_to
from udfs.capture.framing import MAX_FRAME_BYTES, Stream, bytes_between, extent_holding, piece_holding, stream_end
from udfs.capture.open_requests import forget_oldest, open_requests
from udfs.capture.segments import (
    BEHIND_ALL,
    UNKNOWN,
    Arena,
    Packets,
    floor_of,
    in_order,
    lay_out,
    place,
    raise_floor,
    settled_extents,
    start_direction,
)
from udfs.capture.tcp_headers import SYN
from udfs.columns.arrays import Bools, Ints, Record, Records, Shorts
from udfs.kernels.kernel import allocating_kernel, kernel


@kernel
def place_packets(packets: Packets, first: int, end: int, sides: Records) -> None:
    """Find the stream offsets of the rows in [first, end) that bring payload which belongs: `packets.offset`."""
    for row in range(first, end):
        direction, other = sides[packets.direction[row]], sides[1 - packets.direction[row]]
        sequence = packets.sequence[row]
        is_syn = packets.flags[row] & SYN != 0
        is_frame = packets.flags[row] & IS_FRAME != 0
        sequence = (sequence + 1) & 0xFFFFFFFF if is_syn else sequence
        if direction.is_started == 0 and (is_syn or packets.wire[row] > 0):
            start_direction(direction, sequence)
            direction.is_synced = is_syn or is_frame
        if not is_frame:
            note_end(direction, packets.flags[row], sequence, packets.wire[row])
        if packets.wire[row] == 0 or packets.offset[row] != UNKNOWN:
            continue
        direction.payload_bytes += packets.captured[row]
        direction.point = min(direction.point, packets.point[row])
        packets.point[row] -= direction.point
        if is_frame:
            packets.offset[row] = direction.highest
            direction.highest += packets.wire[row]
        else:
            packets.offset[row] = place(direction, sequence, packets.wire[row])
        raise_floor(other, direction)
        if packets.offset[row] == UNKNOWN:
            direction.late_bytes += packets.captured[row]


@kernel
def rows_placed(packets: Packets, first: int, end: int, side: int, rows: Ints) -> int:
    """Write the rows in [first, end) of one side that have a stream offset: how many there are."""
    n = 0
    for row in range(first, end):
        if packets.direction[row] == side and packets.offset[row] != UNKNOWN:
            rows[n] = row
            n += 1
    return n


@kernel
def first_unsettled(packets: Packets, pieces: Ints, extents: Ints, settled: int) -> int:
    """Place of the first packet that brought a piece of an extent behind the settled ones."""
    barrier = BEHIND_ALL
    if settled < len(extents):
        for i in range(len(pieces)):
            if pieces[i, 0] >= extents[settled, 0]:
                barrier = min(barrier, packets.place[pieces[i, 2]])
    return barrier


@kernel
def count_repeated(packets: Packets, rows: Ints, pieces: Ints, first: int, brings: Bools, direction: Record) -> None:
    """Count the packets among `rows`, from row `first` on, that bring no piece and were not counted before.

    Packets that come later take none of their bytes, so what they bring is known once they are laid out.
    brings: False for each of the rows; overwritten.
    """
    for i in range(len(pieces)):
        brings[pieces[i, 2] - first] = True
    for row in rows:
        if not brings[row - first] and packets.point[row] != UNKNOWN and packets.captured[row] > 0:
            direction.repeated_packets += 1
            direction.doubled_packets += packets.point[row] > 0


@allocating_kernel
def open_stream(
    packets: Packets, first: int, end: int, side: int, direction: Record, is_final: bool, arena: Arena
) -> Stream:
    """Lay out one side's packets in [first, end), which are placed."""
    rows = np.empty(end - first, np.int64)
    rows = in_order(rows[: rows_placed(packets, first, end, side, rows)], packets.offset)
    pieces, extents, repeated = lay_out(rows, packets, direction.position, arena)
    direction.repeated_bytes += repeated
    count_repeated(packets, rows, pieces, first, np.zeros(end - first, np.bool_), direction)
    settled = settled_extents(extents, floor_of(direction), direction.position, is_final)
    barrier = first_unsettled(packets, pieces, extents, settled)
    return Stream(
        arena.data, extents[:settled], pieces, packets.time, packets.place, packets.number, barrier, is_final,
        sent_bytes(direction) if is_final else BEHIND_ALL, np.zeros(1, np.int64), direction.split,
    )  # fmt: skip


@kernel
def first_unframed(stream: Stream, direction: Record) -> int:
    """Place from which on a side's frames are not framed yet: at the barrier, or where one began that may go on."""
    if stream.is_final or stream_end(stream) <= direction.position:
        return stream.barrier
    offset = max(direction.position, stream.extents[extent_holding(stream, direction.position), 0])
    place: int = stream.places[stream.pieces[piece_holding(stream, offset), 2]]
    return min(stream.barrier, place)


@kernel
def leave_out(stream: Stream, direction: Record) -> None:
    """Count what is in hand of a connection that is not Kafka's and pass over it."""
    end = stream_end(stream)
    if end > direction.position:
        direction.unframed_bytes += bytes_between(stream, direction.position, end)
        direction.position = end


@allocating_kernel
def talk(conn: Record, sides: Records, streams: tuple[Stream, Stream], apis: Shorts, found: Found) -> Found:
    """Take a connection as far as what is in hand of both sides, DIRECTION[2], allows."""
    if conn.protocol == UNDECIDED:
        recognise(conn, streams, sides, apis)
    if conn.protocol == KAFKA:
        client, broker = streams if conn.client == 0 else (streams[1], streams[0])
        while not frame_requests(client, sides[conn.client], conn, apis, found):
            found = with_room(found)
        barrier, answers = first_unframed(client, sides[conn.client]), sides[1 - conn.client]
        if answers.highest - answers.position > MAX_FRAME_BYTES:  # a request of a false size is not waited for
            barrier = BEHIND_ALL
        found = with_room(found)  # before the requests are indexed: no more come, so they stay where they are
        waiting = open_requests(found.requests, conn.first_open, found.counts[REQUESTS], barrier)
        while not frame_responses(broker, answers, conn, waiting, found):
            found = with_room(found)
        forget_oldest(conn, waiting, found, min(barrier, first_unframed(broker, answers)))
    elif conn.protocol != UNDECIDED or streams[0].is_final:
        leave_out(streams[0], sides[0])
        leave_out(streams[1], sides[1])
    return found


@allocating_kernel
def rest_of(packets: Packets, streams: tuple[Stream, Stream], sides: Records) -> Ints:
    """(packet row, stream offset, payload bytes to skip, length) of the pieces behind the positions; int64[n, 4]."""
    rest = np.empty((len(streams[0].pieces) + len(streams[1].pieces), 4), np.int64)
    n = 0
    for side in range(2):
        pieces, position = streams[side].pieces, sides[side].position
        for i in range(len(pieces)):
            row, end = pieces[i, 2], pieces[i, 0] + pieces[i, 1]
            if end > position:
                start = max(pieces[i, 0], position)
                if start > pieces[i, 0]:
                    sides[side].split = start
                rest[n, 0], rest[n, 1] = row, start
                rest[n, 2], rest[n, 3] = start - packets.offset[row], end - start
                n += 1
    return rest[:n]


@allocating_kernel
def close(conn: Record, sides: Records, streams: tuple[Stream, Stream], first_request: int, found: Found) -> Found:
    """End a connection: what waits for an answer gets none, what was being skipped is a loss, the rest is cut off.

    What was sent behind all that was captured is missing.
    """
    for side in range(2):
        direction = sides[side]
        if stream_end(streams[side]) > direction.position:
            skip_to(streams[side], direction, stream_end(streams[side]), CUT_AT_END)
        if conn.protocol == KAFKA and streams[side].sent < BEHIND_ALL:
            direction.missing_bytes += max(streams[side].sent - direction.position, 0)
        if is_full(found):
            found = with_room(found)
        report_loss(found, conn, side, direction)
    close_requests(found, first_request, found.counts[REQUESTS])
    return found


@allocating_kernel
def converse(
    packets: Packets, connections: Records, directions: Records, found: Found, arena: Arena, apis: Shorts,
    is_carried: bool, is_last: bool,
) -> tuple[int, Found, Ints]:  # fmt: skip
    """Take a chunk of packets through its connections.

    connections: CONNECTION[n], directions: DIRECTION[2n], zero, with n no less than the connections there can be.
    is_carried: connection 0 goes on from an earlier chunk; its state is in connections[0], directions[0:2] and, as its
    open requests, `found`, whose bytes are in the arena. is_last: no chunk follows.
    Returns (how many connections there were, what was found, what is to be kept for the next chunk as by `rest_of`):
    the last connection is unfinished unless is_last.
    """
    n = len(packets.run)
    kept = np.empty((0, 4), np.int64)
    index = row = 0
    while row < n or (is_carried and index == 0):
        if index > 0 or not is_carried:
            new_connection(connections, directions, index, packets.run[row], found.counts[REQUESTS])
        conn, sides = connections[index], directions[2 * index : 2 * index + 2]
        first_request = conn.first_open
        end = connection_end(packets, conn, row)
        is_final = is_last or end < n
        place_packets(packets, row, end, sides)
        streams = (
            open_stream(packets, row, end, 0, sides[0], is_final, arena),
            open_stream(packets, row, end, 1, sides[1], is_final, arena),
        )
        found = talk(conn, sides, streams, apis, found)
        if is_final:
            found = close(conn, sides, streams, first_request, found)
        else:
            kept = rest_of(packets, streams, sides)
        row = end
        index += 1
    return index, found, kept
