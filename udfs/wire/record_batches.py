"""Reads the headers, sizes and checksums of the record batches in `records` fields, but never the records.

The magic byte at offset 16 distinguishes the three formats (`DefaultRecordBatch`, `LegacyRecord` and
`ByteBufferLogInputStream` of kafka-clients). A fetch response is a slice of the log's bytes, so its last batch may be
cut.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bytes, Ints, as_int64s, read_only
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.wire.checksums import CRC32, CRC32C, Table, checksum
from udfs.wire.faults import DecodeFault
from udfs.wire.primitives import cell, read_signed


@dataclass(frozen=True, slots=True, eq=False)
class RecordBatches:
    """One row for each batch, or for each entry of a message set (a compressed wrapper is one), in wire order.
    int64[rows].

    A value is -1 if the format of the batch does not have it, or if it was cut off. Timestamps are ms. A row with a
    fault covers the rest of its span, so the sum of `available` is the length of all spans.
    """

    parent: Ints  # its span
    fault: Ints  # DecodeFault code
    start: Ints  # arena offset
    size: Ints  # declared bytes, header included
    available: Ints  # bytes that are there
    is_cut: Ints  # 1: the span ends before the batch
    magic: Ints  # 0 or 1: message set (before Kafka 0.11), 2: record batch
    base_offset: Ints  # for a message set's entry its own offset, for a wrapper that of its last inner message
    last_offset_delta: Ints
    record_count: Ints
    codec: Ints  # 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
    timestamp_type: Ints  # 0 CreateTime, 1 LogAppendTime
    is_transactional: Ints
    is_control: Ints
    base_timestamp: Ints  # of the first record; after compaction it can be the delete horizon (KIP-534)
    max_timestamp: Ints
    producer_id: Ints
    producer_epoch: Ints
    base_sequence: Ints
    partition_leader_epoch: Ints
    crc_valid: Ints  # 1 or 0; CRC-32C of a record batch, CRC-32 of a message set's entry


(
    PARENT, FAULT, START, SIZE, AVAILABLE, IS_CUT, MAGIC, BASE_OFFSET, LAST_OFFSET_DELTA, RECORD_COUNT, CODEC,
    TIMESTAMP_TYPE, IS_TRANSACTIONAL, IS_CONTROL, BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH,
    BASE_SEQUENCE, PARTITION_LEADER_EPOCH, CRC_VALID,
) = range(len(fields(RecordBatches)))  # fmt: skip


LOG_OVERHEAD = 12  # bytes of the offset and the size, which do not count in the size
HEADER_UP_TO_MAGIC = 17  # bytes up to and including the magic byte
MAGIC_AT = 16
# The smallest size that Kafka's stream accepts for a record of any format (LegacyRecord.RECORD_OVERHEAD_V0).
LEAST_BATCH_LENGTH = 14
MAGIC_VALUE_V2 = 2
"""The magic of record batches, the format since Kafka 0.11 (RecordBatch.MAGIC_VALUE_V2); message sets have 0 or 1."""
RECORD_BATCH_OVERHEAD = 61
"""Bytes of a record batch before its records (DefaultRecordBatch.RECORD_BATCH_OVERHEAD)."""
MAX_RECORD_OVERHEAD = 21
"""The most bytes of a record's length, attributes and deltas (DefaultRecord.MAX_RECORD_OVERHEAD)."""
# Bytes of a whole header, by magic.
HEADERS = (26, 34, RECORD_BATCH_OVERHEAD)

# Record batch, magic 2: column, offset, width.
_NUMBERS = (
    (BASE_OFFSET, 0, 8),
    (PARTITION_LEADER_EPOCH, 12, 4),
    (LAST_OFFSET_DELTA, 23, 4),
    (BASE_TIMESTAMP, 27, 8),
    (MAX_TIMESTAMP, 35, 8),
    (PRODUCER_ID, 43, 8),
    (PRODUCER_EPOCH, 51, 2),
    (BASE_SEQUENCE, 53, 4),
    (RECORD_COUNT, 57, 4),
)
_CRC_AT, _CRC_FROM, _ATTRIBUTES_AT = 17, 21, 21
# Message set entry, magic 0 and 1.
_LEGACY_CRC_AT, LEGACY_ATTRIBUTES_AT, LEGACY_TIMESTAMP_AT = 12, 17, 18
# Bits of the attributes.
_CODEC, _TIMESTAMP_TYPE, _TRANSACTIONAL, _CONTROL = 0x07, 3, 4, 5

_OK = int(DecodeFault.OK)
_BAD_MAGIC = int(DecodeFault.BAD_MAGIC)
_BAD_BATCH_SIZE = int(DecodeFault.BAD_BATCH_SIZE)
_BAD_FRAME = int(DecodeFault.BAD_FRAME)


def walk_batches(arena: Bytes, starts: Ints, lengths: Ints) -> RecordBatches:
    """The batches in spans of the arena; starts, lengths: int64[spans]; the length is -1 for null."""
    arena, starts, lengths = read_only(arena), as_int64s(starts), as_int64s(lengths)
    rows = np.full((len(fields(RecordBatches)), _count_rows(arena, starts, lengths)), NONE, np.int64)
    _fill_batches(arena, starts, lengths, Checksums(CRC32, CRC32C), rows)
    return RecordBatches(*rows)


class Checksums(NamedTuple):
    """The tables of the two checksums that batches have."""

    crc32: Table
    crc32c: Table


