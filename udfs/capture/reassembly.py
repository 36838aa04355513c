"""Packets in, frames out: the kernel that takes a chunk of packets through every connection in it.

The chunk's packets are sorted by connection and, inside one, by their place in the capture. The last connection of a chunk
may go on in the next; its state, the bytes not framed yet and its open requests are carried over (`udfs.capture.chunks`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from udfs.capture.conversation import (
    CONNECTION,
    CUT_AT_END,
    KAFKA,
    LOSS,
    NEVER,
    UNDECIDED,
    frame_requests,
    frame_responses,
    recognise,
)
from udfs.capture.framing import (
    FRAME,
    MAX_FRAME_BYTES,
    Stream,
    bytes_between,
    extent_holding,
    grow,
    piece_holding,
    stream_end,
)
from udfs.capture.segments import DIRECTION, UNKNOWN, in_stream_order, lay_out, place, settled_extents, start_direction
from udfs.capture.sync import report_loss, skip_to
from udfs.wire.kernel import kernel

FIN, SYN, RST, ACK = 1, 2, 4, 16
# So many requests of a connection may wait for an answer when a chunk ends; far more than any client leaves open.
MAX_OPEN_REQUESTS = 1000


class Packets(NamedTuple):
    """One chunk's packets, an int64[n] a column but `payload`, which holds all captured payload bytes."""

    run: npt.NDArray[np.int64]  # number of the run of packets with the same endpoints
    direction: npt.NDArray[np.int64]
    time: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]  # place in the capture set
    sequence: npt.NDArray[np.int64]
    flags: npt.NDArray[np.int64]
    wire: npt.NDArray[np.int64]  # payload bytes the packet had on the wire
    captured: npt.NDArray[np.int64]  # payload bytes the capture has of it
    source: npt.NDArray[np.int64]  # where they begin in `payload`
    offset: npt.NDArray[np.int64]  # stream offset of bytes carried over, else UNKNOWN
    payload: npt.NDArray[np.uint8]


@kernel
def connection_end(packets, conn, first):  # type: ignore[no-untyped-def]
    """Index behind the last packet, from `first` on, of one connection.

    It ends with its run of packets or where the same endpoints open another one: a client's SYN with another sequence
    number. Keeps count of packets, times and the SYN in `conn`.
    """
    row = first
    while row < len(packets.run) and packets.run[row] == conn.run:
        opens = packets.flags[row] & SYN != 0 and packets.flags[row] & ACK == 0
        if opens and conn.packets > 0 and conn.syn_sequence != packets.sequence[row]:
            break
        if opens:
            conn.syn_sequence, conn.client = packets.sequence[row], packets.direction[row]
        if packets.offset[row] == UNKNOWN:
            conn.first_time = packets.time[row] if conn.packets == 0 else min(conn.first_time, packets.time[row])
            conn.last_time = max(conn.last_time, packets.time[row])
            conn.packets += 1
        row += 1
    return row


@njit(cache=True, nogil=True)
def place_packets(packets, first, end, side, direction, offsets):  # type: ignore[no-untyped-def]
    """Rows in [first, end) of one side that bring payload which belongs, in stream order; fills in their `offsets`."""
    rows = np.empty(end - first, np.int64)
    n = 0
    for row in range(first, end):
        if packets.direction[row] != side:
            continue
        sequence = packets.sequence[row]
        is_syn = packets.flags[row] & SYN != 0
        sequence = (sequence + 1) & 0xFFFFFFFF if is_syn else sequence
        if direction.is_started == 0 and (is_syn or packets.wire[row] > 0):
            start_direction(direction, sequence)
            direction.is_synced = is_syn
        offsets[row] = packets.offset[row]
        if packets.wire[row] == 0:
            continue
        if offsets[row] == UNKNOWN:
            direction.payload_bytes += packets.captured[row]
            offsets[row] = place(direction, sequence, packets.wire[row])
        if offsets[row] == UNKNOWN:
            direction.late_bytes += packets.captured[row]
            continue
        rows[n] = row
        n += 1
    return in_stream_order(rows[:n], offsets)


@njit(cache=True, nogil=True)
def open_stream(packets, first, end, side, direction, is_final, offsets, arena, arena_end):  # type: ignore[no-untyped-def]
    """Lay out one side's packets: (the settled Stream, all pieces, end of the arena, first packet not settled)."""
    rows = place_packets(packets, first, end, side, direction, offsets)
    pieces, extents, arena_end, repeated = lay_out(
        rows, offsets, packets.captured, packets.source, packets.payload, direction.position, arena, arena_end
    )
    direction.repeated_bytes += repeated
    n = settled_extents(extents, direction.highest, direction.position, is_final)
    barrier = NEVER
    if n < len(extents):
        for i in range(len(pieces)):
            if pieces[i, 0] >= extents[n, 0]:
                barrier = min(barrier, packets.number[pieces[i, 2]])
    stream = Stream(arena, extents[:n], pieces, packets.time, packets.number, is_final, direction.split)
    return stream, pieces, arena_end, barrier


@kernel
def first_unframed(client, direction, barrier):  # type: ignore[no-untyped-def]
    """The packet from which on requests are not framed yet: at the barrier, or where a request began that may go on."""
    if client.is_final or stream_end(client) <= direction.position:
        return barrier
    offset = max(direction.position, client.extents[extent_holding(client, direction.position), 0])
    return min(barrier, client.packets[client.pieces[piece_holding(client, offset), 2]])


@kernel
def leave_out(stream, direction):  # type: ignore[no-untyped-def]
    """Count what is in hand of a connection that is not Kafka's and pass over it."""
    end = stream_end(stream)
    if end > direction.position:
        direction.unframed_bytes += bytes_between(stream, direction.position, end)
        direction.position = end


