"""Reads Kafka's primitive types (KIP-482, Protocol guide "Protocol Primitive Types") at an offset of an arena.

Functions that get a `limit`, the end of the bytes that may be read, return the offset after what they read, or the
negative of a `DecodeFault`. Callers keep 0 <= offset <= limit <= arena.size; arenas are uint8, contiguous.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Bytes, Cells, Ints
from udfs.kernels.kernel import kernel
from udfs.wire.faults import DecodeFault

# How the length of a string, bytes or array is written: as a signed integer of this width, or (COMPACT) as an unsigned
# varint of length + 1.
COMPACT = 0
SHORT = 2
INT = 4

_TRUNCATED = -int(DecodeFault.TRUNCATED)
_BAD_VARINT = -int(DecodeFault.BAD_VARINT)
MAX_INT32 = 0x7FFFFFFF
VARINT_BYTES = 5  # the most bytes of a varint


@kernel
def cell(array: Cells, index: int) -> int:
    """array[index]. The index must not be negative, so no code is needed for indices that count from the end."""
    return array[np.uint64(index)]


@kernel
def set_cell(array: Ints, index: int, value: int) -> None:
    """Set array[index]; the index must not be negative."""
    array[np.uint64(index)] = value


@kernel
def copy_bytes(source: Bytes, start: int, length: int, target: Bytes, at: int) -> None:
    """Copy source[start : start + length] to target[at:]; no overlap allowed. Slices would take seconds to compile."""
    first, to = np.uint64(start), np.uint64(at)
    for index in range(np.uint64(max(length, 0))):
        target[to + index] = source[first + index]


@kernel
def read_signed(arena: Bytes, offset: int, width: int) -> int:
    """The big-endian two's complement integer of `width` (1..8) bytes at an offset; the bytes must be there.

    arena: uint8[bytes].
    """
    value = np.uint64(0)
    if offset + 8 <= arena.size:  # one load of eight bytes for any width
        for index in range(8):
            value = (value << np.uint64(8)) | np.uint64(cell(arena, offset + index))
    else:
        for index in range(width):
            value = (value << np.uint64(8)) | np.uint64(cell(arena, offset + index))
        value <<= np.uint64(64 - 8 * width)
    return int(np.int64(value) >> np.int64(64 - 8 * width))


@kernel
def read_unsigned_varint(arena: Bytes, offset: int, limit: int) -> tuple[int, int]:
    """(offset after, value) of an unsigned varint of at most five bytes and at most 2^31-1. arena: uint8[bytes]."""
    if offset < limit and cell(arena, offset) < 0x80:  # as nearly all are
        return offset + 1, int(np.int64(cell(arena, offset)))
    value = 0
    for index in range(VARINT_BYTES):
        if offset + index >= limit:
            return _TRUNCATED, 0
        byte = int(np.int64(cell(arena, offset + index)))
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (offset + index + 1, value) if value <= MAX_INT32 else (_BAD_VARINT, 0)
    return _BAD_VARINT, 0


@kernel
def read_length(arena: Bytes, offset: int, limit: int, prefix: int) -> tuple[int, int]:
    """(offset after, length or count) from a COMPACT, SHORT or INT `prefix`; -1 is null.

    The length is not checked against the bytes that remain. arena: uint8[bytes].
    """
    if prefix == COMPACT:
        after, value = read_unsigned_varint(arena, offset, limit)
        return after, value - 1
    if offset + prefix > limit:
        return _TRUNCATED, 0
    # Kafka's generated readers treat any negative length as null.
    return offset + prefix, max(read_signed(arena, offset, prefix), -1)
