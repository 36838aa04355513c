"""Reads sizes and times of the records in a batch of magic 2, but never their content.

A batch's records are one compressed stream (`DefaultRecordBatch.compressedIterator`). It is decompressed step by step,
so that a decompression bomb stops at a bound. The bytes are read and dropped; only `RecordSizes` remains.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Bytes, Ints, read_only
from udfs.kernels.kernel import kernel
from udfs.wire.compressed_sizes import CODEC_NAMES, XERIAL_HEADER
from udfs.wire.primitives import cell

MOST_BYTES_A_BATCH = 64 << 20
"""The most uncompressed bytes of one batch. By default, brokers accept batches of 1 MiB."""
MOST_BYTES_A_MESSAGE = 1 << 30
"""The most uncompressed bytes of all batches in a request or response; further batches are refused."""
MOST_EXPANSION = 1200
"""The most uncompressed bytes for each compressed byte, above LEAST_LIMIT. DEFLATE reaches 1032."""
LEAST_LIMIT = 1 << 20
STEP = 1 << 20
LEAST_RECORD_BYTES = 7
"""Size, attributes, two deltas, a null key, a null value and the count of no headers take one byte each."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
# Rows of what `walk_records` writes.
CONTENT, TIMESTAMP_DELTA, END, IS_KEYLESS = range(4)


class RecordsFault(StrEnum):
    """Why the records of a batch cannot be read. schemas.tables.fault_reasons explains the words to users."""

    OLD_FORMAT = "old_format"
    CUT = "cut"
    CORRUPT = "corrupt"
    UNKNOWN_CODEC = "unknown_codec"
    UNREADABLE = "unreadable"
    EXCESSIVE = "excessive"
    BAD_RECORDS = "bad_records"


