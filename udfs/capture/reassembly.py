"""The kernel that turns a chunk of packets into frames, connection by connection.

The packets are sorted by connection and, within a connection, by their place (`udfs.capture.capture_points`). The last
connection of a chunk may go on in the next one: `udfs.capture.packet_chunks` then keeps its state, its open requests
and the bytes that are not framed yet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.capture.chunk_output import REQUESTS, ChunkOutput, close_requests, is_output_full, report_loss, with_free_rows
from udfs.capture.connection_boundaries import IS_FRAME, connection_end, end_of_sent, new_connection, note_stream_end
from udfs.capture.conversation import CUT_AT_END, KAFKA, UNDECIDED, frame_requests, frame_responses, recognise_protocol
from udfs.capture.frame_search import skip_to
from udfs.capture.framing import (
    MAX_FRAME_BYTES,
    Stream,
    extent_holding,
    piece_holding,
    settled_bytes_between,
    stream_end,
)
from udfs.capture.open_requests import forget_oldest, open_requests
from udfs.capture.segments import (
    BEHIND_ALL,
    Arena,
    Packets,
    floor_of,
    lay_out_packets,
    place_segment,
    raise_floor,
    settled_extents,
    sort_rows,
    start_direction,
)
from udfs.capture.tcp_headers import SYN
from udfs.columns.arrays import Bools, Ints, Record, Records, Shorts
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import allocating_kernel, kernel


@kernel
def place_packets(packets: Packets, first: int, end: int, sides: Records) -> None:
    """Write `packets.offset`, the stream offset of each row in [first, end) whose payload is part of its stream.

    sides: DIRECTION[2].
    """
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
            note_stream_end(direction, packets.flags[row], sequence, packets.wire[row])
        if packets.wire[row] == 0 or packets.offset[row] != UNKNOWN:
            continue
        direction.payload_bytes += packets.captured[row]
        direction.point = min(direction.point, packets.point[row])
        packets.point[row] -= direction.point
        if is_frame:
            packets.offset[row] = direction.highest
            direction.highest += packets.wire[row]
        else:
            packets.offset[row] = place_segment(direction, sequence, packets.wire[row])
        raise_floor(other, direction)
        if packets.offset[row] == UNKNOWN:
            direction.late_bytes += packets.captured[row]


@kernel
def find_placed_rows(packets: Packets, first: int, end: int, side: int, rows: Ints) -> int:
    """Write to `rows`, int64[n], the rows in [first, end) of one side that have a stream offset; returns how many."""
    n = 0
    for row in range(first, end):
        if packets.direction[row] == side and packets.offset[row] != UNKNOWN:
            rows[n] = row
            n += 1
    return n


@kernel
def first_unsettled(packets: Packets, pieces: Ints, extents: Ints, settled: int) -> int:
    """Place of the first packet with a piece in an extent that is not settled; BEHIND_ALL if all are settled.

    pieces: int64[n, 3], extents: int64[m, 3], both from `lay_out_packets`. settled: how many extents are settled.
    """
    barrier = BEHIND_ALL
    if settled < len(extents):
        for i in range(len(pieces)):
            if pieces[i, 0] >= extents[settled, 0]:
                barrier = min(barrier, packets.place[pieces[i, 2]])
    return barrier


@kernel
def count_repeated(packets: Packets, rows: Ints, pieces: Ints, first: int, brings: Bools, direction: Record) -> None:
    """Count the packets among `rows` that bring no new bytes and were not counted in an earlier chunk.

    Later packets take no bytes from earlier ones, so this is known as soon as the packets are laid out.
    rows: int64[n]. pieces: int64[m, 3], from `lay_out_packets`. first: the first of the connection's rows in this
    chunk. brings: bool[rows of the connection], all False; overwritten.
    """
    for i in range(len(pieces)):
        brings[pieces[i, 2] - first] = True
    for row in rows:
        if not brings[row - first] and packets.point[row] != UNKNOWN and packets.captured[row] > 0:
            direction.repeated_packets += 1
            direction.doubled_packets += packets.point[row] > 0


class ConnectionPackets(NamedTuple):
    """A connection's packets, rows [first, end) of a chunk; is_final: whether no later chunk has packets of it."""

    packets: Packets
    first: int
    end: int
    is_final: bool


@allocating_kernel
def lay_out_side(connection: ConnectionPackets, side: int, sides: Records, arena: Arena) -> Stream:
    """The stream of one side: its packets with known stream offsets, laid out in the arena. sides: DIRECTION[2]."""
    packets, first, end = connection.packets, connection.first, connection.end
    direction, other = sides[side], sides[1 - side]
    rows = np.empty(end - first, np.int64)
    rows = sort_rows(rows[: find_placed_rows(packets, first, end, side, rows)], packets.offset)
    pieces, extents, repeated = lay_out_packets(rows, packets, direction.position, arena)
    direction.repeated_bytes += repeated
    count_repeated(packets, rows, pieces, first, np.zeros(end - first, np.bool_), direction)
    settled = settled_extents(extents, floor_of(direction), direction.position, connection.is_final)
    return Stream(
        arena=arena.data,
        extents=extents[:settled],
        pieces=pieces,
        times=packets.time,
        places=packets.place,
        packets=packets.number,
        barrier=first_unsettled(packets, pieces, extents, settled),
        is_final=connection.is_final,
        sent=end_of_sent(direction, other) if connection.is_final else BEHIND_ALL,
        near=np.zeros(1, np.int64),
        split=direction.split,
    )


