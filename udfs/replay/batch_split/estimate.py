"""KIP-126 as producers run it: the estimated compression ratio, and what it says of a batch that is being filled.

`CompressionRatioEstimator`, `MemoryRecordsBuilder` and `DefaultRecord` of kafka-clients 4.3 (4.1 has the same rules).
Ratios and their products are float32, as there: float64 cuts batches elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Singles
from udfs.kernels.kernel import kernel
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

MAX_RECORD_OVERHEAD = 21
"""A record's length, attributes and deltas at most (DefaultRecord.MAX_RECORD_OVERHEAD)."""

INITIAL_RATIO = 1.0
DAMPING_FACTOR = 0.9
"""Of the estimate before KIP-126 (Compressor.COMPRESSION_RATE_DAMPING_FACTOR of Kafka 0.10)."""

TODAY, KIP_TEXT, DAMPED, UNCOMPRESSED, SPLIT_AT_BATCH_SIZE = range(5)
PROFILES = ("today", "kip", "damped", "uncompressed", "split_at_batch_size")
"""By profile number: Kafka's code; KIP-126's text, whose steps are never larger, which resets to 1.0 and splits in two;
what was there before, one estimate a client and codec, without splits; and the KIP's two rejected designs."""


class Producers(NamedTuple):
    """A producer's settings by lane: int64[lanes], ratios float32[lanes]."""

    batch_size: Ints
    max_message_bytes: Ints  # [lanes, topics], of the topics that the producer sends to
    linger_us: Ints
    codec: Ints  # AS_CAPTURED or a codec's number
    profile: Ints
    halves: Ints  # 1: a split batch that is refused again is split in halves (KAFKA-19012's rule, 4.2 and later)
    is_fitted: Ints  # 1: compressed sizes come from the fit alone
    measured_every: Ints  # one closed batch of so many is compressed anew to get its size, 0: none
    improving_step: Singles
    deteriorate_step: Singles
    estimation_factor: Singles


BY_CLIENT = -1
"""Of Producers.halves: what the client's version does; of Producers.batch_size: what its batches tell."""


@kernel
def updated(profile: int, estimate: np.float32, observed: np.float32, lanes: Producers, lane: int) -> np.float32:
    """The estimate after a batch was closed whose ratio was `observed` (updateEstimation)."""
    if profile == DAMPED:
        return np.float32(
            estimate * np.float32(DAMPING_FACTOR) + observed * (np.float32(1) - np.float32(DAMPING_FACTOR))
        )
    if profile == KIP_TEXT:
        return by_text(estimate, observed, lanes, lane)
    if observed > estimate:
        return max(np.float32(estimate + lanes.deteriorate_step[lane]), observed)
    if observed < estimate:
        return max(np.float32(estimate - lanes.improving_step[lane]), observed)
    return estimate


@kernel
def by_text(estimate: np.float32, observed: np.float32, lanes: Producers, lane: int) -> np.float32:
    """The estimate after a batch, as KIP-126 has it under 2b and 2c: a step, however far off it was; in (0, 1]."""
    if observed > estimate:
        return min(np.float32(estimate + lanes.deteriorate_step[lane]), np.float32(INITIAL_RATIO))
    lower = np.float32(estimate - lanes.improving_step[lane])
    return lower if observed < estimate and lower > 0 else estimate


@kernel
def estimated_bytes(uncompressed: int, ratio: np.float32, factor: np.float32, is_compressed: bool) -> int:
    """Size of a batch with so many bytes of records (estimatedBytesWritten)."""
    if not is_compressed:
        return RECORD_BATCH_OVERHEAD + uncompressed
    return RECORD_BATCH_OVERHEAD + int(np.float32(np.float32(np.float32(uncompressed) * ratio) * factor))


@kernel
def has_room(records: int, estimated: int, limit: int, record: int) -> bool:
    """Whether a batch takes one more record of these bytes (MemoryRecordsBuilder.hasRoomFor)."""
    return records == 0 or (limit > estimated and limit >= estimated + record)


@kernel
def varint_bytes(value: int) -> int:
    """Bytes of a zig-zag varint (ByteUtils.sizeOfVarlong)."""
    raw = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while raw >= np.uint64(0x80):
        raw >>= np.uint64(7)
        size += 1
    return size


@kernel
def record_bytes(content: int, offset_delta: int, timestamp_delta: int) -> int:
    """Size of a record in a batch (DefaultRecord.sizeInBytes); content: its key, value and headers with lengths."""
    body = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + content
    return body + varint_bytes(body)


@kernel
def upper_bound(content: int) -> int:
    """What a batch of one record takes at most (AbstractRecords.estimateSizeInBytesUpperBound)."""
    return RECORD_BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + content


@kernel
def ratio_of(size: int, uncompressed: int) -> np.float32:
    """A closed batch's compression ratio, header left out (MemoryRecordsBuilder.close)."""
    if uncompressed == 0:
        return np.float32(1)
    return np.float32(np.float32(size - RECORD_BATCH_OVERHEAD) / np.float32(uncompressed))


@kernel
def after_split(profile: int, ratio: np.float32) -> np.float32:
    """The estimate after a batch of this ratio was split (RecordAccumulator.splitAndReenqueue; KIP-126, 2e)."""
    return np.float32(INITIAL_RATIO) if profile == KIP_TEXT else max(np.float32(INITIAL_RATIO), ratio)
