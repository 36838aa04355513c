"""A producer's RecordAccumulator: records go into the batch of their partition, until that is full or has lingered.

The rules are those of `RecordAccumulator`, `ProducerBatch` and `BuiltInPartitioner` of kafka-clients 4.3. The time and
the partition of each append are as captured. So is the time that the client takes to close a batch that is ready and
next in its partition. With larger batches the client has fewer to close, so batches that wait are closed earlier.
"""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import estimated_bytes, has_room, upper_bound
from udfs.replay.batch_split.partition_queue import must_wait_in_queue
from udfs.replay.batch_split.sender_events import CAPTURED_CLOSE, LINGERED, schedule_close, schedule_event
from udfs.replay.batch_split.settings import DAMPED, UNCOMPRESSED
from udfs.replay.batch_split.state import (
    ProducerSim,
    bytes_in_batch,
    close_time,
    codec_of,
    delay_by_bytes,
    estimate_topic,
    topic_of,
)
from udfs.replay.batch_split.stored_size import checked_size
from udfs.replay.shared.event_heap import push


@kernel
def estimated_size(sim: ProducerSim, lane: int, partition: int) -> int:
    """The estimated size of the batch that is being filled, by the estimate at its creation (ProducerBatch).

    Before KIP-126 the current estimate counted (`MemoryRecordsBuilder.estimatedBytesWritten` of 0.10.2 reads
    TYPE_TO_RATE).
    """
    filling, settings = sim.filling[partition], sim.settings[lane]
    codec = codec_of(sim, lane, filling.first)
    is_compressed = codec != 0 and settings.profile != UNCOMPRESSED
    ratio = filling.ratio
    if settings.profile == DAMPED:
        ratio = sim.estimates[lane, estimate_topic(settings, topic_of(sim, filling.first)), codec]
    return estimated_bytes(filling.uncompressed, ratio, settings.estimation_factor, is_compressed)


@kernel
def has_room_for(sim: ProducerSim, lane: int, partition: int, size: int) -> bool:
    """Whether the batch that is being filled has room for a record of `size` bytes."""
    filling = sim.filling[partition]
    return has_room(filling.count, estimated_size(sim, lane, partition), filling.limit, size)


@kernel
def takes_record(sim: ProducerSim, lane: int, partition: int, record: int) -> bool:
    """Whether the batch that is being filled has room for the record."""
    size = bytes_in_batch(sim.capture.records, record, sim.filling[partition].first)
    return has_room_for(sim, lane, partition, size)


@kernel
def seal_batch(sim: ProducerSim, lane: int, partition: int, ready_at: int, closed: int) -> None:
    """End the batch that is being filled.

    It is closed at `closed`. But if a captured batch has the same records, and waited for no parts or for the parts of
    the same batch, it is closed when the captured batch was, unless pace is drawn anew. ready_at, closed: us.
    """
    filling = sim.filling[partition]
    first, end = filling.first, filling.first + filling.count
    ready = sim.ready[first]
    ready.end, ready.uncompressed, ready.made_by_split = end, filling.uncompressed, 0
    number = sim.capture.records[end - 1].batch
    captured = sim.capture.batches[number]
    if captured.first == first and captured.end == end:
        is_in_turn = captured.queued_by == NONE or captured.queued_by == filling.refused
        if is_in_turn and captured.closed != NONE:
            closed = max(ready_at, captured.closed)
        size = checked_size(sim, lane, first, captured.size)
        if size > sim.rules.limits[lane, topic_of(sim, first)] and codec_of(sim, lane, first) == captured.codec:
            filling.refused = number
    closed = max(closed, filling.last_closed)
    filling.last_closed, filling.count = closed, 0
    schedule_close(sim, closed, first)


@kernel
def seal_full(sim: ProducerSim, lane: int, partition: int, time: int) -> None:
    """End the batch that is being filled, which is full and may have lingered. The time from the close before to its
    close is that of the captured batch with its last record.
    """
    filling = sim.filling[partition]
    ready_at = min(time, filling.created + sim.settings[lane].linger_us)
    captured = sim.capture.batches[sim.capture.records[filling.first + filling.count - 1].batch]
    earliest = max(ready_at, filling.last_closed)
    closed = close_time(captured, ready_at, filling.last_closed) + delay_by_bytes(captured, filling.uncompressed)
    seal_batch(sim, lane, partition, ready_at, max(closed, earliest))


