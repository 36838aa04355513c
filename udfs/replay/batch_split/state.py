"""What a capture tells of a producer's records and of the batches they were sent in."""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Bools, Floats, Ints
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import Producers, record_bytes
from udfs.replay.shared.lanes import AS_CAPTURED


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
def is_captured_part(first: int, end: int, codec: int, log: Log, batches: Batches) -> bool:
    """Whether the capture has a part of a split batch with the same records."""
    return bool(log.resent_end[first] == end and codec == batches.codec[log.batch[first]])


@kernel
def is_as_captured(first: int, end: int, log: Log) -> bool:
    """Whether a captured batch had the same records."""
    captured = log.batch[first]
    begins = first == 0 or log.batch[first - 1] != captured
    return bool(begins and log.batch[end - 1] == captured and (end == len(log.batch) or log.batch[end] != captured))


@kernel
def bytes_at(record: int, first: int, log: Log) -> int:
    """Bytes of a record in a batch that begins with record `first`."""
    return record_bytes(log.content[record], record - first, log.timestamp[record] - log.timestamp[first])
