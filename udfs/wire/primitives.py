"""Reading Kafka's primitive types (KIP-482, Protocol guide "Protocol Primitive Types") at an offset of an arena.

A reader gets `limit`, the end of the bytes it may look at, and returns the offset after what it read, or the negative of a
`DecodeFault`. Callers keep 0 <= offset <= limit <= arena.size; arenas are uint8, contiguous.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from udfs.wire.arrays import Bytes
from udfs.wire.faults import DecodeFault

# How the length of a string, bytes or array is written: the width of a signed integer, or an unsigned varint of length + 1.
COMPACT = 0
SHORT = 2
INT = 4

_TRUNCATED = -int(DecodeFault.TRUNCATED)
_BAD_VARINT = -int(DecodeFault.BAD_VARINT)
_MAX_INT32 = 0x7FFFFFFF


@njit(cache=True, nogil=True)
def signed(arena: Bytes, offset: int, width: int) -> int:
    """The big-endian two's complement integer of `width` (1..8) bytes; the bytes must be there."""
    at = np.uint64(offset)  # unsigned, so that no wrap-around of negative indices is compiled in
    value = np.uint64(0)
    if offset + 8 <= arena.size:
        for index in range(8):
            value = (value << np.uint64(8)) | np.uint64(arena[at + np.uint64(index)])
    else:
        for index in range(width):
            value = (value << np.uint64(8)) | np.uint64(arena[at + np.uint64(index)])
        value <<= np.uint64(64 - 8 * width)
    return np.int64(value) >> np.int64(64 - 8 * width)


@njit(cache=True, nogil=True)
def unsigned_varint(arena: Bytes, offset: int, limit: int) -> tuple[int, int]:
    """(offset after, value) of an unsigned varint of at most five bytes and 2^31-1."""
    value = 0
    for index in range(5):
        if offset + index >= limit:
            return _TRUNCATED, 0
        byte = np.int64(arena[np.uint64(offset + index)])
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (offset + index + 1, value) if value <= _MAX_INT32 else (_BAD_VARINT, 0)
    return _BAD_VARINT, 0


@njit(cache=True, nogil=True)
def length(arena: Bytes, offset: int, limit: int, prefix: int) -> tuple[int, int]:
    """(offset after, length or count) behind a `prefix` of COMPACT, SHORT or INT; -1 is null. Unchecked against `limit`."""
    if prefix == COMPACT:
        after, value = unsigned_varint(arena, offset, limit)
        return after, value - 1
    if offset + prefix > limit:
        return _TRUNCATED, 0
    # Kafka's generated readers take any negative length for null.
    return offset + prefix, max(signed(arena, offset, prefix), -1)
