"""A producer's RecordAccumulator and Sender, one lane at a time: records in, batches closed, refused and split.

The rules are those of `RecordAccumulator`, `ProducerBatch`, `Sender` and `BuiltInPartitioner` of kafka-clients 4.3.
When records were appended, how long after it was ready a batch was sent and how long its answer took is the capture's
own timing; to which partition a record went is as captured, too.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Singles
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import (
    DAMPED,
    SPLIT_AT_BATCH_SIZE,
    UNCOMPRESSED,
    Producers,
    estimated_bytes,
    has_room,
    ratio_of,
    updated,
    upper_bound,
)
from udfs.replay.batch_split.outcomes import MICRO, Sums, Timeline, end_span, note_span, recovered
from udfs.replay.batch_split.partition_queue import IN_FLIGHT, NO_PART, enqueue, leave_queue, waits
from udfs.replay.batch_split.sender import (
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
from udfs.replay.batch_split.splitting import split
from udfs.replay.batch_split.state import (
    Batches,
    Log,
    Sizes,
    Topics,
    bytes_at,
    codec_of,
    is_as_captured,
    is_captured_part,
)
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


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