@kernel
def batch_extent(arena: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """(fault, declared size or NONE, bytes to skip) of the batch at an offset of the arena before `end`.

    Sizes are checked as in ByteBufferLogInputStream.nextBatchSize. arena: uint8[bytes].
    """
    remaining = end - at
    if remaining < LOG_OVERHEAD:
        return _OK, NONE, remaining
    length = read_signed(arena, at + 8, 4)
    if length < LEAST_BATCH_LENGTH:
        return _BAD_BATCH_SIZE, LOG_OVERHEAD + length, remaining
    size = LOG_OVERHEAD + length
    if remaining < HEADER_UP_TO_MAGIC:
        return _OK, size, remaining
    magic = read_signed(arena, at + MAGIC_AT, 1)
    if magic < 0 or magic > MAGIC_VALUE_V2:
        return _BAD_MAGIC, size, remaining
    if size < HEADERS[magic]:
        return _BAD_BATCH_SIZE, size, remaining
    return _OK, size, min(size, remaining)


@kernel
def _is_inside(arena: Bytes, start: int, length: int) -> bool:
    return length <= 0 or (0 <= start <= arena.size - length)


@kernel
def _count_rows(arena: Bytes, starts: Ints, lengths: Ints) -> int:
    """How many rows the spans have. A span that is not inside the arena has one row, for its fault."""
    count = 0
    for span in range(starts.size):
        at, end = starts[span], starts[span] + lengths[span]
        if not _is_inside(arena, at, lengths[span]):
            count += 1
            continue
        while at < end:
            at += batch_extent(arena, at, end)[2]
            count += 1
    return count


@kernel
def _fill_flags(attributes: int, row: int, rows: Ints) -> None:
    rows[CODEC, row] = attributes & _CODEC
    rows[TIMESTAMP_TYPE, row] = attributes >> _TIMESTAMP_TYPE & 1
    rows[IS_TRANSACTIONAL, row] = attributes >> _TRANSACTIONAL & 1
    rows[IS_CONTROL, row] = attributes >> _CONTROL & 1


@kernel
def _fill_record_batch(arena: Bytes, at: int, available: int, row: int, table: Table, rows: Ints) -> None:
    """Fill in the row of a batch of magic 2, from the part of its header that is there."""
    for column, offset, width in _NUMBERS:
        if offset + width <= available:
            rows[column, row] = read_signed(arena, at + offset, width)
    if available >= _ATTRIBUTES_AT + 2:
        _fill_flags(read_signed(arena, at + _ATTRIBUTES_AT, 2), row, rows)
    if available == rows[SIZE, row]:
        stored = read_signed(arena, at + _CRC_AT, 4) & 0xFFFFFFFF
        rows[CRC_VALID, row] = stored == checksum(table, arena, at + _CRC_FROM, at + available)


@kernel
def _fill_message(arena: Bytes, at: int, available: int, row: int, table: Table, rows: Ints) -> None:
    """Fill in the row of an entry of a message set, magic 0 or 1. Only wrappers have a codec (`message_sets`)."""
    magic = rows[MAGIC, row]
    if available > LEGACY_ATTRIBUTES_AT:
        _fill_flags(cell(arena, at + LEGACY_ATTRIBUTES_AT) & 0x0F, row, rows)
        if rows[CODEC, row] == 0:
            rows[LAST_OFFSET_DELTA, row], rows[RECORD_COUNT, row] = 0, 1
        if magic == 0:
            rows[TIMESTAMP_TYPE, row] = NONE
    if magic == 1 and available >= LEGACY_TIMESTAMP_AT + 8:
        timestamp = read_signed(arena, at + LEGACY_TIMESTAMP_AT, 8)
        rows[BASE_TIMESTAMP, row], rows[MAX_TIMESTAMP, row] = timestamp, timestamp
    if available == rows[SIZE, row]:
        stored = read_signed(arena, at + _LEGACY_CRC_AT, 4) & 0xFFFFFFFF
        rows[CRC_VALID, row] = stored == checksum(table, arena, at + MAGIC_AT, at + available)


@kernel
def _fill_batch(arena: Bytes, at: int, end: int, row: int, checksums: Checksums, rows: Ints) -> int:
    """Fill in the row of the batch at an offset; returns the offset after it."""
    fault, size, available = batch_extent(arena, at, end)
    rows[FAULT, row], rows[START, row], rows[SIZE, row], rows[AVAILABLE, row] = fault, at, size, available
    rows[IS_CUT, row] = fault == _OK and available != size
    if available >= 8:
        rows[BASE_OFFSET, row] = read_signed(arena, at, 8)
    if available >= HEADER_UP_TO_MAGIC:
        rows[MAGIC, row] = read_signed(arena, at + MAGIC_AT, 1)
    if fault == _OK and rows[MAGIC, row] == MAGIC_VALUE_V2:
        _fill_record_batch(arena, at, available, row, checksums.crc32c, rows)
    elif fault == _OK and rows[MAGIC, row] >= 0:
        _fill_message(arena, at, available, row, checksums.crc32, rows)
    return at + available


@kernel
def _fill_batches(arena: Bytes, starts: Ints, lengths: Ints, checksums: Checksums, rows: Ints) -> None:
    """Fill in the rows of all batches in the spans."""
    row = 0
    for span in range(starts.size):
        at, end = starts[span], starts[span] + lengths[span]
        if not _is_inside(arena, at, lengths[span]):
            rows[PARENT, row], rows[FAULT, row] = span, _BAD_FRAME
            row += 1
            continue
        while at < end:
            rows[PARENT, row] = span
            at = _fill_batch(arena, at, end, row, checksums, rows)
            row += 1
