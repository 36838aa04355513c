"""Reads the offsets and times in compressed entries of message sets (formats 0 and 1, before Kafka 0.11).

Such an entry is a wrapper: its value is a compressed message set. The offsets of the messages in it are absolute in
format 0. In format 1 they are relative to the last message's offset, which the wrapper has (KIP-31). A wrapper is read
as by kafka-clients (`AbstractLegacyRecordBatch.DeepRecordsIterator`): one level deep, and up to a message that is cut.
The content of messages is never kept.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import numpy as np

from udfs.columns.arrays import Bytes, Ints, read_only
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.wire.compressed_sizes import CODEC_NAMES
from udfs.wire.faults import DecodeFault
from udfs.wire.primitives import cell, read_signed
from udfs.wire.record_batches import (
    HEADERS,
    LEGACY_ATTRIBUTES_AT,
    LEGACY_TIMESTAMP_AT,
    MAGIC_AT,
    RecordBatches,
    batch_extent,
)
from udfs.wire.records import Budget, BudgetOf, RecordsError, RecordsFault, decompress_records

FAULTS = tuple(RecordsFault)
"""The faults, in the order of the codes in Unwrapped.fault."""
_LENGTHS = 8  # of key and value, at the end of a header
_INT32 = struct.Struct(">i")
_MOST_DELTA = 0x7FFFFFFF  # between two relative offsets
_ZSTD = CODEC_NAMES.index("zstd")
_LZ4 = CODEC_NAMES.index("lz4")
_OK = int(DecodeFault.OK)
# Places in what `summarise_messages` returns.
MESSAGES, FIRST_OFFSET, LAST_OFFSET, FIRST_TIMESTAMP = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Unwrapped:
    """Batches whose wrappers have been read.

    batches: a wrapper has the first offset, count and first timestamp of its messages, or -1 if it cannot be read.
    uncompressed: int64[rows], bytes of a wrapper's message set, else -1. fault: int64[rows], why a wrapper cannot be
    read, as a place in FAULTS, else -1.
    """

    batches: RecordBatches
    uncompressed: Ints
    fault: Ints


def unwrap_batches(arena: Bytes, walked: RecordBatches, budget_of: BudgetOf) -> Unwrapped:
    """The batches of an arena, after all wrappers among them were decompressed and read, one after the other.

    arena: uint8[bytes].
    """
    batches = replace(walked, base_offset=walked.base_offset.copy(), last_offset_delta=walked.last_offset_delta.copy(),
                    record_count=walked.record_count.copy(), base_timestamp=walked.base_timestamp.copy())  # fmt: skip
    sizes, faults = np.full(len(walked.parent), NONE), np.full(len(walked.parent), NONE)
    is_old = (walked.magic == 0) | (walked.magic == 1)
    for row in np.flatnonzero(is_old & (walked.codec != 0) & (walked.fault == _OK)).tolist():  # a wrapper
        try:
            records = wrapped_records(arena, walked, row, budget_of(row))
            note_messages(batches, row, summarise_messages(records))
            sizes[row] = len(records)
        except RecordsError as refused:
            faults[row] = FAULTS.index(refused.fault)
            batches.base_offset[row] = NONE
    return Unwrapped(batches, sizes, faults)


def wrapped_records(arena: Bytes, batches: RecordBatches, row: int, budget: Budget) -> bytes:
    """The uncompressed message set in a wrapper, a row of `batches`. Raises RecordsError. arena: uint8[bytes]."""
    if batches.is_cut[row] != 0:
        raise RecordsError(RecordsFault.CUT)
    if batches.crc_valid[row] != 1:
        raise RecordsError(RecordsFault.CORRUPT)
    magic, codec = int(batches.magic[row]), int(batches.codec[row])
    if codec >= _ZSTD:  # Kafka does not read zstd in these formats (KIP-110)
        raise RecordsError(RecordsFault.UNKNOWN_CODEC)
    start = int(batches.start[row])
    key_and_value = arena[start + HEADERS[magic] - _LENGTHS : start + int(batches.size[row])].tobytes()
    stored = value_of_entry(key_and_value)
    return decompress_records(codec, with_frame_checksum(stored) if magic == 0 and codec == _LZ4 else stored, budget)


def value_of_entry(key_and_value: bytes) -> bytes:
    """The value of an entry. Its last fields are a key and a value, each after its length. Raises RecordsError."""
    (key_length,) = _INT32.unpack_from(key_and_value)
    value_at = 4 + max(key_length, 0)
    if value_at + 4 > len(key_and_value):
        raise RecordsError(RecordsFault.BAD_RECORDS)
    (length,) = _INT32.unpack_from(key_and_value, value_at)
    if not 0 <= length <= len(key_and_value) - value_at - 4:
        raise RecordsError(RecordsFault.BAD_RECORDS)
    return key_and_value[value_at + 4 : value_at + 4 + length]


def summarise_messages(records: bytes) -> Ints:
    """Count, first offset, last offset and first timestamp of a set's messages: int64[4]. Raises RecordsError."""
    summary = np.full(4, NONE)
    if not walk_messages(read_only(np.frombuffer(records, np.uint8)), summary):
        raise RecordsError(RecordsFault.BAD_RECORDS)
    return summary


