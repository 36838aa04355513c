"""What becomes of a batch that is too large: its parts (RecordAccumulator.splitAndReenqueue of kafka-clients 4.3)."""

from __future__ import annotations

from udfs.columns.arrays import Singles
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import (
    KIP_TEXT,
    Producers,
    after_split,
    estimated_bytes,
    has_room,
    ratio_of,
    upper_bound,
)
from udfs.replay.batch_split.outcomes import Sums
from udfs.replay.batch_split.partition_queue import enqueue
from udfs.replay.batch_split.sender import (
    BYTES,
    CLOSED,
    END,
    FIRST,
    IS_SPLIT,
    NOT_ASKED,
    PARTITION,
    SIZE,
    STUCK,
    TIME,
    Working,
    push,
)
from udfs.replay.batch_split.state import Batches, Log, Topics, bytes_at, codec_of


@kernel
def split(
    w: Working, event: int, log: Log, batches: Batches, topics: Topics, estimates: Singles, lanes: Producers, lane: int,
    sums: Sums,
) -> None:  # fmt: skip
    """RecordAccumulator.splitAndReenqueue: raise the estimate, refill the records into batches of the target's size."""
    now, partition, first, end = w.heap[event, TIME], w.heap[event, PARTITION], w.heap[event, FIRST], w.heap[event, END]
    uncompressed, is_split, topic = w.heap[event, BYTES], w.heap[event, IS_SPLIT], topics.topic[partition]
    codec, size = codec_of(first, log, batches, lanes, lane), w.heap[event, SIZE]
    ratio = after_split(lanes.profile[lane], ratio_of(size, uncompressed))
    estimates[topic, codec] = ratio
    if sums.since_split[lane, topic] == NEVER:
        sums.since_split[lane, topic] = now
    if lanes.profile[lane] == KIP_TEXT:
        split_in_two(w, now, partition, first, end, uncompressed, log, batches)
        return
    target = split_target(first, end, size, is_split, log, lanes, lane)
    begin, filled = first, 0
    limit = max(target, upper_bound(log.content[first]))
    for record in range(first, end):
        count, bytes_of = record - begin, bytes_at(record, begin, log)
        estimated = estimated_bytes(filled, ratio, lanes.estimation_factor[lane], codec != 0)
        if not has_room(count, estimated, limit, bytes_of):
            resend(w, now, partition, begin, record, filled, 1, log, batches)
            begin, filled, limit = record, 0, max(target, upper_bound(log.content[record]))
            bytes_of = bytes_at(record, begin, log)
        filled += bytes_of
    # All in one batch again: it is halved when it comes back, where the client halves, else it would be so for ever.
    is_stuck = begin == first and (is_split or not lanes.halves[lane])
    resend(w, now, partition, begin, end, filled, STUCK if is_stuck else 1, log, batches)


@kernel
def split_target(first: int, end: int, size: int, is_split: int, log: Log, lanes: Producers, lane: int) -> int:
    """Size to split to: batch.size; of a batch that came of a split, from 4.2 on, half of it."""
    if not (is_split and lanes.halves[lane]):
        return int(lanes.batch_size[lane])
    largest = 0
    for record in range(first, end):
        largest = max(largest, upper_bound(log.content[record]))
    return max(largest, size // 2)


@kernel
def split_in_two(
    w: Working, now: int, partition: int, first: int, end: int, uncompressed: int, log: Log, batches: Batches
) -> None:
    """What KIP-126's text makes of a batch that is too large: two of about half its bytes, whatever batch.size."""
    middle, filled = first, 0
    while middle == first or (middle < end - 1 and 2 * filled < uncompressed):
        filled += bytes_at(middle, first, log)
        middle += 1
    rest = 0
    for record in range(middle, end):
        rest += bytes_at(record, middle, log)
    resend(w, now, partition, first, middle, filled, 1, log, batches)
    resend(w, now, partition, middle, end, rest, 1, log, batches)


@kernel
def resend(
    w: Working, now: int, partition: int, first: int, end: int, size: int, is_split: int, log: Log, batches: Batches
) -> None:
    """Send a batch that a split made, not before the capture does; in its turn where it has sequence numbers."""
    at = max(now, log.resent_at[first]) if log.resent_end[first] == end else now
    if batches.has_sequence[log.batch[first]]:
        enqueue(w, partition, first, end, size, is_split, at)
    else:
        push(w, at, CLOSED, partition, first, end, size, is_split, NOT_ASKED)
