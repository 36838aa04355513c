"""The compression ratio that a producer estimates, and the estimated size of the batch being filled (KIP-126).

The rules are those of `CompressionRatioEstimator`, `MemoryRecordsBuilder` and `DefaultRecord` of kafka-clients 4.3; 4.1
has the same. Ratios and their products are float32, as in Kafka: with float64, batches would end at other records.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.settings import DAMPED, KIP_TEXT
from udfs.wire.record_batches import MAX_RECORD_OVERHEAD, RECORD_BATCH_OVERHEAD

INITIAL_RATIO = 1.0
DAMPING_FACTOR = 0.9
"""The weight that the estimate kept before KIP-126 (Compressor.COMPRESSION_RATE_DAMPING_FACTOR of Kafka 0.10)."""
DAMPED_INITIAL = 0.5
"""The initial estimate before KIP-126, for every codec except `none` (CompressionType of Kafka 0.10)."""


@kernel
def updated_estimate(settings: Record, estimate: np.float32, observed: np.float32) -> np.float32:
    """The estimate after a batch with the ratio `observed` was closed (updateEstimation)."""
    if settings.profile == DAMPED:
        return np.float32(
            estimate * np.float32(DAMPING_FACTOR) + observed * (np.float32(1) - np.float32(DAMPING_FACTOR))
        )
    if settings.profile == KIP_TEXT:
        return estimate_updated_by_text(settings, estimate, observed)
    if observed > estimate:
        return max(np.float32(estimate + settings.deteriorate_step), observed)
    if observed < estimate:
        return max(np.float32(estimate - settings.improving_step), observed)
    return estimate


@kernel
def estimate_updated_by_text(settings: Record, estimate: np.float32, observed: np.float32) -> np.float32:
    """The estimate after a batch was closed, by 2b and 2c of KIP-126: it moves by one step, however wrong it was. The
    text has no bounds. A step to 0 or below is not taken, because then no batch would ever be full.
    """
    if observed > estimate:
        return np.float32(estimate + settings.deteriorate_step)
    lower = np.float32(estimate - settings.improving_step)
    return lower if observed < estimate and lower > 0 else estimate


@kernel
def estimate_after_split(profile: int, ratio: np.float32) -> np.float32:
    """The estimate after a batch of this ratio was split (RecordAccumulator.splitAndReenqueue; KIP-126, 2e)."""
    return np.float32(INITIAL_RATIO) if profile == KIP_TEXT else max(np.float32(INITIAL_RATIO), ratio)


@kernel
def compression_ratio(size: int, uncompressed: int) -> np.float32:
    """The compression ratio of a closed batch, without its header (MemoryRecordsBuilder.close)."""
    if uncompressed == 0:
        return np.float32(1)
    return np.float32(np.float32(size - RECORD_BATCH_OVERHEAD) / np.float32(uncompressed))


@kernel
def estimated_bytes(uncompressed: int, ratio: np.float32, factor: np.float32, is_compressed: bool) -> int:
    """The estimated size of a batch with records of `uncompressed` bytes (estimatedBytesWritten)."""
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
    """Bytes of a record in a batch (DefaultRecord.sizeInBytes). content: of key, value and headers, with lengths."""
    body = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + content
    return body + varint_bytes(body)


@kernel
def upper_bound(content: int) -> int:
    """The most bytes of a batch with one record (AbstractRecords.estimateSizeInBytesUpperBound)."""
    return RECORD_BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + content