@kernel
def begin_batch(sim: ProducerSim, lane: int, record: int) -> None:
    """Create a batch for the record."""
    appended, settings = sim.capture.records[record], sim.settings[lane]
    filling, codec = sim.filling[appended.partition], codec_of(sim, lane, record)
    filling.ratio = sim.estimates[lane, estimate_topic(settings, topic_of(sim, record)), codec]
    filling.first, filling.uncompressed, filling.created, filling.is_overdue = record, 0, appended.time, 0
    filling.limit = max(settings.batch_size, upper_bound(appended.content))
    captured, lingered = sim.capture.batches[appended.batch], appended.time + settings.linger_us
    schedule_event(sim, close_time(captured, lingered, filling.last_closed), LINGERED, record)


@kernel
def append_record(sim: ProducerSim, lane: int, record: int) -> None:
    """RecordAccumulator.append: put a record into the batch that is being filled, or into a new one."""
    partition, time = sim.capture.records[record].partition, sim.capture.records[record].time
    filling, size = sim.filling[partition], 0
    if filling.count:
        size = bytes_in_batch(sim.capture.records, record, filling.first)
        if not has_room_for(sim, lane, partition, size):
            seal_full(sim, lane, partition, time)
    if filling.count == 0:
        begin_batch(sim, lane, record)
        size = bytes_in_batch(sim.capture.records, record, record)
    filling.uncompressed += size
    filling.count += 1
    if estimated_size(sim, lane, partition) >= filling.limit:
        seal_full(sim, lane, partition, time)


@kernel
def leave_partition(sim: ProducerSim, lane: int, record: int) -> None:
    """Let a record without key try the partition of the record before. If its batch has no room, that batch ends, and
    the built-in partitioner may go on to another partition (RecordAccumulator.partitionChanged).
    """
    partition, topic = sim.capture.records[record].partition, topic_of(sim, record)
    before = sim.current[topic]
    tries = before not in (NONE, partition) and sim.capture.partitions[partition].is_sticky
    if tries and sim.filling[before].count and not takes_record(sim, lane, before, record):
        seal_full(sim, lane, before, sim.capture.records[record].time)
    sim.current[topic] = partition


@kernel
def close_as_captured(sim: ProducerSim, lane: int, record: int) -> None:
    """If a captured batch was closed before the next record came, close the batch after its last record, too. If the
    next record found the captured batch full, it has to find this batch full as well; otherwise the batch goes on.
    """
    appended = sim.capture.records[record]
    captured, partition = sim.capture.batches[appended.batch], appended.partition
    if record + 1 != captured.end or captured.early == NEVER:
        return
    time = max(captured.early, appended.time)
    if captured.filled_by == NONE:
        push(sim.heap, time, CAPTURED_CLOSE | partition)
    elif sim.filling[partition].count and not takes_record(sim, lane, partition, captured.filled_by):
        schedule_event(sim, time, LINGERED, sim.filling[partition].first)


@kernel
def end_lingering(sim: ProducerSim, lane: int, partition: int, time: int) -> bool:
    """End the batch that is being filled, which has lingered, unless other batches come before it. Returns whether it
    ended.
    """
    filling = sim.filling[partition]
    if filling.count == 0 or must_wait_in_queue(sim, partition) or filling.last_closed > time:
        return False
    last = sim.capture.records[filling.first + filling.count - 1]
    seal_batch(sim, lane, partition, time - sim.capture.batches[last.batch].delay, time)
    return True


@kernel
def end_lingering_batch(sim: ProducerSim, lane: int, first: int, time: int) -> None:
    """End the batch that begins with this record, now or as soon as no other batch comes before it."""
    partition = sim.capture.records[first].partition
    filling = sim.filling[partition]
    if filling.count == 0 or filling.first != first or end_lingering(sim, lane, partition, time):
        return
    if must_wait_in_queue(sim, partition):
        filling.is_overdue = 1
    else:
        captured = sim.capture.batches[sim.capture.records[first].batch]
        schedule_event(sim, filling.last_closed + captured.in_turn * captured.delay, LINGERED, first)
