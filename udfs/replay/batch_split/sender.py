"""A producer's Sender: it closes and sends batches, and splits those that brokers refuse as too large.

The rules are those of `ProducerBatch` and `Sender` of kafka-clients 4.3. How long a response takes is as captured.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.accumulator import end_lingering, end_lingering_batch
from udfs.replay.batch_split.estimate import compression_ratio, updated_estimate
from udfs.replay.batch_split.partition_queue import (
    IN_FLIGHT,
    NO_PART,
    close_in_turn,
    comes_after_sent,
    enqueue_batch,
    leave_queue,
    must_wait_in_queue,
)
from udfs.replay.batch_split.sender_events import (
    ANSWERED,
    CAPTURED_CLOSE,
    KIND,
    KIND_BITS,
    LINGERED,
    RETRIED,
    TAKEN,
    schedule_event,
)
from udfs.replay.batch_split.settings import DAMPED, SPLIT_AT_BATCH_SIZE
from udfs.replay.batch_split.splitting import split_batch
from udfs.replay.batch_split.state import MICRO, SPAN_BATCHES, STUCK, ProducerSim, codec_of, estimate_topic, topic_of
from udfs.replay.batch_split.stored_size import checked_size, modelled_size
from udfs.replay.shared.event_heap import INDEX, pop, push


@kernel
def is_counted(sim: ProducerSim, time: int) -> bool:
    """Whether this time is in the window. Events before the window only move the estimate."""
    return bool(time >= sim.progress[0].counts_from)


@kernel
def captured_part(sim: ProducerSim, first: int, codec: int) -> int:
    """The captured part of a split batch that is the same as this one, or NONE."""
    part = sim.capture.records[first].part
    if part == NONE or not sim.ready[first].made_by_split or sim.capture.parts[part].end != sim.ready[first].end:
        return NONE
    return part if codec == sim.capture.batches[sim.capture.records[first].batch].codec else NONE


@kernel
def closed_size(sim: ProducerSim, lane: int, first: int, codec: int, time: int) -> int:
    """Bytes of the batch that is being closed: as measured, otherwise those of the same captured part, otherwise by the
    model. Measured batches show the error of the model.
    """
    size, part = sim.ready[first].size, captured_part(sim, first, codec)
    if size <= 0:
        return modelled_size(sim, lane, first, codec) if part == NONE else sim.capture.parts[part].size
    if is_counted(sim, time):
        outcome = sim.outcomes[lane, topic_of(sim, first)]
        outcome.measured += 1
        outcome.model_error += abs(modelled_size(sim, lane, first, codec) - size) * MICRO // size
    return size


@kernel
def is_too_large(sim: ProducerSim, lane: int, first: int) -> bool:
    """Whether brokers refuse a closed batch."""
    return bool(checked_size(sim, lane, first, sim.ready[first].size) > sim.rules.limits[lane, topic_of(sim, first)])


@kernel
def is_split(sim: ProducerSim, lane: int, first: int) -> bool:
    """Whether a closed batch is split: it is too large, and this profile splits such batches."""
    ready, settings = sim.ready[first], sim.settings[lane]
    by_client = settings.profile == SPLIT_AT_BATCH_SIZE and ready.size > settings.batch_size
    can_be_split = ready.end - first > 1 and ready.made_by_split != STUCK
    return can_be_split and settings.profile != DAMPED and (by_client or is_too_large(sim, lane, first))


@kernel
def follow_ratio(sim: ProducerSim, lane: int, first: int, codec: int) -> None:
    """Update the estimate with the ratio of a closed batch."""
    settings, ready = sim.settings[lane], sim.ready[first]
    topic, ratio = estimate_topic(settings, topic_of(sim, first)), compression_ratio(ready.size, ready.uncompressed)
    sim.estimates[lane, topic, codec] = updated_estimate(settings, sim.estimates[lane, topic, codec], ratio)


@kernel
def note_estimate(sim: ProducerSim, lane: int, first: int, codec: int, time: int) -> None:
    """Note how the estimate compares with the ratio of a batch that is being closed."""
    topic, ready = topic_of(sim, first), sim.ready[first]
    outcome, ratio = sim.outcomes[lane, topic], compression_ratio(ready.size, ready.uncompressed)
    estimate = sim.estimates[lane, estimate_topic(sim.settings[lane], topic), codec]
    since_split = outcome.since_split
    is_back = since_split != NEVER and estimate <= ratio  # it has come back down to the ratio of batches
    if is_back:
        outcome.since_split = NEVER
    if not is_counted(sim, time):
        return
    if is_back:
        outcome.recoveries += 1
        outcome.recovery_us += time - since_split
        outcome.recovery_longest = max(outcome.recovery_longest, time - since_split)
    outcome.span_batches += 1
    outcome.span_splits += is_split(sim, lane, first)
    outcome.span_estimated += estimate
    outcome.span_observed += ratio
    if outcome.span_batches == SPAN_BATCHES:
        end_span(sim, lane, topic, time)


@kernel
def end_span(sim: ProducerSim, lane: int, topic: int, time: int) -> None:
    """Write a full span of the timeline, which holds SPAN_BATCHES batches, to sim.spans, and begin the next one."""
    outcome, progress = sim.outcomes[lane, topic], sim.progress[0]
    span = sim.spans[progress.spans]
    progress.spans += 1
    span.lane, span.topic, span.time, span.first_batch = lane, topic, time, outcome.span_first
    span.batches, span.splits = outcome.span_batches, outcome.span_splits
    span.estimated, span.observed = np.int64(outcome.span_estimated * MICRO), np.int64(outcome.span_observed * MICRO)
    outcome.span_first += outcome.span_batches
    outcome.span_batches, outcome.span_splits, outcome.span_estimated, outcome.span_observed = 0, 0, 0.0, 0.0


@kernel
def count_batch(sim: ProducerSim, lane: int, first: int) -> None:
    """Count a closed batch."""
    topic, ready, settings = topic_of(sim, first), sim.ready[first], sim.settings[lane]
    outcome = sim.outcomes[lane, topic]
    if ready.made_by_split:
        outcome.split_batches += 1
        outcome.bytes_resent += ready.size
    else:
        outcome.batches += 1
        outcome.records += ready.end - first
        outcome.size += ready.size
        outcome.limit += settings.batch_size
        outcome.uncompressed += ready.uncompressed
        outcome.over_limit += is_too_large(sim, lane, first)
        outcome.largest = max(outcome.largest, ready.size)
    splits = is_split(sim, lane, first)
    outcome.splits += splits
    if not (splits and settings.profile == SPLIT_AT_BATCH_SIZE):  # that profile splits before it sends
        outcome.bytes_sent += ready.size


@kernel
def close_batch(sim: ProducerSim, lane: int, first: int, time: int) -> None:
    """ProducerBatch.close, and the request: the estimate follows the batch; a batch that is too large comes back."""
    ready, codec = sim.ready[first], codec_of(sim, lane, first)
    partition, batch = sim.capture.records[first].partition, sim.capture.records[first].batch
    topic = topic_of(sim, first)
    ready.size = closed_size(sim, lane, first, codec, time)
    note_estimate(sim, lane, first, codec, time)
    follow_ratio(sim, lane, first, codec)
    if is_counted(sim, time):
        count_batch(sim, lane, first)
    splits = is_split(sim, lane, first)
    in_turn = ready.made_by_split and sim.capture.batches[batch].has_sequence
    if in_turn:
        sim.filling[partition].part = IN_FLIGHT
    if splits:
        push(sim.heap, time + time_to_answer(sim, lane, first, codec), ANSWERED | first)
    elif is_too_large(sim, lane, first):
        sim.outcomes[lane, topic].failed += is_counted(sim, time)
    else:
        resend_batch(sim, first, time)
    if in_turn and not splits:
        schedule_event(sim, time + time_to_answer(sim, lane, first, codec), TAKEN, first)
    leave_queue(sim, partition, time)


@kernel
def time_to_answer(sim: ProducerSim, lane: int, first: int, codec: int) -> int:
    """The time (us) from the close of a batch to its response: that of the same captured part or, if there is none,
    that of the captured batch with its first record.
    """
    if sim.settings[lane].profile == SPLIT_AT_BATCH_SIZE:
        return 0
    part = captured_part(sim, first, codec)
    if part != NONE and sim.capture.parts[part].answered_at != NEVER:
        return max(0, sim.capture.parts[part].answered_at - sim.capture.parts[part].sent_at)
    return int(sim.capture.batches[sim.capture.records[first].batch].round_trip)


@kernel
def resend_batch(sim: ProducerSim, first: int, time: int) -> None:
    """Send a batch again, if the captured batch that begins with its first record was sent again."""
    captured = sim.capture.batches[sim.capture.records[first].batch]
    if captured.first == first and captured.retries:
        schedule_event(sim, max(time, captured.retry_at), RETRIED, first)


@kernel
def close_batch_again(sim: ProducerSim, lane: int, first: int, time: int) -> None:
    """Close a batch again each time that it is sent again: the estimate follows it once more."""
    outcome, codec = sim.outcomes[lane, topic_of(sim, first)], codec_of(sim, lane, first)
    for _ in range(sim.capture.batches[sim.capture.records[first].batch].retries):
        follow_ratio(sim, lane, first, codec)
        if is_counted(sim, time):
            outcome.bytes_sent += sim.ready[first].size
            outcome.retries += 1


@kernel
def note_batch_answered(sim: ProducerSim, first: int) -> None:
    """Note that a batch is answered. If it is a part of a split batch, the next part may be sent."""
    if sim.ready[first].made_by_split:
        sim.filling[sim.capture.records[first].partition].part = NO_PART


@kernel
def waits_to_close(sim: ProducerSim, first: int) -> bool:
    """Whether a batch that would close has to wait instead."""
    return not sim.ready[first].made_by_split and must_wait_in_queue(sim, sim.capture.records[first].partition)


@kernel
def handle_batch_event(sim: ProducerSim, lane: int, kind: int, first: int, time: int) -> None:
    """Handle an event that concerns one batch."""
    if kind == LINGERED:
        end_lingering_batch(sim, lane, first, time)
    elif kind == RETRIED:
        close_batch_again(sim, lane, first, time)
    elif kind == TAKEN:
        note_batch_answered(sim, first)
        leave_queue(sim, sim.capture.records[first].partition, time)
    elif waits_to_close(sim, first):
        enqueue_batch(sim, first, time)
    elif comes_after_sent(sim, first, time):
        close_in_turn(sim, first)
    else:
        close_batch(sim, lane, first, time)


@kernel
def handle_next_event(sim: ProducerSim, lane: int) -> None:
    """Take the next event, and handle it."""
    time, code = pop(sim.heap)
    kind, index = code & ~INDEX, code & INDEX
    if kind == CAPTURED_CLOSE:
        end_lingering(sim, lane, index, time)
    elif kind == ANSWERED:
        note_batch_answered(sim, index)
        split_batch(sim, lane, index, time)
        leave_queue(sim, sim.capture.records[index].partition, time)
    else:
        handle_batch_event(sim, lane, index & KIND, index >> KIND_BITS, time)
