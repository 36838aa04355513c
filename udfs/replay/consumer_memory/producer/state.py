"""The records of a producer's replays: its batches by captured times, and in closed loop its threads, batches, streams
and connections.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.records import int_fields
from udfs.replay.consumer_memory.producer.buffer_pool import BUFFERS, Waiters, new_waiters
from udfs.replay.consumer_memory.usage import MEASURED, Meter
from udfs.replay.shared.event_heap import Heap

BUFFER_OUTCOME = int_fields(
    *MEASURED,
    "granted",  # batches that got memory
    "exhausted",  # BufferExhaustedException: max.block.ms was over
    "too_large",  # larger than buffer.memory
    "late",  # batches that got their memory only after their last record was appended in the capture
    "late_us",  # in closed loop: the most that a record was appended late
    "waits_before",  # how many had to wait before the window
)
"""The outcome of a lane."""
BATCH_STATE = int_fields(
    "is_granted",  # 1: it has its memory
    "release_at",  # us, or RELEASED after its release
    "waited_us",  # us, at most as long as it was held; in lane 0 only
)
"""The state of a batch in the lane that is replayed by captured times."""


class BatchSim(NamedTuple):
    """The replay of a producer's batches in every lane by captured times."""

    batches: Records  # BUFFERED_BATCH[n]
    settings: Records  # BUFFER_SETTINGS[lanes]
    waiters: Waiters  # an allocation for each batch
    states: Records  # BATCH_STATE[n]
    lingering: Ints  # int64[n]: the first lingers[0] are batches that began since the sender last saw a batch wait
    lingers: Ints  # int64[1]
    heap: Heap
    pool: Records  # BUFFERS[1]
    meter: Meter
    outcomes: Records  # BUFFER_OUTCOME[lanes]
    no_outcome: Records  # BUFFER_OUTCOME[1], the outcome of a lane that has not begun


def new_sim(batches: Records, settings: Records, meter: Meter, outcomes: Records) -> BatchSim:
    """A replay by captured times in which nothing has happened.

    batches: BUFFERED_BATCH[batches]. settings: BUFFER_SETTINGS[lanes]. outcomes: BUFFER_OUTCOME[lanes].
    """
    n = len(batches)
    return BatchSim(
        batches=read_only(batches),
        settings=read_only(settings),
        waiters=new_waiters(n),
        states=np.zeros(n, BATCH_STATE),
        lingering=np.zeros(n, np.int64),
        lingers=np.zeros(1, np.int64),
        heap=heap_of(4 * n + 1),  # a batch is allocated, sent and released, now or later; and its wait may end
        pool=np.zeros(1, BUFFERS),
        meter=meter,
        outcomes=outcomes,
        no_outcome=read_only(np.zeros(1, BUFFER_OUTCOME)),
    )


def heap_of(room: int) -> Heap:
    """An empty heap with room for `room` events."""
    return Heap(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64))


PIECE = int_fields(
    "due_at",  # us: from when on a thread can send it
    "size",  # bytes on the wire, without the batch's header
    "batch",  # the captured batch that it is a piece of
    "is_first",  # 1: it is the first piece of that batch
)
"""A piece: records of a captured batch that a thread appends at once."""
STREAM = int_fields(
    "connection",
    "head",  # the batch to be sent first, or NONE
    "tail",  # the batch to be sent last, if there is any
)
"""A stream: a partition on its connection, with the lane's batches that are not yet sent."""
SENDER_CONNECTION = int_fields(
    "first_stream", "end_stream",
    "first_request", "end_request",  # its captured requests
    "queued",  # batches that are not sent yet
    "in_flight",  # requests that are not answered yet
    "busy_until",  # us: until when it serves the requests that were sent
    "turn",  # the index of the stream that is drained first, from first_stream on
    "next_request",  # the first captured request that was sent later than now
    "sent",  # requests that were sent
)  # fmt: skip
"""The state of a connection in the lane that is replayed."""
BUILT = int_fields(
    "begun_at",  # us
    "size",  # bytes, with the header
    "held",  # bytes of the pool
    "is_sealed",  # 1: it takes no more records
    "captured_batch",  # the captured batch with its first record
    "next",  # the next batch of its stream or, once it is sent, of its request; or NONE
)
"""A batch as it is built in the lane that is replayed."""
THREADS = int_fields(
    "next_piece",  # the first piece that no thread has taken yet
    "due_piece",  # the piece that the event DUE in the heap is for
    "free",  # how many threads do not wait
    "gone_on",  # how many of the woken threads, waiters.order[:pool.first], have gone on
    "is_awake",  # 1: the sender is to look for what is ready
    "built",  # batches that were begun
)
"""The threads that send, and the sender."""


class LoopSim(NamedTuple):
    """The replay of a producer in every lane in closed loop."""

    pieces: Records  # PIECE[pieces]
    batches: Records  # BUFFERED_BATCH[n], the captured ones
    requests: Records  # SERVED_REQUEST[n]
    linger_us: Ints  # int64[1]
    settings: Records  # BUFFER_SETTINGS[lanes]
    waiters: Waiters  # an allocation for each piece
    waiting_since: Ints  # int64[pieces], us
    built: Records  # BUILT[pieces]
    streams: Records  # STREAM[n]
    connections: Records  # SENDER_CONNECTION[n]
    heap: Heap
    threads: Records  # THREADS[1]
    pool: Records  # BUFFERS[1]
    meter: Meter
    outcomes: Records  # BUFFER_OUTCOME[lanes]
    no_outcome: Records  # BUFFER_OUTCOME[1], the outcome of a lane that has not begun
