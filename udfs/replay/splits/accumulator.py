"""A producer's RecordAccumulator and Sender, one lane at a time: records in, batches closed, refused and split.

The rules are those of `RecordAccumulator`, `ProducerBatch`, `Sender` and `BuiltInPartitioner` of kafka-clients 4.3.
When records were appended, how long after it was ready a batch was sent and how long its answer took is the capture's
own timing; to which partition a record went is as captured, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.replay.splits.compression_estimate import (
    AS_CAPTURED,
    DAMPED,
    KIP_TEXT,
    SPLIT_AT_BATCH_SIZE,
    UNCOMPRESSED,
    Producers,
    after_split,
    estimated_bytes,
    has_room,
    ratio_of,
    record_bytes,
    updated,
    upper_bound,
)
from udfs.replay.splits.partition_queue import IN_FLIGHT, NO_PART, enqueue, leave_queue, waits
from udfs.replay.splits.sender_events import (
    ANSWERED,
    BYTES,
    CLOSED,
    END,
    FIRST,
    IS_SPLIT,
    KIND,
    LINGERED,
    NOT_ASKED,
    O_BYTES,
    O_COUNT,
    O_CREATED,
    O_FIRST,
    O_LIMIT,
    O_OVERDUE,
    O_PART,
    O_SENT,
    PARTITION,
    RETRIED,
    SIZE,
    SPANS,
    STUCK,
    TAKEN,
    TIME,
    Working,
    pop,
    push,
)  # fmt: skip
from udfs.replay.splits.split_outcomes import MICRO, Sums, Timeline, end_span, note_span, recovered
from udfs.time_units import NEVER
from udfs.wire.arrays import Bools, Floats, Ints, Singles
from udfs.wire.kernel import kernel
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


class Log(NamedTuple):
    """Records of a client by partition and, in it, as they were appended: int64[records] a column."""

    time: Ints  # us: when the record was appended
    timestamp: Ints  # ms
    content: Ints  # bytes of key, value and headers
    partition: Ints
    batch: Ints  # the captured batch it was sent in first
    resent_at: Ints  # us: when a part of its refused batch that begins with it was sent, NEVER
    resent_end: Ints  # where that part ends
    resent_size: Ints  # and its bytes
    resent_answered: Ints  # us: when it was answered, NEVER
    order: Ints  # rows in the order in which they were appended


class Batches(NamedTuple):
    """What the capture tells of batches when they were sent first: int64[batches] a column, us."""

    codec: Ints
    closed: Ints
    delay: Ints  # from being full, or having lingered, to being closed
    early: Ints  # when it was closed, if that was before it had lingered and before the next record came; NEVER
    filled_by: Ints  # that record, if it came before the request; NONE: the batch was not full when it was sent
    round_trip: Ints  # from being closed to the answer
    retries: Ints  # how often it was sent again as it was
    retry_at: Ints  # when first, NEVER
    has_sequence: Bools  # sent by an idempotent producer
    was_queued: Bools  # ... and behind what was sent again when it was ready


class Topics(NamedTuple):
    """Which partitions are whose: int64."""

    topic: Ints  # by partition
    is_sticky: Ints  # by topic: the built-in partitioner places its records, which have no key (KIP-794)


class Sizes(NamedTuple):
    """Compressed bytes by codec: a batch [first, end) takes fixed[codec, first] + cost[codec, end] - cost[codec, first]
    behind its header. float64[codecs, records] and [codecs, records + 1]."""

    fixed: Floats
    cost: Floats


@kernel
def codec_of(first: int, log: Log, batches: Batches, lanes: Producers, lane: int) -> int:
    """The codec of a batch that begins with this record."""
    return int(batches.codec[log.batch[first]] if lanes.codec[lane] == AS_CAPTURED else lanes.codec[lane])


@kernel
def size_of(first: int, end: int, uncompressed: int, codec: int, sizes: Sizes) -> int:
    """Bytes of a closed batch of these records."""
    if codec == 0:
        return RECORD_BATCH_OVERHEAD + uncompressed
    inside = sizes.fixed[codec, first] + sizes.cost[codec, end] - sizes.cost[codec, first]
    return RECORD_BATCH_OVERHEAD + max(1, int(np.rint(inside)))


@kernel
def closed_size(
    w: Working, event: int, codec: int, log: Log, batches: Batches, sizes: Sizes, lane: int, topic: int, sums: Sums
) -> int:  # fmt: skip
    """Bytes of the batch that an event closes: as measured, else as captured, for a part of a split that is the same,
    else by the model, whose error the measured ones tell.
    """
    first, end, size = w.heap[event, FIRST], w.heap[event, END], int(w.heap[event, SIZE])
    if size <= 0 and w.heap[event, IS_SPLIT] and is_captured_part(first, end, codec, log, batches):
        return int(log.resent_size[first])
    modelled = size_of(first, end, w.heap[event, BYTES], codec, sizes)
    if size <= 0:
        return modelled
    sums.measured[lane, topic] += 1
    sums.model_error[lane, topic] += abs(modelled - size) * MICRO // size
    return size


@kernel
def is_captured_part(first: int, end: int, codec: int, log: Log, batches: Batches) -> bool:
    """Whether the capture has a part of a split batch with the same records."""
    return bool(log.resent_end[first] == end and codec == batches.codec[log.batch[first]])


@kernel
def room(w: Working, partition: int, record: int, log: Log, batches: Batches, lanes: Producers, lane: int) -> bool:
    """Whether the batch being filled takes the record."""
    first, count = w.open[partition, O_FIRST], w.open[partition, O_COUNT]
    size = bytes_at(record, first, log)
    return has_room(count, estimate(w, partition, log, batches, lanes, lane), w.open[partition, O_LIMIT], size)


@kernel
def estimate(w: Working, partition: int, log: Log, batches: Batches, lanes: Producers, lane: int) -> int:
    """Estimated size of the batch being filled."""
    codec = codec_of(w.open[partition, O_FIRST], log, batches, lanes, lane)
    is_compressed = codec != 0 and lanes.profile[lane] != UNCOMPRESSED
    return estimated_bytes(w.open[partition, O_BYTES], w.ratio[partition], lanes.estimation_factor[lane], is_compressed)


@kernel
def seal(w: Working, partition: int, ready: int, log: Log, batches: Batches) -> None:
    """No more records for the batch being filled: one that is as captured is closed when that was, another one as long
    after it is ready as the captured batch of its last record.
    """
    first, count = w.open[partition, O_FIRST], w.open[partition, O_COUNT]
    captured = log.batch[first + count - 1]
    at = ready + batches.delay[captured]
    if is_as_captured(first, first + count, log):
        at = max(ready, batches.closed[captured]) if not batches.was_queued[captured] else at
    at = max(at, w.open[partition, O_SENT])
    w.open[partition, O_SENT] = at
    push(w, at, CLOSED, partition, first, first + count, w.open[partition, O_BYTES], 0, NOT_ASKED)
    w.open[partition, O_COUNT] = 0


@kernel
def is_as_captured(first: int, end: int, log: Log) -> bool:
    """Whether a captured batch had the same records."""
    captured = log.batch[first]
    begins = first == 0 or log.batch[first - 1] != captured
    return bool(begins and log.batch[end - 1] == captured and (end == len(log.batch) or log.batch[end] != captured))


@kernel
def append(
    w: Working, record: int, log: Log, batches: Batches, topics: Topics, estimates: Singles, lanes: Producers, lane: int
) -> None:
    """RecordAccumulator.append: into the batch being filled, or a new one."""
    partition, now = log.partition[record], log.time[record]
    topic = topics.topic[partition]
    row = w.open[partition]
    if row[O_COUNT] and not room(w, partition, record, log, batches, lanes, lane):
        seal(w, partition, min(now, row[O_CREATED] + lanes.linger_us[lane]), log, batches)
    if row[O_COUNT] == 0:
        codec = codec_of(record, log, batches, lanes, lane)
        w.ratio[partition] = estimates[0 if lanes.profile[lane] == DAMPED else topic, codec]
        row[O_FIRST], row[O_BYTES], row[O_CREATED], row[O_OVERDUE] = record, 0, now, 0
        row[O_LIMIT] = max(lanes.batch_size[lane], upper_bound(log.content[record]))
        lingered = now + lanes.linger_us[lane] + batches.delay[log.batch[record]]
        push(w, lingered, LINGERED, partition, record, 0, 0, 0, NOT_ASKED)
    row[O_BYTES] += bytes_at(record, row[O_FIRST], log)
    row[O_COUNT] += 1
    if estimate(w, partition, log, batches, lanes, lane) >= row[O_LIMIT]:  # it is full, and so ready
        seal(w, partition, min(now, row[O_CREATED] + lanes.linger_us[lane]), log, batches)


@kernel
def probe(
    w: Working, record: int, log: Log, batches: Batches, topics: Topics, lanes: Producers, lane: int
) -> None:  # fmt: skip
    """A record without key tries the partition of the one before it; where it has no room, that batch is closed and the
    built-in partitioner may go on to another partition (RecordAccumulator.partitionChanged)."""
    partition = log.partition[record]
    topic = topics.topic[partition]
    before = w.current[topic]
    tries = topics.is_sticky[topic] and before != partition and before >= 0 and w.open[before, O_COUNT]
    if tries and not room(w, before, record, log, batches, lanes, lane):
        ready = min(log.time[record], w.open[before, O_CREATED] + lanes.linger_us[lane])
        seal(w, before, ready, log, batches)
    w.current[topic] = partition


@kernel
def close(
    w: Working, event: int, log: Log, batches: Batches, topics: Topics, sizes: Sizes, estimates: Singles,
    lanes: Producers, lane: int, sums: Sums, line: Timeline,
) -> None:  # fmt: skip
    """ProducerBatch.close and the request: the estimate is updated, and what is too large comes back."""
    now, partition, first, end = w.heap[event, TIME], w.heap[event, PARTITION], w.heap[event, FIRST], w.heap[event, END]
    uncompressed, is_split = w.heap[event, BYTES], w.heap[event, IS_SPLIT]
    topic, profile = topics.topic[partition], lanes.profile[lane]
    codec = codec_of(first, log, batches, lanes, lane)
    size = closed_size(w, event, codec, log, batches, sizes, lane, topic, sums)
    ratio, of = ratio_of(size, uncompressed), 0 if profile == DAMPED else topic
    before = estimates[of, codec]
    recovered(sums, lane, topic, now, float(before), float(ratio))
    estimates[of, codec] = updated(profile, before, ratio, lanes, lane)
    own = profile == SPLIT_AT_BATCH_SIZE
    limit = lanes.max_message_bytes[lane, topic]
    too_large = size > min(limit, lanes.batch_size[lane]) if own else size > limit
    splits = too_large and end - first > 1 and profile != DAMPED and is_split != STUCK
    if note_span(lane, topic, splits, float(before), float(ratio), line):
        end_span(w.spans, w.counters[SPANS], lane, topic, now, line)
        w.counters[SPANS] += 1
    if is_split:
        sums.split_batches[lane, topic] += 1
        sums.bytes_resent[lane, topic] += size
    else:
        sums.batches[lane, topic] += 1
        sums.records[lane, topic] += end - first
        sums.size[lane, topic] += size
        sums.limit[lane, topic] += lanes.batch_size[lane]
        sums.uncompressed[lane, topic] += uncompressed
        sums.over_limit[lane, topic] += size > limit
        sums.largest[lane, topic] = max(sums.largest[lane, topic], size)
    if not (splits and own):  # which splits before it sends
        sums.bytes_sent[lane, topic] += size
    is_ordered = is_split and batches.has_sequence[log.batch[first]]
    if is_ordered:
        w.open[partition, O_PART] = IN_FLIGHT
    if splits:
        sums.splits[lane, topic] += 1
    elif too_large and size > limit:
        sums.failed[lane, topic] += 1
    else:
        retry(w, now, event, size, log, batches)
    if splits or is_ordered:
        answer = 0 if own else round_trip(first, end, is_split, codec, log, batches)
        push(w, now + answer, ANSWERED if splits else TAKEN, partition, first, end, uncompressed, is_split, size)
    leave_queue(w, now, partition)


@kernel
def round_trip(first: int, end: int, is_split: int, codec: int, log: Log, batches: Batches) -> int:
    """us from a batch being closed to its answer: its own, else that of the captured batch with its first record."""
    answered = log.resent_answered[first]
    if is_split and answered != NEVER and is_captured_part(first, end, codec, log, batches):
        return max(0, int(answered - log.resent_at[first]))
    return int(batches.round_trip[log.batch[first]])


@kernel
def retry(w: Working, now: int, event: int, size: int, log: Log, batches: Batches) -> None:
    """Send a batch again where the captured batch with its first record was."""
    partition, first, end = w.heap[event, PARTITION], w.heap[event, FIRST], w.heap[event, END]
    captured = log.batch[first]
    begins = first == 0 or log.batch[first - 1] != captured
    if begins and batches.retries[captured]:
        push(w, max(now, batches.retry_at[captured]), RETRIED, partition, first, end, w.heap[event, BYTES], 0, size)


@kernel
def close_again(
    w: Working, event: int, log: Log, batches: Batches, topics: Topics, estimates: Singles, lanes: Producers, lane: int,
    sums: Sums,
) -> None:  # fmt: skip
    """A batch that is drained again is closed again, which updates the estimate again."""
    first, uncompressed, size = w.heap[event, FIRST], w.heap[event, BYTES], w.heap[event, SIZE]
    topic, profile = topics.topic[w.heap[event, PARTITION]], lanes.profile[lane]
    codec = codec_of(first, log, batches, lanes, lane)
    of, ratio = 0 if profile == DAMPED else topic, ratio_of(size, uncompressed)
    for _ in range(batches.retries[log.batch[first]]):
        estimates[of, codec] = updated(profile, estimates[of, codec], ratio, lanes, lane)
        sums.bytes_sent[lane, topic] += size
        sums.retries[lane, topic] += 1


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
def bytes_at(record: int, first: int, log: Log) -> int:
    """Bytes of a record in a batch that begins with record `first`."""
    return record_bytes(log.content[record], record - first, log.timestamp[record] - log.timestamp[first])


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


@kernel
def handle(
    w: Working, log: Log, batches: Batches, topics: Topics, sizes: Sizes, estimates: Singles, lanes: Producers,
    lane: int, sums: Sums, line: Timeline,
) -> None:  # fmt: skip
    """Do what the next event says."""
    event = pop(w)
    kind, partition = w.heap[event, KIND], w.heap[event, PARTITION]
    if kind == LINGERED:
        linger(w, event, log, batches)
    elif kind == CLOSED:
        if is_queued(w, event):
            first, end = w.heap[event, FIRST], w.heap[event, END]
            enqueue(w, partition, first, end, w.heap[event, BYTES], 0, w.heap[event, TIME])
        else:
            close(w, event, log, batches, topics, sizes, estimates, lanes, lane, sums, line)
    elif kind == RETRIED:
        close_again(w, event, log, batches, topics, estimates, lanes, lane, sums)
    else:
        now = w.heap[event, TIME]
        if w.heap[event, IS_SPLIT]:
            w.open[partition, O_PART] = NO_PART
        if kind == ANSWERED:
            split(w, event, log, batches, topics, estimates, lanes, lane, sums)
        leave_queue(w, now, partition)


@kernel
def is_queued(w: Working, event: int) -> bool:
    """Whether an event closes a batch which has to wait instead."""
    return w.heap[event, KIND] == CLOSED and not w.heap[event, IS_SPLIT] and waits(w, w.heap[event, PARTITION])


@kernel
def linger(w: Working, event: int, log: Log, batches: Batches) -> None:
    """No more records for the batch being filled, if it is the one that lingered and nothing stands before it."""
    now, partition, first = w.heap[event, TIME], w.heap[event, PARTITION], w.heap[event, FIRST]
    count, of = w.open[partition, O_COUNT], w.open[partition, O_FIRST]
    if count == 0 or (first >= 0 and of != first):
        return
    if not waits(w, partition) and w.open[partition, O_SENT] <= now:
        seal(w, partition, now - batches.delay[log.batch[of + count - 1]], log, batches)
    elif first >= 0 and waits(w, partition):
        w.open[partition, O_OVERDUE] = 1
    elif first >= 0:
        push(w, w.open[partition, O_SENT], LINGERED, partition, first, 0, 0, 0, NOT_ASKED)
