"""What a producer's closed loop knows at a time: its threads, batches, streams and connections."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.replay.consumer_memory.producer.buffer_pool import BUFFERS, Waiters
from udfs.replay.consumer_memory.producer.captured_times import BLOCKED, BufferBounds
from udfs.replay.consumer_memory.producer.requests import Pieces, Requests, Routes, Sends, Served
from udfs.replay.consumer_memory.usage import USAGE, Spent, nothing_spent
from udfs.replay.shared.event_heap import Heap, kinds
from udfs.replay.shared.histogram import BUCKETS

ANSWER, RETURN, EXPIRE, LINGER, DUE = kinds(5)  # beside a batch, piece or connection
NONE = -1


class Built(NamedTuple):
    """Batches of a lane as they are built, int64[room] each."""

    begun: Ints  # us
    size: Ints  # bytes, with the header
    held: Ints  # bytes of the pool
    sealed: Ints  # 1: takes no more records
    of: Ints  # the captured batch that its first record is of
    behind: Ints  # the next one of its stream, or in its request; NONE for none


class Lines(NamedTuple):
    """Streams and connections: int64[streams], then int64[connections]."""

    head: Ints  # the batch to be sent first, NONE for none
    tail: Ints
    queued: Ints  # batches of the connection that are not sent yet
    in_flight: Ints  # requests
    busy: Ints  # us: until then it serves what it was sent
    turn: Ints  # the stream that is drained first, of the connection's
    at: Ints  # the first captured request that was not sent by now
    sent: Ints  # requests


THREADS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "next",  # piece
            "told",  # the piece whose time is among the events
            "free",  # threads that do not wait
            "noted",  # waiters.order[:noted] have gone on
            "awake",  # 1: the sender is to look
            "built",  # batches
        )
    ]
)


class Loop(NamedTuple):
    """All of a closed loop; the fields from `spent` on by lane, as in producer_memory.Buffered."""

    pieces: Pieces
    served: Served
    routes: Routes
    requests: Requests
    bounds: BufferBounds
    waiters: Waiters  # by piece
    since: Ints  # int64[pieces]: us, when it began to wait
    built: Built
    lines: Lines
    heap: Heap
    threads: Records
    spent: Spent
    waits: Ints
    pools: Records
    usages: Records
    runs: Records


def loop_of(sends: Sends, bounds: BufferBounds) -> Loop:
    """A loop in which nothing has happened."""
    n, lanes = len(sends.pieces.time), len(bounds.total)
    streams, connections = len(sends.routes.connection), len(sends.routes.streams) - 1
    room = 4 * n + 2  # a piece may wait, and begin a batch, which lingers, is answered and given back; one is due

    def zeros(count: int) -> Ints:
        return np.zeros(count, np.int64)

    return Loop(
        Pieces(*map(read_only, sends.pieces)),
        Served(*map(read_only, sends.served)),
        Routes(*map(read_only, sends.routes)),
        Requests(*map(read_only, sends.requests)),
        BufferBounds(*map(read_only, bounds)),
        Waiters(*(zeros(n) for _ in Waiters._fields)),
        zeros(n),
        Built(*(zeros(n) for _ in Built._fields)),
        Lines(zeros(streams), zeros(streams), *(zeros(connections) for _ in range(6))),
        Heap(zeros(room), zeros(room), zeros(1)),
        np.zeros(1, THREADS),
        nothing_spent(lanes),
        np.zeros((lanes, BUCKETS), np.int64),
        np.zeros(lanes, BUFFERS),
        np.zeros(lanes, USAGE),
        np.zeros(lanes, BLOCKED),
    )