@kernel
def keep_rest(pieces, offsets, direction, kept, n):  # type: ignore[no-untyped-def]
    """Append (packet row, stream offset, payload bytes to skip, length) of the pieces behind the position."""
    for i in range(len(pieces)):
        row, end = pieces[i, 2], pieces[i, 0] + pieces[i, 1]
        if end > direction.position:
            start = max(pieces[i, 0], direction.position)
            if start > pieces[i, 0]:
                direction.split = start
            kept[n] = (row, start, start - offsets[row], end - start)
            n += 1
    return n


@kernel
def new_connection(conn, directions, c, run, incarnation):  # type: ignore[no-untyped-def]
    """Set the state of connection `c`, of which nothing is known yet."""
    conn.run, conn.incarnation, conn.syn_sequence, conn.client = run, incarnation, UNKNOWN, UNKNOWN
    for side in (2 * c, 2 * c + 1):
        directions[side].lost_from = UNKNOWN
        directions[side].outlier = UNKNOWN
        directions[side].split = UNKNOWN


@njit(cache=True, nogil=True)
def close(streams, conn, c, directions, requests, first, n, losses, n_losses):  # type: ignore[no-untyped-def]
    """End a connection: what waits for an answer gets none, what was being skipped is a loss, the rest is cut off."""
    for side in range(2):
        direction = directions[2 * c + side]
        if stream_end(streams[side]) > direction.position:
            skip_to(streams[side], direction, stream_end(streams[side]), CUT_AT_END)
        losses, n_losses = report_loss(losses, n_losses, c, side, direction)
    for i in range(first, n):
        requests[i].is_open = 0
    return losses, n_losses


@kernel
def forget_oldest(conn, requests, n):  # type: ignore[no-untyped-def]
    """Close all but the newest MAX_OPEN_REQUESTS requests: their responses are not in the capture."""
    for i in range(conn.first_open, n - MAX_OPEN_REQUESTS):
        requests[i].is_open = 0
        conn.first_open = i + 1


@njit(cache=True, nogil=True)
def converse(packets, is_carried, connections, directions, requests, n_requests, arena, arena_end, is_last, apis):  # type: ignore[no-untyped-def]
    """Take a chunk of packets through its connections.

    packets: Packets. is_carried: connection 0 goes on from an earlier chunk; its state is in connections[0],
    directions[0:2] and, as its open requests, requests[:n_requests], whose bytes are in arena[:arena_end].
    arena: uint8 with room behind arena_end for all payload. is_last: no chunk follows.
    Returns (connections, their count, directions, requests, their count, responses, their count, losses, their count,
    kept int64[m, 4] by `keep_rest`): the last connection is unfinished unless is_last.
    """
    n = len(packets.run)
    offsets = np.empty(n, np.int64)
    responses, losses = np.zeros(64, FRAME), np.zeros(8, LOSS)
    kept = np.empty((0, 4), np.int64)
    n_connections = n_responses = n_losses = row = 0
    while row < n or (is_carried and n_connections == 0):
        c = n_connections
        connections, directions = grow(connections, c), grow(directions, 2 * c)
        conn = connections[c]
        if c > 0 or not is_carried:
            repeats = c > 0 and connections[c - 1].run == packets.run[row]
            new_connection(conn, directions, c, packets.run[row], connections[c - 1].incarnation + 1 if repeats else 0)
            conn.first_open = n_requests
        first_open = conn.first_open
        end = connection_end(packets, conn, row)
        is_final = is_last or end < n
        stream_0, pieces_0, arena_end, barrier_0 = open_stream(
            packets, row, end, 0, directions[2 * c], is_final, offsets, arena, arena_end
        )
        stream_1, pieces_1, arena_end, barrier_1 = open_stream(
            packets, row, end, 1, directions[2 * c + 1], is_final, offsets, arena, arena_end
        )
        if conn.protocol == UNDECIDED:
            recognise(conn, (stream_0, stream_1), directions[2 * c : 2 * c + 2], apis)
        if conn.protocol == KAFKA:
            client, broker = (stream_0, stream_1) if conn.client == 0 else (stream_1, stream_0)
            requests, n_requests, losses, n_losses = frame_requests(
                client, directions[2 * c + conn.client], conn, c, apis, requests, n_requests, losses, n_losses
            )
            barrier = first_unframed(
                client, directions[2 * c + conn.client], barrier_0 if conn.client == 0 else barrier_1
            )
            answers = directions[2 * c + 1 - conn.client]
            if answers.highest - answers.position > MAX_FRAME_BYTES:  # a request of a false size is not waited for
                barrier = NEVER
            responses, n_responses, losses, n_losses = frame_responses(
                broker, directions[2 * c + 1 - conn.client], conn, c, barrier,
                requests, n_requests, responses, n_responses, losses, n_losses,
            )  # fmt: skip
        elif conn.protocol != UNDECIDED or is_final:
            leave_out(stream_0, directions[2 * c])
            leave_out(stream_1, directions[2 * c + 1])
        if is_final:
            losses, n_losses = close(
                (stream_0, stream_1), conn, c, directions, requests, first_open, n_requests, losses, n_losses
            )
        else:
            forget_oldest(conn, requests, n_requests)
            kept = np.empty((len(pieces_0) + len(pieces_1), 4), np.int64)
            n_kept = keep_rest(pieces_0, offsets, directions[2 * c], kept, 0)
            kept = kept[: keep_rest(pieces_1, offsets, directions[2 * c + 1], kept, n_kept)]
        row = end
        n_connections += 1
    return connections, n_connections, directions, requests, n_requests, responses, n_responses, losses, n_losses, kept