@kernel
def first_unframed(stream: Stream, direction: Record) -> int:
    """Place of the first packet with bytes that are not framed yet: the barrier, or that of an unfinished frame."""
    if stream.is_final or stream_end(stream) <= direction.position:
        return stream.barrier
    offset = max(direction.position, stream.extents[extent_holding(stream, direction.position), 0])
    place: int = stream.places[stream.pieces[piece_holding(stream, offset), 2]]
    return min(stream.barrier, place)


@kernel
def skip_other_protocol(stream: Stream, direction: Record) -> None:
    """Count the settled bytes of a connection that is not Kafka's, and skip them."""
    end = stream_end(stream)
    if end > direction.position:
        direction.unframed_bytes += settled_bytes_between(stream, direction.position, end)
        direction.position = end


@allocating_kernel
def frame_connection(
    conn: Record, sides: Records, streams: tuple[Stream, Stream], apis: Shorts, output: ChunkOutput
) -> ChunkOutput:
    """Frame the settled bytes of both sides of a connection, and pair requests with responses; sides: DIRECTION[2]."""
    if conn.protocol == UNDECIDED:
        recognise_protocol(conn, streams, sides, apis)
    if conn.protocol == KAFKA:
        client, broker = streams if conn.client == 0 else (streams[1], streams[0])
        while not frame_requests(client, sides[conn.client], conn, apis, output):
            output = with_free_rows(output)
        barrier, answers = first_unframed(client, sides[conn.client]), sides[1 - conn.client]
        if answers.highest - answers.position > MAX_FRAME_BYTES:  # do not wait for a request whose size is wrong
            barrier = BEHIND_ALL
        output = with_free_rows(output)  # before requests are indexed: none are added later, so they stay in place
        waiting = open_requests(output.requests, conn.first_open, output.counts[REQUESTS], barrier)
        while not frame_responses(broker, answers, conn, waiting, output):
            output = with_free_rows(output)
        forget_oldest(conn, waiting, output, min(barrier, first_unframed(broker, answers)))
    elif conn.protocol != UNDECIDED or streams[0].is_final:
        skip_other_protocol(streams[0], sides[0])
        skip_other_protocol(streams[1], sides[1])
    return output


@allocating_kernel
def unframed_pieces(packets: Packets, streams: tuple[Stream, Stream], sides: Records) -> Ints:
    """The pieces of packets that are not framed yet: int64[n, 4] (row, stream offset, payload bytes to skip, length).

    sides: DIRECTION[2]; they get the `split` of a piece that is partly framed.
    """
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
def end_connection(
    conn: Record, sides: Records, streams: tuple[Stream, Stream], first_request: int, output: ChunkOutput
) -> ChunkOutput:
    """End a connection: open requests get no response, and the remaining bytes are losses.

    What was sent after the last captured byte counts as missing. sides: DIRECTION[2]. first_request: the first request
    that may be open.
    """
    for side in range(2):
        direction = sides[side]
        if stream_end(streams[side]) > direction.position:
            skip_to(streams[side], direction, stream_end(streams[side]), CUT_AT_END)
        if conn.protocol == KAFKA and streams[side].sent < BEHIND_ALL:
            direction.missing_bytes += max(streams[side].sent - direction.position, 0)
        if is_output_full(output):
            output = with_free_rows(output)
        report_loss(output, conn, side, direction)
    close_requests(output, first_request, output.counts[REQUESTS])
    return output


class Chunk(NamedTuple):
    """Packets by connection, in the connection's order.

    is_carried: connection 0 goes on from an earlier chunk. is_last: no chunk follows.
    """

    packets: Packets
    is_carried: bool
    is_last: bool


class Followed(NamedTuple):
    """The connections of a chunk while they are followed: FOLLOWED_CONNECTION[n] and DIRECTION[2n].

    They have one row, and two rows, for each connection that there can be. Rows of connections that have not begun are
    zeros.
    """

    connections: Records
    directions: Records


@allocating_kernel
def reassemble(
    chunk: Chunk, followed: Followed, output: ChunkOutput, arena: Arena, apis: Shorts
) -> tuple[int, ChunkOutput, Ints]:
    """Frame a chunk of packets, connection by connection.

    A carried connection has its state in the first rows of `followed`, its open requests in `output` and their bytes in
    the arena. apis: API_TABLE.

    Returns (how many connections there are; their output; what the next chunk needs: int64[m, 4] from
    `unframed_pieces`). The last connection is unfinished unless the chunk is the last one.
    """
    packets, n = chunk.packets, len(chunk.packets.run)
    kept = np.empty((0, 4), np.int64)
    index = row = 0
    while row < n or (chunk.is_carried and index == 0):
        if index > 0 or not chunk.is_carried:
            new_connection(followed.connections, followed.directions, index, packets.run[row], output.counts[REQUESTS])
        conn, sides = followed.connections[index], followed.directions[2 * index : 2 * index + 2]
        first_request = conn.first_open
        end = connection_end(packets, conn, row)
        connection = ConnectionPackets(packets, row, end, chunk.is_last or end < n)
        place_packets(packets, row, end, sides)
        streams = (
            lay_out_side(connection, side=0, sides=sides, arena=arena),
            lay_out_side(connection, side=1, sides=sides, arena=arena),
        )
        output = frame_connection(conn, sides, streams, apis, output)
        if connection.is_final:
            output = end_connection(conn, sides, streams, first_request, output)
        else:
            kept = unframed_pieces(packets, streams, sides)
        row = end
        index += 1
    return index, output, kept
