"""What a producer's Sender has still to do, in the order of time; and what the accumulator is filling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Singles
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.outcomes import SPAN_COLUMNS

LINGERED, CLOSED, ANSWERED, RETRIED, TAKEN = range(5)
"""Kinds of events; ANSWERED: a batch comes back to be split, TAKEN: a part of one does not."""
TIME, TICKET, KIND, PARTITION, FIRST, END, BYTES, IS_SPLIT, SIZE = range(9)
EVENT_COLUMNS = 9
NOT_ASKED, MODELLED = 0, -1
"""SIZE, which is bytes of the closed batch, of one that is not closed yet, and of one that is not measured."""
STUCK = 2
"""IS_SPLIT of a batch whose split made itself again: Kafka goes on until delivery.timeout.ms, the replay gives up."""
O_FIRST, O_COUNT, O_BYTES, O_LIMIT, O_CREATED, O_SENT, O_OVERDUE, O_QUEUED, O_PART = range(9)
"""Of the batch that is being filled, by partition, and of what waits there (`partition_queue`)."""
OPEN_COLUMNS = 9
Q_END, Q_BYTES, Q_IS_SPLIT, Q_FROM, Q_NEXT = range(5)
"""Of a batch that waits, at its first record."""
QUEUE_COLUMNS = 5
HELD, TICKETS, SPANS, APPENDED = range(4)
"""Counters."""
COUNTERS = 4


class Working(NamedTuple):
    """Working memory of a lane: no more events than 3 * records + 64, no more spans than records // 16 + topics."""

    heap: Ints  # int64[events, EVENT_COLUMNS]
    open: Ints  # int64[partitions, OPEN_COLUMNS]
    queue: Ints  # int64[records, QUEUE_COLUMNS]
    ratio: Singles  # float32[partitions], the estimate that the batch being filled was made with
    current: Ints  # int64[topics], the partition that got a record last
    counters: Ints
    spans: Ints  # int64[spans, SPAN_COLUMNS]


@kernel
def is_before(heap: Ints, a: int, b: int) -> bool:
    """Whether event a comes before event b: answers before what is sent at the same time, then the older records."""
    if heap[a, TIME] != heap[b, TIME]:
        return bool(heap[a, TIME] < heap[b, TIME])
    if (heap[a, KIND] == ANSWERED) != (heap[b, KIND] == ANSWERED):
        return bool(heap[a, KIND] == ANSWERED)
    if heap[a, FIRST] != heap[b, FIRST]:
        return bool(heap[a, FIRST] < heap[b, FIRST])
    return bool(heap[a, TICKET] < heap[b, TICKET])


@kernel
def swap(heap: Ints, a: int, b: int) -> None:
    """Exchange two events."""
    for column in range(EVENT_COLUMNS):
        heap[a, column], heap[b, column] = heap[b, column], heap[a, column]


@kernel
def push(
    w: Working, time: int, kind: int, partition: int, first: int, end: int, uncompressed: int, is_split: int, size: int
) -> None:  # fmt: skip
    """Put an event into the heap."""
    heap, at = w.heap, w.counters[HELD]
    heap[at, TIME], heap[at, TICKET], heap[at, KIND], heap[at, PARTITION] = time, w.counters[TICKETS], kind, partition
    heap[at, FIRST], heap[at, END], heap[at, BYTES], heap[at, IS_SPLIT] = first, end, uncompressed, is_split
    heap[at, SIZE] = size
    w.counters[HELD] += 1
    w.counters[TICKETS] += 1
    while at > 0 and is_before(heap, at, (at - 1) // 2):
        swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@kernel
def pop(w: Working) -> int:
    """Take the first event out of the heap; where it lies, behind the heap's end."""
    heap = w.heap
    w.counters[HELD] -= 1
    last = int(w.counters[HELD])
    swap(heap, 0, last)
    at = 0
    while True:
        child = 2 * at + 1
        if child >= last:
            return last
        if child + 1 < last and is_before(heap, child + 1, child):
            child += 1
        if not is_before(heap, child, at):
            return last
        swap(heap, at, child)
        at = child


def working_memory(records: int, partitions: int, topics: int) -> Working:
    """Memory for a lane over a log of so many records."""
    return Working(
        np.zeros((3 * records + 64, EVENT_COLUMNS), np.int64),
        np.zeros((partitions, OPEN_COLUMNS), np.int64),
        np.zeros((records, QUEUE_COLUMNS), np.int64),
        np.ones(partitions, np.float32),
        np.zeros(topics, np.int64),
        np.zeros(COUNTERS, np.int64),
        np.zeros((records // 8 + topics + 1, SPAN_COLUMNS), np.int64),
    )