def note_messages(batches: RecordBatches, row: int, messages: Ints) -> None:
    """Fill in the row of a wrapper from its messages, int64[4] as `summarise_messages` returns them.

    Raises RecordsError if their offsets contradict each other.
    """
    count, first, last, timestamp = messages.tolist()
    if not 0 <= last - first <= _MOST_DELTA:
        raise RecordsError(RecordsFault.BAD_RECORDS)
    shift = 0
    # Producers that set no offsets, such as old librdkafka, leave the wrapper's 0.
    if batches.magic[row] == 1 and batches.base_offset[row] != 0:
        shift = int(batches.base_offset[row]) - last
        if shift < 0:
            raise RecordsError(RecordsFault.BAD_RECORDS)
    batches.base_offset[row], batches.last_offset_delta[row] = first + shift, last - first
    batches.record_count[row] = count
    if batches.magic[row] == 1 and batches.timestamp_type[row] == 0:  # otherwise all messages have the wrapper's time
        batches.base_timestamp[row] = timestamp


@kernel
def walk_messages(arena: Bytes, summary: Ints) -> bool:
    """Write count, offsets and first timestamp of a message set, which is the whole arena; False if it is no message
    set.

    arena: uint8. summary: int64[4], overwritten.
    """
    at, summary[MESSAGES] = 0, 0
    while at < arena.size:
        fault, size, step = batch_extent(arena, at, arena.size)
        if fault != _OK:
            return False
        if size < 0 or step != size:  # cut off
            break
        magic = read_signed(arena, at + MAGIC_AT, 1)
        if magic > 1 or cell(arena, at + LEGACY_ATTRIBUTES_AT) & 0x07 != 0:  # a wrapper in a wrapper
            return False
        summary[LAST_OFFSET] = read_signed(arena, at, 8)
        if summary[MESSAGES] == 0:
            summary[FIRST_OFFSET] = summary[LAST_OFFSET]
            if magic == 1:
                summary[FIRST_TIMESTAMP] = read_signed(arena, at + LEGACY_TIMESTAMP_AT, 8)
        summary[MESSAGES] += 1
        at += size
    return bool(summary[MESSAGES] > 0)


_LZ4_MAGIC, _LZ4_HAS_SIZE = 4, 0x08
_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_UINT32 = 0xFFFFFFFF


def with_frame_checksum(stored: bytes) -> bytes:
    """An LZ4 frame with a corrected checksum of its descriptor. Clients of format 0 computed it over too many bytes.

    Kafka ignores the checksum in that format (KAFKA-3160, `Lz4BlockInputStream.ignoreFlagDescriptorChecksum`).
    """
    size = 2 + (8 if len(stored) > _LZ4_MAGIC and stored[_LZ4_MAGIC] & _LZ4_HAS_SIZE else 0)
    end = _LZ4_MAGIC + size
    if len(stored) <= end:
        raise RecordsError(RecordsFault.UNREADABLE)
    checksum = short_xxh32(stored[_LZ4_MAGIC:end]) >> 8 & 0xFF
    return stored[:end] + bytes([checksum]) + stored[end + 1 :]


def short_xxh32(content: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes. Only steps 1, 5 and 6 of the algorithm are needed."""
    value = _PRIMES[4] + len(content) & _UINT32
    whole = len(content) & ~3
    for at in range(0, whole, 4):
        value = _rotate_left(value + int.from_bytes(content[at : at + 4], "little") * _PRIMES[2], 17) * _PRIMES[3]
    for byte in content[whole:]:
        value = _rotate_left(value + byte * _PRIMES[4], 11) * _PRIMES[0]
    value &= _UINT32
    for shift, prime in ((15, _PRIMES[1]), (13, _PRIMES[2])):
        value = (value ^ value >> shift) * prime & _UINT32
    return value ^ value >> 16


def _rotate_left(value: int, bits: int) -> int:
    value &= _UINT32
    return (value << bits | value >> 32 - bits) & _UINT32
