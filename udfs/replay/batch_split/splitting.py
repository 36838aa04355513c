"""The split of a batch that is too large into parts (RecordAccumulator.splitAndReenqueue of kafka-clients 4.3)."""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import (
    compression_ratio,
    estimate_after_split,
    estimated_bytes,
    has_room,
    upper_bound,
)
from udfs.replay.batch_split.partition_queue import enqueue_batch
from udfs.replay.batch_split.sender_events import schedule_close
from udfs.replay.batch_split.settings import KIP_TEXT
from udfs.replay.batch_split.state import STUCK, ProducerSim, bytes_in_batch, codec_of, topic_of


@kernel
def split_batch(sim: ProducerSim, lane: int, first: int, time: int) -> None:
    """RecordAccumulator.splitAndReenqueue: raise the estimate, and make batches of the records again."""
    ready, outcome = sim.ready[first], sim.outcomes[lane, topic_of(sim, first)]
    settings, codec = sim.settings[lane], codec_of(sim, lane, first)
    ratio = estimate_after_split(settings.profile, compression_ratio(ready.size, ready.uncompressed))
    sim.estimates[lane, topic_of(sim, first), codec] = ratio
    if outcome.since_split == NEVER:
        outcome.since_split = time
    if settings.profile == KIP_TEXT:
        split_in_two(sim, first, time)
    else:
        refill_batches(sim, lane, first, time)


@kernel
def refill_batches(sim: ProducerSim, lane: int, first: int, time: int) -> None:
    """Put the records of a batch into new batches of the size to split to."""
    records, settings, ready = sim.capture.records, sim.settings[lane], sim.ready[first]
    codec, target, end = codec_of(sim, lane, first), split_size(sim, lane, first), ready.end
    # All records may end up in one batch again. A client that halves such batches halves it when it comes back. Any
    # other client would split it in vain again and again.
    if_whole = STUCK if ready.made_by_split or not settings.halves else 1
    ratio = sim.estimates[lane, topic_of(sim, first), codec]
    begin, filled, limit = first, 0, max(target, upper_bound(records[first].content))
    for record in range(first, end):
        size = bytes_in_batch(records, record, begin)
        estimated = estimated_bytes(filled, ratio, settings.estimation_factor, codec != 0)
        if not has_room(record - begin, estimated, limit, size):
            send_part(sim, begin, record, filled, time)
            begin, filled, limit = record, 0, max(target, upper_bound(records[record].content))
            size = bytes_in_batch(records, record, begin)
        filled += size
    send_part(sim, begin, end, filled, time)
    if begin == first:
        sim.ready[first].made_by_split = if_whole


@kernel
def split_size(sim: ProducerSim, lane: int, first: int) -> int:
    """Bytes of the batches to split to: batch.size; from 4.2 on, for a batch from a split, half of its own size."""
    settings, ready, largest = sim.settings[lane], sim.ready[first], 0
    if not (ready.made_by_split and settings.halves):
        return int(settings.batch_size)
    for record in range(first, ready.end):
        largest = max(largest, upper_bound(sim.capture.records[record].content))
    return max(largest, ready.size // 2)


@kernel
def split_in_two(sim: ProducerSim, first: int, time: int) -> None:
    """Make two batches of about half the bytes, whatever batch.size is, as in KIP-126's text."""
    records, uncompressed, end = sim.capture.records, sim.ready[first].uncompressed, sim.ready[first].end
    middle, filled, rest = first, 0, 0
    while middle == first or (middle < end - 1 and 2 * filled < uncompressed):
        filled += bytes_in_batch(records, middle, first)
        middle += 1
    for record in range(middle, end):
        rest += bytes_in_batch(records, record, middle)
    send_part(sim, first, middle, filled, time)
    send_part(sim, middle, end, rest, time)


@kernel
def send_part(sim: ProducerSim, first: int, end: int, uncompressed: int, time: int) -> None:
    """Send a batch that a split made: not before its captured time, and in its turn if it has sequence numbers."""
    captured, ready = sim.capture.records[first], sim.ready[first]
    ready.end, ready.uncompressed, ready.made_by_split = end, uncompressed, 1
    if captured.part != NONE and sim.capture.parts[captured.part].end == end:
        time = max(time, sim.capture.parts[captured.part].sent_at)
    if sim.capture.batches[captured.batch].has_sequence:
        enqueue_batch(sim, first, time)
    else:
        schedule_close(sim, time, first)
