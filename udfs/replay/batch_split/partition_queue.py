"""What waits in a partition behind the parts of split batches, in the order of sequence numbers.

An idempotent producer sends those parts one at a time, each when the one before is answered, and nothing behind them
before the last one is sent (`RecordAccumulator.insertInSequenceOrder` and `shouldStopDrainBatchesForPartition` of
kafka-clients 4.3). What waits is not closed, so that the estimate does not follow it yet, and the batch behind it is
filled further though it has lingered.
"""

from __future__ import annotations

from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.sender import (
    CLOSED,
    LINGERED,
    NOT_ASKED,
    O_COUNT,
    O_FIRST,
    O_OVERDUE,
    O_PART,
    O_QUEUED,
    Q_BYTES,
    Q_END,
    Q_FROM,
    Q_IS_SPLIT,
    Q_NEXT,
    Working,
    push,
)
from udfs.replay.shared.resent_batches import NONE

NO_PART, TO_SEND, IN_FLIGHT = range(3)
"""Of O_PART: what has become of the part that left the queue last; NO_PART once it is answered."""


@kernel
def waits(w: Working, partition: int) -> bool:
    """Whether a batch that has no sequence number yet has to wait."""
    return bool(w.open[partition, O_QUEUED] != NONE or w.open[partition, O_PART] == TO_SEND)


@kernel
def enqueue(w: Working, partition: int, first: int, end: int, uncompressed: int, is_split: int, earliest: int) -> None:
    """Have a batch wait in its place, until `earliest` at least; a partition's records are numbered as in sequence."""
    before, behind = NONE, w.open[partition, O_QUEUED]
    while behind != NONE and behind < first:
        before, behind = behind, w.queue[behind, Q_NEXT]
    row = w.queue[first]
    row[Q_END], row[Q_BYTES], row[Q_IS_SPLIT], row[Q_FROM], row[Q_NEXT] = end, uncompressed, is_split, earliest, behind
    if before == NONE:
        w.open[partition, O_QUEUED] = first
    else:
        w.queue[before, Q_NEXT] = first


@kernel
def leave_queue(w: Working, now: int, partition: int) -> None:
    """Send what need not wait any longer."""
    while w.open[partition, O_QUEUED] != NONE:
        first = w.open[partition, O_QUEUED]
        row, part = w.queue[first], w.open[partition, O_PART]
        if part == TO_SEND or (row[Q_IS_SPLIT] and part == IN_FLIGHT):
            return
        if row[Q_IS_SPLIT]:
            w.open[partition, O_PART] = TO_SEND
        w.open[partition, O_QUEUED] = row[Q_NEXT]
        at = max(now, row[Q_FROM])
        push(w, at, CLOSED, partition, first, row[Q_END], row[Q_BYTES], row[Q_IS_SPLIT], NOT_ASKED)
    if w.open[partition, O_OVERDUE] and w.open[partition, O_PART] != TO_SEND and w.open[partition, O_COUNT]:
        w.open[partition, O_OVERDUE] = 0
        push(w, now, LINGERED, partition, w.open[partition, O_FIRST], 0, 0, 0, NOT_ASKED)