class RecordsError(Exception):
    """The records of a batch cannot be read, for the reason `fault`."""

    def __init__(self, fault: RecordsFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@dataclass(frozen=True)
class RecordSizes:
    """Sizes and times of the records of one batch, in their order.

    content: int64[records], bytes of key, value and headers with their lengths. They are the same in any batch, unlike
    a record's own length, attributes and deltas. timestamp_deltas: int64[records], ms since the batch's base timestamp.
    ends: int64[records], uncompressed offset after each record. keyless: how many records have no key. uncompressed:
    bytes of all records.
    """

    content: Ints
    timestamp_deltas: Ints
    ends: Ints
    keyless: int
    uncompressed: int


@dataclass(slots=True)
class Budget:
    """How many more bytes of records may be decompressed. Bytes of batches that are finally refused count, too."""

    left: int = MOST_BYTES_A_MESSAGE


BudgetOf = Callable[[int], Budget]
"""From a batch's row to its budget. Each message has its own, so messages can be read in any groups."""


def decompress_records(codec: int, stored: bytes, budget: Budget) -> bytes:
    """The decompressed bytes of a batch without its header; takes them from the budget. Raises RecordsError."""
    if codec == 0:
        if len(stored) > budget.left:
            raise RecordsError(RecordsFault.EXCESSIVE)
        budget.left -= len(stored)
        return stored
    if codec >= len(CODEC_NAMES):
        raise RecordsError(RecordsFault.UNKNOWN_CODEC)
    limit = min(budget.left, MOST_BYTES_A_BATCH, max(LEAST_LIMIT, MOST_EXPANSION * len(stored)))
    if limit <= 0:
        raise RecordsError(RecordsFault.EXCESSIVE)
    parts, total = [], 0
    try:
        for part in _decompress_snappy(stored, limit) if codec == 2 else _decompress_stream(CODEC_NAMES[codec], stored):
            total += len(part)
            budget.left -= len(part)
            if total > limit:
                raise RecordsError(RecordsFault.EXCESSIVE)
            parts.append(part)
    except (OSError, pa.ArrowInvalid) as fault:
        raise RecordsError(RecordsFault.UNREADABLE) from fault
    return b"".join(parts)


def _decompress_stream(codec: str, stored: bytes) -> Iterator[bytes]:
    with _stream_of(pa.BufferReader(stored), codec) as stream:
        while part := stream.read(STEP):
            yield part


def _decompress_snappy(stored: bytes, limit: int) -> Iterator[bytes]:
    """The decompressed blocks in xerial's framing, or one block without framing, as librdkafka and others write it."""
    if not stored.startswith(_XERIAL_MAGIC):
        yield _decompress_snappy_block(stored, limit)
        return
    at = XERIAL_HEADER
    while at < len(stored):
        if at + 4 > len(stored):
            raise RecordsError(RecordsFault.UNREADABLE)
        (size,) = struct.unpack_from(">i", stored, at)
        if size <= 0 or at + 4 + size > len(stored):
            raise RecordsError(RecordsFault.UNREADABLE)
        yield _decompress_snappy_block(stored[at + 4 : at + 4 + size], limit)
        at += 4 + size


def _decompress_snappy_block(block: bytes, limit: int) -> bytes:
    """A decompressed block of snappy. The block begins with its uncompressed size, which is checked before use."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:
        raise RecordsError(RecordsFault.EXCESSIVE)
    return _codec("snappy").decompress(block, decompressed_size=size, asbytes=True)


_stream_of: Any = pa.CompressedInputStream
_codec: Any = pa.Codec
"""Two classes of pyarrow without their stubs, which accept only literals as names of codecs."""


def record_sizes(records: bytes, record_count: int) -> RecordSizes:
    """Sizes and times of uncompressed records. Raises RecordsError."""
    if not 0 <= record_count <= len(records) // LEAST_RECORD_BYTES:
        raise RecordsError(RecordsFault.BAD_RECORDS)
    arena = read_only(np.frombuffer(records, np.uint8))
    sizes = np.zeros((4, record_count), np.int64)
    if walk_records(arena, sizes) != len(records):
        raise RecordsError(RecordsFault.BAD_RECORDS)
    return RecordSizes(
        content=sizes[CONTENT],
        timestamp_deltas=sizes[TIMESTAMP_DELTA],
        ends=sizes[END],
        keyless=int(sizes[IS_KEYLESS].sum()),
        uncompressed=len(records),
    )


@kernel
def _varlong(arena: Bytes, at: int, limit: int) -> tuple[int, int]:
    """(offset after, value) of a zig-zag varint of at most ten bytes before `limit`; (-1, 0) if there is none."""
    raw = np.uint64(0)
    for index in range(10):
        if at + index >= limit:
            return -1, 0
        byte = np.uint64(cell(arena, at + index))
        raw |= (byte & np.uint64(0x7F)) << np.uint64(7 * index)
        if byte < np.uint64(0x80):
            return at + index + 1, int(np.int64(raw >> np.uint64(1))) ^ -int(np.int64(raw & np.uint64(1)))
    return -1, 0


@kernel
def walk_records(arena: Bytes, sizes: Ints) -> int:
    """Write each record's content bytes, timestamp delta, end, and whether its key is null (DefaultRecord.readFrom).

    arena: uint8. sizes: int64[4, records]. Returns the offset after the last record; -1 if the bytes are not this many
    records.
    """
    at = 0
    for record in range(sizes.shape[1]):
        at, length = _varlong(arena, at, arena.size)
        if at < 0 or length < LEAST_RECORD_BYTES - 1 or length > arena.size - at:
            return -1
        end = at + length
        place, timestamp = _varlong(arena, at + 1, end)
        if place < 0:
            return -1
        place, offset = _varlong(arena, place, end)
        if place < 0 or offset != record:
            return -1
        after_length, key = _varlong(arena, place, end)
        if after_length < 0 or key > end - after_length:
            return -1
        sizes[CONTENT, record], sizes[TIMESTAMP_DELTA, record] = end - place, timestamp
        sizes[END, record], sizes[IS_KEYLESS, record] = end, key < 0
        at = end
    return at
