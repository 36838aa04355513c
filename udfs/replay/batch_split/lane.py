"""One lane of a producer, from its first record to its last batch.

A batch may have to be measured when it is closed: its very records are compressed, which no kernel does. The pass then
stops at that event, is told the size, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from udfs.columns.arrays import Ints, Singles, all_read_only, read_only
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.accumulator import append, handle, is_queued, probe, room, seal
from udfs.replay.batch_split.estimate import Producers
from udfs.replay.batch_split.outcomes import Sums, Timeline
from udfs.replay.batch_split.sender import (
    APPENDED,
    CLOSED,
    END,
    FIRST,
    HELD,
    KIND,
    LINGERED,
    MODELLED,
    NOT_ASKED,
    O_COUNT,
    O_FIRST,
    O_QUEUED,
    SIZE,
    SPANS,
    TIME,
    Working,
    push,
)  # fmt: skip
from udfs.replay.batch_split.state import Batches, Log, Sizes, Topics, codec_of
from udfs.replay.shared.resent_batches import NONE

Measure = Callable[[int, int, int], int]
"""Bytes of a batch of the records [first, end) of the log in a codec; MODELLED where the records are not held."""
SAMPLING = 0x9E3779B1
"""Spreads the places of records: which batches are measured depends on nothing else."""


@kernel
def asks_size(w: Working, log: Log, batches: Batches, lanes: Producers, lane: int) -> bool:
    """Whether the next event closes a batch whose records are to be compressed anew."""
    first, every = w.heap[0, FIRST], lanes.measured_every[lane]
    if every == 0 or w.heap[0, KIND] != CLOSED or w.heap[0, SIZE] != NOT_ASKED or is_queued(w, 0):
        return False
    return (first * SAMPLING >> 16) % every == 0 and codec_of(first, log, batches, lanes, lane) != 0


@kernel
def handle_until(
    w: Working, time: int, log: Log, batches: Batches, topics: Topics, sizes: Sizes, estimates: Singles,
    lanes: Producers, lane: int, sums: Sums, line: Timeline,
) -> bool:  # fmt: skip
    """Do what the events up to a time say; False where one of them has to be given a size first."""
    while w.counters[HELD] and w.heap[0, TIME] <= time:
        if asks_size(w, log, batches, lanes, lane):
            return False
        handle(w, log, batches, topics, sizes, estimates, lanes, lane, sums, line)
    return True


@kernel
def linger_early(w: Working, record: int, log: Log, batches: Batches, lanes: Producers, lane: int) -> None:
    """Behind the last record of a captured batch that was closed before the next one came: close then. Where that one
    found it full, so does it find the batch of the lane, or that goes on."""
    batch, partition = log.batch[record], log.partition[record]
    ends = record + 1 == len(log.batch) or log.batch[record + 1] != batch
    if not ends or batches.early[batch] == NEVER:
        return
    at, first = max(batches.early[batch], log.time[record]), -1
    if batches.filled_by[batch] != NONE:
        if not w.open[partition, O_COUNT] or room(w, partition, batches.filled_by[batch], log, batches, lanes, lane):
            return
        first = w.open[partition, O_FIRST]
    push(w, at, LINGERED, partition, first, 0, 0, 0, NOT_ASKED)


@kernel
def run_lane(
    w: Working, log: Log, batches: Batches, topics: Topics, sizes: Sizes, estimates: Singles, lanes: Producers,
    lane: int, sums: Sums, line: Timeline,
) -> bool:  # fmt: skip
    """Every record of the log appended, every batch closed. estimates: float32[topics, codecs], as the lane left them.

    What is still being filled at the end is sent, as a client that closes does. False where the batch that the heap's
    first event closes has to be given its size, as SIZE; then it is called again.
    """
    while w.counters[APPENDED] < len(log.order):
        record = log.order[w.counters[APPENDED]]
        if not handle_until(w, log.time[record], log, batches, topics, sizes, estimates, lanes, lane, sums, line):
            return False
        probe(w, record, log, batches, topics, lanes, lane)
        append(w, record, log, batches, topics, estimates, lanes, lane)
        linger_early(w, record, log, batches, lanes, lane)
        w.counters[APPENDED] += 1
    for partition in range(len(w.open)):
        if w.open[partition, O_COUNT]:
            first, count = w.open[partition, O_FIRST], w.open[partition, O_COUNT]
            seal(w, partition, log.time[first + count - 1], log, batches)
    return handle_until(w, NEVER, log, batches, topics, sizes, estimates, lanes, lane, sums, line)


def not_measured(first: int, end: int, codec: int) -> int:
    """The Measure where nobody holds the records."""
    return MODELLED


def run(
    w: Working, log: Log, batches: Batches, topics: Topics, sizes: Sizes, estimates: Singles, lanes: Producers,
    lane: int, sums: Sums, line: Timeline, measure: Measure = not_measured,
) -> Ints:  # fmt: skip
    """Run one lane; estimates: float32[lanes, topics, codecs]. Returns the timeline's full spans, int64[spans, 7]."""
    w.counters[:] = 0
    w.open[:, :] = 0
    w.current[:] = -1
    w.open[:, O_QUEUED] = NONE
    given = (
        w, Log(*map(read_only, log)), Batches(*all_read_only(batches)), Topics(*map(read_only, topics)),
        Sizes(*map(read_only, sizes)), estimates[lane], Producers(*all_read_only(lanes)), lane, sums, line,
    )  # fmt: skip
    while not run_lane(*given):
        first, end = int(w.heap[0, FIRST]), int(w.heap[0, END])
        w.heap[0, SIZE] = measure(first, end, int(codec_of(first, log, batches, lanes, lane)))
    return w.spans[: w.counters[SPANS]].copy()
